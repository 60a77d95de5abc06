//! The handle of an open store.

use crate::budget::Memory;
use crate::context::{Context, read_only};
use crate::engine::Engine;
use crate::examine;
use crate::identity::StoreId;
use crate::keyspace::{KeyspaceShared, Request};
use crate::left_out::LeftOut;
use crate::memory::seal;
use crate::opening;
use crate::options::{Options, PersistMode};
use crate::space::check_space;
use crate::stats::{Histograms, MemoryUse, SpaceUse, StoreStats};
use crate::threads::{Threads, Worker};
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::sync::atomic::Ordering;
use lsmith_tree::SeqNo;
use std::fmt;
use std::sync::Arc;

/// The handle of an open store. Clones are cheap and share the store.
///
/// # Closing
///
/// The store closes when the last handle of it is dropped: of the store, its keyspaces, snapshots,
/// iterators and bulk loads. After that drop the store can be opened again, and its own threads
/// have ended. If an [`Observer`](crate::Observer) drops the last handle on a thread that merges,
/// the store closes a little later, when its threads have finished their work.
///
/// # Panics
///
/// A panic of a merge policy, an observer or an environment on a thread that merges is caught and
/// logged. Calls that wait for rest then fail with kind [`Panicked`](crate::ErrorKind::Panicked)
/// until [`retry`](Store::retry) is called or, after a panic of a policy, [another policy is
/// set](crate::Keyspace::set_merge_policy). Meanwhile a plan that panicked blocks its inputs, and a
/// policy that panicked is not asked: memory is flushed without it. Writers fail only if memory is
/// full and no other work can free it.
///
/// On the thread of a caller (in lockstep, all work is), the panic of a policy or an observer
/// reaches the caller. The write may or may not have been made; the store stays usable.
///
/// A panic during a write of the log or the manifest poisons the store, on any thread.
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
    /// The threads that merge, and the id under which they know this store. `None` in lockstep
    /// and if the store is open for reading only.
    threads: Option<(Threads, u64)>,
}

impl Drop for Store {
    fn drop(&mut self) {
        if !self.context().is_here() {
            // The threads that work for the store are in the parent, and so is the right to its
            // files and locks. So here it is never closed.
            self.context().forget();
            std::mem::forget(Arc::clone(&self.inner));
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.engine.context.start_closing();
        if self.threads.as_ref().is_none_or(|(threads, id)| threads.leave(*id)) {
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
        // Taken out of the options, which the threads hold too: a thread cannot end itself.
        let shared = options.shared_threads.take();
        options.memory.as_ref().map_or(Ok(()), Memory::check_here)?;
        options.threads = shared.as_ref().map_or(options.threads, Threads::count);
        let merging = match shared {
            _ if options.lockstep || options.read_only => None,
            Some(threads) => Some(threads.checked()?),
            None => Some(Threads::new(options.threads)?),
        };
        let record = options.record.take();
        let read_only = options.read_only;
        let engine = opening::open(options)?;
        let threads = merging.map(|threads| {
            engine.context.progress.set_pool(threads.pool());
            engine.context.leftovers.open(threads.pool());
            let id = threads.join(Arc::clone(&engine.scheduler) as _);
            (threads, id)
        });
        let store = Store { inner: Arc::new(Inner { engine, threads }) };
        // Opening may have filled memtables.
        store.work_in_lockstep();
        if let Some((folder, options)) = record.filter(|_| !read_only) {
            store.record(folder, &options)?;
        }
        Ok(store)
    }

    /// Returns the identity of the store: an id that was drawn when it was made, and that no
    /// checkpoint, restored backup or repaired copy shares. `None` only if the store was opened for
    /// reading only, and no version that knows of identities has opened it for writing before.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let copy = dir.path().join("copy");
    /// use lsmith::Store;
    ///
    /// let store = Store::builder(dir.path().join("store")).open()?;
    /// store.checkpoint(&copy)?;
    /// let copy = Store::builder(&copy).open()?;
    /// assert_ne!(copy.id(), store.id());
    /// assert_eq!(copy.origin(), store.id());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn id(&self) -> Option<StoreId> {
        self.engine().identity.map(|identity| identity.id)
    }

    /// Returns the [`id`](Store::id) of the store that this one is a checkpoint, a restored backup
    /// or a repaired copy of, if it is one and if that is known.
    pub fn origin(&self) -> Option<StoreId> {
        self.engine().identity.and_then(|identity| identity.origin)
    }

    /// In lockstep, does the work that threads would do.
    pub(super) fn work_in_lockstep(&self) {
        let engine = self.engine();
        if engine.context.options.lockstep
            && let Some(writer) = engine.wal.lock().as_mut()
        {
            engine.scheduler.after_seal(writer);
        }
    }

    /// Seals the memtable of `keyspace` and adds `request`. Wakes the threads that merge, or does
    /// their work in lockstep.
    pub(super) fn seal_and_ask(&self, keyspace: &KeyspaceShared, request: Request) -> Result<()> {
        let engine = self.engine();
        engine.context.check_writable()?;
        let mut guard = engine.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        let mut state = keyspace.state.lock();
        state.check_kept(keyspace)?;
        seal(&engine.context, keyspace, &mut state);
        state.retry_crowded();
        state.ask(request);
        drop(state);
        engine.scheduler.after_seal(writer);
        Ok(())
    }

    /// Returns the parts of the store.
    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Returns the context that all parts of the store share.
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.inner.engine.context
    }

    /// Returns the names of all keyspaces, sorted.
    pub fn keyspaces(&self) -> Vec<String> {
        self.engine().keyspaces.names()
    }

    /// Makes all earlier writes as durable as `mode` says.
    ///
    /// # Errors
    /// `Io` if the log cannot be synced: the store is then poisoned. `Poisoned` if an earlier write
    /// of the log or the manifest failed. `ReadOnly` if the store was opened for reading only.
    pub fn persist(&self, mode: PersistMode) -> Result<()> {
        self.context().check_writable()?;
        let wal = &self.engine().wal;
        wal.sync_for(mode, &wal.logs_to_sync())
    }

    /// Shows a store that was opened for reading only all that has been written meanwhile, by any
    /// process. Returns the sequence number of the last write that readers see.
    ///
    /// Everything that a write returned for before this call is seen, whether it was synced or not.
    /// Snapshots and iterators stay as they are. Keyspaces that were made meanwhile are there. A
    /// store that was opened for writing has nothing to do. See
    /// [`Builder::read_only`](crate::Builder::read_only).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use lsmith::Store;
    ///
    /// let writer = Store::builder(dir.path()).open()?;
    /// let written = writer.keyspace("default")?;
    /// let reader = Store::builder(dir.path()).read_only(true).open()?;
    /// let read = reader.existing_keyspace("default")?;
    /// written.put("key", "value")?;
    /// assert_eq!(read.get("key")?, None);
    /// reader.refresh()?;
    /// assert_eq!(read.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Builder::open`](crate::Builder::open). Readers then see what they saw before.
    #[doc(alias = "catch up")]
    pub fn refresh(&self) -> Result<SeqNo> {
        self.context().check_here()?;
        if self.context().options.read_only {
            opening::refresh(self.engine())?;
        }
        Ok(SeqNo(self.context().visible.load(Ordering::SeqCst)))
    }

    /// Seals the memtables of all keyspaces, and waits until they are flushed and all merges have
    /// come to rest.
    ///
    /// # Errors
    /// As [`settle`](Store::settle).
    pub fn flush(&self) -> Result<()> {
        let engine = self.engine();
        engine.context.check_writable()?;
        let mut guard = engine.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        for keyspace in engine.keyspaces.all() {
            let mut state = keyspace.state.lock();
            seal(&engine.context, &keyspace, &mut state);
            state.retry_crowded();
            state.ask(Request::Flush);
        }
        engine.scheduler.after_seal(writer);
        drop(guard);
        engine.scheduler.settle(None)
    }

    /// Waits until all merges have come to rest and the files of tables that no reader uses are
    /// removed. Active memtables stay in memory.
    ///
    /// A merge policy whose plans lead back to the same tree again and again counts as at rest.
    ///
    /// # Errors
    /// The error of a merge that failed and blocks a keyspace. `Panicked` if a policy or an
    /// observer panicked. `Poisoned` if a write of the log or the manifest failed. `ReadOnly` if
    /// the store was opened for reading only.
    pub fn settle(&self) -> Result<()> {
        self.engine().scheduler.settle(None)
    }

    /// Allows all plans that failed to be tried again, and policies that panicked to be asked
    /// again. Clears panics of the observer.
    ///
    /// Plans that failed because the device was full are also tried again without this call.
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

    /// Returns the counters of the store since it was opened.
    pub fn stats(&self) -> StoreStats {
        self.context().counts.read()
    }

    /// Returns the histograms of the store since it was opened, or `None` unless it was opened with
    /// [`Builder::histograms`](crate::Builder::histograms).
    pub fn histograms(&self) -> Option<Histograms> {
        self.context().recorders.as_ref().map(|recorders| recorders.read())
    }

    /// Returns the bytes that the store holds in memory now, by part. Looks at every table.
    pub fn memory(&self) -> MemoryUse {
        self.engine().keyspaces.memory()
    }

    /// Returns the bytes that the files of the store take and the limit on them, or `None` if the
    /// store was opened without [`Builder::space_bytes`](crate::Builder::space_bytes).
    pub fn space(&self) -> Option<SpaceUse> {
        let space = &self.context().space.as_ref()?.0;
        Some(SpaceUse { used: space.used(), limit: space.limit() })
    }

    /// Sets another limit on what the files of the store take, until the store is closed. Files
    /// that are there stay: below what they take, writers wait for merges, or fail.
    ///
    /// # Errors
    /// `InvalidArgument` if the store was opened without
    /// [`Builder::space_bytes`](crate::Builder::space_bytes), or if `bytes` are too few for its
    /// memtables.
    pub fn set_space_bytes(&self, bytes: u64) -> Result<()> {
        let context = self.context();
        context.check_here()?;
        let Some(space) = &context.space else {
            let message = "expected a store with a limit on space: open it with `space_bytes`";
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(&context.options.dir));
        };
        check_space(bytes, context.options.memtable_bytes)?;
        space.0.set_limit(bytes);
        context.progress.notify();
        Ok(())
    }

    /// Returns the bytes of blocks in the cache. A shared cache counts the blocks of all its
    /// stores.
    pub fn cache_bytes(&self) -> u64 {
        self.context().cache.bytes()
    }

    /// Reads and checks every block of every table, the trees, and the logs on the device. Returns
    /// all damage that it finds, not only the first.
    ///
    /// # Errors
    /// Fails only if something keeps the check from reading a file. Damage is in the result.
    pub fn verify(&self) -> Result<Vec<Error>> {
        self.context().check_here()?;
        examine::verify(self.engine())
    }

    /// Returns the door to files of the store, for example for a
    /// [`TableWriter`](crate::TableWriter).
    pub fn env(&self) -> &Arc<dyn Env> {
        &self.context().outer_env
    }

    /// Returns the files, and parts of files, that the store does not use although nothing is
    /// damaged:
    ///
    /// * ends of logs and of the manifest that opening left out, because power loss or the death of
    ///   the process had cut them short;
    /// * files that an earlier opening set aside for that reason;
    /// * files that do not belong to the store.
    ///
    /// If the store was opened for writing, files are examined as they are now.
    ///
    /// # Errors
    /// `Corruption` if the manifest is damaged; `Io` if a file cannot be read.
    pub fn left_out(&self) -> Result<Vec<LeftOut>> {
        self.context().check_here()?;
        examine::left_out(self.engine())
    }
}
