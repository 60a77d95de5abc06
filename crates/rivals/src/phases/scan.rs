//! Phases that read entries in order.

use super::part::{Laps, Part};
use super::read::Seen;
use anyhow::{Result, ensure};

/// Entries of a scan whose time is taken together: each gets an equal part.
const STRETCH: u64 = 1000;

/// Entries that a scan phase reads at least: small data are read several times.
const SCANNED_MIN: u64 = 2_000_000;

/// Sets an iterator to a random key and steps on `nexts` times.
pub(super) fn seek(part: &mut Part<'_>, nexts: u64) -> Result<u64> {
    let data = part.data;
    let mut seen = Seen::default();
    let mut laps = Laps::start();
    for _ in 0..part.ops {
        let key = data.order.key(part.rng.below(data.keys()));
        let mut entries = 0;
        data.store.scan(Some(&key), &mut |_, value| {
            seen.look(value);
            entries += 1;
            entries <= nexts
        })?;
        ensure!(entries > 0, "a seek to a key that is there found nothing");
        part.tally.note(laps.lap(), 1);
    }
    seen.bytes();
    Ok(part.ops)
}

/// Reads all entries, as often as it takes to read some millions.
pub(super) fn scan(part: &mut Part<'_>, reverse: bool) -> Result<u64> {
    let data = part.data;
    let mut scanned = 0;
    while scanned < SCANNED_MIN {
        let mut entries = 0;
        let mut seen = Seen::default();
        let mut laps = Laps::start();
        let tally = &mut part.tally;
        let mut visit = |_: &[u8], value: &[u8]| {
            entries += 1;
            seen.look(value);
            if entries % STRETCH == 0 {
                tally.note(laps.lap() / STRETCH as u32, STRETCH);
            }
            true
        };
        match reverse {
            false => data.store.scan(None, &mut visit)?,
            true => data.store.scan_reverse(&mut visit)?,
        }
        seen.bytes();
        let keys = data.keys();
        ensure!(entries == keys, "a scan met {entries} entries, expected {keys}");
        scanned += entries;
    }
    Ok(scanned)
}
