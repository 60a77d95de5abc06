//! Keyed simulation: every key has a rank, so that locality, updates and deletes count.

mod append;
mod blocks;
mod cached;
mod content;
mod entry;
mod filled;
mod hiding;
mod keyspaces;
mod memtable;
mod merge;
mod preserve;
mod ranges;
mod rank;
mod run;
mod scan;
mod table;
mod tables;
mod unions;

pub use content::KeyedContent;
pub use entry::{Expired, KeyedEntry};
pub(crate) use entry::{is_tombstone, kind_of};
pub use filled::FullMemtables;
pub(crate) use rank::rank_from;
pub use rank::rank_key;
pub use run::KeyedSim;
pub(crate) use scan::scan;
