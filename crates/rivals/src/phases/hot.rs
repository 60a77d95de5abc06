//! Gets of few keys that lie together, and whether what they read stays in memory beside merges.

use super::part::{Laps, Part, Tally};
use super::read::{Seen, TIMED};
use super::write::overwrite;
use crate::meter::thread_read_bytes;
use anyhow::{Result, anyhow, ensure};
use lsmith_workload::Rng;
use std::thread;

/// One key in so many is hot. The first byte of hot keys is small. So they share blocks.
const ONE_HOT_OF: u8 = 32;

/// Reads every hot key once. Then gets random hot keys: `part.ops` of them, or as long as another
/// thread takes to overwrite `part.ops` random keys. Counts the bytes that these gets read from the
/// device, apart from what merges read.
pub(super) fn run(part: &mut Part<'_>, beside_writes: bool) -> Result<u64> {
    let data = part.data;
    let is_hot = |number: &u64| data.order.key(*number)[0] < u8::MAX / ONE_HOT_OF + 1;
    let hot: Vec<u64> = (0..data.keys()).filter(is_hot).collect();
    ensure!(!hot.is_empty(), "expected hot keys, found none");
    let mut seen = Seen::default();
    for number in &hot {
        data.store.get(&data.order.key(*number), &mut |value| seen.look(value))?;
    }
    let before = thread_read_bytes()?;
    let gets = match beside_writes {
        true => gets_beside_writes(part, &hot, &mut seen)?,
        false => gets(part, &hot, &mut seen, |done, wanted| done == wanted)?,
    };
    part.tally.get_read_bytes = Some(thread_read_bytes()? - before);
    seen.bytes();
    Ok(gets)
}

fn gets_beside_writes(part: &mut Part<'_>, hot: &[u64], seen: &mut Seen) -> Result<u64> {
    let rng = Rng::new(part.ops, 1);
    let mut writes = Part { rng, tally: Tally::new()?, ..*part };
    let (gets, written) = thread::scope(|scope| {
        let writer = scope.spawn(|| overwrite(&mut writes));
        let gets = gets(part, hot, seen, |_, _| writer.is_finished());
        (gets, writer.join())
    });
    written.map_err(|_| anyhow!("the thread that writes panicked"))??;
    part.tally.user_bytes += writes.tally.user_bytes;
    gets
}

/// Gets random keys of `hot` until `is_done` returns true for the gets done and the gets wanted.
fn gets(
    part: &mut Part<'_>,
    hot: &[u64],
    seen: &mut Seen,
    is_done: impl Fn(u64, u64) -> bool,
) -> Result<u64> {
    let data = part.data;
    let mut done = 0;
    while !is_done(done, part.ops) {
        let key = data.order.key(hot[part.rng.below(hot.len() as u64) as usize]);
        let mut laps = (done % TIMED == 0).then(Laps::start);
        let found = data.store.get(&key, &mut |value| seen.look(value))?;
        if let Some(laps) = &mut laps {
            part.tally.note(laps.lap(), 1);
        }
        ensure!(found, "a key that is there was not found");
        done += 1;
    }
    Ok(done)
}
