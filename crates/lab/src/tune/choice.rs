//! Choices: policies with what they cost.

use super::candidate::Candidate;
use super::limits::Wear;
use super::memory::{Memory, MemoryNeed};
use super::trial::TrialCosts;
use crate::model::false_positives;
use serde::Serialize;

/// A policy with its costs in a keyed simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The spec of the policy.
    pub policy: String,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// Filter bits per entry.
    pub filter_bits: f64,
    /// Bytes of memory that the choice needs.
    pub memory_bytes: u64,
    /// The parts of this memory.
    pub memory: MemoryNeed,
    /// The costs, and on how many writes they were simulated.
    #[serde(flatten)]
    pub costs: TrialCosts,
    /// The runs that a lookup of an absent key reads, with filters.
    pub point_read_miss: f64,
    /// What the SSD takes, if the load was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wear: Option<Wear>,
    /// The limits under which this choice would be the best of the frontier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wins_with: Option<String>,
}

impl Choice {
    /// Returns the choice of a candidate whose costs are known.
    pub(super) fn of(candidate: &Candidate, memory: &Memory) -> Option<Choice> {
        let costs = candidate.costs?;
        let (need, filter_bits) = memory.need(costs.space_cost_mean);
        Some(Choice {
            policy: candidate.spec.to_string(),
            memtable_bytes: memory.memtable_bytes,
            filter_bits,
            memory_bytes: need.total(),
            memory: need,
            costs,
            point_read_miss: false_positives(filter_bits) * costs.read_cost_mean,
            wear: None,
            wins_with: None,
        })
    }
}
