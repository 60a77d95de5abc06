//! Auto: plans ahead, at a price for each run.

mod future;

use crate::{Eager, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack, StackRun};
use future::Future;
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use std::sync::Arc;

/// After each flush, plans the merges of the next flushes so that what they write, plus a price for
/// every run after every flush, is least, and makes the merge that the plan begins with.
///
/// Source: the recursion of the exact optimum (Mathieu et al., "Bigtable merge compaction", 2014),
/// for a stack that is there already, over a horizon that recedes.
#[derive(Clone, Debug)]
pub struct Auto {
    runs: u64,
    price: Option<f64>,
    eager: Eager,
    future: Arc<Future>,
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
                meaning: "most runs on storage at rest, 1 to 64",
            },
            ParamInfo {
                name: "price",
                default: "by runs",
                meaning: "what a run costs while a memtable is written, in written memtables, \
                          0.001 to 1000",
            },
            Eager::PARAM,
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
        let runs = params.count("runs", 8, super::K_RANGE)?;
        let price = params.real_if_given("price", 0.001..=1000.0)?;
        let eager = Eager::read(params)?;
        let at = price.unwrap_or_else(|| price_of(runs));
        let future = Arc::new(Future::new(at, runs as usize, f64::INFINITY, eager));
        Ok(Auto { runs, price, eager, future })
    }
}

/// Returns the price at which about so many runs are the most that an unbounded stack has.
fn price_of(runs: u64) -> f64 {
    250.0 / (runs as f64).powf(2.2)
}

/// Returns how many bytes all keys have, once updates make the tree no larger, in flushes: the tree
/// has `held` flushes after `flushed`. Keys are taken to be equally likely.
fn saturated(held: f64, flushed: f64) -> f64 {
    // Merges have not seen a tenth of the updates, or there are none.
    if held >= 0.95 * flushed {
        return f64::INFINITY;
    }
    // `all * (1 - exp(-flushed / all))` grows with `all`.
    let (mut low, mut high) = (held, held);
    while high * -(-flushed / high).exp_m1() < held && high < flushed * 1e3 {
        high *= 2.0;
    }
    for _ in 0..20 {
        let middle = f64::midpoint(low, high);
        let at = middle * -(-flushed / middle).exp_m1();
        if at < held { low = middle } else { high = middle }
    }
    high
}

/// What the policy makes of a stack: the runs from the oldest on, in flushes.
struct Seen {
    sizes: Vec<f64>,
    flushes: f64,
    /// The oldest run that no plan takes and no busy run is newer than.
    free_from: usize,
    /// Bytes of all keys, in flushes.
    all: f64,
}

impl Seen {
    fn of(view: &TreeView, stack: &Stack) -> Seen {
        let flushes = stack.flushes() as f64;
        let unit = match stack.flushes() {
            0 => view.memtable_bytes as f64,
            _ => stack.flushed_bytes() as f64 / flushes,
        };
        let size = |run: &StackRun| run.bytes as f64 / unit.max(1.0);
        let sizes: Vec<f64> = stack.runs().iter().rev().map(size).collect();
        let held: f64 = sizes.iter().sum();
        let busy = stack.runs().iter().position(|run| run.busy);
        let free_from = busy.map_or(0, |newest_busy| sizes.len() - newest_busy);
        // A tree from elsewhere can hold more than was ever flushed.
        let flushes = flushes.max(held);
        Seen { sizes, flushes, free_from, all: saturated(held, flushes) }
    }

    /// Returns the size of a merge of runs of `size` with the data of `flushes` more.
    fn merged(&self, size: f64, flushes: f64) -> f64 {
        if self.all.is_infinite() {
            return size + flushes;
        }
        let free = (1.0 - size / self.all).clamp(0.0, 1.0);
        self.all * (1.0 - free * (-flushes / self.all).exp())
    }
}

impl MergePolicy for Auto {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("auto").with("runs", self.runs);
        let spec = match self.price {
            Some(price) => spec.with("price", price),
            None => spec,
        };
        self.eager.write(spec)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let merged = view.memo(MERGED_AT).and_then(|text| text.parse().ok());
        if merged == Some(Stack::flushes_of(view)) && Stack::len_max(view) <= self.runs {
            return None;
        }
        let stack = Stack::of(view);
        let newest = stack.runs().first()?;
        if stack.len() < 2 || newest.busy {
            return None;
        }
        let seen = Seen::of(view, &stack);
        let merged = |size, flushes| seen.merged(size, flushes);
        let (choice, _) = self.future.choose(&seen.sizes, seen.flushes, seen.free_from, merged);
        let count = stack.len() - choice.from;
        let numbers = [count as u64, stack.len() as u64, 0];
        let reason = Reason::new("the newest {} of {} runs cost least in one", numbers);
        let mut plan = stack.merge(0, count, self.eager, reason)?;
        plan.memo.push((MERGED_AT.into(), Some(stack.flushes().to_string())));
        Some(plan)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.runs }
    }
}
