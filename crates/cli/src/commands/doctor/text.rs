//! A diagnosis as text.

use super::replay;
use super::words::{bytes, times};
use crate::table::{cost, percent, short, table};
use lsmith_doctor::{Diagnosis, FamilyCosts, Store, Written};

/// Returns whose files they are, and how many openings they tell of.
pub(super) fn opened(diagnosis: &Diagnosis) -> String {
    let version = diagnosis.version.as_deref().unwrap_or("of an unknown version");
    let opened = times(diagnosis.openings);
    match diagnosis.store {
        Store::RocksDb => format!("RocksDB {version}, opened {opened}."),
        store if diagnosis.openings > 0 => format!("{}, opened {opened}.", store.name()),
        store => format!("{}.", store.name()),
    }
}

/// Returns the lines of a diagnosis.
pub(super) fn shown(diagnosis: &Diagnosis) -> Vec<String> {
    let mut parts = vec![opened(diagnosis)];
    parts.extend(diagnosis.remarks.clone());
    if let Some(held) = diagnosis.stalled.filter(|held| held.seconds > 0.0) {
        let (seconds, percent) = (held.seconds, held.percent);
        parts.push(format!("Writers were held back for {seconds:.1} s, {percent} % of the time."));
    }
    for family in &diagnosis.families {
        parts.extend(of_family(family, diagnosis.store));
    }
    parts
}

/// Returns the lines of a column family. Tables are one line with breaks.
pub(super) fn of_family(family: &FamilyCosts, store: Store) -> Vec<String> {
    let of = match store {
        Store::RocksDb => format!("Column family {}", family.name),
        Store::LevelDb | Store::Pebble => "Compactions".to_owned(),
        Store::Cassandra => format!("Table {}", family.name),
    };
    let mut parts = vec![String::new(), format!("{of}: {}.", family.policy)];
    if let Some(spec) = &family.spec {
        parts.push(format!("The nearest policy of lsmith is {spec}."));
    }
    let without = &family.without_counterpart;
    parts.extend(without.iter().map(|setting| format!("Without a counterpart: {setting}.")));
    if let Some(write) = family.write_amplification {
        parts.push(format!(
            "{} flushes wrote {}, and {} compactions {}: {} bytes written per byte flushed.",
            family.flushes,
            bytes(family.flushed_bytes),
            family.compactions,
            bytes(family.compacted_bytes),
            cost(write)
        ));
        if family.raw_bytes > 0 {
            let raw = bytes(family.raw_bytes);
            parts.push(format!("What was flushed held {raw} of keys and values, uncompressed."));
        }
    } else {
        parts.push("The files tell of no flush.".to_owned());
    }
    if let Some(dropped) = family.dropped {
        let dropped = percent(Some(dropped)).trim_start_matches('+').to_owned();
        parts.push(format!("Compactions dropped {dropped} % of the entries that they read."));
    }
    for (cause, count) in &family.stalls {
        parts.push(format!("The LOG says {}: {cause}.", times(*count)));
    }
    if !family.levels.is_empty() {
        let rows = family.levels.iter().map(|level| {
            let name = format!("level {}", level.level);
            vec![name, level.files.to_string(), short(level.bytes as f64)]
        });
        parts.extend([String::new(), table(&["level now", "files", "bytes"], 1, rows.collect())]);
    }
    for (what, rows) in [("into", &family.by_level), ("because of", &family.by_reason)] {
        if !rows.is_empty() {
            parts.extend([String::new(), written(what, rows)]);
        }
    }
    parts.push(String::new());
    parts.extend(family.no_replay.clone());
    parts.extend(family.replay.iter().flat_map(replay::shown));
    parts
}

fn written(what: &str, rows: &[Written]) -> String {
    let rows = rows.iter().map(|row| {
        vec![
            row.what.clone(),
            row.compactions.to_string(),
            short(row.read_bytes as f64),
            short(row.written_bytes as f64),
        ]
    });
    table(&[what, "compactions", "bytes read", "bytes written"], 1, rows.collect())
}
