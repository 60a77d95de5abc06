//! The context of an open store, which every part of it may hold: options, environment, cache,
//! counters, file ids, and a flag that refuses writes.
//!
//! The context knows no keyspace, log or manifest. Their owners hold it.

use crate::budget::{Memory, Share};
use crate::followers::Followers;
use crate::leases::Leases;
use crate::leftovers::Leftovers;
use crate::options::Options;
use crate::progress::Progress;
use crate::recorder::Recorder;
use crate::snapshots::{SnapshotGuard, Snapshots};
use crate::space::SpaceLimit;
use crate::stats::{Counts, Recorders, Timer};
use crate::values::ValueFiles;
use crate::version::TablePlace;
use lsmith_storage::directory;
use lsmith_storage::env::{CipherEnv, Env, HeldDir, HeldEnv};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::memtable::Memtable;
use lsmith_storage::names::FileKind;
use lsmith_storage::sync::Process;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lsmith_storage::table::BlockCache;
use lsmith_tree::SeqNo;
use std::path::Path;
use std::sync::Arc;

/// How long memory that memtables have left waits for the next one, in nanoseconds.
const UNUSED_NANOS: u64 = 90_000_000;

/// Returns the most bytes of memory that memtables leave for the next ones: about one memtable.
fn spare_max(options: &Options) -> u64 {
    // Without threads that merge, nobody would free them later.
    if options.lockstep { 0 } else { options.memtable_bytes.saturating_mul(5) / 4 }
}

/// The state that all parts of an open store share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) options: Options,
    /// What the store has of the limit on memory.
    pub(crate) share: Arc<Share>,
    /// The limit on space, if there is one.
    pub(crate) space: Option<SpaceLimit>,
    pub(crate) cache: Arc<BlockCache>,
    /// When memory of memtables was last freed because no other one had used it, in nanoseconds.
    freed_at: AtomicU64,
    pub(crate) counts: Arc<Counts>,
    /// The histograms, if [`Builder::histograms`](crate::Builder::histograms) asks for them.
    pub(crate) recorders: Option<Recorders>,
    /// The next file id. Tables and memtables take their ids from here too.
    pub(crate) next_file: Arc<AtomicU64>,
    /// The sequence number of the last write that readers see.
    pub(crate) visible: AtomicU64,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) leftovers: Arc<Leftovers>,
    /// What readers in other processes keep from being freed.
    pub(crate) leases: Arc<Leases>,
    /// The files with values that lie outside of tables.
    pub(crate) values: Arc<ValueFiles>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) followers: Followers,
    /// Records what callers do, while somebody wants that.
    pub(crate) recorder: Recorder,
    /// Set when a write to the log or the manifest fails, or a panic interrupts a step.
    poisoned: AtomicBool,
    /// Set when the store begins to close.
    closing: AtomicBool,
    /// The process that opened the store.
    process: Process,
    /// The directory, which stays locked as long as the store is open.
    held: Arc<dyn HeldDir>,
    /// The environment that the store was opened with; `options.env` wraps it.
    pub(crate) outer_env: Arc<dyn Env>,
}

impl Context {
    /// Returns the context of a store whose directory is `held`. From then on, files of the store
    /// are touched only while its path leads there.
    pub(crate) fn new(
        mut options: Options,
        held: Arc<dyn HeldDir>,
        space: Option<SpaceLimit>,
    ) -> Context {
        let outer_env = Arc::clone(&options.env);
        options.env = CipherEnv::around(&outer_env, |env| {
            let inner = HeldEnv::new(env, &options.dir, Arc::clone(&held));
            Arc::new(match &space {
                Some(space) => inner.with_space(&space.0),
                None => inner,
            })
        });
        // Taken out of the options: the share holds it.
        let memory = options.memory.take().unwrap_or_else(|| {
            Memory::own(options.memory_bytes, options.cache.as_ref(), options.cache_bytes)
        });
        let progress = Arc::default();
        let share = memory.join(spare_max(&options), options.threads, &progress);
        let cache = BlockCache::within(memory.cache()).with_open_files(options.open_files());
        let cache = Arc::new(if options.unleased { cache.unmapped() } else { cache });
        let counts = Arc::default();
        let leases = Arc::new(Leases::new(&options.env, &options.dir));
        let values = ValueFiles::new(&options.env, &options.dir, &cache, &leases);
        Context {
            share,
            space,
            cache,
            freed_at: AtomicU64::new(0),
            recorder: Recorder::new(&outer_env, &counts),
            counts,
            recorders: options.histograms.then(Recorders::default),
            next_file: Arc::new(AtomicU64::new(1)),
            visible: AtomicU64::new(0),
            snapshots: Arc::new(Snapshots::new()),
            leftovers: Arc::default(),
            leases,
            values: Arc::new(values),
            progress,
            followers: Followers::default(),
            poisoned: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            process: Process::here(),
            held,
            outer_env,
            options,
        }
    }

    /// Fails with `InvalidArgument` if the store is encrypted and `env`, in which a copy at `to` is
    /// to be made, is not. `option` gives another environment.
    pub(crate) fn check_encrypts(&self, env: &dyn Env, to: &Path, option: &str) -> Result<()> {
        if self.options.env.encryption().is_none() || env.encryption().is_some() {
            return Ok(());
        }
        let message = format!(
            "the store is encrypted, and its copy would not be: give a `CipherEnv` to {option}"
        );
        Err(Error::new(ErrorKind::InvalidArgument, message).at(to))
    }

    /// Returns an empty memtable.
    pub(crate) fn new_memtable(&self) -> Arc<Memtable> {
        Arc::new(Memtable::within(&self.share.chunks))
    }

    /// Frees memory that memtables have left and that no other one has used for a while. Threads
    /// that merge call this when they find no work.
    pub(crate) fn free_unused(&self) {
        let now = self.options.env.now().as_nanos() as u64;
        let last = self.freed_at.load(Ordering::Relaxed);
        if now.saturating_sub(last) >= UNUSED_NANOS
            && self
                .freed_at
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            self.share.chunks.free_unused();
        }
    }

    /// Returns true if memtables have so much of the limit on memory that one should be sealed
    /// early, or writers wait.
    #[inline]
    pub(crate) fn is_crowded(&self) -> bool {
        self.share.held_bytes() > self.share.limit().memtables_low
    }

    /// Returns the limit on space if it makes writers wait.
    #[inline]
    pub(crate) fn tight_space(&self, only_deletes: impl FnOnce() -> bool) -> Option<&SpaceLimit> {
        let space = self.space.as_ref()?;
        // Spare memory, which only lowers the sum, is behind a lock.
        if !space.is_tight(self.share.chunks.held_bytes(), false) {
            return None;
        }
        let memory = self.memtable_memory();
        let is_tight = space.is_tight(memory, false) && space.is_tight(memory, only_deletes());
        is_tight.then_some(space)
    }

    /// Returns the bytes of memory that memtables hold.
    pub(crate) fn memtable_memory(&self) -> u64 {
        self.share.chunks.held_bytes().saturating_sub(self.share.chunks.spare_bytes())
    }

    /// Returns where the tables of the store are.
    pub(crate) fn tables(&self) -> TablePlace<'_> {
        TablePlace {
            env: &self.options.env,
            dir: &self.options.dir,
            cache: &self.cache,
            leases: &self.leases,
            values: &self.values,
        }
    }

    /// Returns an id that no file, table or memtable has used.
    pub(crate) fn new_file_id(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes a file of `kind` with a new id. See [`directory::make_numbered`].
    pub(crate) fn make_numbered<T>(
        &self,
        kind: FileKind,
        make: impl FnMut(&Path, u64) -> Result<T>,
    ) -> Result<(u64, T)> {
        directory::make_numbered(&self.options.dir, kind, &self.next_file, make)
    }

    /// Returns the sequence number from which on merges must keep old versions.
    pub(crate) fn keep_from(&self) -> SeqNo {
        self.snapshots.keep_from(&self.visible)
    }

    /// Returns a sequence number that all readers without a snapshot, now and later, are at or
    /// above, and the live snapshots, newest first.
    pub(crate) fn readers(&self) -> (SeqNo, Vec<SeqNo>) {
        // In this order: a snapshot that is taken after the list was made is no older.
        let visible = SeqNo(self.visible.load(Ordering::SeqCst));
        (visible, self.snapshots.newest_first())
    }

    /// Returns a sequence number that all readers, now and later, are at or above.
    pub(crate) fn oldest_reader(&self) -> SeqNo {
        let (visible, snapshots) = self.readers();
        snapshots.last().map_or(visible, |oldest| visible.min(*oldest))
    }

    /// Takes a snapshot of what readers see now.
    pub(crate) fn take_snapshot(&self) -> SnapshotGuard {
        self.snapshots.take(&self.visible)
    }

    /// Fails if the directory of the store, or its lock file, is not the one that was opened.
    pub(crate) fn check_held(&self) -> Result<()> {
        self.held.check().map_err(|error| Error::io("write", &self.options.dir, error))
    }

    /// Starts a timer. It records nothing if the store has no histograms.
    #[inline]
    pub(crate) fn timer(&self) -> Timer<'_> {
        Timer::begin(self.recorders.as_ref(), &*self.options.env)
    }

    /// Marks the store as closing, so that merges under way stop.
    pub(crate) fn start_closing(&self) {
        self.closing.store(true, Ordering::Release);
        self.progress.notify();
    }

    /// Returns true once the store has begun to close.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }

    /// Fails if the store has begun to close. Long work calls this now and then.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Io, "the store is closing"));
        }
        Ok(())
    }

    /// Begins a step that must be done as a whole. A panic before [`OneStep::over`] poisons the
    /// store.
    pub(crate) fn one_step(&self) -> OneStep<'_> {
        OneStep(self)
    }

    /// Refuses writes from now on, because the content of the log or the manifest is uncertain.
    pub(crate) fn poison(&self) {
        self.poisoned.store(true, Ordering::Release);
        self.share.note_stuck();
        self.share.wake_waiting();
        self.progress.notify();
    }

    /// Returns true if the store refuses writes until it is reopened.
    pub(crate) fn is_poisoned(&self) -> bool {
        self.poisoned.load(Ordering::Acquire)
    }

    /// Fails with `ReadOnly` or `Poisoned` if the store refuses writes until it is reopened, and as
    /// [`check_here`](Context::check_here) does.
    #[inline(always)]
    pub(crate) fn check_writable(&self) -> Result<()> {
        let refuses = self.options.read_only || self.is_poisoned() || !self.is_here();
        if refuses { Err(self.unwritable()) } else { Ok(()) }
    }

    /// Returns false in a child of the process that opened the store.
    #[inline(always)]
    pub(crate) fn is_here(&self) -> bool {
        self.process.is_here()
    }

    /// Fails in a child of the process that opened the store. What is called first, before locks
    /// are taken that a thread of the parent may have held, and before anything is read that the
    /// parent may have freed since.
    #[inline(always)]
    pub(crate) fn check_here(&self) -> Result<()> {
        if self.is_here() { Ok(()) } else { Err(self.elsewhere()) }
    }

    #[cold]
    fn elsewhere(&self) -> Error {
        let message = "the store was opened by the parent of this process, before the fork: drop \
                       what is left of it here, and open stores after the fork";
        Error::new(ErrorKind::InvalidArgument, message).at(&self.options.dir)
    }

    /// Lets go of the directory in a child of the process that opened the store.
    pub(crate) fn forget(&self) {
        self.held.forget();
    }

    #[cold]
    fn unwritable(&self) -> Error {
        if !self.is_here() {
            return self.elsewhere();
        }
        if self.options.read_only {
            return read_only();
        }
        let message = "an earlier write to the log or the manifest failed, or a panic interrupted \
                       one: reopen the store to write again";
        Error::new(ErrorKind::Poisoned, message).at(&self.options.dir)
    }
}

/// A step that must be done as a whole. Dropping it, as a panic does, poisons the store.
#[must_use = "dropping a step poisons the store"]
pub(crate) struct OneStep<'a>(&'a Context);

impl OneStep<'_> {
    /// Ends the step. All of it must be done, or certainly none of it.
    pub(crate) fn over(self) {
        std::mem::forget(self);
    }
}

impl Drop for OneStep<'_> {
    fn drop(&mut self) {
        let dir = self.0.options.dir.display();
        tracing::error!(%dir, "a panic interrupted a step: the store refuses writes from now on");
        self.0.poison();
    }
}

/// Returns the error of a write to a store that was opened for reading only.
pub(crate) fn read_only() -> Error {
    Error::new(ErrorKind::ReadOnly, "the store was opened for reading only")
}
