//! The limits on a choice.

use super::mix::Counts;
use super::objective::{Aim, Objective, Weights};
use anyhow::Result;
use lsmith_sim::Machine;
use lsmith_spec::Spec;
use lsmith_workload::Workload;
use serde::Serialize;

/// The limits on a choice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// The most runs that a lookup must consider, averaged over time.
    pub read_cost_max: Option<f64>,
    /// The most data blocks that a range read must look at, averaged over time.
    pub scan_cost_max: Option<f64>,
    /// The most bytes of files per live byte, averaged over time.
    pub space_cost_max: Option<f64>,
    /// The most logical bytes that a merge writes. Policies that take a largest merge are tried
    /// with it.
    pub merge_bytes_max: Option<u64>,
    /// Bytes of memory for memtables, filters and fence pointers. If `None`, memtables have
    /// `memtable_bytes`, and filters and fence pointers take as much as they need.
    pub memory_bytes: Option<u64>,
    /// Logical bytes at which a memtable is sealed, if `memory_bytes` is `None`.
    pub memtable_bytes: u64,
    /// What the choice is to be good at. If `None`: with a limit [`Aim::FewestBytes`], without one
    /// [`Aim::Balanced`].
    pub aim: Option<Aim>,
    /// The distance that the workload may drift, in nats. If given, the choice is the best in the
    /// worst case.
    pub drift: Option<f64>,
    /// A policy to hold against the best one.
    pub compare_to: Option<Spec>,
    /// Policies that are tried beside all others. Parameters that a spec leaves out are varied.
    pub policies: Vec<Spec>,
    /// The load and the SSD for which wear is told.
    pub device: Option<Device>,
    /// The machine on which the best choices are simulated in time.
    pub on_machine: Option<OnMachine>,
}

impl Limits {
    pub(super) fn objective(&self, workload: &Workload) -> Result<Objective> {
        let limits = [self.read_cost_max, self.scan_cost_max, self.space_cost_max];
        let is_limited = limits.iter().any(Option::is_some) || self.merge_bytes_max.is_some();
        let usual = if is_limited { Aim::FewestBytes } else { Aim::Balanced };
        let counts = Counts::of(workload)?;
        Ok(Objective {
            read_cost_max: self.read_cost_max,
            scan_cost_max: self.scan_cost_max,
            space_cost_max: self.space_cost_max,
            merge_bytes_max: self.merge_bytes_max,
            weights: self.aim.unwrap_or(usual).weights(&counts),
            even: Weights::EVEN.shared(counts.scan_share()),
        })
    }
}

/// A machine on which free runs are simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnMachine {
    /// What work costs.
    pub machine: Machine,
    /// Threads that merge.
    pub threads: usize,
}

/// A load and the SSD that takes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Device {
    /// The user's bytes per second.
    pub bytes_per_second: u64,
    /// The bytes that may be written to the SSD in its life.
    pub endurance_bytes: u64,
}

/// What an SSD takes under a choice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Wear {
    /// Bytes written to it a day.
    pub bytes_a_day: f64,
    /// The years until all bytes that may be written are written.
    pub years: f64,
}

impl Device {
    pub(super) fn wear(&self, write_cost_user: f64) -> Wear {
        let bytes_a_day = self.bytes_per_second as f64 * 86_400.0 * write_cost_user;
        Wear { bytes_a_day, years: self.endurance_bytes as f64 / bytes_a_day / 365.25 }
    }
}
