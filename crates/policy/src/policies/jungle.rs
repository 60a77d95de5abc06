//! Jungle: merges append to append tables, which are rewritten one by one.

mod dead;

use self::dead::DeadLimit;
use crate::pressure::pressure_of_bytes;
use crate::{Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::text::{display_key, parse_key};
use lsmith_tree::{
    Input, KeyRange, LEVELS_MAX, Level, LevelId, MergePlan, Mode, Place, Reason, ReservationState,
    Run, Slice, TreeView, key_after,
};
use std::sync::Arc;

/// The tables of level 0.
const LEVEL0_TABLES: u64 = 4;

/// An append table of less than one part in this many of a table is fused with a neighbour.
const SMALL_PARTS: u64 = 5;

/// Merges may be behind by one part in so many of all live bytes, or of a memtable if that is more.
/// What a level has over its limit makes about twice as many dead bytes further down.
const BEHIND_PARTS: u64 = 50;
const BEHIND_PARTS_OF_MEMTABLE: u64 = 4;

/// The memo with the bytes by which merges were behind at the last flush, if they were too many.
const BEHIND: &str = "behind";

/// Each level is one run of append tables with disjoint key ranges. When the
/// live bytes of a level exceed its limit, one append table goes down: its entries are appended to
/// the append tables of the next level, which are not rewritten. So an entry is written about once
/// per level. An append table is rewritten alone when its file holds more than `c` times the bytes
/// to which it would be rewritten: its live ones and [their nodes](lsmith_tree::node_bytes). It is
/// split when its live bytes exceed one and a half tables. A small one is fused with a neighbour.
///
/// With `space` in place of `c`, all append tables together have one limit. Those are rewritten
/// first whose dead bytes, over live ones, times the age of the file are most. So each key range
/// has its own `c`, which follows from how often it is written.
///
/// Level 0 holds four tables, and each level below `ratio` times as much. A run moves down by
/// metadata if the next level is empty. So the last level is never full. Append tables take turns
/// in the order of their keys.
///
/// A memtable goes to level 0 before anything else, unless merges are behind by more than a 50th
/// of all live bytes and a quarter of a memtable: in the bytes of levels over their limits, or in
/// dead bytes over `c` or `space`. Then they catch up first.
///
/// Source: Jungle, HotStorage 2019, and its code. There the ranges of level 0 are fixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Jungle {
    dead: DeadLimit,
    ratio: f64,
    /// Bytes of a table; `None` means the bytes of a memtable.
    table_bytes: Option<u64>,
}

impl Jungle {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "jungle",
        source: "Ahn et al., HotStorage 2019; Jungle (eBay)",
        summary: "appends a piece of a full level to tables of the next, rewrites single ones",
        params: &[
            ParamInfo {
                name: "c",
                default: "3",
                meaning: "bytes of an append table's file, nodes included, over those to which it \
                          would be rewritten, 1 to 1000; or a number for each level, as 10/5/3, \
                          the last one for all deeper levels",
            },
            ParamInfo {
                name: "space",
                default: "",
                meaning: "in place of c: the same for all files together, more than 1; tables \
                          that are seldom written then keep fewer dead bytes",
            },
            ParamInfo {
                name: "ratio",
                default: "10",
                meaning: "live bytes of a level over those of the level above, more than 1",
            },
            ParamInfo {
                name: "table",
                default: "auto",
                meaning: "live bytes of an append table, and a quarter of level 0; auto: the \
                          memtable's",
            },
        ],
        build: |params| Ok(Arc::new(Jungle::read(params)?)),
    };

    /// Returns the policy that lets the file of an append table grow to `c` times the bytes of its
    /// rewrite, from 1 to 1000. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `c` is out of range.
    pub fn new(c: f64) -> Result<Jungle, SpecError> {
        Jungle::INFO.read(&Spec::bare(Jungle::INFO.name).with("c", c), Jungle::read)
    }

    fn read(params: &Params<'_>) -> Result<Jungle, SpecError> {
        let ratio = params.real("ratio", 10.0, 1.0..=1000.0)?;
        if ratio <= 1.0 {
            return Err(SpecError::conflict("ratio = 1 is out of range: expected more than 1"));
        }
        let dead = DeadLimit::read(params)?;
        let auto = params.text("table").is_none_or(|text| text == "auto");
        let table_bytes = if auto { None } else { params.bytes_if_given("table", 1..=1 << 50)? };
        Ok(Jungle { dead, ratio, table_bytes })
    }

    fn table(&self, view: &TreeView) -> u64 {
        self.table_bytes.unwrap_or(view.memtable_bytes).max(1)
    }

    /// Returns the live bytes that `level` may hold.
    fn capacity(&self, view: &TreeView, level: usize) -> f64 {
        (self.table(view) as f64) * LEVEL0_TABLES as f64 * self.ratio.powi(level as i32)
    }

    /// Returns the live bytes of an append table that is new in a gap of `level`. It will have
    /// grown to a table when its turn to go down comes. A larger one would be split before.
    fn new_table_bytes(&self, view: &TreeView, level: usize) -> u64 {
        let is_last = level + 1 >= view.tree.levels().len();
        let table = self.table(view);
        match level {
            0 => table / LEVEL0_TABLES,
            _ if is_last => table,
            _ => (table as f64 / self.ratio) as u64,
        }
        .max(1)
    }

    /// Returns a plan that writes or appends to append tables of `target`.
    fn plan(&self, view: &TreeView, inputs: Vec<Input>, place: Place, reason: Reason) -> MergePlan {
        MergePlan {
            inputs,
            cut_bytes: Some(self.table(view)),
            ..MergePlan::merge([], place, reason)
        }
    }

    /// Returns the plan that rewrites `range` of `run`, whole slices, as one append table.
    fn rewrite(run: &Run, range: KeyRange, reason: Reason) -> MergePlan {
        let inputs = vec![Input { run: run.id(), range }];
        MergePlan { inputs, ..MergePlan::merge([], Place::Append(run.id()), reason) }
    }

    /// Returns the plan that appends `range` of `source` to `target`, or one that first makes an
    /// append table of a slice that is none.
    fn append(
        &self,
        view: &TreeView,
        source: &Run,
        range: &KeyRange,
        target: &Run,
        reason: Reason,
    ) -> MergePlan {
        let slices = target.slices();
        let from = slices.partition_point(|slice| slice.range().start <= range.start);
        let from = from.saturating_sub(1);
        let is_below =
            |slice: &Slice| range.end.as_ref().is_none_or(|end| slice.range().start < *end);
        let end = slices.partition_point(is_below).max(from + 1);
        let touched = || slices.range(from..end).into_iter();
        if let Some(other) = touched().find(|slice| !slice.is_append()) {
            let reason = Reason::new("nothing can be appended to a sorted table", [0; 3]);
            return Jungle::rewrite(target, other.range().clone(), reason);
        }
        let nothing = KeyRange { start: range.start.clone(), end: Some(range.start.clone()) };
        let hull = touched().fold(nothing, |hull, slice| hull.hull(slice.range()));
        let inputs = vec![
            Input { run: source.id(), range: range.clone() },
            Input { run: target.id(), range: hull },
        ];
        let level = view.tree.run(target.id()).map_or(0, |(level, _)| match level {
            LevelId::Memory => 0,
            LevelId::Disk(level) => level,
        });
        let cut_bytes = Some(self.new_table_bytes(view, level));
        let plan = self.plan(view, inputs, Place::Append(target.id()), reason);
        MergePlan { cut_bytes, ..plan }
    }

    /// Returns the plan that moves an append table of `source` into the run `target`.
    fn lower(source: &Run, range: &KeyRange, target: &Run, reason: Reason) -> MergePlan {
        let inputs = vec![Input { run: source.id(), range: range.clone() }];
        let place = Place::Into(target.id());
        MergePlan { inputs, mode: Mode::Move, ..MergePlan::merge([], place, reason) }
    }

    /// Returns the bytes by which merges are behind: bytes over the limits of levels, and dead
    /// bytes that should be gone. 0 at rest.
    fn behind(&self, view: &TreeView) -> u64 {
        let levels = view.tree.levels();
        let over = levels.iter().enumerate().map(|(at, level)| {
            // A level moves down unread if the next one is empty.
            let is_last = levels[at + 1..].iter().all(|below| below.runs().is_empty());
            let bytes: u64 = level.runs().iter().map(|run| run.bytes()).sum();
            if is_last { 0.0 } else { (bytes as f64 - self.capacity(view, at)).max(0.0) }
        });
        (over.sum::<f64>() + self.dead.excess(view)) as u64
    }

    /// Returns the bytes by which merges may be behind when a memtable goes to level 0.
    fn behind_max(view: &TreeView) -> u64 {
        let memtable = view.memtable_bytes / BEHIND_PARTS_OF_MEMTABLE;
        memtable.max(view.tree.disk_bytes() / BEHIND_PARTS).max(1)
    }

    /// Returns the plan that takes the oldest memtable into level 0, unless merges must catch up
    /// first.
    ///
    /// In lockstep they are never behind. If they are by more than flushes can have left, as after
    /// a change of the policy, writers are not stopped until they have caught up wholly: between
    /// two flushes they catch up by a memtable.
    fn flush_in_turn(&self, view: &TreeView) -> Option<MergePlan> {
        let mut plan = self.flush(view)?;
        let behind = self.behind(view);
        let before = view.memo(BEHIND).and_then(|text| text.parse::<u64>().ok());
        let allowed = Jungle::behind_max(view);
        let flushed = view.memtable_bytes.saturating_mul(Shape::FLUSHED_MEMTABLES_MAX);
        let memo = (behind > allowed).then(|| behind.to_string());
        let may_go = match before {
            Some(before) => behind <= before.saturating_sub(view.memtable_bytes),
            None => behind > allowed.saturating_add(flushed),
        };
        if memo.is_some() && !may_go {
            return None;
        }
        if memo.is_some() || before.is_some() {
            plan.memo.push((BEHIND.into(), memo));
        }
        Some(plan)
    }

    /// Takes the oldest memtable into level 0.
    fn flush(&self, view: &TreeView) -> Option<MergePlan> {
        let memtable = view.tree.memory().runs().last()?;
        let reason = Reason::new("a memtable goes to the append tables of level 0", [0; 3]);
        match view.tree.levels().first().map_or(&[][..], Level::runs) {
            [] => {
                let inputs = vec![Input::all(memtable.id())];
                let cut_bytes = Some(self.new_table_bytes(view, 0));
                let plan = self.plan(view, inputs, Place::NewAppend(0), reason);
                Some(MergePlan { cut_bytes, ..plan })
            }
            [target] => Some(self.append(view, memtable, &memtable.hull(), target, reason)),
            // Left by another policy, and merged first.
            _ => None,
        }
    }

    /// Merges the runs of a level that another policy has left.
    fn gather(&self, view: &TreeView, level: usize, runs: &[Arc<Run>]) -> MergePlan {
        let reason = Reason::new("level {} has {} runs of 1", [level as u64, runs.len() as u64, 0]);
        let inputs = runs.iter().map(|run| Input::all(run.id())).collect();
        self.plan(view, inputs, Place::NewAppend(level), reason)
    }

    /// Returns the plans that take live bytes out of `level`, the best one first.
    fn descents<'a>(
        &'a self,
        view: &'a TreeView,
        level: usize,
    ) -> Box<dyn Iterator<Item = MergePlan> + 'a> {
        let levels = view.tree.levels();
        let nothing = || Box::new(std::iter::empty());
        let [run] = levels[level].runs() else { return nothing() };
        let capacity = self.capacity(view, level);
        if run.bytes() as f64 <= capacity || level + 1 >= LEVELS_MAX {
            return nothing();
        }
        let numbers = [level as u64, run.bytes(), capacity as u64];
        let reason = Reason::new("level {} has {} live bytes of {}", numbers);
        match levels.get(level + 1).map_or(&[][..], Level::runs) {
            [] => {
                let inputs = vec![Input::all(run.id())];
                let plan = self.plan(view, inputs, Place::NewAppend(level + 1), reason);
                Box::new(std::iter::once(MergePlan { mode: Mode::Move, cut_bytes: None, ..plan }))
            }
            [target] => {
                let name = format!("next_L{level}");
                let cursor = view.memo(&name).and_then(|text| parse_key(text).ok());
                let cursor = cursor.unwrap_or_default();
                let slices = run.slices();
                let first = slices.partition_point(|slice| slice.range().start < cursor);
                let order = (first..slices.len()).chain(0..first);
                Box::new(order.map(move |at| {
                    let victim = &slices[at];
                    let range = victim.range();
                    if victim.is_append() && target.overlapping(range).is_empty() {
                        return Jungle::lower(run, range, target, reason.clone());
                    }
                    let plan = self.append(view, run, range, target, reason.clone());
                    let end = range.end.clone().unwrap_or_default();
                    let text = display_key(&end).to_string();
                    match plan.inputs.len() {
                        1 => plan,
                        _ => MergePlan { memo: vec![(name.clone().into(), Some(text))], ..plan },
                    }
                }))
            }
            _ => nothing(),
        }
    }

    /// Returns the plan that splits `slice`, if it has outgrown a table and has two keys, unless it
    /// was written since the last flush.
    ///
    /// So plans end on any append table, even if a split should leave one as large as before: where
    /// an interpreter knows expected entries only, an append table can have the bytes of two tables
    /// and less than two entries. Between two flushes each plan is one of these:
    ///
    /// * Entries go down a level, and none ever go up.
    /// * An old append table is split, and what it becomes is not old.
    /// * An append table is rid of its dead bytes. Only what goes down makes new ones.
    /// * Two append tables become one that is no larger than a table.
    /// * A table, or the runs of a level, that another policy left become append tables.
    fn split(&self, view: &TreeView, level: usize, run: &Run, slice: &Slice) -> Option<MergePlan> {
        let table = self.table(view);
        let live = slice.size().bytes;
        // Append tables of level 0 go down before it pays to split them.
        let limit = if level == 0 { table.saturating_mul(LEVEL0_TABLES) } else { table };
        let range = slice.range();
        let has_keys = slice.size().entries != 1
            && range.end.as_ref().is_some_and(|end| *end != key_after(&range.start));
        let is_old = slice.table().born < view.tree.flushes();
        if live <= limit.saturating_add(table / 2) || !has_keys || !is_old {
            return None;
        }
        let reason = Reason::new(
            "an append table has {} live bytes, half a table more than {}",
            [live, limit, 0],
        );
        let plan = Jungle::rewrite(run, range.clone(), reason);
        Some(MergePlan { cut_bytes: Some((live / (live / table + 1)).max(1)), ..plan })
    }

    /// Returns the plan that rewrites an append table of `run` to be rid of its dead bytes.
    fn compact(run: &Run, slice: &Slice) -> MergePlan {
        let live = slice.size().bytes;
        let total = live.saturating_add(slice.dead_bytes());
        let reason = Reason::new("an append table has {} bytes for {} live ones", [total, live, 0]);
        Jungle::rewrite(run, slice.range().clone(), reason)
    }

    /// Returns the plan that fuses two neighbours, if one is small and both fit into a table.
    fn fuse(
        &self,
        view: &TreeView,
        level: usize,
        run: &Run,
        left: &Slice,
        right: &Slice,
    ) -> Option<MergePlan> {
        let table = self.table(view);
        let new = self.new_table_bytes(view, level);
        let sizes = [left.size().bytes, right.size().bytes];
        let is_small = sizes.iter().any(|bytes| *bytes < new / SMALL_PARTS);
        let is_due = is_small && left.is_append() && right.is_append();
        (is_due && sizes[0].saturating_add(sizes[1]) <= table).then(|| {
            let reason = Reason::new(
                "append tables of {} and {} live bytes fit into one",
                [sizes[0], sizes[1], 0],
            );
            Jungle::rewrite(run, left.range().hull(right.range()), reason)
        })
    }
}

impl MergePolicy for Jungle {
    fn spec(&self) -> Spec {
        let spec = self.dead.print(Spec::bare("jungle")).with("ratio", self.ratio);
        match self.table_bytes {
            Some(bytes) => spec.with("table", format_bytes(bytes)),
            None => spec,
        }
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let levels = view.tree.levels();
        let free = |plan: &MergePlan| view.is_free_for(plan);
        let several = levels.iter().enumerate().filter(|(_, level)| level.runs().len() > 1);
        let mut gathers = several.map(|(at, level)| self.gather(view, at, level.runs()));
        if let Some(plan) = gathers.find(free) {
            return Some(plan);
        }
        if let Some(plan) = self.flush_in_turn(view).filter(free) {
            return Some(plan);
        }
        if let Some(plan) =
            (0..levels.len()).find_map(|level| self.descents(view, level).find(free))
        {
            return Some(plan);
        }
        let runs = || {
            levels
                .iter()
                .enumerate()
                .flat_map(|(at, level)| level.runs().iter().map(move |run| (at, run)))
        };
        let slices = || {
            runs()
                .flat_map(|(level, run)| run.slices().iter().map(move |slice| (level, run, slice)))
        };
        let mut splits =
            slices().filter_map(|(level, run, slice)| self.split(view, level, run, slice));
        if let Some(plan) = splits.find(free) {
            return Some(plan);
        }
        let is_free = |run: &Run, slice: &Slice| free(&Jungle::compact(run, slice));
        if let Some((run, slice)) = self.dead.due(view, is_free) {
            return Some(Jungle::compact(run, slice));
        }
        let pairs = runs().filter(|(level, _)| *level > 0).flat_map(|(level, run)| {
            let next = run.slices().iter().skip(1);
            run.slices().iter().zip(next).map(move |(left, right)| (level, run, left, right))
        });
        let mut fuses =
            pairs.filter_map(|(level, run, left, right)| self.fuse(view, level, run, left, right));
        if let Some(plan) = fuses.find(free) {
            return Some(plan);
        }
        // Whatever merges are behind in has failed, or it is under way.
        let is_under_way = |state| state == ReservationState::UnderWay;
        let is_busy = view.reservations.iter().any(|taken| is_under_way(taken.state));
        self.flush(view).filter(|plan| !is_busy && free(plan))
    }

    /// Besides memtables that wait, bytes by which merges are behind hold writers back.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let bytes = pressure_of_bytes(self.behind(view), Jungle::behind_max(view));
        self.shape().pressure(view, load).max(bytes.min(Shape::PRESSURE_OF_LEFTOVERS_MAX))
    }

    fn needs(&self) -> Needs {
        Needs { appends: true, ..Needs::default() }
    }

    fn shape(&self) -> Shape {
        Shape::Leveled { ratio: self.ratio, level0_runs: 1 }
    }
}
