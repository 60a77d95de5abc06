//! Spooky: the largest level is merged group by group, at the borders of its own tables.

use crate::{Eager, Explanation, MergePolicy, ParamInfo, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::{
    Cuts, Input, KeyRange, LEVELS_MAX, LevelId, MergePlan, Mode, Place, Reason, Run, TreeView,
};
use std::sync::Arc;

/// One run per level below level 0. A level holds one `ratio`-th of the level below, measured from
/// what the largest level holds now. The level above the largest is the dividing level.
///
/// 1. When level 0 has more than `l0` runs, they and all levels down to the first that has room for
///    all of it are merged into that level. If no level above the dividing level has room, they are
///    merged into the dividing level, and the output is cut at the borders of the tables of the
///    largest level.
/// 2. When the dividing level is full, all of it is merged into the largest level, one group after
///    the other in key order. A group is a table of the largest level and what the dividing level
///    has of its keys, or several small ones that fit into one table. So the keys of a group meet
///    nothing else, and a merge needs room for one group only.
/// 3. A group ends up as tables of equal size, of at most one `ratio`-th of the largest level.
/// 4. When the first level would hold more than `ratio` memtables, the largest level is moved down,
///    and the tree has a level more.
///
/// The paper generalises the dividing level to any level above the largest. Here it is the one
/// right above it, which the paper calls 2L-Spooky. What the dividing level has between two tables,
/// or beyond the last, is moved and not merged, so that keys in order are not written again. The
/// paper has no level 0: its buffer is merged at once, as here with `l0=0`.
///
/// Source: Dayan et al., "Spooky: Granulating LSM-Tree Compactions Correctly", PVLDB 15(11), 2022,
/// the abstract, and how TidesDB documents its merges; level sizes as RocksDB's
/// `level_compaction_dynamic_level_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spooky {
    ratio: u64,
    level0_runs: u64,
    eager: Eager,
}

/// The note that holds the run whose groups are being merged. Runs are never named twice, so that a
/// note of a run that is gone says nothing.
const DIVIDED: &str = "spooky_divided";

/// The levels of a tree, and what they may hold.
struct Levels<'a> {
    view: &'a TreeView,
    ratio: f64,
    /// The largest level. Level 1 is never the largest, because the dividing level is above it.
    last: usize,
    last_bytes: u64,
}

impl Levels<'_> {
    fn dividing(&self) -> usize {
        self.last - 1
    }

    /// Returns the bytes that a level above the last may hold.
    fn capacity(&self, level: usize) -> f64 {
        self.last_bytes as f64 / self.ratio.powi((self.last - level) as i32)
    }

    fn runs(&self, level: usize) -> &[Arc<Run>] {
        self.view.tree.runs_at(LevelId::Disk(level))
    }

    fn bytes(&self, level: usize) -> u64 {
        self.view.tree.levels().get(level).map_or(0, |level| level.bytes())
    }

    /// Returns the most bytes of a table of the two largest levels.
    fn table_bytes(&self) -> u64 {
        let part = self.last_bytes as f64 / self.ratio;
        (part as u64).max(self.view.memtable_bytes).max(1)
    }

    /// Returns the keys at which the output of a dividing merge is cut.
    fn borders(&self) -> Cuts {
        let tables = self.runs(self.last).last().into_iter().flat_map(|run| run.slices().iter());
        let mut keys: Vec<_> = tables.skip(1).map(|slice| slice.range().start.clone()).collect();
        keys.dedup();
        Cuts { keys, overlap: None }
    }
}

/// A run that goes down into the oldest run, group by group.
struct Descent<'a> {
    source: &'a Arc<Run>,
    target: &'a Arc<Run>,
    reason: Reason,
    table_bytes: u64,
}

impl Descent<'_> {
    /// Returns the groups, each as its key range and its bytes, in key order. Groups without keys
    /// of the source are left out.
    fn groups(&self) -> impl Iterator<Item = (KeyRange, u64)> {
        let tables = self.target.slices();
        let start = self.source.hull().start;
        let passed = tables.partition_point(|table| table.range().start <= start);
        let mut from = passed.saturating_sub(1);
        let group_from = move |first: usize| -> Option<(usize, Option<(KeyRange, u64)>)> {
            let border = |index: usize| tables.get(index).map(|table| table.range().start.clone());
            let start = if first == 0 { Default::default() } else { border(first)? };
            let (mut end, mut bytes) = (first, 0);
            while end < tables.len() {
                let from = if end == first { start.clone() } else { border(end)? };
                let range = KeyRange { start: from, end: border(end + 1) };
                let more = self.source.size_within(&range).bytes + tables.at(end).size().bytes;
                let meets = !self.source.overlapping(&range).is_empty();
                if end > first && (!meets || bytes + more > self.table_bytes) {
                    break;
                }
                end += 1;
                if !meets {
                    return Some((end, None));
                }
                bytes += more;
            }
            (end > first).then(|| (end, Some((KeyRange { start, end: border(end) }, bytes))))
        };
        let groups = std::iter::from_fn(move || {
            let (end, group) = group_from(from)?;
            from = end;
            Some(group)
        });
        groups.flatten()
    }

    /// Returns the plan that merges a group, or moves it if its keys meet no table.
    fn plan(&self, range: KeyRange, bytes: u64) -> MergePlan {
        let Descent { source, target, .. } = self;
        let taken = source.clip(&range).map(|slice| slice.range().clone());
        let taken = taken.reduce(|all, slice| all.hull(&slice)).unwrap_or_else(|| range.clone());
        let is_merge = !target.overlapping(&taken).is_empty();
        let inputs = match is_merge {
            true => {
                [source, target].map(|run| Input { run: run.id(), range: range.clone() }).into()
            }
            false => vec![Input { run: source.id(), range: taken }],
        };
        let parts = bytes.div_ceil(self.table_bytes).max(1);
        MergePlan {
            inputs,
            place: Place::Into(target.id()),
            mode: if is_merge { Mode::Merge } else { Mode::Move },
            cut_bytes: Some(bytes.div_ceil(parts).max(1)),
            cuts: Cuts::default(),
            reuse: None,
            memo: vec![(DIVIDED.into(), Some(source.id().0.to_string()))],
            reason: self.reason.clone(),
        }
    }
}

impl Spooky {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "spooky",
        source: "Dayan et al., Spooky, PVLDB 2022",
        summary: "merges into the largest level table by table, levels above cut at its borders",
        params: &[
            ParamInfo {
                name: "ratio",
                default: "5",
                meaning: "size of a level over that of the level above, 2 to 1000",
            },
            ParamInfo { name: "l0", default: "3", meaning: "runs allowed in level 0, 0 to 1000" },
            Eager::PARAM,
        ],
        build: |params| Ok(Arc::new(Spooky::read(params)?)),
    };

    /// Returns the policy whose levels grow by `ratio`, from 2 to 1000. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn new(ratio: u64) -> Result<Spooky, SpecError> {
        Spooky::INFO.read(&Spec::bare(Spooky::INFO.name).with("ratio", ratio), Spooky::read)
    }

    fn read(params: &Params<'_>) -> Result<Spooky, SpecError> {
        Ok(Spooky {
            ratio: params.count("ratio", 5, 2..=1000)?,
            level0_runs: params.count("l0", 3, 0..=1000)?,
            eager: Eager::read(params)?,
        })
    }

    fn levels<'a>(&self, view: &'a TreeView) -> Levels<'a> {
        let levels = view.tree.levels();
        let last = levels.iter().rposition(|level| !level.runs().is_empty()).unwrap_or(0).max(2);
        let last_bytes = levels.get(last).map_or(0, |level| level.bytes());
        Levels { view, ratio: self.ratio as f64, last, last_bytes }
    }

    /// Returns the run that goes down into the oldest run of the largest level, if there is one: a
    /// newer run of that level, or the dividing level.
    fn descent<'a>(&self, levels: &'a Levels<'_>) -> Option<Descent<'a>> {
        let (target, newer) = levels.runs(levels.last).split_last()?;
        let table_bytes = levels.table_bytes();
        if let Some(source) = newer.last() {
            let numbers = [levels.last as u64, newer.len() as u64 + 1, 0];
            let reason = Reason::new("level {} has {} runs of 1", numbers);
            return Some(Descent { source, target, reason, table_bytes });
        }
        let [source] = levels.runs(levels.dividing()) else { return None };
        let allowed = levels.capacity(levels.dividing());
        let is_divided = levels.view.memo(DIVIDED) == Some(&source.id().0.to_string());
        if !is_divided && source.bytes() as f64 <= allowed {
            return None;
        }
        let numbers = [levels.dividing() as u64, source.bytes(), allowed as u64];
        let text = match is_divided {
            true => "level {} goes down, {} bytes are left",
            false => "level {} holds {} bytes of {}",
        };
        Some(Descent { source, target, reason: Reason::new(text, numbers), table_bytes })
    }

    /// Returns the plan that moves the largest level down, or the dividing level if there is no
    /// largest one yet.
    fn deepen(&self, levels: &Levels<'_>) -> Option<MergePlan> {
        let memtable = levels.view.memtable_bytes.max(1) as f64;
        let most = memtable * levels.ratio.powi(levels.last as i32);
        let (run, to) = match (levels.runs(levels.last), levels.runs(levels.dividing())) {
            ([run], _) if run.bytes() as f64 > most => (run, levels.last + 1),
            ([], [run]) => (run, levels.last),
            _ => return None,
        };
        let numbers = [to as u64 - 1, run.bytes(), 0];
        let reason = Reason::new("level {} holds {} bytes, and the last level is below", numbers);
        let plan = MergePlan::merge([run.id()], Place::NewRun(to), reason);
        (to < LEVELS_MAX).then_some(MergePlan { mode: Mode::Move, ..plan })
    }

    /// Returns the level at which a merge from level 0 on must end at least, and why: the deepest
    /// one that holds too much. `memtable` counts as a run of level 0.
    fn due(&self, levels: &Levels<'_>, memtable: Option<&Arc<Run>>) -> Option<(usize, Reason)> {
        let crowded = (1..levels.last).rev().find_map(|level| {
            let (runs, bytes) = (levels.runs(level).len() as u64, levels.bytes(level));
            let allowed = levels.capacity(level);
            if runs > 1 {
                let reason = Reason::new("level {} has {} runs of {}", [level as u64, runs, 1]);
                return Some((level, reason));
            }
            let is_full = level < levels.dividing() && bytes as f64 > allowed;
            let numbers = [level as u64, bytes, allowed as u64];
            is_full.then(|| (level, Reason::new("level {} holds {} bytes of {}", numbers)))
        });
        let runs = (levels.runs(0).len() + memtable.iter().len()) as u64;
        let numbers = [0, runs, self.level0_runs];
        crowded.or_else(|| {
            let is_due = runs > self.level0_runs;
            is_due.then(|| (1, Reason::new("level {} has {} runs of {}", numbers)))
        })
    }

    /// Returns the merge of level 0 and all levels down to the first that has room for them.
    fn merge_down(&self, levels: &Levels<'_>) -> Option<MergePlan> {
        let view = levels.view;
        let memtable = view.tree.memory().runs().last().filter(|run| !view.is_reserved(run.id()));
        let (least, reason) = self.due(levels, memtable)?;
        let down_to = |level| memtable.into_iter().chain((0..=level).flat_map(|l| levels.runs(l)));
        let has_room = |level: &usize| {
            down_to(*level).map(|run| run.bytes()).sum::<u64>() as f64 <= levels.capacity(*level)
        };
        let to = (least..levels.dividing()).find(has_room).unwrap_or(levels.dividing());
        if memtable.is_some() && !self.eager.takes(down_to(to).map(|run| run.bytes())) {
            return None;
        }
        let mut plan = MergePlan::merge(down_to(to).map(|run| run.id()), Place::NewRun(to), reason);
        if plan.inputs.len() == 1 && memtable.is_none() {
            plan.mode = Mode::Move;
        } else if to == levels.dividing() {
            plan.cut_bytes = Some(levels.table_bytes());
            plan.cuts = levels.borders();
        }
        Some(plan)
    }
}

impl MergePolicy for Spooky {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("spooky").with("ratio", self.ratio).with("l0", self.level0_runs);
        self.eager.write(spec)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let levels = self.levels(view);
        let is_free = |plan: &MergePlan| view.is_free_for(plan);
        let group = self.descent(&levels).and_then(|descent| {
            descent.groups().map(|(range, bytes)| descent.plan(range, bytes)).find(is_free)
        });
        let upper = || self.deepen(&levels).or_else(|| self.merge_down(&levels));
        group.or_else(|| upper().filter(is_free))
    }

    fn shape(&self) -> Shape {
        Shape::Leveled { ratio: self.ratio as f64, level0_runs: self.level0_runs }
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        let plan = self.next_merge(view);
        let levels = self.levels(view);
        let descent = self.descent(&levels);
        let groups = descent.iter().flat_map(|descent| {
            descent.groups().take(4).map(|(range, bytes)| {
                let why = format!("{} over {range}: later in key order", format_bytes(bytes));
                (descent.plan(range, bytes), why)
            })
        });
        let runners_up = groups.filter(|(group, _)| Some(group) != plan.as_ref()).take(3).collect();
        let note = |level: usize| {
            let name = if level == levels.dividing() { ", the dividing level," } else { "" };
            let (bytes, allowed) = (levels.bytes(level), levels.capacity(level) as u64);
            format!(
                "level {level}{name} holds {} of {}",
                format_bytes(bytes),
                format_bytes(allowed)
            )
        };
        Explanation { plan, runners_up, notes: (1..levels.last).map(note).collect() }
    }
}
