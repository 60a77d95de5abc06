//! What writes and reads can cost together, at least.

use super::objective::{Weighed, Weights};
use super::trial::TrialCosts;
use lsmith_model::optimum::{HullPoint, least_weighted};
use serde::Serialize;

/// The least product of writes and reads, each to the power of its weight, of any schedule of
/// merges of whole runs with as many flushes, if no key were written twice. Space does not count. A
/// policy may be below it if keys repeat, or if it moves or keeps a part of what it merges.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Least {
    /// `write_cost_system` of the schedule.
    pub write_cost_system: f64,
    /// `read_cost_mean` of the schedule.
    pub read_cost_mean: f64,
    /// True if a schedule has these costs; otherwise none is below them.
    pub is_exact: bool,
    /// The product of the best choice over the schedule's product, minus 1.
    pub above: f64,
}

impl Least {
    /// Returns the least for a policy of these `costs`. `None` if neither writes nor reads count.
    pub(super) fn of(costs: &TrialCosts, weights: &Weights) -> Option<Least> {
        let weights = Weights { space: 0.0, ..*weights };
        if weights.write + weights.read + weights.scan.unwrap_or_default() == 0.0 {
            return None;
        }
        // The blocks that a range read passes over if nothing is obsolete.
        let passed = (costs.scan_blocks() - costs.scan_cost_mean.runs) / costs.space_cost_mean;
        let score = |point: &HullPoint| {
            let runs = point.runs_mean;
            weights.score(&Weighed {
                write: point.write_cost,
                runs,
                scan: runs + passed,
                space: 1.0,
                merge: 0.0,
            })
        };
        // The schedule knows no bytes of files.
        let own = Weighed { write: costs.write_cost_system, ..costs.into() };
        let least = least_weighted(costs.flushes, score);
        Some(Least {
            write_cost_system: least.point.write_cost,
            read_cost_mean: least.point.runs_mean,
            is_exact: least.is_exact,
            above: weights.score(&own) / score(&least.point) - 1.0,
        })
    }
}
