//! COLA and SAMT: levels of slots, merged when all are full.

use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// Levels of slots. When all slots of a level are full, they are merged into one slot of the next.
///
/// Source: Lim et al., FAST 2016, for both models; the structures are Bender et al.,
/// "Cache-Oblivious Streaming B-trees", SPAA 2007 (COLA), and Spillane et al., "An Efficient
/// Multi-Tier Tablet Server Storage Architecture", SoCC 2011 (SAMT).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlotModel {
    /// Requests per memtable.
    pub memtable: f64,
    /// The size of a slot over the size of a slot of the level above; at least 2.
    pub ratio: u64,
    /// The filling of slots.
    pub slots: Slots,
}

/// The ways to fill the slots of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// COLA: new data are merged with the data of the level. So a level is one run that is written
    /// `ratio - 1` times while it grows; the `ratio`-th merge continues into the next level.
    Merged,
    /// SAMT: new data get a slot of their own.
    Apart,
}

impl SlotModel {
    /// Returns the costs per request.
    ///
    /// Let `i_l` be `memtable` times `ratio` to the power of `l`. A level of COLA writes
    /// `unique(i_l), .., unique((ratio - 1) i_l)` per `ratio i_l` requests. A level of SAMT writes
    /// `unique(i_l)` per `i_l` requests. The last level is the first that can hold every key; it is
    /// written as a whole per `memtable ratio^(L - 1)` requests.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let popularity = setting.popularity;
        let ratio = self.ratio as f64;
        let last = popularity.live();
        let mut stages = vec![Stage::log()];
        let mut levels = Vec::new();
        let mut interval = self.memtable;
        // Each merge into the last level adds one slot of the level before it, so the last level is
        // the first whose slots hold every key.
        while interval * ratio < last {
            let size = popularity.unique(interval);
            let name = level_name(levels.len());
            let taken = self.taken(setting, levels.len(), interval);
            match self.slots {
                Slots::Merged => {
                    let size_of = |slots: u64| popularity.unique(slots as f64 * interval);
                    let written: f64 = (1..self.ratio).map(size_of).sum();
                    // Each merge but the first reads the output of the merge before it.
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
            // The first slot of level 0 is a flush. All others are merged with what is there.
            Slots::Merged if stages.len() > 2 => unmerged.merged((ratio - 1.0) / ratio),
            Slots::Merged => unmerged.merged(1.0),
            Slots::Apart => unmerged,
        };
        Model::new(setting, flushes, stages, levels)
    }

    /// Returns the size that a merge into a level reads from the levels above; 0 from memory.
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
