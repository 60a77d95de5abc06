//! Keyed simulation: every key has a rank, so that locality, updates and deletes count.

mod append;
mod blocks;
mod cached;
mod content;
mod entry;
mod filled;
mod keyspaces;
mod memtable;
mod merge;
mod preserve;
mod ranges;
mod run;
mod scan;
mod table;
mod tables;

pub use content::KeyedContent;
pub use entry::KeyedEntry;
pub(crate) use entry::{is_tombstone, kind_of};
pub use filled::FullMemtables;
pub use keyspaces::KeyspaceBytes;
pub use run::KeyedSim;
pub(crate) use scan::scan;
pub(crate) use table::rank_from;
pub use table::rank_key;
