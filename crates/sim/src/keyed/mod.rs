//! Keyed simulation: every key has its place, so that locality, updates and deletes count.

mod content;
mod entry;
mod memtable;
mod run;
mod table;

pub use content::KeyedContent;
pub use run::KeyedSim;
pub use table::rank_key;
