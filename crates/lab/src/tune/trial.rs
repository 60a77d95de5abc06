//! Simulates one policy key by key on a sample.

use super::sample::Sample;
use crate::jobs::{Job, Ticker};
use anyhow::Result;
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::KeyedSim;
use lsmith_spec::Spec;
use serde::Serialize;
use std::sync::Arc;

/// A policy that has written more bytes per byte of requests than this is given up.
pub(super) const WRITE_COST_MAX: f64 = 100.0;

/// A policy with more runs than this is given up.
pub(super) const RUNS_MAX: usize = 5000;

/// The figures of a policy in a keyed simulation. The crate's reports have the same names.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrialCosts {
    /// The writes that were simulated.
    pub writes: u64,
    /// The bytes of these writes over the bytes of all writes of the workload; 1 if all were
    /// simulated.
    pub share: f64,
    /// Bytes written, the log included, per byte of requests.
    pub write_cost_user: f64,
    /// Flushes and outputs of merges per byte flushed.
    pub write_cost_system: f64,
    /// Runs that a lookup must consider, averaged over flushes.
    pub read_cost_mean: f64,
    /// Bytes held per live byte, averaged over flushes.
    pub space_cost_mean: f64,
}

impl TrialCosts {
    /// Returns the costs, multiplied by the ratios of those of `changed` to those of `known`.
    pub(super) fn scaled(&self, changed: &TrialCosts, known: &TrialCosts) -> TrialCosts {
        let scaled = |cost: fn(&TrialCosts) -> f64| cost(self) * cost(changed) / cost(known);
        TrialCosts {
            write_cost_user: scaled(|costs| costs.write_cost_user),
            write_cost_system: scaled(|costs| costs.write_cost_system),
            read_cost_mean: scaled(|costs| costs.read_cost_mean),
            space_cost_mean: scaled(|costs| costs.space_cost_mean),
            ..*self
        }
    }
}

/// A policy to be simulated on a sample.
pub(super) struct Trial<'a> {
    pub(super) spec: &'a Spec,
    pub(super) sample: &'a Sample,
    /// The memtable of the whole workload.
    pub(super) memtable_bytes: u64,
}

impl Job for Trial<'_> {
    /// `None` if the policy was given up, or nothing was flushed.
    type Output = Option<TrialCosts>;

    fn work(&self) -> u64 {
        1
    }

    fn measure(&self, ticker: &Ticker<'_>) -> Result<Option<TrialCosts>> {
        let costs = self.costs(&Registry::builtin().build_spec(self.spec)?)?;
        ticker.tick(1);
        Ok(costs)
    }
}

impl Trial<'_> {
    fn costs(&self, policy: &Arc<dyn MergePolicy>) -> Result<Option<TrialCosts>> {
        let sample = self.sample;
        let memtable_bytes = (self.memtable_bytes as f64 * sample.share).round().max(1.0) as u64;
        let mut sim = KeyedSim::new(policy, memtable_bytes);
        for write in &sample.writes {
            sim.write(write.kind, write.rank, write.bytes);
            if !sim.is_full() {
                continue;
            }
            sim.flush(write.live_bytes, &mut |_| {})?;
            let is_hopeless = sim.figures().write_cost_system > WRITE_COST_MAX
                || sim.tree().disk_run_count() > RUNS_MAX;
            if is_hopeless {
                return Ok(None);
            }
            if sample.flushes_max.is_some_and(|most| sim.sealed() >= most) {
                break;
            }
        }
        let figures = sim.figures();
        if figures.parts.flush_bytes == 0 {
            return Ok(None);
        }
        let parts = figures.parts;
        let written = parts.flush_written_bytes + parts.merge_written_bytes;
        Ok(Some(TrialCosts {
            writes: sample.writes.len() as u64,
            share: sample.share,
            write_cost_user: 1.0 + written as f64 / parts.requested_bytes as f64,
            write_cost_system: figures.write_cost_system,
            read_cost_mean: figures.read_cost_mean,
            space_cost_mean: figures.space_cost_mean,
        }))
    }
}
