//! What makes one policy better than another: limits, and what a saving is worth.

use super::trial::TrialCosts;
use crate::report::Costs;
use serde::Serialize;

/// How much a change by one percent is worth: of bytes written, of runs per lookup, of blocks per
/// range read, of bytes held. With equal weights, a policy that writes a tenth less and holds a
/// tenth more is about as good.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Weights {
    /// Of `write_cost_system`.
    pub write: f64,
    /// Of `read_cost_mean`.
    pub read: f64,
    /// Of the blocks of `scan_cost_mean`. If `None`, `read` is the weight of lookups and range
    /// reads together, and is shared among them as they are in the workload.
    pub scan: Option<f64>,
    /// Of `space_cost_mean`.
    pub space: f64,
}

impl Weights {
    /// Only bytes written count.
    pub const WRITES: Weights = Weights { write: 1.0, read: 0.0, scan: None, space: 0.0 };

    /// Writes, reads and space count alike.
    pub const EVEN: Weights = Weights { write: 1.0, read: 1.0, scan: None, space: 1.0 };

    /// Returns the weights with one for range reads, which are `scan_share` of all reads.
    pub(super) fn shared(self, scan_share: f64) -> Weights {
        if self.scan.is_some() {
            return self;
        }
        let scan = self.read * scan_share;
        Weights { read: self.read - scan, scan: Some(scan), ..self }
    }

    /// Returns the product of the costs, each to the power of its weight; less is better.
    pub(super) fn score(&self, costs: &Weighed) -> f64 {
        costs.write.powf(self.write)
            * costs.read.powf(self.read)
            * costs.scan.powf(self.scan.unwrap_or_default())
            * costs.space.powf(self.space)
    }
}

/// The costs that are limited and weighed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighed {
    pub(super) write: f64,
    pub(super) read: f64,
    /// Blocks per range read.
    pub(super) scan: f64,
    pub(super) space: f64,
}

impl From<&TrialCosts> for Weighed {
    fn from(costs: &TrialCosts) -> Weighed {
        Weighed {
            write: costs.write_cost_system,
            read: costs.read_cost_mean,
            scan: costs.scan_blocks(),
            space: costs.space_cost_mean,
        }
    }
}

impl From<&Costs> for Weighed {
    /// An unknown space cost is within each limit.
    fn from(costs: &Costs) -> Weighed {
        Weighed {
            write: costs.write_cost_system,
            read: costs.read_cost_mean,
            scan: costs.scan_cost_mean.blocks.unwrap_or(costs.scan_cost_mean.runs),
            space: costs.space_cost_mean.unwrap_or(1.0),
        }
    }
}

/// The limits on costs, and the weights within them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Objective {
    pub(super) read_cost_max: Option<f64>,
    pub(super) scan_cost_max: Option<f64>,
    pub(super) space_cost_max: Option<f64>,
    /// With a weight for range reads.
    pub(super) weights: Weights,
    /// The same, with which all costs count alike.
    pub(super) even: Weights,
}

impl Objective {
    /// Returns true if costs that may be `tolerance` too high or too low can be within the limits.
    /// A negative tolerance keeps a margin.
    pub(super) fn allows(&self, costs: &Weighed, tolerance: f64) -> bool {
        let within = |cost: f64, max: Option<f64>| {
            max.is_none_or(|max| cost <= max * (1.0 + tolerance) + f64::EPSILON)
        };
        within(costs.read, self.read_cost_max)
            && within(costs.scan, self.scan_cost_max)
            && within(costs.space, self.space_cost_max)
    }

    pub(super) fn score(&self, costs: &Weighed) -> f64 {
        self.weights.score(costs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Weighed = Weighed { write: 2.0, read: 3.0, scan: 5.0, space: 7.0 };

    #[test]
    fn lookups_and_range_reads_share_the_weight_of_reads() {
        for (scan_share, expected) in [(0.0, 2.0 * 3.0 * 7.0), (1.0, 2.0 * 5.0 * 7.0)] {
            assert!((Weights::EVEN.shared(scan_share).score(&COSTS) - expected).abs() < 1e-9);
        }
        let half = Weights::EVEN.shared(0.5).score(&COSTS);
        assert!((half - 2.0 * 15_f64.sqrt() * 7.0).abs() < 1e-9, "{half}");
        // A weight of its own is not shared.
        let own = Weights { scan: Some(2.0), ..Weights::EVEN }.shared(0.5).score(&COSTS);
        assert!((own - 2.0 * 3.0 * 25.0 * 7.0).abs() < 1e-9, "{own}");
    }

    #[test]
    fn each_limit_holds() {
        let objective = |read, scan, space| Objective {
            read_cost_max: read,
            scan_cost_max: scan,
            space_cost_max: space,
            weights: Weights::WRITES,
            even: Weights::EVEN,
        };
        let allows = |objective: Objective| objective.allows(&COSTS, 0.0);
        assert!(allows(objective(Some(3.0), Some(5.0), Some(7.0))));
        assert!(!allows(objective(Some(2.9), None, None)));
        assert!(!allows(objective(None, Some(4.9), None)));
        assert!(!allows(objective(None, None, Some(6.9))));
        assert!(objective(None, Some(4.9), None).allows(&COSTS, 0.05));
    }
}
