//! Reading in order: from many sources of entries to one order, and from entries to what a user
//! sees.
//!
//! ```text
//! tables of a run ---> ConcatCursor --\
//! memtables -----------------------------> MergingCursor --> VisibleIter: what a snapshot sees
//! ```

mod concat;
mod merging;
#[cfg(test)]
pub(crate) mod vec_cursor;
mod visible;

pub use concat::{ConcatCursor, Parts};
pub use merging::MergingCursor;
pub use visible::VisibleIter;
