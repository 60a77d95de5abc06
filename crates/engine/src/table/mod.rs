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

pub(crate) use crate::format::{Codec, ProfileGrain, TableFacts};
pub(crate) use cache::BlockCache;
pub use cache::Cache;
pub(crate) use cursor::{CacheFill, TableCursor};
pub(crate) use reader::{ReadCount, ReadTally, Table};
pub(crate) use remains::{BlockWalk, Piece, TableRemains};
pub(crate) use writer::{TableOptions, TableWriter};
