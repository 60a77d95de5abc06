//! Leveled: one run per level, tables move down one by one.

mod lethe;
mod originals;
mod pick;
mod vertiorizon;

pub use lethe::Lethe;
pub use pick::Pick;
pub use vertiorizon::Vertiorizon;

use crate::pressure::pressure_of_waiting_runs;
use crate::{Explanation, Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::text::{display_key, parse_key};
use lsmith_tree::{
    Cuts, Input, KeyRange, LEVELS_MAX, Level, LevelId, MergePlan, Mode, Place, Reason,
    ReservationState, Run, Slices, TreeView,
};
use pick::{Candidate, Choice};
use std::sync::Arc;

/// Level 0 keeps up to `l0` flushed runs. Each level below is one run, cut into tables, and holds
/// up to `ratio^i` times the bytes of a table. When a level holds more, one piece of about `table`
/// bytes at most is merged with what it overlaps in the next level. If it overlaps nothing, it is
/// moved down.
///
/// If another policy left a level with several runs, they are first merged into one, piece by
/// piece.
///
/// With `sizes=dynamic` a level above the last holds up to a `ratio`-th of the level below it,
/// counted from the largest level as it is, but never less than the geometric size of the level
/// above. So the levels above the last hold `1 / (ratio - 1)` of it, also just after a level was
/// added. When the last level exceeds its geometric size, all of it moves down. RocksDB keeps the
/// last level at its number instead and begins higher up. When level 0 is far behind, RocksDB also
/// stretches the ratios; here writers wait.
///
/// Source: Mao et al., section 2 ("Leveled"); LevelDB (`round_robin`), RocksDB (`best_ratio` by
/// default, `oldest`, `oldest_smallest`, `largest`; dynamic sizes), HyperLevelDB (`best_ratio`).
/// The list of picks is from Lim et al., FAST 2016.
#[derive(Clone, Debug, PartialEq)]
pub struct Leveled {
    spec: Spec,
    ratio: f64,
    level0: Level0,
    pick: Pick,
    /// Bytes of a table; `None` means the bytes of a memtable.
    table_bytes: Option<u64>,
    /// What each level may hold, level 0 first. Stored because every decision uses it.
    capacities: Capacities,
    /// True if the largest level sets the sizes of the levels above it.
    is_dynamic: bool,
}

/// What goes down from level 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level0 {
    /// The oldest run, piece by piece, when there are more than `runs`.
    Oldest { runs: u64 },
    /// All runs in one merge, when there are `runs`.
    All { runs: u64 },
}

/// The greatest sizes of levels, level 0 first.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Capacities {
    Tables([f64; LEVELS_MAX]),
    Bytes([f64; LEVELS_MAX]),
}

impl Level0 {
    /// Returns the most runs at rest.
    fn runs_max(self) -> u64 {
        match self {
            Level0::Oldest { runs } => runs,
            Level0::All { runs } => runs - 1,
        }
    }

    /// Returns the most runs that hold no writer back. A merge of all runs is a large step, during
    /// which a quarter as many may arrive. LevelDB lets as many arrive again, and lookups then
    /// consider twice the runs that they consider in lockstep.
    fn runs_free(self) -> u64 {
        match self {
            Level0::Oldest { runs } => runs,
            Level0::All { runs } => runs + runs.div_ceil(4),
        }
    }
}

/// A run that must give a piece, and the run below that takes it.
struct Descent<'a> {
    from: LevelId,
    source: &'a Arc<Run>,
    /// The run that takes the pieces; `None` if the next level is empty.
    target: Option<&'a Arc<Run>>,
    /// The level of the target.
    to: usize,
    /// True if no level below the source has runs.
    is_last: bool,
    reason: Reason,
}

impl Leveled {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "leveled",
        source: "Mao et al., VLDB Journal 2021, section 2; LevelDB, RocksDB, HyperLevelDB by pick",
        summary: "one run per level; when a level is full a piece of it merges into the next",
        params: &[
            ParamInfo {
                name: "ratio",
                default: "10",
                meaning: "bytes of a level over those of the level above, more than 1",
            },
            ParamInfo { name: "l0", default: "2", meaning: "runs allowed in level 0, 1 to 1000" },
            ParamInfo {
                name: "pick",
                default: "min_overlap",
                meaning: "the piece that goes down: min_overlap, round_robin, narrowest, \
                          best_ratio, oldest, oldest_smallest, largest, tombstones, whole_level, \
                          in_turn or random",
            },
            ParamInfo {
                name: "sizes",
                default: "geometric",
                meaning: "bytes of levels: geometric, from the table's by ratio; or dynamic, from \
                          those of the largest level upwards",
            },
            ParamInfo {
                name: "table",
                default: "auto",
                meaning: "bytes of a table, and of level 1 over ratio; auto: the memtable's",
            },
        ],
        build: |params| Ok(Arc::new(Leveled::read(params)?)),
    };

    /// Returns the policy whose levels grow by `ratio`, more than 1 and up to 1000, and whose
    /// pieces
    /// `pick` chooses. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn new(ratio: f64, pick: Pick) -> Result<Leveled, SpecError> {
        Leveled::INFO.read(
            &Spec::bare(Leveled::INFO.name).with("ratio", ratio).with("pick", pick.name()),
            Leveled::read,
        )
    }

    fn read(params: &Params<'_>) -> Result<Leveled, SpecError> {
        let auto = params.text("table").is_none_or(|text| text == "auto");
        let ratio = params.real("ratio", 10.0, 1.0..=1000.0)?;
        if ratio <= 1.0 {
            return Err(SpecError::conflict("ratio = 1 is out of range: expected more than 1"));
        }
        let runs = params.count("l0", 2, 1..=1000)?;
        let pick = Pick::read(params)?;
        let table_bytes = if auto { None } else { params.bytes_if_given("table", 1..=1 << 50)? };
        let is_dynamic =
            params.choice("sizes", "geometric", &["geometric", "dynamic"])? == "dynamic";
        let spec =
            Spec::bare("leveled").with("ratio", ratio).with("l0", runs).with("pick", pick.name());
        let spec = if is_dynamic { spec.with("sizes", "dynamic") } else { spec };
        let tables = std::array::from_fn(|level| ratio.powi(level as i32));
        Ok(Leveled {
            spec: match table_bytes {
                Some(bytes) => spec.with("table", format_bytes(bytes)),
                None => spec,
            },
            ratio,
            level0: Level0::Oldest { runs },
            pick,
            table_bytes,
            capacities: Capacities::Tables(tables),
            is_dynamic,
        })
    }

    fn table(&self, view: &TreeView) -> u64 {
        self.table_bytes.unwrap_or(view.memtable_bytes).max(1)
    }

    /// Returns the bytes that `level` may hold, for level 1 and below.
    fn capacity(&self, view: &TreeView, level: usize) -> f64 {
        let geometric = match &self.capacities {
            Capacities::Tables(tables) => self.table(view) as f64 * tables[level],
            Capacities::Bytes(bytes) => bytes[level],
        };
        if !self.is_dynamic {
            return geometric;
        }
        let levels = view.tree.levels();
        let last = levels.iter().rposition(|level| !level.runs().is_empty()).unwrap_or(0);
        let largest = levels.iter().skip(1).map(|level| level.bytes()).max().unwrap_or(0);
        let above = last.saturating_sub(level);
        match above {
            0 => geometric,
            _ => (largest as f64 / self.ratio.powi(above as i32))
                .clamp(geometric / self.ratio, geometric),
        }
    }

    /// Returns what picks the pieces of `descent`. A last level of dynamic size moves down whole.
    fn pick(&self, descent: &Descent<'_>) -> Pick {
        let is_whole = self.is_dynamic && descent.is_last && descent.from != LevelId::Disk(0);
        if is_whole { Pick::WholeLevel } else { self.pick }
    }

    /// Returns the bytes that the levels below level 0 hold beyond their capacities, in pieces. A
    /// level may hold one piece too much: it has just come from above and goes down next.
    fn waiting_pieces(&self, view: &TreeView) -> f64 {
        let levels = view.tree.levels().iter().enumerate().take(LEVELS_MAX - 1).skip(1);
        let waiting = levels.map(|(level, here)| {
            let piece_bytes = match self.pick {
                Pick::WholeLevel => self.capacity(view, level - 1),
                _ => self.table(view) as f64,
            };
            let excess = here.bytes() as f64 - self.capacity(view, level);
            (excess / piece_bytes.max(view.memtable_bytes as f64) - 1.0).max(0.0)
        });
        waiting.sum()
    }

    /// Returns the bytes of the level without the bytes that a plan under way takes down.
    fn bytes_staying(&self, view: &TreeView, level: usize) -> u64 {
        let here = &view.tree.levels()[level];
        if view.reservations.is_empty() {
            return here.bytes();
        }
        let under_way = view.reservations.iter().filter(|r| r.state == ReservationState::UnderWay);
        let leaving = under_way.flat_map(|reservation| {
            let inputs = reservation.plan.inputs.iter();
            inputs.filter(move |input| reservation.plan.place != Place::Into(input.run))
        });
        let leaving_bytes: u64 = leaving.map(|input| bytes_taken(here.runs(), input)).sum();
        here.bytes().saturating_sub(leaving_bytes)
    }

    /// Returns the levels that must give pieces now, deepest first, so that there is room when the
    /// levels above need it.
    fn descents<'a>(&'a self, view: &'a TreeView) -> impl Iterator<Item = Descent<'a>> {
        // Most levels are settled, so this test comes first.
        let is_settled = move |level: usize, here: &Level| {
            let allowed = self.capacity(view, level);
            level > 0 && here.runs().len() <= 1 && here.bytes() as f64 <= allowed
        };
        let levels = view.tree.levels().iter().enumerate().rev();
        let unsettled = levels.filter(move |(level, here)| !is_settled(*level, here));
        unsettled.filter_map(move |(level, here)| {
            let runs = here.runs();
            let (last, newer) = runs.split_last()?;
            if level > 0
                && let Some(source) = newer.last()
            {
                let reason =
                    Reason::new("level {} has {} runs of 1", [level as u64, runs.len() as u64, 0]);
                let from = LevelId::Disk(level);
                let target = Some(last);
                return Some(Descent { from, source, target, to: level, is_last: false, reason });
            }
            let count = runs.len() as u64;
            let bytes = self.bytes_staying(view, level);
            let reason = match level {
                0 if count > self.level0.runs_max() => {
                    Reason::new("level {} has {} runs of {}", [0, count, self.level0.runs_max()])
                }
                0 => return None,
                _ if bytes as f64 <= self.capacity(view, level) || level + 1 >= LEVELS_MAX => {
                    return None;
                }
                _ => {
                    let allowed = self.capacity(view, level) as u64;
                    Reason::new("level {} holds {} bytes of {}", [level as u64, bytes, allowed])
                }
            };
            // The oldest run of the next level is its only one, or the others are being merged into
            // it.
            let below = view.tree.runs_at(LevelId::Disk(level + 1));
            if below.len() > 1 {
                return None;
            }
            let from = LevelId::Disk(level);
            let (target, to) = (below.first(), level + 1);
            let is_last = view.tree.levels().iter().skip(to).all(|level| level.runs().is_empty());
            Some(Descent { from, source: last, target, to, is_last, reason })
        })
    }

    /// Returns the choice among the pieces of the source.
    fn choice<'a>(&self, view: &'a TreeView, descent: &Descent<'a>) -> Choice<'a> {
        let note = match self.pick {
            Pick::RoundRobin | Pick::InTurn => view.memo(&cursor_name(descent.from)),
            _ => None,
        };
        let cursor = note.and_then(|text| parse_key(text).ok());
        Choice {
            source: descent.source,
            target: descent.target,
            tree: &view.tree,
            cursor,
            piece_bytes: self.table(view),
        }
    }

    /// Returns true if all of level 0 goes down.
    fn takes_level0(&self, descent: &Descent<'_>) -> bool {
        matches!(self.level0, Level0::All { .. }) && descent.from == LevelId::Disk(0)
    }

    /// Returns the plan that takes all of level 0 down.
    fn level0_down(&self, view: &TreeView, descent: &Descent<'_>) -> MergePlan {
        let hulls = view.tree.runs_at(descent.from).iter().map(|run| run.hull());
        let hull = hulls.reduce(|all, hull| all.hull(&hull)).unwrap_or(KeyRange::ALL);
        self.plan(view, descent, &hull)
    }

    /// Returns the plan that takes a piece of the source down.
    fn plan(&self, view: &TreeView, descent: &Descent<'_>, piece: &KeyRange) -> MergePlan {
        let mut inputs = Vec::with_capacity(2);
        let sources =
            if self.takes_level0(descent) { view.tree.runs_at(descent.from) } else { &[] };
        let source = |run: &Arc<Run>| Input { run: run.id(), range: piece.clone() };
        match sources {
            [] => inputs.push(source(descent.source)),
            all => inputs.extend(all.iter().map(source)),
        }
        let overlap = descent.target.map_or(Slices::default(), |run| run.overlapping(piece));
        let place = match descent.target {
            Some(target) => Place::Into(target.id()),
            None => Place::NewRun(descent.to),
        };
        if let (Some(target), Some(first), Some(last)) =
            (descent.target, overlap.first(), overlap.last())
        {
            let whole =
                KeyRange { start: first.range().start.clone(), end: last.range().end.clone() };
            inputs.push(Input { run: target.id(), range: whole.hull(piece) });
        }
        let mut memo = Vec::new();
        if matches!(self.pick, Pick::RoundRobin | Pick::InTurn) && sources.is_empty() {
            let end = piece.end.clone().unwrap_or_default();
            memo.push((cursor_name(descent.from).into(), Some(display_key(&end).to_string())));
        }
        MergePlan {
            mode: if inputs.len() == 1 { Mode::Move } else { Mode::Merge },
            cut_bytes: Some(self.table(view)),
            cuts: Cuts::default(),
            reuse: None,
            reason: descent.reason.clone(),
            inputs,
            place,
            memo,
        }
    }
}

fn cursor_name(from: LevelId) -> String {
    format!("next_{from}")
}

fn bytes_taken(runs: &[Arc<Run>], input: &Input) -> u64 {
    let run = runs.iter().find(|run| run.id() == input.run);
    run.map_or(0, |run| run.size_within(&input.range).bytes)
}

impl MergePolicy for Leveled {
    fn spec(&self) -> Spec {
        self.spec.clone()
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.descents(view).find_map(|descent| {
            if self.takes_level0(&descent) {
                return Some(self.level0_down(view, &descent)).filter(|p| view.is_free_for(p));
            }
            let choice = self.choice(view, &descent);
            let plan = |candidate: Candidate| self.plan(view, &descent, &candidate.piece);
            if view.reservations.is_empty() {
                self.pick(&descent).best(&choice).map(plan)
            } else {
                self.pick(&descent).ranked(&choice).map(plan).find(|plan| view.is_free_for(plan))
            }
        })
    }

    fn needs(&self) -> Needs {
        let by_age = matches!(self.pick, Pick::Oldest | Pick::OldestSmallest);
        Needs { sequence_numbers: by_age, ..Needs::default() }
    }

    /// A piece that waits below level 0 is as much work as a run that waits there. But it does not
    /// make lookups dearer, so it never stops writers.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let below = pressure_of_waiting_runs(self.waiting_pieces(view));
        let level0 = Shape::Leveled { ratio: self.ratio, level0_runs: self.level0.runs_free() };
        level0.pressure(view, load).max(below.min(Shape::PRESSURE_OF_LEFTOVERS_MAX))
    }

    fn shape(&self) -> Shape {
        Shape::Leveled { ratio: self.ratio, level0_runs: self.level0.runs_max() }
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        let plan = self.next_merge(view);
        let in_pieces = self.descents(view).filter(|descent| !self.takes_level0(descent));
        let losers = in_pieces.flat_map(|descent| {
            let pick = self.pick(&descent);
            let plans = pick.ranked(&self.choice(view, &descent)).map(|candidate| {
                let bytes = descent.source.size_within(&candidate.piece).bytes;
                let overlap = candidate.overlap_bytes;
                let why = format!(
                    "{} over {}: {} of overlap; ranked behind by {}",
                    format_bytes(bytes),
                    candidate.piece,
                    format_bytes(overlap),
                    pick.name()
                );
                (self.plan(view, &descent, &candidate.piece), why)
            });
            plans.collect::<Vec<_>>()
        });
        let runners_up = losers.filter(|(loser, _)| Some(loser) != plan.as_ref()).take(3).collect();
        Explanation { plan, runners_up, ..Explanation::default() }
    }
}
