//! What readers see: a tree with its tables open and its memtables at hand.
//!
//! A [`Version`] never changes. Readers hold the one that was current when they began; a table
//! leaves the disk when it is obsolete and no version holds it.

mod memory;
mod reclaim;
mod shown;
mod space;
mod table_handle;
mod view;

pub(crate) use memory::MemoryRun;
pub(crate) use reclaim::Reclaim;
use reclaim::Ticket;
pub(crate) use space::{Core, Failure, Held, SEALED_MAX, Space, Writes};
pub(crate) use table_handle::TableHandle;
pub(crate) use view::{Moment, OpenRun, OpenSlice, Source, Version, filled};
