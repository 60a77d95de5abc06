//! Damaged logs and spills.

use super::{change, files, maps_in, paths, repaired, spaces};
use crate::dice::{Dice, with_seeds};
use crate::opening::formats::copies;
use lsmith::env::RealEnv;
use lsmith::inspect::{Content, FileType, LogFile};
use lsmith::{FindingKind, RepairReport, Store};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Makes a store of two keyspaces whose writes, each of its own key, are only in several logs.
fn store(dir: &Path, writes: u32) {
    let store = Store::builder(dir).log_bytes(64 << 10).open().unwrap();
    let spaces = ["left", "right"].map(|name| store.keyspace(name).unwrap());
    for number in 0..writes {
        spaces[number as usize % 2].put(number.to_be_bytes(), [7; 500]).unwrap();
    }
}

/// Returns the writes in the store in `dir`.
fn writes(dir: &Path) -> BTreeSet<u32> {
    let keys = maps_in(dir).into_values().flat_map(|map| map.into_keys());
    keys.map(|key| u32::from_be_bytes(key.try_into().unwrap())).collect()
}

/// Returns the bytes of logs that are reported as lost, and the number of writes.
fn lost(report: &RepairReport) -> (u64, u64) {
    report.findings.iter().fold((0, 0), |(all_bytes, all_writes), finding| match finding.kind {
        FindingKind::LostBatches { bytes, writes } => {
            (all_bytes + bytes, all_writes + writes.unwrap_or(0))
        }
        _ => panic!("{finding}"),
    })
}

#[test]
fn a_damaged_record_costs_its_batch() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path(), 300);
    let whole = files(dir.path());
    let logs = paths(dir.path(), FileType::Log);
    with_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let path = &logs[dice.below(2)];
        let log = LogFile::open(&RealEnv::new(), path).unwrap();
        let records: Vec<_> = log.records().collect();
        // Behind the start record, and not the last.
        let record = &records[1 + dice.below(records.len() - 2)];
        let at = record.offset as usize + dice.below(record.bytes as usize - 8);
        change(path, |bytes| bytes[at] ^= 1 << dice.below(8));
        let (report, new) = repaired(dir.path());
        let Content::Batch { writes: batch, .. } = record.content.as_ref().unwrap() else {
            panic!("of a log")
        };
        let key = u32::from_be_bytes(batch[0].entry.key[..].try_into().unwrap());
        let expected: BTreeSet<u32> = (0..300).filter(|number| *number != key).collect();
        assert_eq!(writes(new.path()), expected, "{report:#?}");
        assert_eq!(lost(&report), (record.bytes, 1));
        assert_eq!(report.findings[0].offset, Some(record.offset));
        fs::write(path, &whole[path]).unwrap();
    });
}

#[test]
fn a_missing_log_costs_its_batches() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path(), 300);
    for path in paths(dir.path(), FileType::Log) {
        let bytes = fs::read(&path).unwrap();
        let log = LogFile::open(&RealEnv::new(), &path).unwrap();
        let is_batch = |content: &Content| matches!(content, Content::Batch { .. });
        let batches = log.records().filter(|record| is_batch(record.content.as_ref().unwrap()));
        let records = batches.count() as u64;
        fs::remove_file(&path).unwrap();
        let (report, new) = repaired(dir.path());
        let saved = writes(new.path()).len() as u64;
        assert_eq!(saved + records, 300, "{report:#?}");
        // Nothing is behind the last one that could tell.
        assert!([0, records].contains(&lost(&report).1), "{report:#?}");
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_log_without_header_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    store(dir.path(), 300);
    let expected = spaces(dir.path());
    for path in paths(dir.path(), FileType::Log) {
        let bytes = fs::read(&path).unwrap();
        change(&path, |bytes| bytes[9] ^= 1);
        let (report, new) = repaired(dir.path());
        assert!(report.is_exact(), "{report:#?}");
        assert!(report.findings[0].path == path && spaces(new.path()) == expected);
        fs::write(&path, bytes).unwrap();
    }
}

/// A spill has the entries of memory from when its log was removed. Entries that are still
/// in a log or in tables are saved from there.
#[test]
fn a_damaged_spill_costs_what_was_in_it_alone() {
    let dirs = copies();
    let dir = dirs["killed"].path();
    let expected = maps_in(dir);
    let [path] = &paths(dir, FileType::Copy)[..] else { panic!("one copy") };
    let whole = fs::read(path).unwrap();
    for damage in [Some(300), None] {
        match damage {
            Some(at) => change(path, |bytes| bytes[at] ^= 1),
            None => fs::remove_file(path).unwrap(),
        }
        let (report, new) = repaired(dir);
        let finding = &report.findings[0];
        assert!(finding.message.contains("cannot be read") && finding.path == *path, "{report:#?}");
        let found = maps_in(new.path());
        assert_eq!(finding.keyspace.as_deref(), Some("lazy"));
        for space in ["busy", "quiet"] {
            assert!(found[space] == expected[space]);
        }
        let found = &found["lazy"];
        let expected = &expected["lazy"];
        let same = expected.iter().filter(|(key, value)| found.get(*key) == Some(value));
        let same = same.count();
        assert!((20..expected.len()).contains(&same), "{same} of {}", expected.len());
        fs::write(path, &whole).unwrap();
    }
}

#[test]
fn a_log_that_was_set_aside_is_told() {
    let dirs = copies();
    let dir = dirs["closed"].path();
    let log = fs::read(dir.join("000012.wal")).unwrap();
    fs::write(dir.join("000003.wal.lost"), &log).unwrap();
    let (report, new) = repaired(dir);
    let [finding] = &report.findings[..] else { panic!("{report:#?}") };
    assert_eq!(finding.kind, FindingKind::LeftOut { bytes: 65536 });
    assert!(finding.path.ends_with("000003.wal.lost") && report.is_exact());
    assert!(spaces(new.path()) == spaces(dir));
}
