//! Textbook formulas of leveling, tiering and lazy leveling: worst cases without shared keys.

use crate::cost::{Flushes, Level, Model, ReadCosts, Setting, Stage};

/// The merging of levels in the textbook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Textbook {
    /// One run per level. It is merged with the runs from above, `ratio` times until it is full.
    /// Write cost `L T`.
    Leveling,
    /// `ratio` runs per level, merged into one run of the next. Write cost `L`.
    Tiering,
    /// Leveling in the last level, tiering in all others. Write cost `L - 1 + T`.
    LazyLeveling,
}

impl Textbook {
    /// Returns the costs of levels that grow by `ratio`, plus the log. There are as many levels as
    /// needed for the last to hold every key.
    ///
    /// `T` is `ratio`, `L` the number of levels, and `p` the filter's false positive rate. Leveling
    /// has write cost `L T`, `L` runs and space `T / (T - 1)`. Tiering has `L`, `L T` and
    /// `T^2 / (T - 1)`. Lazy leveling has `L - 1 + T`, `(L - 1) (T - 1) + 1` and `T / (T - 1)`. A
    /// lookup of an absent key reads `p` times the runs, a lookup of a present key at most one
    /// more, a range read all.
    ///
    /// Sources: the table of costs in "Jungle", HotStorage 2019; Dayan & Idreos, "Dostoevsky",
    /// SIGMOD 2018, for lazy leveling.
    pub fn evaluate(self, setting: &Setting<'_>, ratio: f64) -> Model {
        let count = levels_needed(setting, ratio);
        let mut stages = vec![Stage::log()];
        let mut levels = Vec::new();
        for index in 1..=count {
            let is_last = index == count;
            let merged = match self {
                Textbook::Leveling => true,
                Textbook::Tiering => false,
                Textbook::LazyLeveling => is_last,
            };
            let writes = if merged { ratio } else { 1.0 };
            stages.push(Stage::new(format!("level {index}"), writes, writes));
            let full = setting.memtable * ratio.powi(index as i32);
            let size = if is_last { setting.popularity.live() } else { full };
            levels.push(match (merged, self) {
                (true, _) => Level { runs: 1.0, size },
                (false, Textbook::LazyLeveling) => Level { runs: ratio - 1.0, size },
                (false, _) => {
                    Level { runs: ratio, size: if is_last { ratio * size } else { size } }
                }
            });
        }
        let space_cost = match self {
            Textbook::Tiering => ratio * ratio / (ratio - 1.0),
            Textbook::Leveling | Textbook::LazyLeveling => ratio / (ratio - 1.0),
        };
        let runs = levels.iter().map(|level| level.runs).sum();
        Model {
            stages,
            flushes: Flushes::unshared(),
            levels,
            worst_reads: Some(ReadCosts::worst(setting, runs)),
            space_cost,
        }
    }
}

/// Returns the number of levels, at least one. The first holds `ratio` memtables, the last every
/// key.
pub(crate) fn levels_needed(setting: &Setting<'_>, ratio: f64) -> u32 {
    // A size that exceeds a power of the ratio only by rounding needs no further level.
    let levels = setting.growth().ln() / ratio.ln();
    (levels - 1e-9).ceil().max(1.0) as u32
}
