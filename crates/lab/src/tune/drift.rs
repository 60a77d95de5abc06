//! What is best in the worst case over workloads near the one that is expected.
//!
//! # Distance
//! A workload is a mix of operations and a popularity of keys. Its distance from the one that is
//! expected is what it takes, in nats per operation, to tell the two apart: the divergence of
//! Kullback and Leibler of its mix, `sum w'_i ln(w'_i / w_i)`, plus that of its popularity. By the
//! chain rule that is no less than the divergence of single operations, so all workloads within a
//! distance of `R` are within the region that Huynh et al. tune for ("Endure: a robust tuning
//! paradigm for LSM trees under workload uncertainty", VLDB 2022), which has no popularity.
//!
//! # Worst mix
//! The greatest mean cost of a mix within a distance has each share multiplied by `exp(c_i / l)`,
//! with `c_i` the cost of an operation and the `l` at which the distance is met: the greater the
//! dearer operations are. Popularities are tried along one line, on which probabilities are raised
//! to a power: less than 1 makes keys more alike, more than 1 less.

use super::Choice;
use super::memory::BLOCK_BYTES;
use super::scale::shrunk;
use crate::model::false_positives;
use crate::profile::Profile;
use anyhow::Result;
use lsmith_model::Popularity;
use lsmith_workload::{OpKind, Workload};
use serde::Serialize;

/// Operations looked at to learn their mix.
const OPS_SAMPLED: usize = 100_000;

/// The least share of each kind of operation that is taken as expected: what is never expected at
/// all would be infinitely far. As in Endure.
const SHARE_MIN: f64 = 0.01;

/// Items of a scan, where the workload has none.
const SCAN_ITEMS: f64 = 50.0;

/// Parts of the distance that popularity may take.
const PARTS: [f64; 2] = [0.5, 1.0];

/// Shares of operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mix {
    /// Puts and deletes.
    pub writes: f64,
    /// Lookups of keys that are there.
    pub hits: f64,
    /// Lookups of keys that are not.
    pub misses: f64,
    /// Range reads.
    pub scans: f64,
}

/// What a choice costs per operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stand {
    /// The policy.
    pub policy: String,
    /// With the workload as expected: blocks of 4 KiB read or written per operation.
    pub cost_expected: f64,
    /// The most within the distance.
    pub cost_worst: f64,
    /// The mix at which it costs most.
    pub worst_mix: Mix,
    /// The power to which probabilities of keys are raised there; 1 for as they are.
    pub worst_power: f64,
}

/// What a choice for a workload that may drift came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drifted {
    /// The distance up to which workloads are considered, in nats.
    pub distance: f64,
    /// The mix that is expected.
    pub mix: Mix,
    /// What is best if the workload is as expected.
    pub nominal: Stand,
    /// What is best in the worst case: the choice.
    pub robust: Stand,
}

impl Mix {
    fn shares(&self) -> [f64; 4] {
        [self.writes, self.hits, self.misses, self.scans]
    }

    fn of_shares([writes, hits, misses, scans]: [f64; 4]) -> Mix {
        Mix { writes, hits, misses, scans }
    }

    /// Of so many operations of each kind, none with less than the least share.
    fn of_counts(counts: [f64; 4]) -> Mix {
        let total: f64 = counts.iter().sum::<f64>().max(1.0);
        let raised = counts.map(|count| (count / total).max(SHARE_MIN));
        let total: f64 = raised.iter().sum();
        Mix::of_shares(raised.map(|share| share / total))
    }

    /// The mean of `costs`.
    fn cost(&self, costs: &[f64; 4]) -> f64 {
        self.shares().iter().zip(costs).map(|(share, cost)| share * cost).sum()
    }

    fn distance_from(&self, other: &Mix) -> f64 {
        let pairs = self.shares().into_iter().zip(other.shares());
        pairs.map(|(to, from)| if to > 0.0 { to * (to / from).ln() } else { 0.0 }).sum()
    }

    /// With each share multiplied by the exponential of its cost over the greatest, times `weight`.
    fn tilted(&self, costs: &[f64; 4], weight: f64) -> Mix {
        let most = costs.iter().copied().fold(0.0, f64::max);
        let pairs = self.shares().into_iter().zip(costs);
        let mut shares = [0.0; 4];
        for (slot, (share, cost)) in shares.iter_mut().zip(pairs) {
            *slot = share * (weight * (cost / most - 1.0)).exp();
        }
        let total: f64 = shares.iter().sum();
        Mix::of_shares(shares.map(|share| share / total))
    }

    /// The mix within `distance` at which operations cost most.
    fn worst(&self, costs: &[f64; 4], distance: f64) -> Mix {
        let (mut low, mut high) = (0.0, 1.0);
        while self.tilted(costs, high).distance_from(self) < distance {
            high *= 2.0;
            // Only the dearest is left, and it is nearer than that.
            if high > 1e6 {
                return self.tilted(costs, high);
            }
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.tilted(costs, middle).distance_from(self) < distance {
                low = middle
            } else {
                high = middle
            }
        }
        self.tilted(costs, low)
    }
}

/// A popularity near the one that is expected.
pub(super) struct Variant {
    pub(super) profile: Profile,
    power: f64,
    /// What of the distance is left for the mix.
    left: f64,
}

/// The expected popularity first, then those that take a part of the distance.
pub(super) fn variants(profile: &Profile, distance: f64) -> Vec<Variant> {
    let mut variants = vec![Variant { profile: profile.clone(), power: 1.0, left: distance }];
    for part in PARTS {
        for direction in [-1.0, 1.0] {
            let budget = distance * part;
            let Some(power) = power_at(&profile.popularity, budget, direction) else { continue };
            let Some(popularity) = raised(&profile.popularity, power) else { continue };
            let profile = Profile { popularity, ..profile.clone() };
            variants.push(Variant { profile, power, left: distance - budget });
        }
    }
    variants
}

/// The power whose popularity is `budget` away: below 1 for a negative direction, but not below 0,
/// where all keys are alike. `None` where keys are alike already.
fn power_at(popularity: &Popularity, budget: f64, direction: f64) -> Option<f64> {
    if popularity.classes().len() < 2 || budget <= 0.0 {
        return None;
    }
    let reach = if direction < 0.0 { 1.0 } else { 4.0 };
    let (mut low, mut high) = (0.0, reach);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if divergence(popularity, 1.0 + direction * middle) < budget {
            low = middle
        } else {
            high = middle
        }
    }
    Some(1.0 + direction * low)
}

/// The divergence of the popularity with probabilities raised to `power`.
fn divergence(popularity: &Popularity, power: f64) -> f64 {
    let classes = popularity.classes();
    let weight = |probability: f64| probability.powf(power);
    let total: f64 = classes.iter().map(|class| class.keys * weight(class.probability)).sum();
    let parts = classes.iter().map(|class| {
        let probability = weight(class.probability) / total;
        class.keys * probability * (probability / class.probability).ln()
    });
    parts.sum()
}

/// Requests per key that stand for the least popular keys: their ratios are exact to a thousandth.
const LEAST_REQUESTS: f64 = 1000.0;

fn raised(popularity: &Popularity, power: f64) -> Option<Popularity> {
    let classes = popularity.classes();
    let least = classes.iter().map(|class| class.probability).fold(f64::INFINITY, f64::min);
    let requests = |probability: f64| (LEAST_REQUESTS * (probability / least).powf(power)) as u64;
    let histogram: Vec<(u64, u64)> = classes
        .iter()
        .map(|class| (class.keys.round() as u64, requests(class.probability)))
        .collect();
    let raised = Popularity::from_histogram(&histogram).ok()?;
    Some(raised.with_live(popularity.live()))
}

/// What operations of a workload cost under choices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prices {
    pub(super) mix: Mix,
    scan_items: f64,
    entry_bytes: f64,
}

impl Prices {
    /// The mix of `workload` after its load, if it has one of its own. Keys that it looks up are
    /// there.
    pub(super) fn of(workload: &Workload, profile: &Profile) -> Result<Prices> {
        let many = workload.ops_max() as f64 / OPS_SAMPLED as f64 / 2.0;
        let sample = shrunk(workload, many)?;
        let (mut counts, mut scanned) = ([0.0; 4], 0.0);
        for op in sample.ops().skip(sample.load_ops() as usize).take(OPS_SAMPLED) {
            let op = op?;
            match op.kind {
                OpKind::Read => counts[1] += 1.0,
                OpKind::Scan => {
                    counts[3] += 1.0;
                    scanned += f64::from(op.scan_items);
                }
                OpKind::ReadModifyWrite => {
                    counts[0] += 1.0;
                    counts[1] += 1.0;
                }
                OpKind::Put | OpKind::Insert | OpKind::Delete | OpKind::Remove => counts[0] += 1.0,
            }
        }
        let scan_items = if counts[3] > 0.0 { scanned / counts[3] } else { SCAN_ITEMS };
        Ok(Prices { mix: Mix::of_counts(counts), scan_items, entry_bytes: profile.entry_bytes })
    }

    /// Blocks per write, hit, miss and scan. A write takes its share of all bytes written; a lookup
    /// the block that it finds and those that filters let through; a scan a block of each run, and
    /// what it passes over.
    fn costs(&self, choice: &Choice) -> [f64; 4] {
        let passes = false_positives(choice.filter_bits);
        let runs = choice.read_cost_mean;
        let per_entry = self.entry_bytes / BLOCK_BYTES;
        [
            choice.write_cost_user * per_entry,
            1.0 + passes * (runs - 1.0).max(0.0),
            passes * runs,
            runs + self.scan_items * per_entry * choice.space_cost_mean,
        ]
    }

    /// What a choice costs, as `variants` have it: for each, in their order, the same policy.
    pub(super) fn stand(&self, variants: &[Variant], choices: &[&Choice]) -> Option<Stand> {
        let first = choices.first()?;
        let worst = variants.iter().zip(choices).map(|(variant, choice)| {
            let costs = self.costs(choice);
            let mix = self.mix.worst(&costs, variant.left);
            (mix.cost(&costs), mix, variant.power)
        });
        let (cost_worst, worst_mix, worst_power) =
            worst.max_by(|left, right| left.0.total_cmp(&right.0))?;
        Some(Stand {
            policy: first.policy.clone(),
            cost_expected: self.mix.cost(&self.costs(first)),
            cost_worst,
            worst_mix,
            worst_power,
        })
    }
}

#[cfg(test)]
mod tests;
