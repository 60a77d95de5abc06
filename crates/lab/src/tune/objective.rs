//! What makes one policy better than another: limits, and what a saving is worth.

use super::trial::TrialCosts;
use serde::Serialize;

/// How much a change by one percent is worth: of bytes written, of runs per lookup, of bytes held.
/// With equal weights, a policy that writes a tenth less and holds a tenth more is about as good.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Weights {
    /// Of `write_cost_system`.
    pub write: f64,
    /// Of `read_cost_mean`.
    pub read: f64,
    /// Of `space_cost_mean`.
    pub space: f64,
}

impl Weights {
    /// Only bytes written count.
    pub const WRITES: Weights = Weights { write: 1.0, read: 0.0, space: 0.0 };

    /// All three count alike.
    pub const EVEN: Weights = Weights { write: 1.0, read: 1.0, space: 1.0 };

    /// Returns the product of the costs, each to the power of its weight; less is better.
    pub(super) fn score(&self, costs: &TrialCosts) -> f64 {
        self.product(costs.write_cost_system, costs.read_cost_mean, costs.space_cost_mean)
    }

    /// Returns the product of three costs, each to the power of its weight.
    pub(super) fn product(&self, write: f64, read: f64, space: f64) -> f64 {
        write.powf(self.write) * read.powf(self.read) * space.powf(self.space)
    }
}

/// The limits on costs, and the weights within them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Objective {
    pub(super) read_cost_max: Option<f64>,
    pub(super) space_cost_max: Option<f64>,
    pub(super) weights: Weights,
}

impl Objective {
    /// Returns true if costs that may be `tolerance` too high or too low can be within the limits.
    /// A negative tolerance keeps a margin.
    pub(super) fn allows(&self, costs: &TrialCosts, tolerance: f64) -> bool {
        let within = |cost: f64, max: Option<f64>| {
            max.is_none_or(|max| cost <= max * (1.0 + tolerance) + f64::EPSILON)
        };
        within(costs.read_cost_mean, self.read_cost_max)
            && within(costs.space_cost_mean, self.space_cost_max)
    }

    /// Returns true if measured costs are within the limits. An unknown space cost is.
    pub(super) fn allows_figures(&self, read: f64, space: Option<f64>) -> bool {
        let space = space.unwrap_or(0.0);
        self.read_cost_max.is_none_or(|max| read <= max)
            && self.space_cost_max.is_none_or(|max| space <= max)
    }

    pub(super) fn score(&self, costs: &TrialCosts) -> f64 {
        self.weights.score(costs)
    }
}
