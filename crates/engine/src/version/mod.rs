//! Versions, which readers see: a tree with its tables open, and its memtables.
//!
//! A [`Version`] never changes, except that writers add to its active memtable. A reader holds the
//! version that was current when it began. The file of a table is removed when the table is
//! obsolete and no version holds it.

mod counted;
mod get;
mod memory;
mod moment;
mod newer;
mod open_run;
mod own;
mod prefixes;
mod range_deletes;
mod reclaim;
mod shown;
mod source;
mod table_handle;
mod value;

pub(crate) use counted::CountedReads;
pub(crate) use get::{KEYS_TOGETHER, dropped};
pub(crate) use memory::MemoryRun;
pub(crate) use moment::Moment;
pub(crate) use open_run::{OpenRun, OpenSlice};
pub(crate) use own::OwnWrites;
pub(crate) use reclaim::Reclaim;
use reclaim::Ticket;
pub(crate) use shown::ShownRanges;
pub(crate) use source::Source;
pub(crate) use table_handle::{TableHandle, TablePlace};
pub(crate) use value::Value;

use crate::rules::Rules;
use crate::values::ValueFiles;
use lsmith_storage::memtable::Memtable;
use lsmith_tree::{RangeDeletes, RunId, Tree};
use std::sync::Arc;

/// Everything that a reader needs, as of one moment: memtables and runs, newest first.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) active: Arc<Memtable>,
    /// The range deletes of the tree and of sealed memtables. `None` if there are none. The active
    /// memtable has its own.
    pub(crate) range_deletes: Option<Box<RangeDeletes>>,
    pub(crate) memory: Vec<Arc<MemoryRun>>,
    pub(crate) runs: Vec<Arc<OpenRun>>,
    pub(crate) tree: Tree,
    pub(crate) rules: Arc<Rules>,
    /// The value files. `None` if there are no entries.
    pub(crate) values: Option<Arc<ValueFiles>>,
    /// Where reads are counted. `None` if the policy does not need that.
    pub(crate) counted: Option<Arc<CountedReads>>,
    /// Dropped last. Until then nothing that the runs show is freed.
    pub(crate) ticket: Option<Ticket>,
    /// True if the keyspace was dropped. The version is then empty, and reads fail.
    pub(crate) is_dropped: bool,
}

impl Drop for Version {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let memory = std::mem::take(&mut self.memory);
        let runs = std::mem::take(&mut self.runs);
        let tree = std::mem::take(&mut self.tree);
        let leftovers = ticket.leftovers();
        // The fields of a tuple are dropped in order, the ticket last.
        let version = (Arc::clone(&self.active), memory, runs, tree, ticket);
        if leftovers.is_here() {
            leftovers.leave(version);
        } else {
            // What would be freed is the parent's.
            std::mem::forget((version, leftovers));
        }
    }
}

impl Version {
    /// Returns the version of a keyspace without entries.
    pub(crate) fn empty() -> Version {
        Version {
            active: Arc::default(),
            range_deletes: None,
            memory: Vec::new(),
            runs: Vec::new(),
            tree: Tree::new(),
            rules: Arc::default(),
            values: None,
            counted: None,
            ticket: None,
            is_dropped: false,
        }
    }

    /// Returns the run in memory with id `run`, if there is one.
    pub(crate) fn memory_run(&self, run: RunId) -> Option<&Arc<MemoryRun>> {
        self.memory.iter().find(|memory| memory.run().id() == run)
    }

    /// Returns the run on storage with id `run`, if there is one.
    pub(crate) fn disk_run(&self, run: RunId) -> Option<&Arc<OpenRun>> {
        self.runs.iter().find(|open| open.run().id() == run)
    }
}
