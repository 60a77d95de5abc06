//! Tables of two kinds. Sorted tables are immutable files of checksummed blocks with fence pointers
//! and a filter. Append tables are append-only files that hold a B+-tree.
//!
//! [`TableWriter`] writes a sorted table from entries in the store's order. [`Table`] reads it:
//! [`search`](ReadTable::search) reads one key, [`Table::cursor`] reads in order,
//! [`verify`](ReadTable::verify) checks everything. [`AppendTable`] is one root of an append table,
//! and writes the next one. Both kinds implement [`ReadTable`]. [`OpenTable`] is a table of either
//! kind. [`ValueWriter`] and [`ValueFile`] write and read the files of values that lie outside of
//! tables. Open tables share one [`BlockCache`]. The module `format` encodes and decodes the bytes,
//! and `docs/format.md` documents them.

mod append;
mod cache;
mod counts;
mod cursor;
mod mapped;
mod mapped_values;
mod open_files;
mod open_table;
mod read_table;
mod reader;
mod remains;
mod search;
mod table_file;
#[cfg(test)]
mod tests;
mod values;
mod verify;
mod visible;
mod waits;
mod writer;

pub use crate::format::{Codec, ProfileGrain, TableFacts, ValueUse};
pub use append::{
    AppendCursor, AppendPart, AppendRemains, AppendTable, AppendWalk, Appended, BatchRules,
    FoundRoot, RemainsEntry, RemainsLoss,
};
pub use cache::BlockCache;
pub use cache::Cache;
pub use counts::{ReadCount, ReadTally, TableMemory};
pub use cursor::{CacheFill, TableCursor};
pub use open_files::OpenFiles;
pub use open_table::{OpenCursor, OpenTable, RunCursor};
pub use read_table::{ReadCursor, ReadTable};
pub use reader::Table;
pub use remains::{BlockWalk, Piece, TableRemains};
pub use table_file::StoreTable;
pub use values::{ValueFile, ValueWriter};
pub use writer::{OUTSIDE, TableOptions, TableWriter};
