//! Triangular compaction, by the cost script of lsmtk's author.

use crate::cost::{Flushes, Level, Model, ReadCosts, Setting, Stage};

/// Returns write cost `1 + L/2` for `L` levels, plus the log, if tables overlap only within
/// triangles.
///
/// # Derivation
/// Tables arrive one by one. A triangle that fills level `l` merges one table of each level above
/// with the tables there and writes `2^l`. The `i`-th table ends a triangle over as many levels as
/// `i` has trailing ones in binary. So the mean of 2 to that power over `i < 2^L` is the write cost
/// per table. A number with `j` trailing ones has probability `2^-(j+1)` for `j < L`, which gives
/// `L / 2`; the number of all ones adds `2^L / 2^L = 1`.
///
/// Source: closed form of the cost script of lsmtk's author: 6.5 at 11 levels.
pub fn triangular(setting: &Setting<'_>, levels: u32) -> Model {
    let mut stages = vec![Stage::log(), Stage::new("level 0", 1.0, 0.0)];
    let mut tree = Vec::new();
    for level in 1..=levels {
        stages.push(Stage::new(format!("triangles up to level {level}"), 0.5, 0.5));
        let full = setting.memtable * 2.0_f64.powi(level as i32);
        tree.push(Level { runs: 1.0, size: full.min(setting.popularity.live()) });
    }
    Model {
        stages,
        flushes: Flushes::unshared(),
        worst_reads: Some(ReadCosts::worst(setting, f64::from(levels.max(1)))),
        levels: tree,
        // Every level may hold the same keys as the one below, which is twice as large.
        space_cost: 2.0,
    }
}

/// Returns the number of levels that double from one memtable to all keys.
pub fn triangular_levels(setting: &Setting<'_>) -> u32 {
    setting.growth().log2().ceil().max(1.0) as u32
}
