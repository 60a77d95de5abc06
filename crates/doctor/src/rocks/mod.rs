//! The compaction pickers of RocksDB, as policies of simulations.
//!
//! `rocksdb` and `universal` of lsmith are what papers simulate. A replay is held against what a
//! real RocksDB counted, so it needs the rules that RocksDB 7 to 9 really follow: how level 0 is
//! scored, which table goes down, how deletes weigh, and how level sizes follow from the tree.
//! These policies see only trees that they have built themselves.

mod level;
mod universal;

pub(crate) use level::{Level, Pri};
pub(crate) use universal::Universal;

use lsmith_tree::Size;

/// How much more the value counts that a delete hides (`kDeletionWeightOnCompaction`).
const DELETE_WEIGHT: f64 = 2.0;

/// Returns the bytes that a table counts for where compactions are picked: more than it has, if
/// most of its entries are deletes (`compensated_file_size`).
fn compensated(size: Size, value_bytes: f64) -> f64 {
    let excess = (2 * size.tombstones).saturating_sub(size.entries) as f64;
    size.bytes as f64 + excess * value_bytes * DELETE_WEIGHT
}
