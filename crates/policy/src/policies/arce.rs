//! Arce: of all merges of neighbours, the one whose saved reads outweigh most what it takes.

mod rule;

use crate::read_price::{FROM_READS, ReadPrice};
use crate::{
    Eager, Explanation, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape, Stack, StackRun,
};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, Reason, TreeView};
use rule::{Action, Horizons, Rule, Work};
use std::sync::Arc;

/// Scores every merge of neighbours in the stack and makes the best one, if its score is above 0:
///
/// * A merge of `n` runs saves `n` - 1 runs. Each counts at the price of a run, for `horizon`
///   memtables.
/// * What flushes and reads cost while the merge runs is taken off. It runs for as many whole
///   memtables as they need to cost what the merge writes.
///
/// One merge runs at a time: the next is not made before flushes and reads have cost what the last
/// one wrote. So few reads put merges off, and many reads make them more frequent. When there are
/// more than `runs` runs, the best merge that leaves no more is made, whatever its score and
/// however recent the last one. Of all merges of as many runs only the smallest can be best, and
/// the others are left out.
///
/// With price 1 and horizon 8, a stack of three flushes becomes one run: that saves 2 * 8, and
/// takes one memtable of writes and reads, 1 + 3. Two of the three would save 8 and take as much.
///
/// The `horizon` is found by simulation if it is not given: of the powers of two, the one with
/// which further flushes cost least, what is written and the price of all runs together.
///
/// This follows the paper, but for these points. ElasticLSM has levels without limits, and merges
/// the newest runs of a level, a level, or several: here all runs are one stack, and a merge takes
/// any neighbours. The paper holds writers back as one of the actions: here back-pressure does,
/// and `runs` is the bound. The paper's merges cost nothing but time: here the simulation counts
/// what they write too. The paper simulates from the tree as it is, again whenever tree or load
/// have drifted by a tenth: here from one run as large as the tree, whose size and whose price are
/// rounded to powers of two, so that each simulation is made once. The price follows from the reads
/// of the last eight or so memtables, or the spec says it.
///
/// Source: Liu et al., "ArceKV: Towards Workload-driven LSM-compactions for Key-Value Store Under
/// Dynamic Workloads", PVLDB 19(5), 2026 (arXiv 2508.03565): its abstract, and notes of a reader.
/// The paper itself was not at hand.
#[derive(Clone, Debug)]
pub struct Arce {
    runs: u64,
    price: Price,
    horizon: Option<f64>,
    eager: Eager,
    horizons: Arc<Horizons>,
}

/// The notes of the last merge: the number of flushes when it was made, and the bytes that it took.
const MERGED_AT: &str = "arce_merged_at";
const MERGED_BYTES: &str = "arce_merged_bytes";

/// What a run costs while a memtable is written, in written memtables.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Price {
    /// This price.
    Fixed(f64),
    /// The price of the reads that the tree has counted.
    Reads(ReadPrice),
}

/// The price if none is given, and until reads were counted for one memtable.
const PRICE: f64 = 1.0;

/// The paper reads a block in 12 us and writes one in 15 us. A merge reads and writes each block,
/// and so writes this part of a block of 4096 bytes while a range read reads a block of one run.
const SCAN_BYTES: u64 = 4096 * 12 / (12 + 15);
/// One lookup in a hundred reads a block of a run that does not have the key.
const USUAL: ReadPrice = ReadPrice { get: SCAN_BYTES / 100, scan: SCAN_BYTES };

impl Price {
    fn read(params: &Params<'_>) -> Result<Price, SpecError> {
        if let Some(reads) = ReadPrice::read(params, FROM_READS, USUAL)? {
            return Ok(Price::Reads(reads));
        }
        Ok(Price::Fixed(params.real("price", PRICE, 0.0..=1000.0)?))
    }

    fn write(self, spec: Spec) -> Spec {
        match self {
            Price::Fixed(price) => spec.with("price", price),
            Price::Reads(reads) => reads.write(spec.with("price", "reads"), USUAL),
        }
    }

    /// Returns the price for the tree of `view`, whose flushes have `unit` bytes.
    fn at(self, view: &TreeView, unit: f64) -> f64 {
        match self {
            Price::Fixed(price) => price,
            Price::Reads(reads) => reads.at(view, unit).unwrap_or(PRICE),
        }
    }
}

impl Arce {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "arce",
        source: "Liu et al., ArceKV, PVLDB 2026",
        summary: "makes the merge of neighbours whose saved reads outweigh most what it takes",
        params: &[
            ParamInfo {
                name: "runs",
                default: "8",
                meaning: "most runs on storage at rest, 1 to 64",
            },
            ParamInfo {
                name: "price",
                default: "1",
                meaning: "what a run costs while a memtable is written, in written memtables, 0 \
                          to 1000, or `reads`: as much as it costs the reads that are counted",
            },
            ParamInfo {
                name: "get",
                default: "18",
                meaning: "with price=reads: written bytes that cost as much as one run in a lookup",
            },
            ParamInfo {
                name: "scan",
                default: "1820",
                meaning: "with price=reads: written bytes that cost as much as one run in a range \
                          read",
            },
            ParamInfo {
                name: "horizon",
                default: "by simulation",
                meaning: "memtables for which a run that a merge saves counts, 1 to 1000000",
            },
            Eager::PARAM,
        ],
        build: |params| Ok(Arc::new(Arce::read(params)?)),
    };

    /// Returns the policy that leaves at most `runs` runs, from 1 to 64. Other parameters have
    /// their defaults.
    ///
    /// # Errors
    /// Fails if `runs` is out of range.
    pub fn new(runs: u64) -> Result<Arce, SpecError> {
        Arce::INFO.read(&Spec::bare(Arce::INFO.name).with("runs", runs), Arce::read)
    }

    fn read(params: &Params<'_>) -> Result<Arce, SpecError> {
        Ok(Arce {
            runs: params.count("runs", 8, super::K_RANGE)?,
            price: Price::read(params)?,
            horizon: params.real_if_given("horizon", 1.0..=1e6)?,
            eager: Eager::read(params)?,
            horizons: Arc::default(),
        })
    }

    /// Returns the rule for the tree of `view`, whose flushes have `unit` bytes.
    fn rule(&self, view: &TreeView, stack: &Stack, unit: f64) -> Rule {
        let (runs, price) = (self.runs as usize, self.price.at(view, unit));
        let held: f64 = stack.runs().iter().map(|run| run.bytes as f64 / unit).sum();
        let horizon = self.horizon.unwrap_or_else(|| self.horizons.at(runs, price, held));
        Rule { runs, price, horizon }
    }

    /// Returns the plan that `action` comes to, if it is legal now.
    fn plan(&self, stack: &Stack, action: &Action) -> Option<MergePlan> {
        let (count, len) = (action.runs.len() as u64, stack.len() as u64);
        let reason = match len > self.runs {
            true => Reason::new("{} of {} runs become one, {} allowed", [count, len, self.runs]),
            false => Reason::new("{} of {} runs in one score highest", [count, len, 0]),
        };
        let mut plan = stack.merge(action.runs.start, action.runs.end, self.eager, reason)?;
        let taken = stack.runs()[action.runs.clone()].iter().map(|run| run.bytes);
        let bytes = taken.fold(0, u64::saturating_add);
        plan.memo.push((MERGED_AT.into(), Some(stack.flushes().to_string())));
        plan.memo.push((MERGED_BYTES.into(), Some(bytes.to_string())));
        Some(plan)
    }
}

/// Returns the last merge that was made, in flushes of `unit` bytes.
fn last_merge(view: &TreeView, stack: &Stack, unit: f64) -> Work {
    let noted = |name| view.memo(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    // A tree can come from another place, with the notes of more flushes.
    let since = stack.flushes().saturating_sub(noted(MERGED_AT));
    Work { size: noted(MERGED_BYTES) as f64 / unit, since: since as f64 }
}

/// Returns the bytes of a flush of the tree of `view`.
fn unit(view: &TreeView, stack: &Stack) -> f64 {
    stack.mean_flush_bytes().unwrap_or(view.memtable_bytes as f64).max(1.0)
}

/// Returns the sizes of the runs in flushes, newest first. Busy runs have none.
fn sizes(stack: &Stack, unit: f64) -> Vec<Option<f64>> {
    let size = |run: &StackRun| (!run.busy).then_some(run.bytes as f64 / unit);
    stack.runs().iter().map(size).collect()
}

impl MergePolicy for Arce {
    fn spec(&self) -> Spec {
        let spec = self.price.write(Spec::bare("arce").with("runs", self.runs));
        self.eager.write(match self.horizon {
            Some(horizon) => spec.with("horizon", horizon),
            None => spec,
        })
    }

    fn needs(&self) -> Needs {
        Needs { reads: matches!(self.price, Price::Reads(_)), ..Needs::default() }
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        if Stack::len_max(view) < 2 {
            return None;
        }
        let stack = Stack::of(view);
        let unit = unit(view, &stack);
        let last = last_merge(view, &stack, unit);
        let action = self.rule(view, &stack, unit).choose(&sizes(&stack, unit), last)?;
        self.plan(&stack, &action)
    }

    /// The runners-up are the best merges of other numbers of runs.
    fn explain(&self, view: &TreeView) -> Explanation {
        let plan = self.next_merge(view);
        let stack = Stack::of(view);
        let unit = unit(view, &stack);
        let rule = self.rule(view, &stack, unit);
        let mut actions = rule.actions(&sizes(&stack, unit));
        actions.sort_by(|one, other| other.score.total_cmp(&one.score));
        let runners_up = actions.iter().filter_map(|action| {
            let other = self.plan(&stack, action).filter(|other| Some(other) != plan.as_ref())?;
            Some((other, format!("scores {:.1} memtables", action.score)))
        });
        let runners_up = runners_up.take(3).collect();
        let (price, horizon) = (rule.price, rule.horizon);
        let mut notes = vec![format!("a saved run counts {price:.2} memtables, {horizon} times")];
        if rule.is_busy(stack.len(), last_merge(view, &stack, unit)) {
            notes.push("reads and flushes have not yet cost what the last merge wrote".to_owned());
        }
        Explanation { plan, runners_up, notes }
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.runs }
    }
}
