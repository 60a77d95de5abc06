//! Formulas of levels: MSLS models and their variants.

use crate::cost::{Ignored, KeyOrder, Model, Setting};
use crate::formulas::info::{FormulaInfo, FormulaParam, entries, ratio};
use crate::formulas::sizes;
use crate::formulas::{IntervalModel, LeveledModel, MemoryBufferModel, Sweep, WholeLevelModel};
use lsmith_spec::{Params, Spec, SpecError, parse_bytes};
use std::ops::RangeInclusive;

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
    meaning: "bytes of the levels from 1 to the one before the last, as 10MiB:80MiB; none, \
              where level 1 is the last; geometric, from level1 by ratio; or optimal, the sizes \
              that cost least",
};
const OPTIMAL_LEVELS: FormulaParam = FormulaParam {
    name: "levels",
    default: "any",
    meaning: "levels that optimal sizes may have, without level 0 and the last: any, geometric (as \
              many as geometric sizes have), or a number",
};
const READ_COST_MAX: FormulaParam = FormulaParam {
    name: "read_cost_max",
    default: "any",
    meaning: "runs that a lookup may consider in the mean with optimal sizes",
};
const TABLE: FormulaParam = FormulaParam {
    name: "table",
    default: "2MiB",
    meaning: "bytes of a table, for the policy; the formula does not depend on it",
};
/// The parameters of the policies `leveldb` and `rocksdb`.
const OF_PAPER: &[FormulaParam] =
    &[LEVEL0, LEVEL1, RATIO, SIZES, OPTIMAL_LEVELS, READ_COST_MAX, TABLE];
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
        params: OF_PAPER,
        bound: None,
        ignores: ORDER,
        evaluate: in_turn,
    },
    FormulaInfo {
        name: "rocksdb",
        source: SOURCE,
        summary: "levels compacted piece by piece, the pieces spread over all keys",
        params: OF_PAPER,
        bound: None,
        ignores: ORDER,
        evaluate: at_random,
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
                          random leaves all places equally \
                          dense, whole_level is a formula of its own, all others sweep strictly",
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

/// Returns the sizes of the levels from 1 to the one before the last, in entries, of the policy
/// `leveldb` or `rocksdb` that `spec` describes; computes optimal ones.
///
/// # Errors
/// Fails if `spec` names another policy, or a parameter is unknown or out of range.
pub fn sizes_of(spec: &Spec, setting: &Setting<'_>) -> Result<Vec<f64>, SpecError> {
    Ok(of_spec(spec, setting)?.sizes)
}

/// Returns the costs of the policy `leveldb` or `rocksdb` that `spec` describes, whose tree has
/// grown from nothing in all requests of `setting`.
///
/// # Errors
/// As [`sizes_of`].
pub fn grown(spec: &Spec, setting: &Setting<'_>) -> Result<Model, SpecError> {
    let mut model = of_spec(spec, setting)?;
    model.memtable = setting.memtable_requests();
    let mut grown = model.evaluate_grown(setting, 0.0);
    // Several runs of level 0 are merged into one even if none overlaps another.
    if setting.order == KeyOrder::Ascending && model.level0_merged > 1.0 {
        let stage = grown.stages.iter_mut().find(|stage| stage.name == "level 0 -> 1");
        stage.into_iter().for_each(|stage| (stage.writes, stage.reads) = (1.0, 1.0));
    }
    Ok(grown)
}

fn of_spec(spec: &Spec, setting: &Setting<'_>) -> Result<LeveledModel, SpecError> {
    let sweep = match spec.name.as_str() {
        "leveldb" => Sweep::RoundRobin,
        "rocksdb" => Sweep::Random,
        other => return Err(SpecError::unknown("design", other, &["leveldb", "rocksdb"])),
    };
    let names: Vec<&str> = OF_PAPER.iter().map(|param| param.name).collect();
    paper(&Params::new(spec, &names, 0)?, setting, sweep)
}

fn in_turn(params: &Params<'_>, setting: &Setting<'_>) -> Result<Model, SpecError> {
    Ok(paper(params, setting, Sweep::RoundRobin)?.evaluate(setting))
}

fn at_random(params: &Params<'_>, setting: &Setting<'_>) -> Result<Model, SpecError> {
    Ok(paper(params, setting, Sweep::Random)?.evaluate(setting))
}

/// Returns a model of the paper, with the paper's defaults.
fn paper(
    params: &Params<'_>,
    setting: &Setting<'_>,
    sweep: Sweep,
) -> Result<LeveledModel, SpecError> {
    let level0_merged = params.count("l0", 4, 1..=1000)? as f64;
    params.bytes("table", 2 << 20, 1..=1 << 50)?;
    let mut model = LeveledModel {
        memtable: setting.sealed(),
        level0_merged,
        level0_kept: (level0_merged - 1.0) / 2.0,
        sizes: Vec::new(),
        sweep,
        false_overlap: 1.0,
    };
    model.sizes = match params.text("sizes") {
        Some("optimal") => {
            let levels = optimal_levels(params, setting, &model)?;
            sizes::optimal(&model, setting.popularity, levels)
        }
        _ if params.has("levels") || params.has("read_cost_max") => {
            let message = "levels and read_cost_max are for sizes = optimal";
            return Err(SpecError::conflict(message));
        }
        _ => level_sizes(params, setting)?,
    };
    Ok(model)
}

/// Returns the numbers of levels that optimal sizes may have. A lookup considers one run of each,
/// one of the last level, and all runs of level 0.
fn optimal_levels(
    params: &Params<'_>,
    setting: &Setting<'_>,
    model: &LeveledModel,
) -> Result<RangeInclusive<usize>, SpecError> {
    let least = model.level0_kept + 1.0;
    let levels = match params.text("levels") {
        None | Some("any") => 0..=sizes::LEVELS_MAX,
        Some("geometric") => {
            let level1 = entries(params, "level1", 10 << 20, setting)?;
            let ratio = ratio(params, 10.0)?;
            let count = LeveledModel::geometric(level1, ratio, setting.popularity.live()).len();
            count..=count
        }
        Some(_) => {
            let count = params.count("levels", 0, 0..=sizes::LEVELS_MAX as u64)? as usize;
            count..=count
        }
    };
    let reads_max = match params.text("read_cost_max") {
        None | Some("any") => return Ok(levels),
        Some(_) => params.real("read_cost_max", least, least..=1e6)?,
    };
    let most = (reads_max - least).floor() as usize;
    if *levels.start() > most {
        return Err(SpecError::conflict(format!(
            "levels = {} consider {} runs: expected read_cost_max of at least that",
            levels.start(),
            least + *levels.start() as f64,
        )));
    }
    Ok(*levels.start()..=(*levels.end()).min(most))
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
    if text == "none" {
        return Ok(Vec::new());
    }
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
    const PICKS: [&str; 8] = [
        "min_overlap",
        "round_robin",
        "narrowest",
        "best_ratio",
        "oldest",
        "whole_level",
        "in_turn",
        "random",
    ];
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
        sweep: if pick == "random" { Sweep::Random } else { Sweep::RoundRobin },
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
