//! Ingests into several keyspaces.
//!
//! Promised: what each keyspace gets and loses appears in all of them in one step: for readers, for
//! snapshots from before, for readers in other processes, after a crash at any operation, and in a
//! repaired store.

use crate::dice::{Dice, any_seed, with_seeds};
use crate::frame::batches::{POLICIES, restless};
use crate::frame::contents::{Map, contents};
use crate::frame::faults::{any_fault, stops};
use crate::frame::small::{DIR, plain, plain_at, small};
use crate::ingest::replace::{SAMPLE, map_of, options, table};
use lsmith::env::{Effect, Env, Fault, FaultEnv, Loss, MemEnv};
use lsmith::{
    Batch, ErrorKind, Ingest, IngestOptions, Keyspace, KeyspaceOptions, PersistMode, RepairOptions,
    Result, SeqNo, Store, TableWriter, repair,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const NAMES: [&str; 3] = ["a", "b", "c"];

fn spaces(store: &Store) -> [Keyspace; 3] {
    NAMES.map(|name| store.existing_keyspace(name).unwrap())
}

/// What the keyspaces have.
type Maps = [Map; 3];

/// Returns a store whose keyspaces have old entries in tables and in memory, and what they have.
fn store_with_old(env: impl Env + Clone, policy: &str) -> (Store, Maps) {
    let store = small(&env).policy(policy).open().unwrap();
    for (index, name) in NAMES.iter().enumerate() {
        let space = store.keyspace(name).unwrap();
        for number in 0..60 {
            space.put(format!("{number:03}"), format!("old {name}")).unwrap();
            if number == 20 * index {
                space.flush().unwrap();
            }
        }
    }
    let maps = spaces(&store).map(|space| contents(&space));
    (store, maps)
}

/// Writes the tables of an ingest into all keyspaces; the ingest into `b` replaces a range.
fn tables(env: &MemEnv) {
    table(env, "a.table", &map_of(&["005", "030x"], "new a"));
    table(env, "b1.table", &map_of(&["010", "0295"], "new b"));
    table(env, "b2.table", &map_of(&["031", "099"], "new b"));
}

fn ingest(store: &Store) -> Result<()> {
    let [a, b, c] = spaces(store);
    let nothing: [&Path; 0] = [];
    store.ingest_together(&[
        // Out of the order in which they were made.
        Ingest::new(&c, &nothing).options(IngestOptions::default().replace("050"..)),
        Ingest::new(&a, &["/a.table"]),
        Ingest::new(&b, &["/b2.table", "/b1.table"])
            .options(IngestOptions::default().replace("010".."030")),
    ])?;
    Ok(())
}

/// What [`ingest`] makes of `old`.
fn ingested(old: &Maps) -> Maps {
    let [mut a, mut b, mut c] = old.clone();
    a.extend(map_of(&["005", "030x"], "new a"));
    b.retain(|key, _| !(b"010".as_slice()..b"030".as_slice()).contains(&&**key));
    b.extend(map_of(&["010", "0295", "031", "099"], "new b"));
    c.retain(|key, _| &**key < b"050".as_slice());
    [a, b, c]
}

#[test]
fn several_keyspaces_change_in_one_step() {
    for policy in POLICIES {
        let env = MemEnv::new();
        let (store, old) = store_with_old(env.clone(), policy);
        tables(&env);
        let before = store.snapshot();
        let reader = small(&env).read_only(true).open().unwrap();
        ingest(&store).unwrap();
        let expected = ingested(&old);
        assert_eq!(spaces(&store).map(|space| contents(&space)), expected, "{policy}");
        for (space, old) in spaces(&store).iter().zip(&old) {
            let seen = before.iter(space).map(Result::unwrap);
            let seen: Map = seen.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
            assert_eq!(seen, *old, "{policy}");
        }
        assert_eq!(spaces(&reader).map(|space| contents(&space)), old, "{policy}");
        reader.refresh().unwrap();
        assert_eq!(spaces(&reader).map(|space| contents(&space)), expected, "{policy}");
        drop((before, store, reader));
        for disk in [env.crash_clone(1, 1.0), env.process_crash_clone()] {
            let store = small(&disk).open().unwrap();
            assert_eq!(spaces(&store).map(|space| contents(&space)), expected, "{policy}");
            for space in spaces(&store) {
                space.merge().unwrap();
            }
            assert_eq!(spaces(&store).map(|space| contents(&space)), expected, "{policy}");
            assert_eq!(store.verify().unwrap().len(), 0);
        }
    }
}

#[test]
fn snapshots_beside_see_all_or_nothing() {
    let env = MemEnv::new();
    let store = plain(&env).memtable_bytes(4000).open().unwrap();
    let spaces = NAMES.map(|name| store.keyspace(name).unwrap());
    let files: Vec<PathBuf> = (0..60)
        .map(|turn| table(&env, &format!("{turn}.table"), &map_of(&["k"], &turn.to_string())))
        .collect();
    let is_over = AtomicBool::new(false);
    let watch = || {
        while !is_over.load(Ordering::Relaxed) {
            let snapshot = store.snapshot();
            let mut values = spaces.iter().map(|space| snapshot.get(space, "k").unwrap());
            let first = values.next().unwrap();
            assert!(values.all(|value| value == first), "a part of an ingest");
        }
    };
    std::thread::scope(|scope| {
        let watchers = [scope.spawn(watch), scope.spawn(watch)];
        for file in &files {
            // Memory has a key in the range again, so the ingest waits for flushes.
            let mut batch = Batch::new();
            spaces.iter().for_each(|space| batch.put(space, "k", "old"));
            store.write(batch, PersistMode::Buffer).unwrap();
            let ingests = spaces.each_ref().map(|space| Ingest::new(space, &[file]));
            store.ingest_together(&ingests).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        watchers.into_iter().for_each(|watcher| watcher.join().unwrap());
    });
    assert!(spaces.iter().all(|space| *space.get("k").unwrap().unwrap() == *b"59"));
}

#[test]
fn what_is_wrong_for_one_keyspace_changes_none_and_leaves_no_file() {
    let env = MemEnv::new();
    let (store, old) = store_with_old(env.clone(), "minlatency(k=2)");
    tables(&env);
    let mut writer = TableWriter::create_with("/numbered.table", &options(&env)).unwrap();
    writer.put_at("n", "new", SeqNo(1)).unwrap();
    writer.finish().unwrap();
    let keeping = KeyspaceOptions { keep_numbers: Some(true), ..Default::default() };
    let keeping = store.keyspace_with("keeping", &keeping).unwrap();
    let group = KeyspaceOptions { group: Some("g".into()), ..Default::default() };
    let grouped = store.keyspace_with("grouped", &group).unwrap();
    let other = plain_at("/other", &env).open().unwrap();
    let foreign = other.keyspace("a").unwrap();
    let [a, b, _] = spaces(&store);
    let names = env.list(Path::new(DIR)).unwrap();
    let refused = |second: Ingest<'_>, words: &str| {
        let error = store.ingest_together(&[Ingest::new(&a, &["/a.table"]), second]).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(spaces(&store).map(|space| contents(&space)), old, "{error}");
        assert_eq!(env.list(Path::new(DIR)).unwrap(), names, "{error}");
        error.kind()
    };
    let invalid = ErrorKind::InvalidArgument;
    assert_eq!(refused(Ingest::new(&a, &["/b1.table"]), "found a twice"), invalid);
    assert_eq!(refused(Ingest::new(&grouped, &["/b1.table"]), "in group g"), invalid);
    assert_eq!(refused(Ingest::new(&foreign, &["/b1.table"]), "another store"), invalid);
    assert_eq!(refused(Ingest::new(&keeping, &["/numbered.table"]), "several keyspaces"), invalid);
    assert_eq!(refused(Ingest::new(&b, &["/missing.table"]), "/missing.table"), ErrorKind::Io);
    let turned = IngestOptions::default().replace("b".."a");
    assert_eq!(refused(Ingest::new(&b, &["/b1.table"]).options(turned), ""), invalid);
    let none = store.ingest_together(&[]).unwrap();
    assert_eq!(none.tables, 0);
    store.ingest_together(&[Ingest::new(&keeping, &["/numbered.table"])]).unwrap();
    assert!(keeping.get("n").unwrap().is_some(), "one keyspace alone may have numbers");
}

/// Ingests on a copy of `start`, with a fault and its effect. Returns the disk, the number of
/// operations, and whether the call succeeded.
fn run(start: &MemEnv, fault: Option<(Fault, Effect)>) -> (MemEnv, u64, bool) {
    let disk = start.process_crash_clone();
    let env = FaultEnv::over(disk.clone());
    let store = small(&env).open().unwrap();
    let before = env.count_all();
    if let Some((fault, effect)) = fault {
        env.set_with(fault, effect);
    }
    let done = ingest(&store);
    let operations = env.count_all() - before;
    let left = disk.process_crash_clone();
    env.clear();
    (left, operations, done.is_ok())
}

#[test]
fn all_keyspaces_change_or_none_wherever_it_stops() {
    let seed = any_seed();
    let mut dice = Dice::new(seed);
    let start = MemEnv::new();
    let (store, old) = store_with_old(start.clone(), "minlatency(k=2)");
    store.persist(PersistMode::SyncAll).unwrap();
    drop(store);
    tables(&start);
    start.sync_dir(Path::new("/")).unwrap();
    let whole = ingested(&old);
    let examine = |disk: MemEnv, returned: bool| {
        let store = small(&disk).open().unwrap();
        let found = spaces(&store).map(|space| contents(&space));
        assert!(found == whole || found == old && !returned, "{returned}: {found:?}");
        ingest(&store).unwrap();
        for space in spaces(&store) {
            space.merge().unwrap();
        }
        assert_eq!(spaces(&store).map(|space| contents(&space)), whole);
        assert_eq!(store.verify().unwrap().len(), 0);
    };
    let (done, operations, returned) = run(&start, None);
    assert!(returned && operations > 20, "{operations} operations");
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

#[test]
fn a_repair_takes_the_one_record_of_all_keyspaces() {
    let env = MemEnv::new();
    let (store, old) = store_with_old(env.clone(), "minlatency(k=2)");
    tables(&env);
    store.flush().unwrap();
    ingest(&store).unwrap();
    drop(store);
    let expected = ingested(&old);
    let names = env.list(Path::new(DIR)).unwrap();
    let manifest = names.iter().find(|name| name.ends_with(".manifest")).unwrap();
    let path = Path::new(DIR).join(manifest);
    let file = env.open(&path).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let at = bytes.windows(9).position(|bytes| bytes == b"together ").expect("one record of all");
    // Damage to the record in front: what follows is applied as well as possible.
    for harmed in [None, Some(at as u64 - 25)] {
        let disk = env.process_crash_clone();
        if let Some(offset) = harmed {
            disk.flip(&path, offset, 1).unwrap();
        }
        let options = RepairOptions { env: Arc::new(disk.clone()), ..RepairOptions::default() };
        let report = repair(&options, Path::new(DIR), Path::new("/repaired")).unwrap();
        assert_eq!(report.is_exact(), harmed.is_none(), "{report:#?}");
        let store = Store::builder("/repaired").env(Arc::new(disk)).open().unwrap();
        let found = spaces(&store).map(|space| contents(&space));
        assert!(found == expected || harmed.is_some());
        // A guess may take an older entry for the newer one. No table is left out.
        for (found, expected) in found.iter().zip(&expected) {
            assert!(expected.keys().all(|key| found.contains_key(key)), "{harmed:?}");
        }
        assert_eq!(store.keyspaces().len(), NAMES.len(), "no keyspace of lost tables");
    }
}

/// Random ingests into several keyspaces, beside writes, flushes, merges and new lives, against
/// plain maps.
#[test]
fn random_ingests_agree_with_plain_maps() {
    with_seeds(30, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let open = |dice: &mut Dice| restless(plain(&env), dice).open().unwrap();
        let mut store = open(&mut dice);
        NAMES.iter().for_each(|name| drop(store.keyspace(name).unwrap()));
        let mut maps = Maps::default();
        let key = |number: usize| format!("{number:02}").into_bytes();
        for step in 0..120 {
            let spaces = spaces(&store);
            let index = dice.below(3);
            match dice.below(10) {
                0..=2 => {
                    let mut ingests = Vec::new();
                    for (index, space) in spaces.iter().enumerate() {
                        if dice.chance(30) {
                            continue;
                        }
                        let entries = (0..1 + dice.below(5))
                            .map(|_| (key(dice.below(60)), dice.bytes(9)))
                            .collect();
                        let file = table(&env, &format!("{step}-{index}.table"), &entries);
                        let mut options = IngestOptions::default().link(dice.chance(50));
                        if dice.chance(40) {
                            let (from, to) = (key(dice.below(30)), key(30 + dice.below(30)));
                            maps[index].retain(|key, _| !(&from..&to).contains(&key));
                            options = options.replace(from..to);
                        }
                        maps[index].extend(entries);
                        ingests.push(Ingest::new(space, &[file]).options(options));
                    }
                    store.ingest_together(&ingests).unwrap();
                }
                3 => store.flush().unwrap(),
                4 if dice.chance(40) => spaces[index].merge().unwrap(),
                5 if dice.chance(30) => {
                    drop((spaces, store));
                    store = open(&mut dice);
                }
                _ => {
                    let (key, value) = (key(dice.below(60)), dice.bytes(30));
                    spaces[index].put(&key, &value).unwrap();
                    maps[index].insert(key, value);
                }
            }
            if dice.chance(20) {
                let found = self::spaces(&store).map(|space| contents(&space));
                assert!(found == maps, "step {step}");
            }
        }
        assert!(spaces(&store).map(|space| contents(&space)) == maps);
    });
}
