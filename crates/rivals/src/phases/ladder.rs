//! Reads and overwrites of random keys, at a given share of reads.

use super::part::{Laps, Part};
use super::read::Seen;
use crate::data::KEY_BYTES;
use anyhow::{Result, ensure};

/// Does the thread's part of `percent` gets and puts for the rest. All keys are there.
pub(super) fn run(part: &mut Part<'_>, percent: u64) -> Result<u64> {
    let data = part.data;
    let keys = data.keys();
    let mut laps = Laps::start();
    let mut seen = Seen::default();
    for _ in 0..part.ops {
        let key = data.order.key(part.rng.below(keys));
        if part.rng.below(100) < percent {
            let found = data.store.get(&key, &mut |value| seen.look(value))?;
            ensure!(found, "a key that is there was not found");
        } else {
            data.store.put(&key, data.values.draw(&mut part.rng), false)?;
            part.tally.user_bytes += (KEY_BYTES + data.values.bytes()) as u64;
        }
        part.tally.note(laps.lap(), 1);
    }
    seen.bytes();
    Ok(part.ops)
}
