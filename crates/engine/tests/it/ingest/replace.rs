//! Ingests and bulk loads that replace ranges.
//!
//! Promised: what the keyspace had in the range is gone in the same step as the new entries appear:
//! for readers, for snapshots from before, and after a crash at any operation.

use crate::dice::{Dice, any_seed, with_seeds};
use crate::frame::batches::{POLICIES, restless};
use crate::frame::contents::{Map, contents};
use crate::frame::faults::{any_fault, stops};
use crate::frame::small::{plain, small};
use lsmith::env::{Effect, Env, Fault, FaultEnv, Loss, MemEnv};
use lsmith::{
    ErrorKind, IngestOptions, Isolation, Keyspace, KeyspaceOptions, PersistMode, SeqNo, Store,
    TableWriter, TableWriterOptions,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of stop points in a short test.
pub(crate) const SAMPLE: usize = 40;

pub(crate) fn options(env: &MemEnv) -> TableWriterOptions {
    TableWriterOptions { env: Arc::new(env.clone()), block_bytes: 100, ..Default::default() }
}

/// Writes a table with `entries` to the file `name`.
pub(crate) fn table(env: &MemEnv, name: &str, entries: &Map) -> PathBuf {
    let path = Path::new("/").join(name);
    let mut writer = TableWriter::create_with(&path, &options(env)).unwrap();
    for (key, value) in entries {
        writer.put(key, value).unwrap();
    }
    writer.finish().unwrap();
    path
}

pub(crate) fn map_of(keys: &[&str], value: &str) -> Map {
    keys.iter().map(|key| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

/// Returns a store with old entries in tables and in memory, and what it has.
fn store_with_old(env: impl Env + Clone, policy: &str) -> (Store, Keyspace, Map) {
    let store = small(&env).policy(policy).open().unwrap();
    let space = store.keyspace("a").unwrap();
    let old: Vec<String> = (0..60).map(|number| format!("{number:03}")).collect();
    for (index, key) in old.iter().enumerate() {
        space.put(key, "old").unwrap();
        if index == 40 {
            store.flush().unwrap();
        }
    }
    let old: Vec<&str> = old.iter().map(String::as_str).collect();
    (store, space, map_of(&old, "old"))
}

/// What `old` is when 010..030 are replaced by `new`.
fn replaced(old: &Map, new: &Map) -> Map {
    let outside = |key: &[u8]| !(b"010".as_slice()..b"030".as_slice()).contains(&key);
    let mut map: Map = old.clone().into_iter().filter(|(key, _)| outside(key)).collect();
    map.extend(new.clone());
    map
}

#[test]
fn a_range_is_replaced_in_one_step() {
    for policy in POLICIES {
        let env = MemEnv::new();
        let (store, space, old) = store_with_old(env.clone(), policy);
        let new = map_of(&["005", "010", "0295", "030x", "099"], "new");
        let file = table(&env, "new.table", &new);
        let before = store.snapshot();
        let mut feed = store.changes(store.next_seq()).unwrap();
        let mut late = store.transaction(Isolation::Snapshot);
        late.put(&space, "020", "late").unwrap();
        let options = IngestOptions::default().replace("010".."030");
        let ingested = store.ingest(&space, &[file], &options).unwrap();
        assert_eq!(ingested.entries, 5);
        let mut expected = replaced(&old, &new);
        assert_eq!(contents(&space), expected, "{policy}");
        let seen = before.iter(&space).map(Result::unwrap);
        let seen: Map = seen.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        assert_eq!(seen, old, "{policy}");
        let error = late.commit(PersistMode::Buffer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        let batch = feed.next_batch().unwrap().unwrap();
        assert!(batch.is_load && batch.changes.is_empty());
        assert!(feed.next_batch().unwrap().is_none());
        space.put("015", "later").unwrap();
        expected.insert(b"015".to_vec(), b"later".to_vec());
        assert_eq!(contents(&space), expected, "{policy}");
        drop((before, space, store, feed));
        for disk in [env.crash_clone(1, 1.0), env.process_crash_clone()] {
            let store = small(&disk).open().unwrap();
            let space = store.existing_keyspace("a").unwrap();
            assert_eq!(contents(&space), expected, "{policy}");
            store.flush().unwrap();
            assert_eq!(contents(&space), expected, "{policy}");
            space.merge().unwrap();
            assert_eq!(contents(&space), expected, "{policy}");
            assert_eq!(space.tree().range_deletes().len(), 0, "{policy}: the range delete is done");
            assert_eq!(store.verify().unwrap().len(), 0);
        }
    }
}

#[test]
fn without_files_the_range_is_deleted_and_an_empty_range_replaces_nothing() {
    let env = MemEnv::new();
    let (store, space, old) = store_with_old(env.clone(), "minlatency(k=2)");
    let none: [&Path; 0] = [];
    for options in [IngestOptions::default().replace("b".."b"), IngestOptions::default()] {
        store.ingest(&space, &none, &options).unwrap();
        assert_eq!(contents(&space), old);
    }
    store.ingest(&space, &none, &IngestOptions::default().replace("010".."030")).unwrap();
    assert_eq!(contents(&space), replaced(&old, &Map::new()));
    let options = IngestOptions::default().replace("040".."050").replace::<&str>(.."040");
    store.ingest(&space, &none, &options).unwrap();
    assert_eq!(space.iter().count(), 10);
    drop((store, space));
    let store = small(&env).open().unwrap();
    assert_eq!(store.existing_keyspace("a").unwrap().iter().count(), 10);
}

#[test]
fn a_bulk_load_replaces_a_range_of_its_keyspace_alone() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let options = KeyspaceOptions { group: Some("g".into()), ..Default::default() };
    let spaces = ["left", "middle", "right"].map(|name| store.keyspace_with(name, &options));
    let spaces = spaces.map(Result::unwrap);
    for space in &spaces {
        ["a", "b", "c"].iter().for_each(|key| space.put(key, "old").unwrap());
    }
    let mut load = spaces[1].bulk_load().unwrap();
    let error = load.replace("b".."a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    load.replace::<&str>(..).unwrap();
    load.put("b", "new").unwrap();
    load.put("d", "new").unwrap();
    assert_eq!(contents(&spaces[1]).len(), 3, "nothing has happened yet");
    load.finish().unwrap();
    let check = |store: &Store| {
        for (name, expected) in [
            ("left", map_of(&["a", "b", "c"], "old")),
            ("middle", map_of(&["b", "d"], "new")),
            ("right", map_of(&["a", "b", "c"], "old")),
        ] {
            assert_eq!(contents(&store.existing_keyspace(name).unwrap()), expected, "{name}");
        }
    };
    check(&store);
    // Nothing but the range delete.
    let mut load = spaces[2].bulk_load().unwrap();
    load.replace("b"..).unwrap();
    load.finish().unwrap();
    assert_eq!(contents(&spaces[2]), map_of(&["a"], "old"));
    drop((spaces, store));
    let store = small(&env).open().unwrap();
    assert_eq!(contents(&store.existing_keyspace("right").unwrap()), map_of(&["a"], "old"));
    assert_eq!(contents(&store.existing_keyspace("middle").unwrap()), map_of(&["b", "d"], "new"));
}

#[test]
fn what_cannot_be_replaced_changes_nothing() {
    let env = MemEnv::new();
    let (store, space, old) = store_with_old(env.clone(), "minlatency(k=2)");
    let new = table(&env, "new.table", &map_of(&["020"], "new"));
    let all = || IngestOptions::default().replace::<&str>(..);
    let refused = |space: &Keyspace, file: &Path, options: &IngestOptions, kind: ErrorKind| {
        let error = store.ingest(space, &[file], options).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    };
    refused(&space, &new, &all().replace("b".."a"), ErrorKind::InvalidArgument);
    refused(&space, Path::new("/missing.table"), &all(), ErrorKind::Io);
    assert_eq!(contents(&space), old);
    let keeping = KeyspaceOptions { keep_numbers: Some(true), ..Default::default() };
    let keeping = store.keyspace_with("keeping", &keeping).unwrap();
    keeping.put("k", "old").unwrap();
    let mut writer = TableWriter::create_with("/numbered.table", &options(&env)).unwrap();
    writer.put_at("n", "new", SeqNo(1)).unwrap();
    writer.finish().unwrap();
    refused(&keeping, Path::new("/numbered.table"), &all(), ErrorKind::InvalidArgument);
    store.ingest(&keeping, &[new], &all()).unwrap();
    assert_eq!(contents(&keeping), map_of(&["020"], "new"), "undated tables may replace there too");
}

/// Replaces a range on a copy of `start`, with a fault and its effect. Returns the disk, the number
/// of operations, and whether the call succeeded.
fn run(start: &MemEnv, fault: Option<(Fault, Effect)>) -> (MemEnv, u64, bool) {
    let disk = start.process_crash_clone();
    let env = FaultEnv::over(disk.clone());
    let store = small(&env).open().unwrap();
    let space = store.existing_keyspace("a").unwrap();
    let before = env.count_all();
    if let Some((fault, effect)) = fault {
        env.set_with(fault, effect);
    }
    let options = IngestOptions::default().replace("010".."030");
    let done = store.ingest(&space, &["/new.table"], &options);
    let operations = env.count_all() - before;
    let left = disk.process_crash_clone();
    env.clear();
    (left, operations, done.is_ok())
}

#[test]
fn a_range_is_replaced_as_a_whole_or_not_at_all_wherever_it_stops() {
    let seed = any_seed();
    let mut dice = Dice::new(seed);
    let start = MemEnv::new();
    let (store, space, old) = store_with_old(start.clone(), "minlatency(k=2)");
    store.persist(PersistMode::SyncAll).unwrap();
    drop((store, space));
    let new = map_of(&["005", "010", "0295", "030x", "099"], "new");
    table(&start, "new.table", &new);
    start.sync_dir(Path::new("/")).unwrap();
    let whole = replaced(&old, &new);
    let examine = |disk: MemEnv, returned: bool| {
        let store = small(&disk).open().unwrap();
        let space = store.existing_keyspace("a").unwrap();
        let found = contents(&space);
        assert!(found == whole || found == old && !returned, "{returned}: {found:?}");
        let options = IngestOptions::default().replace("010".."030");
        store.ingest(&space, &["/new.table"], &options).unwrap();
        space.merge().unwrap();
        assert_eq!(contents(&space), whole);
        assert_eq!(store.verify().unwrap().len(), 0);
    };
    let (done, operations, returned) = run(&start, None);
    assert!(returned && operations > 10, "{operations} operations");
    examine(done.power_loss(seed, Loss::Everything), true);
    for after in stops(&mut dice, operations, SAMPLE) {
        let (fault, effect) = any_fault(&mut dice, after);
        let (left, _, returned) = run(&start, Some((fault, effect)));
        let loss = *dice.pick(&Loss::ALL);
        println!("seed {seed}, {fault:?}, {effect:?}, {loss:?}");
        examine(left.process_crash_clone(), returned);
        examine(left.power_loss(seed, loss), returned);
    }
}

/// Random ingests that replace ranges, beside writes, range deletes, flushes, merges, snapshots and
/// new lives, against plain maps.
#[test]
fn random_replacements_agree_with_plain_maps() {
    with_seeds(40, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let open = |dice: &mut Dice| restless(plain(&env), dice).open().unwrap();
        let mut store = open(&mut dice);
        let mut space = store.keyspace("a").unwrap();
        let mut map = Map::new();
        let mut snapshots = Vec::new();
        let key = |number: usize| format!("{number:02}").into_bytes();
        for step in 0..200 {
            let from = dice.below(50);
            let to = from + dice.below(20);
            match dice.below(12) {
                0 | 1 => {
                    let kept = |key: &Vec<u8>| !(key_of(from)..key_of(to)).contains(key);
                    let entries =
                        (0..1 + dice.below(6)).map(|_| (key(dice.below(60)), dice.bytes(9)));
                    let new: Map = entries.collect();
                    let file = table(&env, &format!("{step}.table"), &new);
                    map.retain(|key, _| kept(key));
                    map.extend(new);
                    let options = IngestOptions::default().replace(key(from)..key(to));
                    store.ingest(&space, &[file], &options).unwrap();
                }
                2 => {
                    map.retain(|key, _| !(key_of(from)..key_of(to)).contains(key));
                    space.delete_range(key(from)..key(to)).unwrap();
                }
                3 => {
                    map.remove(&key(from));
                    space.delete(key(from)).unwrap();
                }
                4 => store.flush().unwrap(),
                5 if dice.chance(40) => space.merge().unwrap(),
                6 => snapshots.push((store.snapshot(), map.clone())),
                7 if !snapshots.is_empty() => {
                    let (snapshot, then) = snapshots.swap_remove(dice.below(snapshots.len()));
                    let seen = snapshot.iter(&space).map(Result::unwrap);
                    let seen: Map = seen.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
                    assert!(seen == then, "a snapshot");
                }
                8 if dice.chance(30) => {
                    snapshots.clear();
                    drop((space, store));
                    store = open(&mut dice);
                    space = store.existing_keyspace("a").unwrap();
                }
                _ => {
                    let value = dice.bytes(30);
                    space.put(key(from), &value).unwrap();
                    map.insert(key(from), value);
                }
            }
            if dice.chance(20) {
                assert!(contents(&space) == map, "step {step}");
                let key = key(dice.below(60));
                let found = space.get(&key).unwrap();
                assert_eq!(found.as_deref(), map.get(&key).map(|value| &value[..]));
            }
        }
        assert!(contents(&space) == map);
    });
}

fn key_of(number: usize) -> Vec<u8> {
    format!("{number:02}").into_bytes()
}
