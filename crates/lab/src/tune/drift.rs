//! Finds the best choice in the worst case over workloads near the expected one.
//!
//! # Distance
//! A workload is a mix of operations and a popularity of keys. Its distance from the expected
//! workload, in nats per operation, is a sum of two Kullback-Leibler divergences: of its mix, `sum
//! w'_i ln(w'_i / w_i)`, and of its popularity. By the chain rule the distance is at least the
//! divergence of single operations. All workloads within a distance of `R` are therefore within the
//! region of Huynh et al. ("Endure: a robust tuning paradigm for LSM trees under workload
//! uncertainty", VLDB 2022). Endure has no popularity.
//!
//! # Worst mix
//! The mix of greatest mean cost within a distance has each share multiplied by `exp(c_i / l)`.
//! `c_i` is the cost of the operation, and `l` is such that the distance is met exactly. Worst
//! popularities are searched along one line, on which probabilities are raised to a power: below 1
//! keys become more alike, above 1 less alike.
//!
//! # Costs under another popularity
//! Requests are drawn from both popularities, and both are simulated. The costs of a choice are
//! multiplied by the ratio of the two.

use super::candidate::Candidate;
use super::drawn::drawn;
use super::memory::BLOCK_BYTES;
use super::mix::Counts;
use super::sample::Sample;
use super::search::{FLUSHES_MAX, Search};
use super::trial::{Trial, TrialCosts};
use crate::jobs::measure_all;
use crate::model::false_positives;
use crate::profile::Profile;
use anyhow::{Result, bail};
use lsmith_model::Popularity;
use lsmith_workload::Workload;
use serde::Serialize;

/// The candidates that are simulated under other popularities.
const CANDIDATES: usize = 24;

/// The requests that are drawn from a popularity.
const REQUESTS: u64 = 100_000;

/// The least expected share of each kind of operation, as in Endure. With an expected share of 0,
/// any other share would be infinitely far.
const SHARE_MIN: f64 = 0.01;

/// The parts of the distance that popularity may use.
const PARTS: [f64; 2] = [0.5, 1.0];

/// Shares of operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mix {
    /// Puts and deletes.
    pub writes: f64,
    /// Lookups of present keys.
    pub hits: f64,
    /// Lookups of absent keys.
    pub misses: f64,
    /// Range reads.
    pub scans: f64,
}

/// The costs of a choice per operation, in blocks of 4 KiB read or written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DriftChoice {
    /// The policy.
    pub policy: String,
    /// The cost under the expected workload.
    pub cost_expected: f64,
    /// The greatest cost within the distance.
    pub cost_worst: f64,
    /// The mix of greatest cost.
    pub worst_mix: Mix,
    /// The power of the probabilities of keys at the greatest cost; 1 means unchanged.
    pub worst_power: f64,
}

/// The result of tuning for a workload that may drift.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drifted {
    /// The greatest distance of considered workloads, in nats.
    pub distance: f64,
    /// The expected mix.
    pub mix: Mix,
    /// The best choice for the expected workload.
    pub nominal: DriftChoice,
    /// The best choice in the worst case. Tuning returns this one.
    pub robust: DriftChoice,
}

impl Mix {
    fn shares(&self) -> [f64; 4] {
        [self.writes, self.hits, self.misses, self.scans]
    }

    fn of_shares([writes, hits, misses, scans]: [f64; 4]) -> Mix {
        Mix { writes, hits, misses, scans }
    }

    /// Returns the mix for `counts` of operations. Each share is at least `SHARE_MIN`.
    fn of_counts(counts: [f64; 4]) -> Mix {
        let total: f64 = counts.iter().sum::<f64>().max(1.0);
        let raised = counts.map(|count| (count / total).max(SHARE_MIN));
        let total: f64 = raised.iter().sum();
        Mix::of_shares(raised.map(|share| share / total))
    }

    /// Returns the mean of `costs`.
    fn cost(&self, costs: &[f64; 4]) -> f64 {
        self.shares().iter().zip(costs).map(|(share, cost)| share * cost).sum()
    }

    fn distance_from(&self, other: &Mix) -> f64 {
        let pairs = self.shares().into_iter().zip(other.shares());
        pairs.map(|(to, from)| if to > 0.0 { to * (to / from).ln() } else { 0.0 }).sum()
    }

    /// Returns the mix with each share multiplied by `exp(weight * cost / greatest cost)`.
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

    /// Returns the mix of greatest cost within `distance`.
    fn worst(&self, costs: &[f64; 4], distance: f64) -> Mix {
        let mut low = 0.0;
        let mut high = 1.0;
        while self.tilted(costs, high).distance_from(self) < distance {
            high *= 2.0;
            // Only the most expensive operation is left, and this mix is nearer than `distance`.
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

/// A popularity near the expected one.
struct Variant {
    profile: Profile,
    power: f64,
    /// The rest of the distance, for the mix.
    left: f64,
}

/// Returns the candidate that is best in the worst case. The limits hold for every considered
/// popularity.
///
/// # Errors
/// Fails if no candidate is within the limits, or a simulation fails.
pub(super) fn robust<'a>(
    search: &'a Search<'_>,
    distance: f64,
) -> Result<(&'a Candidate, Drifted)> {
    let profile = Profile::of(search.workload)?;
    let prices = Prices::of(search.workload, &profile)?;
    let variants = variants(&profile, distance);
    let mut candidates = search.well_known();
    let expected = |costs: &TrialCosts| prices.mix.cost(&prices.costs(costs, search));
    candidates.sort_by(|left, right| expected(&left.1).total_cmp(&expected(&right.1)));
    candidates.truncate(CANDIDATES);
    let mut of_variants: Vec<Vec<Option<TrialCosts>>> = Vec::new();
    for variant in &variants {
        of_variants.push(drawn_costs(search, &candidates, &variant.profile)?);
    }
    let mut outcomes: Vec<(DriftChoice, &Candidate)> = Vec::new();
    for (index, (candidate, costs)) in candidates.into_iter().enumerate() {
        let under = |drawn: &Vec<Option<TrialCosts>>| {
            Some(costs.scaled(&drawn[index]?, &of_variants[0][index]?))
        };
        let Some(all) = of_variants.iter().map(under).collect::<Option<Vec<_>>>() else { continue };
        if all.iter().all(|costs| search.allows(costs, 0.0)) {
            outcomes.push((prices.drift_choice(candidate, &variants, &all, search), candidate));
        }
    }
    let least = |cost: fn(&DriftChoice) -> f64| {
        outcomes.iter().min_by(|left, right| cost(&left.0).total_cmp(&cost(&right.0)))
    };
    let (Some((nominal, _)), Some((robust, candidate))) =
        (least(|choice| choice.cost_expected), least(|choice| choice.cost_worst))
    else {
        bail!("no choice is within the limits under every workload within {distance} nats");
    };
    let nominal = nominal.clone();
    let robust = robust.clone();
    Ok((candidate, Drifted { distance, mix: prices.mix, nominal, robust }))
}

/// Returns the costs of candidates on requests that are drawn from the popularity of `profile`.
fn drawn_costs(
    search: &Search<'_>,
    candidates: &[(&Candidate, TrialCosts)],
    profile: &Profile,
) -> Result<Vec<Option<TrialCosts>>> {
    let whole: Sample = drawn(profile, REQUESTS);
    let sample = &whole;
    let memtable_bytes = search.memtable_bytes;
    let policies = candidates.iter().map(|(candidate, _)| &candidate.policy);
    let (flushes_max, files) = (FLUSHES_MAX[0], search.files);
    let trials: Vec<_> = policies
        .map(|policy| Trial {
            policy,
            sample,
            memtable_bytes,
            flushes_max,
            files,
            registry: search.registry,
            shrink: search.shrink,
        })
        .collect();
    measure_all("other popularities", &trials, search.progress)
}

/// Returns the expected popularity, then popularities that use a part of the distance.
fn variants(profile: &Profile, distance: f64) -> Vec<Variant> {
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

/// Returns the power whose popularity is `budget` away: below 1 for a negative direction, else
/// above 1. It is at least 0, where all keys are alike. `None` if keys are alike already.
fn power_at(popularity: &Popularity, budget: f64, direction: f64) -> Option<f64> {
    if popularity.classes().len() < 2 || budget <= 0.0 {
        return None;
    }
    let reach = if direction < 0.0 { 1.0 } else { 4.0 };
    let mut low = 0.0;
    let mut high = reach;
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

/// Returns the divergence of the popularity with probabilities raised to `power`.
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

/// Requests per key of the least popular keys. Ratios of popularities are exact to a thousandth.
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

/// Computes the costs of the operations of a workload.
#[derive(Clone, Copy, Debug)]
struct Prices {
    mix: Mix,
    entry_bytes: f64,
}

impl Prices {
    /// Learns the mix of `workload` after its load phase, if it has one. Keys of lookups count as
    /// present.
    fn of(workload: &Workload, profile: &Profile) -> Result<Prices> {
        let Counts { writes, lookups, scans, .. } = Counts::of(workload)?;
        let counts = [writes, lookups, 0.0, scans];
        Ok(Prices { mix: Mix::of_counts(counts), entry_bytes: profile.entry_bytes })
    }

    /// Returns the blocks per write, hit, miss and scan. A write costs its share of all bytes
    /// written. A lookup costs the block of its key and the blocks of false positives. A scan costs
    /// the blocks of `scan_cost_mean`.
    fn costs(&self, costs: &TrialCosts, search: &Search<'_>) -> [f64; 4] {
        let (_, filter_bits) = search.memory.need(costs.space_cost_mean);
        let passes = false_positives(filter_bits);
        let runs = costs.read_cost_mean;
        let per_entry = self.entry_bytes / BLOCK_BYTES;
        [
            costs.write_cost_user * per_entry,
            1.0 + passes * (runs - 1.0).max(0.0),
            passes * runs,
            costs.scan_blocks(),
        ]
    }

    /// Returns the costs of one policy. `all` has its costs under each variant, in the same order,
    /// the expected one first.
    fn drift_choice(
        &self,
        candidate: &Candidate,
        variants: &[Variant],
        all: &[TrialCosts],
        search: &Search<'_>,
    ) -> DriftChoice {
        let mut choice = DriftChoice {
            policy: candidate.spec.to_string(),
            cost_expected: 0.0,
            cost_worst: 0.0,
            worst_mix: self.mix,
            worst_power: 1.0,
        };
        for (variant, costs) in variants.iter().zip(all) {
            let costs = self.costs(costs, search);
            if variant.power == 1.0 {
                choice.cost_expected = self.mix.cost(&costs);
            }
            let mix = self.mix.worst(&costs, variant.left);
            let worst = mix.cost(&costs);
            if worst > choice.cost_worst {
                (choice.cost_worst, choice.worst_mix) = (worst, mix);
                choice.worst_power = variant.power;
            }
        }
        choice
    }
}

#[cfg(test)]
mod tests;
