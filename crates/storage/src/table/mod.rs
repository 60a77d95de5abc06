//! Immutable tables: sorted files of checksummed blocks with fence pointers and a filter.
//!
//! [`TableWriter`] writes one from entries in the store's order, [`Table`] reads it: one key with
//! [`Table::find`], in order with [`Table::cursor`], all of it with [`Table::verify`]. Open tables
//! share one [`BlockCache`]. `format/` knows what the bytes mean, `docs/format.md` tells it.

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
pub use writer::{TableOptions, TableWriter};
