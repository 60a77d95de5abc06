//! Vertiorizon: young runs by the count of flushes, over two levels with merges piece by piece.

use super::{Descent, Leveled, Pick};
use crate::tables::{least_above, stack_depth};
use crate::{Eager, Explanation, Load, MergePolicy, ParamInfo, PolicyInfo, Shape, Stack};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{LevelId, MergePlan, Mode, Place, Reason, TreeView};
use std::sync::Arc;

/// A horizontal part, whose levels hold more as the data grow, over a vertical part of two levels
/// of one run.
///
/// 1. The horizontal part takes n flushes, a round. Then all of it is merged into the upper level
///    of the vertical part.
/// 2. Within a round, as many runs are left after flush t as MinLatency leaves after t flushes with
///    at most k runs. With `merge=leveling`, k is `levels`. With `merge=tiering`, k is the least
///    number of runs with which no entry is written more than `levels` times within a round, but
///    at most 1000.
/// 3. The upper level may hold n times `ratio` memtables. When it holds more, pieces of a memtable
///    go down into the lower level, those first that overlap the least there.
/// 4. The lower level is meant for n times `ratio^2` memtables. It has no bound: n follows from
///    what both levels hold. But n is at least `ratio`, so that a small tree has a horizontal part,
///    too.
///
/// For example, `merge r3 r2 r1 over .. into new run at L1` ends a round of two young runs, and
/// `merge r4 r0 over d..f into r0` takes a piece of the upper level down.
///
/// The abstract, the introduction and summaries of the paper were at hand. They say that the parts
/// hold n, n `ratio` and n `ratio^2` buffers, that the horizontal part has a number of levels and
/// merges by leveling or by tiering, that tiering has the least read cost for its number of levels,
/// and that merges between the two lower levels are partial. They do not say the rule of counters
/// that the paper gives for tiering, nor when n grows, nor how the paper tunes `levels`, `ratio`
/// and the kind of merges to a workload. So the rule of counters here is another one, with the same
/// bounds: a round of n flushes in which no entry is written more than l times, with no more than k
/// runs in between, exists if and only if `C(k + l, l)` is at least n (Mathieu et al.), and
/// MinLatency is such a round. Leveling of Bentley and Saxe is the same with k given instead of l.
/// `lsmith tune` looks for the parameters.
///
/// The write of a memtable that is flushed first and not merged at once comes on top of the
/// `levels` writes. In free runs rounds can be longer, by what is flushed while merges are under
/// way.
///
/// Source: Mo, Luo and Idreos, "How to Grow an LSM-tree? Towards Bridging the Gap Between Theory
/// and Practice", SIGMOD 2025, arXiv 2504.17178, as far as said above; Mathieu et al., "Competitive
/// data-structure dynamization", SODA 2021, for the horizontal part.
#[derive(Clone, Debug, PartialEq)]
pub struct Vertiorizon {
    levels: u64,
    merge: Merge,
    ratio: u64,
    eager: Eager,
    /// Takes the pieces of the upper level down.
    leveled: Leveled,
}

/// What the number of levels of the horizontal part bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Merge {
    /// The runs: each level is one.
    Leveling,
    /// The writes of an entry: each level writes it once.
    Tiering,
}

/// The note that holds the number of flushes when the last round ended.
const ROUND: &str = "vertiorizon_round";

/// The most runs of the horizontal part. More help nobody, and the schedule of many runs is long.
const RUNS_MAX: u64 = 1000;

/// What is where in a tree.
struct Parts {
    /// The lower level of the vertical part: the deepest level that has runs, at least 2.
    lower: usize,
    /// Runs of the upper level.
    upper_runs: usize,
    /// True if there are runs between level 0 and the vertical part, which another policy has left.
    has_strays: bool,
    /// Flushes of a round.
    round_flushes: u64,
    /// The number of flushes when the last round ended.
    ended_at: u64,
}

impl Parts {
    /// Returns how many runs of `stack` are above `level`. Runs that become one count as one, and
    /// lie where the newest of them does.
    fn above(&self, level: usize, view: &TreeView, stack: &Stack) -> usize {
        let is_above = |id| match view.tree.run(id) {
            Some((LevelId::Disk(at), _)) => at < level,
            _ => true,
        };
        stack.runs().iter().take_while(|run| is_above(run.id)).count()
    }

    /// Returns the flushes of `stack` since the last round.
    fn flushes(&self, stack: &Stack) -> u64 {
        stack.flushes().saturating_sub(self.ended_at).max(1)
    }
}

impl Vertiorizon {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "vertiorizon",
        source: "Mo et al., How to Grow an LSM-tree, SIGMOD 2025; Mathieu et al., SODA 2021",
        summary: "rounds of young runs, merged by flush count, over two levels of one run",
        params: &[
            ParamInfo {
                name: "levels",
                default: "3",
                meaning: "levels of the horizontal part, 1 to 62: its most runs, or how often it \
                          writes an entry at most",
            },
            ParamInfo {
                name: "merge",
                default: "tiering",
                meaning: "what levels bounds: the runs (leveling) or the writes (tiering)",
            },
            ParamInfo {
                name: "ratio",
                default: "4",
                meaning: "size of the lower level over the upper one, and of the upper one over \
                          what the horizontal part takes, 2 to 1000",
            },
            Eager::PARAM,
        ],
        build: |params| Ok(Arc::new(Vertiorizon::read(params)?)),
    };

    /// Returns the policy with `levels` levels in the horizontal part, from 1 to 62, and merges by
    /// tiering. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `levels` is out of range.
    pub fn new(levels: u64) -> Result<Vertiorizon, SpecError> {
        let spec = Spec::bare(Vertiorizon::INFO.name).with("levels", levels);
        Vertiorizon::INFO.read(&spec, Vertiorizon::read)
    }

    fn read(params: &Params<'_>) -> Result<Vertiorizon, SpecError> {
        let merge = params.choice("merge", "tiering", &["leveling", "tiering"])?;
        Ok(Vertiorizon {
            levels: params.count("levels", 3, 1..=62)?,
            merge: if merge == "leveling" { Merge::Leveling } else { Merge::Tiering },
            ratio: params.count("ratio", 4, 2..=1000)?,
            eager: Eager::read(params)?,
            leveled: Leveled::new(2.0, Pick::MinOverlap)?,
        })
    }

    /// Returns the most runs of the horizontal part within a round of `round_flushes` flushes. The
    /// last flush ends the round.
    fn runs_max(&self, round_flushes: u64) -> u64 {
        match self.merge {
            Merge::Leveling => self.levels,
            Merge::Tiering => least_above(self.levels, round_flushes - 1).clamp(1, RUNS_MAX),
        }
    }

    fn parts(&self, view: &TreeView) -> Parts {
        let tree = &view.tree;
        let levels = tree.levels();
        let lower = levels.iter().rposition(|level| !level.runs().is_empty()).unwrap_or(0).max(2);
        let runs = |level: usize| tree.runs_at(LevelId::Disk(level)).len();
        let bytes = levels.iter().skip(lower - 1).map(|level| level.bytes());
        let memtable = view.memtable_bytes.max(1);
        let least = memtable.saturating_mul(self.ratio).saturating_mul(self.ratio);
        Parts {
            lower,
            upper_runs: runs(lower - 1),
            has_strays: (1..lower - 1).any(|level| runs(level) > 0),
            round_flushes: bytes.fold(0, u64::saturating_add).div_ceil(least).max(self.ratio),
            ended_at: view.memo(ROUND).and_then(|text| text.parse().ok()).unwrap_or(0),
        }
    }

    /// Returns the merge of the newest runs of a round, or of all of them with the upper level when
    /// the round ends.
    fn merge_young(&self, view: &TreeView, parts: &Parts, stack: &Stack) -> Option<MergePlan> {
        let young = parts.above(parts.lower - 1, view, stack);
        let (flushes, round_flushes) = (parts.flushes(stack), parts.round_flushes);
        if flushes < round_flushes && parts.upper_runs <= 1 && !parts.has_strays {
            let leave = stack_depth(self.runs_max(round_flushes), flushes).max(1);
            let newest = (young as u64 + 1).checked_sub(leave).filter(|newest| *newest > 1)?;
            let numbers = [flushes, leave, young as u64];
            let reason = Reason::new("flush {} of the round leaves {} runs of {}", numbers);
            return stack.merge(0, newest as usize, self.eager, reason);
        }
        let numbers = [young as u64, flushes, round_flushes];
        let reason = Reason::new("{} runs of {} flushes go down, a round has {}", numbers);
        let plan = match parts.above(parts.lower, view, stack) {
            1 if young == 1 => {
                let only = stack.runs().first().filter(|run| !run.busy)?;
                // A memtable is flushed first.
                view.tree.disk_runs().find(|run| run.id() == only.id)?;
                let plan = MergePlan::merge([only.id], Place::Oldest, reason);
                MergePlan { mode: Mode::Move, ..plan }
            }
            runs => stack.merge(0, runs, self.eager, reason)?,
        };
        Some(MergePlan {
            place: Place::NewRun(parts.lower - 1),
            cut_bytes: Some(view.memtable_bytes.max(1)),
            memo: vec![(ROUND.into(), Some(stack.flushes().to_string()))],
            ..plan
        })
    }

    /// Returns the bytes that the upper level may hold.
    fn upper_bytes_max(&self, view: &TreeView, parts: &Parts) -> u64 {
        let memtable = view.memtable_bytes.max(1);
        memtable.saturating_mul(parts.round_flushes).saturating_mul(self.ratio)
    }

    /// Returns the merge of the next piece of the upper level into the lower one.
    fn take_down(&self, view: &TreeView, parts: &Parts) -> Option<MergePlan> {
        let (level, lower) = (parts.lower - 1, view.tree.runs_at(LevelId::Disk(parts.lower)));
        if lower.len() > 1 {
            let numbers = [parts.lower as u64, lower.len() as u64, 0];
            let reason = Reason::new("level {} has {} runs of 1", numbers);
            let plan = MergePlan::merge(lower.iter().map(|run| run.id()), Place::Oldest, reason);
            return Some(MergePlan { cut_bytes: Some(view.memtable_bytes.max(1)), ..plan });
        }
        let [source] = view.tree.runs_at(LevelId::Disk(level)) else { return None };
        let allowed = self.upper_bytes_max(view, parts);
        if self.leveled.bytes_staying(view, level) <= allowed {
            return None;
        }
        let numbers = [level as u64, source.bytes(), allowed];
        let descent = Descent {
            from: LevelId::Disk(level),
            source,
            target: lower.first(),
            to: parts.lower,
            is_last: false,
            reason: Reason::new("level {} holds {} bytes of {}", numbers),
        };
        let choice = self.leveled.choice(view, &descent);
        let mut plans = Pick::MinOverlap
            .ranked(&choice)
            .map(|candidate| self.leveled.plan(view, &descent, &candidate.piece));
        plans.find(|plan| view.is_free_for(plan))
    }
}

impl MergePolicy for Vertiorizon {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("vertiorizon").with("levels", self.levels);
        let spec = match self.merge {
            Merge::Leveling => spec.with("merge", "leveling"),
            Merge::Tiering => spec,
        };
        self.eager.write(spec.with("ratio", self.ratio))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let parts = self.parts(view);
        let is_free = |plan: &MergePlan| view.is_free_for(plan);
        // Writers wait for young runs, so these go first.
        let young = Stack::of(view).in_turn(|stack| self.merge_young(view, &parts, stack));
        young.filter(is_free).or_else(|| self.take_down(view, &parts).filter(is_free))
    }

    /// The bound of the shape holds for any data. Runs that hold writers back are those beyond what
    /// a round over these data may have.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let level0_runs = self.runs_max(self.parts(view).round_flushes);
        Shape::Leveled { ratio: self.ratio as f64, level0_runs }.pressure(view, load)
    }

    fn shape(&self) -> Shape {
        let level0_runs = match self.merge {
            Merge::Leveling => self.levels,
            Merge::Tiering => RUNS_MAX,
        };
        Shape::Leveled { ratio: self.ratio as f64, level0_runs }
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        let (parts, stack) = (self.parts(view), Stack::of(view));
        let most = self.runs_max(parts.round_flushes);
        let (flushes, of) = (parts.flushes(&stack), parts.round_flushes);
        let note = format!("flush {flushes} of {of} of the round, with at most {most} runs");
        Explanation { plan: self.next_merge(view), notes: vec![note], ..Explanation::default() }
    }
}
