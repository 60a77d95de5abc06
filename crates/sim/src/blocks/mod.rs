//! Block content: fixed-size records in data blocks that can be partly full, as Thonangi & Yang
//! simulate and store them (ICDE 2017, section II-B).
//!
//! Every record counts the same, deletes too. Memory is one sorted buffer that takes writes while
//! windows of it are merged away; below it every level is a run of blocks. A merge writes blocks,
//! or keeps old ones where no other input has keys, and the figures count blocks written. The
//! content is keyed content with small records, so merges are the same as there.

mod memory;
mod record;
mod run;

pub use record::BlockRecord;
pub use run::{BlockContent, BlockFigures, BlockSim, BlockSizes};
