//! Exploring: HBase's default policy.

use super::{K, K_RANGE};
use crate::{Eager, Largest, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack, StackRun};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::sync::Arc;

/// Considers every window of `min` to `max` neighbouring runs whose largest run is at most `lambda`
/// times the others together. With at most `k` runs, merges the longest such window, and the
/// smallest of equally long ones. Past `k` runs, merges the window of the least mean size. If there
/// is no such window, merges the smallest `min` neighbours. Merges once per flush. Ties go to the
/// window that starts with the oldest run.
///
/// Source: Mao et al., section 2; HBase's ExploringCompactionPolicy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exploring {
    pub(super) k: u64,
    lambda: f64,
    min: usize,
    max: usize,
    eager: Eager,
    largest: Largest,
}

/// The note that prevents a second merge for the same flush.
const MERGED_AT: &str = "merged_at";

/// A window of the stack. Indexes count from the newest run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) from: usize,
    pub(super) end: usize,
    pub(super) bytes: u64,
}

impl Window {
    fn len(&self) -> usize {
        self.end - self.from
    }

    /// Returns true if this window is longer, or equally long and smaller.
    fn is_longer_than(&self, other: &Window) -> bool {
        self.len() > other.len() || (self.len() == other.len() && self.bytes < other.bytes)
    }

    fn has_less_mean_than(&self, other: &Window) -> bool {
        let mine = u128::from(self.bytes);
        let theirs = u128::from(other.bytes);
        mine * (other.len() as u128) < theirs * (self.len() as u128)
    }
}

impl Exploring {
    pub(super) const LAMBDA: ParamInfo = ParamInfo {
        name: "lambda",
        default: "1.2",
        meaning: "the largest run of a window over the sum of the others, at most",
    };
    pub(super) const MIN: ParamInfo =
        ParamInfo { name: "min", default: "3", meaning: "fewest runs in a window" };
    pub(super) const MAX: ParamInfo =
        ParamInfo { name: "max", default: "10", meaning: "most runs in a window" };

    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "exploring",
        source: "Mao et al., VLDB Journal 2021, section 2; HBase",
        summary: "merges the most worthwhile window of neighbouring runs of similar size",
        params: &[
            K,
            Exploring::LAMBDA,
            Exploring::MIN,
            Exploring::MAX,
            Eager::PARAM,
            Largest::PARAM,
        ],
        build: |params| Ok(Arc::new(Exploring::read(params)?)),
    };

    /// Returns the policy that leaves at most `k` runs, from 1 to 64. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `k` is out of range.
    pub fn new(k: u64) -> Result<Exploring, SpecError> {
        Exploring::INFO.read(&Spec::bare(Exploring::INFO.name).with("k", k), Exploring::read)
    }

    pub(super) fn read(params: &Params<'_>) -> Result<Exploring, SpecError> {
        let min = params.count("min", 3, 2..=1000)?;
        let max = params.count("max", 10, 2..=1000)?;
        if max < min {
            let message = format!("max = {max} is below min = {min}");
            return Err(SpecError::conflict(message));
        }
        Ok(Exploring {
            k: params.count("k", 5, K_RANGE)?,
            lambda: params.real("lambda", 1.2, 0.0..=1e6)?,
            min: min as usize,
            max: max as usize,
            eager: Eager::read(params)?,
            largest: Largest::read(params)?,
        })
    }

    fn is_balanced(&self, largest_bytes: u64, other_bytes: u64) -> bool {
        largest_bytes as f64 <= self.lambda * other_bytes as f64
    }

    /// Returns the best window of runs of similar size. Of equally good ones, returns the first in
    /// this order: oldest start first, then shortest first.
    fn best(
        &self,
        runs: &[StackRun],
        is_better: impl Fn(&Window, &Window) -> bool,
    ) -> Option<Window> {
        let mut best: Option<Window> = None;
        let mut newer_bytes = bytes(runs);
        for (oldest, run) in runs.iter().enumerate().skip(self.min - 1).rev() {
            // No window with this oldest run has a smaller largest run, or more bytes in its
            // others, than all newer runs have. This rules most starts out quickly.
            newer_bytes -= run.bytes;
            if !self.is_balanced(run.bytes, newer_bytes) {
                continue;
            }
            let mut window = Window { from: oldest + 1, end: oldest + 1, bytes: 0 };
            let mut largest = 0;
            for run in runs[..=oldest].iter().rev().take(self.max) {
                window.from -= 1;
                window.bytes += run.bytes;
                largest = largest.max(run.bytes);
                if window.len() >= self.min
                    && self.is_balanced(largest, window.bytes - largest)
                    && best.is_none_or(|best| is_better(&window, &best))
                {
                    best = Some(window);
                }
            }
        }
        best
    }

    /// Returns the best window of `runs`, newest first, and the reason for it.
    pub(super) fn choose(&self, runs: &[StackRun]) -> Option<(Window, &'static str)> {
        if runs.len() as u64 <= self.k {
            let best = self.best(runs, Window::is_longer_than);
            return best.map(|window| (window, "{} runs, {} allowed; {} of similar size"));
        }
        if let Some(window) = self.best(runs, Window::has_less_mean_than) {
            return Some((window, "{} runs, {} allowed; {} of least mean size"));
        }
        let slices = runs.windows(self.min).enumerate().rev();
        let shortest = slices.map(|(from, window)| {
            let end = from + window.len();
            Window { from, end, bytes: bytes(window) }
        });
        let least = shortest.reduce(|best, next| if next.bytes < best.bytes { next } else { best });
        // There are fewer runs than `min` and yet too many: take them all.
        let all = || Window { from: 0, end: runs.len(), bytes: bytes(runs) };
        Some((least.unwrap_or_else(all), "{} runs, {} allowed; the {} smallest neighbours"))
    }
}

fn bytes(runs: &[StackRun]) -> u64 {
    runs.iter().map(|run| run.bytes).sum()
}

impl MergePolicy for Exploring {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("exploring").with("k", self.k).with("lambda", self.lambda);
        let spec = self.eager.write(spec.with("min", self.min).with("max", self.max));
        self.largest.write(spec)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let merged = view.memo(MERGED_AT).and_then(|text| text.parse().ok());
        // Another policy may have left far more runs than `k`: then merging goes on.
        let has_merged = merged == Some(Stack::flushes_of(view));
        if has_merged && Stack::len_max(view) <= self.k {
            return None;
        }
        let stack = Stack::up_to(view, self.largest);
        if has_merged && stack.len() as u64 <= self.k {
            return None;
        }
        let (window, text) = self.choose(stack.runs())?;
        let numbers = [stack.len() as u64, self.k, window.len() as u64];
        let mut plan =
            stack.merge(window.from, window.end, self.eager, Reason::new(text, numbers))?;
        plan.memo.push((MERGED_AT.into(), Some(Stack::flushes_of(view).to_string())));
        Some(plan)
    }

    fn shape(&self) -> Shape {
        self.largest.shape(self.k)
    }

    fn largest_merge(&self) -> Option<u64> {
        self.largest.bytes()
    }
}
