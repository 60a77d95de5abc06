//! Reads in order: merges many sources of entries into one order, and turns entries into the keys
//! and values that a user sees.
//!
//! ```text
//! tables of a run ---> ConcatCursor --\
//! memtables -----------------------------> MergingCursor --> VisibleIter: view of a snapshot
//! ```

mod concat;
mod hidden;
mod leaps;
mod merging;
#[cfg(test)]
pub(crate) mod vec_cursor;
mod visible;
mod without;

pub use concat::{ConcatCursor, Parts};
pub use hidden::Hidden;
pub(crate) use leaps::Leaps;
pub use merging::MergingCursor;
pub use visible::VisibleIter;
pub use without::Without;
