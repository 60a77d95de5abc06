//! Keyspaces whose tables are append tables.
//!
//! Promised: what a batch appends is there when the store is opened again, since the manifest names
//! the root. Older roots serve older readers, and the file stays as long as one of its roots is
//! read. A store may go over to such tables and back.

use crate::dice::{Dice, with_seeds};
use crate::frame::contents::{self, Map, contents, pair};
use crate::frame::small::{open, plain, small};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, Loss, MemEnv, OpClass};
use lsmith::{Builder, ErrorKind, Keyspace, PersistMode};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Each batch replaces all nodes of so small a tree, so that a few batches fit under `c`.
const TREES: &str = "jungle(c=4, ratio=2, table=400B)";

fn tiny(env: &(impl Env + Clone), policy: &str) -> Builder {
    small(env).memtable_bytes(300).policy(policy)
}

/// Writes or deletes one of 200 keys.
fn write(space: &Keyspace, map: &mut Map, dice: &mut Dice) {
    let key = format!("{:03}", dice.below(200)).into_bytes();
    let length = dice.below(30);
    let value = (!dice.chance(20)).then(|| dice.bytes(length));
    contents::write(space, map, key, value);
}

/// Returns the numbers of slices of append tables and of sorted tables.
fn kinds(space: &Keyspace) -> (usize, usize) {
    let tree = space.tree();
    let slices: Vec<bool> = tree
        .disk_runs()
        .flat_map(|run| run.slices().iter().map(|slice| slice.table().root > 0))
        .collect();
    let trees = slices.iter().filter(|is_tree| **is_tree).count();
    (trees, slices.len() - trees)
}

/// Returns what is known of each append table: its root, dead bytes, and when it was begun.
fn described(space: &Keyspace) -> Vec<String> {
    let tree = space.tree();
    let slices = tree.disk_runs().flat_map(|run| run.slices().iter().collect::<Vec<_>>());
    slices.map(|slice| slice.to_string()).collect()
}

fn table_files(env: &MemEnv) -> Vec<String> {
    let names = env.list(Path::new("/store")).unwrap();
    names.into_iter().filter(|name| name.ends_with(".table")).collect()
}

/// What broke: the manifest kept the root that it knew of a table, and the next opening of the
/// store had lost what was appended since.
#[test]
fn appended_entries_are_there_after_each_reopening() {
    with_seeds(10, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let mut map = Map::new();
        let mut before = Vec::new();
        for _ in 0..30 {
            let (store, space) = open(tiny(&env, TREES));
            assert_eq!(contents(&space), map);
            assert_eq!(described(&space), before);
            for _ in 0..dice.below(100) {
                write(&space, &mut map, &mut dice);
            }
            assert_eq!(contents(&space), map);
            let damage = store.verify().unwrap();
            assert!(damage.is_empty(), "{damage:?}");
            before = described(&space);
        }
        assert!(before.iter().any(|tree| tree.contains(" born ")), "{before:?}");
        let (_store, space) = open(tiny(&env, TREES));
        let (trees, sorted) = kinds(&space);
        assert!(trees > 5 && sorted == 0, "{}", space.tree());
        appended(&space);
    });
}

#[test]
fn a_file_stays_as_long_as_a_root_is_read() {
    let env = MemEnv::new();
    let mut dice = Dice::new(1);
    let mut map = Map::new();
    let (store, space) = open(tiny(&env, TREES));
    for _ in 0..300 {
        write(&space, &mut map, &mut dice);
    }
    let before = map.clone();
    let old_files = table_files(&env);
    let snapshot = store.snapshot();
    let mut reader = space.iter();
    let first: Vec<_> = reader.by_ref().take(3).map(pair).collect();
    for _ in 0..3000 {
        write(&space, &mut map, &mut dice);
    }
    let gone = |files: &[String]| old_files.iter().filter(|name| !files.contains(name)).count();
    assert_eq!(gone(&table_files(&env)), 0, "the reader needs its roots");
    let read: Map = first.into_iter().chain(reader.map(pair)).collect();
    assert_eq!(read, before);
    assert_eq!(snapshot.range::<&[u8]>(&space, ..).map(pair).collect::<Map>(), before);
    drop(snapshot);
    for _ in 0..3000 {
        write(&space, &mut map, &mut dice);
    }
    store.settle().unwrap();
    assert!(gone(&table_files(&env)) > 0, "{old_files:?}");
    let (trees, sorted) = kinds(&space);
    assert_eq!(table_files(&env).len(), trees + sorted, "{}", space.tree());
    assert_eq!(contents(&space), map);
}

#[test]
fn a_store_goes_over_to_trees_and_back() {
    with_seeds(5, |seed| {
        let env = MemEnv::new();
        let mut dice = Dice::new(seed);
        let mut map = Map::new();
        let leveled = "leveled(ratio=2, l0=1, table=400B)";
        for policy in [leveled, TREES, leveled, "minlatency(k=3)", TREES, "choose_best", leveled] {
            let (store, space) = open(tiny(&env, "none"));
            space.set_merge_policy(policy).unwrap();
            for _ in 0..600 {
                write(&space, &mut map, &mut dice);
            }
            store.settle().unwrap();
            assert_eq!(contents(&space), map, "{policy}");
            assert!(store.verify().unwrap().is_empty());
            let (trees, _) = kinds(&space);
            assert!(policy != TREES || trees > 0, "{}", space.tree());
            let stats = store.stats();
            assert_eq!((stats.plans_failed, stats.plans_refused), (0, 0), "{policy}");
        }
        let (_store, space) = open(tiny(&env, "none"));
        space.merge().unwrap();
        assert_eq!(kinds(&space).0, 0, "{}", space.tree());
        assert_eq!(contents(&space), map);
    });
}

/// Returns the names and roots of the tables on storage: append tables, or sorted ones.
fn tables(space: &Keyspace, are_trees: bool) -> BTreeSet<(u64, u64)> {
    let tree = space.tree();
    let tables: Vec<(u64, u64)> = tree
        .disk_runs()
        .flat_map(|run| run.slices().iter().map(|slice| (slice.table().id.0, slice.table().root)))
        .collect();
    tables.into_iter().filter(|(_, root)| (*root > 0) == are_trees).collect()
}

/// Writes until `writes` are done or one fails, which is returned: it may have taken effect.
fn write_until_failed(
    space: &Keyspace,
    map: &mut Map,
    dice: &mut Dice,
    writes: usize,
) -> Option<(Vec<u8>, Vec<u8>)> {
    for _ in 0..writes {
        let key = format!("{:03}", dice.below(200)).into_bytes();
        let length = dice.below(30);
        let value = dice.bytes(length);
        if space.put(&key, &value).is_err() {
            return Some((key, value));
        }
        map.insert(key, value);
    }
    None
}

/// A store that is open goes over to trees and back, again and again. The disk fails somewhere on
/// the way, and then the process dies or power is lost. Merges write tables of the new kind only,
/// and no table is rewritten that is not merged.
#[test]
fn a_live_store_goes_over_to_trees_and_back_through_crashes() {
    const LEVELED: &str = "leveled(ratio=2, l0=1, table=400B)";
    let mixed = AtomicUsize::new(0);
    with_seeds(30, |seed| {
        let mut disk = MemEnv::new();
        let mut dice = Dice::new(seed);
        let mut map = Map::new();
        for turn in 0..12 {
            let env = FaultEnv::over(disk.clone());
            // What is acknowledged is synced.
            let store = plain(&env).lockstep(true);
            let store = store.policy(LEVELED).memtable_bytes(300).log_bytes(64 << 10);
            let (store, space) = open(store.persist(PersistMode::SyncData));
            assert_eq!(contents(&space), map, "turn {turn}");
            assert!(store.verify().unwrap().is_empty(), "turn {turn}");
            let to_trees = turn % 2 == 0;
            let others = tables(&space, !to_trees);
            space.set_merge_policy(if to_trees { TREES } else { LEVELED }).unwrap();
            let after = dice.below(3000) as u64;
            let kind = std::io::ErrorKind::Other;
            env.set(Fault { class: None, after, lasting: Lasting::Forever, kind });
            let unsure = write_until_failed(&space, &mut map, &mut dice, 300);
            let left = tables(&space, !to_trees);
            assert!(left.is_subset(&others), "{left:?} of {others:?}: {}", space.tree());
            let both = !left.is_empty() && !tables(&space, to_trees).is_empty();
            mixed.fetch_add(usize::from(both), Ordering::Relaxed);
            drop((store, space));
            disk = match dice.below(2) {
                0 => disk.process_crash_clone(),
                _ => disk.power_loss(dice.number(), *dice.pick(&Loss::ALL)),
            };
            let found = contents(&open(tiny(&disk, "none")).1);
            if let Some((key, value)) = unsure.filter(|_| found != map) {
                map.insert(key, value);
            }
            assert_eq!(found, map, "turn {turn}");
        }
        let (_store, space) = open(tiny(&disk, "none"));
        space.merge().unwrap();
        assert_eq!((kinds(&space), contents(&space)), ((0, 1), map), "{}", space.tree());
    });
    // Crashes came while tables of both kinds were there.
    let mixed = mixed.into_inner();
    assert!(mixed > 50, "{mixed}");
}

/// Returns the file of a table that had several batches, and its newest root.
fn appended(space: &Keyspace) -> (PathBuf, u64) {
    let tree = space.tree();
    let slices = tree.disk_runs().flat_map(|run| run.slices().iter().collect::<Vec<_>>());
    let table = slices.max_by_key(|slice| slice.dead_bytes()).unwrap().table();
    assert!(table.dead_bytes > 0, "{tree}");
    (Path::new("/store").join(format!("{:06}.table", table.id.0)), table.root)
}

#[test]
fn what_lies_behind_a_root_does_not_matter_and_a_damaged_root_is_an_error() {
    let env = MemEnv::new();
    let mut dice = Dice::new(2);
    let mut map = Map::new();
    let (store, space) = open(tiny(&env, TREES));
    for _ in 0..400 {
        write(&space, &mut map, &mut dice);
    }
    let (path, root) = appended(&space);
    drop((store, space));
    assert_eq!(env.file_bytes(&path).unwrap(), root);
    let mut file = env.append(&path, root).unwrap();
    file.write_all(&[7; 5000]).unwrap();
    file.sync().unwrap();
    let (store, space) = open(tiny(&env, TREES));
    assert_eq!(contents(&space), map);
    for _ in 0..100 {
        write(&space, &mut map, &mut dice);
    }
    assert_eq!(contents(&space), map);
    let (path, root) = appended(&space);
    drop((store, space));
    for back in [1, 30] {
        env.flip(&path, root - back, 0x10).unwrap();
        let opened = plain(&env).policy(TREES).open();
        let error = opened.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(".table"), "{error}");
        env.flip(&path, root - back, 0x10).unwrap();
    }
    assert_eq!(contents(&open(tiny(&env, TREES)).1), map);
}

#[test]
fn batches_that_fail_leave_their_trees_as_they_were() {
    let disk = MemEnv::new();
    let mut dice = Dice::new(3);
    let mut map = Map::new();
    let mut failed = 0;
    for life in 0..60 {
        let env = FaultEnv::over(disk.clone());
        let (store, space) = open(tiny(&env, TREES));
        assert_eq!(contents(&space), map, "life {life}");
        assert!(store.verify().unwrap().is_empty());
        let class = *dice.pick(&[OpClass::Create, OpClass::Write, OpClass::Sync]);
        let after = dice.below(20) as u64;
        let kind = std::io::ErrorKind::Other;
        env.set(Fault { class: Some(class), after, lasting: Lasting::Once, kind });
        for _ in 0..dice.below(60) {
            let key = format!("{:03}", dice.below(200)).into_bytes();
            let length = dice.below(30);
            let value = dice.bytes(length);
            while let Err(error) = space.put(&key, &value) {
                assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                store.retry();
            }
            map.insert(key, value);
        }
        failed += store.stats().plans_failed;
        // Half of the lives end with a merge that was not tried again.
        if dice.chance(50) {
            store.retry();
            store.settle().unwrap();
        }
        assert_eq!(contents(&space), map, "life {life}");
    }
    let (_store, space) = open(tiny(&disk, TREES));
    assert_eq!(contents(&space), map);
    assert!(failed > 10, "{failed}");
}
