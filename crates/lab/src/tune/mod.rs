//! Finds the best policy and parameters for a workload, under limits: first by formulas, then by
//! fluid simulations of the finalists, then on the real store.
//!
//! * [`tune`]: returns the best choice and the frontier.
//! * [`Limits`]: the limits on a choice; [`Choice`]: its costs and its memory.
//! * [`Drifted`]: the best choice in the worst case over workloads nearby.
//! * [`Verified`]: the choice and the default on the real store.

mod candidates;
mod confirm;
mod drift;
mod memory;
mod scale;
mod stacks;
mod verify;

pub use confirm::Confirmed;
pub use drift::{DriftChoice, Drifted, Mix};
pub use memory::MemoryNeed;
pub use verify::Verified;

use crate::clock::Clock;
use crate::profile::Profile;
use crate::progress::Progress;
use anyhow::{Result, bail};
use candidates::candidates;
use drift::{Prices, Variant, variants};
use lsmith::DEFAULT_POLICY;
use lsmith_workload::Workload;
use memory::Memory;
use serde::Serialize;
use stacks::{Stack, stacks};
use std::path::Path;

/// The limits on a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// The most runs that a lookup must consider, averaged over time.
    pub read_cost_max: Option<f64>,
    /// The most bytes held per live byte, averaged over time.
    pub space_cost_max: Option<f64>,
    /// Bytes of memory for memtables, filters and fence pointers. If `None`, memtables have
    /// `memtable_bytes`, and filters and fence pointers take as much as they need.
    pub memory_bytes: Option<u64>,
    /// Logical bytes at which a memtable is sealed, if `memory_bytes` is `None`.
    pub memtable_bytes: u64,
    /// The distance that the workload may drift, in nats. If given, the choice is the best in the
    /// worst case.
    pub drift: Option<f64>,
}

/// A policy with its costs by formula.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The spec of the policy, or of a formula if `runs_on_store` is false.
    pub policy: String,
    /// True if the store has the policy. Free level sizes exist only as a formula.
    pub runs_on_store: bool,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// Filter bits per entry.
    pub filter_bits: f64,
    /// Bytes of memory that the choice needs.
    pub memory_bytes: u64,
    /// The parts of this memory.
    pub memory: MemoryNeed,
    /// Bytes written, the log included, per byte of requests.
    pub write_cost_user: f64,
    /// Flushes and outputs of merges per byte flushed.
    pub write_cost_system: f64,
    /// The runs that a lookup must consider, averaged over time.
    pub read_cost_mean: f64,
    /// The runs that a lookup of an absent key reads, with filters.
    pub point_read_miss: f64,
    /// Bytes held per live byte, averaged over time.
    pub space_cost_mean: f64,
    /// The fluid simulation; only for finalists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Confirmed>,
}

/// The result of tuning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuned {
    /// The full spec of the workload.
    pub workload: String,
    /// The policy of the store with the least write cost within the limits; with drift, with the
    /// least cost per operation in the worst case.
    pub best: Choice,
    /// All choices that no other choice beats in write, read and space cost at once, least write
    /// cost first. The limits do not apply.
    pub frontier: Vec<Choice>,
    /// The number of choices considered.
    pub considered: usize,
    /// With drift: the best choice as expected, the best in the worst case, and their costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drifted>,
    /// The results on the store, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// The seconds that tuning took, without the store.
    pub seconds: f64,
}

/// Returns the best policy and parameters for `workload`.
///
/// # Errors
/// Fails if no choice is within the limits, the workload writes nothing, or it has a damaged line.
pub fn tune(workload: &Workload, limits: &Limits) -> Result<Tuned> {
    let clock = Clock::start();
    let profile = Profile::of(workload)?;
    let memory = Memory::of(limits, &profile, workload)?;
    let stacks = stacks(&profile, memory.memtable_bytes);
    let variants = variants(&profile, limits.drift.unwrap_or(0.0));
    let all: Vec<Vec<Choice>> =
        variants.iter().map(|variant| choices(&variant.profile, &memory, &stacks)).collect();
    let limited =
        LimitedChoices { limits, profile: &profile, stacks: &stacks, variants: &variants, all };
    let (finalists, drift) = match limits.drift {
        None => (limited.least_writes()?, None),
        Some(distance) => {
            let (best, drifted) = limited.robust(distance, &Prices::of(workload, &profile)?)?;
            (vec![best], Some(drifted))
        }
    };
    let Some(best) = finalists.first().cloned() else {
        bail!("no choice is within the limits");
    };
    let choices = limited.expected();
    let mut frontier = frontier(choices);
    for choice in &mut frontier {
        let confirmed = finalists.iter().find(|finalist| finalist.policy == choice.policy);
        choice.confirmed = confirmed.and_then(|finalist| finalist.confirmed);
    }
    Ok(Tuned {
        workload: workload.spec().to_string(),
        best,
        frontier,
        considered: choices.len(),
        drift,
        verified: None,
        seconds: clock.seconds(),
    })
}

impl Tuned {
    /// Runs the best choice and the default policy on the real store in lockstep, at a scale that
    /// takes seconds. Each store gets a new directory within `dir`.
    ///
    /// # Errors
    /// Fails if the store or a simulation fails.
    pub fn verify(
        &mut self,
        workload: &Workload,
        dir: &Path,
        progress: &dyn Progress,
    ) -> Result<()> {
        let policies = [self.best.policy.as_str(), DEFAULT_POLICY];
        let memtable_bytes = self.best.memtable_bytes;
        self.verified = Some(verify::verify(&policies, workload, memtable_bytes, dir, progress)?);
        Ok(())
    }
}

impl Choice {
    /// Returns the write cost, corrected by the simulation.
    fn write_cost_corrected(&self) -> f64 {
        let correction = self.confirmed.map_or(1.0, |confirmed| confirmed.correction());
        self.write_cost_user * correction
    }
}

/// Returns all choices for a popularity, least write cost first.
fn choices(profile: &Profile, memory: &Memory, stacks: &[Stack]) -> Vec<Choice> {
    let found = candidates(profile, memory.memtable_bytes, stacks);
    let mut choices: Vec<Choice> =
        found.into_iter().map(|candidate| candidate.into_choice(memory)).collect();
    choices.sort_by(|left, right| left.write_cost_user.total_cmp(&right.write_cost_user));
    choices
}

struct LimitedChoices<'a> {
    limits: &'a Limits,
    profile: &'a Profile,
    stacks: &'a [Stack],
    /// The expected popularity first.
    variants: &'a [Variant],
    /// The choices of each variant.
    all: Vec<Vec<Choice>>,
}

impl LimitedChoices<'_> {
    /// Returns the choices for the expected popularity.
    fn expected(&self) -> &[Choice] {
        &self.all[0]
    }

    fn is_within(&self, choice: &Choice) -> bool {
        let (read_max, space_max) = (self.limits.read_cost_max, self.limits.space_cost_max);
        choice.runs_on_store
            && read_max.is_none_or(|max| choice.read_cost_mean <= max)
            && space_max.is_none_or(|max| choice.space_cost_mean <= max)
    }

    fn confirm(&self, finalists: Vec<Choice>) -> Result<Vec<Choice>> {
        if finalists.is_empty() {
            bail!("{}", nothing_within(self.expected()));
        }
        confirm::confirm(finalists, self.profile, self.stacks)
    }

    /// Returns the finalists of least write cost, confirmed by simulation, best first.
    fn least_writes(&self) -> Result<Vec<Choice>> {
        let within = self.expected().iter().filter(|choice| self.is_within(choice));
        let mut finalists = self.confirm(within.take(confirm::FINALISTS).cloned().collect())?;
        let cost = Choice::write_cost_corrected;
        finalists.sort_by(|left, right| cost(left).total_cmp(&cost(right)));
        Ok(finalists)
    }

    /// Returns the best choice in the worst case and the best choice for the expected workload. The
    /// limits hold for every considered popularity.
    fn robust(&self, distance: f64, prices: &Prices) -> Result<(Choice, Drifted)> {
        let mut outcomes: Vec<(DriftChoice, Vec<&Choice>)> = Vec::new();
        for choice in self.expected() {
            let same = self
                .all
                .iter()
                .filter_map(|choices| choices.iter().find(|other| other.policy == choice.policy));
            let same: Vec<&Choice> = same.collect();
            let is_within = same.len() == self.all.len() && same.iter().all(|c| self.is_within(c));
            if let (true, Some(outcome)) = (is_within, prices.drift_choice(self.variants, &same)) {
                outcomes.push((outcome, same));
            }
        }
        let least = |cost: fn(&DriftChoice) -> f64| {
            let order = |left: &&(DriftChoice, _), right: &&(DriftChoice, _)| {
                cost(&left.0).total_cmp(&cost(&right.0))
            };
            outcomes.iter().min_by(order).map(|(outcome, same)| (outcome.clone(), same[0].clone()))
        };
        let (nominal, robust) =
            (least(|outcome| outcome.cost_expected), least(|outcome| outcome.cost_worst));
        let (Some((nominal, _)), Some((robust, choice))) = (nominal, robust) else {
            bail!("{}", nothing_within(self.expected()));
        };
        let choice = self.confirm(vec![choice])?.remove(0);
        Ok((choice, Drifted { distance, mix: prices.mix, nominal, robust }))
    }
}

/// Returns the choices that no other choice dominates: as good in all three costs and better in
/// one. `choices` are sorted by write cost.
fn frontier(choices: &[Choice]) -> Vec<Choice> {
    let mut frontier: Vec<Choice> = Vec::new();
    for choice in choices {
        let is_beaten = frontier.iter().any(|better| {
            better.read_cost_mean <= choice.read_cost_mean
                && better.space_cost_mean <= choice.space_cost_mean
        });
        if !is_beaten {
            frontier.push(choice.clone());
        }
    }
    frontier
}

fn nothing_within(choices: &[Choice]) -> String {
    let least = |figure: fn(&Choice) -> f64| {
        let store = choices.iter().filter(|choice| choice.runs_on_store);
        store.map(figure).fold(f64::INFINITY, f64::min)
    };
    format!(
        "no choice is within the limits: reads cost at least {:.2}, space at least {:.2}, not both",
        least(|choice| choice.read_cost_mean),
        least(|choice| choice.space_cost_mean)
    )
}
