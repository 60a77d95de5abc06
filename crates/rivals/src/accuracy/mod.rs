//! LevelDB and RocksDB beside the formulas of their designs.
//!
//! The experiment comes from Lim, Andersen, Kaminsky, "Towards accurate and fast evaluation of
//! multi-stage log-structured designs", FAST 2016: all keys are loaded in order, then requested at
//! random. Both stores have LevelDB's levels. What flushes and merges have written is what the
//! store itself counts.

mod counted;
mod design;
mod report;

use crate::args::AccuracyArgs;
use crate::data::{KEY_BYTES, Order, Values};
use crate::meter::wait_until_quiet;
use crate::stores::{self, Store};
use anyhow::{Context, Result, ensure};
use counted::Counted;
use design::Design;
use lsmith_workload::{Rng, Zipf};
use report::Row;
use std::path::Path;
use std::time::Duration;

/// Bytes that a table takes for an entry besides key and value: sequence number, lengths, and its
/// part of what blocks have, as the paper counts them.
const OVERHEAD_BYTES: usize = 18;

/// Puts between two looks at level 0.
const LOOK_EVERY: u64 = 256;

/// The seed of all random numbers.
const SEED: u64 = 1;

/// Runs every design on every workload, and prints what was measured and what formulas say.
pub(crate) fn run(args: &AccuracyArgs) -> Result<()> {
    let designs = design::named(&args.designs)?;
    let base = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    std::fs::create_dir_all(&base).with_context(|| base.display().to_string())?;
    ensure!(args.item > KEY_BYTES + OVERHEAD_BYTES, "--item is too small for a key");
    ensure!(args.rounds > 0, "--rounds must be at least 1");
    let mut rows = Vec::new();
    for keys in &args.keys {
        let places = u32::try_from(*keys).context("--keys: at most 4 billion")?;
        for skew in &args.zipf {
            ensure!((0.0..=5.0).contains(skew), "--zipf {skew}: expected 0 to 5");
            for design in &designs {
                let dir = tempfile::Builder::new().prefix("lsmith-accuracy-").tempdir_in(&base)?;
                let row = measure(args, *design, places, *skew, dir.path())?;
                eprintln!("{}", report::line(&row));
                rows.push(row);
            }
        }
    }
    report::print(&rows, args.json)
}

/// Loads `keys` keys into a store of this design, requests them, and counts.
fn measure(args: &AccuracyArgs, design: Design, keys: u32, skew: f64, dir: &Path) -> Result<Row> {
    let contender = stores::find(design.store)?;
    let settings = design.settings();
    let values = Values::new(args.item - KEY_BYTES - OVERHEAD_BYTES);
    let mut draws = Rng::new(SEED, 1);
    let store = contender.open(dir, settings.clone())?;
    for place in 0..keys {
        put(store.as_ref(), place, values.draw(&mut draws))?;
        if u64::from(place).is_multiple_of(LOOK_EVERY) {
            wait_for_level0(store.as_ref())?;
        }
    }
    settle(store.as_ref())?;
    // Opened again, a store has written what was in memory, and counts from zero.
    drop(store);
    let store = contender.open(dir, settings.clone())?;
    settle(store.as_ref())?;
    let item_bytes = table_bytes(dir)? as f64 / f64::from(keys);
    let before = Counted::read(design, store.as_ref(), dir)?;

    let mut requests = Requests::new(keys, skew);
    let count = u64::from(keys) * args.rounds;
    for request in 0..count {
        put(store.as_ref(), requests.next_place(), values.draw(&mut draws))?;
        if request.is_multiple_of(LOOK_EVERY) {
            wait_for_level0(store.as_ref())?;
        }
    }
    settle(store.as_ref())?;
    let counted = Counted::read(design, store.as_ref(), dir)?.since(&before);
    Row::new(design, keys, skew, count, item_bytes, &counted)
}

fn put(store: &dyn Store, place: u32, value: &[u8]) -> Result<()> {
    store.put(&Order::Ascending.key(u64::from(place)), value, false)
}

/// Waits until level 0 has fewer files than are merged together, where the store does not stop
/// writers by itself: LevelDB would let it grow to twelve.
fn wait_for_level0(store: &dyn Store) -> Result<()> {
    while let Some(files) = store.property("leveldb.num-files-at-level0")? {
        if files.trim().parse::<u32>()? < design::LEVEL0_FILES {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn settle(store: &dyn Store) -> Result<()> {
    if !store.settle()? {
        wait_until_quiet();
    }
    Ok(())
}

/// The bytes of all tables in `dir`.
fn table_bytes(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "ldb" || end == "sst") {
            bytes += entry.metadata()?.len();
        }
    }
    Ok(bytes)
}

/// Independent random requests for present keys; popular ones are anywhere in key order.
struct Requests {
    keys: u32,
    /// The popularity of ranks, and the key of each; `None` if all keys are equally likely.
    ranked: Option<(Zipf, Vec<u32>)>,
    draws: Rng,
}

impl Requests {
    fn new(keys: u32, skew: f64) -> Requests {
        let ranked = (skew > 0.0).then(|| {
            let mut draws = Rng::new(SEED, 2);
            let mut places: Vec<u32> = (0..keys).collect();
            for index in (1..places.len()).rev() {
                places.swap(index, draws.below(index as u64 + 1) as usize);
            }
            (Zipf::new(u64::from(keys), skew), places)
        });
        Requests { keys, ranked, draws: Rng::new(SEED, 3) }
    }

    fn next_place(&mut self) -> u32 {
        match &self.ranked {
            None => self.draws.below(u64::from(self.keys)) as u32,
            Some((ranks, places)) => places[ranks.draw(&mut self.draws) as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_model::Popularity;

    #[test]
    fn requests_have_as_many_different_keys_as_formulas_expect() {
        for skew in [0.0, 0.99] {
            let mut requests = Requests::new(20_000, skew);
            let mut asked: Vec<u32> = (0..20_000).map(|_| requests.next_place()).collect();
            asked.sort_unstable();
            asked.dedup();
            let expected = Popularity::zipf(20_000, skew).unwrap().unique(20_000.0);
            let off = asked.len() as f64 / expected - 1.0;
            assert!(off.abs() < 0.02, "skew {skew}: {off}");
        }
    }

    /// Every design that was built in counts what it writes: each request is flushed once at most,
    /// and merged several times.
    #[test]
    fn stores_count_what_they_write() {
        let args = AccuracyArgs {
            keys: Vec::new(),
            rounds: 4,
            zipf: Vec::new(),
            designs: Vec::new(),
            item: 1000,
            dir: None,
            json: false,
        };
        for design in design::named(&[]).unwrap_or_default() {
            let dir = tempfile::tempdir().unwrap();
            let row = measure(&args, design, 30_000, 0.0, dir.path()).unwrap();
            assert!((0.8..1.05).contains(&row.flushed), "{row:?}");
            assert!((1.0..10.0).contains(&row.merged), "{row:?}");
            assert!((990.0..1030.0).contains(&row.item_bytes), "{row:?}");
            assert!((2000.0..4500.0).contains(&row.memtable_requests), "{row:?}");
            assert!(row.off_percent.abs() < 40.0, "{row:?}");
        }
    }
}
