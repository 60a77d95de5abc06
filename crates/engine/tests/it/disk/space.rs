//! A limit on what the files of a store take.
//!
//! Promised: the files never take more. Where merges can free enough, writers wait for them and go
//! on; else they fail with kind `Full`, and nothing is written. A full store is read, opened and
//! emptied. Nothing acknowledged is lost.

use crate::frame::small::{DIR, plain};
use crate::frame::watchdog::{ends, wait_until};
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, Error, ErrorKind, Keyspace, Store};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const LIMIT: u64 = 4 << 20;

/// How often each key is written.
const ROUNDS: u64 = 8;

/// Policies of each kind, with tables of the usual size.
const POLICIES: [&str; 7] = [
    "minlatency(k=6)",
    "tiered(ratio=3)",
    "leveled(ratio=3, table=64KiB)",
    "constant(k=2)",
    "mixed(ratio=3)",
    "full(ratio=3)",
    "jungle(c=2, ratio=3)",
];

fn limited(env: &MemEnv) -> Builder {
    plain(env).space_bytes(LIMIT).memtable_bytes(64 << 10).log_bytes(64 << 10).threads(2)
}

/// Returns what the files take together, at a moment between two looks at each. A file grows, or
/// loses bytes, and no one look is at all files at once: the lesser of two counts.
fn files(env: &MemEnv) -> u64 {
    let names = env.list(Path::new(DIR)).unwrap();
    // A file may be removed meanwhile.
    let bytes = |name: &String| env.held_bytes(&Path::new(DIR).join(name)).unwrap_or(0);
    let first: Vec<u64> = names.iter().map(bytes).collect();
    first.into_iter().zip(&names).map(|(first, name)| first.min(bytes(name))).sum()
}

/// Sets the mark when it is dropped, also by a panic.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the most that the files take while `work` is done.
fn most_files(env: &MemEnv, work: impl FnOnce()) -> u64 {
    let (most, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(files(env), Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let end = End(&over);
        work();
        drop(end);
    });
    most.load(Ordering::Relaxed)
}

fn key(number: u64) -> String {
    format!("key {number:06}")
}

fn value(number: u64, round: u64) -> Vec<u8> {
    let seed = (number * 31 + round).to_le_bytes();
    seed.iter().copied().cycle().take(1000).collect()
}

/// Puts keys from `from` on until that fails, and returns the key that failed, and why.
fn fill(space: &Keyspace, from: u64) -> (u64, Error) {
    let mut number = from;
    loop {
        if let Err(error) = space.put(key(number), value(number, 0)) {
            return (number, error);
        }
        number += 1;
        assert!(number < from + 50_000, "the store is never full");
    }
}

fn check(space: &Keyspace, numbers: std::ops::Range<u64>, round: u64) {
    for number in numbers {
        let found = space.get(key(number)).unwrap();
        assert!(found.is_some_and(|found| found[..] == value(number, round)), "{number}");
    }
}

fn overwrite(policy: &str, lockstep: bool, keys: u64) {
    let env = MemEnv::new();
    let store = limited(&env).policy(policy).lockstep(lockstep).open().unwrap();
    let space = store.keyspace("default").unwrap();
    let most = most_files(&env, || {
        for round in 0..ROUNDS {
            for number in 0..keys {
                let number = number * 7919 % keys;
                let put = space.put(key(number), value(number, round));
                put.unwrap_or_else(|error| panic!("{policy}, {round}, {number}: {error}"));
            }
        }
    });
    assert!(most <= LIMIT, "{policy}: {most}");
    store.settle().unwrap();
    wait_until(|| store.space().unwrap().used == files(&env));
    check(&space, 0..keys, ROUNDS - 1);
    drop((space, store));
    let store = limited(&env).policy(policy).lockstep(lockstep).open().unwrap();
    check(&store.keyspace("default").unwrap(), 0..keys, ROUNDS - 1);
    assert_eq!(store.verify().unwrap().len(), 0);
}

/// 60 % of the limit are live, and eight times as much is written.
#[test]
fn overwrites_stay_within_the_limit() {
    for policy in POLICIES {
        // Append tables hold versions of their nodes too.
        let keys = if policy.starts_with("jungle") { 1500 } else { 2500 };
        overwrite(policy, false, keys);
    }
}

#[test]
fn overwrites_stay_within_the_limit_in_lockstep() {
    for policy in POLICIES {
        overwrite(policy, true, 1200);
    }
}

#[test]
fn a_full_store_is_read_and_opened_and_emptied() {
    for lockstep in [false, true] {
        let env = MemEnv::new();
        let open = || {
            let store = limited(&env).lockstep(lockstep).open().unwrap();
            let space = store.keyspace("default").unwrap();
            (store, space)
        };
        let (store, space) = open();
        let (mut end, error) = fill(&space, 0);
        assert_eq!(error.kind(), ErrorKind::Full);
        assert!(error.to_string().contains("`Store::set_space_bytes`"), "{error}");
        let live = end * 1010;
        assert!(live > LIMIT * 6 / 10, "{live} of {LIMIT}");
        assert!(files(&env) <= LIMIT);
        check(&space, 0..end, 0);
        assert_eq!(space.put("one more", "").unwrap_err().kind(), ErrorKind::Full);
        drop((space, store));
        for _ in 0..5 {
            let (store, space) = open();
            check(&space, 0..end, 0);
            assert_eq!(fill(&space, end).1.kind(), ErrorKind::Full);
            // Opening flushes, so a few more may fit.
            end = fill(&space, end).0;
            drop((space, store));
            assert!(files(&env) <= LIMIT + (256 << 10), "{}", files(&env));
        }
        let (store, space) = open();
        for number in 0..end / 2 {
            space.delete(key(number)).unwrap();
        }
        for number in 0..end / 4 {
            space.put(key(number), value(number, 1)).unwrap();
        }
        check(&space, 0..end / 4, 1);
        check(&space, end / 2..end, 0);
        assert!(files(&env) <= LIMIT + (256 << 10));
        drop((space, store));
    }
}

/// What gives a full store room: a range delete, a dropped keyspace, a higher limit, the end of a
/// snapshot.
#[test]
fn writes_go_on_once_there_is_room() {
    type Relief = fn(&Store, &Keyspace);
    let reliefs: [(&str, Relief); 4] = [
        ("a range delete", |_, space| space.delete_range(key(0)..key(1500)).unwrap()),
        ("a keyspace less", |store, _| store.drop_keyspace("other").unwrap()),
        ("a clear", |_, space| space.clear().unwrap()),
        ("a higher limit", |store, _| store.set_space_bytes(2 * LIMIT).unwrap()),
    ];
    for lockstep in [false, true] {
        for (name, relief) in &reliefs {
            let env = MemEnv::new();
            let store = limited(&env).lockstep(lockstep).open().unwrap();
            let other = store.keyspace("other").unwrap();
            for number in 0..700 {
                other.put(key(number), value(number, 0)).unwrap();
            }
            let space = store.keyspace("default").unwrap();
            let (end, error) = fill(&space, 0);
            assert_eq!(error.kind(), ErrorKind::Full, "{name}");
            relief(&store, &space);
            let again = fill(&space, 200_000 + end).0 - end - 200_000;
            assert!(again > 500, "{name}: {again} more");
            assert!(files(&env) <= store.space().unwrap().limit, "{name}");
        }
    }
}

/// What broke: a flush that did not fit was tried for ever, though no run of its keyspace could be
/// merged. In lockstep the put never returned.
#[test]
fn a_limit_below_what_is_used_is_full_at_once() {
    for lockstep in [false, true] {
        ends(move || {
            let env = MemEnv::new();
            let store = limited(&env).lockstep(lockstep).open().unwrap();
            let space = store.keyspace("large").unwrap();
            for number in 0..2200 {
                space.put(key(number), value(number, 0)).unwrap();
            }
            store.settle().unwrap();
            let small = store.keyspace("small").unwrap();
            for number in 0..20 {
                small.put(key(number), value(number, 0)).unwrap();
            }
            store.set_space_bytes(LIMIT / 2).unwrap();
            for number in 20..23 {
                let error = small.put(key(number), value(number, 0)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Full, "{error}");
            }
            store.set_space_bytes(2 * LIMIT).unwrap();
            for number in 20..200 {
                small.put(key(number), value(number, 0)).unwrap();
            }
            store.settle().unwrap();
            check(&small, 0..200, 0);
            check(&space, 0..2200, 0);
        });
    }
}

/// A snapshot keeps what was overwritten since. Writers wait for merges, not for snapshots.
#[test]
fn a_snapshot_keeps_its_space_until_it_goes() {
    let env = MemEnv::new();
    let store = limited(&env).open().unwrap();
    let space = store.keyspace("default").unwrap();
    let write = |round: u64| -> Result<(), Error> {
        (0..1900).try_for_each(|number| space.put(key(number), value(number, round)))
    };
    write(0).unwrap();
    let snapshot = store.snapshot();
    let stopped = (1..10).find_map(|round| write(round).err().map(|error| (round, error)));
    let (round, error) = stopped.expect("the snapshot holds 1.9 MB, and 1.9 MB are live");
    assert_eq!(error.kind(), ErrorKind::Full);
    assert!(round < 4, "{round}");
    assert!(files(&env) <= LIMIT);
    drop(snapshot);
    for round in 10..20 {
        write(round).unwrap();
    }
    check(&space, 0..1900, 19);
}

#[test]
fn limits_that_hold_nothing_are_refused() {
    let env = MemEnv::new();
    let error = limited(&env).memtable_bytes(1 << 20).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("16 memtables"), "{error}");
    // The limit on memory alone would make memtables of 4 MiB.
    for builder in [
        plain(&env).space_bytes(LIMIT).memory_bytes(64 << 20),
        plain(&env).memory_bytes(64 << 20).space_bytes(LIMIT),
    ] {
        drop(builder.open().unwrap());
    }
    let store = limited(&env).open().unwrap();
    assert_eq!(store.set_space_bytes(1000).unwrap_err().kind(), ErrorKind::InvalidArgument);
    drop(store);
    let store = plain(&env).open().unwrap();
    assert_eq!(store.space(), None);
    let error = store.set_space_bytes(LIMIT).unwrap_err();
    assert!(error.to_string().contains("open it with `space_bytes`"), "{error}");
}
