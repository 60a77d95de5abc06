//! Phases that write.

use super::part::{BATCH, Laps, Part};
use crate::data::{KEY_BYTES, Key};
use crate::meter::disk_bytes;
use anyhow::Result;
use std::sync::atomic::Ordering;

/// How often the files are measured over the last quarter of an overwrite.
const DISK_SAMPLES: u64 = 16;

/// Steps that visit every number below any smaller count once: a prime that no count reaches.
const STEP: u64 = 2_654_435_761;

/// The place of `index` in a fixed random order of the numbers below `count`.
pub(super) fn shuffle(index: u64, count: u64) -> u64 {
    (u128::from(index) * u128::from(STEP) % u128::from(count)) as u64
}

/// Puts every key once, one call each, or as many a call as the store must have.
pub(super) fn fill(part: &mut Part<'_>) -> Result<u64> {
    let first = part.first;
    put_all(part, part.data.store.gathers() as u64, |part, index| {
        part.data.order.key(first + index)
    })?;
    part.data.keys.fetch_add(part.ops, Ordering::Relaxed);
    Ok(part.ops)
}

/// Puts every key once, 100 a call.
pub(super) fn fill_batch(part: &mut Part<'_>) -> Result<u64> {
    let first = part.first;
    put_all(part, BATCH, |part, index| part.data.order.key(first + index))?;
    part.data.keys.fetch_add(part.ops, Ordering::Relaxed);
    Ok(part.ops)
}

/// Puts random keys that are there, and measures the files now and then towards the end.
pub(super) fn overwrite(part: &mut Part<'_>) -> Result<u64> {
    let keys = part.data.keys();
    put_all(part, part.data.store.gathers() as u64, |part, index| {
        let left = part.ops - index;
        let every = (part.ops / 4 / DISK_SAMPLES).max(1);
        if left <= part.ops / 4 && left % every == 0 {
            part.tally.disk_samples.push(disk_bytes(&part.data.dir));
        }
        part.data.order.key(part.rng.below(keys))
    })?;
    Ok(part.ops)
}

/// Deletes every key in an order that has nothing to do with age.
pub(super) fn delete(part: &mut Part<'_>) -> Result<u64> {
    let store = &part.data.store;
    let gathers = store.gathers();
    let mut batch = Vec::with_capacity(gathers);
    for index in 0..part.ops {
        let key = part.data.order.key(shuffle(part.first + index, part.data.keys()));
        let mut laps = Laps::start();
        if gathers == 1 {
            store.delete(&key)?;
        } else {
            batch.push((key, None));
            if batch.len() < gathers && index + 1 < part.ops {
                continue;
            }
            store.write(&batch)?;
            batch.clear();
        }
        part.tally.note(laps.lap(), 1);
    }
    part.tally.user_bytes += part.ops * KEY_BYTES as u64;
    Ok(part.ops)
}

/// Puts `part.ops` times what `key` gives, `batch` a call. The time of a call goes to each of its
/// writes.
fn put_all(
    part: &mut Part<'_>,
    batch: u64,
    mut key: impl FnMut(&mut Part<'_>, u64) -> Key,
) -> Result<()> {
    let store = &part.data.store;
    let values = &part.data.values;
    let mut writes = Vec::new();
    for index in 0..part.ops {
        let key = key(part, index);
        let value = values.draw(&mut part.rng);
        if batch == 1 {
            let mut laps = Laps::start();
            store.put(&key, value, false)?;
            part.tally.note(laps.lap(), 1);
            continue;
        }
        writes.push((key, Some(value)));
        if writes.len() as u64 == batch || index + 1 == part.ops {
            let mut laps = Laps::start();
            store.write(&writes)?;
            part.tally.note(laps.lap(), writes.len() as u64);
            writes.clear();
        }
    }
    part.tally.user_bytes += part.ops * (KEY_BYTES + values.bytes()) as u64;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_visits_every_number_once() {
        for count in [1, 2, 10, 1000, 4096] {
            let mut seen: Vec<u64> = (0..count).map(|index| shuffle(index, count)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..count), "{count}");
        }
    }
}
