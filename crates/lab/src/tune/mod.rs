//! The best policy and parameters for a workload, under limits: formulas first, then fluid
//! simulations of those that are left.

mod candidates;
mod confirm;

pub use confirm::Confirmed;

use crate::clock::Clock;
use crate::profile::Profile;
use anyhow::{Result, bail};
use candidates::{Candidate, candidates};
use lsmith_workload::Workload;
use serde::Serialize;

/// Bits of filter per key, as long as memory suffices for them.
const FILTER_BITS: f64 = 10.0;

/// Memtables that memory must hold: the active one and a sealed one.
const MEMTABLES: f64 = 2.0;

/// The smallest memtable that is considered.
const MEMTABLE_BYTES_MIN: f64 = 65_536.0;

/// What is asked of a choice.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Most runs that a lookup must consider, mean over time.
    pub read_cost_max: Option<f64>,
    /// Most bytes held per live byte, mean over time.
    pub space_cost_max: Option<f64>,
    /// Bytes of memory for memtables and filters. If not given, memtables are of `memtable_bytes`
    /// and filters take what they need.
    pub memory_bytes: Option<u64>,
    /// Logical bytes at which a memtable is sealed, where memory is not given.
    pub memtable_bytes: u64,
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
    /// Bits of filter per key.
    pub filter_bits: f64,
    /// Bytes of memory that memtables and filters take.
    pub memory_bytes: u64,
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
    /// The least write cost within the limits, of policies that the store has.
    pub best: Choice,
    /// All choices that no other beats in write, read and space cost at once, whatever the limits;
    /// least write cost first.
    pub frontier: Vec<Choice>,
    /// How many choices were looked at.
    pub considered: usize,
    /// Seconds that it took.
    pub seconds: f64,
}

/// The best policy and parameters for `workload`.
///
/// # Errors
/// No choice keeps the limits, the workload writes nothing, or it has a damaged line.
pub fn tune(workload: &Workload, limits: &Limits) -> Result<Tuned> {
    let clock = Clock::start();
    let profile = Profile::of(workload)?;
    let memory = Memory::of(limits, &profile)?;
    let mut choices: Vec<Choice> = candidates(&profile, memory.memtable_bytes)
        .iter()
        .map(|candidate| memory.choice(candidate))
        .collect();
    choices.sort_by(|left, right| left.write_cost_user.total_cmp(&right.write_cost_user));
    let considered = choices.len();
    let within = |choice: &Choice| {
        choice.runs_on_store
            && limits.read_cost_max.is_none_or(|max| choice.read_cost_mean <= max)
            && limits.space_cost_max.is_none_or(|max| choice.space_cost_mean <= max)
    };
    let finalists: Vec<Choice> =
        choices.iter().filter(|choice| within(choice)).take(confirm::FINALISTS).cloned().collect();
    if finalists.is_empty() {
        bail!("{}", nothing_within(&choices));
    }
    let finalists = confirm::confirm(finalists, &profile)?;
    let Some(best) = finalists.iter().min_by(|left, right| order(left).total_cmp(&order(right)))
    else {
        bail!("no choice is within the limits");
    };
    let best = best.clone();
    let mut frontier = frontier(&choices);
    for choice in &mut frontier {
        let confirmed = finalists.iter().find(|finalist| finalist.policy == choice.policy);
        choice.confirmed = confirmed.and_then(|finalist| finalist.confirmed);
    }
    let seconds = clock.seconds();
    Ok(Tuned { workload: workload.spec().to_string(), best, frontier, considered, seconds })
}

/// The write cost with what the simulation adds to it or takes away.
fn order(choice: &Choice) -> f64 {
    let correction = choice.confirmed.map_or(1.0, |confirmed| confirmed.correction());
    choice.write_cost_user * correction
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

/// How memory is shared out.
#[derive(Clone, Copy, Debug)]
struct Memory {
    memtable_bytes: u64,
    filter_bits: f64,
    bytes: u64,
}

impl Memory {
    /// Filters get what they need, but at most half where memory is given; memtables the rest.
    fn of(limits: &Limits, profile: &Profile) -> Result<Memory> {
        let keys = profile.keys();
        let wanted = keys * FILTER_BITS / 8.0;
        let Some(memory) = limits.memory_bytes else {
            let bytes = wanted + MEMTABLES * limits.memtable_bytes as f64;
            return Ok(Memory {
                memtable_bytes: limits.memtable_bytes,
                filter_bits: FILTER_BITS,
                bytes: bytes as u64,
            });
        };
        let filters = wanted.min(memory as f64 / 2.0);
        let memtable = (memory as f64 - filters) / MEMTABLES;
        if memtable < MEMTABLE_BYTES_MIN {
            bail!("memory of {memory} bytes is too little: memtables take at least 64 KiB, twice");
        }
        Ok(Memory {
            memtable_bytes: memtable as u64,
            filter_bits: filters * 8.0 / keys,
            bytes: memory,
        })
    }

    fn choice(&self, candidate: &Candidate) -> Choice {
        let p = crate::model::false_positives(self.filter_bits);
        Choice {
            policy: candidate.policy.clone(),
            runs_on_store: candidate.runs_on_store,
            memtable_bytes: self.memtable_bytes,
            filter_bits: self.filter_bits,
            memory_bytes: self.bytes,
            write_cost_user: candidate.costs.write_cost_user,
            write_cost_system: candidate.costs.write_cost_system,
            read_cost_mean: candidate.costs.read_cost_mean,
            point_read_miss: p * candidate.costs.read_cost_mean,
            space_cost_mean: candidate.costs.space_cost_mean,
            confirmed: None,
        }
    }
}
