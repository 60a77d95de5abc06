//! The memory that stores hold.
//!
//! Promised: stores that share a cache do not see each other's blocks, and together keep to its
//! capacity; the blocks of a store leave the cache with the store. One limit on memory holds for
//! memtables of all keyspaces, merges, blocks, fence pointers, filters and profiles together, as
//! long as the tables leave room for the least cache. What memtables leave is freed. Filters by
//! size save reads for absent keys, with no more memory.

use crate::frame::small::{open, plain, small, threaded};
use lsmith::env::MemEnv;
use lsmith::{Builder, Cache, ErrorKind, Store};

/// A store that reads blocks through its cache, not through mapped files.
fn builder(env: &MemEnv) -> Builder {
    small(&env.clone().unmapped()).memtable_bytes(20_000).block_bytes(500)
}

/// Keys in random order.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn fill(store: &Store, entries: u64, value: &[u8]) {
    let space = store.keyspace("default").unwrap();
    for number in 0..entries {
        space.put(key(number), value).unwrap();
    }
}

#[test]
fn stores_share_a_cache_and_not_their_blocks() {
    let cache = Cache::new(50_000);
    assert_eq!((cache.bytes(), cache.capacity_bytes() >= 50_000), (0, true));
    let envs = [MemEnv::new(), MemEnv::new()];
    let stores = envs.each_ref().map(|env| builder(env).cache(&cache).open().unwrap());
    // The same numbers of tables, the same places of blocks.
    fill(&stores[0], 2000, &[1; 50]);
    fill(&stores[1], 2000, &[2; 50]);
    let read = |which: usize| {
        let space = stores[which].keyspace("default").unwrap();
        for number in 0..2000 {
            assert_eq!(space.get(key(number)).unwrap().unwrap(), vec![which as u8 + 1; 50]);
        }
    };
    read(0);
    let alone = cache.bytes();
    assert!(alone > 10_000);
    for _ in 0..3 {
        read(1);
        read(0);
    }
    assert!(cache.bytes() <= cache.capacity_bytes());
    assert_eq!(stores[0].cache_bytes(), cache.bytes());
    let [left, right] = stores;
    drop(left);
    let after = cache.bytes();
    assert!(after < alone, "what the closed store had is gone: {after} of {alone}");
    drop(right);
    assert_eq!(cache.bytes(), 0);
    let store = builder(&envs[0]).cache(&cache).open().unwrap();
    assert_eq!(store.keyspace("default").unwrap().get(key(7)).unwrap().unwrap(), vec![1; 50]);
}

#[test]
fn one_bound_holds_for_all_memory() {
    const BYTES: u64 = 2 << 20;
    for lockstep in [true, false] {
        let env = MemEnv::new();
        let open = || builder(&env).memory_bytes(BYTES).lockstep(lockstep).open().unwrap();
        let store = open();
        let space = store.keyspace("default").unwrap();
        assert_eq!(space.stats().memtable_bytes, BYTES / 16);
        let mut most = 0;
        for number in 0..60_000 {
            space.put(key(number), [3; 100]).unwrap();
            space.get(key(number / 2)).unwrap();
            if number % 500 == 0 {
                let held = store.memory();
                most = most.max(held.total());
                assert!(held.total() <= BYTES, "{held:?}");
                // Five sixteenths are for merges and the allocator.
                let others = held.total() - held.cache;
                let left = (BYTES / 16 * 11).saturating_sub(others).max(BYTES / 16);
                assert!(!lockstep || held.cache <= left, "{held:?}");
            }
        }
        assert!(most > BYTES / 16 * 7, "what there is is used: {most}");
        store.flush().unwrap();
        let stats = space.stats();
        let held = store.memory();
        assert_eq!(held.memtables, stats.memory_allocated_bytes);
        let tables = (stats.fence_bytes, stats.filter_bytes, stats.profile_bytes);
        assert_eq!((held.fences, held.filters, held.profiles), tables);
        assert!(held.fences > 0 && held.filters > 60_000 && held.profiles > 0);
        drop((space, store));
        let store = open();
        for number in 0..60_000 {
            store.keyspace("default").unwrap().get(key(number)).unwrap().unwrap();
        }
        let held = store.memory();
        assert!(held.total() <= BYTES && held.cache > BYTES / 16 * 3, "{held:?}");
    }
}

/// Even where they need more than there is: reads go on, with the least cache.
#[test]
fn the_cache_makes_room_for_tables() {
    const BYTES: u64 = 1 << 20;
    let env = MemEnv::new();
    let store = builder(&env).memory_bytes(BYTES).block_bytes(100).open().unwrap();
    let space = store.keyspace("default").unwrap();
    let read = |entries: u64| {
        for number in 0..entries {
            assert_eq!(space.get(key(number)).unwrap().unwrap(), vec![1; 50]);
        }
        store.memory()
    };
    fill(&store, 4000, &[1; 50]);
    let early = read(4000);
    assert!(early.cache > BYTES / 8, "{early:?}");
    fill(&store, 40_000, &[1; 50]);
    let late = read(40_000);
    assert!(late.fences + late.filters + late.profiles > BYTES / 16 * 11, "{late:?}");
    assert!((1..=BYTES / 16).contains(&late.cache), "{late:?}");
}

/// Each keyspace may fill a memtable of a sixteenth of the limit.
#[test]
fn memtables_of_many_keyspaces_stay_within_their_part() {
    const BYTES: u64 = 16 << 20;
    for lockstep in [true, false] {
        let store = plain(&MemEnv::new()).memory_bytes(BYTES).lockstep(lockstep).open().unwrap();
        let spaces: Vec<_> =
            (0..40).map(|space| store.keyspace(&format!("space-{space}")).unwrap()).collect();
        assert_eq!(spaces[0].stats().memtable_bytes, BYTES / 16);
        let mut most = 0;
        for number in 0..200_000 {
            spaces[number as usize % 40].put(key(number), [3; 100]).unwrap();
            if number % 500 == 0 {
                let held = store.memory();
                most = most.max(held.memtables + held.spare);
                assert!(held.total() <= BYTES, "{held:?}");
            }
        }
        // A write of each keyspace may come between a look and a seal.
        assert!(most <= BYTES / 16 * 5 + 40 * 32 * 1024, "{most}");
        assert!(most > BYTES / 16 * 2, "what there is is used: {most}");
    }
}

#[test]
fn tables_are_cut_before_their_filters_take_too_much() {
    let tables = |builder: Builder| {
        let (store, space) = open(builder.policy("minlatency(k=3)").lockstep(true));
        fill(&store, 60_000, &[7; 20]);
        space.merge_range::<&[u8]>(..).unwrap();
        assert_eq!(space.stats().entries, 60_000);
        space.stats().tables
    };
    let env = [MemEnv::new(), MemEnv::new()];
    assert_eq!(tables(small(&env[0])), 1);
    assert_eq!(tables(small(&env[1]).memory_bytes(1 << 20)), 4);
}

#[test]
fn memory_of_a_table_under_construction_is_counted() {
    let env = MemEnv::new();
    let store = small(&env).memory_bytes(64 << 20).memtable_bytes(20_000).open().unwrap();
    let space = store.keyspace("default").unwrap();
    fill(&store, 20_000, &[7; 100]);
    let over = std::sync::atomic::AtomicBool::new(false);
    let most = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let mut most = 0;
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                most = store.memory().merges.max(most);
            }
            most
        });
        for _ in 0..3 {
            space.merge_range::<&[u8]>(..).unwrap();
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        sampler.join().unwrap()
    });
    // A hash of eight bytes for each key, and blocks on their way to the file.
    assert!(most > 8 * 20_000, "{most}");
    store.settle().unwrap();
    assert_eq!(store.memory().merges, 0);
}

#[test]
fn memory_that_memtables_leave_is_freed_when_none_takes_it() {
    let store = threaded(&MemEnv::new()).memtable_bytes(4 << 20).open().unwrap();
    fill(&store, 100_000, &[7; 100]);
    store.flush().unwrap();
    store.settle().unwrap();
    let is_freed = || store.memory().spare == 0;
    for _ in 0..100 {
        if is_freed() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(is_freed(), "{:?}", store.memory());
}

#[test]
fn bounds_that_cannot_be_are_refused() {
    let env = MemEnv::new();
    let refused = |builder: Builder, told: &str| {
        let error = builder.open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains(told), "{error}");
    };
    refused(builder(&env).memory_bytes(1000), "expected at least 1048576");
    refused(builder(&env).memory_bytes(1 << 20).cache(&Cache::new(1000)), "a cache of");
}

/// Returns the blocks read per lookup of an absent key, and the bytes of filters, as means over the
/// life of a store.
fn lookups_of_absent_keys(policy: &str, by_size: bool) -> (f64, f64) {
    let env = MemEnv::new();
    let builder = builder(&env).cache_bytes(0).memtable_bytes(3000).policy(policy);
    let (store, space) = open(builder.filters_by_size(by_size));
    let mut filter_bytes = 0;
    let mut entries = 0;
    let mut lookups = 0;
    for number in 0..40_000 {
        space.put(key(number), [5; 20]).unwrap();
        // Between present keys, at any moment of the tree's life.
        if number >= 4000 {
            for lookup in 0..3 {
                assert_eq!(space.get(key(1 << 40 | number << 2 | lookup)).unwrap(), None);
                lookups += 1;
            }
        }
        if number >= 4000 && number % 100 == 0 {
            let stats = space.stats();
            filter_bytes += stats.filter_bytes;
            entries += stats.entries;
        }
    }
    let blocks = store.stats().get_blocks_absent as f64 / lookups as f64;
    (blocks, filter_bytes as f64 * 8.0 / entries as f64)
}

#[test]
fn filters_by_size_save_reads_with_no_more_memory() {
    for (policy, least) in
        [("minlatency(k=5)", 0.75), ("tiered(ratio=4)", 0.75), ("leveled(ratio=4, l0=4)", 0.9)]
    {
        let (equal, equal_bits) = lookups_of_absent_keys(policy, false);
        let (by_size, bits) = lookups_of_absent_keys(policy, true);
        println!("{policy}: {equal:.4} with {equal_bits:.2}, {by_size:.4} with {bits:.2} bits");
        assert!(by_size < least * equal, "{policy}: {by_size} for {equal}");
        assert!(bits < 1.05 * equal_bits, "{policy}: {bits} bits for {equal_bits}");
    }
}
