//! Formulas of stacks, slots, textbooks and append tables.

use crate::cost::{Bound, Ignored, Model, Setting};
use crate::formulas::info::{FormulaInfo, FormulaParam, ratio};
use crate::formulas::{
    AppendNodes, DeadShare, IndexShare, JungleModel, JungleTables, SiltModel, SlotModel, Slots,
    Take, Textbook, UniversalModel, bounded_runs, constant, least_with_runs, partial, tiered,
    triangular, triangular_levels, unmerged,
};
use lsmith_spec::{Params, Spec, SpecError};

const MAO: &str = "Mao et al., VLDB Journal 2021, section 2";
const LIM: &str = "Lim et al., FAST 2016";
const THONANGI: &str = "Thonangi & Yang, ICDE 2017, section III";

const RUNS: FormulaParam = FormulaParam { name: "k", default: "5", meaning: "most runs, 1 to 64" };
const GROWTH: FormulaParam = FormulaParam {
    name: "ratio",
    default: "10",
    meaning: "size of a level over that of the level above, more than 1",
};
const SLOTS: FormulaParam = FormulaParam {
    name: "ratio",
    default: "3",
    meaning: "size of a level's slot over that of the level above, 2 to 1000",
};
const RATE: FormulaParam = FormulaParam {
    name: "rate",
    default: "0.07",
    meaning: "share of a level that goes down at once, more than 0 and less than 1",
};

/// These formulas take all requests to be for different keys.
const KEYS: &[Ignored] = &[Ignored::Popularity];

const KEYS_AND_ORDER: &[Ignored] = &[Ignored::Popularity, Ignored::KeyOrder];

/// The formulas, in listing order.
pub(super) const INFOS: [FormulaInfo; 18] = [
    slots(
        "cola",
        "levels of one run, merged on when it has grown ratio times",
        |params, setting| slot_model(params, setting, Slots::Merged),
    ),
    slots("samt", "levels of ratio runs, merged on when all are there", |params, setting| {
        slot_model(params, setting, Slots::Apart)
    }),
    FormulaInfo {
        name: "universal",
        source: "RocksDB; Lim et al., FAST 2016, for carrying the rules out on expected sizes",
        summary: "the newest runs of like size are merged when there are too many",
        params: &[
            FormulaParam { name: "trigger", default: "12", meaning: "runs at which to merge" },
            FormulaParam {
                name: "size_ratio",
                default: "1",
                meaning: "percent by which a run may be larger than all newer ones together",
            },
            FormulaParam {
                name: "space_max",
                default: "200",
                meaning: "percent of the oldest run that all others may come to",
            },
            FormulaParam { name: "rounds", default: "10", meaning: "requests per key" },
        ],
        bound: None,
        ignores: &[],
        evaluate: universal,
    },
    FormulaInfo {
        name: "silt",
        source: "Lim et al., SOSP 2011, for the design; Lim et al., FAST 2016, for expected sizes",
        summary: "memtables become hash stores, and those a part of the one sorted store",
        params: &[
            FormulaParam {
                name: "hash_stores",
                default: "62",
                meaning: "hash stores that are merged together",
            },
            FormulaParam {
                name: "occupancy",
                default: "0.93",
                meaning: "entries per place of a hash store, 0.01 to 1",
            },
            FormulaParam {
                name: "grown",
                default: "none",
                meaning: "share of all keys, less than 1, that a larger hash store may hold, into \
                          which the others are merged first",
            },
        ],
        bound: None,
        ignores: &[],
        evaluate: silt,
    },
    FormulaInfo {
        name: "none",
        source: "baseline",
        summary: "every flush stays a run",
        params: &[],
        bound: None,
        ignores: &[],
        evaluate: |_, setting| Ok(unmerged(setting)),
    },
    FormulaInfo {
        name: "constant",
        source: MAO,
        summary: "all runs are merged each k flushes",
        params: &[RUNS],
        bound: None,
        ignores: &[],
        evaluate: |params, setting| Ok(constant(setting, params.count("k", 5, 1..=64)?)),
    },
    FormulaInfo {
        name: "minlatency",
        source: "Mathieu et al., Bigtable merge compaction (2014)",
        summary: "a bound from above, for flushes that share no key",
        params: &[RUNS],
        bound: Some(Bound::Upper),
        ignores: KEYS,
        evaluate: |params, setting| Ok(bounded_runs(setting, params.count("k", 5, 1..=64)?)),
    },
    FormulaInfo {
        name: "binomial",
        source: "Mathieu et al., Bigtable merge compaction (2014)",
        summary: "a bound from above, for flushes that share no key",
        params: &[RUNS],
        bound: Some(Bound::Upper),
        ignores: KEYS,
        evaluate: |params, setting| Ok(bounded_runs(setting, params.count("k", 5, 1..=64)?)),
    },
    FormulaInfo {
        name: "tiered",
        source: MAO,
        summary: "ratio runs of a level become one of the next",
        params: &[FormulaParam {
            name: "ratio",
            default: "4",
            meaning: "runs of a level that become one of the next, 2 to 1000",
        }],
        bound: None,
        ignores: &[],
        evaluate: |params, setting| Ok(tiered(setting, params.count("ratio", 4, 2..=1000)?)),
    },
    textbook("leveling", "worst case L T", |params, setting| {
        Ok(Textbook::Leveling.evaluate(setting, ratio(params, 10.0)?))
    }),
    textbook("tiering", "worst case L", |params, setting| {
        Ok(Textbook::Tiering.evaluate(setting, ratio(params, 10.0)?))
    }),
    FormulaInfo {
        // The policy with this name has the same default.
        params: &[FormulaParam { default: "4", ..GROWTH }],
        ..textbook("lazy_leveling", "worst case L - 1 + T", |params, setting| {
            Ok(Textbook::LazyLeveling.evaluate(setting, ratio(params, 4.0)?))
        })
    },
    FormulaInfo {
        name: "jungle",
        source: "Ahn et al., HotStorage 2019, table of costs",
        summary: "levels of append tables: (L + 1/c) (1 + index)",
        params: &[
            FormulaParam {
                name: "c",
                default: "3",
                meaning: "bytes of an append table over its live bytes at which it is \
                          rewritten; of several, as 10/5/3, that of the last level counts",
            },
            FormulaParam {
                name: "space",
                default: "",
                meaning: "in place of c: bytes of all append tables over their live bytes",
            },
            GROWTH,
            FormulaParam {
                name: "index",
                default: "0",
                meaning: "index bytes written per value byte, from key over value to c times that",
            },
            FormulaParam {
                name: "key",
                default: "",
                meaning: "in place of index: bytes of a key, from which the index is predicted",
            },
            FormulaParam {
                name: "own",
                default: "key",
                meaning: "bytes of a key that the key in front of it does not have",
            },
        ],
        bound: None,
        ignores: KEYS_AND_ORDER,
        evaluate: |params, setting| Ok(jungle(params, setting)?.evaluate(setting)),
    },
    FormulaInfo {
        name: "triangular",
        source: "the cost script of lsmtk's author",
        summary: "triangles over levels that double: 1 + L/2",
        params: &[FormulaParam {
            name: "levels",
            default: "auto",
            meaning: "levels; auto: as many as doublings from a memtable to all keys",
        }],
        bound: Some(Bound::Upper),
        ignores: KEYS_AND_ORDER,
        evaluate: |params, setting| {
            let levels = match params.text("levels") {
                None | Some("auto") => triangular_levels(setting),
                Some(_) => params.count("levels", 11, 1..=64)? as u32,
            };
            Ok(triangular(setting, levels))
        },
    },
    bound(
        "full",
        "whole levels go down: (ratio + 1) / 2 per level",
        &[GROWTH],
        |params, setting| Ok(partial(setting, Take::All, ratio(params, 10.0)?, 1.0)),
    ),
    bound(
        "rr",
        "windows in turn: ratio / (1 - rate) per level",
        &[GROWTH, RATE],
        |params, setting| Ok(partial(setting, Take::Next, ratio(params, 10.0)?, rate(params)?)),
    ),
    bound(
        "choose_best",
        "the window with the least below: at most ratio + 1 per level",
        &[GROWTH, RATE],
        |params, setting| Ok(partial(setting, Take::Best, ratio(params, 10.0)?, rate(params)?)),
    ),
    FormulaInfo {
        name: "optimum",
        source: "Bentley & Saxe (1980); Mathieu et al. (2014)",
        summary: "the least that at most k runs can cost, offline, for flushes that share no key",
        params: &[RUNS],
        bound: Some(Bound::Lower),
        ignores: KEYS,
        evaluate: |params, setting| Ok(least_with_runs(setting, params.count("k", 5, 1..=64)?)),
    },
];

type Evaluate = fn(&Params<'_>, &Setting<'_>) -> Result<Model, SpecError>;

const fn slots(name: &'static str, summary: &'static str, evaluate: Evaluate) -> FormulaInfo {
    let params = &[SLOTS];
    let bound = None;
    let ignores = &[];
    FormulaInfo { name, source: LIM, summary, params, bound, ignores, evaluate }
}

const fn textbook(name: &'static str, summary: &'static str, evaluate: Evaluate) -> FormulaInfo {
    let source = "Ahn et al., HotStorage 2019; Dayan & Idreos, SIGMOD 2018";
    let params = &[GROWTH];
    let bound = Some(Bound::Upper);
    let ignores = KEYS_AND_ORDER;
    FormulaInfo { name, source, summary, params, bound, ignores, evaluate }
}

const fn bound(
    name: &'static str,
    summary: &'static str,
    params: &'static [FormulaParam],
    evaluate: Evaluate,
) -> FormulaInfo {
    let bound = Some(Bound::Upper);
    let ignores = KEYS_AND_ORDER;
    FormulaInfo { name, source: THONANGI, summary, params, bound, ignores, evaluate }
}

fn slot_model(
    params: &Params<'_>,
    setting: &Setting<'_>,
    slots: Slots,
) -> Result<Model, SpecError> {
    let ratio = params.count("ratio", 3, 2..=1000)?;
    Ok(SlotModel { memtable: setting.sealed(), ratio, slots }.evaluate(setting))
}

fn silt(params: &Params<'_>, setting: &Setting<'_>) -> Result<Model, SpecError> {
    let grown = match params.text("grown") {
        None | Some("none") => None,
        Some(_) => Some(params.real("grown", 0.1, 0.0..=0.999)?),
    };
    let model = SiltModel {
        log: setting.sealed(),
        occupancy: params.real("occupancy", 0.93, 0.01..=1.0)?,
        hash_stores: params.count("hash_stores", 62, 1..=100_000)?,
        grown,
    };
    Ok(model.evaluate(setting))
}

fn universal(params: &Params<'_>, setting: &Setting<'_>) -> Result<Model, SpecError> {
    let rounds = params.real("rounds", 10.0, 0.0..=1000.0)?;
    let memtable = setting.sealed();
    let requests = rounds * setting.popularity.keys();
    let flushes = requests / memtable;
    if flushes > UniversalModel::FLUSHES_MAX {
        return Err(SpecError::conflict(format!(
            "universal carries out each flush, and {flushes:.3e} are too many: expected at most \
             {}; take larger memtables, fewer keys, or fewer rounds",
            UniversalModel::FLUSHES_MAX
        )));
    }
    let model = UniversalModel {
        memtable,
        trigger: params.count("trigger", 12, 2..=1000)? as usize,
        size_ratio: params.real("size_ratio", 1.0, 0.0..=1000.0)?,
        space_percent_max: params.real("space_max", 200.0, 1.0..=1e6)?,
        requests,
    };
    Ok(model.evaluate(setting))
}

fn rate(params: &Params<'_>) -> Result<f64, SpecError> {
    let rate = params.real("rate", 0.07, 0.0..1.0)?;
    if rate > 0.0 {
        Ok(rate)
    } else {
        Err(SpecError::conflict("rate = 0 is out of range: expected more than 0"))
    }
}

/// Returns the costs of the store's policy `jungle` with the parameters of `spec`: means over all
/// full memtables of `setting`. [`evaluate`](super::evaluate) uses the paper's table of costs.
/// `None` if single entries make append tables, which is [beyond the formula](JungleTables::holds).
///
/// # Errors
/// Fails if a parameter is unknown or has a wrong value.
pub fn jungle_tables(spec: &Spec, setting: &Setting<'_>) -> Result<Option<Model>, SpecError> {
    let params = Params::new(spec, &["c", "space", "ratio", "table"], 0)?;
    let ratio = ratio(&params, 10.0)?;
    let is_given = params.text("table").is_some_and(|text| text != "auto");
    let table = if is_given { params.bytes_if_given("table", 1..=1 << 50)? } else { None };
    // The entry that fills a memtable belongs to it. So it has half an entry more than its bytes.
    let table = table.map_or(setting.sealed() - 0.5, |bytes| bytes as f64 / setting.item_bytes);
    let dead = match params.real_if_given("space", 1.0..=1000.0)? {
        Some(space) => DeadShare::All(space),
        None => DeadShare::Each(garbage_ratios(&params)?),
    };
    let jungle = JungleTables { dead, ratio, table };
    Ok(jungle.holds().then(|| jungle.evaluate(setting)))
}

/// Returns the bytes of an append table per live byte at which it is rewritten: a number for each
/// level, the last one for all deeper levels.
fn garbage_ratios(params: &Params<'_>) -> Result<Vec<f64>, SpecError> {
    let Some(list) = params.text("c").filter(|text| text.contains('/')) else {
        return Ok(vec![params.real("c", 3.0, 1.0..=1000.0)?]);
    };
    let limit = |text: &str| {
        let limit = text.parse::<f64>().ok().filter(|c| (1.0..=1000.0).contains(c));
        limit.ok_or_else(|| {
            let expected = "expected a number from 1 to 1000 for each level, as 10/5/3";
            SpecError::conflict(format!("c = {list}: {text} is out of range: {expected}"))
        })
    };
    list.split('/').map(limit).collect()
}

/// Returns the bytes of an append table of the last of `levels` per live byte at which it is
/// rewritten.
fn garbage_ratio(params: &Params<'_>, levels: usize) -> Result<f64, SpecError> {
    let each = garbage_ratios(params)?;
    let each = each.get(levels - 1).or(each.last()).copied().unwrap_or(3.0);
    // Append tables that are all written equally often hold half of what they may, in the mean.
    let all = params.real_if_given("space", 1.0..=500.0)?;
    Ok(all.map_or(each, |space| 2.0 * space - 1.0))
}

/// Returns the formula of jungle.
fn jungle(params: &Params<'_>, setting: &Setting<'_>) -> Result<JungleModel, SpecError> {
    let ratio = ratio(params, 10.0)?;
    let levels = JungleModel::level_sizes(setting, ratio);
    let garbage_ratio = garbage_ratio(params, levels.len())?;
    let share = IndexShare::both(params.real("index", 0.0, 0.0..=100.0)?);
    let index = match params.real_if_given("key", 1.0..=65536.0)? {
        Some(key) => {
            let own = params.real("own", key, 0.0..=65536.0)?.min(key);
            let table = setting.sealed();
            let file_bytes = table * setting.item_bytes * garbage_ratio;
            let nodes = AppendNodes::of_keys(key, own, setting.item_bytes, file_bytes);
            let levels = AppendNodes::levels(table, &levels);
            nodes.share(table, &levels, garbage_ratio, garbage_ratio - 1.0)
        }
        None => share,
    };
    Ok(JungleModel { garbage_ratio, ratio, index })
}
