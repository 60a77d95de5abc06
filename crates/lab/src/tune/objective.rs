//! What makes one policy better than another: limits, and what a saving is worth.

use super::mix::Counts;
use super::trial::TrialCosts;
use crate::report::EngineReport;
use lsmith_tree::BLOCK_BYTES_USUAL;
use serde::Serialize;

/// What a choice is to be good at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aim {
    /// The fewest bytes written. The default with a limit.
    FewestBytes,
    /// The least work per operation, for the mix of the workload.
    LowestLatency,
    /// The most operations per second in simulated time, of the dozen choices with the least work.
    /// Needs a machine.
    Fastest,
    /// The fewest bytes held. Of choices that hold about the same, the one with the least work.
    LeastSpace,
    /// Work and bytes held count alike. The default without a limit.
    Balanced,
    /// Weights of one's own.
    Weights(Weights),
}

/// How much a change by one percent is worth: of bytes written, of the work of a lookup, of blocks
/// per range read, of bytes held. With equal weights, a policy that writes a tenth less and holds a
/// tenth more is about as good.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Weights {
    /// Of `write_cost_user`.
    pub write: f64,
    /// Of the work of a lookup: one block, and [`RUN_WORK`] for each run of `read_cost_mean`.
    pub read: f64,
    /// Of the blocks of `scan_cost_mean`. If `None`, `read` is the weight of lookups and range
    /// reads together, and is shared among them as they are in the workload.
    pub scan: Option<f64>,
    /// Of `space_cost_physical_mean`.
    pub space: f64,
}

/// The work of asking the filter of a run, over the work of looking at a block.
pub const RUN_WORK: f64 = 1.0 / 16.0;

/// The work of writing an entry once, and of writing a block of entries, over the work of looking
/// at a block.
const ENTRY_WORK: f64 = 0.2;
const BLOCK_WORK: f64 = 1.0;

/// The write cost and the blocks per range read by which work is shared among operations. They are
/// what common policies have.
const USUAL_WRITE_COST: f64 = 4.0;
const USUAL_SCAN_BLOCKS: f64 = 4.0;

/// How much the work counts where space is the aim.
const LITTLE: f64 = 0.1;

impl Aim {
    /// Returns the weights for a workload with these counts of operations.
    pub(super) fn weights(self, counts: &Counts) -> Weights {
        let work = work(counts);
        match self {
            Aim::FewestBytes => Weights::WRITES,
            Aim::LowestLatency | Aim::Fastest => work,
            Aim::Balanced => Weights { space: 1.0, ..work },
            Aim::LeastSpace => Weights {
                write: LITTLE * work.write,
                read: LITTLE * work.read,
                scan: work.scan.map(|scan| LITTLE * scan),
                space: 1.0,
            },
            Aim::Weights(weights) => weights.shared(counts.scan_share()),
        }
    }
}

/// Returns the shares of the work of a workload: of its writes, its lookups and its range reads.
fn work(counts: &Counts) -> Weights {
    let per_write = ENTRY_WORK + BLOCK_WORK * counts.entry_bytes / BLOCK_BYTES_USUAL as f64;
    let write = counts.writes * per_write * USUAL_WRITE_COST;
    let scan = counts.scans * USUAL_SCAN_BLOCKS;
    let all = write + counts.lookups + scan;
    Weights { write: write / all, read: counts.lookups / all, scan: Some(scan / all), space: 0.0 }
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
            * (1.0 + RUN_WORK * costs.runs).powf(self.read)
            * costs.scan.powf(self.scan.unwrap_or_default())
            * costs.space.powf(self.space)
    }
}

/// The costs that are limited and weighed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weighed {
    /// Bytes written to files per byte of the user.
    pub(super) write: f64,
    /// Runs per lookup.
    pub(super) runs: f64,
    /// Blocks per range read.
    pub(super) scan: f64,
    /// Bytes of files per live byte.
    pub(super) space: f64,
    /// Logical bytes of the longest merge.
    pub(super) merge: f64,
}

impl From<&TrialCosts> for Weighed {
    fn from(costs: &TrialCosts) -> Weighed {
        Weighed {
            write: costs.write_cost_user,
            runs: costs.read_cost_mean,
            scan: costs.scan_blocks(),
            space: costs.space_cost_physical_mean,
            merge: costs.merge_bytes_max as f64,
        }
    }
}

impl From<&EngineReport> for Weighed {
    /// An unknown space cost is within each limit.
    fn from(report: &EngineReport) -> Weighed {
        let scan = report.costs.scan_cost_mean;
        Weighed {
            write: report.write_cost_user.unwrap_or(1.0),
            runs: report.costs.read_cost_mean,
            scan: scan.blocks.unwrap_or(scan.runs),
            space: report.space_cost_physical_mean.unwrap_or(1.0),
            merge: report.costs.merge_bytes_max as f64,
        }
    }
}

/// The limits on costs, and the weights within them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Objective {
    pub(super) read_cost_max: Option<f64>,
    pub(super) scan_cost_max: Option<f64>,
    pub(super) space_cost_max: Option<f64>,
    pub(super) merge_bytes_max: Option<u64>,
    /// The weights that the caller asked for, with the weight of range reads.
    pub(super) weights: Weights,
    /// Weights that count all costs alike.
    pub(super) even: Weights,
}

impl Objective {
    /// Returns true if costs that may be `tolerance` too high or too low can be within the limits.
    /// A negative tolerance keeps a margin.
    pub(super) fn allows(&self, costs: &Weighed, tolerance: f64) -> bool {
        let within = |cost: f64, max: Option<f64>| {
            max.is_none_or(|max| cost <= max * (1.0 + tolerance) + f64::EPSILON)
        };
        within(costs.runs, self.read_cost_max)
            && within(costs.scan, self.scan_cost_max)
            && within(costs.space, self.space_cost_max)
            && within(costs.merge, self.merge_bytes_max.map(|bytes| bytes as f64))
    }

    pub(super) fn score(&self, costs: &Weighed) -> f64 {
        self.weights.score(costs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Weighed = Weighed { write: 2.0, runs: 3.0, scan: 5.0, space: 7.0, merge: 11.0 };

    /// The work of a lookup with so many runs.
    const LOOKUP: f64 = 1.0 + 3.0 * RUN_WORK;

    const COUNTS: Counts = Counts { writes: 10.0, lookups: 30.0, scans: 0.0, entry_bytes: 4096.0 };

    #[test]
    fn work_is_shared_as_the_workload_has_it() {
        let weights = Aim::Balanced.weights(&COUNTS);
        let writes = 10.0 * (ENTRY_WORK + BLOCK_WORK) * USUAL_WRITE_COST;
        assert!((weights.write - writes / (writes + 30.0)).abs() < 1e-9, "{weights:?}");
        assert!((weights.write + weights.read - 1.0).abs() < 1e-9, "{weights:?}");
        assert_eq!((weights.scan, weights.space), (Some(0.0), 1.0));
        let only_writes = Counts { lookups: 0.0, ..COUNTS };
        let quick = Aim::LowestLatency.weights(&only_writes);
        assert_eq!(quick, Weights { scan: Some(0.0), ..Weights::WRITES });
        let small = Aim::LeastSpace.weights(&only_writes);
        assert!(small.space > 5.0 * small.write, "{small:?}");
    }

    #[test]
    fn lookups_and_range_reads_share_the_weight_of_reads() {
        for (scan_share, expected) in [(0.0, 2.0 * LOOKUP * 7.0), (1.0, 2.0 * 5.0 * 7.0)] {
            assert!((Weights::EVEN.shared(scan_share).score(&COSTS) - expected).abs() < 1e-9);
        }
        let half = Weights::EVEN.shared(0.5).score(&COSTS);
        assert!((half - 2.0 * (5.0 * LOOKUP).sqrt() * 7.0).abs() < 1e-9, "{half}");
        // A weight of its own is not shared.
        let own = Weights { scan: Some(2.0), ..Weights::EVEN }.shared(0.5).score(&COSTS);
        assert!((own - 2.0 * LOOKUP * 25.0 * 7.0).abs() < 1e-9, "{own}");
    }

    #[test]
    fn each_limit_holds() {
        let objective = |read, scan, space| Objective {
            read_cost_max: read,
            scan_cost_max: scan,
            space_cost_max: space,
            merge_bytes_max: None,
            weights: Weights::WRITES,
            even: Weights::EVEN,
        };
        let allows = |objective: Objective| objective.allows(&COSTS, 0.0);
        assert!(allows(objective(Some(3.0), Some(5.0), Some(7.0))));
        assert!(!allows(objective(Some(2.9), None, None)));
        assert!(!allows(objective(None, Some(4.9), None)));
        assert!(!allows(objective(None, None, Some(6.9))));
        assert!(objective(None, Some(4.9), None).allows(&COSTS, 0.05));
        let of_merges =
            |bytes| Objective { merge_bytes_max: Some(bytes), ..objective(None, None, None) };
        assert_eq!([10, 11].map(|bytes| allows(of_merges(bytes))), [false, true]);
    }
}
