//! MinLatency and Binomial: the bound of Mathieu et al.

use crate::cost::{Flushes, Level, Model, ReadCosts, Setting, Stage};
use crate::optimum;

/// Returns an upper bound of the eager write cost of MinLatency and Binomial with `runs_max` runs,
/// for flushes of equal size that share no key.
///
/// # Derivation
/// Both keep a tree in which flush `t` is written once for each step to the left on its path and
/// once itself. All places with at most `m` of them and `k` runs are `C(m + k, k) - 1`, so no more
/// than `m` writes are needed as long as `n` is not above that: the first bound. Most places of a
/// full tree are at its lower end, and the mean over all tends to `k n^(1/k) / c_k` with
/// `c_k = (k + 1) / (k!)^(1/k)`, up to a factor of `1 + O(1/k)`: the second, for `n` above `4^k`.
/// The lesser of the two is returned.
///
/// Source: Mathieu, Staelin, Young, Yousefi, "Bigtable merge compaction" (2014), for the trees and
/// bounds; Mao et al., VLDB Journal 2021, for the constant.
pub fn write_cost_bound(flushes: f64, runs_max: u64) -> f64 {
    let k = runs_max as f64;
    let ln_factorial: f64 = (1..=runs_max).map(|i| (i as f64).ln()).sum();
    let mean = k / (k + 1.0) * ((flushes.ln() + ln_factorial) / k).exp();
    writes_max(flushes, runs_max).min(mean.max(1.0))
}

/// Returns the least `m` with `C(m + k, k) > flushes`.
fn writes_max(flushes: f64, runs_max: u64) -> f64 {
    let mut writes = 0.0;
    let mut places = 1.0;
    while places <= flushes {
        writes += 1.0;
        places *= (writes + runs_max as f64) / writes;
        // One run: places grow one by one.
        if runs_max == 1 {
            return flushes;
        }
    }
    writes
}

/// Returns the bound as a model: a flush is written, then the runs that the bound counts.
pub fn bounded_runs(setting: &Setting<'_>, runs_max: u64) -> Model {
    let bound = write_cost_bound(setting.flushes().ceil(), runs_max);
    of_runs(setting, runs_max, Stage::new("merges, at most", bound, bound))
}

/// Returns the exact offline optimum as a model; see [`optimum`](crate::optimum).
pub fn least_with_runs(setting: &Setting<'_>, runs_max: u64) -> Model {
    let flushes = setting.flushes().ceil() as u64;
    let merges = optimum::write_cost_least(flushes, runs_max) - 1.0;
    of_runs(setting, runs_max, Stage::new("merges, at least", merges, merges))
}

/// Flushes that share no key, in at most so many runs.
fn of_runs(setting: &Setting<'_>, runs_max: u64, merges: Stage) -> Model {
    let runs = (runs_max as f64).min(setting.flushes().ceil());
    let stages = vec![Stage::log(), Stage::new("flush", 1.0, 0.0), merges];
    let levels = vec![Level { runs, size: setting.popularity.live() }];
    Model {
        stages,
        flushes: Flushes::unshared(),
        levels,
        worst_reads: Some(ReadCosts::worst(setting, runs)),
        space_cost: 1.0,
    }
}
