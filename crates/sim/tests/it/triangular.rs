//! Triangular merges against the theory of their source.

use crate::common::{policy, unit};
use crate::fluid::workload;
use lsmith_sim::{FluidWorkload, KeyedSim, KeyedWorkload, Parts, simulate_fluid, simulate_keyed};
use lsmith_tree::EntryKind;
use lsmith_workload::Rng;

/// Memtables that go down from level 0 together.
const BATCH: u64 = 8;

/// Entries of a memtable, and their bytes.
const ENTRIES: u64 = 64;
const ENTRY_BYTES: u32 = 100;

/// All numbers below `count`, in random order.
fn shuffled(count: u64) -> Vec<u32> {
    let mut rng = Rng::new(3, 0);
    let mut numbers: Vec<u32> = (0..count as u32).collect();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, rng.below(last as u64 + 1) as usize);
    }
    numbers
}

/// No merge is made in pieces.
const UNLIMITED: &str = "triangular(max_bytes=1024GiB, max_files=1000M, score=ratio)";

/// Writes new keys, given in order. Calls `flushed` with what was counted after each flush.
fn write(spec: &str, ranks: &[u32], mut flushed: impl FnMut(Parts)) {
    let mut sim = KeyedSim::new(&policy(spec), ENTRIES * u64::from(ENTRY_BYTES));
    let mut live_bytes = 0;
    for rank in ranks {
        sim.write(EntryKind::Put, *rank, ENTRY_BYTES);
        live_bytes += u64::from(ENTRY_BYTES);
        if sim.is_full() {
            sim.flush(live_bytes, &mut |_| {}).expect("legal plans");
            flushed(sim.figures().parts);
        }
    }
}

/// Level 0 goes down eight tables at a time, and batches of equal size carry like the digits of a
/// binary number: over `2^L` batches, the mean of two to the number of trailing ones.
#[test]
fn with_keys_at_random_merges_write_one_and_half_a_byte_per_level() {
    let mut levels = 3;
    write(UNLIMITED, &shuffled((BATCH * ENTRIES) << 9), |parts| {
        if parts.flushes == BATCH << levels {
            let twice = 2 * parts.merge_written_bytes;
            assert_eq!(twice, (2 + levels) * parts.flush_bytes, "{levels} levels");
            levels += 1;
        }
    });
    assert_eq!(levels, 10);
}

/// The same by size alone, up to the eleven levels of the text: 6.5.
#[test]
fn by_size_merges_write_one_and_half_a_byte_per_level() {
    for levels in 3..=11 {
        let parts = unit(UNLIMITED, (BATCH << levels) as usize).figures.parts;
        let twice = 2 * parts.merge_written_bytes;
        assert_eq!(twice, (2 + levels) * parts.flush_bytes, "{levels} levels");
    }
}

/// Tables that follow each other in key order are never rewritten.
#[test]
fn with_ascending_keys_everything_is_moved() {
    for score in ["ratio", "bytes"] {
        let ranks: Vec<u32> = (0..64 * 1000).collect();
        let mut last = Parts::default();
        write(&format!("triangular(score={score})"), &ranks, |parts| last = parts);
        assert_eq!((last.flushes, last.merge_written_bytes), (1000, 0), "{score}");
        assert!(last.moved_bytes > 0, "{score}");
    }
}

/// Expected sizes lead to the same merges as keys do.
#[test]
fn expected_sizes_cost_what_keys_cost() {
    for spec in ["triangular", "triangular(score=bytes)"] {
        for load in ["load(keys=100k, value=100B)", "update(keys=60k, ops=120k, dist=uniform)"] {
            let [keyed, fluid] = {
                let keyed = KeyedWorkload::new(workload(load));
                let fluid = FluidWorkload::new(&workload(load)).expect("a fluid workload");
                let memtable = 50_000;
                let keyed = simulate_keyed(&policy(spec), &keyed, memtable, &mut |_| {});
                let fluid = simulate_fluid(&policy(spec), &fluid, memtable, &mut |_| {});
                [keyed, fluid].map(|done| done.expect("legal plans").figures.write_cost_system)
            };
            let off = fluid / keyed - 1.0;
            assert!(off.abs() < 0.03, "{spec} {load}: {fluid} for {keyed}");
        }
    }
}
