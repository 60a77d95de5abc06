//! Bounds for merges of parts of levels, memory included.

use crate::cost::{Flushes, Level, Model, ReadCosts, Setting, Stage};
use crate::formulas::textbook::levels_needed;

/// The part of a full level that is merged down.
///
/// `G` is the ratio and `d` the share of a level that one merge takes. An entry that is merged into
/// a level costs on average, in a steady state with no shared key:
/// * [`All`](Take::All): `(G + 1) / 2`, because the level below grows from empty to full;
/// * [`Next`](Take::Next): `G / (1 - d)`, because the level below has been refilled evenly;
/// * [`Best`](Take::Best): at most `G + 1`, because some window overlaps at most the mean.
///
/// Source: Thonangi & Yang, "On Log-Structured Merge for Solid-State Drives", ICDE 2017, section
/// III.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// All of the level (`full`).
    All,
    /// The next window in key order (`rr`).
    Next,
    /// The window with the least below it (`choose_best`).
    Best,
}

/// Returns the costs per request, plus the log, of levels that grow by `ratio` from a memory of one
/// memtable. One merge takes the share `rate` of a level.
pub fn partial(setting: &Setting<'_>, take: Take, ratio: f64, rate: f64) -> Model {
    let per_level = match take {
        Take::All => (ratio + 1.0) / 2.0,
        Take::Next => ratio / (1.0 - rate),
        Take::Best => ratio + 1.0,
    };
    let count = levels_needed(setting, ratio);
    let mut stages = vec![Stage::log()];
    let mut levels = Vec::new();
    for level in 1..=count {
        let name = match level {
            1 => "memory -> 1".to_owned(),
            _ => format!("level {} -> {level}", level - 1),
        };
        stages.push(Stage::new(name, per_level, per_level));
        let full = setting.memtable * ratio.powi(level as i32);
        let filled = if take == Take::All { 0.5 } else { 1.0 };
        let is_last = level == count;
        let size = if is_last { setting.popularity.live() } else { full * filled };
        levels.push(Level { runs: 1.0, size });
    }
    let size: f64 = levels.iter().map(|level| level.size).sum();
    // No more is held than was written.
    let space_cost = (size / setting.popularity.live()).min(setting.requests / setting.live());
    let flushes = Flushes::unshared().merged(1.0);
    Model {
        stages,
        flushes,
        levels,
        worst_reads: Some(ReadCosts::worst(setting, f64::from(count))),
        space_cost,
    }
}
