//! How a store is opened.

use super::Store;
use crate::event::Observer;
use crate::pool::Threads;
use lsmith_policy::Registry;
use lsmith_storage::env::{Env, RealEnv};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::table::{Cache, TableOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The keyspace that is meant where none is named.
pub const DEFAULT_KEYSPACE: &str = "default";

/// The merge policy of a keyspace for which none is chosen.
pub const DEFAULT_POLICY: &str = "minlatency(k=6)";

/// The bound on memory must not be less.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// Of a bound on memory, a memtable gets this part, and the cache keeps it at the least.
pub(crate) const MEMORY_PARTS: u64 = 16;

/// Logical bytes of the largest memtable that can be asked for: 1 TiB, far more than one can hold.
pub(crate) const MEMTABLE_BYTES_MAX: u64 = 1 << 40;

/// How far a write must have got when the call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PersistMode {
    /// In the write-ahead log, which survives the death of the process. After power loss the store
    /// opens on a prefix of the batches, in their order.
    #[default]
    Buffer,
    /// On the device, with what is needed to read it back: survives power loss.
    SyncData,
    /// On the device, with all metadata of the log file: survives power loss.
    SyncAll,
}

/// Choices for one keyspace. They hold from its making on; the policy can be changed later. For a
/// keyspace that exists they are what it must have: see
/// [`Store::keyspace_with`](crate::Store::keyspace_with).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceOptions {
    /// The merge policy, such as `tiered(ratio=4)`; the store's if `None`, or whatever a keyspace
    /// that exists has.
    pub policy: Option<String>,
    /// Logical bytes at which a memtable is sealed, 1 to 2^40; the store's if `None`, or whatever a
    /// keyspace that exists has.
    pub memtable_bytes: Option<u64>,
}

/// What the store was opened with.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) dir: PathBuf,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) registry: Registry,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) policy: String,
    pub(crate) memtable_bytes: u64,
    pub(crate) compression: String,
    pub(crate) cache_bytes: u64,
    /// A cache that other stores use too.
    pub(crate) cache: Option<Cache>,
    /// What all memory together may come to, if it is bounded as a whole.
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) log_bytes: Option<u64>,
    pub(crate) log_bytes_max: Option<u64>,
    pub(crate) threads: usize,
    pub(crate) shared_threads: Option<Threads>,
    pub(crate) split_bytes: u64,
    pub(crate) merge_bytes_per_s: Option<u64>,
    pub(crate) persist: PersistMode,
    pub(crate) table: TableOptions,
    pub(crate) filters_by_size: bool,
    pub(crate) rewrite_below: f64,
    pub(crate) histograms: bool,
    pub(crate) lockstep: bool,
    pub(crate) read_only: bool,
    pub(crate) create_if_missing: bool,
}

impl Options {
    /// Capacity of a log file.
    pub(crate) fn log_bytes(&self, memtable_bytes: u64) -> u64 {
        self.log_bytes.unwrap_or(memtable_bytes / 8).clamp(64 * 1024, 1 << 30)
    }

    /// Bytes of log that may be written behind the first entry of a memtable before it is sealed
    /// however little it holds.
    pub(crate) fn quiet_bytes(&self, memtable_bytes: u64) -> u64 {
        self.log_bytes.unwrap_or(2 * memtable_bytes).max(64 * 1024).saturating_mul(3)
    }
}

/// Opens or creates a store; made by [`Store::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `open`"]
pub struct Builder {
    options: Options,
}

impl Builder {
    pub(super) fn new(dir: &Path) -> Builder {
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
        let options = self.options;
        check_memtable(options.memtable_bytes)?;
        options.registry.build(&options.policy).map_err(bad_policy)?;
        super::Compression::parse(&options.compression)?;
        check_memory(&options)?;
        Store::open(options)
    }
}

/// A bound on memory leaves room for all, and is the only one.
fn check_memory(options: &Options) -> Result<()> {
    let told = match options.memory_bytes {
        Some(bytes) if bytes < MEMORY_BYTES_MIN => {
            format!("memory of {bytes} bytes: expected at least {MEMORY_BYTES_MIN}")
        }
        Some(_) if options.cache.is_some() => {
            "memory_bytes bounds a cache of the store's own, not one that others use".to_string()
        }
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::InvalidArgument, told))
}

/// A memtable takes something, and no more than there can be.
pub(crate) fn check_memtable(bytes: u64) -> Result<()> {
    match bytes {
        1..=MEMTABLE_BYTES_MAX => Ok(()),
        _ => {
            let told = format!("a memtable of {bytes} bytes: expected 1 to {MEMTABLE_BYTES_MAX}");
            Err(Error::new(ErrorKind::InvalidArgument, told))
        }
    }
}

/// A policy spec that cannot be built.
pub(crate) fn bad_policy(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidArgument, error.to_string())
}

/// Keyspace names are used in text files and commands.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match !name.is_empty() && name.len() <= 64 && name.chars().all(fine) {
        true => Ok(()),
        false => {
            let told = format!(
                "a keyspace called `{name}`: expected 1 to 64 letters, digits, `_`, `-` or `.`"
            );
            Err(Error::new(ErrorKind::InvalidArgument, told))
        }
    }
}
