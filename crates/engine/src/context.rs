//! What every part of an open store may hold: options, environment, cache, counters, numbers, and
//! whether the store may still be written to.
//!
//! The context knows no keyspace, log or manifest. Their owners hold it.

use crate::leftovers::Leftovers;
use crate::options::Options;
use crate::progress::Progress;
use crate::snapshots::{SnapshotGuard, Snapshots};
use crate::stats::{Counts, Recorders, Timer};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lsmith_storage::table::BlockCache;
use lsmith_tree::SeqNo;
use std::fmt::Debug;
use std::sync::Arc;

/// What all parts of an open store share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) counts: Arc<Counts>,
    /// The histograms, if they are wanted.
    pub(crate) recorders: Option<Recorders>,
    /// The next number of a file. Tables are named by the number of their file.
    pub(crate) next_file: Arc<AtomicU64>,
    /// The number of the last write that readers see.
    pub(crate) visible: AtomicU64,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) leftovers: Arc<Leftovers>,
    pub(crate) progress: Progress,
    /// Set when a write of the log or of the manifest has failed.
    poisoned: AtomicBool,
    closing: AtomicBool,
    /// The lock of the directory, held as long as the store is open.
    _lock: Box<dyn Debug + Send + Sync>,
}

impl Context {
    /// Returns the context of a store whose directory `lock` keeps locked. `next_file` is the first
    /// free file number.
    pub(crate) fn new(
        options: Options,
        lock: Box<dyn Debug + Send + Sync>,
        next_file: u64,
    ) -> Context {
        let cache = match &options.cache {
            Some(cache) => BlockCache::within(cache),
            None => BlockCache::new(options.memory_bytes.unwrap_or(options.cache_bytes)),
        };
        Context {
            cache: Arc::new(cache),
            counts: Arc::default(),
            recorders: options.histograms.then(Recorders::default),
            next_file: Arc::new(AtomicU64::new(next_file)),
            visible: AtomicU64::new(0),
            snapshots: Arc::new(Snapshots::new()),
            leftovers: Arc::default(),
            progress: Progress::default(),
            poisoned: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            _lock: lock,
            options,
        }
    }

    /// Returns a number that no file, table or memtable has had.
    pub(crate) fn new_number(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the number from which on old versions must be kept.
    pub(crate) fn keep_from(&self) -> SeqNo {
        self.snapshots.keep_from(&self.visible)
    }

    /// Takes a snapshot of what readers see now.
    pub(crate) fn take_snapshot(&self) -> SnapshotGuard {
        self.snapshots.take(&self.visible)
    }

    /// Starts to measure how long something takes, if histograms are wanted.
    #[inline]
    pub(crate) fn timer(&self) -> Timer<'_> {
        Timer::begin(self.recorders.as_ref(), &*self.options.env)
    }

    /// Announces that the store is being closed: merges under way give up.
    pub(crate) fn start_closing(&self) {
        self.closing.store(true, Ordering::Release);
        self.progress.notify();
    }

    /// Returns true once the store is being closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Fails if the store is being closed: for work that may take long.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io, "the store is closing"));
        }
        Ok(())
    }

    /// Begins a step that must not be left half done: a panic before it is [over](OneStep::over)
    /// poisons the store.
    pub(crate) fn one_step(&self) -> OneStep<'_> {
        OneStep(self)
    }

    /// Refuses writes from now on: nobody knows any more what the log or the manifest holds.
    pub(crate) fn poison(&self) {
        self.poisoned.store(true, Ordering::Release);
        self.progress.notify();
    }

    /// Returns true once the store refuses writes for good.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Fails if the store refuses writes for good: with `ReadOnly` or `Poisoned`.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(read_only());
        }
        if self.is_poisoned() {
            let message = "a write of log or manifest failed earlier, or a panic left one half \
                           done: reopen the store to write again";
            return Err(Error::new(ErrorKind::Poisoned, message).at(&self.options.dir));
        }
        Ok(())
    }
}

/// A step that must not be left half done.
#[must_use = "it poisons the store where it is dropped"]
pub(crate) struct OneStep<'a>(&'a Context);

impl OneStep<'_> {
    /// Ends the step: all of it is done, or it is known that nothing is.
    pub(crate) fn over(self) {
        std::mem::forget(self);
    }
}

impl Drop for OneStep<'_> {
    fn drop(&mut self) {
        let dir = self.0.options.dir.display();
        tracing::error!(%dir, "a panic left a step half done");
        self.0.poison();
    }
}

/// The error of a write to a store that was opened for reading only.
pub(crate) fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "the store was opened for reading only")
}
