//! What is peculiar to Pebble: the names of its settings, the lines of its log, and how it picks
//! compactions.
//!
//! Its MANIFEST has the form of RocksDB's, and the same lines of reading fit both. A marker, a file
//! whose name ends with the name of the MANIFEST, stands in for CURRENT.

mod lines;
mod picker;

pub(crate) use lines::read;
pub(crate) use picker::Picker;

use crate::leveldb;
use crate::log::Job;
use crate::manifest::{Edit, File};
use crate::options::Settings;
use std::collections::BTreeMap;

/// The compaction style of Pebble in [`Settings`].
pub(crate) const STYLE: &str = "Pebble";

/// The reason of compactions that follow from the sizes of levels.
pub(crate) const REASON: &str = "default";

/// The levels of a store.
const LEVELS: usize = 7;

/// The start of the name of a marker. The number of the change and the name of the MANIFEST follow.
const MARKER: &str = "marker.manifest.";

/// Returns the change that a marker named `name` is of, and the MANIFEST that it names.
pub(crate) fn marked(name: &str) -> Option<(u64, &str)> {
    let (change, manifest) = name.strip_prefix(MARKER)?.split_once('.')?;
    Some((change.parse().ok()?, manifest))
}

/// Returns the settings under RocksDB's names, from `raw`, which has them under Pebble's. What a
/// file OPTIONS leaves out has its default, by `Options.EnsureDefaults` of Pebble's source.
pub(crate) fn settings(raw: &Settings) -> Settings {
    let of = |name: &str| raw.get(name).and_then(|value| value.parse::<u64>().ok());
    // A compaction starts once the depth of level 0, doubled, has reached the threshold.
    let sublevels = of("l0_compaction_threshold").unwrap_or(4).max(1).div_ceil(2);
    let base = of("lbase_max_bytes").unwrap_or(64 << 20);
    let mut settings = BTreeMap::from([
        ("compaction_style".to_owned(), STYLE.to_owned()),
        ("level0_file_num_compaction_trigger".to_owned(), sublevels.to_string()),
        ("max_bytes_for_level_base".to_owned(), base.to_string()),
        (
            "max_bytes_for_level_multiplier".to_owned(),
            of("level_multiplier").unwrap_or(10).to_string(),
        ),
    ]);
    for (level, bytes) in table_bytes(raw).into_iter().enumerate() {
        settings.insert(format!("target_file_size.{level}"), bytes.to_string());
        if level == 1 {
            settings.insert("target_file_size_base".to_owned(), bytes.to_string());
        }
    }
    settings
}

/// Returns the size of tables by level, where 1 is the level that takes level 0. A level that is
/// not listed has twice the size of the one above it.
pub(crate) fn table_bytes(settings: &Settings) -> [u64; LEVELS] {
    let mut sizes: [u64; LEVELS] = [2 << 20; LEVELS];
    for level in 0..LEVELS {
        let above = level.checked_sub(1).map_or(1 << 20, |above| sizes[above]);
        let named = settings.get(&format!("target_file_size.{level}"));
        let named = named.and_then(|value| value.parse().ok()).filter(|bytes| *bytes > 0);
        sizes[level] = named.unwrap_or_else(|| above.saturating_mul(2));
    }
    sizes
}

/// Completes the jobs that a log says by the edits of the MANIFEST, which have exact bytes, or
/// takes them from there if it has more of them. Returns how many tables have entries that follow
/// from their bytes.
pub(crate) fn complete(jobs: &mut Vec<Job>, added: &[File], edits: &[Edit]) -> u64 {
    let bytes: BTreeMap<u64, u64> = added.iter().map(|file| (file.number, file.bytes)).collect();
    for output in jobs.iter_mut().flat_map(|job| &mut job.outputs) {
        output.bytes = bytes.get(&output.number).copied().unwrap_or(output.bytes);
    }
    let has_log = leveldb::jobs_of(edits).len() <= jobs.len();
    let said: Vec<u64> = jobs.iter().map(|job| job.input_bytes).collect();
    let estimated = leveldb::complete(jobs, added, edits, has_log);
    if has_log {
        // A log alone may begin behind the tables that its compactions read.
        for (job, said) in jobs.iter_mut().zip(said) {
            let is_whole = job.input_bytes >= said / 10 * 9;
            job.input_bytes = if is_whole { job.input_bytes } else { said };
        }
    }
    for job in jobs.iter_mut().filter(|job| job.reason == leveldb::REASON) {
        job.reason = REASON.to_owned();
    }
    estimated
}
