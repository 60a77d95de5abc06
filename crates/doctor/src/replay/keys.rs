//! How many different keys there are, by what compactions dropped.
//!
//! If each of `K` keys is written as often as another, `R` writes leave `K (1 - exp(-R / K))`
//! entries when they are merged. A table of a flush so says how many writes it holds, the table
//! that comes out of a compaction holds the writes of its inputs, and its entries say `K`. No
//! policy is simulated for it, so an error of the replay does not hide in the number of keys.

use super::flushes::Flushes;
use crate::{Family, Output};
use std::collections::BTreeMap;

/// Compactions of inputs with a greater part of deletes do not count: which of them are dropped
/// depends on what lies below.
const DELETES_MAX: f64 = 0.1;

/// Writes per key beyond which a range is full.
const WRITES_MAX: f64 = 20.0;

/// Steps of the search. Each halves the range of the logarithm, so the last ones change nothing.
const STEPS: u32 = 40;

/// What a table holds.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Writes that came together in it.
    writes: f64,
    /// How many of them delete.
    deletes: f64,
    /// Where its keys begin and end, as a share of all keys.
    keys: (f64, f64),
}

/// Returns the number of keys with which the compactions of `family` would have written as many
/// entries as the LOG says. If they dropped nothing, it is so great that hardly a key comes twice.
pub(super) fn keys(family: &Family, flushes: &Flushes) -> f64 {
    // A flush has no key twice, so its range has that many keys.
    let least =
        flushes.flushes.iter().map(|flush| flush.entries / flush.width()).fold(1.0, f64::max);
    let (mut few, mut many) = (least.ln(), (flushes.entries().max(least) * 64.0).ln());
    let least_deletes = written(family, flushes, many.exp(), DELETES_MAX);
    let deletes_max = if least_deletes.1 > 0.0 { DELETES_MAX } else { 1.0 };
    for _ in 0..STEPS {
        let keys = f64::midpoint(few, many);
        let (expected, counted) = written(family, flushes, keys.exp(), deletes_max);
        *(if expected < counted { &mut few } else { &mut many }) = keys;
    }
    f64::midpoint(few, many).exp()
}

/// Returns the entries that compactions should have written if there are `keys` keys, and the
/// entries that they wrote.
fn written(family: &Family, flushes: &Flushes, keys: f64, deletes_max: f64) -> (f64, f64) {
    let mut tables: BTreeMap<u64, Held> = BTreeMap::new();
    let (mut expected, mut counted) = (0.0, 0.0);
    let range = |output: &Output| flushes.ranges.get(&output.number).copied();
    for job in &family.jobs {
        let inputs: Vec<Held> =
            job.input_tables.iter().filter_map(|number| tables.remove(number)).collect();
        // Without a MANIFEST it is unknown where the keys of a table lie, but level 0 has all keys.
        let is_known = job.is_compaction
            && inputs.len() == job.input_tables.len()
            && (!flushes.ranges.is_empty() || job.inputs.contains_key(&0));
        let parts = job.outputs.len().max(1) as f64;
        for (place, output) in job.outputs.iter().enumerate() {
            // Without a MANIFEST outputs count as parts of equal width.
            let even = if job.is_compaction {
                (place as f64 / parts, (place + 1) as f64 / parts)
            } else {
                (0.0, 1.0)
            };
            let held_keys = range(output).unwrap_or(even);
            let room = (keys * (held_keys.1 - held_keys.0)).max(1.0);
            let entries = output.entries as f64;
            let mut held = Held { keys: held_keys, ..Held::default() };
            if is_known {
                for input in &inputs {
                    let part = overlap(held_keys, input.keys);
                    held.writes += input.writes * part;
                    held.deletes += input.deletes * part;
                }
                if held.deletes <= deletes_max * held.writes {
                    expected += room * (1.0 - (-held.writes / room).exp());
                    counted += entries;
                }
            } else {
                // The number of writes that leaves this number of entries.
                let left = (1.0 - entries / room).max((-WRITES_MAX).exp());
                held.writes = -room * left.ln();
                held.deletes = held.writes * output.deletes as f64 / entries.max(1.0);
            }
            tables.insert(output.number, held);
        }
    }
    (expected, counted)
}

/// Returns the part of `inner` that lies in `outer`.
fn overlap(outer: (f64, f64), inner: (f64, f64)) -> f64 {
    let width = inner.1 - inner.0;
    if width <= 0.0 {
        return f64::from(u8::from(outer.0 <= inner.0 && inner.0 < outer.1));
    }
    ((outer.1.min(inner.1) - outer.0.max(inner.0)) / width).clamp(0.0, 1.0)
}
