//! LevelDB's design with its sizes.

use lsmith_model::formulas::{LeveledModel, Sweep};
use lsmith_model::{KeyOrder, LEVELS_MAX, Model, Popularity, Setting, optimal_sizes};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_spec::{Spec, format_bytes};
use std::sync::Arc;

/// Logical bytes of an entry, of LevelDB's write buffer, table and level 1.
pub(super) const ITEM_BYTES: f64 = 1000.0;
const BUFFER_BYTES: f64 = 4.0 * 1024.0 * 1024.0;
const TABLE_BYTES: f64 = BUFFER_BYTES / 2.0;
const LEVEL1_BYTES: f64 = 10.0 * 1024.0 * 1024.0;
/// Entries of level 1.
pub(super) const LEVEL1_ENTRIES: f64 = LEVEL1_BYTES / ITEM_BYTES;
const RATIO: f64 = 10.0;
const LEVEL0_RUNS: u64 = 4;

/// LevelDB's design for one workload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Design {
    pub(super) keys: u64,
    pub(super) skew: f64,
    /// Requests per memtable.
    pub(super) memtable: f64,
    /// Entries of each level from 1 to the one before the last.
    pub(super) sizes: Vec<f64>,
    pub(super) pick: Pick,
}

/// The table that a full level merges down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The next keys behind the last merged ones, up to the end of their table: `leveldb`.
    InTurn,
    /// Any table: `rocksdb`.
    Random,
}

/// The numbers of levels that optimized sizes may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Levels {
    AsMany,
    Any,
}

impl Design {
    /// Returns LevelDB's default design, with items of 1000 bytes.
    pub(super) fn leveldb(keys: u64, skew: f64) -> Design {
        Design {
            keys,
            skew,
            memtable: BUFFER_BYTES / ITEM_BYTES,
            sizes: LeveledModel::geometric(LEVEL1_ENTRIES, RATIO, keys as f64),
            pick: Pick::InTurn,
        }
    }

    /// Returns the same design with the level sizes of least cost, for the same number of levels or
    /// for any number.
    pub(super) fn optimized(&self, levels: Levels) -> anyhow::Result<Design> {
        let count = match levels {
            Levels::AsMany => self.sizes.len()..=self.sizes.len(),
            Levels::Any => 0..=LEVELS_MAX,
        };
        let sizes = optimal_sizes(&self.leveled(), &self.popularity()?, count);
        Ok(Design { sizes, ..self.clone() })
    }

    fn popularity(&self) -> anyhow::Result<Popularity> {
        Ok(Popularity::zipf(self.keys, self.skew)?)
    }

    fn leveled(&self) -> LeveledModel {
        LeveledModel {
            memtable: self.memtable,
            level0_merged: LEVEL0_RUNS as f64,
            level0_kept: (LEVEL0_RUNS - 1) as f64 / 2.0,
            sizes: self.sizes.clone(),
            sweep: match self.pick {
                Pick::InTurn => Sweep::RoundRobin,
                Pick::Random => Sweep::Random,
            },
            false_overlap: 1.0,
        }
    }

    /// Returns the result of the formula.
    pub(super) fn model(&self) -> anyhow::Result<Model> {
        Ok(self.leveled().evaluate(&self.setting(&self.popularity()?)))
    }

    /// Returns the setting of formulas: as many requests as there are keys, by `popularity`.
    pub(super) fn setting<'a>(&self, popularity: &'a Popularity) -> Setting<'a> {
        Setting {
            popularity,
            memtable: self.memtable,
            item_bytes: ITEM_BYTES,
            requests: self.keys as f64,
            false_positives: 1.0,
            loaded: 0.0,
            order: KeyOrder::Random,
        }
    }

    /// Returns the bytes written per byte of requests, by formula.
    pub(super) fn write_cost(&self) -> anyhow::Result<f64> {
        Ok(self.model()?.write_cost_user())
    }

    /// Returns the same design as a policy, for entries of `item_bytes`.
    pub(super) fn policy(&self, item_bytes: u32) -> anyhow::Result<Arc<dyn MergePolicy>> {
        let bytes = |entries: f64| format_bytes((entries * f64::from(item_bytes)).round() as u64);
        let sizes: Vec<String> = self.sizes.iter().map(|size| bytes(*size)).collect();
        let name = match self.pick {
            Pick::InTurn => "leveldb",
            Pick::Random => "rocksdb",
        };
        let spec = Spec::bare(name)
            .with("l0", LEVEL0_RUNS)
            .with("table", bytes(TABLE_BYTES / ITEM_BYTES))
            .with("sizes", if sizes.is_empty() { "none".to_owned() } else { sizes.join(":") });
        Ok(Registry::builtin().build_spec(&spec)?)
    }
}
