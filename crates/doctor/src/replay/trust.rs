//! What a replay does not know.

use super::flushes::Flushes;
use crate::policy::is_incremental;
use crate::{Case, Family, Store, cassandra, leveldb, pebble, translate};
use lsmith_spec::format_bytes;

/// The reasons of compactions that the replay makes.
const REPLAYED: [&str; 11] = [
    "",
    leveldb::REASON,
    pebble::REASON,
    cassandra::SIZE_TIERED,
    cassandra::LEVELED,
    cassandra::UNIFIED,
    "LevelL0FilesNum",
    "LevelMaxLevelSize",
    "UniversalSizeAmplification",
    "UniversalSizeRatio",
    "UniversalSortedRunNum",
];

/// Settings that the replay knows, although lsmith has no counterpart.
const KNOWN: [&str; 2] = ["compaction_pri", "level_compaction_dynamic_level_bytes"];

/// With fewer flushes, single compactions weigh much.
const FLUSHES_FEW: usize = 20;

/// The part of the entries that may delete without a word.
const DELETES_FEW: f64 = 0.05;

/// The part of the flushed entries by which drops may be off without a word. One large compaction
/// more or less at the end is as much.
const DROPS_OFF: f64 = 0.2;

/// Returns why the replay may be off, the weightiest first. `dropped` are the entries that it
/// drops, over the entries flushed.
pub(super) fn doubts(case: &Case, family: &Family, flushes: &Flushes, dropped: f64) -> Vec<String> {
    let mut doubts = Vec::new();
    let others = family.compactions().filter(|job| !REPLAYED.contains(&job.reason.as_str()));
    let others: Vec<u64> = others.map(|job| job.output_bytes()).collect();
    if !others.is_empty() {
        let bytes = format_bytes(others.iter().sum());
        let count = others.len();
        doubts.push(format!(
            "compactions that it does not make, as those by hand: {count}, which wrote {bytes}"
        ));
    }
    if flushes.base_bytes > 0 {
        let bytes = format_bytes(flushes.base_bytes);
        doubts.push(format!("what lay in the {bytes} that the store held before the LOG begins"));
    }
    if case.log.openings > 1 {
        let openings = case.log.openings;
        doubts.push(format!("whether the settings changed: the store was opened {openings} times"));
    }
    if is_incremental(family) {
        doubts.push("that RocksDB merges windows of keys: it plays merges of all keys".to_owned());
    }
    let without = translate(family).without;
    let unknown = |setting: &&String| !KNOWN.iter().any(|known| setting.starts_with(known));
    doubts.extend(without.iter().filter(unknown).cloned());
    let drops = family.compactions().map(|job| job.records.0.saturating_sub(job.records.1));
    let entries = family.flushes().flat_map(|job| &job.outputs).map(|output| output.entries);
    let drops_more = dropped - drops.sum::<u64>() as f64 / entries.sum::<u64>().max(1) as f64;
    if drops_more.abs() > DROPS_OFF {
        let (percent, more) =
            (100.0 * drops_more.abs(), if drops_more > 0.0 { "more" } else { "less" });
        doubts.push(format!(
            "which entries go: it drops {percent:.0} % of all flushed entries {more} than the LOG"
        ));
    }
    let deletes: f64 = flushes.flushes.iter().map(|flush| flush.deletes).sum();
    let share = deletes / flushes.entries();
    if share > DELETES_FEW {
        doubts.push(format!("which keys are deleted: {:.0} % of the entries", 100.0 * share));
    }
    let count = flushes.flushes.iter().filter(|flush| !flush.is_base).count();
    if count < FLUSHES_FEW {
        doubts.push(format!("what later flushes would cost: {count} flushes are few"));
    }
    if case.store == Store::LevelDb {
        doubts.push("which entries delete: the files of LevelDB do not say it".to_owned());
        doubts.push("compactions of tables that many lookups had to pass".to_owned());
    }
    if case.store == Store::Pebble {
        doubts.push("which entries delete: the files of Pebble do not say it".to_owned());
        doubts.push("where flushes were cut into tables".to_owned());
    }
    if case.store == Store::Cassandra {
        doubts.push(
            "the settings of the table: the log does not say them, it takes the defaults"
                .to_owned(),
        );
        let bytes = cassandra::ENTRY_BYTES;
        doubts.push(format!(
            "entries and tombstones: the log has bytes, it plays entries of {bytes}"
        ));
    }
    doubts.push("whether some keys are written more often than others".to_owned());
    doubts.push("flushes while a compaction is under way".to_owned());
    doubts
}
