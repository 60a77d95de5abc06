//! What readers see: a tree with its tables open and its memtables at hand.
//!
//! A [`Version`] never changes. Readers hold the one that was current when they began; a table
//! leaves the disk when it is obsolete and no version holds it.

mod space;
mod table_handle;
mod view;

pub(crate) use space::{Core, Failure, Held, Space};
pub(crate) use table_handle::TableHandle;
pub(crate) use view::{Moment, OpenRun, Version};
