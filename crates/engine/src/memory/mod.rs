//! What becomes of sealed memtables before plans take them.
//!
//! * Under a policy that counts in blocks, memory is one sorted run, of which plans take key
//!   ranges: whenever a memtable is sealed, it is folded with what is left of that run
//!   ([`fold`]).
//! * Where entries stay in memory for so long that they hold on to too much of the log, all of
//!   memory is copied to a file, which stands in for the start of the log ([`spill`]).

mod fold;
mod onto;
mod seal;
mod spill;

pub(crate) use fold::ReservedFold;
pub(crate) use seal::{seal, seal_while_opening};
pub(crate) use spill::{
    ReservedSpill, Spilled, read_spill, remove_spill, spilled_keyspace, take_record,
};
