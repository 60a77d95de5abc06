//! COLA and SAMT: levels of slots, merged when all are full.

use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// A level of slots that is merged into one slot of the next when all of them are taken.
///
/// Source: Lim et al., FAST 2016, for both models; the structures are Bender et al.,
/// "Cache-Oblivious Streaming B-trees", SPAA 2007 (COLA), and Spillane et al., "An Efficient
/// Multi-Tier Tablet Server Storage Architecture", SoCC 2011 (SAMT).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotModel {
    /// Requests that a memtable takes.
    pub memtable: f64,
    /// How much more a slot holds than one of the level above; at least 2.
    pub ratio: u64,
    /// How slots of a level are filled.
    pub slots: Slots,
}

/// How the slots of a level are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// COLA: what comes is merged with what is there, so a level is one run that is written
    /// `ratio - 1` times while it grows; the `ratio`-th goes on into the next level.
    Merged,
    /// SAMT: what comes takes a slot of its own.
    Apart,
}

impl SlotModel {
    /// Costs per request.
    ///
    /// With `i_l` the `memtable` times `ratio` to the power of `l`, a level of COLA is written with
    /// `unique(i_l), .., unique((ratio - 1) i_l)` for each `ratio i_l` requests, a level of SAMT
    /// with `unique(i_l)` for each `i_l`. The last level, the first that can hold every key, is
    /// written as a whole for each `memtable ratio^(L - 1)`.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let popularity = setting.popularity;
        let ratio = self.ratio as f64;
        let last = popularity.live();
        let mut stages = vec![Stage::log()];
        let mut levels = Vec::new();
        let mut interval = self.memtable;
        // The last level takes a slot of the one before it each time, so it is the first whose
        // slots hold every key.
        while interval * ratio < last {
            let size = popularity.unique(interval);
            let name = level_name(levels.len());
            let taken = self.taken(setting, levels.len(), interval);
            match self.slots {
                Slots::Merged => {
                    let size_of = |slots: u64| popularity.unique(slots as f64 * interval);
                    let written: f64 = (1..self.ratio).map(size_of).sum();
                    // Each but the first finds what the one before it wrote.
                    let found: f64 = (1..self.ratio - 1).map(size_of).sum();
                    let per = ratio * interval;
                    stages.push(Stage::new(name, written / per, taken / interval + found / per));
                    levels.push(Level { runs: (ratio - 1.0) / ratio, size: written / ratio });
                }
                Slots::Apart => {
                    stages.push(Stage::new(name, size / interval, taken / interval));
                    let runs = (ratio - 1.0) / 2.0;
                    levels.push(Level { runs, size: size * runs });
                }
            }
            interval *= ratio;
        }
        let name = level_name(levels.len());
        let taken = self.taken(setting, levels.len(), interval);
        stages.push(Stage::new(name, last / interval, (taken + last) / interval));
        levels.push(Level { runs: 1.0, size: last });
        let unmerged = Flushes::of_memtables(setting, self.memtable);
        let flushes = match self.slots {
            Slots::Merged => unmerged.merged(),
            Slots::Apart => unmerged,
        };
        Model::new(setting, flushes, stages, levels)
    }

    /// Returns the size of what a merge into a level reads of the levels above; nothing is read of
    /// memory.
    fn taken(&self, setting: &Setting<'_>, level: usize, interval: f64) -> f64 {
        let ratio = self.ratio as f64;
        match (level, self.slots) {
            (0, _) => 0.0,
            (_, Slots::Merged) => setting.popularity.unique(interval),
            (_, Slots::Apart) => ratio * setting.popularity.unique(interval / ratio),
        }
    }
}

fn level_name(level: usize) -> String {
    match level {
        0 => "memory -> 0".to_owned(),
        _ => format!("level {} -> {level}", level - 1),
    }
}
