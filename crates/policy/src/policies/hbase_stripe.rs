//! HBase's stripes: the key space is divided, and the runs of each stripe are merged by themselves.

use super::Exploring;
use crate::{Explanation, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape, StackRun};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::{Cuts, Input, KeyRange, LevelId, MergePlan, Mode, Place, Reason, Run, TreeView};
use std::cmp::Reverse;
use std::sync::Arc;

/// Divides the keys into stripes. Below level 0, each stripe has runs of its own.
///
/// 1. Level 0 takes flushes. When it has `l0` runs, they are merged into one new run, which is cut
///    at the borders of all stripes. If there are no stripes yet, it is cut by size.
/// 2. Within a stripe, runs are merged as by `exploring`, with `k`, `lambda`, `min` and `max`. The
///    stripe with more than `k` runs goes first, then the one with the longest window, of equally
///    long ones the one with the smallest.
/// 3. When such a merge takes all runs of a stripe and at least `split_size`, the stripe is split:
///    the output is cut into parts of about half of `split_size`, two at least.
/// 4. Nothing else changes a border. So old stripes rest while keys ascend, and merges of level 0
///    alone take more than a stripe.
///
/// For example, `merge r3 r2 r1 over h..p into r1` merges three runs of the stripe from h to p.
///
/// A run of a stripe is the piece of a run of the tree that lies in the stripe. The oldest run of
/// the tree has one table in each stripe, so its tables say where stripes begin. The first stripe
/// begins before all keys. When a merge leaves a gap between the pieces of a stripe, newer ones are
/// moved down into it without being written. So the tree has as many runs as its fullest stripe.
///
/// It differs from HBase in this:
/// * HBase flushes into all stripes by default. This is HBase with `flushToL0`.
/// * The number of parts of a split, and of stripes to begin with, are parameters of HBase.
/// * HBase sometimes adds level 0 to the merge of a whole stripe, to drop deletes. Here every merge
///   drops the deletes under which nothing lies.
/// * HBase joins stripes whose data have expired. Here a stripe is gone when a merge leaves nothing
///   of it, and the stripe before it takes its keys.
/// * HBase makes one merge at a time. Here stripes are merged side by side.
/// * HBase stops writers when a stripe has `blockingStoreFiles` runs. Here a stripe with more than
///   `k` runs is merged even if its runs are not alike.
/// * What another policy leaves below level 0 is divided as its oldest run is, and these stripes
///   can be small. HBase puts such files into level 0.
///
/// Source: HBase's StripeCompactionPolicy and StripeStoreConfig; their documentation (HBASE-9854).
#[derive(Clone, Debug, PartialEq)]
pub struct HbaseStripe {
    spec: Spec,
    level0_runs: u64,
    /// `None` stands for eight merges of level 0.
    split_bytes: Option<u64>,
    exploring: Exploring,
}

/// The parts of a stripe that is split.
const PARTS: u64 = 2;

/// The default of `split_size` in merges of level 0, for each part.
const SPLIT_MERGES: u64 = 4;

/// A stripe, and its runs as pieces of the runs below level 0.
struct Stripe<'a> {
    range: KeyRange,
    /// The pieces, newest first: the index of the run among those below level 0, and the piece.
    pieces: Vec<(usize, &'a Arc<Run>, StackRun)>,
}

/// A merge within a stripe.
struct Found {
    plan: MergePlan,
    is_crowded: bool,
    runs: usize,
    bytes: u64,
}

impl Stripe<'_> {
    fn inputs(&self, from: usize, end: usize) -> Vec<Input> {
        let taken = self.pieces[from..end].iter();
        taken.map(|(_, run, _)| Input { run: run.id(), range: self.range.clone() }).collect()
    }

    /// Returns the plan that moves the oldest piece that has a gap below it as far down as there is
    /// room in the stripe. `below0` are all runs below level 0.
    fn close_gap(&self, below0: &[&Arc<Run>]) -> Option<MergePlan> {
        let oldest_first = self.pieces.iter().rev().zip(below0.iter().enumerate().rev());
        let mut misplaced = oldest_first.filter(|((at, ..), (place, _))| at < place);
        let ((_, run, _), (_, target)) = misplaced.next()?;
        let input = Input { run: run.id(), range: self.range.clone() };
        let reason = Reason::new("a stripe of {} runs has a gap", [self.pieces.len() as u64, 0, 0]);
        let plan = MergePlan::merge([], Place::Into(target.id()), reason);
        Some(MergePlan { inputs: vec![input], mode: Mode::Move, ..plan })
    }
}

impl HbaseStripe {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "hbase_stripe",
        source: "HBase, StripeCompactionPolicy",
        summary: "key ranges that split as they grow, the runs of each merged by themselves",
        params: &[
            ParamInfo {
                name: "l0",
                default: "4",
                meaning: "runs of level 0 that are merged into all stripes, 1 to 1000",
            },
            ParamInfo {
                name: "split_size",
                default: "auto",
                meaning: "bytes of a stripe that is split; auto: 8 merges of level 0",
            },
            ParamInfo { name: "k", default: "5", meaning: "most runs of a stripe, 1 to 64" },
            Exploring::LAMBDA,
            Exploring::MIN,
            Exploring::MAX,
        ],
        build: |params| Ok(Arc::new(HbaseStripe::read(params)?)),
    };

    /// Returns the policy that merges `l0` runs of level 0 into all stripes, from 1 to 1000. Other
    /// parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `l0` is out of range.
    pub fn new(l0: u64) -> Result<HbaseStripe, SpecError> {
        let spec = Spec::bare(HbaseStripe::INFO.name).with("l0", l0);
        HbaseStripe::INFO.read(&spec, HbaseStripe::read)
    }

    fn read(params: &Params<'_>) -> Result<HbaseStripe, SpecError> {
        let level0_runs = params.count("l0", 4, 1..=1000)?;
        let auto = params.text("split_size").is_none_or(|text| text == "auto");
        let split_bytes =
            if auto { None } else { params.bytes_if_given("split_size", 1..=1 << 50)? };
        let exploring = Exploring::read(params)?;
        let spec = Spec::bare("hbase_stripe").with("l0", level0_runs);
        let spec = match split_bytes {
            Some(bytes) => spec.with("split_size", format_bytes(bytes)),
            None => spec,
        };
        let windows = exploring.spec().params;
        let spec = windows.iter().fold(spec, |spec, (name, value)| spec.with(name, value));
        Ok(HbaseStripe { spec, level0_runs, split_bytes, exploring })
    }

    fn split_bytes(&self, view: &TreeView) -> u64 {
        let level0_bytes = view.memtable_bytes.max(1).saturating_mul(self.level0_runs);
        self.split_bytes.unwrap_or(level0_bytes.saturating_mul(SPLIT_MERGES * PARTS))
    }

    /// Returns the size at which the output of `bytes` is cut into stripes, if it is: parts of
    /// about half the size that is split. So the next split is not soon.
    fn part_bytes(&self, view: &TreeView, bytes: u64) -> Option<u64> {
        let split = self.split_bytes(view);
        let part = (split / PARTS).max(1);
        let parts = (bytes.saturating_add(part / 2) / part).max(PARTS);
        (bytes >= split).then(|| bytes.div_ceil(parts).max(1))
    }

    /// Returns the merge of level 0 into all stripes.
    fn merge_level0(&self, view: &TreeView, stripes: &[Stripe<'_>]) -> Option<MergePlan> {
        let runs = view.tree.runs_at(LevelId::Disk(0));
        if (runs.len() as u64) < self.level0_runs {
            return None;
        }
        let numbers = [runs.len() as u64, self.level0_runs, stripes.len() as u64];
        let reason = Reason::new("level 0 has {} runs, {} go down into {} stripes", numbers);
        let plan = MergePlan::merge(runs.iter().map(|run| run.id()), Place::NewRun(1), reason);
        let keys = stripes.iter().skip(1).map(|stripe| stripe.range.start.clone()).collect();
        let bytes = runs.iter().map(|run| run.bytes()).fold(0, u64::saturating_add);
        let cut_bytes = if stripes.is_empty() { self.part_bytes(view, bytes) } else { None };
        Some(MergePlan { cut_bytes, cuts: Cuts { keys, overlap: None }, ..plan })
    }

    /// Returns the merge within a stripe that is due, if one is.
    fn merge_within(&self, view: &TreeView, stripe: &Stripe<'_>) -> Option<Found> {
        let runs: Vec<StackRun> = stripe.pieces.iter().map(|(.., piece)| *piece).collect();
        let (window, text) = self.exploring.choose(&runs)?;
        let inputs = stripe.inputs(window.from, window.end);
        let is_whole = inputs.len() == runs.len();
        let numbers = [runs.len() as u64, self.exploring.k, inputs.len() as u64];
        let plan =
            MergePlan::merge([], Place::Into(inputs.last()?.run), Reason::new(text, numbers));
        let cut_bytes = self.part_bytes(view, window.bytes).filter(|_| is_whole);
        Some(Found {
            is_crowded: runs.len() as u64 > self.exploring.k,
            runs: inputs.len(),
            bytes: window.bytes,
            plan: MergePlan { inputs, cut_bytes, ..plan },
        })
    }

    /// Returns the merges within stripes that are due, the first first.
    fn merges_within(&self, view: &TreeView, stripes: &[Stripe<'_>]) -> Vec<Found> {
        let due = stripes.iter().filter_map(|stripe| self.merge_within(view, stripe));
        let mut due: Vec<Found> = due.collect();
        due.sort_by_key(|it| (Reverse(it.is_crowded), Reverse(it.runs), it.bytes));
        due
    }
}

/// Returns the runs below level 0, newest first.
fn below_level0(view: &TreeView) -> Vec<&Arc<Run>> {
    view.tree.levels().iter().skip(1).flat_map(|level| level.runs()).collect()
}

/// Returns the stripes, in key order.
fn stripes<'a>(below0: &[&'a Arc<Run>]) -> Vec<Stripe<'a>> {
    let tables = below0.last().map(|run| run.slices()).unwrap_or_default();
    let border = |index: usize| tables.get(index).map(|slice| slice.range().start.clone());
    let ranges = (0..tables.len()).map(|index| KeyRange {
        start: border(index).filter(|_| index > 0).unwrap_or_default(),
        end: border(index + 1),
    });
    let stripe = |range: KeyRange| {
        let pieces = below0.iter().enumerate().filter_map(|(at, run)| {
            if run.overlapping(&range).is_empty() {
                return None;
            }
            let bytes = run.size_within(&range).bytes;
            Some((at, *run, StackRun { id: run.id(), bytes, busy: false }))
        });
        Stripe { pieces: pieces.collect(), range }
    };
    ranges.map(stripe).collect()
}

impl MergePolicy for HbaseStripe {
    fn spec(&self) -> Spec {
        self.spec.clone()
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let below0 = below_level0(view);
        let stripes = stripes(&below0);
        let is_free = |plan: &MergePlan| view.is_free_for(plan);
        let within = || self.merges_within(view, &stripes).into_iter();
        let crowded = within().filter(|it| it.is_crowded).map(|it| it.plan).find(is_free);
        crowded
            .or_else(|| self.merge_level0(view, &stripes).filter(is_free))
            .or_else(|| stripes.iter().filter_map(|it| it.close_gap(&below0)).find(is_free))
            .or_else(|| within().map(|it| it.plan).find(is_free))
    }

    fn needs(&self) -> Needs {
        Needs { windows: true, ..Needs::default() }
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.exploring.k + self.level0_runs - 1 }
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        let plan = self.next_merge(view);
        let stripes = stripes(&below_level0(view));
        let others = self.merges_within(view, &stripes).into_iter();
        let why = |it: &Found| format!("{} runs of {} in another stripe", it.runs, it.bytes);
        let losers = others.filter(|it| Some(&it.plan) != plan.as_ref()).take(3);
        let runs_max = stripes.iter().map(|stripe| stripe.pieces.len()).max().unwrap_or(0);
        Explanation {
            runners_up: losers.map(|it| (it.plan.clone(), why(&it))).collect(),
            notes: vec![format!("{} stripes of at most {runs_max} runs", stripes.len())],
            plan,
        }
    }
}
