//! The core workloads of YCSB: Cooper et al., "Benchmarking cloud serving systems with YCSB"
//! (2010).

use super::letter::Letter;
use super::part::{Laps, Part};
use super::read::Seen;
use super::write::shuffle;
use crate::data::KEY_BYTES;
use anyhow::{Result, ensure};
use lsmith_workload::Zipf;
use std::sync::atomic::Ordering;

/// How unevenly keys are asked for.
const SKEW: f64 = 0.99;

/// Most entries of a scan in workload E.
const SCAN_MAX: u64 = 100;

/// Does the thread's part of a workload.
pub(super) fn run(part: &mut Part<'_>, letter: Letter) -> Result<u64> {
    let data = part.data;
    let keys = data.keys();
    let zipf = Zipf::new(keys, SKEW);
    let mut laps = Laps::start();
    let mut seen = Seen::default();
    for _ in 0..part.ops {
        let rank = zipf.draw(&mut part.rng);
        let number = match letter {
            Letter::D => data.keys().saturating_sub(rank + 1),
            _ => shuffle(rank, keys),
        };
        let write = part.rng.below(100) < letter.writes();
        if letter == Letter::E && !write {
            scan(part, number, &mut seen)?;
        } else if !write || letter == Letter::F {
            let found = data.store.get(&data.order.key(number), &mut |value| seen.look(value))?;
            // The latest key may have been given out to another thread that has not put it yet.
            ensure!(found || letter == Letter::D, "a key that is there was not found");
        }
        if write {
            let written = match letter.inserts() {
                true => data.keys.fetch_add(1, Ordering::Relaxed),
                false => number,
            };
            data.store.put(&data.order.key(written), data.values.draw(&mut part.rng), false)?;
            part.tally.user_bytes += (KEY_BYTES + data.values.bytes()) as u64;
        }
        part.tally.note(laps.lap(), 1);
    }
    seen.bytes();
    Ok(part.ops)
}

/// Reads up to 100 entries from a key on.
fn scan(part: &mut Part<'_>, number: u64, seen: &mut Seen) -> Result<()> {
    let data = part.data;
    let limit = 1 + part.rng.below(SCAN_MAX);
    let mut entries = 0;
    data.store.scan(Some(&data.order.key(number)), &mut |_, value| {
        seen.look(value);
        entries += 1;
        entries < limit
    })?;
    ensure!(entries > 0, "a scan from a key that is there found nothing");
    Ok(())
}
