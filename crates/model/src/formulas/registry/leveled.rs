//! Formulas of levels: MSLS models and their variants.

use super::{FormulaInfo, FormulaParam, entries, ratio};
use crate::cost::{Ignored, Model, Setting};
use crate::formulas::{IntervalModel, LeveledModel, MemoryBufferModel, Sweep, WholeLevelModel};
use crate::sizes;
use lsmith_spec::{Params, SpecError, parse_bytes};

const SOURCE: &str = "Lim et al., FAST 2016";

const LEVEL0: FormulaParam = FormulaParam {
    name: "l0",
    default: "4",
    meaning: "memtables that level 0 takes until all of them are merged into level 1",
};
const LEVEL1: FormulaParam =
    FormulaParam { name: "level1", default: "10MiB", meaning: "bytes of level 1" };
const RATIO: FormulaParam = FormulaParam {
    name: "ratio",
    default: "10",
    meaning: "size of a level over that of the level above, more than 1",
};
const SIZES: FormulaParam = FormulaParam {
    name: "sizes",
    default: "geometric",
    meaning: "bytes of the levels from 1 to the one before the last, as 10MiB:80MiB; geometric, \
              from level1 by ratio; or optimal, the sizes that cost least",
};
const PICK: FormulaParam = FormulaParam {
    name: "pick",
    default: "round_robin",
    meaning: "what goes down of a full level: round_robin or random",
};

/// These formulas take the pieces of a level to overlap the next one.
const ORDER: &[Ignored] = &[Ignored::KeyOrder];

/// The formulas, in listing order.
pub(super) const INFOS: [FormulaInfo; 6] = [
    FormulaInfo {
        name: "leveldb",
        source: SOURCE,
        summary: "levels swept piece by piece, round and round in key order",
        params: &[LEVEL0, LEVEL1, RATIO, SIZES],
        bound: None,
        ignores: ORDER,
        evaluate: |params, setting| paper(params, setting, Sweep::RoundRobin),
    },
    FormulaInfo {
        name: "rocksdb",
        source: SOURCE,
        summary: "levels compacted piece by piece, the pieces spread over all keys",
        params: &[LEVEL0, LEVEL1, RATIO, SIZES],
        bound: None,
        ignores: ORDER,
        evaluate: |params, setting| paper(params, setting, Sweep::Random),
    },
    FormulaInfo {
        name: "leveled",
        source: "Lim et al., FAST 2016, with the parameters of the policy `leveled`",
        summary: "the policy `leveled`: memtables go down one by one, l0 of them stay in level 0",
        params: &[
            FormulaParam {
                name: "ratio",
                default: "10",
                meaning: "size of a level over that of the level above, more than 1",
            },
            FormulaParam { name: "l0", default: "2", meaning: "runs that stay in level 0" },
            FormulaParam {
                name: "pick",
                default: "min_overlap",
                meaning: "as of the policy; round_robin skips tables whose borders have moved, \
                          whole_level is a formula of its own, all others sweep strictly",
            },
            FormulaParam {
                name: "table",
                default: "auto",
                meaning: "bytes of a table, and of level 1 over ratio; auto: the memtable's",
            },
        ],
        bound: None,
        ignores: &[],
        evaluate: of_policy,
    },
    FormulaInfo {
        name: "whole_level",
        source: SOURCE,
        summary: "a level that is too large is merged into the next as a whole",
        params: &[LEVEL0, LEVEL1, RATIO, SIZES],
        bound: None,
        ignores: ORDER,
        evaluate: |params, setting| {
            let (level0_merged, sizes) = level0_and_sizes(params, setting)?;
            let memtable = setting.sealed();
            Ok(WholeLevelModel { memtable, level0_merged, sizes }.evaluate(setting))
        },
    },
    FormulaInfo {
        name: "memory_buffer",
        source: SOURCE,
        summary: "a buffer in memory is swept like a level, in place of memtables and level 0",
        params: &[LEVEL1, RATIO, SIZES, PICK],
        bound: None,
        ignores: ORDER,
        evaluate: |params, setting| {
            let sizes = level_sizes(params, setting)?;
            let sweep = match params.choice("pick", "round_robin", &["round_robin", "random"])? {
                "random" => Sweep::Random,
                _ => Sweep::RoundRobin,
            };
            let buffer = setting.sealed();
            let model = MemoryBufferModel { buffer, sizes, sweep, false_overlap: 1.0 };
            Ok(model.evaluate(setting))
        },
    },
    FormulaInfo {
        name: "interval",
        source: "Lim et al., FAST 2016, for intervals as variables; the means are derived here",
        summary: "levels given by the requests between two merges into them",
        params: &[
            LEVEL0,
            FormulaParam {
                name: "ratio",
                default: "10",
                meaning: "an interval over the one above, more than 1",
            },
            FormulaParam {
                name: "many",
                default: "false",
                meaning: "whether a merge goes on into the next level where that is due as well",
            },
        ],
        bound: None,
        ignores: ORDER,
        evaluate: |params, setting| {
            let memtable = setting.sealed();
            let first = memtable * params.count("l0", 4, 1..=1000)? as f64;
            let ratio = ratio(params, 10.0)?;
            let intervals = IntervalModel::geometric(first, ratio, setting.popularity.live());
            let many_at_once = params.flag("many", false)?;
            Ok(IntervalModel { memtable, intervals, many_at_once }.evaluate(setting))
        },
    },
];

/// Returns a model of the paper, with the paper's defaults.
fn paper(params: &Params<'_>, setting: &Setting<'_>, sweep: Sweep) -> Result<Model, SpecError> {
    let level0_merged = params.count("l0", 4, 1..=1000)? as f64;
    let mut model = LeveledModel {
        memtable: setting.sealed(),
        level0_merged,
        level0_kept: (level0_merged - 1.0) / 2.0,
        sizes: Vec::new(),
        sweep,
        false_overlap: 1.0,
    };
    model.sizes = match params.text("sizes") {
        Some("optimal") => sizes::optimal(&model, setting.popularity, None),
        _ => level_sizes(params, setting)?,
    };
    Ok(model.evaluate(setting))
}

fn level0_and_sizes(
    params: &Params<'_>,
    setting: &Setting<'_>,
) -> Result<(f64, Vec<f64>), SpecError> {
    Ok((params.count("l0", 4, 1..=1000)? as f64, level_sizes(params, setting)?))
}

/// Returns the sizes from level 1 to the one before the last, in entries.
fn level_sizes(params: &Params<'_>, setting: &Setting<'_>) -> Result<Vec<f64>, SpecError> {
    let level1 = entries(params, "level1", 10 << 20, setting)?;
    let ratio = ratio(params, 10.0)?;
    let text = match params.text("sizes") {
        None | Some("geometric") => {
            return Ok(LeveledModel::geometric(level1, ratio, setting.popularity.live()));
        }
        Some("optimal") => {
            let message = "sizes = optimal is for the formulas leveldb and rocksdb";
            return Err(SpecError::conflict(message));
        }
        Some(text) => text,
    };
    let mut sizes = Vec::new();
    for part in text.split(':') {
        let message =
            || format!("sizes: `{part}` is not a size such as 10MiB; see `sizes=10MiB:80MiB`");
        let bytes = parse_bytes(part).map_err(|_| SpecError::conflict(message()))?;
        sizes.push(bytes as f64 / setting.item_bytes);
    }
    let rising = sizes.windows(2).all(|pair| pair[0] <= pair[1]) && sizes[0] > 0.0;
    if rising {
        Ok(sizes)
    } else {
        Err(SpecError::conflict("sizes: expected sizes above 0 that do not fall"))
    }
}

/// Returns the model of the store's policy `leveled`.
fn of_policy(params: &Params<'_>, setting: &Setting<'_>) -> Result<Model, SpecError> {
    const PICKS: [&str; 6] =
        ["min_overlap", "round_robin", "narrowest", "best_ratio", "oldest", "whole_level"];
    let ratio = ratio(params, 10.0)?;
    let level0_kept = params.count("l0", 2, 1..=1000)? as f64;
    let table = match params.text("table") {
        None | Some("auto") => setting.memtable,
        Some(_) => entries(params, "table", 1, setting)?,
    };
    let capacities = LeveledModel::geometric(table * ratio, ratio, setting.live());
    let memtable = setting.memtable_requests();
    let pick = params.choice("pick", "min_overlap", &PICKS)?;
    if pick == "whole_level" {
        let model = WholeLevelModel { memtable, level0_merged: 1.0, sizes: capacities };
        return Ok(model.evaluate_grown(setting, level0_kept));
    }
    let sizes = capacities.iter().map(|capacity| at_rest(setting, *capacity, table)).collect();
    let model = LeveledModel {
        memtable,
        level0_merged: 1.0,
        level0_kept,
        sizes,
        sweep: Sweep::RoundRobin,
        false_overlap: 1.0,
    };
    let skipped = if pick == "round_robin" { 0.5 } else { 0.0 };
    Ok(model.evaluate_grown(setting, skipped))
}

/// Returns the mean size at rest of a level with this capacity.
///
/// # Derivation
/// Tables are merged down until a level is within its capacity. If tables differ in size, the level
/// then is up to one table below its capacity: half a table on average. If no key is shared, all
/// tables are equal, and each exceeds the cut size by a part of an entry. So the level holds as
/// many whole tables as fit, mostly one less than the capacity has cut sizes.
fn at_rest(setting: &Setting<'_>, capacity: f64, table: f64) -> f64 {
    let requests = setting.memtable_requests();
    let shared =
        2.0 * setting.popularity.unique(requests) - setting.popularity.unique(2.0 * requests);
    let table = (table - 1e-6).ceil().max(1.0);
    if shared < 1.0 {
        (capacity / table).floor() * table
    } else {
        (capacity - table / 2.0).max(capacity / 2.0)
    }
}
