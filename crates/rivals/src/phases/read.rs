//! Phases that look up keys.

use super::part::{BATCH, Laps, Part};
use crate::data::Key;
use anyhow::{Result, ensure};
use std::hint::black_box;

/// One get of so many is timed, so that the clock weighs little.
pub(super) const TIMED: u64 = 8;

/// Numbers from here on are never given to a key that is put.
const ABSENT: u64 = 1 << 40;

/// Bytes of a line of memory.
const LINE_BYTES: usize = 64;

/// Values that a phase has read.
#[derive(Debug, Default)]
pub(super) struct Seen {
    bytes: usize,
    lines: u8,
}

impl Seen {
    /// Looks at `value` as its user does: at every line of it.
    pub(super) fn look(&mut self, value: &[u8]) {
        self.bytes += value.len();
        self.lines ^= value.iter().step_by(LINE_BYTES).fold(0, |all, byte| all ^ byte);
    }

    /// Returns the bytes of the values.
    pub(super) fn bytes(&self) -> usize {
        // So the compiler cannot leave the looks out.
        black_box(self.lines);
        self.bytes
    }
}

/// Gets random keys that are there.
pub(super) fn get_present(part: &mut Part<'_>) -> Result<u64> {
    get_all(part, 0, true)
}

/// Gets keys that are not there, but lie among present keys.
pub(super) fn get_absent(part: &mut Part<'_>) -> Result<u64> {
    get_all(part, ABSENT, false)
}

fn get_all(part: &mut Part<'_>, above: u64, present: bool) -> Result<u64> {
    let data = part.data;
    let keys = data.keys();
    let mut seen = Seen::default();
    for index in 0..part.ops {
        let key = data.order.key(above + part.rng.below(keys));
        let mut laps = (index % TIMED == 0).then(Laps::start);
        let found = data.store.get(&key, &mut |value| seen.look(value))?;
        if let Some(laps) = &mut laps {
            part.tally.note(laps.lap(), 1);
        }
        ensure!(found == present, "a key that was {}put was {}found", not(present), not(found));
    }
    let bytes = seen.bytes();
    let expected = if present { part.ops as usize * data.values.bytes() } else { 0 };
    ensure!(bytes == expected, "{bytes} bytes of values, expected {expected}");
    Ok(part.ops)
}

fn not(yes: bool) -> &'static str {
    if yes { "" } else { "not " }
}

/// Gets random keys that are there, 100 a call. The time of a call goes in equal parts to its keys.
pub(super) fn multi_get(part: &mut Part<'_>) -> Result<u64> {
    let data = part.data;
    let mut keys: Vec<Key> = Vec::new();
    let mut seen = Seen::default();
    let mut done = 0;
    while done < part.ops {
        let count = BATCH.min(part.ops - done);
        keys.clear();
        keys.extend((0..count).map(|_| data.order.key(part.rng.below(data.keys()))));
        let mut laps = Laps::start();
        let found = data.store.multi_get(&keys, &mut |value| seen.look(value))?;
        part.tally.note(laps.lap() / count as u32, count);
        ensure!(found as u64 == count, "{found} keys of {count} were found");
        done += count;
    }
    seen.bytes();
    Ok(done)
}
