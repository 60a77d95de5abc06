//! Immutable tables: sorted files of checksummed blocks with fence pointers and a filter.
//!
//! [`TableWriter`] writes a table from entries in the store's order. [`Table`] reads it:
//! [`Table::find`] reads one key, [`Table::cursor`] reads in order, [`Table::verify`] checks
//! everything. Open tables share one [`BlockCache`]. The module `format` encodes and decodes the
//! bytes, and `docs/format.md` documents them.

mod cache;
mod cursor;
mod mapped;
mod reader;
mod remains;
mod search;
mod table_file;
#[cfg(test)]
mod tests;
mod verify;
mod visible;
mod waits;
mod writer;

pub use crate::format::{Codec, ProfileGrain, TableFacts};
pub use cache::BlockCache;
pub use cache::Cache;
pub use cursor::{CacheFill, TableCursor};
pub use reader::{ReadCount, ReadTally, Table, TableMemory};
pub use remains::{BlockWalk, Piece, TableRemains};
pub use writer::{OUTSIDE, TableOptions, TableWriter};
