//! What is peculiar to LevelDB: the lines of its LOG, what its MANIFEST says of them, and how it
//! picks compactions.
//!
//! LevelDB writes no settings down. All but the sizes of memtables and tables are constants of its
//! source; the size of tables follows from what compactions wrote.

mod complete;
mod lines;
mod picker;

pub(crate) use complete::{complete, jobs_of};
pub(crate) use lines::{REASON, read};
pub(crate) use picker::Picker;

use crate::log::Job;
use crate::options::Settings;

/// The compaction style of LevelDB in [`Settings`].
pub(crate) const STYLE: &str = "LevelDB";

/// `max_file_size`, unless compactions have written tables of another size.
const TABLE_BYTES: u64 = 2 << 20;

/// Sizes of tables are rounded down to a multiple of this: a table ends a bit behind the limit.
const TABLE_STEP: u64 = 64 << 10;

/// Returns the settings under RocksDB's names: `config` and `MaxBytesForLevel` of LevelDB's source,
/// and the size of tables by `jobs`.
pub(crate) fn settings(jobs: &[Job]) -> Settings {
    // The last table of a compaction holds what is left.
    let full = jobs
        .iter()
        .filter(|job| job.is_compaction)
        .flat_map(|job| job.outputs.split_last().map_or(&[][..], |(_, full)| full));
    let mut sizes: Vec<u64> = full.map(|output| output.bytes).collect();
    sizes.sort_unstable();
    let median = sizes.get(sizes.len() / 2).map_or(TABLE_BYTES, |bytes| *bytes);
    let table = (median / TABLE_STEP * TABLE_STEP).max(TABLE_STEP);
    let named = [
        ("compaction_style", STYLE.to_owned()),
        ("level0_file_num_compaction_trigger", "4".to_owned()),
        ("max_bytes_for_level_base", (10 << 20).to_string()),
        ("max_bytes_for_level_multiplier", "10".to_owned()),
        ("target_file_size_base", table.to_string()),
    ];
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
