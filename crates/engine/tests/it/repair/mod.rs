//! Repairs.
//!
//! Promised: a store without damage is copied completely. Of a damaged store everything readable is
//! saved: a damaged block of a table costs keys within a reported range, a damaged record of a log
//! costs its batch, and nothing else changes. Without `CURRENT` nothing is lost. Without a manifest
//! all entries are there, and the report says that their order was guessed. The old store is not
//! changed.

mod logs;
mod manifests;
mod random;
mod trees;
mod whole;

use crate::dice::{Dice, with_seeds};
use crate::frame::contents::{Map, contents, maps};
use crate::opening::formats::copies;
use lsmith::env::RealEnv;
use lsmith::inspect::{FileType, TableFile};
use lsmith::{
    ErrorKind, Finding, FindingKind, KeyspaceOptions, PersistMode, RepairOptions, RepairReport,
    Store, repair,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// A keyspace: policy, codecs, bytes of a memtable, content.
type Space = (String, String, u64, Map);

/// Returns names and contents of the files in `dir` except the lock and the folder of readers.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| !path.ends_with("LOCK") && !path.ends_with("readers"));
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn paths(dir: &Path, file_type: FileType) -> Vec<PathBuf> {
    let is_of = |path: &PathBuf| FileType::of(path).is_some_and(|(found, _)| found == file_type);
    files(dir).into_keys().filter(is_of).collect()
}

/// Returns all keyspaces of the store in `dir`, and asserts that it has no damage.
fn spaces(dir: &Path) -> BTreeMap<String, Space> {
    let store = Store::builder(dir).read_only(true).open().unwrap();
    assert_eq!(store.verify().unwrap().len(), 0);
    let space = |name: String| {
        let space = store.existing_keyspace(&name).unwrap();
        let stats = space.stats();
        (name, (stats.policy, stats.compression, stats.memtable_bytes, contents(&space)))
    };
    store.keyspaces().into_iter().map(space).collect()
}

fn maps_in(dir: &Path) -> BTreeMap<String, Map> {
    maps(&Store::builder(dir).read_only(true).open().unwrap())
}

/// Repairs the store in `dir`, asserts that it did not change, and returns the new store.
fn repaired(dir: &Path) -> (RepairReport, tempfile::TempDir) {
    let before = files(dir);
    let new = tempfile::tempdir().unwrap();
    let report = repair(&RepairOptions::default(), dir, new.path()).unwrap();
    assert!(files(dir) == before, "the old store has changed");
    (report, new)
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn lost_keys(report: &RepairReport) -> Vec<&Finding> {
    let is_lost = |finding: &&Finding| matches!(finding.kind, FindingKind::LostKeys { .. });
    report.findings.iter().filter(is_lost).collect()
}

/// Asserts that `found` differs from `expected` only where `report` says that keys are lost.
/// Returns the number of keys that differ.
fn check_rest(
    report: &RepairReport,
    found: &BTreeMap<String, Map>,
    expected: &BTreeMap<String, Map>,
) -> usize {
    assert!(found.keys().eq(expected.keys()));
    let mut differing = 0;
    for (name, expected) in expected {
        let found = &found[name];
        let is_lost = |key: &[u8]| {
            lost_keys(report).iter().any(|finding| {
                let FindingKind::LostKeys { keys, .. } = &finding.kind else { unreachable!() };
                finding.keyspace.as_ref() == Some(name) && keys.contains(key)
            })
        };
        for key in expected.keys().chain(found.keys()) {
            if expected.get(key) != found.get(key) {
                assert!(is_lost(key), "{name} {}: {report:#?}", key.escape_ascii());
                differing += 1;
            }
        }
        let saved = report.keyspaces.iter().find(|space| space.name == *name).unwrap();
        assert_eq!(saved.entries, found.len() as u64);
    }
    differing
}

#[test]
fn a_whole_store_is_copied() {
    for (name, dir) in copies() {
        let (report, new) = repaired(dir.path());
        assert!(report.is_exact(), "{name}: {report:#?}");
        let left_out = report.findings.iter().map(|finding| &finding.kind).collect::<Vec<_>>();
        match &name[..] {
            "power_lost" => {
                assert!(
                    matches!(left_out[..], [FindingKind::LeftOut { bytes: 7504 }]),
                    "{report:?}"
                );
            }
            _ => assert!(left_out.is_empty(), "{report:?}"),
        }
        assert!(spaces(new.path()) == spaces(dir.path()), "{name}");
        // It is a store like any other.
        let store = Store::builder(new.path()).open().unwrap();
        for name in store.keyspaces() {
            store.existing_keyspace(&name).unwrap().put("new", "value").unwrap();
        }
        store.flush().unwrap();
    }
}

#[test]
fn a_damaged_block_costs_keys_that_are_told() {
    let stores = copies();
    let expected: BTreeMap<_, _> =
        stores.iter().map(|(name, dir)| (name, maps_in(dir.path()))).collect();
    with_seeds(1, |seed| {
        let mut dice = Dice::new(seed);
        let mut lost = 0;
        let mut differing = 0;
        for (name, dir) in &stores {
            for path in paths(dir.path(), FileType::Table) {
                let whole = fs::read(&path).unwrap();
                let at = dice.below(whole.len());
                change(&path, |bytes| bytes[at] ^= 1 << dice.below(8));
                let (report, new) = repaired(dir.path());
                differing += check_rest(&report, &maps_in(new.path()), &expected[name]);
                for finding in lost_keys(&report) {
                    assert_eq!(finding.path, path);
                    assert!(finding.offset <= Some(at as u64), "{finding}");
                    lost += 1;
                }
                fs::write(&path, whole).unwrap();
            }
        }
        assert!(lost > 10 && differing > 10, "{lost} blocks, {differing} keys");
    });
}

#[test]
fn a_missing_or_cut_table_costs_what_was_in_it() {
    for (name, dir) in copies() {
        let expected = maps_in(dir.path());
        for path in paths(dir.path(), FileType::Table) {
            let whole = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            let (report, new) = repaired(dir.path());
            let lost = check_rest(&report, &maps_in(new.path()), &expected);
            assert!(!lost_keys(&report).is_empty(), "{name}");
            // The end with index and footer is gone, and half of the blocks.
            fs::write(&path, &whole[..whole.len() / 2]).unwrap();
            let (report, new) = repaired(dir.path());
            let less = check_rest(&report, &maps_in(new.path()), &expected);
            assert!(less <= lost, "{name}: {less} of {lost} keys");
            fs::write(&path, whole).unwrap();
        }
    }
}

#[test]
fn no_block_is_lost_with_index_filter_properties_or_footer() {
    let mut dirs = copies();
    // Append tables have nodes in place of an index: `trees.rs`.
    dirs.remove("trees");
    for (name, dir) in dirs {
        let expected = spaces(dir.path());
        for path in paths(dir.path(), FileType::Table) {
            let whole = fs::read(&path).unwrap();
            let footer = TableFile::open(&RealEnv::new(), &path).unwrap().footer().unwrap();
            let data = footer.filter.start as usize;
            for at in [footer.filter.start, footer.index.start, footer.properties.start] {
                change(&path, |bytes| bytes[at as usize + 2] ^= 1);
                let (report, new) = repaired(dir.path());
                assert!(report.is_exact(), "{name}: {report:#?}");
                assert!(report.findings.iter().any(|finding| finding.path == path));
                assert!(spaces(new.path()) == expected, "{name}");
                fs::write(&path, &whole).unwrap();
            }
            // All of that at once.
            fs::write(&path, &whole[..data]).unwrap();
            let (report, new) = repaired(dir.path());
            assert_eq!(
                check_rest(&report, &maps_in(new.path()), &maps_in(dir_of(&path, &whole))),
                0
            );
            fs::write(&path, &whole).unwrap();
        }
    }
}

/// Restores the table at `path`, and returns its directory.
fn dir_of<'a>(path: &'a Path, whole: &[u8]) -> &'a Path {
    fs::write(path, whole).unwrap();
    path.parent().unwrap()
}

/// Makes a store of runs that are not merged, and a second keyspace with a large memtable that
/// keeps the log alive.
fn runs(dir: &Path, rounds: usize) {
    let store = Store::builder(dir).lockstep(true).memtable_bytes(1 << 20).open().unwrap();
    let options = KeyspaceOptions {
        policy: Some("none".into()),
        memtable_bytes: None,
        group: None,
        ..KeyspaceOptions::default()
    };
    let space = store.keyspace_with("runs", &options).unwrap();
    let quiet = store.keyspace("quiet").unwrap();
    for round in 0..rounds {
        for number in 0..20 {
            space.put(format!("key-{number:02}"), format!("value {round}")).unwrap();
        }
        space.flush().unwrap();
    }
    quiet.put("kept", "in the log").unwrap();
    store.persist(PersistMode::SyncAll).unwrap();
}

#[test]
fn older_versions_beneath_what_is_lost_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    runs(dir.path(), 2);
    let tables = paths(dir.path(), FileType::Table);
    change(&tables[1], |bytes| bytes[5] ^= 1);
    // The log is needed for the other keyspace, and begins with the first write.
    for path in paths(dir.path(), FileType::Log) {
        fs::remove_file(path).unwrap();
    }
    let (report, new) = repaired(dir.path());
    let [finding] = &lost_keys(&report)[..] else { panic!("{report:#?}") };
    let FindingKind::LostKeys { older, logged, .. } = finding.kind else { unreachable!() };
    assert_eq!((older, logged, finding.offset), (20, 0, Some(0)));
    assert!(maps_in(new.path())["runs"].values().all(|value| value == b"value 0"));
}

#[test]
fn what_the_log_still_has_of_a_damaged_block_is_saved_from_it() {
    let dir = tempfile::tempdir().unwrap();
    runs(dir.path(), 2);
    let expected = maps_in(dir.path());
    let tables = paths(dir.path(), FileType::Table);
    change(&tables[1], |bytes| bytes[5] ^= 1);
    let (report, new) = repaired(dir.path());
    let [finding] = &lost_keys(&report)[..] else { panic!("{report:#?}") };
    let FindingKind::LostKeys { older, logged, .. } = finding.kind else { unreachable!() };
    assert_eq!((older, logged), (0, 20));
    assert!(maps_in(new.path()) == expected);
    assert!(!report.is_exact(), "something may be missing");
    // Also where the table is gone.
    fs::remove_file(&tables[1]).unwrap();
    let (_, new) = repaired(dir.path());
    assert!(maps_in(new.path()) == expected);
}

#[test]
fn what_cannot_be_repaired_is_refused() {
    let dirs = copies();
    let dir = dirs["closed"].path();
    let options = RepairOptions::default();
    let other = tempfile::tempdir().unwrap();
    let kind = |from: &Path, to: &Path| repair(&options, from, to).unwrap_err().kind();
    assert_eq!(kind(&other.path().join("none"), &other.path().join("new")), ErrorKind::NotFound);
    assert_eq!(kind(other.path(), &other.path().join("new")), ErrorKind::InvalidArgument);
    assert_eq!(kind(dir, dir), ErrorKind::InvalidArgument);
    assert_eq!(kind(dir, dirs["killed"].path()), ErrorKind::InvalidArgument);
    let store = Store::builder(dir).open().unwrap();
    assert_eq!(kind(dir, other.path()), ErrorKind::Locked);
    drop(store);
    // Of another format is only what says so with the right checksum.
    let text = "lsmith store, format 7\nmanifest 11\n";
    let text = format!("{text}checksum {:016x}\n", xxh3_64(text.as_bytes()));
    fs::write(dir.join("CURRENT"), text).unwrap();
    assert_eq!(kind(dir, other.path()), ErrorKind::Unsupported);
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0);
}
