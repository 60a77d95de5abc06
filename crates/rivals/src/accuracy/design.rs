//! The designs: which store, with which levels, and by which formula.

use crate::stores::{self, Levels, Settings};
use anyhow::{Result, ensure};
use lsmith_model::formulas::{LeveledModel, Sweep};
use lsmith_model::{KeyOrder, Model, Popularity, Setting};
use lsmith_spec::SpecError;

/// LevelDB's constants.
pub(crate) const LEVEL0_FILES: u32 = 4;
const LEVEL1_BYTES: u64 = 10 << 20;
const RATIO: u32 = 10;
const TABLE_BYTES: u64 = 2 << 20;
const WRITE_BUFFER_BYTES: usize = 4 << 20;

/// A store with levels, and the formula for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Design {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// The store.
    pub(crate) store: &'static str,
    /// The formula.
    pub(crate) formula: &'static str,
    /// Whether the next table in key order goes down, not the largest.
    in_turn: bool,
}

/// All designs.
const DESIGNS: [Design; 3] = [
    Design { name: "leveldb", store: "leveldb", formula: "leveldb", in_turn: true },
    Design { name: "rocksdb", store: "rocksdb", formula: "rocksdb", in_turn: false },
    Design { name: "rocksdb-in-turn", store: "rocksdb", formula: "leveldb", in_turn: true },
];

/// The designs with these names; without names all whose stores were built in.
pub(crate) fn named(names: &[String]) -> Result<Vec<Design>> {
    let built = |design: &Design| stores::find(design.store).is_ok();
    if names.is_empty() {
        let found: Vec<Design> = DESIGNS.into_iter().filter(built).collect();
        ensure!(!found.is_empty(), "neither store was built in: use `--features rocksdb,leveldb`");
        return Ok(found);
    }
    let known = DESIGNS.map(|design| design.name);
    let of = |name: &String| {
        let found = DESIGNS.into_iter().find(|design| design.name == name);
        let design = found.ok_or_else(|| SpecError::unknown("design", name, &known))?;
        stores::find(design.store)?;
        Ok(design)
    };
    names.iter().map(of).collect()
}

impl Design {
    /// What the store is opened with.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            // Stores have two buffers.
            buffer_bytes: 2 * WRITE_BUFFER_BYTES,
            levels: Some(Levels {
                level0_files: LEVEL0_FILES,
                level1_bytes: LEVEL1_BYTES,
                ratio: RATIO,
                table_bytes: TABLE_BYTES,
                in_turn: self.in_turn,
            }),
            ..Settings::default()
        }
    }

    /// What the formula says for so many keys of `item_bytes`, with memtables of so many requests.
    /// `false_overlap` is how much more of the next level is rewritten than a table overlaps, in
    /// tables: 1 in the paper, 0 if tables end where tables of the next level end.
    pub(crate) fn model(
        &self,
        keys: u32,
        skew: f64,
        item_bytes: f64,
        memtable_requests: f64,
        false_overlap: f64,
    ) -> Result<Model> {
        let popularity = Popularity::zipf(u64::from(keys), skew)?;
        let setting = Setting {
            popularity: &popularity,
            memtable: memtable_requests,
            item_bytes,
            requests: popularity.keys(),
            false_positives: 1.0,
            loaded: 0.0,
            order: KeyOrder::Random,
        };
        let level1 = LEVEL1_BYTES as f64 / item_bytes;
        let files = f64::from(LEVEL0_FILES);
        let model = LeveledModel {
            memtable: memtable_requests,
            level0_merged: files,
            level0_kept: (files - 1.0) / 2.0,
            sizes: LeveledModel::geometric(level1, f64::from(RATIO), popularity.keys()),
            sweep: if self.in_turn { Sweep::RoundRobin } else { Sweep::Random },
            false_overlap,
        };
        Ok(model.evaluate(&setting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_designs_are_refused() {
        let error = named(&["leveldbb".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("leveldb"), "{error}");
    }

    /// The paper's setting, and costs computed elsewhere from its definitions.
    #[test]
    fn formulas_are_those_of_the_paper() {
        for (design, expected) in [(DESIGNS[0], 12.90), (DESIGNS[1], 17.49)] {
            let model = design.model(1_000_000, 0.0, 1000.0, 4194.304, 1.0).unwrap();
            assert!((model.write_cost_user() / expected - 1.0).abs() < 0.005, "{design:?}");
        }
    }
}
