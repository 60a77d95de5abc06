//! What all handles and threads of an open store share.
//!
//! Locks are taken in this order: the writer, the mutex that who [commits](crate::commit) to a
//! keyspace holds, the core of the keyspace, the manifest. Nobody waits for progress while holding
//! one of them, and nobody who holds a core waits until the manifest is written.

use crate::db::{Options, Snapshots};
use crate::event::Event;
use crate::left_out::LeftOut;
use crate::leftovers::Leftovers;
use crate::manifest::{Account, Manifest, Record};
use crate::merge::Split;
use crate::pace::Pace;
use crate::pool::{self, Pool};
use crate::stats::{Counts, Recorders, Timer};
use crate::version::Space;
use lsmith_storage::env::SyncReach;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::log::LogWriter;
use lsmith_storage::panics;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lsmith_storage::sync::{Condvar, Mutex, OnceLock, RwLock};
use lsmith_storage::table::BlockCache;
use lsmith_tree::SeqNo;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::sync::Arc;

/// The state of an open store.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) counts: Arc<Counts>,
    /// What histograms are made of, if they are wanted.
    pub(crate) recorders: Option<Recorders>,
    /// The next file number, which is also the next table's name.
    pub(crate) files: Arc<AtomicU64>,
    /// The number of the last write that readers see.
    pub(crate) visible: AtomicU64,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) spaces: RwLock<BTreeMap<String, Arc<Space>>>,
    /// `None` in a store opened for reading only.
    pub(crate) writer: Mutex<Option<Writer>>,
    /// Whether a log file is to be made ahead.
    pub(crate) log_due: AtomicBool,
    /// Held by who removes logs, so that who waits for rest finds them gone.
    pub(crate) retiring: Mutex<()>,
    pub(crate) manifest: Mutex<Option<Manifest>>,
    /// Set when a log or manifest write has failed.
    pub(crate) poisoned: AtomicBool,
    pub(crate) closing: AtomicBool,
    /// Whether several keyspaces share the log, or one is being made that will.
    pub(crate) shares_log: AtomicBool,
    pub(crate) work: Work,
    pub(crate) leftovers: Arc<Leftovers>,
    /// What was left out of the logs when the store was opened.
    pub(crate) left_out: Vec<LeftOut>,
    /// What merges may write in a second, if that is limited.
    pub(crate) pace: Option<Pace>,
    /// Merges of which parts may be left for other threads.
    pub(crate) splits: Mutex<Vec<Arc<Split>>>,
    /// Held as long as the store is open.
    pub(crate) _lock: Box<dyn Debug + Send + Sync>,
}

/// Where waiting writers meet those who merge.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Changes whenever something happened that could give work or let somebody go on.
    pub(crate) turn: Mutex<u64>,
    pub(crate) changed: Condvar,
    /// The threads that merge; empty where writers do.
    pool: OnceLock<Arc<Pool>>,
}

impl Work {
    /// From now on the threads of `pool` merge.
    pub(crate) fn meet_in(&self, pool: &Arc<Pool>) {
        self.pool.get_or_init(|| Arc::clone(pool));
    }

    /// Whether there are threads that merge.
    pub(crate) fn has_threads(&self) -> bool {
        self.pool.get().is_some()
    }

    /// Something has changed.
    pub(crate) fn notify(&self) {
        *self.turn.lock() += 1;
        self.changed.notify_all();
        if let Some(pool) = self.pool.get() {
            pool.notify();
        }
    }
}

/// A log made ahead, behind its number.
pub(crate) type Spare = (u64, LogWriter);

/// The writing side of the write-ahead log.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) wal: Arc<LogWriter>,
    pub(crate) wal_number: u64,
    /// Logs made ahead, in the order in which they come.
    pub(crate) spares: VecDeque<Spare>,
    /// Logs that came before, whose ends may not be synced.
    pub(crate) unsynced: Vec<Arc<LogWriter>>,
    /// All logs that are still there, the current one included.
    pub(crate) logs: Vec<Log>,
    pub(crate) next_seq: u64,
    pub(crate) buffer: Vec<u8>,
    /// Whether a log has begun since work that lets older ones go was last done by a writer.
    pub(crate) log_began: bool,
}

/// A log file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    pub(crate) number: u64,
    /// The number of the first write in it.
    pub(crate) first: SeqNo,
    /// The length of the file.
    pub(crate) bytes: u64,
}

impl Writer {
    /// The logs that must be synced so that everything written so far survives power loss.
    pub(crate) fn logs_to_sync(&self) -> Vec<Arc<LogWriter>> {
        self.unsynced.iter().chain([&self.wal]).map(Arc::clone).collect()
    }
}

impl Shared {
    /// Begins to measure how long something takes, if somebody wants to know.
    #[inline]
    pub(crate) fn timer(&self) -> Timer<'_> {
        Timer::begin(self.recorders.as_ref(), &*self.options.env)
    }

    /// Tells the observer. Its panic is noted where that is not the caller's business.
    pub(crate) fn tell(&self, space: &Space, event: &Event<'_>) {
        let Some(observer) = &self.options.observer else { return };
        let tell = || observer.on_event(&space.name, event);
        if !pool::is_merging_thread() {
            return tell();
        }
        if let Err(panic) = panics::catch(tell) {
            tracing::error!(keyspace = space.name, %panic, "the observer panicked");
            space.observer_panic.lock().get_or_insert_with(|| panic.to_string());
        }
    }

    /// All keyspaces.
    pub(crate) fn all_spaces(&self) -> Vec<Arc<Space>> {
        self.spaces.read().values().map(Arc::clone).collect()
    }

    /// Begins what must not be left half done: a panic before it is [over](OneStep::over) poisons
    /// the store.
    pub(crate) fn one_step(&self) -> OneStep<'_> {
        OneStep(self)
    }

    /// Refuses writes from now on: nobody knows any more what the log or the manifest holds.
    pub(crate) fn poison(&self) {
        self.poisoned.store(true, Ordering::Release);
        self.work.notify();
    }

    /// An error if writes are refused for good.
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.options.read_only {
            return Err(Error::new(ErrorKind::ReadOnly, "the store was opened for reading only"));
        }
        if self.poisoned.load(Ordering::Acquire) {
            let told = "a write of log or manifest failed earlier, or a panic left one half done: \
                        reopen the store to write again";
            return Err(Error::new(ErrorKind::Poisoned, told).at(&self.options.dir));
        }
        Ok(())
    }

    /// Writes `record` to the manifest, durably, and passes on what `then` makes of all that the
    /// manifest says now.
    pub(crate) fn write_record<T>(
        &self,
        record: Record,
        then: impl FnOnce(&Account) -> T,
    ) -> Result<T> {
        let mut manifest = self.manifest.lock();
        let manifest = manifest.as_mut().ok_or_else(read_only)?;
        let step = self.one_step();
        let written = manifest.write(record);
        step.over();
        if manifest.failed() {
            self.poison();
        }
        written.map(|()| then(manifest.account()))
    }

    /// Makes what was appended to `logs` survive power loss.
    pub(crate) fn sync_logs(&self, logs: &[Arc<LogWriter>], reach: SyncReach) -> Result<()> {
        for log in logs {
            if let Err(error) = log.sync(reach) {
                self.poison();
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Something that must not be left half done.
#[must_use = "it poisons the store where it is dropped"]
pub(crate) struct OneStep<'a>(&'a Shared);

impl OneStep<'_> {
    /// All of it is done, or it is known that nothing is.
    pub(crate) fn over(self) {
        std::mem::forget(self);
    }
}

impl Drop for OneStep<'_> {
    fn drop(&mut self) {
        tracing::error!(dir = %self.0.options.dir.display(), "a panic left something half done");
        self.0.poison();
    }
}

/// Says that the store was opened for reading only.
pub(crate) fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "the store was opened for reading only")
}
