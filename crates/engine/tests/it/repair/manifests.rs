//! Damaged manifests.

use super::{change, files, maps_in, paths, repaired, spaces};
use crate::dice::{Dice, with_seeds};
use crate::frame::contents::Map;
use crate::frame::small::open;
use crate::opening::formats::copies;
use lsmith::env::RealEnv;
use lsmith::inspect::{FileType, LogFile};
use lsmith::{FindingKind, KeyspaceOptions, RepairReport, Store};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn is_guessed(report: &RepairReport) -> bool {
    report.keyspaces.iter().any(|space| space.order_guessed)
}

#[test]
fn without_current_nothing_is_lost() {
    for (name, dir) in copies() {
        let expected = spaces(dir.path());
        let path = dir.path().join("CURRENT");
        change(&path, |bytes| bytes[40] ^= 1);
        let (report, new) = repaired(dir.path());
        assert_eq!(report.findings[0].path, path);
        assert!(spaces(new.path()) == expected && !is_guessed(&report), "{name}");
        fs::remove_file(path).unwrap();
        let (report, new) = repaired(dir.path());
        assert!(spaces(new.path()) == expected && !is_guessed(&report), "{name}");
        assert!(matches!(report.findings[1].kind, FindingKind::Guessed), "{report:#?}");
    }
}

/// Makes a store of two keyspaces in which each key was written once: whatever order of tables is
/// guessed, no value changes.
fn written_once(dir: &Path, policy: &str) -> BTreeMap<String, Map> {
    let builder = Store::builder(dir).lockstep(true).memtable_bytes(500).block_bytes(200);
    let store = builder.log_bytes(64 << 10).open().unwrap();
    for (name, policy) in [("a", "tiered(ratio=3)"), ("b", policy)] {
        let options = KeyspaceOptions {
            policy: Some(policy.into()),
            memtable_bytes: None,
            group: None,
            ..KeyspaceOptions::default()
        };
        let space = store.keyspace_with(name, &options).unwrap();
        for number in 0..200 {
            let key = format!("{name}-{:04}", number * 7919 % 1000);
            space.put(key, format!("value {number}")).unwrap();
        }
    }
    drop(store);
    maps_in(dir)
}

#[test]
fn a_damaged_record_of_the_manifest_costs_no_entry() {
    check_damaged_records("leveled(ratio=2, l0=1, table=1kB)");
}

#[test]
fn a_damaged_record_of_the_manifest_costs_no_entry_of_a_tree() {
    check_damaged_records("jungle(c=3, ratio=2, table=1kB)");
}

fn check_damaged_records(policy: &str) {
    let dir = tempfile::tempdir().unwrap();
    let expected = written_once(dir.path(), policy);
    let [path] = &paths(dir.path(), FileType::Manifest)[..] else { panic!("one manifest") };
    let whole = fs::read(path).unwrap();
    let log = LogFile::open(&RealEnv::new(), path).unwrap();
    let records: Vec<_> = log.records().collect();
    assert!(records.len() > 20, "{}", records.len());
    for record in &records {
        change(path, |bytes| bytes[record.offset as usize + 30] ^= 1);
        let (report, new) = repaired(dir.path());
        assert!(!report.is_exact(), "{report:#?}");
        let found = maps_in(new.path());
        let all = |maps: &BTreeMap<String, Map>| {
            let maps = maps.values().flatten();
            maps.map(|(key, value)| (key.clone(), value.clone())).collect::<Map>()
        };
        assert!(all(&found) == all(&expected), "{report:#?}");
        // Names go with the record that says them, and nothing else does.
        let lsmith::inspect::Content::Text(text) = record.content.as_ref().unwrap() else {
            panic!("text")
        };
        if !text.starts_with("keyspace") {
            assert!(found == expected, "{text}: {report:#?}");
        }
        fs::write(path, &whole).unwrap();
    }
}

/// Of a group, a lost record costs the name of one keyspace at most.
#[test]
fn a_damaged_record_of_a_group_costs_no_entry() {
    let dir = tempfile::tempdir().unwrap();
    let builder = Store::builder(dir.path()).lockstep(true).memtable_bytes(1000);
    let store = builder.policy("tiered(ratio=3)").open().unwrap();
    let group = KeyspaceOptions { group: Some("all".into()), ..KeyspaceOptions::default() };
    let spaces = ["a", "b", "c"].map(|name| store.keyspace_with(name, &group).unwrap());
    for number in 0..300 {
        let space = &spaces[number % 3];
        space.put(format!("{:04}", number * 7919 % 1000), format!("value {number}")).unwrap();
    }
    store.flush().unwrap();
    drop((spaces, store));
    let expected = maps_in(dir.path());
    assert_eq!(expected.len(), 3);
    let [path] = &paths(dir.path(), FileType::Manifest)[..] else { panic!("one manifest") };
    let whole = fs::read(path).unwrap();
    let log = LogFile::open(&RealEnv::new(), path).unwrap();
    let mut members = 0;
    for record in log.records() {
        change(path, |bytes| bytes[record.offset as usize + 20] ^= 1);
        let (report, new) = repaired(dir.path());
        assert!(!report.is_exact(), "{report:#?}");
        let lsmith::inspect::Content::Text(text) = record.content.as_ref().unwrap() else {
            panic!("text")
        };
        let mut expected = expected.clone();
        if let Some(lost) = text.trim_end().strip_prefix("member 0 ") {
            let (number, name) = lost.split_once(' ').unwrap();
            let map = expected.remove(name).unwrap();
            expected.insert(format!("keyspace-0-{number}"), map);
            members += 1;
        }
        assert!(maps_in(new.path()) == expected, "{text}: {report:#?}");
        fs::write(path, &whole).unwrap();
    }
    assert_eq!(members, 3);
}

/// Under merges that write keys again and again, nearly all values are right after one record of
/// the manifest is lost: later records say where tables are.
#[test]
fn the_order_of_tables_is_guessed_where_the_manifest_is_damaged() {
    with_seeds(1, |seed| {
        let mut dice = Dice::new(seed);
        let mut all = 0;
        let mut same = 0;
        for (name, dir) in copies() {
            let expected = maps_in(dir.path());
            let [path] = &paths(dir.path(), FileType::Manifest)[..] else { panic!("one manifest") };
            let whole = fs::read(path).unwrap();
            let records = LogFile::open(&RealEnv::new(), path).unwrap().records().count();
            for _ in 0..records.min(10) {
                let log = LogFile::open(&RealEnv::new(), path).unwrap();
                let record = log.records().nth(dice.below(records)).unwrap();
                change(path, |bytes| bytes[record.offset as usize + 20] ^= 1);
                let (report, new) = repaired(dir.path());
                assert!(!report.is_exact(), "{name} {report:#?}");
                let found = maps_in(new.path());
                for (name, map) in &expected {
                    let Some(found) = found.get(name) else { continue };
                    all += map.len();
                    same +=
                        map.iter().filter(|(key, value)| found.get(*key) == Some(value)).count();
                }
                fs::write(path, &whole).unwrap();
            }
        }
        assert!(same * 100 > all * 97, "{same} of {all} keys");
    });
}

#[test]
fn without_a_manifest_entries_are_there_and_the_guess_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::builder(dir.path()).lockstep(true).memtable_bytes(2000).policy("none");
    let (store, space) = open(store);
    for number in 0..300 {
        space.put(format!("{:03}", number % 200), format!("value {number}")).unwrap();
    }
    drop((store, space));
    let expected = maps_in(dir.path());
    for path in files(dir.path()).into_keys() {
        if path.ends_with("CURRENT") || path.extension() == Some("manifest".as_ref()) {
            fs::remove_file(path).unwrap();
        }
    }
    let (report, new) = repaired(dir.path());
    // Tables were flushed one after the other: newer ones have higher numbers.
    assert!(maps_in(new.path()) == expected, "{report:#?}");
    let [space] = &report.keyspaces[..] else { panic!("{report:#?}") };
    assert!(space.order_guessed && space.contested > 50 && space.entries == 200, "{space:?}");
}

/// A manifest ends in room for more records, which closing a store does not cut off. So the end of
/// a manifest that was cut is not one that power loss has torn, and what was behind it is missing.
#[test]
fn a_manifest_that_was_cut_is_not_taken_for_a_torn_one() {
    let dir = tempfile::tempdir().unwrap();
    let expected = written_once(dir.path(), "tiered(ratio=2)");
    let [path] = &paths(dir.path(), FileType::Manifest)[..] else { panic!("one manifest") };
    let whole = fs::read(path).unwrap();
    let log = LogFile::open(&RealEnv::new(), path).unwrap();
    let records: Vec<_> = log.records().map(|record| record.offset as usize).collect();
    for cut in records.iter().step_by(5).flat_map(|offset| [*offset, offset + 9]) {
        fs::write(path, &whole[..cut]).unwrap();
        let error = Store::builder(dir.path()).open().unwrap_err();
        assert_eq!(error.kind(), lsmith::ErrorKind::Corruption, "{error}");
        let (report, new) = repaired(dir.path());
        assert!(!report.is_exact(), "cut at {cut}: {report:#?}");
        let saved = maps_in(new.path());
        let is_saved = |entry: &(&Vec<u8>, &Vec<u8>)| {
            saved.values().any(|map| map.get(entry.0) == Some(entry.1))
        };
        assert!(expected.values().flatten().all(|entry| is_saved(&entry)), "cut at {cut}");
    }
}
