//! `compaction.log` of Cassandra, which the option `log_all` of a table writes: JSON lines.
//!
//! Each table of Cassandra counts as a column family. The log has no settings but the strategy, and
//! no entries. A replay takes the defaults of the strategy, and entries of [`ENTRY_BYTES`].

mod leveled;
mod size_tiered;

pub(crate) use leveled::Leveled;
pub(crate) use size_tiered::SizeTiered;

use crate::case::Family;
use crate::log::{Job, Log, Output};
use crate::manifest::{File, TABLE_MAX};
use serde_json::Value;
use std::collections::BTreeMap;

/// Strategies, as the log names them.
pub(crate) const SIZE_TIERED: &str = "SizeTieredCompactionStrategy";
pub(crate) const LEVELED: &str = "LeveledCompactionStrategy";
pub(crate) const UNIFIED: &str = "UnifiedCompactionStrategy";

/// The setting of the leveled strategy that the log shows: the size of its SSTables, in MiB.
pub(crate) const TABLE_SIZE: &str = "sstable_size_in_mb";

/// The bytes of an SSTable below level 0 of `family`, by what the log shows, or by default.
pub(crate) fn table_bytes(family: &Family) -> u64 {
    (family.number(TABLE_SIZE).unwrap_or(160.0) * 1_048_576.0) as u64
}

/// The bytes of an entry in a replay. What merges cost depends on the bytes of tables, and on what
/// they drop, and hardly on the size of entries.
pub(crate) const ENTRY_BYTES: u64 = 256;

/// A part of the name of the file; rotated ones have a number behind it.
const NAME: &str = "compaction";

/// Returns true if a file is a log of compactions: by its name, and by how its first line begins.
pub(crate) fn is_log(name: &str, bytes: &[u8]) -> bool {
    name.contains(NAME) && bytes.trim_ascii_start().starts_with(b"{\"type\":")
}

/// What is known of a table of Cassandra.
#[derive(Default)]
struct Table {
    strategy: String,
    /// Numbers of SSTables by their generation, which may be a word.
    numbers: BTreeMap<String, u64>,
    files: BTreeMap<u64, File>,
    /// All that there ever were, oldest first.
    added: Vec<File>,
    jobs: Vec<Job>,
}

/// Returns the column families that `logs` tell of, oldest log first, and counts in `log` the lines
/// that are cut.
pub(crate) fn read<'a>(log: &mut Log, logs: impl Iterator<Item = &'a [u8]>) -> Vec<Family> {
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    for line in logs.flat_map(|bytes| bytes.split(|byte| *byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let read = serde_json::from_slice::<Value>(line).ok().and_then(|event| {
            let name = format!("{}.{}", event["keyspace"].as_str()?, event["table"].as_str()?);
            tables.entry(name).or_default().event(&event)
        });
        log.damaged += u64::from(read.is_none());
    }
    let family = |(name, table): (String, Table)| Family {
        name,
        settings: table.settings(),
        files: table.files.into_values().collect(),
        added: table.added,
        jobs: table.jobs,
    };
    tables.into_iter().map(family).collect()
}

/// Returns `family` with entries of [`ENTRY_BYTES`] in all tables.
pub(crate) fn with_entries(family: &Family) -> Family {
    let mut family = family.clone();
    for job in &mut family.jobs {
        for output in &mut job.outputs {
            output.entries = output.bytes.div_ceil(ENTRY_BYTES);
        }
        let written = job.outputs.iter().map(|output| output.entries).sum();
        job.records = (job.input_bytes.div_ceil(ENTRY_BYTES), written);
    }
    family
}

impl Table {
    /// Returns the strategy, and the size of tables below level 0 if there are any.
    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::from([("compaction_style".to_owned(), self.strategy.clone())]);
        let deep = self.added.iter().filter(|file| file.level > 0);
        if let Some(most) = deep.map(|file| file.bytes).max() {
            let mebibytes = (most as f64 / 1_048_576.0).round().max(1.0);
            settings.insert(TABLE_SIZE.to_owned(), mebibytes.to_string());
        }
        settings
    }

    fn event(&mut self, event: &Value) -> Option<()> {
        match event["type"].as_str()? {
            // The tables that are there when the log begins. A later one begins anew.
            "enable" => {
                self.files.clear();
                for strategy in event["strategies"].as_array()? {
                    strategy["type"].as_str()?.clone_into(&mut self.strategy);
                    for table in strategy["tables"].as_array()? {
                        let file = self.file(&table["table"])?;
                        self.added.push(file.clone());
                        self.files.insert(file.number, file);
                    }
                }
            }
            "flush" => {
                let files = self.written(&event["tables"])?;
                self.jobs.push(Job { outputs: outputs(&files), ..Job::default() });
                self.files.extend(files.into_iter().map(|file| (file.number, file)));
            }
            "compaction" => {
                let inputs = self.listed(&event["input"])?;
                let files = self.written(&event["output"])?;
                let mut job = Job {
                    reason: self.strategy.clone(),
                    input_tables: inputs.iter().map(|file| file.number).collect(),
                    input_bytes: inputs.iter().map(|file| file.bytes).sum(),
                    output_level: files.first().map_or(0, |file| file.level),
                    outputs: outputs(&files),
                    is_compaction: true,
                    is_finished: true,
                    ..Job::default()
                };
                for file in &inputs {
                    *job.inputs.entry(file.level).or_default() += 1;
                    self.files.remove(&file.number);
                }
                self.jobs.push(job);
                self.files.extend(files.into_iter().map(|file| (file.number, file)));
            }
            // Compactions that wait.
            _ => {}
        }
        Some(())
    }

    /// Returns the tables that `tables` names, and notes the new ones.
    fn written(&mut self, tables: &Value) -> Option<Vec<File>> {
        let files = self.listed(tables)?;
        self.added.extend(files.iter().cloned());
        Some(files)
    }

    fn listed(&mut self, tables: &Value) -> Option<Vec<File>> {
        tables.as_array()?.iter().map(|table| self.file(&table["table"])).collect()
    }

    /// Reads `{"generation":"3","size":443344,"details":{"level":0,"min_token":..}}`. Only leveled
    /// strategies write details.
    fn file(&mut self, table: &Value) -> Option<File> {
        let next = self.numbers.len() as u64;
        let generation = table["generation"].as_str()?;
        let number = *self.numbers.entry(generation.to_owned()).or_insert(next);
        let bytes = table["size"].as_u64().filter(|bytes| *bytes < TABLE_MAX)?;
        let details = &table["details"];
        let level = details["level"].as_u64().unwrap_or(0);
        let level = u32::try_from(level).ok().filter(|level| *level < 64)?;
        // Without details a table may have any token.
        let token = |name: &str, any: i64| {
            let token = details[name].as_str().and_then(|token| token.parse::<i64>().ok());
            // Tokens in the order of bytes.
            (token.unwrap_or(any) ^ i64::MIN).to_be_bytes().to_vec()
        };
        let (smallest, largest) = (token("min_token", i64::MIN), token("max_token", i64::MAX));
        Some(File { level, number, bytes, smallest, largest })
    }
}

fn outputs(files: &[File]) -> Vec<Output> {
    let output =
        |file: &File| Output { number: file.number, bytes: file.bytes, ..Output::default() };
    files.iter().map(output).collect()
}
