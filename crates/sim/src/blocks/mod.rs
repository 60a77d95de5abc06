//! Block content: fixed-size entries in data blocks that can be partly full, as in Thonangi & Yang
//! (ICDE 2017, section II-B).
//!
//! All entries have the same size, deletes too. Memory is one sorted buffer that takes writes while
//! windows of it are merged away; below it every level is a run of blocks. A merge writes blocks,
//! or keeps old ones if no other input has keys there, and the figures count blocks written. The
//! content is keyed content with small entries, so merges agree with keyed simulations.

mod entry;
mod memory;
mod run;

pub use entry::BlockEntry;
pub use run::{BlockContent, BlockFigures, BlockSim, BlockSizes};
