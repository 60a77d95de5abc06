//! Draws requests from a popularity.

use super::sample::{Sample, Write};
use crate::profile::Profile;
use lsmith_tree::EntryKind;
use lsmith_workload::Rng;

/// The seed of all drawn samples, so that two popularities differ only in themselves.
const SEED: u64 = 1;

/// Returns at most `wanted` requests that are drawn from the popularity of `profile`. If the
/// workload has `n` times as many, one key stands for `n` keys of about the same popularity.
pub(super) fn drawn(profile: &Profile, wanted: u64) -> Sample {
    let requests = (profile.writes as u64).min(wanted).max(1);
    let share = requests as f64 / profile.writes;
    let mut classes: Vec<(f64, f64)> = profile
        .popularity
        .classes()
        .iter()
        .map(|class| (class.probability, class.keys * share))
        .collect();
    classes.sort_by(|left, right| right.0.total_cmp(&left.0));
    let total: f64 = classes.iter().map(|(probability, keys)| probability * keys).sum();
    // The ends of the classes on the line of all requests, and on the line of all keys.
    let mut mass = 0.0;
    let mut keys = 0.0;
    let ends: Vec<(f64, f64)> = classes
        .iter()
        .map(|(probability, count)| {
            mass += probability * count / total;
            keys += count;
            (mass, keys)
        })
        .collect();
    let count = keys.ceil() as usize;
    let mut ranks: Vec<u32> = (0..count as u32).collect();
    let mut random = Rng::new(SEED, 0);
    for index in (1..count).rev() {
        ranks.swap(index, random.below(index as u64 + 1) as usize);
    }
    let bytes = profile.entry_bytes.round().max(1.0) as u32;
    let mut is_live = vec![false; count];
    let mut live_bytes = 0;
    let mut live_entries = 0;
    let mut writes = Vec::with_capacity(requests as usize);
    for _ in 0..requests {
        let at = random.unit();
        let class = ends.partition_point(|(mass, _)| *mass <= at).min(ends.len() - 1);
        let (start_mass, start_key) = if class == 0 { (0.0, 0.0) } else { ends[class - 1] };
        let (end_mass, end_key) = ends[class];
        let part = (at - start_mass) / (end_mass - start_mass);
        let key = ((start_key + part * (end_key - start_key)) as usize).min(count - 1);
        if !is_live[key] {
            is_live[key] = true;
            live_bytes += u64::from(bytes);
            live_entries += 1;
        }
        let rank = ranks[key];
        writes.push(Write { kind: EntryKind::Put, rank, bytes, live_bytes, live_entries });
    }
    Sample { writes, share, flushes_max: None, scan_items: profile.scan_items }
}
