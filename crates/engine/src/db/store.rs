//! The handle of an open store.

use crate::context::{Context, read_only};
use crate::engine::Engine;
use crate::examine;
use crate::keyspace::{KeyspaceShared, Request};
use crate::left_out::LeftOut;
use crate::memory::seal;
use crate::opening;
use crate::options::{Options, PersistMode};
use crate::stats::{Histograms, MemoryUse, StoreStats};
use crate::threads::{Threads, Worker};
use lsmith_storage::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// An open store. Cheap to clone; the store closes when the last handle of it, of its keyspaces,
/// of its snapshots and of its iterators is dropped. When that has been dropped the store can be
/// opened again, and its own threads have ended. Only where a thread that merges drops it, which is
/// an [`Observer`](crate::Observer)'s doing, the store is closed a little later: when no thread
/// works for it any more.
///
/// A panic of a merge policy, an observer or an environment on a thread that merges is caught and
/// logged. Who waits for rest gets an error of kind [`Panicked`](crate::ErrorKind::Panicked) until
/// [`retry`](Store::retry) or, for a policy, until another one is
/// [chosen](crate::Keyspace::set_merge_policy). Meanwhile the plan stays out of the way, or the
/// policy is not asked and memory is flushed without it; writers are told if nothing else can help
/// them. On
/// the thread of a caller, and in lockstep all are, a panic of a policy or an observer is the
/// caller's: nobody knows then whether the write was made, the next one finds all in order. A panic
/// in the middle of a write of log or manifest, on any thread, poisons the store.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::Store;
///
/// let store = Store::builder(dir.path()).policy("tiered(ratio=4)").open()?;
/// let keyspace = store.keyspace("default")?;
/// keyspace.put("lsm", "log-structured merge")?;
/// assert_eq!(keyspace.get("lsm")?.as_deref(), Some(&b"log-structured merge"[..]));
/// for entry in keyspace.prefix("ls") {
///     let (key, value) = entry?;
///     println!("{key:?} {value:?}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

/// Closes the store when dropped.
struct Inner {
    engine: Engine,
    /// The threads that merge, and the number by which they work for this store; `None` where
    /// writers merge, or nobody.
    threads: Option<(Threads, u64)>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.engine.context.start_closing();
        if self.threads.as_ref().is_none_or(|(threads, number)| threads.leave(*number)) {
            self.engine.scheduler.close();
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("dir", &self.context().options.dir).finish_non_exhaustive()
    }
}

impl Store {
    pub(super) fn open(mut options: Options) -> Result<Store> {
        // Not kept with the other options: those are the threads' too, who cannot end themselves.
        let threads = match options.shared_threads.take() {
            _ if options.lockstep || options.read_only => None,
            Some(threads) => Some(threads),
            None => Some(Threads::new(options.threads)?),
        };
        let engine = opening::open(options)?;
        let threads = threads.map(|threads| {
            engine.context.progress.set_pool(threads.pool());
            engine.context.leftovers.open(threads.pool());
            let number = threads.join(Arc::clone(&engine.scheduler) as _);
            (threads, number)
        });
        let store = Store { inner: Arc::new(Inner { engine, threads }) };
        // What memtables hold that were filled by opening.
        store.work_in_lockstep();
        Ok(store)
    }

    /// In lockstep, does what threads would do.
    pub(super) fn work_in_lockstep(&self) {
        let engine = self.engine();
        if engine.context.options.lockstep
            && let Some(writer) = engine.wal.lock().as_mut()
        {
            engine.scheduler.after_seal(writer);
        }
    }

    /// Seals the memtable of `keyspace`, makes `request`, and has the work done that follows.
    pub(super) fn seal_and_ask(&self, keyspace: &KeyspaceShared, request: Request) -> Result<()> {
        let engine = self.engine();
        engine.context.check_writable()?;
        let mut guard = engine.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        let mut state = keyspace.state.lock();
        seal(&engine.context, keyspace, &mut state);
        state.ask(request);
        drop(state);
        engine.scheduler.after_seal(writer);
        Ok(())
    }

    /// Returns the parts of the store.
    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Returns what all parts of the store share.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.engine.context
    }

    /// The names of all keyspaces, sorted.
    pub fn keyspaces(&self) -> Vec<String> {
        self.engine().keyspaces.read().keys().cloned().collect()
    }

    /// Makes everything written so far survive as far as `mode` says.
    ///
    /// # Errors
    /// `Io`, `Poisoned`.
    pub fn persist(&self, mode: PersistMode) -> Result<()> {
        self.context().check_writable()?;
        let wal = &self.engine().wal;
        wal.sync_for(mode, &wal.logs_to_sync())
    }

    /// Seals every memtable, and waits until all are flushed and merges have come to rest.
    ///
    /// # Errors
    /// What keeps a keyspace from coming to rest; `ReadOnly`.
    pub fn flush(&self) -> Result<()> {
        let engine = self.engine();
        engine.context.check_writable()?;
        let mut guard = engine.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        for keyspace in engine.keyspaces.all() {
            let mut state = keyspace.state.lock();
            seal(&engine.context, &keyspace, &mut state);
            state.ask(Request::Flush);
        }
        engine.scheduler.after_seal(writer);
        drop(guard);
        engine.scheduler.settle()
    }

    /// Waits until merges have come to rest, and until files that nobody reads any more are gone.
    /// Memtables that are not full stay in memory. A merge policy whose plans lead back to the same
    /// tree again and again has come to rest too.
    ///
    /// # Errors
    /// What keeps a keyspace from coming to rest; `ReadOnly`.
    pub fn settle(&self) -> Result<()> {
        self.engine().scheduler.settle()
    }

    /// Tries plans again that failed for other reasons than want of room, which are tried again by
    /// themselves, and asks policies again that have panicked.
    pub fn retry(&self) {
        for keyspace in self.engine().keyspaces.all() {
            let mut state = keyspace.state.lock();
            state.unblock(|_| false);
            state.policy.forgive();
            drop(state);
            *keyspace.observer_panic.lock() = None;
        }
        self.context().progress.notify();
    }

    /// What has been counted since the store was opened.
    pub fn stats(&self) -> StoreStats {
        self.context().counts.read()
    }

    /// Histograms of what has been done since the store was opened; `None` unless
    /// [`Builder::histograms`](crate::Builder::histograms) asked for them.
    pub fn histograms(&self) -> Option<Histograms> {
        self.context().recorders.as_ref().map(|recorders| recorders.read())
    }

    /// What is held in memory now, by part. Looks at every table.
    pub fn memory(&self) -> MemoryUse {
        self.engine().keyspaces.memory()
    }

    /// Bytes of blocks in the cache; of all stores where it is shared.
    pub fn cache_bytes(&self) -> u64 {
        self.context().cache.bytes()
    }

    /// Checks everything that can be checked: every block of every table, the trees, and the logs
    /// on the device. Finds all damage, not only the first.
    ///
    /// # Errors
    /// Only what keeps it from looking; damage is in the result.
    pub fn verify(&self) -> Result<Vec<Error>> {
        examine::verify(self.engine())
    }

    /// What the opening of a store left out of its files because power loss, or the death of a
    /// process, had kept it from being complete; files that an earlier opening set aside for that;
    /// and files that are not the store's. None of this is damage. The files of a store that was
    /// opened for writing are looked at as they are now.
    ///
    /// # Errors
    /// What keeps it from looking; `Corruption` where the manifest is damaged.
    pub fn left_out(&self) -> Result<Vec<LeftOut>> {
        examine::left_out(self.engine())
    }
}
