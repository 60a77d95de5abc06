//! A device without room.
//!
//! Promised: if the device becomes full in the middle of a merge, the merge is given up and its
//! space freed. Reads go on. Writes fail with kind `Full`, and work again without reopening once
//! there is room. The same holds if there is no room for another log or manifest. A store that
//! cannot be created for lack of room leaves nothing behind. Nothing acknowledged is lost.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{Batches, POLICIES, Progress};
use crate::frame::small::{DIR, fill, open, plain, small};
use crate::frame::watchdog::wait_until;
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{Error, ErrorKind, Isolation, PersistMode, Store};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

const CAPACITY: u64 = 8 << 20;

/// The most logs that there can be: the logs that memory may keep alive (four times the memtables
/// of both keyspaces), one more, and the current one.
const LOGS_MAX: usize = 4 * (4000 + 100_000) / (64 << 10) + 2;

/// Fills the device with a foreign file, except for `free` bytes.
fn fill_device(env: &MemEnv, free: u64) {
    let mut file = env.create(Path::new(&format!("/ballast{}", ballast(env).len()))).unwrap();
    let bytes = env.free_bytes(Path::new("/")).unwrap().saturating_sub(free);
    file.write_all(&vec![0; bytes as usize]).unwrap();
    file.sync().unwrap();
}

/// Frees the space of those files.
fn relieve(env: &MemEnv) {
    ballast(env).iter().for_each(|name| env.remove_file(&Path::new("/").join(name)).unwrap());
}

fn ballast(env: &MemEnv) -> Vec<String> {
    let names = env.list(Path::new("/")).unwrap();
    names.into_iter().filter(|name| name.starts_with("ballast")).collect()
}

/// Writes until the device is full.
fn write_until_full(
    env: &MemEnv,
    store: &Store,
    batches: Batches,
    progress: &mut Progress,
) -> Error {
    for _ in 0..20 {
        for _ in 0..1000 {
            if let Err(error) = batches.go_on(store, progress, PersistMode::Buffer) {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                return error;
            }
        }
        // Merges that are as fast as the writer live in little room, so there is less of it.
        fill_device(env, env.free_bytes(Path::new("/")).unwrap() / 2);
    }
    panic!("the device is never full");
}

/// Returns the files of tables in the directory, and the files that the store names.
fn table_files(env: &MemEnv, store: &Store) -> [Vec<String>; 2] {
    let names = env.list(Path::new(DIR)).unwrap();
    let mut tables = BTreeSet::new();
    for name in store.keyspaces() {
        let tree = store.keyspace(&name).unwrap().tree();
        tables.extend(tree.disk_runs().flat_map(|run| run.slices().iter().map(|s| s.table().id.0)));
    }
    let named = tables.iter().map(|number| format!("{number:06}.table")).collect();
    [names.into_iter().filter(|name| name.ends_with(".table")).collect(), named]
}

/// Asserts that the directory holds the files that the store names, and no others.
fn check_files(env: &MemEnv, store: &Store, logs_max: usize) {
    let names = env.list(Path::new(DIR)).unwrap();
    let of_kind = |kind: &str| names.iter().filter(|name| name.ends_with(kind)).count();
    let [found, named] = table_files(env, store);
    assert_eq!(found, named);
    assert_eq!(of_kind(".manifest"), 1, "{names:?}");
    assert!(of_kind(".wal") <= logs_max, "{names:?}");
    assert_eq!(of_kind(".new"), 0, "{names:?}");
}

/// Asserts that everything acknowledged can be read, in `store` and after reopening, without
/// damage.
fn check_all(env: &MemEnv, store: Store, batches: Batches, progress: Progress) {
    assert_eq!(batches.check(&store), progress.acknowledged);
    assert_eq!(store.verify().unwrap().len(), 0);
    drop(store);
    let store = small(env).open().unwrap();
    assert_eq!(batches.check(&store), progress.acknowledged);
    store.flush().unwrap();
    check_files(env, &store, 1);
}

fn fill_during_merges(lockstep: bool) {
    with_seeds(4, |seed| {
        for policy in POLICIES {
            let mut dice = Dice::new(seed);
            let batches = Batches { value_bytes: 1000, keys: 400, ..Batches::new(seed) };
            let env = MemEnv::with_capacity(CAPACITY);
            let store = small(&env).lockstep(lockstep).policy(policy).open().unwrap();
            let mut progress = Progress::default();
            for _ in 0..200 {
                batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
            }
            for _ in 0..3 {
                store.settle().unwrap();
                fill_device(&env, 64 * 1024 + dice.below(200_000) as u64);
                let error = write_until_full(&env, &store, batches, &mut progress);
                assert!(error.to_string().contains("cannot"), "{error}");
                assert_eq!(batches.check(&store), progress.acknowledged, "reads go on");
                // With threads another merge may have made room meanwhile, or be under way.
                if lockstep {
                    let again = batches.go_on(&store, &mut progress, PersistMode::SyncData);
                    assert_eq!(again.unwrap_err().kind(), ErrorKind::Full);
                    check_files(&env, &store, LOGS_MAX);
                }
                relieve(&env);
                for _ in 0..30 {
                    batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
                }
                store.flush().unwrap();
                if !lockstep {
                    // A thread may be about to let go of the last table that it has read.
                    wait_until(|| {
                        let [found, named] = table_files(&env, &store);
                        found == named
                    });
                }
                check_files(&env, &store, 1);
            }
            check_all(&env, store, batches, progress);
        }
    });
}

#[test]
fn a_merge_that_fills_the_device_is_given_up_in_lockstep() {
    fill_during_merges(true);
}

#[test]
fn a_merge_that_fills_the_device_is_given_up_with_threads() {
    fill_during_merges(false);
}

#[test]
fn no_room_for_another_log() {
    for lockstep in [true, false] {
        let batches = Batches { value_bytes: 1000, ..Batches::new(1) };
        let env = MemEnv::with_capacity(CAPACITY);
        // Memtables so large that nothing is flushed.
        let store = small(&env).lockstep(lockstep).memtable_bytes(1 << 30).open().unwrap();
        let mut progress = Progress::default();
        batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        store.keyspace("left").unwrap();
        fill_device(&env, (64 << 10) - 1);
        let error = write_until_full(&env, &store, batches, &mut progress);
        assert!(error.path().unwrap().to_str().unwrap().ends_with(".wal"), "{error}");
        for _ in 0..3 {
            let again = batches.go_on(&store, &mut progress, PersistMode::SyncAll);
            assert_eq!(again.unwrap_err().kind(), ErrorKind::Full);
        }
        assert_eq!(batches.check(&store), progress.acknowledged);
        store.persist(PersistMode::SyncAll).unwrap();
        relieve(&env);
        for _ in 0..100 {
            batches.go_on(&store, &mut progress, PersistMode::SyncData).unwrap();
        }
        check_all(&env, store, batches, progress);
    }
}

/// Calls that read and write, and transactions that delete ranges, until there is no room for
/// another log. What fails has changed nothing.
#[test]
fn updates_that_find_no_room_change_nothing() {
    for lockstep in [true, false] {
        let env = MemEnv::with_capacity(CAPACITY);
        let (store, space) = open(small(&env).lockstep(lockstep).memtable_bytes(1 << 30));
        let (mut counter, mut range) = (0_u32, 0..2000_u32);
        space.put("counter", counter.to_be_bytes()).unwrap();
        fill(&space, range.clone(), [1; 10]);
        fill_device(&env, (64 << 10) - 1);
        let full = |result: lsmith::Result<()>| match result {
            Ok(()) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                assert!(error.path().unwrap().to_str().unwrap().ends_with(".wal"), "{error}");
                true
            }
        };
        let mut swap = || {
            let (old, new) = (counter.to_be_bytes(), (counter + 1).to_be_bytes());
            let swapped = space.compare_and_swap("counter", Some(&old), Some(&new))?;
            assert_eq!(swapped, Ok(()));
            counter += 1;
            Ok(())
        };
        while !full(swap()) {}
        let mut cut = |is_back: bool| {
            let mut one = store.transaction(Isolation::Serializable);
            let at = if is_back { range.end - 1 } else { range.start };
            one.delete_range(&space, at.to_be_bytes()..=at.to_be_bytes())?;
            one.put(&space, "cut", at.to_be_bytes())?;
            one.commit(PersistMode::Buffer)?;
            if is_back {
                range.end -= 1
            } else {
                range.start += 1
            }
            Ok(())
        };
        while !full(cut(false)) {}
        while !full(cut(true)) {}
        let mut pop = || {
            let found = space.pop_first()?.expect("more than there is room for");
            assert_eq!(found.0, range.start.to_be_bytes()[..]);
            range.start += 1;
            Ok(())
        };
        while !full(pop()) {}
        assert!(full(space.pop_last().map(drop)));
        let check = |store: &Store| {
            let space = store.keyspace("default").unwrap();
            let found = space.get("counter").unwrap().unwrap();
            assert_eq!(found, counter.to_be_bytes()[..]);
            let keys = space.iter().map(|entry| entry.unwrap().0);
            let numbers = keys.filter(|key| key.len() == 4);
            assert!(numbers.eq(range.clone().map(|number| number.to_be_bytes().to_vec())));
        };
        check(&store);
        relieve(&env);
        let last = space.pop_last().unwrap().unwrap();
        assert!(last.0 == "cut" || last.0 == "counter", "{last:?}");
        space.put(&last.0, &last.1).unwrap();
        check(&store);
        drop((space, store));
        check(&small(&env).lockstep(lockstep).open().unwrap());
    }
}

#[test]
fn no_room_for_another_manifest() {
    for lockstep in [true, false] {
        let env = MemEnv::with_capacity(CAPACITY);
        let (store, space) = open(small(&env).lockstep(lockstep).policy("constant(k=1)"));
        // One long key makes each edit long, so that few fill a manifest.
        let long = vec![b'k'; 30_000];
        space.put(&long, "0").unwrap();
        store.flush().unwrap();
        fill_device(&env, 250_000);
        let mut written = 0;
        let error = loop {
            let result = space.put(&long, (written + 1).to_string()).and_then(|()| {
                written += 1;
                store.flush()
            });
            match result {
                Ok(()) => assert!(written < 1000, "the manifest is never full"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Full);
        assert!(error.to_string().contains(".manifest"), "{error}");
        let read = || space.get(&long).unwrap().unwrap();
        assert_eq!(read(), written.to_string());
        // While the merge is tried again, writes are not refused.
        let is_full = |error: Error| error.kind() == ErrorKind::Full;
        wait_until(|| space.put("a", "b").is_err_and(is_full));
        check_files(&env, &store, 2);
        relieve(&env);
        space.put("a", "b").unwrap();
        space.set_merge_policy("none").unwrap();
        store.flush().unwrap();
        store.keyspace("more").unwrap();
        check_files(&env, &store, 1);
        assert_eq!(read(), written.to_string());
        drop((store, space));
        let store = small(&env).lockstep(lockstep).open().unwrap();
        assert_eq!(store.keyspaces(), ["default", "more"]);
        let space = store.keyspace("default").unwrap();
        assert_eq!(space.merge_policy(), "none");
        assert_eq!(space.get(&long).unwrap().unwrap(), written.to_string());
        assert_eq!(space.get("a").unwrap().as_deref(), Some(&b"b"[..]));
    }
}

#[test]
fn a_store_that_finds_no_room_is_not_half_made() {
    let mut made = 0;
    for capacity in (0..600_000).step_by(20_000) {
        let env = MemEnv::with_capacity(capacity);
        match small(&env).open() {
            Ok(_) => made += 1,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
                let names = env.list(Path::new(DIR)).unwrap();
                let is_store = names.iter().any(|name| name == "CURRENT");
                assert!(is_store || names == ["LOCK"], "{names:?}");
                let reader = small(&env).read_only(true).open().map(drop);
                assert_eq!(reader.map_err(|error| error.kind()).is_ok(), is_store);
                // Trying again and again takes no more room.
                let free = env.free_bytes(Path::new(DIR)).unwrap();
                small(&env).open().unwrap_err();
                assert_eq!(env.free_bytes(Path::new(DIR)).unwrap(), free);
            }
        }
    }
    assert!((1..30).contains(&made), "{made}");
}

/// If the room that a device reports cannot be used (a quota), a merge is not retried endlessly. It
/// is retried once it can succeed.
#[test]
fn room_that_cannot_be_used_is_no_room() {
    for lockstep in [true, false] {
        let env = FaultEnv::new(Arc::new(MemEnv::new()));
        let builder = plain(&env).lockstep(lockstep);
        let (store, space) = open(builder.memtable_bytes(1000));
        env.set(Fault {
            class: Some(OpClass::Write),
            after: 0,
            lasting: Lasting::Forever,
            kind: io::ErrorKind::QuotaExceeded,
        });
        let mut written = 0_u32;
        let error = loop {
            match space.put(written.to_string(), "x".repeat(50)) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Full);
        assert_eq!(space.iter().count() as u32, written);
        assert_eq!(store.flush().unwrap_err().kind(), ErrorKind::Full);
        env.clear();
        wait_until(|| match space.put("at last", "y") {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full);
                false
            }
        });
        assert_eq!(space.iter().count() as u32, written + 1);
    }
}
