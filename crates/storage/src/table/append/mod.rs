//! Append tables: append-only files that hold a copy-on-write B+-tree.
//!
//! A batch appends the values of its entries in the order of their keys, then the nodes on their
//! way from the leaves to the top, and then a root with a checksum. Nothing that was written before
//! is changed, so each root goes on showing the entries of its moment. A root is named by the
//! length of the file up to its end.
//!
//! [`AppendTable::create`] writes the first batch of a new file, [`AppendTable::append`] a further
//! one. [`AppendTable::open`] opens a root. What the file has behind that root does not matter, and
//! the next batch is written over it. The module `format` encodes and decodes the bytes, and
//! `docs/format.md` documents them.

mod ahead;
mod batch;
mod blocks;
mod cursor;
mod fetch;
mod filter;
mod group;
mod leaves;
mod nodes;
mod old_leaf;
mod parts;
mod profile;
mod reader;
mod refs;
mod remains;
#[cfg(test)]
mod tests;
mod values;
mod verify;

pub use batch::{Appended, BatchRules};
pub use cursor::AppendCursor;
pub use reader::AppendTable;
pub use remains::{AppendPart, AppendRemains, AppendWalk, FoundRoot, RemainsEntry, RemainsLoss};
