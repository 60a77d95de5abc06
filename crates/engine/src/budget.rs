//! One limit on the memory of several stores, and the share that each has of it.
//!
//! A store without company has a [`Memory`] of its own. What a store holds counts in its
//! [`Share`], and in the whole. A writer looks at the whole. If memtables take too much of it, the
//! store with the largest active ones seals one. The writer does that itself only for its own
//! store. It asks the threads of another store: nobody takes the locks of two stores, and no store
//! keeps another one open.

use crate::limit::MemoryLimit;
use crate::progress::Progress;
use lsmith_storage::account::{Account, Charge};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::memtable::Chunks;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use lsmith_storage::sync::{Mutex, Process};
use lsmith_storage::table::Cache;
use std::sync::{Arc, Weak};

/// One limit on the memory of several stores: see [`Builder::memory`](crate::Builder::memory). A
/// clone is the same limit, and cheap.
///
/// Stores that are opened with it stay within it together. Memtables of all stores count together,
/// and so do open tables and merges under way. One cache has what they leave.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{Memory, Store, Threads};
///
/// let memory = Memory::new(64 << 20);
/// let threads = Threads::new(2)?;
/// let open = |name| {
///     let builder = Store::builder(dir.path().join(name));
///     builder.memory(&memory).shared_threads(&threads).open()
/// };
/// let (left, right) = (open("left")?, open("right")?);
/// left.keyspace("default")?.put("lsm", "log-structured merge")?;
/// assert!(memory.bytes() < memory.limit_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("write buffer manager", "memory limit"))]
#[derive(Clone, Debug)]
pub struct Memory(Arc<Budget>);

/// What all stores with one limit share.
#[derive(Debug)]
struct Budget {
    limit: MemoryLimit,
    /// True if several stores may have this limit.
    is_shared: bool,
    /// The memory of memtables of all stores, and what they leave for the next ones.
    memtables: Arc<Account>,
    /// The memory of tables that merges write.
    merging: Arc<Account>,
    /// The memory of open tables.
    tables: Arc<Account>,
    /// What memtables take once the active ones are full.
    expected: Arc<Account>,
    cache: Cache,
    /// The process in which the limit was made.
    process: Process,
    shares: Mutex<Vec<Weak<Share>>>,
    /// The number of writers that wait for memory.
    waiting: AtomicUsize,
    /// True while the stores need more than the limit. Held while the capacity of the cache is set.
    exceeds: Mutex<bool>,
}

/// What one store has of the limit.
#[derive(Debug)]
pub(crate) struct Share {
    memory: Memory,
    /// The memory of memtables.
    pub(crate) chunks: Arc<Chunks>,
    /// The logical bytes of memtables that are going to be merged.
    pub(crate) coming_free: Arc<Account>,
    /// True if nothing is merged any more, because the store is poisoned.
    is_stuck: AtomicBool,
    /// The memory of tables that merges write.
    pub(crate) merging: Arc<Account>,
    /// Open tables, and memtables once the active ones are full.
    balance: Mutex<(Charge, Charge)>,
    /// The bytes of active memtables that the store can seal, when it last looked.
    active: AtomicU64,
    /// True if the store shall seal its largest memtable for others.
    asked: AtomicBool,
    /// The threads that merge.
    threads: usize,
    progress: Arc<Progress>,
}

/// Which store must seal a memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sealer {
    /// The store of the caller.
    Own,
    /// Another one, which was asked.
    Other,
    /// None: it would free little.
    None,
}

/// The capacity of the cache after a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Balance {
    /// The bytes that memtables, open tables and cache need.
    pub(crate) needed: u64,
    /// True if that has just begun to be more than the limit leaves them.
    pub(crate) begins_to_exceed: bool,
}

impl Memory {
    /// Returns a limit of `bytes`, at least 1 MiB; opening a store fails otherwise.
    pub fn new(bytes: u64) -> Memory {
        let limit = MemoryLimit::new(Some(bytes));
        Memory::with(limit, Cache::new(limit.cache_bytes(0, 0).unwrap_or(0)), true)
    }

    /// Returns a limit of `bytes`, or none, for one store. Without a limit or a `cache` that other
    /// stores share, the cache has `cache_bytes`.
    pub(crate) fn own(bytes: Option<u64>, cache: Option<&Cache>, cache_bytes: u64) -> Memory {
        let limit = MemoryLimit::new(bytes);
        let new_cache = || Cache::new(limit.cache_bytes(0, 0).unwrap_or(cache_bytes));
        Memory::with(limit, cache.cloned().unwrap_or_else(new_cache), false)
    }

    fn with(limit: MemoryLimit, cache: Cache, is_shared: bool) -> Memory {
        Memory(Arc::new(Budget {
            limit,
            is_shared,
            memtables: Arc::default(),
            merging: Arc::default(),
            tables: Arc::default(),
            expected: Arc::default(),
            cache,
            process: Process::here(),
            shares: Mutex::default(),
            waiting: AtomicUsize::new(0),
            exceeds: Mutex::new(false),
        }))
    }

    /// # Errors
    /// `InvalidArgument` in a child of the process that made the limit: stores of the parent hold
    /// parts of it, and no thread of the child can free them.
    pub(crate) fn check_here(&self) -> Result<()> {
        if self.0.process.is_here() {
            return Ok(());
        }
        let message = "the limit on memory is of the parent of this process: make one after the \
                       fork";
        Err(Error::new(ErrorKind::InvalidArgument, message))
    }

    /// Returns the limit in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.0.limit.bytes.unwrap_or(u64::MAX)
    }

    /// Returns the bytes that all stores with this limit hold in memory now.
    /// [`Store::memory`](crate::Store::memory) has the parts for one store.
    pub fn bytes(&self) -> u64 {
        let Budget { memtables, merging, tables, cache, .. } = &*self.0;
        memtables.bytes() + merging.bytes() + tables.bytes() + cache.bytes()
    }

    pub(crate) fn cache(&self) -> &Cache {
        &self.0.cache
    }

    fn shares(&self) -> Vec<Arc<Share>> {
        let mut shares = self.0.shares.lock();
        shares.retain(|share| share.strong_count() > 0);
        shares.iter().filter_map(Weak::upgrade).collect()
    }

    /// Returns the share of a new store. `spare_max` bytes of memory wait for its next memtable.
    pub(crate) fn join(
        &self,
        spare_max: u64,
        threads: usize,
        progress: &Arc<Progress>,
    ) -> Arc<Share> {
        let within = |whole| Arc::new(Account::within(whole));
        let Budget { memtables, merging, tables, expected, .. } = &*self.0;
        let share = Arc::new(Share {
            chunks: Arc::new(Chunks::new(spare_max, memtables)),
            coming_free: Arc::default(),
            is_stuck: AtomicBool::new(false),
            merging: within(merging),
            balance: Mutex::new((Charge::new(tables), Charge::new(expected))),
            active: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            threads,
            progress: Arc::clone(progress),
            memory: self.clone(),
        });
        self.0.shares.lock().push(Arc::downgrade(&share));
        share
    }
}

impl Share {
    fn budget(&self) -> &Budget {
        &self.memory.0
    }

    pub(crate) fn limit(&self) -> MemoryLimit {
        self.budget().limit
    }

    /// Returns true if several stores may have the limit.
    pub(crate) fn is_shared(&self) -> bool {
        self.budget().is_shared
    }

    /// Returns the bytes of memtables of all stores, and of what they leave for the next ones.
    #[inline]
    pub(crate) fn held_bytes(&self) -> u64 {
        self.budget().memtables.bytes()
    }

    /// Returns the bytes of memtables of all stores.
    pub(crate) fn used_bytes(&self) -> u64 {
        let spare = |share: &Arc<Share>| share.chunks.spare_bytes();
        let spare = self.memory.shares().iter().map(spare).sum::<u64>();
        self.held_bytes().saturating_sub(spare)
    }

    /// Frees what memtables of any store have left for the next ones.
    pub(crate) fn free_spare(&self) {
        self.memory.shares().iter().for_each(|share| share.chunks.free_spare());
    }

    /// Returns the logical bytes of memtables of all stores that are going to be merged.
    pub(crate) fn all_coming_free(&self) -> u64 {
        let shares = self.memory.shares();
        let going = shares.iter().filter(|share| !share.is_stuck.load(Relaxed));
        going.map(|share| share.coming_free.bytes()).sum()
    }

    /// Notes that nothing is merged any more: no memory of this store comes free.
    pub(crate) fn note_stuck(&self) {
        self.is_stuck.store(true, Relaxed);
    }

    /// Notes the bytes of active memtables that this store can seal.
    pub(crate) fn note_active(&self, bytes: u64) {
        self.active.store(bytes, Relaxed);
    }

    /// Returns which store must seal a memtable: the one with the most bytes in active ones, if all
    /// have at least `bytes_min`. Asks it if it is another store.
    pub(crate) fn choose_sealer(&self, bytes_min: u64) -> Sealer {
        let shares = self.memory.shares();
        let active = |share: &Arc<Share>| share.active.load(Relaxed);
        if shares.iter().map(active).sum::<u64>() < bytes_min {
            return Sealer::None;
        }
        match shares.iter().max_by_key(|share| active(share)) {
            Some(most) if active(most) > self.active.load(Relaxed) => {
                most.asked.store(true, Relaxed);
                most.progress.notify();
                Sealer::Other
            }
            _ => Sealer::Own,
        }
    }

    /// Returns true once if another store has asked this one to seal its largest memtable.
    pub(crate) fn is_asked_to_seal(&self) -> bool {
        self.asked.load(Relaxed) && self.asked.swap(false, Relaxed)
    }

    /// Calls `wait` on the thread of a writer that waits for memory.
    pub(crate) fn wait_for_memory(&self, wait: impl FnOnce()) {
        self.budget().waiting.fetch_add(1, Relaxed);
        wait();
        self.budget().waiting.fetch_sub(1, Relaxed);
    }

    /// Wakes writers of other stores that wait for memory.
    pub(crate) fn wake_waiting(&self) {
        if self.is_shared() && self.budget().waiting.load(Relaxed) > 0 {
            self.memory.shares().iter().for_each(|share| share.progress.notify());
        }
    }

    /// Returns the number of threads that write tables for stores with this limit.
    pub(crate) fn merging_threads(&self) -> usize {
        if !self.is_shared() {
            return self.threads;
        }
        let mut pools = Vec::new();
        let mut threads = 0;
        for share in self.memory.shares() {
            let pool = share.progress.pool_address();
            if pool.is_none() || !pools.contains(&pool) {
                threads += share.threads;
                pools.push(pool);
            }
        }
        threads
    }

    /// Notes what this store needs: `tables` bytes for open tables, and `memtables` once active
    /// memtables are full. Hands the bytes that all stores leave the cache to `set_capacity`, if
    /// there is a limit.
    pub(crate) fn balance(
        &self,
        tables: u64,
        memtables: u64,
        set_capacity: impl FnOnce(u64),
    ) -> Option<Balance> {
        let limit = self.limit();
        let mut balance = self.balance.lock();
        balance.0.set(tables);
        balance.1.set(memtables);
        drop(balance);
        let mut exceeds = self.budget().exceeds.lock();
        let tables = self.budget().tables.bytes();
        // Writers are held back before memtables take more.
        let expected = self.budget().expected.bytes().min(limit.memtables_max);
        let memtables = expected.max(self.held_bytes());
        let cache = limit.cache_bytes(memtables, tables)?;
        set_capacity(cache);
        let needed = memtables + tables + cache;
        let exceeded = std::mem::replace(&mut *exceeds, limit.is_exceeded_by(needed));
        Some(Balance { needed, begins_to_exceed: *exceeds && !exceeded })
    }
}
