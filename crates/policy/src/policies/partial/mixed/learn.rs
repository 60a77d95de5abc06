//! How `mixed` learns its thresholds, and when it learns them again.
//!
//! Top down, one parameter after the other, because the best setting of a level does not depend on
//! the levels below it (Thonangi & Yang, Theorem 4):
//!
//! 1. *Watch*, with the thresholds known so far (at first the best windows everywhere), until the
//!    bottom level keeps its size: it has changed by less than a twentieth while as much as the
//!    level above it holds went down.
//! 2. *Tau i*, for i = 2 up to the last level but one above the bottom: full merges from level i,
//!    the setting to be tried above it. A cycle lasts from one full merge of level i to the next;
//!    its cost is the blocks written into levels 1 to i over the bytes that came from memory. Costs
//!    are a parabola over the setting (Theorem 5), so the search can stop when they rise.
//! 3. *Beta*: the cost of all levels over a cycle with full merges into the bottom level, then the
//!    cost of the same volume with the best windows. Between the two as much goes down unmeasured,
//!    from when the level above has filled again. Such a level is equally dense everywhere, and a
//!    choice of windows gains only from sparse and dense places, which windows leave behind.
//!    Measured at once, windows look dearer than they are in the long run.
//! 4. *Done*. Cycles go on being measured: each ends with a full merge into the bottom level or,
//!    where merges into it are partial, when as much as the level above it holds has come from
//!    memory.
//!
//! It begins again with step 1 when what it knows was learned of another tree or workload, which
//! is looked at with each merge into the bottom level:
//!
//! * The bottom level is another one: a level more has a threshold of its own.
//! * The bottom level has more than twice the blocks it had, or less than half. Its size decides
//!   beta: a full merge into it costs as much as it holds. Near the size at which beta turns, both
//!   settings cost about the same, so that a smaller change could gain little; and a tree that
//!   grows learns a few times per level (log2 of the ratio), not all the time.
//! * Two cycles in a row cost over a quarter more than the cost learned, or two over a quarter
//!   less: so does another workload. One cycle alone can be chance.
//!
//! All is in the notes and in the counters of the tree, so that learning goes on after reopening
//! as if nothing had happened. The notes: `learn` is the step, `learn_at` the counters when its
//! measurement began, `watched` the bottom level when watching began; `tau_2`, `tau_3`, ... and
//! `beta` what was found; `learned_at` the height, the blocks of the bottom level and the cost of
//! a cycle then; `last_cycle` the cost of the last cycle since; `relearn` why it began again.

mod explain;
mod search;
mod step;
#[cfg(test)]
mod tests;

pub(super) use search::ThresholdSearch;

use explain::per_megabyte;
use lsmith_tree::{LevelId, MemoChange, MemoName, MergePlan, Place, TreeView};
use search::{GRID, Trial};
use std::cmp::Ordering;
use step::Step;

/// The thresholds that the spec gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds<'a> {
    pub(super) tau: Option<&'a [u64]>,
    pub(super) beta: Option<bool>,
}

/// The state of learning, as the tree and its notes say.
#[derive(Debug)]
pub(super) struct Lesson<'a> {
    view: &'a TreeView,
    given: Thresholds<'a>,
    search: ThresholdSearch,
    step: Step,
    /// The bottom level; 0 for a tree without levels.
    bottom: usize,
}

/// Counters since the tree was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meter {
    blocks: u64,
    bytes: u64,
}

/// The tree for which thresholds were learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Learned {
    /// The bottom level.
    height: u64,
    /// The blocks of the bottom level.
    blocks: u64,
    /// Blocks per 10^9 bytes from memory in a cycle, if one was measured.
    cost: Option<u64>,
}

impl<'a> Lesson<'a> {
    pub(super) fn of(
        view: &'a TreeView,
        given: Thresholds<'a>,
        search: ThresholdSearch,
    ) -> Lesson<'a> {
        let mut levels = view.tree.levels().iter();
        let bottom = levels.rposition(|level| !level.runs().is_empty()).unwrap_or(0);
        let step = view.memo("learn").and_then(Step::read).unwrap_or(Step::Watch);
        Lesson { view, given, search, step, bottom }
    }

    /// Returns true if the whole of `level` goes down, rather than its best window.
    pub(super) fn is_full(&self, level: usize, capacity: impl Fn(usize) -> u64) -> bool {
        let into = level + 1;
        if level == 0 || self.bottom < 2 {
            return false;
        }
        if into >= self.bottom {
            return self.beta();
        }
        match &self.step {
            // Below the level whose threshold is being tried: full merges out of that level, best
            // windows below it.
            Step::Tau { level: tried, .. } if level == *tried => return true,
            Step::Tau { level: tried, .. } if level > *tried => return false,
            _ => {}
        }
        let blocks = self.blocks(into) as f64;
        blocks < self.tau(into) as f64 / GRID as f64 * capacity(into) as f64
    }

    /// Returns the threshold of `level`, in tenths.
    fn tau(&self, level: usize) -> u64 {
        if let Some(given) = self.given.tau {
            return given.get(level - 2).copied().unwrap_or(0);
        }
        match &self.step {
            Step::Tau { level: tried, trial } if *tried == level => trial.setting,
            _ => self.note(&format!("tau_{level}")).unwrap_or(0),
        }
    }

    fn beta(&self) -> bool {
        if let Some(given) = self.given.beta {
            return given;
        }
        match self.step {
            // Full merges go out of the level whose threshold is being tried, and here that level
            // is above the bottom.
            Step::Tau { level, .. } => self.bottom.checked_sub(1) == Some(level),
            Step::Full => true,
            Step::Settle { .. } | Step::Part { .. } => false,
            Step::Watch | Step::Done => self.view.memo("beta") == Some("true"),
        }
    }

    /// Returns the changes of the notes that go with `plan`.
    pub(super) fn learn_from(
        &self,
        plan: &MergePlan,
        capacity: impl Fn(usize) -> u64,
    ) -> Vec<MemoChange> {
        let Some((from, is_full)) = self.source(plan) else { return Vec::new() };
        if !self.has_unknowns() {
            return Vec::new();
        }
        let above_bottom = self.bottom - 1;
        let into_bottom = from == above_bottom;
        if into_bottom && let Some(why) = self.change() {
            return self.begin_again(why);
        }
        match &self.step {
            Step::Watch if into_bottom => self.watch(capacity(above_bottom)),
            Step::Tau { level, trial } if from == *level && is_full => {
                self.end_of_cycle(*level, trial)
            }
            Step::Full if into_bottom => self.end_of_full_cycle(),
            Step::Settle { cost, volume } if into_bottom => self.settle(*cost, *volume),
            Step::Part { cost, volume } if into_bottom => self.part(*cost, *volume),
            Step::Done if into_bottom => self.go_on(is_full, capacity(above_bottom)),
            _ => Vec::new(),
        }
    }

    /// Returns the level that `plan` merges into the next, and whether it takes all of it.
    fn source(&self, plan: &MergePlan) -> Option<(usize, bool)> {
        let input = plan.inputs.first()?;
        let (level, run) = self.view.tree.run(input.run)?;
        match level {
            LevelId::Disk(level) if plan.place != Place::Oldest => {
                Some((level, input.range.covers(&run.hull())))
            }
            _ => None,
        }
    }

    /// Returns true if there is a threshold to learn: a level that exists, and no given threshold.
    fn has_unknowns(&self) -> bool {
        let tau = self.given.tau.is_none() && self.bottom > 2;
        self.bottom >= 2 && (tau || self.given.beta.is_none())
    }

    /// Returns how the tree differs from the one that the thresholds were learned for, if it
    /// differs too much.
    fn change(&self) -> Option<String> {
        let learned = self.learned().filter(|_| self.step != Step::Watch)?;
        let height = learned.height;
        let before = learned.blocks;
        if height != self.bottom as u64 {
            return Some(format!("level {} is the bottom, it was {height}", self.bottom));
        }
        let blocks = self.blocks(self.bottom);
        let changed = blocks > before.saturating_mul(2) || blocks.saturating_mul(2) < before;
        changed.then(|| format!("the bottom level has {blocks} blocks, it had {before}"))
    }

    fn begin_again(&self, why: String) -> Vec<MemoChange> {
        let mut notes = self.enter(Step::Watch, None);
        let why = note("relearn", why);
        notes.extend([watched(self.bottom_now()), why, ("last_cycle".into(), None)]);
        notes
    }

    /// Returns the bottom level, the bytes that have come down into it so far, and its blocks. The
    /// bytes that came down are the bytes that merges read, minus the bytes that were there before.
    fn bottom_now(&self) -> [u64; 3] {
        let level = &self.view.tree.levels()[self.bottom];
        let counters = level.counters();
        let here: u64 = level.runs().iter().map(|run| run.bytes()).sum();
        let out = counters.bytes_written + counters.bytes_reused + counters.bytes_moved;
        let moved = (counters.bytes_in + counters.bytes_from_memory + here).saturating_sub(out);
        [self.bottom as u64, moved, self.blocks(self.bottom)]
    }

    fn watch(&self, above_blocks: u64) -> Vec<MemoChange> {
        let now = self.bottom_now();
        let mut notes = vec![watched(now)];
        let Some([height, since, before]) = self.view.memo("watched").and_then(numbers) else {
            return notes;
        };
        let [bottom, moved, blocks] = now;
        if height != bottom {
            return notes;
        }
        if moved.saturating_sub(since) < above_blocks.saturating_mul(self.view.block_bytes) {
            return Vec::new();
        }
        if blocks.abs_diff(before).saturating_mul(20) < before {
            notes.push(self.learned_now(None));
            notes.extend(self.learn_next(2));
        }
        notes
    }

    /// Starts learning the threshold of `level`, or `beta` if no threshold is left to learn. Does
    /// nothing if that is given too.
    fn learn_next(&self, level: usize) -> Vec<MemoChange> {
        if level < self.bottom && self.given.tau.is_none() {
            return self.enter(Step::Tau { level, trial: self.search.first_trial() }, None);
        }
        if self.given.beta.is_none() {
            return self.enter(Step::Full, None);
        }
        self.finish(None)
    }

    /// Returns the notes that end learning. `cost` is the cost of a cycle with the thresholds
    /// learned, if it was measured.
    fn finish(&self, cost: Option<u64>) -> Vec<MemoChange> {
        let mut notes = self.enter(Step::Done, None);
        notes.push(self.learned_now(cost));
        notes
    }

    fn enter(&self, step: Step, meter: Option<Meter>) -> Vec<MemoChange> {
        vec![note("learn", step.to_string()), ("learn_at".into(), meter.map(Meter::text))]
    }

    fn learned_now(&self, cost: Option<u64>) -> MemoChange {
        let cost = cost.map_or(String::new(), |cost| format!(" {cost}"));
        note("learned_at", format!("{} {}{cost}", self.bottom, self.blocks(self.bottom)))
    }

    fn learned(&self) -> Option<Learned> {
        let text = self.view.memo("learned_at")?;
        let (height, blocks, cost) = match numbers(text) {
            Some([height, blocks, cost]) => (height, blocks, Some(cost)),
            None => numbers(text).map(|[height, blocks]| (height, blocks, None))?,
        };
        Some(Learned { height, blocks, cost })
    }

    /// Returns the notes for a full merge out of `level`, which ends one cycle and starts the next.
    fn end_of_cycle(&self, level: usize, trial: &Trial) -> Vec<MemoChange> {
        let now = self.meter(level);
        let mut trial = trial.clone();
        let Some(cost) = self.cost_since(now) else {
            return self.enter(Step::Tau { level, trial }, Some(now));
        };
        trial.known.push((trial.setting, cost));
        if let Some(setting) = self.search.next(&trial.known) {
            trial.setting = setting;
            return self.enter(Step::Tau { level, trial }, Some(now));
        }
        let mut notes = vec![note(format!("tau_{level}"), trial.best().to_string())];
        notes.extend(self.learn_next(level + 1));
        notes
    }

    fn end_of_full_cycle(&self) -> Vec<MemoChange> {
        let now = self.meter(self.bottom);
        let (Some(cost), Some(start)) = (self.cost_since(now), self.start()) else {
            return self.enter(Step::Full, Some(now));
        };
        // The full merge that ended the cycle has emptied the level above the bottom. Windows start
        // when that level overflows again.
        self.enter(Step::Settle { cost, volume: now.bytes - start.bytes }, None)
    }

    /// Lets windows sweep the level above the bottom before they are measured.
    fn settle(&self, cost: u64, volume: u64) -> Vec<MemoChange> {
        let now = self.meter(self.bottom);
        match self.start() {
            None => self.enter(Step::Settle { cost, volume }, Some(now)),
            Some(start) if now.bytes.saturating_sub(start.bytes) < volume => Vec::new(),
            Some(_) => self.enter(Step::Part { cost, volume }, Some(now)),
        }
    }

    fn part(&self, full_cost: u64, volume: u64) -> Vec<MemoChange> {
        let now = self.meter(self.bottom);
        let Some(start) = self.start() else {
            return self.enter(Step::Part { cost: full_cost, volume }, Some(now));
        };
        let Some(cost) = self.cost_since(now).filter(|_| now.bytes - start.bytes >= volume) else {
            return Vec::new();
        };
        // If the costs are equal, merges are partial.
        let mut notes = vec![note("beta", (full_cost < cost).to_string())];
        notes.extend(self.finish(Some(full_cost.min(cost))));
        notes
    }

    /// Measures the cycles after the thresholds were learned.
    fn go_on(&self, is_full: bool, above_blocks: u64) -> Vec<MemoChange> {
        let now = self.meter(self.bottom);
        let (Some(cost), Some(start)) = (self.cost_since(now), self.start()) else {
            return vec![note("learn_at", now.text())];
        };
        let due_bytes = above_blocks.saturating_mul(self.view.block_bytes);
        if !is_full && now.bytes - start.bytes < due_bytes {
            return Vec::new();
        }
        let at = note("learn_at", now.text());
        // If `beta` was given, the first cycle sets the expected cost.
        let Some(known) = self.learned().and_then(|learned| learned.cost) else {
            return vec![at, self.learned_now(Some(cost))];
        };
        let side = strays(cost, known);
        let last = self.note("last_cycle").map(|last| strays(last, known));
        if side != Ordering::Equal && last == Some(side) {
            let [cost, known] = [cost, known].map(per_megabyte);
            return self.begin_again(format!("two cycles cost {cost} blocks/MB, it was {known}"));
        }
        vec![at, note("last_cycle", cost.to_string())]
    }

    /// Returns the blocks written into levels 1 to `level`, and the bytes that came to storage from
    /// memory.
    fn meter(&self, level: usize) -> Meter {
        let levels = self.view.tree.levels();
        let end = levels.iter().take(level + 1).skip(1);
        let blocks = end.map(|level| level.counters().blocks_written).sum();
        // Memtables that were flushed because memory was full are in level 0.
        let bytes = levels.iter().take(2).map(|level| level.counters().bytes_from_memory).sum();
        Meter { blocks, bytes }
    }

    fn start(&self) -> Option<Meter> {
        let [blocks, bytes] = self.view.memo("learn_at").and_then(numbers)?;
        Some(Meter { blocks, bytes })
    }

    /// Returns the blocks per 10^9 bytes from memory since the measurement started; `None` if no
    /// bytes came.
    fn cost_since(&self, now: Meter) -> Option<u64> {
        let start = self.start().filter(|start| start.bytes < now.bytes)?;
        let blocks = u128::from(now.blocks.saturating_sub(start.blocks));
        let cost = blocks * 1_000_000_000 / u128::from(now.bytes - start.bytes);
        Some(u64::try_from(cost).unwrap_or(u64::MAX))
    }

    fn blocks(&self, level: usize) -> u64 {
        let runs = self.view.tree.runs_at(LevelId::Disk(level));
        runs.iter().map(|run| run.cell_count()).sum()
    }

    fn note(&self, name: &str) -> Option<u64> {
        self.view.memo(name)?.parse().ok()
    }
}

impl Meter {
    fn text(self) -> String {
        format!("{} {}", self.blocks, self.bytes)
    }
}

/// Returns whether `cost` is more than a quarter below or above `known`; `Equal` if it is neither.
fn strays(cost: u64, known: u64) -> Ordering {
    let quarter = known / 4;
    match cost {
        _ if cost > known.saturating_add(quarter) => Ordering::Greater,
        _ if cost < known - quarter => Ordering::Less,
        _ => Ordering::Equal,
    }
}

fn note(name: impl Into<MemoName>, text: String) -> MemoChange {
    (name.into(), Some(text))
}

fn watched([height, moved, blocks]: [u64; 3]) -> MemoChange {
    note("watched", format!("{height} {moved} {blocks}"))
}

fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let numbers: Option<Vec<u64>> = text.split(' ').map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}
