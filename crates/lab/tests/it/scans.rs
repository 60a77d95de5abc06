//! Range reads cost the same in the store and in keyed simulation.

use crate::lockstep::{BLOCK_POLICIES, POLICIES};
use lsmith::Store;
use lsmith::env::MemEnv;
use lsmith_lab::{Comparison, Content, FileInputs, NoProgress, Options, ScanCosts, run, simulate};
use lsmith_policy::Registry;
use lsmith_sim::{KeyedSim, KeyedWorkload, ScanCost, rank_key};
use lsmith_tree::{EntryKind, logical_bytes};
use lsmith_workload::{Rng, Workload};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Plays `workload` on the store and in keyed simulation, and compares what range reads looked at.
fn check(policies: &[&str], workload: &str, memtable_bytes: u64) {
    let workload = Workload::from_spec(&workload.parse().unwrap(), &FileInputs).unwrap();
    let keyed = KeyedWorkload::new(workload);
    let workload = keyed.workload();
    for policy in policies {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { memtable_bytes, ..Options::default() };
        let store = run(*policy, workload, dir.path(), &options, &NoProgress).unwrap();
        let built = Registry::builtin().build(policy).unwrap();
        let content = Content::Keyed(&keyed);
        let simulated = simulate(&built, &content, memtable_bytes, &mut |_| {}).unwrap();
        let name = format!("{policy}, {}", workload.spec());
        let predicted = simulated.report.costs;
        assert_eq!(predicted.scan_cost_mean, store.costs.scan_cost_mean, "{name}");
        assert_eq!(predicted.scan_cost_measured, store.costs.scan_cost_measured, "{name}");
        let reads = store.range_reads;
        assert!(reads.scans > 400 && reads.runs > 0 && reads.blocks > reads.runs, "{name}");
        assert!(reads.blocks_in_vain <= 2 * reads.runs, "{name}: {reads:?}");
    }
}

#[test]
fn short_scans_of_hashed_keys() {
    let some = ["tiered(ratio=3)", "leveled(ratio=3)", "minlatency(k=3)"];
    check(&some, "ycsb(e, records=6k, ops=2k, value=100B)", 32 << 10);
}

#[test]
fn short_scans_under_policies_that_count_in_blocks() {
    let some = ["rr(ratio=3, rate=0.2)", "mixed(ratio=3, rate=0.2, reuse=false)"];
    check(&some, "ycsb(e, records=6k, ops=2k, value=100B)", 32 << 10);
}

#[test]
fn short_scans_among_entries_that_have_expired() {
    let some = ["tiered(ratio=3)", "leveled(ratio=3)", "minlatency(k=3)", "fifo"];
    check(&some, "ycsb(e, records=6k, ops=2k, value=100B, expire=4k)", 32 << 10);
}

/// Puts, overwrites, deletes, inserts, removes and range reads at random, of values of many sizes.
/// What the store returns is what a plain map holds, and what it looked at is what the simulation
/// says.
fn check_mixed(policy: &str, seed: u64) {
    let mut rng = Rng::new(seed, 0);
    let env = Arc::new(MemEnv::new());
    let builder = Store::builder("/store").env(env).policy(policy).memtable_bytes(16 << 10);
    let store = builder.lockstep(true).open().unwrap();
    let keyspace = store.keyspace("default").unwrap();
    let built = Registry::builtin().build(policy).unwrap();
    let mut sim = KeyedSim::new(&built, 16 << 10).with_scans();
    let mut plain: BTreeMap<u32, usize> = BTreeMap::new();
    for _ in 0..6000 {
        // Keys below 500 are put and deleted, others inserted and removed.
        let rank = rng.below(1000) as u32;
        let key = rank_key(u64::from(rank));
        let mut value = vec![7; rng.below(300) as usize];
        if rng.below(40) == 0 {
            value.resize(6000, 7);
        }
        let is_present = plain.contains_key(&rank);
        let bytes = logical_bytes(key.len(), value.len()) as u32;
        let tombstone = logical_bytes(key.len(), 0) as u32;
        match rng.below(4) {
            0 => {
                let items = 1 + rng.below(40) as u32;
                let found = keyspace.range(&key[..]..).take(items as usize);
                let found: Vec<_> = found.map(|entry| entry.unwrap().1.len()).collect();
                let expected = plain.range(rank..).take(items as usize);
                assert_eq!(found, expected.map(|(_, bytes)| *bytes).collect::<Vec<_>>());
                sim.scan(rank, items);
                continue;
            }
            1 if rank < 500 => {
                keyspace.delete(&key).unwrap();
                plain.remove(&rank);
                sim.write(EntryKind::Delete, rank, tombstone);
            }
            _ if rank < 500 => {
                keyspace.put(&key, &value).unwrap();
                plain.insert(rank, value.len());
                sim.write(EntryKind::Put, rank, bytes);
            }
            _ if is_present => {
                keyspace.delete_single_unchecked(&key).unwrap();
                plain.remove(&rank);
                sim.write(EntryKind::Remove, rank, tombstone);
            }
            _ => {
                keyspace.put_new_unchecked(&key, &value).unwrap();
                plain.insert(rank, value.len());
                sim.write(EntryKind::Insert, rank, bytes);
            }
        }
        if sim.is_full() {
            sim.flush(1, &mut |_| {}).unwrap();
        }
    }
    let stats = store.stats();
    let per_scan = |count: u64| count as f64 / stats.scans as f64;
    let blocks = per_scan(stats.scan_blocks - stats.scan_blocks_in_vain);
    let runs = per_scan(stats.scan_runs);
    // The simulation does not know the blocks of append tables.
    let measured = ScanCost { runs, blocks: (!built.needs().appends).then_some(blocks) };
    assert_eq!(sim.figures().scan_cost_measured, Some(measured), "{policy}");
    assert!(stats.scans > 1000 && measured.runs > 0.9, "{policy}: {stats:?}");
}

#[test]
fn scans_among_deletes_and_values_of_many_sizes() {
    let keeps = |policy: &&&str| !Registry::builtin().build(policy).unwrap().needs().drops;
    let policies = POLICIES.iter().chain(BLOCK_POLICIES).filter(keeps);
    for (seed, policy) in (1..).zip(policies) {
        check_mixed(policy, seed);
    }
}

/// Expected sizes and formulas have the same `scan_cost_mean` as the store, and it says what range
/// reads measure. These come after the load, when the tree is at its largest.
#[test]
fn predictions_of_range_reads() {
    let spec = "ycsb(e, records=60k, ops=3k, value=100B)";
    let workload = Workload::from_spec(&spec.parse().unwrap(), &FileInputs).unwrap();
    let keyed = KeyedWorkload::new(workload);
    for (policy, allowed) in [("tiered(ratio=4)", 0.05), ("leveled(ratio=4, l0=1)", 0.1)] {
        let built = vec![Registry::builtin().build(policy).unwrap()];
        let options = Options { memtable_bytes: 256 << 10, ..Options::default() };
        let dir = std::env::temp_dir();
        let comparison = Comparison {
            policies: &built,
            workload: &keyed,
            dir: &dir,
            options: &options,
            free: false,
            runs: 1,
        };
        let mut rows = Vec::new();
        comparison.run(&NoProgress, &mut |row| rows.push(row)).unwrap();
        let row = &rows[0];
        assert_eq!(row.errors.keyed.scan_cost_mean, Some(0.0));
        assert_eq!(row.errors.keyed.scan_cost_measured, Some(0.0));
        let store = row.engine.costs;
        assert_eq!(store.scan_cost_mean.runs, store.read_cost_mean);
        let off = row.errors.fluid.unwrap().scan_cost_mean.unwrap();
        assert!(off.abs() < 0.02, "{policy}: fluid is {off} off");
        let blocks = store.scan_cost_mean.blocks.unwrap();
        let formula = row.model.unwrap().scan_cost_mean.blocks.unwrap();
        assert!((formula / blocks - 1.0).abs() < allowed, "{policy}: {formula}, {blocks}");
        assert_eq!(row.unit.unwrap().costs.scan_cost_mean.blocks, None);
        let measured = store.scan_cost_measured.unwrap();
        let passed = |costs: ScanCosts| costs.blocks.unwrap() - costs.runs;
        let ratio = passed(measured) / passed(store.scan_cost_mean);
        assert!((0.9..1.15).contains(&ratio), "{policy}: {measured:?} {store:?}");
    }
}
