//! The sources of a memory run.

use super::{Folded, FoundVersion, Memtable};
use crate::combine::Stack;
use crate::cursor::Cursor;
use crate::sync::atomic::AtomicU64;
use lsmith_tree::SeqNo;
use std::sync::Arc;

/// Entries in memory to which no writer adds any more.
#[derive(Clone, Debug)]
pub enum Sealed {
    /// A memtable as it was written.
    Written(Arc<Memtable>),
    /// Several memtables folded into one.
    Folded(Arc<Folded>),
}

impl Sealed {
    /// Returns the newest version of `key` that `snapshot` sees.
    pub fn get(&self, key: &[u8], snapshot: SeqNo) -> Option<FoundVersion> {
        match self {
            Sealed::Written(memtable) => memtable.get(key, snapshot),
            Sealed::Folded(folded) => folded.get(key, snapshot),
        }
    }

    /// Returns the newest version of `key` at or below `visible`, for readers without a snapshot.
    pub fn get_latest(&self, key: &[u8], visible: &AtomicU64) -> Option<FoundVersion> {
        match self {
            Sealed::Written(memtable) => memtable.get_latest(key, visible),
            // All folded entries were visible when their memtables were sealed.
            Sealed::Folded(folded) => folded.get(key, SeqNo::MAX),
        }
    }

    /// Adds the versions of `key` that `snapshot` sees to `stack`, newest first, down to one that
    /// makes it whole. For readers without a snapshot, `snapshot` is what is visible.
    pub fn push_on(&self, stack: &mut Stack, key: &[u8], snapshot: impl FnOnce() -> SeqNo) {
        match self {
            Sealed::Written(memtable) => memtable.push_on(stack, key, snapshot),
            Sealed::Folded(folded) => folded.push_on(stack, key, snapshot()),
        }
    }

    /// Returns a cursor over all entries.
    pub fn cursor(&self) -> Box<dyn Cursor> {
        match self {
            Sealed::Written(memtable) => Box::new(memtable.cursor()),
            Sealed::Folded(folded) => Box::new(folded.cursor()),
        }
    }

    /// Returns the memory in use in bytes, roughly.
    pub fn allocated_bytes(&self) -> usize {
        match self {
            Sealed::Written(memtable) => memtable.allocated_bytes(),
            Sealed::Folded(folded) => folded.allocated_bytes(),
        }
    }

    /// Returns true if the entries are already packed into blocks.
    pub fn is_folded(&self) -> bool {
        matches!(self, Sealed::Folded(_))
    }
}
