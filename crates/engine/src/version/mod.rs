//! What readers see: a tree with its tables open and its memtables at hand.
//!
//! A [`Version`] never changes. Readers hold the one that was current when they began; a table
//! leaves the disk when it is obsolete and no version holds it.

mod change;
mod memory;
mod moment;
mod open_run;
mod reclaim;
mod shown;
mod table_handle;
mod view;

pub(crate) use change::Change;
pub(crate) use memory::MemoryRun;
pub(crate) use moment::Moment;
pub(crate) use open_run::{OpenRun, OpenSlice};
pub(crate) use reclaim::Reclaim;
use reclaim::Ticket;
pub(crate) use shown::Shown;
pub(crate) use table_handle::TableHandle;
pub(crate) use view::{Source, Value, Version};
