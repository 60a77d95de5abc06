//! Sealed memtables, before plans take them.
//!
//! * [`seal`](mod@seal): the active memtable becomes the newest run in memory.
//! * [`fold`]: under a policy that counts in blocks, memory is one sorted run, and plans take key
//!   ranges of it. Whenever a memtable is sealed, its entries are copied into that run. The entries
//!   that are already there stay where they are.
//! * [`spill`]: if entries stay in memory for so long that they keep too much of the log, all of
//!   memory is copied to a file, which replaces the start of the log.

mod fold;
mod onto;
mod seal;
mod spill;

pub(crate) use fold::ReservedFold;
pub(crate) use seal::{seal, seal_while_opening};
pub(crate) use spill::{
    ReservedSpill, Spilled, read_spill, remove_spill, spilled_keyspace, take_record,
};
