//! What a store cost so far, by the account of its own files.

use crate::{Case, Family, Replay, Stalled, Store, Watch, translate};
use serde::Serialize;
use std::collections::BTreeMap;

/// What the files of a store say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Whose files they are.
    pub store: Store,
    /// The version of RocksDB that wrote last; LevelDB does not say it.
    pub version: Option<String>,
    /// How many openings of the store the LOG has.
    pub openings: u64,
    /// How long writers were held back, by the last statistics in the LOG.
    pub stalled: Option<Stalled>,
    /// The column families.
    pub families: Vec<FamilyCosts>,
    /// What the reader should know of the files.
    pub remarks: Vec<String>,
}

/// What a column family cost. All bytes are bytes of files, after compression.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FamilyCosts {
    /// The name of the column family.
    pub name: String,
    /// Its compaction style with its main settings, in RocksDB's words.
    pub policy: String,
    /// The nearest policy of lsmith.
    pub spec: Option<String>,
    /// Settings without a counterpart.
    pub without_counterpart: Vec<String>,
    /// The tree now, by level, from the MANIFEST.
    pub levels: Vec<LevelNow>,
    /// Flushes.
    pub flushes: u64,
    /// Bytes of the tables that flushes wrote.
    pub flushed_bytes: u64,
    /// Entries that flushes wrote.
    pub flushed_entries: u64,
    /// Bytes of the keys and values that flushes wrote, before compression; 0 for LevelDB, which
    /// does not say it.
    pub raw_bytes: u64,
    /// Compactions that ended.
    pub compactions: u64,
    /// Bytes of the tables that compactions wrote.
    pub compacted_bytes: u64,
    /// Bytes that compactions read.
    pub read_bytes: u64,
    /// Bytes of flushes and compactions over bytes of flushes: `W-Amp` in the row `Sum` of
    /// RocksDB's statistics, if nothing was ingested.
    pub write_amplification: Option<f64>,
    /// Entries that compactions dropped, over entries that they read.
    pub dropped: Option<f64>,
    /// What compactions wrote, by output level.
    pub by_level: Vec<Written>,
    /// What compactions wrote, by RocksDB's reason.
    pub by_reason: Vec<Written>,
    /// How often a line of the LOG says that writes were slowed down or stopped, by its words.
    pub stalls: BTreeMap<String, u64>,
    /// What other settings would have cost; see [`Diagnosis::with_replays`].
    pub replay: Option<Replay>,
    /// Why there is no replay.
    pub no_replay: Option<String>,
}

/// A level of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LevelNow {
    /// The level.
    pub level: u32,
    /// Its tables.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Compactions of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    /// What they have in common.
    pub what: String,
    /// Compactions.
    pub compactions: u64,
    /// Bytes that they read.
    pub read_bytes: u64,
    /// Bytes that they wrote.
    pub written_bytes: u64,
}

impl Diagnosis {
    /// Counts what `case` says.
    #[must_use]
    pub fn of(case: &Case) -> Diagnosis {
        Diagnosis {
            store: case.store,
            version: case.version.clone(),
            openings: case.log.openings,
            stalled: case.log.stalled,
            families: case.families.iter().map(|family| costs(case, family)).collect(),
            remarks: case.remarks.clone(),
        }
    }

    /// Returns the same with a [`Replay`] of each column family, which takes a second or two.
    /// `case` must be the same too.
    #[must_use]
    pub fn with_replays(self, case: &Case) -> Diagnosis {
        self.with_watched_replays(case, &mut ())
    }

    /// Returns the same with replays, and tells `watch` of them while they run.
    #[must_use]
    pub fn with_watched_replays(mut self, case: &Case, watch: &mut dyn Watch) -> Diagnosis {
        for (costs, family) in self.families.iter_mut().zip(&case.families) {
            match Replay::watched(case, family, watch) {
                Ok(replay) => costs.replay = Some(replay),
                Err(reason) => costs.no_replay = Some(reason),
            }
        }
        self
    }
}

fn costs(case: &Case, family: &Family) -> FamilyCosts {
    let translated = translate(family);
    let mut levels: BTreeMap<u32, LevelNow> = BTreeMap::new();
    for file in &family.files {
        let level =
            levels.entry(file.level).or_insert(LevelNow { level: file.level, files: 0, bytes: 0 });
        level.files += 1;
        level.bytes += file.bytes;
    }
    let outputs = || family.flushes().flat_map(|job| &job.outputs);
    let flushed_bytes: u64 = outputs().map(|output| output.bytes).sum();
    let compacted_bytes: u64 = family.compactions().map(|job| job.output_bytes()).sum();
    let read: u64 = family.compactions().map(|job| job.records.0).sum();
    let kept: u64 = family.compactions().map(|job| job.records.1).sum();
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let stalls = case.log.stalls.iter().filter(|((name, _), _)| *name == family.name);
    FamilyCosts {
        name: family.name.clone(),
        policy: translated.words,
        spec: translated.spec.map(|spec| spec.to_string()),
        without_counterpart: translated.without,
        levels: levels.into_values().collect(),
        flushes: family.flushes().count() as u64,
        flushed_bytes,
        flushed_entries: outputs().map(|output| output.entries).sum(),
        raw_bytes: outputs().map(|output| output.raw_bytes.0 + output.raw_bytes.1).sum(),
        compactions: family.compactions().count() as u64,
        compacted_bytes,
        read_bytes: family.compactions().map(|job| job.input_bytes).sum(),
        write_amplification: share(flushed_bytes + compacted_bytes, flushed_bytes),
        dropped: share(read.saturating_sub(kept), read),
        by_level: written(family, |job| format!("level {}", job.output_level)),
        by_reason: written(family, |job| match job.reason.as_str() {
            "" => "unknown".to_owned(),
            reason => reason.to_owned(),
        }),
        stalls: stalls.map(|((_, cause), count)| (cause.clone(), *count)).collect(),
        replay: None,
        no_replay: None,
    }
}

/// Returns the compactions by what `name` says of each.
fn written(family: &Family, name: impl Fn(&crate::Job) -> String) -> Vec<Written> {
    let mut rows: BTreeMap<String, Written> = BTreeMap::new();
    for job in family.compactions() {
        let what = name(job);
        let row = rows.entry(what.clone()).or_insert(Written {
            what,
            compactions: 0,
            read_bytes: 0,
            written_bytes: 0,
        });
        row.compactions += 1;
        row.read_bytes += job.input_bytes;
        row.written_bytes += job.output_bytes();
    }
    rows.into_values().collect()
}
