//! LevelDB and RocksDB as Lim et al. model them: levels of given sizes.

use super::{Capacities, Level0, Leveled, Pick};
use crate::{ParamInfo, PolicyInfo};
use lsmith_spec::{Params, Spec, SpecError, format_bytes, parse_bytes};
use lsmith_tree::LEVELS_MAX;
use std::sync::Arc;

const SOURCE: &str = "Lim et al., FAST 2016";

/// The spelling of no level between level 0 and the last.
const NO_SIZES: &str = "none";

const PARAMS: &[ParamInfo] = &[
    ParamInfo {
        name: "l0",
        default: "4",
        meaning: "runs of level 0 that are merged into level 1 together, 1 to 1000",
    },
    ParamInfo { name: "level1", default: "10MiB", meaning: "bytes of level 1" },
    ParamInfo {
        name: "ratio",
        default: "10",
        meaning: "bytes of a level over those of the level above, more than 1",
    },
    ParamInfo {
        name: "sizes",
        default: "geometric",
        meaning: "bytes of the levels from 1 to the one before the last, as 10MiB:80MiB, and the \
                  last has no limit; none, where level 1 is the last; geometric, from level1 by \
                  ratio; or optimal, the sizes that \
                  cost least by formula, for commands that know the workload",
    },
    ParamInfo {
        name: "levels",
        default: "any",
        meaning: "levels that optimal sizes may have, without level 0 and the last: any, geometric \
                  (as many as geometric sizes have), or a number",
    },
    ParamInfo {
        name: "read_cost_max",
        default: "any",
        meaning: "runs that a lookup may consider in the mean with optimal sizes",
    },
    ParamInfo { name: "table", default: "2MiB", meaning: "bytes of a table" },
];

impl Leveled {
    /// LevelDB by Lim et al., FAST 2016: when level 0 has `l0` runs, all of it is merged into level
    /// 1. Of any other level that exceeds its size, one table goes down, in turn.
    pub const LEVELDB: PolicyInfo = PolicyInfo {
        name: "leveldb",
        source: SOURCE,
        summary: "level 0 goes down as a whole; a level that is full is swept in key order",
        params: PARAMS,
        build: |params| Ok(Arc::new(original("leveldb", params, Pick::InTurn)?)),
    };

    /// RocksDB as Lim et al. model it (FAST 2016): as LevelDB, but a random table of the level goes
    /// down. RocksDB itself took the largest table, which costs as much as a random one.
    pub const ROCKSDB: PolicyInfo = PolicyInfo {
        name: "rocksdb",
        source: SOURCE,
        summary: "level 0 goes down as a whole; of a level that is full, any table",
        params: PARAMS,
        build: |params| Ok(Arc::new(original("rocksdb", params, Pick::Random)?)),
    };
}

fn original(name: &str, params: &Params<'_>, pick: Pick) -> Result<Leveled, SpecError> {
    let runs = params.count("l0", 4, 1..=1000)?;
    let level1 = params.bytes("level1", 10 << 20, 1..=1 << 60)?;
    let ratio = params.real("ratio", 10.0, 1.0..=1000.0)?;
    if ratio <= 1.0 {
        return Err(SpecError::conflict("ratio = 1 is out of range: expected more than 1"));
    }
    let table = params.bytes("table", 2 << 20, 1..=1 << 50)?;
    let sizes = given_sizes(params)?;
    let bare = Spec::bare(name).with("l0", runs);
    let spec = match &sizes {
        Some(sizes) => bare.with("sizes", spelled(sizes)),
        None => bare.with("level1", format_bytes(level1)).with("ratio", ratio),
    };
    let geometric = |level: usize| level1 as f64 * ratio.powi(level as i32 - 1);
    let capacity = |level: usize| match &sizes {
        _ if level == 0 => 0.0,
        Some(sizes) => sizes.get(level - 1).map_or(f64::INFINITY, |bytes| *bytes as f64),
        None => geometric(level),
    };
    Ok(Leveled {
        spec: spec.with("table", format_bytes(table)),
        ratio: sizes.as_deref().map_or(ratio, |sizes| mean_ratio(sizes).unwrap_or(ratio)),
        level0: Level0::All { runs },
        pick,
        table_bytes: Some(table),
        capacities: Capacities::Bytes(std::array::from_fn::<f64, LEVELS_MAX, _>(capacity)),
        is_dynamic: false,
    })
}

/// Returns the sizes that `params` gives, or `None` for geometric ones.
fn given_sizes(params: &Params<'_>) -> Result<Option<Vec<u64>>, SpecError> {
    let text = match params.text("sizes") {
        None | Some("geometric") if params.has("levels") || params.has("read_cost_max") => {
            let message = "levels and read_cost_max are for sizes = optimal";
            return Err(SpecError::conflict(message));
        }
        None | Some("geometric") => return Ok(None),
        Some("optimal") => {
            let message = "sizes = optimal depends on the workload: expected sizes such as \
                           10MiB:80MiB, as `lsmith model` prints them";
            return Err(SpecError::conflict(message));
        }
        Some(text) => text,
    };
    for name in ["level1", "ratio", "levels", "read_cost_max"] {
        if params.has(name) {
            return Err(SpecError::conflict(format!(
                "{name} has no meaning where sizes are given"
            )));
        }
    }
    if text == NO_SIZES {
        return Ok(Some(Vec::new()));
    }
    let parts: Result<Vec<u64>, SpecError> = text.split(':').map(parse_bytes).collect();
    let sizes = parts.map_err(|error| SpecError::conflict(format!("sizes: {error}")))?;
    if sizes[0] > 0 && sizes.is_sorted() && sizes.len() < LEVELS_MAX - 1 {
        Ok(Some(sizes))
    } else {
        Err(SpecError::conflict("sizes: expected sizes above 0 that do not fall, 62 at most"))
    }
}

/// Returns the value of the parameter `sizes` that gives these bytes of levels.
fn spelled(sizes: &[u64]) -> String {
    let texts: Vec<String> = sizes.iter().map(|bytes| format_bytes(*bytes)).collect();
    if texts.is_empty() { NO_SIZES.to_owned() } else { texts.join(":") }
}

/// Returns the geometric mean of the ratios between neighbouring sizes, if it is more than 1.
fn mean_ratio(sizes: &[u64]) -> Option<f64> {
    let [first, .., last] = sizes else { return None };
    let ratio = (*last as f64 / *first as f64).powf(1.0 / (sizes.len() - 1) as f64);
    (ratio > 1.0 && ratio.is_finite()).then_some(ratio)
}
