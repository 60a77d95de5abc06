//! Exploring: HBase's default policy.

use super::{K, K_RANGE};
use crate::{Eager, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack, StackRun};
use lsmith_spec::{Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::sync::Arc;

/// Looks at every window of `min` to `max` neighbouring runs whose largest run is at most `lambda`
/// times the rest together. While there are at most `k` runs it merges the longest such window
/// (the smallest of the longest), past that the one of least mean size; past `k` with no such
/// window, the smallest `min` neighbours. One merge per flush; ties go to the oldest start.
///
/// Source: Mao et al., section 2; HBase's ExploringCompactionPolicy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exploring {
    k: u64,
    lambda: f64,
    min: usize,
    max: usize,
    eager: Eager,
}

/// The note that keeps a second merge from following in the same flush.
const MERGED_AT: &str = "merged_at";

/// A window of the stack: indexes counted from the newest run.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: usize,
    upto: usize,
    bytes: u64,
}

impl Window {
    fn len(&self) -> usize {
        self.upto - self.from
    }

    /// Longer, or as long and smaller.
    fn is_longer_than(&self, other: &Window) -> bool {
        self.len() > other.len() || (self.len() == other.len() && self.bytes < other.bytes)
    }

    fn has_less_mean_than(&self, other: &Window) -> bool {
        let (mine, theirs) = (u128::from(self.bytes), u128::from(other.bytes));
        mine * (other.len() as u128) < theirs * (self.len() as u128)
    }
}

impl Exploring {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "exploring",
        source: "Mao et al., VLDB Journal 2021, section 2; HBase",
        summary: "merges the most worthwhile window of neighbouring runs of similar size",
        params: &[
            K,
            ParamInfo {
                name: "lambda",
                default: "1.2",
                meaning: "the largest run of a window over the sum of the others, at most",
            },
            ParamInfo { name: "min", default: "3", meaning: "fewest runs in a window" },
            ParamInfo { name: "max", default: "10", meaning: "most runs in a window" },
            Eager::PARAM,
        ],
        build: |params| {
            let min = params.count("min", 3, 2..=1000)?;
            let max = params.count("max", 10, 2..=1000)?;
            if max < min {
                let message = format!("max = {max} is below min = {min}");
                return Err(SpecError::conflict(message));
            }
            Ok(Arc::new(Exploring {
                k: params.count("k", 5, K_RANGE)?,
                lambda: params.real("lambda", 1.2, 0.0..=1e6)?,
                min: min as usize,
                max: max as usize,
                eager: Eager::read(params)?,
            }))
        },
    };

    fn is_balanced(&self, largest_bytes: u64, other_bytes: u64) -> bool {
        largest_bytes as f64 <= self.lambda * other_bytes as f64
    }

    /// The best of all windows of similar sizes; of several the first, oldest start first, shortest
    /// first.
    fn best(
        &self,
        runs: &[StackRun],
        is_better: impl Fn(&Window, &Window) -> bool,
    ) -> Option<Window> {
        let mut best: Option<Window> = None;
        let mut newer_bytes = bytes(runs);
        for (oldest, run) in runs.iter().enumerate().skip(self.min - 1).rev() {
            // In a window with this oldest run the largest is no smaller, and the others are no
            // more than all that is newer: most starts are out at a glance.
            newer_bytes -= run.bytes;
            if !self.is_balanced(run.bytes, newer_bytes) {
                continue;
            }
            let mut window = Window { from: oldest + 1, upto: oldest + 1, bytes: 0 };
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

    fn choose(&self, stack: &Stack) -> Option<(Window, &'static str)> {
        let runs = stack.runs();
        if stack.len() as u64 <= self.k {
            let best = self.best(runs, Window::is_longer_than);
            return best.map(|window| (window, "{} runs, {} allowed; {} of similar size"));
        }
        if let Some(window) = self.best(runs, Window::has_less_mean_than) {
            return Some((window, "{} runs, {} allowed; {} of least mean size"));
        }
        let shortest = runs.windows(self.min).enumerate().rev();
        let shortest = shortest.map(|(from, window)| {
            let upto = from + window.len();
            Window { from, upto, bytes: bytes(window) }
        });
        let least = shortest.reduce(|best, next| if next.bytes < best.bytes { next } else { best });
        // Fewer runs than `min` and yet too many: take them all.
        let all = || Window { from: 0, upto: runs.len(), bytes: bytes(runs) };
        Some((least.unwrap_or_else(all), "{} runs, {} allowed; the {} smallest neighbours"))
    }
}

fn bytes(runs: &[StackRun]) -> u64 {
    runs.iter().map(|run| run.bytes).sum()
}

impl MergePolicy for Exploring {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("exploring").with("k", self.k).with("lambda", self.lambda);
        self.eager.write(spec.with("min", self.min).with("max", self.max))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let merged = view.memo(MERGED_AT).and_then(|text| text.parse().ok());
        // A tree left by another policy can be far above the bound: then merge on.
        let has_merged = merged == Some(Stack::flushes_of(view));
        if has_merged && Stack::len_max(view) <= self.k {
            return None;
        }
        let stack = Stack::of(view);
        if has_merged && stack.len() as u64 <= self.k {
            return None;
        }
        let (window, text) = self.choose(&stack)?;
        let numbers = [stack.len() as u64, self.k, window.len() as u64];
        let mut plan =
            stack.merge(window.from, window.upto, self.eager, Reason::new(text, numbers))?;
        plan.memo.push((MERGED_AT.into(), Some(stack.flushes().to_string())));
        Some(plan)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.k }
    }
}
