//! The memory that a merge takes.
//!
//! Promised: at most 2.2 MB, and four times what its tables take while they are open: fence
//! pointers, filter and profile of a table, and the hashes of its keys, are built in memory. That
//! is a part of a percent of the tables, except under policies that cut tables at any key. The
//! entries themselves go through a few blocks and one buffer, however many there are.

use crate::dice::Dice;
use crate::frame::small::open;
use lsmith::{MemoryUse, Store};
use lsmith_fuzz::peak_bytes;

const VALUE_BYTES: usize = 1000;
/// The runs that are merged into one.
const RUNS: u32 = 4;

/// Returns the most memory that is held while `bytes` of entries are merged, on top of what was
/// held before.
fn peak(bytes: usize, policy: &str, codec: &str) -> (usize, MemoryUse) {
    let dir = tempfile::tempdir().unwrap();
    // In lockstep all is done by this thread, whose memory is counted.
    let builder = Store::builder(dir.path()).lockstep(true).policy("none").cache_bytes(0);
    let (store, space) = open(builder.compression(codec));
    let mut dice = Dice::new(1);
    let entries = (bytes / VALUE_BYTES) as u32;
    for run in 0..RUNS {
        let mut load = space.bulk_load().unwrap();
        // Each run spans all keys.
        for number in (run..entries).step_by(RUNS as usize) {
            load.put(number.to_be_bytes(), dice.bytes(VALUE_BYTES)).unwrap();
        }
        load.finish().unwrap();
    }
    assert_eq!(space.stats().runs, u64::from(RUNS));
    let before = store.stats().merge_bytes_written;
    let ((), peak) = peak_bytes(|| {
        space.set_merge_policy(policy).unwrap();
        space.merge().unwrap();
    });
    assert!(store.stats().merge_bytes_written - before >= bytes as u64 / 2);
    (peak, store.memory())
}

#[test]
fn the_memory_of_a_merge_is_bounded_by_that_of_open_tables() {
    let leveled = "leveled(ratio=4, table=1MB)";
    for (policy, codec) in
        [("none", "none"), ("tiered(ratio=4)", "lz4"), (leveled, "none"), ("full", "none")]
    {
        for bytes in [8 << 20, 64 << 20] {
            let (peak, tables) = peak(bytes, policy, codec);
            let told = format!("{policy}, {codec}: {peak} bytes to merge {bytes}, {tables:?}");
            eprintln!("{told}");
            assert!(peak < 2_200_000 + 4 * tables.total() as usize, "{told}");
        }
    }
}
