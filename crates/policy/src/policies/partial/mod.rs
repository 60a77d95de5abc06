//! The policies of Thonangi & Yang: levels of one run each, measured in blocks, and merges of a
//! whole level or of a window of its blocks.
//!
//! The paper's level 0 is memory here, and its level i is level i on storage. Level 0 on storage
//! stays empty, except for memtables that were flushed because memory was full. Level i holds
//! `K_i = K_0 * ratio^i` blocks, where `K_0` is the number of full blocks in memory. A full block
//! holds as many entries of the tree's mean size as fit. So the rest of a block, which no entry
//! fits into, does not count as waste.
//!
//! [`FixedTake`] has one row per policy for what differs between them. [`Mixed`] learns what to
//! take.

mod fixed;
mod mixed;
mod window;

pub use fixed::FixedTake;
pub use mixed::Mixed;

use crate::back_pressure::WAITING_MEMTABLES_MAX;
use crate::pressure::{pressure_of_load, pressure_of_memtables};
use crate::{Load, ParamInfo, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::text::{display_key, parse_key};
use lsmith_tree::{
    Input, KeyRange, LEVELS_MAX, LevelId, MemoChange, MergePlan, Mode, Place, Reason, Reuse, Run,
    TreeView, blocks,
};
use std::sync::Arc;
use window::{Blocks, Window};

/// The usual [`Partial::waste`], as in the paper.
const WASTE_USUAL: f64 = 0.2;

/// The parameters of all partial policies.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Partial {
    ratio: f64,
    rate: f64,
    reuse: bool,
    piece_bytes: u64,
    slices_max: u64,
    /// The part of the room in a level's blocks that may be empty before the level is rewritten:
    /// the paper's waste factor, section II-B.
    waste: f64,
    /// The part of its capacity beyond which the bottom level becomes the next one.
    bottom: f64,
}

const RATIO: ParamInfo = ParamInfo {
    name: "ratio",
    default: "10",
    meaning: "blocks of a level over those of the level above, more than 1",
};
const RATE: ParamInfo = ParamInfo {
    name: "rate",
    default: "0.07",
    meaning: "the part of a level's capacity that one partial merge takes",
};
const REUSE: ParamInfo = ParamInfo {
    name: "reuse",
    default: "true",
    meaning: "whether blocks that meet nothing are kept as they are; false is the paper's \"-P\"",
};

const PIECE: ParamInfo = ParamInfo {
    name: "piece",
    default: "0",
    meaning: "bytes of neighbouring blocks below which none is kept; 0 for a single block",
};
const SLICES_MAX: ParamInfo = ParamInfo {
    name: "slices_max",
    default: SLICES_MAX_TEXT,
    meaning: "slices of a run from which on merges into it keep no blocks",
};
const WASTE: ParamInfo = ParamInfo {
    name: "waste",
    default: "0.2",
    meaning: "the part of a level's blocks that may be empty before it is rewritten, at most 0.5",
};
const BOTTOM: ParamInfo = ParamInfo {
    name: "bottom",
    default: "1",
    meaning: "the part of its capacity beyond which the bottom level becomes the next one",
};
const SLICES_MAX_TEXT: &str = "65536";
const SLICES_MAX_USUAL: u64 = 65_536;

/// How much of an overfull level goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Take {
    /// The whole level.
    All,
    /// The window that follows the one that went down last.
    Next,
    /// The window that overlaps the fewest blocks below.
    Best,
}

/// A level that holds too much, and the level below that takes some of it.
struct Overflow<'a> {
    from: LevelId,
    /// The runs to take from: one run, or all memtables.
    source: Vec<&'a Arc<Run>>,
    /// The level that takes the blocks.
    to: usize,
    reason: Reason,
}

impl Overflow<'_> {
    /// Returns the source level as the paper numbers it: 0 for memory.
    fn level(&self) -> usize {
        self.to - 1
    }
}

impl Partial {
    fn read(params: &Params<'_>) -> Result<Partial, SpecError> {
        let ratio = params.real("ratio", 10.0, 1.0..=1000.0)?;
        if ratio <= 1.0 {
            return Err(SpecError::conflict("ratio = 1 is out of range: expected more than 1"));
        }
        let rate = params.real("rate", 0.07, 0.0..=1.0)?;
        if rate <= 0.0 {
            return Err(SpecError::conflict("rate = 0 is out of range: expected more than 0 to 1"));
        }
        let waste = params.real("waste", WASTE_USUAL, 0.0..=0.5)?;
        if waste <= 0.0 {
            let message = "waste = 0 is out of range: expected more than 0 to 0.5";
            return Err(SpecError::conflict(message));
        }
        let bottom = params.real("bottom", 1.0, 0.0..=1.0)?;
        if bottom <= 0.0 {
            let message = "bottom = 0 is out of range: expected more than 0 to 1";
            return Err(SpecError::conflict(message));
        }
        Ok(Partial {
            ratio,
            rate,
            reuse: params.flag("reuse", true)?,
            piece_bytes: params.bytes("piece", 0, 0..=1 << 40)?,
            slices_max: params.count("slices_max", SLICES_MAX_USUAL, 1..=1 << 20)?,
            waste,
            bottom,
        })
    }

    /// Returns the spec of the policy `info` with these parameters. Leaves out parameters with
    /// default values, except `ratio` and `rate`.
    fn write(&self, info: &PolicyInfo) -> Spec {
        let mut spec = Spec::bare(info.name).with("ratio", self.ratio);
        if info.params.contains(&RATE) {
            spec = spec.with("rate", self.rate);
        }
        if !self.reuse {
            spec = spec.with("reuse", false);
        }
        if self.piece_bytes > 0 {
            spec = spec.with("piece", format_bytes(self.piece_bytes));
        }
        if self.slices_max != SLICES_MAX_USUAL {
            spec = spec.with("slices_max", self.slices_max);
        }
        if self.waste != WASTE_USUAL {
            spec = spec.with("waste", self.waste);
        }
        if self.bottom != 1.0 {
            spec = spec.with("bottom", self.bottom);
        }
        spec
    }

    /// Returns `K_level`, the number of full blocks that a level holds. Memory is level 0.
    fn capacity_blocks(&self, view: &TreeView, level: usize) -> u64 {
        let memory = view.memtable_bytes as f64 / full_bytes(view) as f64;
        (memory * self.ratio.powi(level as i32)).floor().max(1.0) as u64
    }

    /// Returns how many of the `blocks` of a level go down at once: a part of its capacity, or all
    /// by which merges [are behind](memory_behind), if that is more. So a single merge catches up,
    /// where each of many small ones would wait for the device. In lockstep it never is more.
    fn window_blocks(&self, view: &TreeView, level: usize, blocks: &Blocks<'_>) -> usize {
        let part = self.rate * self.capacity_blocks(view, level) as f64;
        let behind = if level == 0 { memory_behind(view) } else { 0.0 };
        let memory = view.tree.memory().bytes().max(1) as f64 / view.memtable_bytes.max(1) as f64;
        let behind = behind / memory * blocks.len() as f64;
        // A product such as 0.07 * 100 can fall just short of a whole number.
        ((part.max(behind) + 1e-9).floor() as usize).max(1)
    }

    /// Returns the next plan. `take` says how much of a level goes down, given the paper's number
    /// of the level.
    fn choose_merge(&self, view: &TreeView, take: impl Fn(usize) -> Take) -> Option<MergePlan> {
        let repair = self.tidy(view).or_else(|| self.compact(view));
        let plan = repair.or_else(|| {
            let overflow = self.overflow(view)?;
            Some(match take(overflow.level()) {
                Take::All => self.merge_all(view, &overflow),
                Take::Next => self.merge_next(view, &overflow),
                Take::Best => self.merge_best(view, &overflow),
            })
        });
        plan.filter(|plan| view.is_free_for(plan))
    }

    /// Returns the merge that makes one run of a level that another policy left with several runs,
    /// or of level 0. The deepest such level comes first.
    fn tidy(&self, view: &TreeView) -> Option<MergePlan> {
        let levels = view.tree.levels();
        let crowded = |level: &usize| levels[*level].runs().len() > usize::from(*level > 0);
        let level = (0..levels.len()).rev().find(crowded)?;
        let runs = levels[level].runs();
        let numbers = [level as u64, runs.len() as u64, 0];
        let reason = Reason::new("level {} has {} runs left by another policy", numbers);
        let mut ids: Vec<_> = runs.iter().map(|run| run.id()).collect();
        let below = levels.get(1).and_then(|level| level.runs().first());
        let place = match (level, below) {
            (0, Some(below)) => {
                ids.push(below.id());
                Place::Into(below.id())
            }
            (0, None) => Place::NewRun(1),
            _ => Place::Oldest,
        };
        let reuse = Some(self.reuse(view, 0, 1.0, below.map(|run| &**run)));
        Some(MergePlan { reuse, ..MergePlan::merge(ids, place, reason) })
    }

    /// Returns the plan that rewrites a level whose blocks are too empty.
    fn compact(&self, view: &TreeView) -> Option<MergePlan> {
        let full_bytes = full_bytes(view);
        let wasteful = |run: &&Arc<Run>| {
            let room = run.cell_count() * full_bytes;
            let empty = room.saturating_sub(run.bytes());
            run.cell_count() >= 2 && empty as f64 > self.waste * room as f64
        };
        let run = view.tree.disk_runs().find(wasteful)?;
        let numbers = [run.cell_count(), run.bytes() / full_bytes, 0];
        let reason = Reason::new("{} blocks hold no more than {} would: rewritten", numbers);
        // A run may look wasteful although its entries allow no better packing. So each run is
        // rewritten once only.
        let plan = MergePlan::merge([run.id()], Place::Oldest, reason);
        let name = compacted_name();
        let stamp = format!("{} {}", run.bytes(), run.cell_count());
        if view.memo(name) == Some(&stamp) {
            return None;
        }
        Some(MergePlan { memo: vec![(name.into(), Some(stamp))], ..plan })
    }

    /// Returns the block rules of a merge that takes `rate` of a level into the run `target`.
    fn reuse(&self, view: &TreeView, level: usize, rate: f64, target: Option<&Run>) -> Reuse {
        let full_bytes = full_bytes(view);
        let capacity_bytes = self.capacity_blocks(view, level).saturating_mul(full_bytes);
        let slack = self.waste * rate * capacity_bytes as f64;
        let crowded = target.is_some_and(|run| run.slices().len() as u64 > self.slices_max);
        let keeps = self.reuse && !crowded;
        let piece_bytes = if keeps { self.piece_bytes.max(1) } else { u64::MAX };
        Reuse { piece_bytes, full_bytes, slack_bytes: Some(slack as u64) }
    }

    /// Returns a level that holds too much: a level on storage by blocks, deepest first, or memory
    /// by bytes. The bottom level may hold a part of its capacity only.
    fn overflow<'a>(&self, view: &'a TreeView) -> Option<Overflow<'a>> {
        let levels = view.tree.levels();
        let mut is_bottom = true;
        for (level, runs) in levels.iter().enumerate().skip(1).rev() {
            let Some(run) = runs.runs().last() else { continue };
            let blocks = run.cell_count();
            let part = if std::mem::take(&mut is_bottom) { self.bottom } else { 1.0 };
            let allowed = (self.capacity_blocks(view, level) as f64 * part).max(1.0) as u64;
            if blocks > allowed && level + 1 < LEVELS_MAX {
                let numbers = [level as u64, blocks, allowed];
                let reason = Reason::new("level {} has {} blocks of {}", numbers);
                let from = LevelId::Disk(level);
                return Some(Overflow { from, source: vec![run], to: level + 1, reason });
            }
        }
        let memory = view.tree.memory();
        if memory.runs().is_empty() || memory.bytes() < view.memtable_bytes {
            return None;
        }
        let numbers = [memory.bytes(), view.memtable_bytes, 0];
        let reason = Reason::new("memory holds {} bytes of {}", numbers);
        let source = memory.runs().iter().collect();
        Some(Overflow { from: LevelId::Memory, source, to: 1, reason })
    }

    /// Returns the plan that merges all of the source. If nothing lies below a level on storage,
    /// the plan moves it down instead.
    fn merge_all(&self, view: &TreeView, overflow: &Overflow<'_>) -> MergePlan {
        let target = view.tree.runs_at(LevelId::Disk(overflow.to)).first();
        let place = target.map_or(Place::NewRun(overflow.to), |run| Place::Into(run.id()));
        let runs = overflow.source.iter().copied().chain(target).map(|run| run.id());
        let mut plan = MergePlan::merge(runs, place, overflow.reason.clone());
        plan.reuse = Some(self.reuse(view, overflow.level(), 1.0, target.map(|run| &**run)));
        let deeper = view.tree.levels().iter().skip(overflow.to);
        let is_bottom = deeper.into_iter().all(|level| level.runs().is_empty());
        if is_bottom && overflow.from != LevelId::Memory {
            plan.mode = Mode::Move;
            plan.reuse = None;
        }
        plan
    }

    fn merge_next(&self, view: &TreeView, overflow: &Overflow<'_>) -> MergePlan {
        let blocks = Blocks::of(&overflow.source, view.block_bytes);
        let name = format!("next_{}", overflow.from);
        let cursor = view.memo(&name).and_then(|text| parse_key(text).ok());
        let next = cursor.map_or(0, |key| blocks.first_from(&key));
        let from = if next < blocks.len() { next } else { 0 };
        let window = blocks.window(from, self.window_blocks(view, overflow.level(), &blocks));
        let last = window.range.end.clone().unwrap_or_default();
        let memo = (name.into(), Some(display_key(&last).to_string()));
        self.merge_window(view, overflow, &window.range, Some(memo))
    }

    fn merge_best(&self, view: &TreeView, overflow: &Overflow<'_>) -> MergePlan {
        let blocks = Blocks::of(&overflow.source, view.block_bytes);
        let target = view.tree.runs_at(LevelId::Disk(overflow.to)).first();
        let count = self.window_blocks(view, overflow.level(), &blocks);
        let Window { range, .. } = blocks.least_overlap(count, target.map(|run| &**run));
        self.merge_window(view, overflow, &range, None)
    }

    /// Returns the plan that merges the part of the source within `range` with all blocks that it
    /// overlaps below.
    fn merge_window(
        &self,
        view: &TreeView,
        overflow: &Overflow<'_>,
        range: &KeyRange,
        memo: Option<MemoChange>,
    ) -> MergePlan {
        let deeper = view.tree.levels().iter().skip(overflow.to);
        if overflow.from != LevelId::Memory && deeper.into_iter().all(|l| l.runs().is_empty()) {
            return self.merge_all(view, overflow);
        }
        let target = view.tree.runs_at(LevelId::Disk(overflow.to)).first();
        let holders = overflow.source.iter().filter(|run| !run.overlapping(range).is_empty());
        let mut inputs: Vec<Input> =
            holders.map(|run| Input { run: run.id(), range: range.clone() }).collect();
        if let Some(target) = target
            && let Some(covered) = window::cells_over(target, range)
        {
            inputs.push(Input { run: target.id(), range: covered });
        }
        let place = target.map_or(Place::NewRun(overflow.to), |run| Place::Into(run.id()));
        let mut plan = MergePlan::merge([], place, overflow.reason.clone());
        plan.inputs = inputs;
        let rate = self.rate;
        plan.reuse = Some(self.reuse(view, overflow.level(), rate, target.map(|run| &**run)));
        plan.memo.extend(memo);
        plan
    }

    /// Returns the bytes at which the active memtable is sealed: the free rest of memory, but at
    /// least as much as one merge takes from memory. If a memtable waits to be folded, as during a
    /// merge, a full memtable: writers stop at a number of waiting memtables, and small ones would
    /// fill up before writers are slowed.
    fn seal_bytes(&self, view: &TreeView, take: Take) -> u64 {
        let waits = view.tree.memory().runs().len() > 1;
        let rate = if take == Take::All || waits { 1.0 } else { self.rate };
        let left = view.memtable_bytes.saturating_sub(view.tree.memory().bytes());
        left.max((rate * view.memtable_bytes as f64) as u64).max(1)
    }

    /// Returns the back-pressure: how far merges [are behind](memory_behind), or half the pressure
    /// of waiting memtables, whichever is more. Writers stop one memtable before memory would be
    /// flushed.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let stop_bytes = view.memtable_bytes.saturating_mul(WAITING_MEMTABLES_MAX as u64 - 1);
        if view.tree.memory().bytes() >= stop_bytes.max(1) {
            return 1.0;
        }
        pressure_of_memtables(memory_behind(view)).max(pressure_of_load(view, load) * 0.5)
    }

    fn shape(&self) -> Shape {
        Shape::Leveled { ratio: self.ratio, level0_runs: 0 }
    }
}

/// Returns by how many memtables merges are behind: what memory holds beyond one and a quarter.
fn memory_behind(view: &TreeView) -> f64 {
    let memory = view.tree.memory().bytes() as f64 / view.memtable_bytes.max(1) as f64;
    (memory - 1.25).max(0.0)
}

/// Returns the bytes of a full block of entries of the mean size of the tree.
fn full_bytes(view: &TreeView) -> u64 {
    let size = view.tree.runs().map(|(_, run)| run.size()).sum();
    blocks::full_bytes(view.block_bytes, size).max(1)
}

fn compacted_name() -> &'static str {
    "compacted"
}
