//! What can be asked on the command line.

use crate::phases::{self, Phase};
use crate::stores::{self, Contender};
use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Runs lsmith and other embedded stores side by side on the same work.
#[derive(Clone, Debug, Parser)]
#[command(version, about)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Stores, separated by commas; the first is compared with each of the others. A name can have
    /// a configuration, such as `rocksdb:mapped+universal`, and lsmith a merge policy, such as
    /// `lsmith:auto(runs=5)`; `list` prints all.
    #[arg(long, default_value = "lsmith,rocksdb")]
    pub(crate) stores: String,

    /// Keys, and operations of most phases: `10M`, `200k`, `50000`.
    #[arg(long, default_value = "1M", value_parser = count)]
    pub(crate) ops: u64,

    /// Phases, separated by commas; `list` prints all names. Default: the rows that have targets.
    #[arg(long, default_value = phases::DEFAULT)]
    pub(crate) phases: String,

    /// Bytes of a value, where a phase does not say otherwise.
    #[arg(long, default_value_t = 100)]
    pub(crate) value: usize,

    /// Threads of the YCSB phases.
    #[arg(long, default_value_t = 2)]
    pub(crate) threads: usize,

    /// How many times as large as the memory of its process the data of a `cold_` phase is.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cold: u64,

    /// How often every store takes its turn.
    #[arg(long, default_value_t = 3)]
    pub(crate) repeat: u32,

    /// Where the stores are made and removed again; must be on a device, not in memory.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,

    /// Print one JSON object instead of tables.
    #[arg(long)]
    pub(crate) json: bool,

    /// Run the phases on this store in this process; one JSON row a line.
    #[arg(long, hide = true)]
    pub(crate) child: Option<String>,

    /// Join the control group behind this file first.
    #[arg(long, hide = true)]
    pub(crate) door: Option<PathBuf>,

    /// Bytes of memory that the process has, if they are few.
    #[arg(long, hide = true)]
    pub(crate) memory: Option<u64>,
}

/// What can be asked besides comparing stores.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Command {
    /// Holds the formulas of LevelDB's and RocksDB's designs against the bytes that both count.
    Accuracy(AccuracyArgs),
}

/// The experiment of Lim et al., FAST 2016, on the stores themselves.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct AccuracyArgs {
    /// Numbers of keys, separated by commas.
    #[arg(long, default_value = "330k,1M", value_delimiter = ',', value_parser = count)]
    pub(crate) keys: Vec<u64>,

    /// Requests per key, after all keys have been loaded in order.
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: u64,

    /// Skews of a Zipf distribution, separated by commas; 0 is uniform.
    #[arg(long, default_value = "0,0.99", value_delimiter = ',')]
    pub(crate) zipf: Vec<f64>,

    /// Designs, separated by commas: leveldb, rocksdb, rocksdb-in-turn. Default: all that were
    /// built in.
    #[arg(long, value_delimiter = ',')]
    pub(crate) designs: Vec<String>,

    /// Bytes of an entry in a table, about.
    #[arg(long, default_value_t = 1000)]
    pub(crate) item: usize,

    /// Where the stores are made and removed again; may be in memory, because stores count bytes.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,

    /// Print one JSON object instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

impl Args {
    /// The stores to run, in their order.
    pub(crate) fn contenders(&self) -> Result<Vec<Contender>> {
        let mut contenders: Vec<Contender> = Vec::new();
        for label in labels(&self.stores) {
            let contender = stores::find(label)?;
            if contenders.iter().all(|known| known.label() != label) {
                contenders.push(contender);
            }
        }
        match contenders.is_empty() {
            true => bail!("--stores names no store: {}", stores::names()),
            false => Ok(contenders),
        }
    }

    /// The phases to run.
    pub(crate) fn phases(&self) -> Result<Vec<Phase>> {
        phases::parse_all(&self.phases, self.threads.max(1))
    }
}

/// Returns the parts of `text` between commas that are not in parentheses.
fn labels(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    let parts = text.split(move |letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    });
    parts.map(str::trim).filter(|label| !label.is_empty())
}

/// Reads a count such as `10M`.
fn count(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.strip_suffix(['M', 'k']) {
        Some(digits) => (digits, if text.ends_with('M') { 1_000_000 } else { 1000 }),
        None => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a count such as 10M or 200k")?;
    match number.checked_mul(unit) {
        Some(count) if count > 0 => Ok(count),
        _ => Err("expected a count of at least 1 that fits 64 bits".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_units() {
        assert_eq!(count("10M"), Ok(10_000_000));
        assert_eq!(count("200k"), Ok(200_000));
        assert_eq!(count("7"), Ok(7));
        for wrong in ["", "M", "1G", "-1", "0", "99999999999999999M"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unknown_stores_and_phases_are_refused() {
        let parse = |words: &[&str]| Args::try_parse_from([&["x"], words].concat()).unwrap();
        let labels = |stores: &str| -> anyhow::Result<Vec<String>> {
            let contenders = parse(&["--stores", stores]).contenders()?;
            Ok(contenders.iter().map(Contender::label).collect())
        };
        let asked = "lsmith, lsmith:auto(runs=5, price=2),lsmith";
        assert_eq!(labels(asked).unwrap(), ["lsmith", "lsmith:auto(runs=5, price=2)"]);
        for (wrong, told) in [("lsmitt", "lsmith"), (",", "lsmith"), ("rocksdb:maped", "rocksdb")] {
            let error = labels(wrong).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
        assert!(parse(&["--phases", "get_presnt"]).phases().is_err());
    }
}
