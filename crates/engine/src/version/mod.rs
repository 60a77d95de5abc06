//! Versions, which readers see: a tree with its tables open, and its memtables.
//!
//! A [`Version`] never changes, except that writers add to its active memtable. A reader holds the
//! version that was current when it began. The file of a table is removed when the table is
//! obsolete and no version holds it.

mod memory;
mod moment;
mod newer;
mod open_run;
mod prefixes;
mod reclaim;
mod shown;
mod table_handle;
mod view;

pub(crate) use memory::MemoryRun;
pub(crate) use moment::Moment;
pub(crate) use open_run::{OpenRun, OpenSlice};
pub(crate) use reclaim::Reclaim;
use reclaim::Ticket;
pub(crate) use shown::ShownRanges;
pub(crate) use table_handle::{TableHandle, TablePlace};
pub(crate) use view::{Source, Value, Version, dropped};
