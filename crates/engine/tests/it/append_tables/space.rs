//! The space of trees while a writer goes on at full speed.
//!
//! Promised: merges of trees keep up with writers, because writers wait for them. So the files of a
//! store in a free run take hardly more than in lockstep. Bytes are counted, and no time.

use crate::dice::Dice;
use crate::frame::small::{open, plain};
use lsmith::env::MemEnv;

const KEYS: u64 = 10_000;
const VALUE_BYTES: usize = 100;
const MEMTABLE_BYTES: u64 = 64 << 10;

/// Loads all keys and then updates them at random, `rounds` times each. Returns the greatest
/// physical bytes of tables, over the bytes of the values.
fn peak(policy: &str, lockstep: bool, rounds: u64) -> f64 {
    let store = plain(&MemEnv::new()).policy(policy);
    let store = store.memtable_bytes(MEMTABLE_BYTES).threads(2).lockstep(lockstep);
    let (store, space) = open(store);
    let mut dice = Dice::new(1);
    let value = dice.bytes(VALUE_BYTES);
    let mut most = 0;
    for write in 0..KEYS * (1 + rounds) {
        let key = if write < KEYS { write } else { dice.below(KEYS as usize) as u64 };
        // Hashed, so that the load is in random order.
        let key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        space.put(key.to_be_bytes(), &value).unwrap();
        if write.is_multiple_of(100) {
            most = most.max(space.stats().table_bytes);
        }
    }
    let stats = store.stats();
    assert_eq!((stats.plans_failed, stats.plans_refused), (0, 0));
    store.settle().unwrap();
    most as f64 / (KEYS * VALUE_BYTES as u64) as f64
}

/// What broke: a memtable was flushed before any tree went down or was rewritten. As long as a
/// writer went on, dead bytes piled up.
#[test]
fn dead_bytes_do_not_pile_up_while_a_writer_goes_on() {
    for policy in ["jungle(c=2)", "jungle(space=1.5, ratio=4)"] {
        let lockstep = peak(policy, true, 20);
        let free = peak(policy, false, 20);
        assert!(free < 1.2 * lockstep, "{policy}: {free} in a free run, {lockstep} in lockstep");
    }
}
