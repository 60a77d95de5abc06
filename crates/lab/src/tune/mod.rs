//! The best policy and parameters for a workload, under limits: formulas first, then fluid
//! simulations of those that are left, then the real store.
//!
//! * [`tune`]: the best choice and the frontier.
//! * [`Limits`]: what is asked of a choice; [`Choice`]: what it costs and needs.
//! * [`Drifted`]: what is best in the worst case over workloads nearby.
//! * [`Verified`]: the choice and the default on the real store.

mod candidates;
mod confirm;
mod drift;
mod memory;
mod scale;
mod stacks;
mod verify;

pub use confirm::Confirmed;
pub use drift::{Drifted, Mix, Stand};
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

/// What is asked of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Most runs that a lookup must consider, mean over time.
    pub read_cost_max: Option<f64>,
    /// Most bytes held per live byte, mean over time.
    pub space_cost_max: Option<f64>,
    /// Bytes of memory for memtables, filters and fence pointers. If not given, memtables are of
    /// `memtable_bytes` and the others take what they need.
    pub memory_bytes: Option<u64>,
    /// Logical bytes at which a memtable is sealed, where memory is not given.
    pub memtable_bytes: u64,
    /// How far the workload may drift, in nats: the best in the worst case is then chosen.
    pub drift: Option<f64>,
}

/// A policy with what it costs, by formula.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The policy, as the store takes it; or a formula, see `runs_on_store`.
    pub policy: String,
    /// Whether there is a policy for it. Level sizes as free variables are a formula only.
    pub runs_on_store: bool,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// Bits of filter per entry.
    pub filter_bits: f64,
    /// Bytes of memory that it needs, and what for.
    pub memory_bytes: u64,
    /// What the memory is for.
    pub memory: MemoryNeed,
    /// Bytes written, the log included, per byte of requests.
    pub write_cost_user: f64,
    /// Flushes and outputs of merges per byte flushed.
    pub write_cost_system: f64,
    /// Runs that a lookup must consider, mean over time.
    pub read_cost_mean: f64,
    /// Runs that a lookup of an absent key looks into, with filters.
    pub point_read_miss: f64,
    /// Bytes held per live byte, mean over time.
    pub space_cost_mean: f64,
    /// What a fluid simulation says, of the finalists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Confirmed>,
}

/// What tuning came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuned {
    /// The workload, spelled out.
    pub workload: String,
    /// Of policies that the store has and that keep the limits: the least write cost; with drift,
    /// the least cost per operation in the worst case.
    pub best: Choice,
    /// All choices that no other beats in write, read and space cost at once, whatever the limits;
    /// least write cost first.
    pub frontier: Vec<Choice>,
    /// How many choices were looked at.
    pub considered: usize,
    /// With drift: what is best as expected, what in the worst case, and what each costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drifted>,
    /// What the store did, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// Seconds that it took, without the store.
    pub seconds: f64,
}

/// The best policy and parameters for `workload`.
///
/// # Errors
/// No choice keeps the limits, the workload writes nothing, or it has a damaged line.
pub fn tune(workload: &Workload, limits: &Limits) -> Result<Tuned> {
    let clock = Clock::start();
    let profile = Profile::of(workload)?;
    let memory = Memory::of(limits, &profile, workload)?;
    let stacks = stacks(&profile, memory.memtable_bytes);
    let variants = variants(&profile, limits.drift.unwrap_or(0.0));
    let all: Vec<Vec<Choice>> =
        variants.iter().map(|variant| choices(&variant.profile, &memory, &stacks)).collect();
    let search = Search { limits, profile: &profile, stacks: &stacks, variants: &variants, all };
    let (finalists, drift) = match limits.drift {
        None => (search.least_writes()?, None),
        Some(distance) => {
            let (best, drifted) = search.robust(distance, &Prices::of(workload, &profile)?)?;
            (vec![best], Some(drifted))
        }
    };
    let Some(best) = finalists.first().cloned() else {
        bail!("no choice is within the limits");
    };
    let choices = search.expected();
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
    /// Runs the best and the default on the real store, in lockstep, in fresh directories within
    /// `dir`, at a scale that takes seconds.
    ///
    /// # Errors
    /// What the store or a simulation refuses.
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
    /// The write cost with what the simulation adds to it or takes away.
    fn write_cost_corrected(&self) -> f64 {
        let correction = self.confirmed.map_or(1.0, |confirmed| confirmed.correction());
        self.write_cost_user * correction
    }
}

/// All choices for a popularity, least write cost first.
fn choices(profile: &Profile, memory: &Memory, stacks: &[Stack]) -> Vec<Choice> {
    let found = candidates(profile, memory.memtable_bytes, stacks);
    let mut choices: Vec<Choice> =
        found.into_iter().map(|candidate| candidate.into_choice(memory)).collect();
    choices.sort_by(|left, right| left.write_cost_user.total_cmp(&right.write_cost_user));
    choices
}

struct Search<'a> {
    limits: &'a Limits,
    profile: &'a Profile,
    stacks: &'a [Stack],
    /// The expected popularity first.
    variants: &'a [Variant],
    /// The choices of each variant.
    all: Vec<Vec<Choice>>,
}

impl Search<'_> {
    /// The choices for the popularity that is expected.
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

    /// The finalists of least write cost, confirmed, best first.
    fn least_writes(&self) -> Result<Vec<Choice>> {
        let within = self.expected().iter().filter(|choice| self.is_within(choice));
        let mut finalists = self.confirm(within.take(confirm::FINALISTS).cloned().collect())?;
        let cost = Choice::write_cost_corrected;
        finalists.sort_by(|left, right| cost(left).total_cmp(&cost(right)));
        Ok(finalists)
    }

    /// The best in the worst case, and beside it the best for the workload as expected. The limits
    /// hold for every popularity that is considered.
    fn robust(&self, distance: f64, prices: &Prices) -> Result<(Choice, Drifted)> {
        let mut stands: Vec<(Stand, Vec<&Choice>)> = Vec::new();
        for choice in self.expected() {
            let same = self
                .all
                .iter()
                .filter_map(|choices| choices.iter().find(|other| other.policy == choice.policy));
            let same: Vec<&Choice> = same.collect();
            let is_within = same.len() == self.all.len() && same.iter().all(|c| self.is_within(c));
            if let (true, Some(stand)) = (is_within, prices.stand(self.variants, &same)) {
                stands.push((stand, same));
            }
        }
        let least = |cost: fn(&Stand) -> f64| {
            let order =
                |left: &&(Stand, _), right: &&(Stand, _)| cost(&left.0).total_cmp(&cost(&right.0));
            stands.iter().min_by(order).map(|(stand, same)| (stand.clone(), same[0].clone()))
        };
        let (nominal, robust) =
            (least(|stand| stand.cost_expected), least(|stand| stand.cost_worst));
        let (Some((nominal, _)), Some((robust, choice))) = (nominal, robust) else {
            bail!("{}", nothing_within(self.expected()));
        };
        let choice = self.confirm(vec![choice])?.remove(0);
        Ok((choice, Drifted { distance, mix: prices.mix, nominal, robust }))
    }
}

/// Choices of which no other is at least as good in all three and better in one. `choices` are
/// sorted by write cost.
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
