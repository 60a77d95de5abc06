//! The limit on the space of a store, and how far writers, deletes and merges may go.
//!
//! ```text
//! writers   up to seven eighths, less what memtables will take as tables
//! deletes   up to fifteen sixteenths, so that a full store can be emptied
//! merges    all of it: an output that does not fit is given up, as on a full device
//! ```

use lsmith_storage::env::{Env, Space};
use lsmith_storage::error::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::Arc;

/// This part of the limit is kept for merges, and half of it for deletes.
const KEPT_PART: u64 = 8;

/// What memtables take as tables is at most this part more than they take in memory.
const TABLE_PART: u64 = 4;

/// A merge of all runs is worth it from this part of their bytes on that it may free.
const WORTH_PART: u64 = 16;

/// The least limit, in memtables.
const MEMTABLES_MIN: u64 = 16;

/// The limit on the space of a store.
#[derive(Clone, Debug)]
pub(crate) struct SpaceLimit(pub(crate) Arc<Space>);

impl SpaceLimit {
    /// Returns the limit of `bytes` on the files in `dir`.
    pub(crate) fn of(env: &dyn Env, dir: &Path, bytes: u64) -> Result<SpaceLimit> {
        let space = Space::of(env, dir, bytes).map_err(|error| Error::io("list", dir, error))?;
        Ok(SpaceLimit(Arc::new(space)))
    }

    /// Returns true if writers must wait, while memtables hold `memory` bytes. Deletes have more
    /// room.
    pub(crate) fn is_tight(&self, memory: u64, only_deletes: bool) -> bool {
        let kept = self.kept() / if only_deletes { 2 } else { 1 };
        self.needed(memory) + kept > self.0.limit()
    }

    /// Returns the bytes that merges may write before any input is freed.
    pub(crate) fn room(&self, memory: u64) -> u64 {
        self.0.limit().saturating_sub(self.needed(memory))
    }

    /// Returns true if memtables that hold `memory` bytes take so much that they should be flushed
    /// before anything is merged for its space.
    pub(crate) fn is_in_memory(&self, memory: u64) -> bool {
        memory > self.kept() / 2
    }

    /// Returns the bytes that files take once memory is flushed.
    fn needed(&self, memory: u64) -> u64 {
        self.0.used() + memory + memory / TABLE_PART
    }

    fn kept(&self) -> u64 {
        self.0.limit() / KEPT_PART
    }

    /// Returns the error for writers that would have to wait for ever.
    #[cold]
    pub(crate) fn error(&self, dir: &Path) -> Error {
        let message = format!(
            "the files of the store take {} of the {} bytes that `space_bytes` allows, an eighth \
             is kept for merges, and to merge would free little: delete entries, drop a keyspace, \
             or set a higher limit with `Store::set_space_bytes`",
            self.0.used(),
            self.0.limit()
        );
        Error::new(ErrorKind::Full, message).at(dir)
    }
}

/// Returns true if a merge that may free `freed` of `bytes` is worth it.
pub(crate) fn is_worth(freed: u64, bytes: u64) -> bool {
    freed > bytes / WORTH_PART
}

/// Returns the most logical bytes of a memtable under a limit of `bytes`, if nobody says more.
pub(crate) fn usual_memtable(bytes: u64) -> u64 {
    (bytes / (2 * MEMTABLES_MIN)).max(1)
}

/// Fails if a limit of `bytes` is too low for memtables of `memtable_bytes`.
pub(crate) fn check_space(bytes: u64, memtable_bytes: u64) -> Result<()> {
    let least = memtable_bytes.saturating_mul(MEMTABLES_MIN);
    if bytes >= least {
        return Ok(());
    }
    let message = format!(
        "space of {bytes} bytes: expected at least {MEMTABLES_MIN} memtables, which are {least} \
         bytes; smaller memtables (`memtable_bytes`) need less"
    );
    Err(Error::new(ErrorKind::InvalidArgument, message))
}
