//! Lethe: leveled, and deletes reach the last level within a given number of flushes.

use super::{Descent, Leveled, Pick, bytes_taken};
use crate::pressure::pressure_of_waiting_runs;
use crate::{Explanation, Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{Input, LEVELS_MAX, LevelId, MergePlan, Mode, Reason, Run, Slice, TreeView};
use std::cmp::Reverse;
use std::sync::Arc;

/// Builds the levels of [`Leveled`], and takes tombstones down in time.
///
/// 1. Every level above the last has a share of `delete_within`. Each share is `ratio` times the
///    share of the level above, and all shares together are `delete_within`. A table is due when
///    its oldest tombstone is as old as the shares of its level and of all levels above together.
///    The age of a tombstone is the number of flushes that followed the flush with the delete.
/// 2. Tables that are due go first, in the smallest level before others. Within a level the oldest
///    tombstone goes first, and of several as old the table with the most tombstones. It is merged
///    with what it overlaps in the next level. Level 0 gives its oldest run until nothing there is
///    due.
/// 3. If nothing is due, a level that is full gives a piece: the one with the most tombstones
///    (`pick=tombstones`), or the one that overlaps the least (`pick=min_overlap`).
///
/// So at rest a delete and what it hides are gone when `delete_within` flushes have followed the
/// flush with the delete. The delete may have waited in memory for one memtable before. With
/// threads, what is flushed while merges are under way comes on top. What a snapshot sees stays for
/// it. The age of range deletes is not known to policies, so they have no bound.
///
/// A tombstone is dropped when a merge writes it where nothing lies under it. So tombstones are
/// merged and not moved to such a place.
///
/// The paper counts in seconds. A policy has no clock, so this one counts flushes. The paper also
/// weaves a second sort order into tables, which no policy can do.
///
/// Source: Sarkar et al., "Lethe: A Tunable Delete-Aware LSM Engine", SIGMOD 2020, section 4.1
/// (FADE).
#[derive(Clone, Debug, PartialEq)]
pub struct Lethe {
    leveled: Leveled,
    delete_within: u64,
}

impl Lethe {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "lethe",
        source: "Sarkar et al., Lethe, SIGMOD 2020",
        summary: "leveled, and deletes reach the last level within a number of flushes",
        params: &[
            ParamInfo {
                name: "delete_within",
                default: "100",
                meaning: "most flushes that follow a flushed delete before what it hides is merged \
                          away, 1 to 1000000000",
            },
            ParamInfo {
                name: "ratio",
                default: "10",
                meaning: "bytes of a level over those of the level above, more than 1",
            },
            ParamInfo { name: "l0", default: "2", meaning: "runs allowed in level 0, 1 to 1000" },
            ParamInfo {
                name: "pick",
                default: "tombstones",
                meaning: "the piece that a full level gives: tombstones (the one with most) or \
                          min_overlap",
            },
            ParamInfo {
                name: "table",
                default: "auto",
                meaning: "bytes of a table, and of level 1 over ratio; auto: the memtable's",
            },
        ],
        build: |params| Ok(Arc::new(Lethe::read(params)?)),
    };

    /// Returns the policy that merges deletes away within `delete_within` flushes, from 1 to
    /// 10^9. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `delete_within` is out of range.
    pub fn new(delete_within: u64) -> Result<Lethe, SpecError> {
        Lethe::INFO
            .read(&Spec::bare(Lethe::INFO.name).with("delete_within", delete_within), Lethe::read)
    }

    fn read(params: &Params<'_>) -> Result<Lethe, SpecError> {
        let delete_within = params.count("delete_within", 100, 1..=1_000_000_000)?;
        let pick = params.choice("pick", "tombstones", &["tombstones", "min_overlap"])?;
        let pick = if pick == "min_overlap" { Pick::MinOverlap } else { Pick::Tombstones };
        let leveled = Leveled::read(params)?;
        let bare = Spec::bare("lethe").with("delete_within", delete_within);
        let spec = leveled.spec.params.iter().fold(bare, |spec, (name, value)| match &name[..] {
            "pick" => spec.with("pick", pick.name()),
            _ => spec.with(name, value),
        });
        Ok(Lethe { leveled: Leveled { spec, pick, ..leveled }, delete_within })
    }

    /// Returns the age in flushes from which on a tombstone may not be in `level`, if `last` is the
    /// last level: the shares of the levels down to `level`.
    fn age_max(&self, level: usize, last: usize) -> f64 {
        let sum = |levels: usize| self.leveled.ratio.powi(levels as i32) - 1.0;
        let part = sum(level + 1) / sum(last.max(1));
        // At a large ratio, both are beyond all numbers.
        self.delete_within as f64 * if part.is_finite() { part.min(1.0) } else { 1.0 }
    }

    /// Returns the slices of `run` that are due at `level`, each with the flush that brought its
    /// oldest tombstone. Nothing lies under the oldest run, so its tombstones hide nothing.
    fn due<'a>(
        &self,
        view: &TreeView,
        level: usize,
        run: &'a Run,
    ) -> impl Iterator<Item = (u64, &'a Slice)> {
        let oldest = view.tree.disk_runs().last().map(|run| run.id());
        let last = view.tree.levels().iter().rposition(|level| !level.runs().is_empty());
        let age_max = self.age_max(level, last.unwrap_or(0));
        let flushes = view.tree.flushes();
        let slices = if oldest == Some(run.id()) { Default::default() } else { run.slices() };
        slices.iter().filter_map(move |slice| {
            let flush = oldest_tombstone(slice)?;
            (flushes.saturating_sub(flush) as f64 >= age_max).then_some((flush, slice))
        })
    }

    /// Returns the descents that are due, the smallest level first.
    fn due_descents<'a>(&'a self, view: &'a TreeView) -> impl Iterator<Item = Descent<'a>> {
        let levels = view.tree.levels().iter().enumerate().take(LEVELS_MAX - 1);
        levels.filter_map(|(level, here)| {
            let source = here.runs().last()?;
            let below = view.tree.runs_at(LevelId::Disk(level + 1));
            // Levels of several runs become one run first.
            if below.len() > 1 || level > 0 && here.runs().len() > 1 {
                return None;
            }
            let due = here.runs().iter().flat_map(|run| self.due(view, level, run));
            let flush = due.map(|(flush, _)| flush).min()?;
            let numbers = [level as u64, view.tree.flushes().saturating_sub(flush), 0];
            Some(Descent {
                from: LevelId::Disk(level),
                source,
                target: below.first(),
                to: level + 1,
                is_last: false,
                reason: Reason::new("level {} has deletes from {} flushes ago", numbers),
            })
        })
    }

    /// Returns the first plan that takes a due table down and that no reservation forbids.
    fn take_due(&self, view: &TreeView) -> Option<MergePlan> {
        let is_free = |plan: &MergePlan| view.is_free_for(plan);
        self.due_descents(view).find_map(|descent| {
            if descent.from == LevelId::Disk(0) {
                let pieces = self.leveled.pick.ranked(&self.leveled.choice(view, &descent));
                return pieces
                    .map(|candidate| self.leveled.plan(view, &descent, &candidate.piece))
                    .find(is_free);
            }
            let mut due: Vec<_> = self.due(view, descent.to - 1, descent.source).collect();
            due.sort_by_key(|(flush, slice)| (*flush, Reverse(slice.size().tombstones)));
            let piece = |slice: &Slice| slice.first_piece(self.leveled.table(view));
            due.iter()
                .map(|(_, slice)| self.leveled.plan(view, &descent, &piece(slice)))
                .find(is_free)
        })
    }

    /// Returns `plan` as a merge if it would move tombstones to where nothing lies under them.
    fn dropping(&self, view: &TreeView, plan: MergePlan) -> MergePlan {
        let has_tombstones = |input: &Input| {
            let run = view.tree.run(input.run);
            run.is_some_and(|(_, run)| {
                run.overlapping(&input.range).iter().any(|slice| oldest_tombstone(slice).is_some())
            })
        };
        let is_merge = plan.mode == Mode::Move
            && plan.inputs.iter().any(has_tombstones)
            && view.tree.is_bottom_for(&plan).unwrap_or(false);
        MergePlan { mode: if is_merge { Mode::Merge } else { plan.mode }, ..plan }
    }

    /// Returns the bytes of tables that are due, in tables.
    fn waiting_tables(&self, view: &TreeView) -> f64 {
        let levels = view.tree.levels().iter().enumerate();
        let due = levels.flat_map(|(level, here)| {
            here.runs().iter().flat_map(move |run| self.due(view, level, run))
        });
        let bytes: u64 = due.map(|(_, slice)| slice.size().bytes).sum();
        bytes as f64 / self.leveled.table(view).max(view.memtable_bytes) as f64
    }
}

/// Returns the flush that brought the oldest tombstone of the table of `slice`, if it has any. If
/// that is not known, it is the first. Sizes within a table are estimates, so the whole table says
/// whether there is any.
fn oldest_tombstone(slice: &Slice) -> Option<u64> {
    let table = slice.table();
    (table.size.tombstones > 0).then_some(table.oldest_tombstone.max(1))
}

impl MergePolicy for Lethe {
    fn spec(&self) -> Spec {
        self.leveled.spec()
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let plan = self.take_due(view).or_else(|| self.leveled.choose_merge(view))?;
        Some(self.dropping(view, plan))
    }

    fn needs(&self) -> Needs {
        Needs { tombstone_ages: true, ..self.leveled.needs() }
    }

    /// A table that is due is as much work as a piece that waits.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let due = pressure_of_waiting_runs(self.waiting_tables(view));
        self.leveled.pressure(view, load).max(due.min(Shape::PRESSURE_OF_LEFTOVERS_MAX))
    }

    fn shape(&self) -> Shape {
        self.leveled.shape()
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        let plan = self.next_merge(view);
        if self.take_due(view).is_none() {
            return Explanation { plan, ..self.leveled.explain(view) };
        }
        let all = self.due_descents(view).flat_map(|descent| {
            let due = self.due(view, descent.to - 1, descent.source);
            let plans = due.map(|(flush, slice)| {
                let piece = slice.first_piece(self.leveled.table(view));
                let plan = self.dropping(view, self.leveled.plan(view, &descent, &piece));
                let bytes = plan
                    .inputs
                    .first()
                    .map_or(0, |input| bytes_taken(view.tree.runs_at(descent.from), input));
                let tombstones = slice.size().tombstones;
                (plan, format!("{bytes} bytes, {tombstones} deletes, the oldest of flush {flush}"))
            });
            plans.collect::<Vec<_>>()
        });
        let losers = all.filter(|(loser, _)| Some(loser) != plan.as_ref()).take(3).collect();
        Explanation { plan, runners_up: losers, ..Explanation::default() }
    }
}
