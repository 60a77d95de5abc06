//! The nouns of an LSM tree.

mod entry;

pub use entry::{EntryKind, SeqNo, logical_bytes};
