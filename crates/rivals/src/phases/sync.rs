//! Phases whose every write is synced to the device.

use super::part::{Laps, Part};
use crate::data::KEY_BYTES;
use anyhow::Result;
use std::sync::atomic::Ordering;

/// Puts new keys, each synced before the next one of the same thread.
pub(super) fn sync(part: &mut Part<'_>) -> Result<u64> {
    let data = part.data;
    let mut laps = Laps::start();
    for index in 0..part.ops {
        let key = data.order.key(part.first + index);
        data.store.put(&key, data.values.draw(&mut part.rng), true)?;
        part.tally.note(laps.lap(), 1);
    }
    data.keys.fetch_add(part.ops, Ordering::Relaxed);
    part.tally.user_bytes += part.ops * (KEY_BYTES + data.values.bytes()) as u64;
    Ok(part.ops)
}
