//! What lookups and range reads miss in a cache, in the store and in keyed simulation.
//!
//! Without a cache both miss exactly the same number of blocks, but for those in which a search of
//! the store finds nothing. With room for everything lookups miss exactly as many, and so do range
//! reads but for those blocks. With less room, blocks leave the simulation's cache whose last use
//! is longest ago. The store's cache also looks at how often a block was used, and misses less.

use crate::lockstep::{BLOCK_POLICIES, POLICIES};
use lsmith::env::MemEnv;
use lsmith::{Store, StoreStats};
use lsmith_lab::{Content, Costs, FileInputs, NoProgress, Options, run, simulate};
use lsmith_policy::Registry;
use lsmith_sim::{KeyedSim, KeyedWorkload, rank_key};
use lsmith_tree::{EntryKind, logical_bytes};
use lsmith_workload::{Rng, Workload};
use std::path::Path;
use std::sync::Arc;

/// Room for every block.
const ALL: u64 = 1 << 30;

/// Filters with so many bits never err here.
const FILTER_BITS: u8 = 40;

/// The policies whose blocks simulations know.
fn of_sorted_tables() -> impl Iterator<Item = &'static str> {
    let all = POLICIES.iter().chain(BLOCK_POLICIES).copied();
    all.filter(|policy| !Registry::builtin().build(policy).unwrap().needs().appends)
}

#[test]
fn blocks_of_append_tables_are_not_predicted() {
    let (stats, sim) = play("jungle", 0, true);
    let figures = sim.figures();
    assert_eq!((figures.read_cost_uncached, figures.scan_cost_uncached), (None, None));
    assert!(missed(&stats).0 > 500, "{stats:?}");
}

/// Writes, deletes, looks up and reads ranges at random. Returns the counts of the store, and the
/// simulation of the same.
fn play(policy: &str, cache_bytes: u64, with_scans: bool) -> (StoreStats, KeyedSim) {
    let mut rng = Rng::new(policy.len() as u64, 0);
    let store = Store::builder("/store")
        .env(Arc::new(MemEnv::new().unmapped()))
        .policy(policy)
        .memtable_bytes(16 << 10)
        .cache_bytes(cache_bytes)
        .filter_bits(FILTER_BITS)
        .filters_by_size(false)
        .lockstep(true)
        .open()
        .unwrap();
    let keyspace = store.keyspace("default").unwrap();
    let built = Registry::builtin().build(policy).unwrap();
    let mut sim = KeyedSim::new(&built, 16 << 10).with_scans().with_cache(cache_bytes);
    for _ in 0..8000 {
        let rank = rng.below(1500) as u32;
        let key = rank_key(u64::from(rank));
        let value = vec![7; rng.below(200) as usize];
        match rng.below(10) {
            0 if with_scans => {
                // So short that no reader reads ahead.
                let items = 1 + rng.below(20) as u32;
                let found = keyspace.range(&key[..]..).take(items as usize);
                found.for_each(|entry| drop(entry.unwrap()));
                sim.scan(rank, items);
            }
            0..4 => {
                let found = u64::from(keyspace.get(&key).unwrap().is_some());
                sim.note_reads([found, 1 - found, 0]);
                sim.lookup(rank);
            }
            4 => {
                keyspace.delete(&key).unwrap();
                sim.write(EntryKind::Delete, rank, logical_bytes(key.len(), 0) as u32);
            }
            _ => {
                keyspace.put(&key, &value).unwrap();
                sim.write(EntryKind::Put, rank, logical_bytes(key.len(), value.len()) as u32);
            }
        }
        if sim.is_full() {
            sim.flush(1, &mut |_| {}).unwrap();
        }
    }
    (store.stats(), sim)
}

/// Returns the blocks that lookups and range reads of the store read from files.
fn missed(stats: &StoreStats) -> (u64, u64) {
    let lookups = stats.get_blocks_found + stats.get_blocks_absent - stats.get_blocks_cached;
    (lookups, stats.scan_blocks - stats.scan_blocks_cached)
}

/// Returns the same of the simulation.
fn predicted(sim: &KeyedSim, stats: &StoreStats) -> (u64, Option<u64>) {
    let figures = sim.figures();
    let total = |mean: f64, reads: u64| (mean * reads as f64).round() as u64;
    let lookups = total(figures.read_cost_uncached.unwrap(), stats.gets);
    (lookups, figures.scan_cost_uncached.map(|mean| total(mean, stats.scans)))
}

#[test]
fn without_a_cache_both_miss_the_same_blocks() {
    for policy in of_sorted_tables() {
        let (stats, sim) = play(policy, 0, true);
        let (lookups, scans) = missed(&stats);
        let scans = scans - stats.scan_blocks_in_vain;
        assert_eq!(predicted(&sim, &stats), (lookups, Some(scans)), "{policy}: {stats:?}");
        assert!(lookups > 500 && scans > 500, "{policy}: {stats:?}");
    }
}

#[test]
fn with_room_for_everything_both_miss_each_block_once() {
    for policy in of_sorted_tables() {
        let (stats, sim) = play(policy, ALL, false);
        assert_eq!(predicted(&sim, &stats), (missed(&stats).0, None), "{policy}: {stats:?}");
        let (lookups, _) = missed(&stats);
        assert!(lookups > 30 && stats.get_blocks_cached > 500, "{policy}: {stats:?}");

        // A block that a range read has read in vain spares a lookup or another range read.
        let (stats, sim) = play(policy, ALL, true);
        let (lookups, scans) = missed(&stats);
        let (own_lookups, own_scans) = predicted(&sim, &stats);
        let own = own_lookups + own_scans.unwrap();
        assert!(lookups <= own_lookups, "{policy}: {own_lookups} {stats:?}");
        let most = own + stats.scan_blocks_in_vain;
        assert!((own..=most).contains(&(lookups + scans)), "{policy}: {own} {stats:?}");
    }
}

/// Plays `spec` with memtables of 64 KiB and caches that hold 4, 17 and 44 % of the data. Returns
/// how many times as many blocks the simulation misses as the store: of lookups, or else of range
/// reads.
fn ratios(policy: &str, spec: &str) -> [f64; 3] {
    const MEMTABLE_BYTES: u64 = 64 << 10;
    let workload = Workload::from_spec(&spec.parse().unwrap(), &FileInputs).unwrap();
    [100 << 10, 400 << 10, 1 << 20].map(|cache_bytes| {
        let keyed = KeyedWorkload::new(workload.clone()).with_cache(Some(cache_bytes));
        let env = Arc::new(MemEnv::new().unmapped());
        let usual = Options::default();
        let options = Options { memtable_bytes: MEMTABLE_BYTES, env, cache_bytes, ..usual };
        let dir = Path::new("/store");
        let store = run(policy, keyed.workload(), dir, &options, &NoProgress).unwrap().costs;
        let built = Registry::builtin().build(policy).unwrap();
        let content = Content::Keyed(&keyed);
        let simulated = simulate(&built, &content, MEMTABLE_BYTES, &mut |_| {}).unwrap();
        let own = simulated.report.costs;
        assert_eq!(own.read_cost_uncached.is_some(), store.read_cost_uncached.is_some());
        assert_eq!(own.scan_cost_uncached.is_some(), store.scan_cost_uncached.is_some());
        let missed = |costs: &Costs| costs.read_cost_uncached.or(costs.scan_cost_uncached).unwrap();
        assert!(missed(&own) > 0.3, "{policy}, {spec}");
        missed(&own) / missed(&store)
    })
}

#[test]
fn with_room_for_a_part_lookups_miss_a_little_less_in_the_store() {
    for (policy, spec) in [
        ("tiered(ratio=3)", "ycsb(b, records=20k, ops=40k, value=100B)"),
        ("leveled(ratio=3)", "ycsb(b, records=20k, ops=40k, value=100B)"),
        ("minlatency(k=3)", "ycsb(f, records=20k, ops=30k, value=100B)"),
        ("choose_best(ratio=3, rate=0.2)", "ycsb(b, records=20k, ops=40k, value=100B)"),
    ] {
        let found = ratios(policy, spec);
        let near = found.iter().all(|ratio| (0.99..1.1).contains(ratio));
        assert!(near, "{policy}, {spec}: {found:?}");
    }
}

/// Range reads use most blocks once. The store's cache then keeps blocks that were used twice.
#[test]
fn with_room_for_a_part_range_reads_miss_less_in_the_store() {
    let found = ratios("tiered(ratio=3)", "ycsb(e, records=20k, ops=8k, value=100B)");
    assert!(found.iter().all(|ratio| (1.0..1.35).contains(ratio)), "{found:?}");
}
