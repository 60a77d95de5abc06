//! Universal: RocksDB's tiered style, stopped by total size.

use crate::pressure::pressure_of_runs;
use crate::{Eager, Largest, Load, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack, StackRun};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::sync::Arc;

/// Does nothing below `trigger` runs. From then on merges, whichever applies first: all runs, if
/// the newer ones take more than `space_max` percent of the oldest; the newest row of runs in which
/// each exceeds all newer ones of the row together by at most `size_ratio` percent; or the newest
/// runs, if there are two more than `trigger`.
///
/// Source: RocksDB, by the rules that Lim et al., FAST 2016, simulate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Universal {
    trigger: u64,
    size_ratio: f64,
    space_percent_max: f64,
    eager: Eager,
    largest: Largest,
}

impl Universal {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "universal",
        source: "RocksDB; Lim et al., FAST 2016",
        summary: "from trigger runs on, merges the newest runs of like size, or all",
        params: &[
            ParamInfo {
                name: "trigger",
                default: "12",
                meaning: "runs at which to merge, 2 to 1000",
            },
            ParamInfo {
                name: "size_ratio",
                default: "1",
                meaning: "percent by which a run may be larger than all newer ones together",
            },
            ParamInfo {
                name: "space_max",
                default: "200",
                meaning: "bytes of all newer runs at which all runs are merged, in percent of the \
                          oldest",
            },
            Eager::PARAM,
            Largest::PARAM,
        ],
        build: |params| Ok(Arc::new(Universal::read(params)?)),
    };

    /// Returns the policy that merges from `trigger` runs on, from 2 to 1000. Other parameters
    /// have their defaults.
    ///
    /// # Errors
    /// Fails if `trigger` is out of range.
    pub fn new(trigger: u64) -> Result<Universal, SpecError> {
        Universal::INFO
            .read(&Spec::bare(Universal::INFO.name).with("trigger", trigger), Universal::read)
    }

    fn read(params: &Params<'_>) -> Result<Universal, SpecError> {
        Ok(Universal {
            trigger: params.count("trigger", 12, 2..=1000)?,
            size_ratio: params.real("size_ratio", 1.0, 0.0..=1000.0)?,
            space_percent_max: params.real("space_max", 200.0, 1.0..=1e6)?,
            eager: Eager::read(params)?,
            largest: Largest::read(params)?,
        })
    }

    /// Returns the end of the row of runs that starts with run `from`.
    fn row_end(&self, runs: &[StackRun], from: usize) -> usize {
        let mut row_bytes = runs[from].bytes as f64;
        let allowed = 1.0 + self.size_ratio / 100.0;
        let mut end = from + 1;
        while end < runs.len() && row_bytes * allowed >= runs[end].bytes as f64 {
            row_bytes += runs[end].bytes as f64;
            end += 1;
        }
        end
    }

    /// Returns the runs to merge, by their indexes, and the reason.
    fn due(&self, runs: &[StackRun]) -> Option<(usize, usize, Reason)> {
        let (oldest, newer) = runs.split_last()?;
        let newer_bytes: u64 = newer.iter().map(|run| run.bytes).sum();
        if newer_bytes as f64 > oldest.bytes as f64 * self.space_percent_max / 100.0 {
            let numbers = [newer_bytes, oldest.bytes, 0];
            let reason = Reason::new("newer runs hold {} bytes, the oldest {}", numbers);
            return Some((0, runs.len(), reason));
        }
        let ends = (0..runs.len()).map(|from| (from, self.row_end(runs, from)));
        if let Some((from, end)) = ends.into_iter().find(|(from, end)| end - from >= 2) {
            let reason =
                Reason::new("runs {} to {} are of like size", [from as u64, end as u64, 0]);
            return Some((from, end, reason));
        }
        let count = runs.len() as u64;
        let excess = count.checked_sub(self.trigger).filter(|excess| *excess >= 2)?;
        let reason = Reason::new("{} runs, {} trigger a merge", [count, self.trigger, 0]);
        Some((0, excess as usize, reason))
    }
}

impl MergePolicy for Universal {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("universal")
            .with("trigger", self.trigger)
            .with("size_ratio", self.size_ratio)
            .with("space_max", self.space_percent_max);
        self.largest.write(self.eager.write(spec))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if Stack::len_max(view) < self.trigger {
            return None;
        }
        let stack = Stack::up_to(view, self.largest);
        if (stack.len() as u64) < self.trigger {
            return None;
        }
        let (from, end, reason) = self.due(stack.runs())?;
        stack.merge(from, end, self.eager, reason)
    }

    /// One run more than trigger a merge may stay.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let runs = view.tree.disk_run_count();
        let is_bounded = self.largest.bytes().is_none();
        let excess = if is_bounded && runs as u64 > self.trigger + 1 { runs } else { 0 };
        pressure_of_runs(view, excess, self.trigger, load)
    }

    fn shape(&self) -> Shape {
        self.largest.shape(self.trigger + 1)
    }

    fn largest_merge(&self) -> Option<u64> {
        self.largest.bytes()
    }
}
