//! The memory that stores hold.
//!
//! Promised: stores that share a cache do not see each other's blocks, and together keep to its
//! capacity; the blocks of a store leave the cache with the store. One bound on memory holds for
//! memtables, blocks, fence pointers, filters and profiles together, as long as the tables leave
//! room for the least cache. Filters by size save reads for absent keys, with no more memory.

use crate::frame::small::{open, small};
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
            }
        }
        assert!(most > BYTES / 2, "what there is is used: {most}");
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
        assert!(held.total() <= BYTES && held.cache > BYTES / 2, "{held:?}");
    }
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
