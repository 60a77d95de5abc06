//! Damaged append tables.

use super::{check_rest, lost_keys};
use crate::dice::Dice;
use crate::frame::contents::{Map, maps};
use crate::frame::small::small_at;
use lsmith::env::{Env, MemEnv};
use lsmith::inspect::{AppendFile, FileType, Root};
use lsmith::{FindingKind, Keyspace, PersistMode, RepairOptions, RepairReport, Store, repair};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const OLD: &str = "/old";
const NEW: &str = "/new";
const TREES: &str = "jungle(c=6, ratio=3, table=8kB)";

fn space_of(store: &Store) -> Keyspace {
    store.keyspace("default").unwrap()
}

/// Writes one of `keys` keys, or deletes it, or gives it an empty value.
fn write(space: &Keyspace, dice: &mut Dice, keys: usize) {
    let key = format!("{:03}{}", dice.below(keys), "-".repeat(60));
    match dice.below(10) {
        0 | 1 => space.delete(key).unwrap(),
        2 => space.put(key, "").unwrap(),
        _ => {
            let length = 1 + dice.below(50);
            let value = dice.bytes(length);
            space.put(key, value).unwrap();
        }
    }
}

/// A store whose entries are all in append tables. There is no log that still has them.
struct Grown {
    disk: MemEnv,
    expected: BTreeMap<String, Map>,
    history: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
}

impl Grown {
    fn new(keys: usize, writes: usize) -> Grown {
        let disk = MemEnv::new();
        let mut dice = Dice::new(3);
        let store = small_at(OLD, &disk).memtable_bytes(2000).policy(TREES).open().unwrap();
        let space = space_of(&store);
        let mut history = BTreeMap::<_, Vec<_>>::new();
        for _ in 0..writes {
            write(&space, &mut dice, keys);
            for (key, value) in space.iter().map(Result::unwrap) {
                let values = history.entry(key.to_vec()).or_default();
                if values.last() != Some(&value.to_vec()) {
                    values.push(value.to_vec());
                }
            }
        }
        store.flush().unwrap();
        store.settle().unwrap();
        drop((store, space));
        // Opening it again leaves the log behind.
        let store = small_at(OLD, &disk).memtable_bytes(2000).policy(TREES).open().unwrap();
        let expected = maps(&store);
        store.persist(PersistMode::SyncAll).unwrap();
        drop(store);
        let grown = Grown { disk, expected, history };
        let (report, new) = grown.repaired(&grown.disk);
        assert!(report.is_exact() && report.findings.is_empty(), "{report:#?}");
        assert!(maps(&new) == grown.expected);
        grown
    }

    /// Repairs a copy of `disk`, and returns the new store.
    fn repaired(&self, disk: &MemEnv) -> (RepairReport, Store) {
        let disk = disk.process_crash_clone();
        let env: Arc<dyn Env> = Arc::new(disk.clone());
        let options = RepairOptions { env, ..RepairOptions::default() };
        let report = repair(&options, OLD, NEW).unwrap();
        let store = small_at(NEW, &disk).memtable_bytes(2000).policy(TREES).open().unwrap();
        assert!(store.verify().unwrap().is_empty());
        (report, store)
    }

    /// Asserts that the new store has no entry that was never written.
    fn check_written(&self, new: &Store) {
        for (key, value) in maps(new).remove("default").unwrap() {
            assert!(self.history[&key].contains(&value), "{}", key.escape_ascii());
        }
    }

    fn tables(&self) -> Vec<PathBuf> {
        let names = self.disk.list(Path::new(OLD)).unwrap();
        let paths = names.into_iter().map(|name| Path::new(OLD).join(name));
        paths.filter(|path| FileType::of(path).is_some_and(|it| it.0 == FileType::Table)).collect()
    }

    fn tree(&self, path: &Path) -> AppendFile {
        assert!(AppendFile::is_append(&self.disk, path).unwrap());
        AppendFile::open(&self.disk, path).unwrap()
    }

    /// Returns the table with the most keys, and its newest root.
    fn largest(&self) -> (PathBuf, Root) {
        let roots = self.tables().into_iter().map(|path| {
            let last = self.tree(&path).roots().last().unwrap().clone();
            (path, last)
        });
        roots.max_by_key(|(_, root)| root.properties.as_ref().unwrap().keys).unwrap()
    }

    /// Repairs the store after a change of byte `at` of the file at `path`.
    fn flipped(&self, path: &Path, at: u64) -> (RepairReport, Store) {
        let disk = self.disk.process_crash_clone();
        disk.flip(path, at, 1 << (at % 8)).unwrap();
        self.repaired(&disk)
    }
}

#[test]
fn every_flipped_byte_of_a_tree_costs_nothing_or_is_told() {
    let grown = Grown::new(60, 400);
    let (mut lost, mut differing, mut bytes) = (0, 0, 0);
    for path in grown.tables() {
        for at in (0..grown.disk.file_bytes(&path).unwrap()).step_by(3) {
            let (report, new) = grown.flipped(&path, at);
            assert!(report.findings.iter().all(|finding| finding.path == path), "{report:#?}");
            for finding in lost_keys(&report) {
                assert!(finding.offset <= Some(at), "{finding}");
            }
            differing += check_rest(&report, &maps(&new), &grown.expected);
            grown.check_written(&new);
            lost += usize::from(!report.is_exact());
            bytes += 1;
        }
    }
    // Old nodes, old roots and dead values cost nothing. A damaged leaf costs few keys.
    assert!(lost > bytes / 5 && lost < bytes * 9 / 10, "{lost} of {bytes}");
    assert!(differing > lost && differing < lost * 20, "{differing} keys of {lost}");
}

#[test]
fn no_entry_of_a_tree_is_lost_with_filter_root_block_or_footer() {
    let grown = Grown::new(60, 400);
    let (path, root) = grown.largest();
    let places = [root.footer.filter.start, root.footer.properties.start, root.end - 70];
    for at in places
        .into_iter()
        .filter(|at| *at < root.footer.index.start || *at > root.footer.filter.end)
    {
        let (report, new) = grown.flipped(&path, at);
        assert!(report.is_exact() && !report.findings.is_empty(), "{report:#?}");
        assert!(maps(&new) == grown.expected, "{at}");
    }
}

#[test]
fn a_damaged_leaf_of_a_tree_costs_deletions_and_empty_values() {
    let grown = Grown::new(60, 400);
    let mut saved = 0;
    for path in grown.tables() {
        let parts: Vec<_> = grown.tree(&path).parts().collect();
        for part in parts {
            let (report, new) = grown.flipped(&path, part.place.start + 5);
            let [finding] = &lost_keys(&report)[..] else { panic!("{report:#?}") };
            let FindingKind::LostKeys { keys, older, logged } = &finding.kind else { panic!() };
            assert_eq!(finding.offset, Some(part.place.start));
            assert!(part.entries.iter().all(|entry| keys.contains(&entry.key)));
            let found = maps(&new);
            check_rest(&report, &found, &grown.expected);
            for (key, value) in &grown.expected["default"] {
                if !value.is_empty() {
                    assert_eq!(found["default"].get(key), Some(value), "{}", key.escape_ascii());
                }
            }
            saved += older + logged;
        }
    }
    assert!(saved > 30, "{saved}");
}

#[test]
fn a_damaged_data_block_of_a_tree_costs_its_values_alone() {
    let grown = Grown::new(60, 400);
    let (path, root) = grown.largest();
    let tree = grown.tree(&path);
    let keys: usize = tree.parts().map(|part| part.entries.len()).sum();
    // The last block in front of the filter is one of the newest batch.
    let at = root.footer.filter.start - 2;
    let (report, new) = grown.flipped(&path, at);
    let lost = lost_keys(&report);
    assert!(!lost.is_empty() && report.findings.len() == lost.len(), "{report:#?}");
    let differing = check_rest(&report, &maps(&new), &grown.expected);
    assert!(differing > 0 && differing < keys / 2, "{differing} of {keys} keys");
}

#[test]
fn cut_trees_show_what_is_left_of_them() {
    let grown = Grown::new(60, 400);
    for path in grown.tables() {
        let bytes = grown.disk.file_bytes(&path).unwrap();
        for left in (0..bytes).step_by(37) {
            let disk = grown.disk.process_crash_clone();
            disk.truncate(&path, left).unwrap();
            let (report, new) = grown.repaired(&disk);
            assert!(!lost_keys(&report).is_empty());
            check_rest(&report, &maps(&new), &grown.expected);
            grown.check_written(&new);
        }
        let disk = grown.disk.process_crash_clone();
        disk.remove_file(&path).unwrap();
        let (report, new) = grown.repaired(&disk);
        check_rest(&report, &maps(&new), &grown.expected);
    }
}

/// A merge that came to its end without the manifest, or half of one.
#[test]
fn what_lies_behind_a_named_root_does_not_count() {
    let grown = Grown::new(60, 400);
    for bytes in [1, 100, 5000] {
        let disk = grown.disk.process_crash_clone();
        for path in grown.tables() {
            let mut file = disk.append(&path, disk.file_bytes(&path).unwrap()).unwrap();
            file.write_all(&vec![7; bytes]).unwrap();
            file.sync().unwrap();
        }
        let (report, new) = grown.repaired(&disk);
        assert!(report.is_exact() && report.findings.is_empty(), "{report:#?}");
        assert!(maps(&new) == grown.expected);
    }
}

#[test]
fn without_a_manifest_the_last_roots_of_trees_count() {
    let grown = Grown::new(60, 400);
    let disk = grown.disk.process_crash_clone();
    for name in disk.list(Path::new(OLD)).unwrap() {
        if name == "CURRENT" || name.ends_with(".manifest") {
            disk.remove_file(&Path::new(OLD).join(name)).unwrap();
        }
    }
    let (report, new) = grown.repaired(&disk);
    assert!(report.keyspaces[0].order_guessed, "{report:#?}");
    assert!(lost_keys(&report).is_empty(), "{report:#?}");
    // Numbers decide which entry is newer, whatever the order of the files is. Only deletions whose
    // tombstones are gone may be undone, and there are none: old files are removed.
    assert!(maps(&new) == grown.expected);
    grown.check_written(&new);
    // If the last root is damaged, the ones before it and the data blocks count.
    let (path, root) = grown.largest();
    disk.truncate(&path, root.end - 10).unwrap();
    let (report, new) = grown.repaired(&disk);
    let lost = lost_keys(&report);
    assert!(lost.len() == 1 && lost[0].path == path, "{report:#?}");
    grown.check_written(&new);
}

#[test]
fn a_repaired_store_of_trees_goes_on() {
    let grown = Grown::new(60, 800);
    let (path, root) = grown.largest();
    let (_, new) = grown.flipped(&path, root.footer.index.end - 20);
    let space = space_of(&new);
    assert_eq!(space.merge_policy(), TREES);
    let mut dice = Dice::new(9);
    for _ in 0..800 {
        write(&space, &mut dice, 200);
    }
    new.settle().unwrap();
    assert!(new.verify().unwrap().is_empty());
    let tree = space.tree();
    let is_tree = tree.disk_runs().any(|run| run.slices().iter().any(|slice| slice.is_append()));
    assert!(is_tree, "{tree}");
    assert_eq!((new.stats().plans_failed, new.stats().plans_refused), (0, 0));
}

/// `verify` and the inspection of files tell where a node is damaged.
#[test]
fn a_damaged_node_is_told_with_path_and_offset() {
    let grown = Grown::new(60, 400);
    let (path, root) = grown.largest();
    let place = root.footer.index.start;
    for at in [place + 4, root.footer.filter.start - 2] {
        let disk = grown.disk.process_crash_clone();
        disk.flip(&path, at, 1).unwrap();
        let tree = AppendFile::open(&disk, &path).unwrap();
        let damage: Vec<_> = tree.parts().flat_map(|part| part.damage).collect();
        assert!(!damage.is_empty());
        let store = small_at(OLD, &disk).memtable_bytes(2000).policy(TREES).open().unwrap();
        let verified = store.verify().unwrap();
        let [error] = &verified[..] else { panic!("{verified:?}") };
        assert_eq!(error.path(), Some(&*path));
        assert_eq!(error.offset(), damage[0].offset());
        assert!(error.offset() <= Some(at) && (at < place || error.offset() == Some(place)));
        drop(store);
        let files = lsmith::inspect::damage(&disk, Path::new(OLD)).unwrap();
        assert!(files.iter().all(|error| error.path() == Some(&*path)) && !files.is_empty());
    }
}
