//! Simulates one policy key by key on a sample.

use super::sample::Sample;
use super::sizes::scaled;
use crate::jobs::{Job, Ticker};
use crate::physical::{FileSizes, PhysicalMeter};
use crate::scans::ScanCosts;
use anyhow::Result;
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{Event, KeyedSim};
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
    /// The size of simulated memtables over the workload's memtables, 1 if there are not too many
    /// memtables. The costs are extrapolated to the workload's memtables.
    pub memtable_factor: f64,
    /// The memtables that the writes fill.
    pub flushes: u64,
    /// Bytes written to files, the log included, per byte of keys and values. Logical bytes, if the
    /// workload is too small to tell what files take.
    pub write_cost_user: f64,
    /// Flushes and outputs of merges per byte flushed.
    pub write_cost_system: f64,
    /// Runs that a lookup must consider, averaged over flushes.
    pub read_cost_mean: f64,
    /// The most runs after a flush.
    pub runs_max: u64,
    /// Logical bytes of the largest output of a merge, as merges of the whole workload would have.
    pub merge_bytes_max: u64,
    /// Runs and data blocks that a range read must look at, averaged over flushes.
    pub scan_cost_mean: ScanCosts,
    /// Bytes held per live byte, averaged over flushes.
    pub space_cost_mean: f64,
    /// Bytes of files per live byte, averaged over flushes. As `space_cost_mean`, if the workload
    /// is too small to tell what files take.
    pub space_cost_physical_mean: f64,
}

impl TrialCosts {
    /// Returns the data blocks that a range read must look at.
    pub(super) fn scan_blocks(&self) -> f64 {
        self.scan_cost_mean.blocks.unwrap_or(self.scan_cost_mean.runs)
    }

    /// Returns the costs as bits. Two policies of equal costs on a sample have merged the same.
    pub(super) fn in_bits(&self) -> [u64; 4] {
        let costs = [
            self.write_cost_user,
            self.write_cost_system,
            self.read_cost_mean,
            self.space_cost_mean,
        ];
        costs.map(f64::to_bits)
    }

    /// Returns the costs, multiplied by the ratios of the costs in `changed` and in `known`.
    pub(super) fn scaled(&self, changed: &TrialCosts, known: &TrialCosts) -> TrialCosts {
        let scaled = |cost: fn(&TrialCosts) -> f64| cost(self) * cost(changed) / cost(known);
        TrialCosts {
            write_cost_user: scaled(|costs| costs.write_cost_user),
            write_cost_system: scaled(|costs| costs.write_cost_system),
            read_cost_mean: scaled(|costs| costs.read_cost_mean),
            scan_cost_mean: ScanCosts {
                runs: scaled(|costs| costs.scan_cost_mean.runs),
                blocks: Some(scaled(TrialCosts::scan_blocks)),
            },
            space_cost_mean: scaled(|costs| costs.space_cost_mean),
            space_cost_physical_mean: scaled(|costs| costs.space_cost_physical_mean),
            ..*self
        }
    }
}

/// A policy to be simulated on a sample.
pub(super) struct Trial<'a> {
    pub(super) policy: &'a Arc<dyn MergePolicy>,
    pub(super) sample: &'a Sample,
    /// The memtable of the whole workload.
    pub(super) memtable_bytes: u64,
    /// The most memtables that are simulated. With more, memtables are made larger.
    pub(super) flushes_max: f64,
    /// What files of the whole workload take, if known.
    pub(super) files: Option<FileSizes>,
    /// Builds the policy with other sizes.
    pub(super) registry: &'a Registry,
    /// The factor between the workload that somebody asks for and the one that is simulated.
    pub(super) shrink: f64,
}

/// The factor between the two memtables from which costs are extrapolated.
const STEP: f64 = 4.0;

impl Job for Trial<'_> {
    /// `None` if the policy was given up, or nothing was flushed.
    type Output = Option<TrialCosts>;

    fn work(&self) -> u64 {
        1
    }

    fn measure(&self, ticker: &Ticker<'_>) -> Result<Option<TrialCosts>> {
        let costs = self.extrapolated()?;
        ticker.tick(1);
        Ok(costs)
    }
}

impl Trial<'_> {
    /// Returns the costs with the workload's memtables. If there are too many, larger ones are
    /// simulated, and ones that are larger still. Writes and reads are taken to be a power of the
    /// number of flushes. Space depends on it little.
    fn extrapolated(&self) -> Result<Option<TrialCosts>> {
        let memtable_bytes = (self.memtable_bytes as f64 * self.sample.share).max(1.0);
        let flushes = self.sample.bytes() as f64 / memtable_bytes;
        let factor = flushes / self.flushes_max;
        if factor <= 1.0 {
            return self.costs(memtable_bytes);
        }
        let Some(near) = self.costs(memtable_bytes * factor)? else { return Ok(None) };
        let Some(far) = self.costs(memtable_bytes * factor * STEP)? else {
            return Ok(None);
        };
        let power = factor.ln() / STEP.ln();
        let grown = |cost: fn(&TrialCosts) -> f64| {
            let growth = (cost(&near) / cost(&far)).clamp(1.0, STEP);
            cost(&near) * growth.powf(power)
        };
        let read_cost_mean = grown(|costs| costs.read_cost_mean);
        // A range read looks at one more block for each further run.
        let blocks = near.scan_blocks() + read_cost_mean - near.read_cost_mean;
        Ok(Some(TrialCosts {
            memtable_factor: factor,
            flushes: (near.flushes as f64 * factor).round() as u64,
            write_cost_user: 1.0 + grown(|costs| costs.write_cost_user - 1.0),
            write_cost_system: grown(|costs| costs.write_cost_system),
            read_cost_mean,
            runs_max: (near.runs_max as f64 * read_cost_mean / near.read_cost_mean).round() as u64,
            scan_cost_mean: ScanCosts { runs: read_cost_mean, blocks: Some(blocks) },
            ..near
        }))
    }

    fn costs(&self, memtable_bytes: f64) -> Result<Option<TrialCosts>> {
        let sample = self.sample;
        let memtable_bytes = memtable_bytes.round() as u64;
        let scale = sample.share / self.shrink;
        let policy = scaled(self.registry, self.policy, scale);
        let mut sim = KeyedSim::new(&policy, memtable_bytes).with_scan_items(sample.scan_items);
        let files = self.files.map(|files| files.of_share(sample.share));
        let mut files = files.map(PhysicalMeter::new);
        let mut observe = |event: Event<'_>| {
            if let Some(files) = &mut files {
                files.observe(event);
            }
        };
        for write in &sample.writes {
            sim.write(write.kind, write.rank, write.bytes);
            if !sim.is_full() {
                continue;
            }
            sim.set_live_entries(u64::from(write.live_entries));
            sim.flush(write.live_bytes, &mut observe)?;
            let is_hopeless = sim.figures().write_cost_system > WRITE_COST_MAX
                || sim.tree().disk_run_count() > RUNS_MAX;
            if is_hopeless {
                return Ok(None);
            }
            if sample.flushes_max.is_some_and(|most| sim.flushes() >= most) {
                break;
            }
        }
        let figures = sim.figures();
        if figures.parts.flush_bytes == 0 {
            return Ok(None);
        }
        let parts = figures.parts;
        let written = parts.flush_written_bytes + parts.merge_written_bytes;
        let logical = 1.0 + written as f64 / parts.requested_bytes as f64;
        let physical = files.map(|files| files.costs(&figures));
        Ok(Some(TrialCosts {
            writes: sample.writes.len() as u64,
            share: sample.share,
            memtable_factor: 1.0,
            flushes: parts.flushes,
            write_cost_user: physical.map_or(logical, |physical| physical.write_cost_user),
            write_cost_system: figures.write_cost_system,
            read_cost_mean: figures.read_cost_mean,
            runs_max: figures.runs_max,
            merge_bytes_max: (figures.merge_bytes_max as f64 / scale).round() as u64,
            scan_cost_mean: figures.scan_cost_mean.into(),
            space_cost_mean: figures.space_cost_mean,
            space_cost_physical_mean: physical
                .map_or(figures.space_cost_mean, |physical| physical.space_cost_physical_mean),
        }))
    }
}
