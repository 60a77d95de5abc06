//! One limit on the memory of several stores.
//!
//! Promised: stores with one limit stay within it together. A store that nobody writes to gives up
//! its memtable when others need the memory. A store that cannot flush does not stop the others.
//! What a store held is free when it closes.

use crate::frame::scripted::{Call, Op, Scripted};
use crate::frame::small::plain;
use crate::frame::watchdog::{ends, wait_until};
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, ErrorKind, Keyspace, Memory, PersistMode, Store, Threads};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const MIB: u64 = 1 << 20;

fn put(space: &Keyspace, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        space.put(key, [number as u8; 1000]).unwrap();
    }
}

fn open_one(builder: Builder) -> (Store, Keyspace) {
    let store = builder.open().unwrap();
    let space = store.keyspace("default").unwrap();
    (store, space)
}

/// Opens `count` stores with one limit of `bytes`, and two threads for all.
fn open_all(count: usize, bytes: u64) -> (Memory, Vec<(Store, Keyspace)>) {
    let (memory, threads) = (Memory::new(bytes), Threads::new(2).unwrap());
    let builder = || plain(&MemEnv::new().unmapped()).memory(&memory).shared_threads(&threads);
    let stores = (0..count).map(|_| open_one(builder())).collect();
    (memory, stores)
}

fn memtables(stores: &[(Store, Keyspace)]) -> u64 {
    stores.iter().map(|(store, _)| store.memory().memtables).sum()
}

#[test]
fn idle_stores_make_room_for_an_active_one() {
    let (memory, stores) = open_all(7, 16 * MIB);
    let (active, idle) = stores.split_first().unwrap();
    for (_, space) in idle {
        put(space, 0..400);
    }
    let before = memtables(idle);
    assert!(before > 2 * MIB, "{before}");
    for round in 0..40 {
        put(&active.1, 500 * round..500 * (round + 1));
        assert!(memory.bytes() <= memory.limit_bytes(), "{memory:?}");
    }
    let after = memtables(idle);
    assert!(after < before / 4 * 3, "idle stores hold {after} of {before} bytes");
    for (number, (store, space)) in stores.iter().enumerate() {
        store.settle().unwrap();
        assert_eq!(space.iter().count(), if number == 0 { 20_000 } else { 400 });
    }
}

#[test]
fn writers_of_many_stores_stay_within_one_limit() {
    const STORES: usize = 12;
    let (memory, stores) = open_all(STORES, 24 * MIB);
    let most = thread::scope(|scope| {
        let writers: Vec<_> = stores
            .iter()
            .map(|(_, space)| {
                scope.spawn(|| {
                    for round in 0..10 {
                        put(space, 500 * round..500 * (round + 1));
                        space.iter().for_each(|entry| drop(entry.unwrap()));
                    }
                })
            })
            .collect();
        let mut most = 0;
        while writers.iter().any(|writer| !writer.is_finished()) {
            // One count of all stores: a sum over stores would see some bytes twice.
            most = memory.bytes().max(most);
            thread::yield_now();
        }
        most
    });
    assert!(most <= memory.limit_bytes(), "{most}");
    assert!(most > memory.limit_bytes() / 3, "what there is is used: {most}");
    for (store, space) in &stores {
        store.settle().unwrap();
        assert_eq!(space.iter().count(), 5000);
        assert_eq!(store.cache_bytes(), stores[0].0.cache_bytes(), "there is one cache");
    }
    drop(stores);
    assert_eq!(memory.bytes(), 0, "{memory:?}");
}

#[test]
fn store_that_cannot_flush_does_not_stop_the_others() {
    let (memory, threads) = (Memory::new(16 * MIB), Threads::new(2).unwrap());
    let full = MemEnv::with_capacity(8 * MIB);
    let open_in = |env: &MemEnv| {
        open_one(plain(env).log_bytes(64 << 10).memory(&memory).shared_threads(&threads))
    };
    let (stuck, stuck_space) = open_in(&full);
    let value = vec![1; 1000];
    let failed = (0..100_000_u64).find_map(|n| stuck_space.put(n.to_be_bytes(), &value).err());
    assert_eq!(failed.unwrap().kind(), ErrorKind::Full);
    let (store, space) = open_in(&MemEnv::new());
    put(&space, 0..20_000);
    store.settle().unwrap();
    assert_eq!(space.iter().count(), 20_000);
    drop((stuck, stuck_space));
}

/// What broke: memtables that waited in a poisoned store counted as memory that comes free, and
/// writers of other stores waited for them for ever.
#[test]
fn a_poisoned_store_does_not_stop_the_others() {
    ends(|| {
        let (memory, threads) = (Memory::new(16 * MIB), Threads::new(1).unwrap());
        let open = |env: Arc<dyn Env>, memtable_bytes| {
            let builder = plain(&MemEnv::new()).env(env).memory(&memory).shared_threads(&threads);
            builder.memtable_bytes(memtable_bytes).open().unwrap()
        };
        let [is_gone, is_over] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let [gone, over] = [&is_gone, &is_over].map(Arc::clone);
        // The only thread does not finish its table before the store is poisoned.
        let script = move |call: &mut Call<'_>| match call.op {
            Op::Write if call.is_of("table") => {
                wait_until(|| over.load(Ordering::SeqCst));
                Ok(())
            }
            Op::LogSync if gone.load(Ordering::SeqCst) => {
                Err(io::Error::other("the device is gone"))
            }
            _ => Ok(()),
        };
        let poisoned = open(Arc::new(Scripted::new(MemEnv::new(), script)), 256 << 10);
        for name in ["merged", "waits"] {
            put(&poisoned.keyspace(name).unwrap(), 0..700);
        }
        is_gone.store(true, Ordering::SeqCst);
        poisoned.persist(PersistMode::SyncAll).unwrap_err();
        is_over.store(true, Ordering::SeqCst);
        // Its memtable is larger than the limit lets it grow.
        let store = open(Arc::new(MemEnv::new()), 12 << 20);
        let space = store.keyspace("default").unwrap();
        put(&space, 0..20_000);
        store.settle().unwrap();
        assert_eq!(space.iter().count(), 20_000);
        assert_eq!(poisoned.flush().unwrap_err().kind(), ErrorKind::Poisoned);
    });
}

#[test]
fn store_in_lockstep_shares_no_limit() {
    let memory = Memory::new(16 * MIB);
    let error = plain(&MemEnv::new()).memory(&memory).lockstep(true).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("a store in lockstep shares no limit"), "{error}");
    let error = plain(&MemEnv::new()).memory(&Memory::new(1000)).open().unwrap_err();
    assert!(error.to_string().contains("expected at least 1048576"), "{error}");
}
