//! How a store is opened.

use super::Store;
use crate::event::Observer;
use crate::options::{DEFAULT_POLICY, MEMORY_PARTS, Options, PersistMode};
use crate::threads::Threads;
use lsmith_policy::Registry;
use lsmith_storage::env::{Env, RealEnv};
use lsmith_storage::error::Result;
use lsmith_storage::table::{Cache, TableOptions};
use std::path::Path;
use std::sync::Arc;

/// Opens or creates a store; made by [`Store::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `open`"]
pub struct Builder {
    options: Options,
}

impl Store {
    /// Describes how to open or create the store in `dir`.
    pub fn builder(dir: impl AsRef<Path>) -> Builder {
        Builder::new(dir.as_ref())
    }
}

impl Builder {
    fn new(dir: &Path) -> Builder {
        Builder {
            options: Options {
                dir: dir.to_path_buf(),
                env: Arc::new(RealEnv::new()),
                registry: Registry::builtin(),
                observer: None,
                policy: DEFAULT_POLICY.to_string(),
                memtable_bytes: 56 << 20,
                compression: "none".to_string(),
                cache_bytes: 64 << 20,
                cache: None,
                memory_bytes: None,
                log_bytes: None,
                log_bytes_max: None,
                threads: 2,
                shared_threads: None,
                split_bytes: 32 << 20,
                merge_bytes_per_s: None,
                persist: PersistMode::Buffer,
                table: TableOptions::default(),
                filters_by_size: true,
                rewrite_below: 0.25,
                histograms: false,
                lockstep: false,
                read_only: false,
                create_if_missing: true,
            },
        }
    }

    /// The merge policy of keyspaces that are made from now on without one of their own, such as
    /// `leveled(ratio=10)`. Default: [`DEFAULT_POLICY`].
    pub fn policy(mut self, spec: impl Into<String>) -> Builder {
        self.options.policy = spec.into();
        self
    }

    /// Logical bytes (key + value + 8 per entry) at which the memtable of a keyspace made from now
    /// on is sealed, 1 to 2^40. Default: 56 MiB. Beside a sealed one that is being merged the next
    /// may grow to 8 MiB, or to a seventh of this where that is more, or to four times this where
    /// that is less: writers are slowed the more the less of that is left. So the default comes to
    /// 64 MiB.
    pub fn memtable_bytes(mut self, bytes: u64) -> Builder {
        self.options.memtable_bytes = bytes;
        self
    }

    /// How tables of keyspaces made from now on are compressed: `none`, `lz4` or `zstd`, or a list
    /// of these for the levels of the tree, the youngest first, whose last goes on below, such as
    /// `none,none,zstd(level=6)`. Policies that read the tree as one stack keep all runs in
    /// level 0. Logical bytes, and so all that policies decide, stay the same. Default: `none`.
    /// [`Keyspace::set_compression`](crate::Keyspace::set_compression) changes it.
    pub fn compression(mut self, codecs: impl Into<String>) -> Builder {
        self.options.compression = codecs.into();
        self
    }

    /// Bytes of table blocks kept in memory for all keyspaces together; 0 for none. Blocks that
    /// are not compressed are looked at where the system has them, if the environment maps files
    /// as the default one does, and not kept here. Default: 64 MiB.
    pub fn cache_bytes(mut self, bytes: u64) -> Builder {
        self.options.cache_bytes = bytes;
        self
    }

    /// A cache that other stores use too, in the place of one of `cache_bytes`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use lsmith::{Cache, Store};
    ///
    /// let cache = Cache::new(64 << 20);
    /// let left = Store::builder(dir.path().join("left")).cache(&cache).open()?;
    /// let right = Store::builder(dir.path().join("right")).cache(&cache).open()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cache(mut self, cache: &Cache) -> Builder {
        self.options.cache = Some(cache.clone());
        self
    }

    /// One bound on what the store holds in memory: memtables, blocks, and the fences, filters and
    /// profiles of open tables. At least 1 MiB. Memtables of keyspaces made from now on get a
    /// sixteenth each, of which a keyspace has up to five while merges are behind; call
    /// [`memtable_bytes`](Builder::memtable_bytes) after this for another size. The cache has what
    /// the others leave, and a sixteenth at the least: where memtables of many keyspaces, or
    /// tables (about 12 bits for each entry and 60 bytes for each block), take more than the
    /// rest, the bound does not hold. [`Store::memory`] says who has how much. What the system
    /// keeps of mapped tables is the system's, and not counted. In the place of `cache_bytes`; not
    /// together with [`cache`](Builder::cache).
    pub fn memory_bytes(mut self, bytes: u64) -> Builder {
        self.options.memory_bytes = Some(bytes);
        self.options.memtable_bytes = bytes / MEMORY_PARTS;
        self
    }

    /// Bytes of a log file, allocated ahead, 64 KiB to 1 GiB. Default: an eighth of the memtable's.
    pub fn log_bytes(mut self, bytes: u64) -> Builder {
        self.options.log_bytes = Some(bytes);
        self
    }

    /// Bytes of log files that old entries in memory may hold on to, one more file not counted.
    /// Under policies that leave entries in memory for long, what memory holds is copied to a file
    /// when more would stay, and counted as log. Default: 4 times the memtables of all keyspaces.
    pub fn log_bytes_max(mut self, bytes: u64) -> Builder {
        self.options.log_bytes_max = Some(bytes);
        self
    }

    /// Threads that merge, at least 1. With two or more, one is kept for plans that take a
    /// memtable. Default: 2.
    pub fn threads(mut self, threads: usize) -> Builder {
        self.options.threads = threads.max(1);
        self
    }

    /// Threads that merge for this store and for others, instead of threads of its own.
    pub fn shared_threads(mut self, threads: &Threads) -> Builder {
        self.options.shared_threads = Some(threads.clone());
        self
    }

    /// Logical bytes that each of several threads takes of one merge, at least: smaller merges are
    /// carried out by one thread. Default: 32 MiB.
    pub fn split_bytes(mut self, bytes: u64) -> Builder {
        self.options.split_bytes = bytes.max(1);
        self
    }

    /// Logical bytes that merges write in a second at most, all of the store together; `None` for
    /// no limit. Flushes of single memtables are not limited, and the limit gives way while writers
    /// are held back because merges are behind. Nothing is limited in lockstep. Default: `None`.
    pub fn merge_bytes_per_s(mut self, bytes: Option<u64>) -> Builder {
        self.options.merge_bytes_per_s = bytes;
        self
    }

    /// How far single writes must have got when they return; batches say for themselves. Default:
    /// [`PersistMode::Buffer`].
    pub fn persist(mut self, mode: PersistMode) -> Builder {
        self.options.persist = mode;
        self
    }

    /// Logical bytes of a data block: one is cut before the entry that would make it larger.
    /// Default: 4096.
    pub fn block_bytes(mut self, bytes: usize) -> Builder {
        self.options.table.block_bytes = bytes.max(1);
        self
    }

    /// Bits of filter per key, on average over all runs; 0 for no filter. Default: 10, for about
    /// 1 % of needless reads of each run.
    pub fn filter_bits(mut self, bits: u8) -> Builder {
        self.options.table.filter_bits_per_key = bits;
        self
    }

    /// Whether small runs get more bits of filter per key than large ones, so that lookups of
    /// absent keys read less in vain with the same memory. Default: true.
    pub fn filters_by_size(mut self, by_size: bool) -> Builder {
        self.options.filters_by_size = by_size;
        self
    }

    /// The part of a table that is needed (0 to 1) below which what is left of it is written anew,
    /// where the file system cannot give back the space of the other parts. Default: 0.25.
    pub fn rewrite_below(mut self, share: f64) -> Builder {
        self.options.rewrite_below = share;
        self
    }

    /// Whether latencies and sizes are counted for [`Store::histograms`]: two looks at the clock
    /// for each lookup and each write. Default: false.
    pub fn histograms(mut self, histograms: bool) -> Builder {
        self.options.histograms = histograms;
        self
    }

    /// Makes every write wait until the tree has come to rest, without any threads: the same
    /// writes then always lead to the same plans, as in a simulation. Default: false.
    pub fn lockstep(mut self, lockstep: bool) -> Builder {
        self.options.lockstep = lockstep;
        self
    }

    /// Opens for reading only: nothing in the directory is changed but the lock. Default: false.
    pub fn read_only(mut self, read_only: bool) -> Builder {
        self.options.read_only = read_only;
        self
    }

    /// Whether a store is made where there is none. Default: true.
    pub fn create_if_missing(mut self, create: bool) -> Builder {
        self.options.create_if_missing = create;
        self
    }

    /// The policies that specs may name. Default: the built-in ones.
    pub fn registry(mut self, registry: Registry) -> Builder {
        self.options.registry = registry;
        self
    }

    /// Whom to tell what happens.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Builder {
        self.options.observer = Some(observer);
        self
    }

    /// Where files are. Default: the operating system's.
    pub fn env(mut self, env: Arc<dyn Env>) -> Builder {
        self.options.env = env;
        self
    }

    /// Opens the store. What was promised before a crash is there again.
    ///
    /// The directory is made where it is missing, with those above it, and made to survive power
    /// loss. New directories and files are for their owner alone (modes 0700 and 0600, less what
    /// the process's umask takes away); a directory that exists keeps its mode. The directory
    /// itself may be a symbolic link; nothing in it is followed if it is one. Files that have none
    /// of the store's names stay as they are, and so do those with numbers that it never gave.
    ///
    /// # Errors
    /// `NotFound` where there is no store and none may be made; `InvalidArgument` where the
    /// directory holds something else, or an option cannot be; `Locked` where somebody has it
    /// open; `Corruption` with path and offset; `Unsupported` for newer formats and unknown
    /// policies; `Full`; `Io`, also where a name of the store is no regular file.
    pub fn open(self) -> Result<Store> {
        self.options.check()?;
        Store::open(self.options)
    }
}
