//! What a memory run is read from.

use super::{Folded, Memtable, Version};
use crate::cursor::Cursor;
use crate::sync::atomic::AtomicU64;
use lsmith_tree::SeqNo;
use std::sync::Arc;

/// Entries in memory that nobody adds to any more.
#[derive(Clone, Debug)]
pub enum Sealed {
    /// A memtable as it was written.
    Written(Arc<Memtable>),
    /// What memtables were folded into.
    Folded(Arc<Folded>),
}

impl Sealed {
    /// The newest version of `key` that `snapshot` sees.
    pub fn get(&self, key: &[u8], snapshot: SeqNo) -> Option<Version> {
        match self {
            Sealed::Written(memtable) => memtable.get(key, snapshot),
            Sealed::Folded(folded) => folded.get(key, snapshot),
        }
    }

    /// The newest version of `key` at or below `visible`, for readers without a snapshot.
    pub fn get_latest(&self, key: &[u8], visible: &AtomicU64) -> Option<Version> {
        match self {
            Sealed::Written(memtable) => memtable.get_latest(key, visible),
            // What is folded was visible when its memtable was sealed.
            Sealed::Folded(folded) => folded.get(key, SeqNo::MAX),
        }
    }

    /// A cursor over all entries.
    pub fn cursor(&self) -> Box<dyn Cursor> {
        match self {
            Sealed::Written(memtable) => Box::new(memtable.cursor()),
            Sealed::Folded(folded) => Box::new(folded.cursor()),
        }
    }

    /// Bytes of memory in use, roughly.
    pub fn allocated_bytes(&self) -> usize {
        match self {
            Sealed::Written(memtable) => memtable.allocated_bytes(),
            Sealed::Folded(folded) => folded.allocated_bytes(),
        }
    }

    /// Whether it is packed into blocks already.
    pub fn is_folded(&self) -> bool {
        matches!(self, Sealed::Folded(_))
    }
}
