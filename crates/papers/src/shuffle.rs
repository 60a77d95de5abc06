//! Ranks in random order.

use lsmith_workload::Rng;

/// Returns all ranks below `count` in random order, by the Fisher-Yates shuffle.
pub(crate) fn shuffled(count: u64, rng: &mut Rng) -> Vec<u32> {
    let mut ranks: Vec<u32> = (0..count as u32).collect();
    for last in (1..ranks.len()).rev() {
        ranks.swap(last, rng.below(last as u64 + 1) as usize);
    }
    ranks
}
