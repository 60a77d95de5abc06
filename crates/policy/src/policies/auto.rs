//! Auto: plans ahead, at a price for each run.

mod future;
mod limits;
mod price;

use crate::read_price::ReadPrice;
use crate::{
    Eager, Explanation, Largest, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape, Stack, StackRun,
};
use future::{Choice, Future, Stand};
use limits::Limits;
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use price::{Futures, Price};
use std::sync::Arc;

/// After each flush, plans the merges of the next flushes so that what they write, plus a price for
/// every run after every flush, is least, and makes the merge that the plan begins with.
///
/// Source: the recursion of the exact optimum (Mathieu et al., "Bigtable merge compaction", 2014),
/// for a stack that is there already, over a horizon that recedes.
#[derive(Clone, Debug)]
pub struct Auto {
    runs: u64,
    price: Price,
    eager: Eager,
    largest: Largest,
    limits: Limits,
    futures: Arc<Futures>,
}

/// The note that prevents a second merge for the same flush.
const MERGED_AT: &str = "merged_at";

impl Auto {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "auto",
        source: "docs/auto.md; the recursion of Mathieu et al., 2014",
        summary: "plans ahead: least bytes written plus a price for each run",
        params: &[
            ParamInfo {
                name: "runs",
                default: "8",
                meaning: "most runs on storage at rest, 1 to 64; 24 by default with reads",
            },
            Price::PRICE,
            ReadPrice::GET,
            ReadPrice::SCAN,
            Price::READS,
            Limits::SPACE,
            Limits::DELETES_WITHIN,
            Eager::PARAM,
            Largest::PARAM,
        ],
        build: |params| Ok(Arc::new(Auto::read(params)?)),
    };

    /// Returns the policy that leaves at most `runs` runs, from 1 to 64. Other parameters have
    /// their defaults.
    ///
    /// # Errors
    /// Fails if `runs` is out of range.
    pub fn new(runs: u64) -> Result<Auto, SpecError> {
        Auto::INFO.read(&Spec::bare(Auto::INFO.name).with("runs", runs), Auto::read)
    }

    fn read(params: &Params<'_>) -> Result<Auto, SpecError> {
        let price = Price::read(params)?;
        let runs = params.count("runs", price.runs_usual(), super::K_RANGE)?;
        let eager = Eager::read(params)?;
        let largest = Largest::read(params)?;
        let limits = Limits::read(params, largest.bytes().is_some())?;
        let futures = Futures::new(price, runs, eager);
        Ok(Auto { runs, price, eager, largest, limits, futures })
    }
}

/// Returns true if a merge was made for flush number `flushes`.
fn has_merged(view: &TreeView, flushes: u64) -> bool {
    view.memo(MERGED_AT).and_then(|text| text.parse().ok()) == Some(flushes)
}

impl Auto {
    /// Returns the tables at the price for the tree of `view`.
    fn future(&self, view: &TreeView, stack: &Stack) -> &Future {
        self.futures.at(self.price.at(view, stack, self.runs))
    }

    /// Returns the merge that a limit asks for.
    fn reach_limits(&self, view: &TreeView) -> Option<MergePlan> {
        if self.limits == Limits::default() {
            return None;
        }
        let stack = Stack::of(view);
        let (from, reason) = self.limits.reached(view, &stack)?;
        let numbers = [(stack.len() - from) as u64, stack.len() as u64, 0];
        stack.merge(from, stack.len(), self.eager, Reason::new(reason, numbers))
    }

    /// Returns the best choice and the next best for `stack`, the newest runs of the view, if there
    /// is anything to choose.
    fn choices(
        &self,
        view: &TreeView,
        stack: &Stack,
        has_merged: bool,
    ) -> (Option<Choice>, Option<Choice>) {
        let is_done = has_merged && stack.len() as u64 <= self.runs;
        if is_done || stack.len() < 2 || stack.runs()[0].busy {
            return (None, None);
        }
        let (best, second) = self.future(view, stack).choose(&stand(view, stack, self.largest));
        (Some(best), second)
    }

    /// Returns the merge of `choice`, if it is one and is legal now.
    fn plan(&self, stack: &Stack, choice: Choice) -> Option<MergePlan> {
        let count = stack.len() - choice.from;
        let numbers = [count as u64, stack.len() as u64, 0];
        let reason = Reason::new("the newest {} of {} runs cost least in one", numbers);
        stack.merge(0, count, self.eager, reason)
    }

    /// Returns a merge of neighbours that no longer fit into one merge with all newer runs. It has
    /// become worthwhile since, because more was written than could be expected then.
    fn merge_older(&self, view: &TreeView) -> Option<MergePlan> {
        let largest = self.largest.bytes()?;
        let stack = Stack::of(view);
        // The oldest run that does fit is the newer neighbour of the others.
        let first = Stack::fitting(view, self.largest).len().checked_sub(1)?;
        let unit = stack.mean_flush_bytes()?;
        // A busy run fits nowhere.
        let size = |run: &StackRun| if run.busy { f64::INFINITY } else { run.bytes as f64 / unit };
        let sizes: Vec<f64> = stack.runs()[first..].iter().map(size).collect();
        let future = self.future(view, &stack);
        let window = future.window(&sizes, stack.flushes() as f64, largest as f64 / unit)?;
        let numbers = [window.len() as u64, largest, 0];
        let reason = Reason::new("{} older neighbours fit into the largest merge of {}", numbers);
        stack.merge(first + window.start, first + window.end, self.eager, reason)
    }
}

/// Returns what there is to plan for.
fn stand(view: &TreeView, stack: &Stack, largest: Largest) -> Stand {
    let unit = stack.mean_flush_bytes().unwrap_or(view.memtable_bytes as f64).max(1.0);
    let size = |run: &StackRun| run.bytes as f64 / unit;
    let sizes: Vec<f64> = stack.runs().iter().rev().map(size).collect();
    let held: f64 = sizes.iter().sum();
    let busy = stack.runs().iter().position(|run| run.busy);
    let free_from = busy.map_or(0, |newest_busy| sizes.len() - newest_busy);
    // A tree from elsewhere can hold more than was ever flushed.
    let flushes = (Stack::flushes_of(view) as f64).max(held).max(1.0);
    let largest = largest.bytes().map(|bytes| bytes as f64 / unit);
    // Most of what was flushed may be settled.
    // The oldest run shows best how many keys there are, since it has no entry twice. Newer runs
    // have few entries twice, so they tell how many flushes are not in it.
    let all = match sizes.first() {
        Some(oldest) if largest.is_none() => all_keys(*oldest, flushes - (held - oldest)),
        _ => f64::INFINITY,
    };
    Stand { sizes, flushes, free_from, all, largest: largest.unwrap_or(f64::INFINITY) }
}

/// Returns the size of all keys, in flushes, if updates have made a run of `flushed` flushes no
/// larger than `held`. Keys are taken to be equally likely. Infinite if there are few updates, or
/// if merges have seen few of them.
fn all_keys(held: f64, flushed: f64) -> f64 {
    if held <= 0.0 || held >= 0.95 * flushed {
        return f64::INFINITY;
    }
    // `all * (1 - exp(-flushed / all))` grows with `all`.
    let seen = |all: f64| all * -(-flushed / all).exp_m1();
    let (mut low, mut high) = (held, held);
    while seen(high) < held && high < flushed * 1e3 {
        high *= 2.0;
    }
    for _ in 0..20 {
        let middle = f64::midpoint(low, high);
        if seen(middle) < held { low = middle } else { high = middle }
    }
    high
}

impl MergePolicy for Auto {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("auto").with("runs", self.runs);
        self.largest.write(self.eager.write(self.limits.write(self.price.write(spec))))
    }

    fn needs(&self) -> Needs {
        Needs {
            reads: matches!(self.price, Price::Reads(_)),
            tombstone_ages: self.limits.needs_tombstone_ages(),
            ..Needs::default()
        }
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if let Some(plan) = self.reach_limits(view) {
            return Some(plan);
        }
        let flushes = Stack::flushes_of(view);
        let has_merged = has_merged(view, flushes);
        if has_merged && Stack::len_max(view) <= self.runs {
            return None;
        }
        let stack = Stack::fitting(view, self.largest);
        let (choice, _) = self.choices(view, &stack, has_merged);
        let Some(mut plan) = choice.and_then(|choice| self.plan(&stack, choice)) else {
            // The flush may still have a merge to come, once its memtable is a run.
            return self.merge_older(view);
        };
        plan.memo.push((MERGED_AT.into(), Some(flushes.to_string())));
        Some(plan)
    }

    /// The runner-up is what the newest flush could have been merged with instead.
    fn explain(&self, view: &TreeView) -> Explanation {
        let plan = self.next_merge(view);
        let stack = Stack::fitting(view, self.largest);
        let has_merged = has_merged(view, Stack::flushes_of(view));
        let (best, second) = self.choices(view, &stack, has_merged);
        let costs = |choice: Choice| format!("{:.1} memtables", choice.cost);
        let notes = match best {
            Some(best) => vec![format!("the plan and the flushes behind it cost {}", costs(best))],
            None => Vec::new(),
        };
        let second = second.and_then(|second| Some((self.plan(&stack, second)?, second)));
        let runners_up =
            second.map(|(plan, second)| (plan, format!("would cost {}", costs(second))));
        Explanation { plan, runners_up: runners_up.into_iter().collect(), notes }
    }

    fn shape(&self) -> Shape {
        self.largest.shape(self.runs)
    }

    fn largest_merge(&self) -> Option<u64> {
        self.largest.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fits into one merge should be merged before the next flush, but its memtable has to be
    /// flushed first. A merge of older runs in the meantime is not the merge of this flush.
    #[test]
    fn a_merge_of_older_runs_does_not_stand_in_for_the_one_of_the_flush() {
        let policy = Auto::INFO;
        let policy =
            policy.read(&"auto(runs=20, price=5, largest=10MB)".parse().unwrap(), Auto::read);
        let policy = policy.unwrap();
        let tree = |memory: &str, level0: &str| -> TreeView {
            let head = "view memtable 1MB\ntree runs 10 tables 10 flushes 30 flushed 30MB 30e";
            format!("{head}\n{memory}L0 {level0}").parse().unwrap()
        };
        let (newer, older) = ("r6[t6:a..z 1MB] r5[t5:a..z 8MB]", "r4[t4:a..z 3MB] r3[t3:a..z 3MB]");
        let view = tree("mem r7[t7:a..z 1MB]\n", &format!("{newer} {older}"));
        let plan = policy.next_merge(&view).unwrap();
        assert!(plan.to_string().starts_with("merge r4 r3 "), "{plan}");
        assert_eq!(plan.memo, []);
        let view = tree("", &format!("r7[t7:a..z 1MB] {newer} r8[t8:a..z 6MB]"));
        let plan = policy.next_merge(&view).unwrap();
        assert!(plan.to_string().starts_with("merge r7 r6 r5 "), "{plan}");
        assert_eq!(plan.memo.len(), 1);
    }

    #[test]
    fn the_size_of_all_keys_follows_from_what_updates_leave() {
        // Of 40 flushes over 10 flushes' worth of keys, 9.8 are left.
        let held = 10.0 * -(-4.0_f64).exp_m1();
        assert!((all_keys(held, 40.0) - 10.0).abs() < 1e-3);
        assert_eq!(all_keys(40.0, 40.0), f64::INFINITY);
        assert_eq!(all_keys(0.0, 40.0), f64::INFINITY);
    }
}
