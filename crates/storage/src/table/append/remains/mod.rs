//! Reads an append table as far as possible, also if parts of it are damaged.
//!
//! A store reads a root from its top node on. Inspection and repair go on where a node is damaged:
//!
//! 1. [`AppendRemains::open`] finds the top node of the root, also if its footer or its root block
//!    is damaged.
//! 2. [`AppendRemains::next_part`] walks the leaves. A damaged node costs the keys between its
//!    separator and the next one, a damaged data block those values that the leaf has in it.
//! 3. [`AppendRemains::salvage`] searches the file for what it still says of lost keys: in nodes
//!    that no readable node leads to, in nodes of earlier batches, and in data blocks.

mod blocks;
mod node;
mod open_keys;
mod root;
mod salvage;
mod walk;

pub use blocks::FoundRoot;
pub use root::AppendRemains;
pub use walk::{AppendPart, AppendWalk, RemainsEntry, RemainsLoss};
