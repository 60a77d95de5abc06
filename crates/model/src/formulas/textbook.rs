//! Leveling, tiering and lazy leveling as textbooks have them: worst cases, no key shared.

use crate::cost::{Flushes, Level, Model, ReadCosts, Setting, Stage};

/// How a level of the textbook is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Textbook {
    /// One run per level: what comes from above is merged with it, `ratio` times until it is full.
    /// Write cost `L T`.
    Leveling,
    /// `ratio` runs per level, merged into one run of the next. Write cost `L`.
    Tiering,
    /// The last level as leveling, all above as tiering. Write cost `L - 1 + T`.
    LazyLeveling,
}

impl Textbook {
    /// Costs for levels that grow by `ratio`, of which there are as many as it takes for the last
    /// to hold every key.
    ///
    /// With `T` for `ratio`, `L` levels, `p` of a filter: leveling has write cost `L T`, `L` runs
    /// and space `T / (T - 1)`; tiering `L`, `L T` and `T^2 / (T - 1)`; lazy leveling `L - 1 + T`,
    /// `(L - 1) (T - 1) + 1` and `T / (T - 1)`. A lookup of an absent key looks into `p` times the
    /// runs, one of a present key into one more at most, a range read into all. The log comes on
    /// top.
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

/// Levels of which the first holds `ratio` memtables and the last every key, at least one.
pub(crate) fn levels_needed(setting: &Setting<'_>, ratio: f64) -> u32 {
    // A size that is a power of the ratio needs no level more for being a rounding above it.
    let levels = setting.growth().ln() / ratio.ln();
    (levels - 1e-9).ceil().max(1.0) as u32
}
