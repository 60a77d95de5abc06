//! Cumulative: Scylla's incremental compaction, by the rule that sums up newer runs.

use crate::pressure::pressure_of_runs;
use crate::{Eager, Load, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack, StackRun};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::sync::Arc;

/// Merges the oldest run that all newer ones together come to at least `threshold` times, with all
/// of them, if these are at least `min` runs. With a `goal`, merges all runs as soon as they hold
/// more than `goal` times the bytes of the oldest.
///
/// Scylla looks for the largest such run, sums up smaller runs instead of newer ones, and merges at
/// most 32. Here merges take neighbours, and the newest run is nearly always the smallest. Scylla's
/// space amplification goal compares the two largest tiers alone. That runs consist of fragments,
/// which gave the strategy its name, saves space while a merge runs: here a policy has no say in
/// that. Without `cumulative_bucket_threshold` the strategy merges runs of like size, as `tiered`
/// and `ucs` do.
///
/// Source: Scylla, `IncrementalCompactionStrategy`, and pull request 30083 for the threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ics {
    threshold: f64,
    min: usize,
    goal: Option<f64>,
    eager: Eager,
}

impl Ics {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "ics",
        source: "Scylla, IncrementalCompactionStrategy; pull request 30083",
        summary: "merges the oldest run that all newer ones come to, with all of them",
        params: &[
            ParamInfo {
                name: "threshold",
                default: "1.0",
                meaning: "newer runs over the oldest of a merge, at least, 0.01 to 100",
            },
            ParamInfo { name: "min", default: "2", meaning: "fewest runs of a merge, 2 to 1000" },
            ParamInfo {
                name: "goal",
                default: "none",
                meaning: "all runs over the oldest, at most: above it all are merged; more than 1 \
                          and up to 1000",
            },
            Eager::PARAM,
        ],
        build: |params| Ok(Arc::new(Ics::read(params)?)),
    };

    /// Returns the policy that merges a run when newer ones come to `threshold` times its size,
    /// from 0.01 to 100. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `threshold` is out of range.
    pub fn new(threshold: f64) -> Result<Ics, SpecError> {
        Ics::INFO.read(&Spec::bare(Ics::INFO.name).with("threshold", threshold), Ics::read)
    }

    fn read(params: &Params<'_>) -> Result<Ics, SpecError> {
        let goal = match params.text("goal") {
            None | Some("none") => None,
            _ => params.real_if_given("goal", 1.0..=1000.0)?,
        };
        if goal == Some(1.0) {
            return Err(SpecError::conflict("goal = 1 is out of range: expected more than 1"));
        }
        Ok(Ics {
            threshold: params.real("threshold", 1.0, 0.01..=100.0)?,
            min: params.count("min", 2, 2..=1000)? as usize,
            goal,
            eager: Eager::read(params)?,
        })
    }

    /// Returns how many of the newest runs are merged, and why.
    fn due(&self, runs: &[StackRun]) -> Option<(usize, Reason)> {
        let bytes = |runs: &[StackRun]| runs.iter().map(|run| run.bytes).sum::<u64>();
        let (oldest, newer) = runs.split_last()?;
        let (oldest_bytes, newer_bytes) = (oldest.bytes, bytes(newer));
        let exceeds = |goal: f64| newer_bytes as f64 > (goal - 1.0) * oldest_bytes as f64;
        if !newer.is_empty() && self.goal.is_some_and(exceeds) {
            let numbers = [newer_bytes, oldest_bytes, 0];
            return Some((
                runs.len(),
                Reason::new("newer runs hold {} bytes, the oldest {}", numbers),
            ));
        }
        let mut newer_bytes = newer_bytes;
        for (newer, run) in runs.iter().enumerate().skip(self.min - 1).rev() {
            if newer + 1 < runs.len() {
                newer_bytes -= run.bytes;
            }
            if newer_bytes as f64 >= self.threshold * run.bytes as f64 {
                let numbers = [newer as u64, newer_bytes, run.bytes];
                let reason = Reason::new("{} newer runs hold {} bytes, the next {}", numbers);
                return Some((newer + 1, reason));
            }
        }
        None
    }

    /// Returns the most runs at rest if each has at least `least` bytes and all together have
    /// `all`. Each run behind the first few holds more than `1 / threshold` of all newer ones.
    fn runs_max(&self, least: f64, all: f64) -> u64 {
        let growing = (all / least).ln() / (1.0 / self.threshold).ln_1p();
        self.min as u64 - 1 + growing as u64
    }
}

impl MergePolicy for Ics {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("ics").with("threshold", self.threshold).with("min", self.min);
        self.eager.write(match self.goal {
            Some(goal) => spec.with("goal", goal),
            None => spec,
        })
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if Stack::len_max(view) < 2 {
            return None;
        }
        let stack = Stack::of(view);
        let (end, reason) = self.due(stack.runs())?;
        stack.merge(0, end, self.eager, reason)
    }

    /// The bound of the shape holds for any data. Runs that hold writers back are those beyond what
    /// these data may have.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let runs = view.tree.disk_runs().map(|run| run.bytes().max(1) as f64);
        let (least, all) = runs.fold((f64::INFINITY, 0.0), |(least, all): (f64, f64), bytes| {
            (least.min(bytes), all + bytes)
        });
        let allowed = if all > 0.0 { self.runs_max(least, all) } else { 1 };
        pressure_of_runs(view, view.tree.disk_run_count(), allowed, load)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.runs_max(1.0, u64::MAX as f64) }
    }
}
