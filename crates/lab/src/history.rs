//! Histories: the trees of a simulation as differences from step to step.

mod encoding;
mod outline;
#[cfg(test)]
mod tests;

pub use outline::KeyScale;

use crate::explain::{RouteReport, Tally, routes};
use encoding::Varints;
use lsmith_sim::Event;
use lsmith_tree::{Counters, Level, LevelId, MergePlan, RunId, Tree, TreeEdit};
use outline::{Outline, Piece};
use serde::Serialize;
use std::collections::BTreeMap;

/// What a step did. The numbers are part of the format.
const SEAL: u64 = 0;
const FLUSH: u64 = 1;
const MERGE: u64 = 2;
const MOVE: u64 = 3;
const START: u64 = 4;

/// The trees of one policy, step by step.
///
/// # Format of `steps`
/// The steps are numbers of variable length (LEB128), deflated, in base 64. A step is:
///
/// ```text
/// kind            0 a memtable was sealed, 1 flush, 2 merge, 3 move, 4 the tree at the start
///   (1 to 3:)     level, reason, numbers of the reason,
///                 bytes from memory, read, written, reused, moved
/// runs removed    their number, then their names
/// runs changed    their number, then for each:
///   name
///   place         0 for a run that exists, 1 for memory, 2 + n for level n
///   (new runs:)   index in the level, newest first, when the new runs before it are in place
///   slices        the number of slices
///   at, gone, new the pieces from index `at` on: `gone` are removed, `new` are inserted
///   (each new:)   gap to the piece before, width, bytes
/// ```
///
/// Places in the key space go from 0 to 4096. Bytes are logical.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct History {
    /// The name: a policy or a keyspace.
    pub name: String,
    /// What was simulated, or what was looked at.
    pub source: String,
    /// The number of steps.
    pub step_count: u64,
    /// The reasons that steps name by index. Each `{}` stands for a number of the step.
    pub reasons: Vec<String>,
    /// The steps.
    pub steps: String,
    /// What merges did to each level in all, level 0 first. Counts from before the first step are
    /// part of it.
    pub levels: Vec<LevelTotals>,
    /// Why bytes were written, by where they went. Empty for the tree of a store, which keeps no
    /// causes.
    pub routes: Vec<RouteReport>,
    /// True if the places of slices in the key space are known.
    pub has_keys: bool,
}

impl History {
    /// Returns the history of a tree at one moment.
    #[must_use]
    pub fn of_tree(name: &str, source: &str, tree: &Tree) -> History {
        let mut recorder = Recorder::new(Some(KeyScale::of_tree(tree)));
        recorder.begin_step(START);
        let runs = tree.runs().map(|(_, run)| run.id()).collect();
        recorder.end_step(tree, runs);
        recorder.levels = tree.levels().iter().map(LevelTotals::of).collect();
        recorder.finish(name, source)
    }
}

/// What flushes, merges and moves did to a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LevelTotals {
    /// Flushes to runs of their own.
    pub flushes: u64,
    /// Merges into the level.
    pub merges: u64,
    /// Moves to the level.
    pub moves: u64,
    /// Bytes that flushes and merges took from memory.
    pub from_memory: u64,
    /// Bytes that merges read from storage.
    pub read: u64,
    /// Bytes that flushes and merges wrote.
    pub written: u64,
    /// Bytes that merges reused without rewriting.
    pub reused: u64,
    /// Bytes moved.
    pub moved: u64,
}

impl LevelTotals {
    fn of(level: &Level) -> LevelTotals {
        LevelTotals::of_counters(level.counters())
    }

    fn of_counters(counters: &Counters) -> LevelTotals {
        LevelTotals {
            flushes: counters.flushes,
            merges: counters.merges,
            moves: counters.moves,
            from_memory: counters.bytes_from_memory,
            read: counters.bytes_in,
            written: counters.bytes_written,
            reused: counters.bytes_reused,
            moved: counters.bytes_moved,
        }
    }

    fn add(&mut self, other: &LevelTotals) {
        self.flushes += other.flushes;
        self.merges += other.merges;
        self.moves += other.moves;
        self.from_memory += other.from_memory;
        self.read += other.read;
        self.written += other.written;
        self.reused += other.reused;
        self.moved += other.moved;
    }
}

/// Records the events of a simulation as a [`History`].
#[derive(Clone, Debug)]
pub struct Recorder {
    scale: Option<KeyScale>,
    varints: Varints,
    step_count: u64,
    reasons: Vec<String>,
    reason_indexes: BTreeMap<String, u64>,
    /// The outlines of all runs that the steps so far left.
    outlines: BTreeMap<RunId, Outline>,
    /// The runs in memory among them.
    memory: Vec<RunId>,
    levels: Vec<LevelTotals>,
    tally: Tally,
    /// The runs that the last edit names. It shows at the next event what became of them.
    pending: Vec<RunId>,
}

impl Recorder {
    /// Returns a recorder of an empty tree. Without a scale all runs cover the whole key space.
    #[must_use]
    pub fn new(scale: Option<KeyScale>) -> Recorder {
        Recorder {
            scale,
            varints: Varints::default(),
            step_count: 0,
            reasons: Vec::new(),
            reason_indexes: BTreeMap::new(),
            outlines: BTreeMap::new(),
            memory: Vec::new(),
            levels: Vec::new(),
            tally: Tally::new(),
            pending: Vec::new(),
        }
    }

    /// Records an event.
    pub fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Sealed { tree, .. } => {
                self.begin_step(SEAL);
                let mut runs = std::mem::take(&mut self.memory);
                runs.extend(tree.memory().runs().iter().map(|run| run.id()));
                self.end_step(tree, runs);
            }
            Event::Merge { tree, plan, edit } => {
                self.settle(tree);
                self.tally.merge(tree, plan, edit);
                self.begin_merge(plan, edit);
                self.pending.extend(edit.remove.iter().map(|input| input.run));
                self.pending.extend(edit.add.iter().map(|addition| addition.run));
            }
            Event::Rest { tree } | Event::Flushed { tree } => self.settle(tree),
        }
    }

    /// Returns the history, after the tree has come to rest.
    #[must_use]
    pub fn finish(self, name: &str, source: &str) -> History {
        History {
            name: name.to_owned(),
            source: source.to_owned(),
            step_count: self.step_count,
            reasons: self.reasons,
            steps: self.varints.to_text(),
            levels: self.levels,
            routes: routes(&self.tally),
            has_keys: self.scale.is_some(),
        }
    }

    fn begin_step(&mut self, kind: u64) {
        self.step_count += 1;
        self.varints.push(kind);
    }

    fn begin_merge(&mut self, plan: &MergePlan, edit: &TreeEdit) {
        let (level, counters) = edit.counters.first().copied().unwrap_or_default();
        let kind = match () {
            () if counters.flushes > 0 => FLUSH,
            () if counters.moves > 0 => MOVE,
            () => MERGE,
        };
        self.begin_step(kind);
        if self.levels.len() <= level {
            self.levels.resize(level + 1, LevelTotals::default());
        }
        self.levels[level].add(&LevelTotals::of_counters(&counters));
        let (text, numbers) = plan.reason.parts();
        let reason = self.reason(text);
        self.varints.extend([level as u64, reason]);
        self.varints.extend(numbers.iter().copied());
        self.varints.extend([
            counters.bytes_from_memory,
            counters.bytes_in,
            counters.bytes_written,
            counters.bytes_reused,
            counters.bytes_moved,
        ]);
    }

    fn reason(&mut self, text: &str) -> u64 {
        if let Some(index) = self.reason_indexes.get(text) {
            return *index;
        }
        let index = self.reasons.len() as u64;
        self.reasons.push(text.to_owned());
        self.reason_indexes.insert(text.to_owned(), index);
        index
    }

    /// Ends the step of a merge, if one is under way, now that `tree` has its edit.
    fn settle(&mut self, tree: &Tree) {
        if !self.pending.is_empty() {
            let runs = std::mem::take(&mut self.pending);
            self.end_step(tree, runs);
        }
    }

    /// Ends a step that touched no runs but these.
    fn end_step(&mut self, tree: &Tree, mut runs: Vec<RunId>) {
        runs.sort_unstable();
        runs.dedup();
        let (left, gone): (Vec<RunId>, Vec<RunId>) =
            runs.into_iter().partition(|run| tree.run(*run).is_some());
        let gone: Vec<RunId> =
            gone.into_iter().filter(|run| self.outlines.remove(run).is_some()).collect();
        self.varints.push(gone.len() as u64);
        self.varints.extend(gone.iter().map(|run| run.0));

        let mut left: Vec<(LevelId, usize, RunId)> = left
            .into_iter()
            .filter_map(|run| {
                let (level, _) = tree.run(run)?;
                let index = tree.runs_at(level).iter().position(|other| other.id() == run)?;
                Some((level, index, run))
            })
            .collect();
        // New runs get their final indexes if they are inserted in this order.
        left.sort_unstable();
        self.varints.push(left.len() as u64);
        for (level, index, run) in left {
            self.change(tree, level, index, run);
        }
        self.memory = tree.memory().runs().iter().map(|run| run.id()).collect();
    }

    /// Writes the change of one run.
    fn change(&mut self, tree: &Tree, level: LevelId, index: usize, id: RunId) {
        let run = &tree.runs_at(level)[index];
        let whole = KeyScale::Numbers(1);
        let outline = Outline::of(run, self.scale.as_ref().unwrap_or(&whole));
        let old = self.outlines.remove(&id);
        self.varints.push(id.0);
        match (&old, level) {
            (Some(_), _) => self.varints.push(0),
            (None, LevelId::Memory) => self.varints.extend([1, index as u64]),
            (None, LevelId::Disk(level)) => self.varints.extend([2 + level as u64, index as u64]),
        }
        self.varints.push(outline.slices);
        self.splice(old.as_ref().map_or(&[], |old| &old.pieces), &outline.pieces);
        self.outlines.insert(id, outline);
    }

    /// Writes how `old` pieces become `new` ones, leaving out equal pieces at both ends.
    fn splice(&mut self, old: &[Piece], new: &[Piece]) {
        let same = |(old, new): &(&Piece, &Piece)| old == new;
        let at = old.iter().zip(new).take_while(same).count();
        let tail = old[at..].iter().rev().zip(new[at..].iter().rev()).take_while(same).count();
        let inserted = &new[at..new.len() - tail];
        self.varints.extend([at, old.len() - tail - at, inserted.len()].map(|n| n as u64));
        let mut last_end = at.checked_sub(1).map_or(0, |last| new[last].end);
        for piece in inserted {
            self.varints.extend([piece.start - last_end, piece.end - piece.start, piece.bytes]);
            last_end = piece.end;
        }
    }
}
