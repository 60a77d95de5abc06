//! Jungle as the store has it: what its policy writes at one moment.

use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// The tables of level 0.
const LEVEL0_TABLES: f64 = 4.0;

/// Bytes of trees that are written to split them, per byte of new keys. Trees are split in two at
/// one and a half tables or more, and a part of the new keys make new trees instead. In keyed
/// simulations of loads it is 1.4 to 1.6.
const SPLITS: f64 = 1.5;

/// The tree of the policy at one moment, while data grow or are updated.
///
/// A level above the last holds its limit of live entries, and trees go down in turn. So what goes
/// down per request is what a sweep over the level finds, over the requests of a sweep
/// ([`interval`](crate::Popularity::interval)). The last level has all keys. What it takes in for
/// keys that it has is dead bytes of theirs, and `garbage_ratio - 1` of them cost one rewriting of
/// a live byte, as soon as there are as many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JungleTree {
    /// Bytes of a tree per live byte at which it is rewritten; more than 1.
    pub garbage_ratio: f64,
    /// The ratio of the sizes of neighbouring levels.
    pub ratio: f64,
    /// Entries of a table.
    pub table: f64,
}

impl JungleTree {
    /// Returns the costs per request, plus the log, after all requests of `setting`.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let popularity = setting.popularity;
        let memtable = setting.memtable_requests();
        let flushes = Flushes::of_memtables(setting, memtable).merged(1.0);
        let mut stages = vec![Stage::log()];
        if flushes.size == 0.0 {
            return Model::new(setting, flushes, stages, Vec::new());
        }
        let live = setting.live();
        let mut levels = Vec::new();
        let mut limit = LEVEL0_TABLES * self.table;
        let mut taken = flushes.size;
        while limit < live {
            stages.push(append(levels.len(), taken));
            // A level at rest lacks half of the tree that went down last.
            levels.push(Level { runs: 1.0, size: limit - self.table / 2.0 });
            let sweep = popularity.interval(limit);
            taken = taken.min(popularity.unique(sweep) / sweep);
            limit *= self.ratio;
        }
        stages.push(append(levels.len(), taken));
        let new = (live - setting.size_between(0.0, setting.requests - memtable)) / memtable;
        let new = new.clamp(0.0, taken);
        if !levels.is_empty() {
            stages.push(Stage::new("split", SPLITS * new, SPLITS * new));
        }
        // What was appended so far and is dead, per live entry.
        let dead_so_far = (taken * setting.requests / live - 1.0).max(0.0);
        // A batch brings more dead bytes than a `garbage_ratio` of nearly 1 allows.
        let dead_most = (self.garbage_ratio - 1.0).max(1.0 / self.ratio);
        let is_due = dead_so_far >= dead_most;
        let rewritten = if is_due { (taken - new) / dead_most } else { 0.0 };
        stages.push(Stage::new("rewrite in place", rewritten, rewritten));
        let dead = if is_due { dead_most / 2.0 } else { dead_so_far };
        levels.push(Level { runs: 1.0, size: live });
        let mut model = Model::new(setting, flushes, stages, levels);
        model.space_cost += dead;
        model
    }
}

fn append(level: usize, taken: f64) -> Stage {
    Stage::new(format!("append to level {level}"), taken, 0.0)
}
