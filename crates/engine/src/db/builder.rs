//! The options of a store, and opening it.

use super::Store;
use crate::budget::Memory;
use crate::clock::Clock;
use crate::event::Observer;
use crate::options::RecordOptions;
use crate::options::{DEFAULT_POLICY, Options, PersistMode};
use crate::rules::{CombineOperators, Filters, MergeFilter};
use crate::threads::Threads;
use lsmith_policy::{PolicyChoice, Registry};
use lsmith_storage::cipher::Keys;
use lsmith_storage::combine::Combine;
use lsmith_storage::env::{CipherEnv, Env, RealEnv};
use lsmith_storage::error::Result;
use lsmith_storage::table::{Cache, TableOptions};
use std::path::Path;
use std::sync::Arc;

/// Options for opening or creating a store; returned by [`Store::builder`].
///
/// Merge policy, memtable size and compression are stored per keyspace when it is made. All other
/// options hold until the store is closed, and may differ at the next opening.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `open`"]
pub struct Builder {
    pub(super) options: Options,
}

impl Store {
    /// Returns the options for opening or creating the store in directory `dir`, all with their
    /// defaults. A relative path leads on from where the process is when it opens the store.
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
                operators: CombineOperators::default(),
                clock: Clock::default(),
                names_clock: false,
                filters: Filters::default(),
                observer: None,
                policy: DEFAULT_POLICY.into(),
                memtable_bytes: 56 << 20,
                compression: "none".to_string(),
                cache_bytes: 64 << 20,
                cache: None,
                memory_bytes: None,
                shared_memory: None,
                memory: None,
                names_sizes: false,
                space_bytes: None,
                log_bytes: None,
                log_bytes_max: None,
                changes_bytes: 0,
                threads: 2,
                shared_threads: None,
                split_bytes: 32 << 20,
                merge_bytes_per_s: None,
                persist: PersistMode::Buffer,
                table: TableOptions::default(),
                filters_by_size: true,
                keep_tables: true,
                rewrite_below: 0.25,
                values_from: None,
                value_space: 2.0,
                histograms: false,
                lockstep: false,
                read_only: false,
                renew_keys: false,
                create_if_missing: true,
                max_open_files: None,
                unleased: false,
                record: None,
            },
        }
    }

    /// The merge policy of new keyspaces that choose none, as a spec such as `leveled(ratio=10)`.
    /// Default: [`DEFAULT_POLICY`].
    ///
    /// The policy trades write cost against read cost and space cost.
    /// [`Keyspace::set_merge_policy`](crate::Keyspace::set_merge_policy) changes the policy of a
    /// keyspace.
    ///
    /// A policy can also be given as a value, also one of your own. The manifest keeps its
    /// [spec](lsmith_policy::MergePolicy::spec). At the next opening a keyspace with that spec gets
    /// the policy that is given here then. Without one, the [registry](Builder::registry) builds
    /// it.
    #[doc(alias("compaction strategy", "compaction style"))]
    pub fn policy(mut self, policy: impl Into<PolicyChoice>) -> Builder {
        self.options.policy = policy.into();
        self
    }

    /// Registers a combine operator for keyspaces that [name](crate::KeyspaceOptions::operator) it.
    /// It replaces one of the same name. A store does not open without the operators of its
    /// keyspaces.
    ///
    /// Default: [`Counter`](crate::Counter) only.
    #[doc(alias = "merge operator")]
    pub fn operator(mut self, operator: impl Combine + 'static) -> Builder {
        self.options.operators.add(Arc::new(operator));
        self
    }

    /// The clock by which entries [expire](crate::KeyspaceOptions::expiry). A store whose entries
    /// can expire knows the name of its clock, and does not open with another. Default: the clock
    /// [`UNIX_SECONDS`](Clock::UNIX_SECONDS).
    pub fn clock(mut self, clock: Clock) -> Builder {
        self.options.clock = clock;
        self.options.names_clock = true;
        self
    }

    /// The filter of merges in the keyspace called `keyspace`, if it exists or once it is made. It
    /// holds until the store is closed. Default: no filters.
    #[doc(alias = "compaction filter")]
    pub fn merge_filter(
        mut self,
        keyspace: impl Into<String>,
        filter: impl MergeFilter + 'static,
    ) -> Builder {
        self.options.filters.0.insert(keyspace.into(), Arc::new(filter));
        self
    }

    /// Knows these combine operators only.
    pub(crate) fn operators(mut self, operators: CombineOperators) -> Builder {
        self.options.operators = operators;
        self
    }

    /// The logical bytes (key + value + 8 per entry) at which the memtable of a new keyspace is
    /// sealed, 1 to 2^40. Default: 56 MiB.
    ///
    /// Large memtables lower the write cost, and take more memory and more write-ahead log, which
    /// opening the store reads back. While a full memtable is merged, writers have a reserve of
    /// 8 MiB: at least a seventh of `bytes`, and otherwise at most four times `bytes`. Writers are
    /// slowed as the reserve fills up. With the default, memtable and reserve are 64 MiB together.
    #[doc(alias = "write buffer size")]
    pub fn memtable_bytes(mut self, bytes: u64) -> Builder {
        self.options.memtable_bytes = bytes;
        self.options.names_sizes = true;
        self
    }

    /// The codec of data blocks in new keyspaces: `none`, `lz4` or `zstd`, or a list of these, one
    /// for each level, youngest first, such as `none,none,zstd(level=6)`. All deeper levels use the
    /// last codec. Default: `none`.
    ///
    /// Compression saves space, and costs CPU in merges and in every read of a block; blocks that
    /// are not compressed are read in place from mapped files. Policies that read the tree as one
    /// stack keep all runs in level 0. Policies count logical bytes, so their decisions do not
    /// depend on the codec. [`Keyspace::set_compression`](crate::Keyspace::set_compression) changes
    /// the codec of a keyspace. [Large values](Builder::large_values) are compressed one by one,
    /// with the last codec, wherever that saves an eighth.
    pub fn compression(mut self, codecs: impl Into<String>) -> Builder {
        self.options.compression = codecs.into();
        self
    }

    /// The capacity in bytes of the block cache that all keyspaces share; 0 for no cache. Default:
    /// 64 MiB.
    ///
    /// The cache holds compressed tables' blocks after decompression, and all blocks if the
    /// environment does not map files into memory. The default environment maps files: blocks that
    /// are not compressed are then left to the system's page cache.
    #[doc(alias = "block cache")]
    pub fn cache_bytes(mut self, bytes: u64) -> Builder {
        self.options.cache_bytes = bytes;
        self.options.names_sizes = true;
        self
    }

    /// A block cache that several stores share, in place of [`cache_bytes`](Builder::cache_bytes).
    /// Default: a cache of the store's own.
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
        self.options.names_sizes = true;
        self
    }

    /// A limit in bytes, at least 1 MiB, on all memory of the store: memtables, block cache, merges
    /// under way, and the fence pointers, filters and profiles of open tables. Default: half of
    /// what the control group of the process leaves, if that is less than 256 MiB and no other
    /// option chooses a size of memtables or cache; otherwise no limit.
    ///
    /// * It replaces [`cache_bytes`](Builder::cache_bytes), and excludes [`cache`](Builder::cache).
    /// * It sets [`memtable_bytes`](Builder::memtable_bytes) to a sixteenth of `bytes`; call that
    ///   method afterwards for another size.
    /// * All memtables together have up to five sixteenths. From three on, the largest one is
    ///   sealed before it is full. At five, writers wait for merges.
    /// * Merges have a sixteenth. They cut tables so that what becomes a filter fits into it.
    /// * A quarter is left to the allocator of the process, for what it holds beyond what it was
    ///   asked for.
    /// * The cache has what is left, one to five sixteenths. It shrinks as open tables come to need
    ///   more (about 12 bits per entry and 60 bytes per block). Where they need more than five
    ///   sixteenths, the store can exceed the limit by the difference, and says so: in
    ///   [`Store::memory`], and in a warning of the log of the process. Reads never fail for it.
    ///   Fewer [filter bits](Builder::filter_bits) or larger [blocks](Builder::block_bytes) help.
    /// * Not counted are memtables that only iterators and snapshots still read while they are
    ///   freed, blocks and values that callers hold, and the system's page cache, which holds
    ///   mapped tables.
    ///
    /// From 32 MiB on, the memory of a process that does nothing else stays within `bytes` to a
    /// tenth. docs/memory.md has figures.
    #[doc(alias("memory limit", "write buffer manager"))]
    pub fn memory_bytes(mut self, bytes: u64) -> Builder {
        self.options.limit_memory(bytes);
        self
    }

    /// Limits what the files of the store take on the device, in bytes. Default: no limit.
    ///
    /// * The files in the directory of the store count: tables, values, logs, manifest. Outputs of
    ///   merges count while they are written, and inputs until they are removed.
    /// * Writers stop at seven eighths, less what memtables will take. The store then flushes
    ///   memory and merges whole keyspaces, if that frees enough: more than a sixteenth. Otherwise
    ///   they fail with [`ErrorKind::Full`](crate::ErrorKind::Full), and nothing is written.
    /// * Batches that only delete go on up to fifteen sixteenths, so that a full store can be
    ///   emptied. So do [`Keyspace::clear`](crate::Keyspace::clear) and
    ///   [`Store::drop_keyspace`](crate::Store::drop_keyspace).
    ///   [`Store::set_space_bytes`](crate::Store::set_space_bytes) sets another limit.
    /// * Merges never exceed it. Large ones are committed part by part, and free their inputs as
    ///   they go.
    /// * The manifest is never refused. An opening may exceed the limit by a log.
    /// * Files that readers, snapshots and iterators still need are counted until they are removed.
    ///   Copies elsewhere, such as checkpoints, are not.
    ///
    /// It makes memtables smaller if they are larger than a thirty-second of it; call
    /// [`memtable_bytes`](Builder::memtable_bytes) afterwards for another size, up to a sixteenth.
    #[doc(alias("max_allowed_space_usage", "quota", "disk limit"))]
    pub fn space_bytes(mut self, bytes: u64) -> Builder {
        self.options.space_bytes = Some(bytes);
        self.options.fit_into_space();
        self
    }

    /// A limit on memory that several stores of the process stay within together, in place of
    /// [`memory_bytes`](Builder::memory_bytes). It sets the same options and has the same parts:
    /// each is for all stores together.
    ///
    /// * If all memtables have too much, the largest of any store is sealed, also of a store that
    ///   nobody writes to. Writers of all stores wait at five sixteenths.
    /// * All stores share one cache.
    /// * Four stores need 64 MiB to stay within it to a tenth.
    /// * The part of merges is divided by the threads of all stores. Stores with a common limit
    ///   should have [common threads](Builder::shared_threads) too.
    /// * It excludes [`cache`](Builder::cache) and [`lockstep`](Builder::lockstep).
    #[doc(alias = "write buffer manager")]
    pub fn memory(mut self, memory: &Memory) -> Builder {
        self.options.limit_memory(memory.limit_bytes());
        self.options.memory = Some(memory.clone());
        self
    }

    /// The bytes of a write-ahead log file, which are allocated ahead. Values are limited to 64 KiB
    /// to 1 GiB. Default: an eighth of the largest memtable.
    ///
    /// Large files are begun less often. Small files can be removed sooner.
    #[doc(alias = "wal")]
    pub fn log_bytes(mut self, bytes: u64) -> Builder {
        self.options.log_bytes = Some(bytes);
        self
    }

    /// Limits the write-ahead log that old entries in memory keep alive, in bytes. One file of the
    /// log is not counted.
    /// Default: 4 times the memtable sizes of all keyspaces together.
    ///
    /// The limit matters under policies that leave entries in memory for long. Beyond it, memory is
    /// copied to a file, which counts as log, and the old logs go. A low limit saves space and
    /// makes opening faster; each copy costs writes.
    pub fn log_bytes_max(mut self, bytes: u64) -> Builder {
        self.options.log_bytes_max = Some(bytes);
        self
    }

    /// The bytes of write-ahead log that are kept for [change feeds](crate::Store::changes) after
    /// memory no longer needs them. Default: 0.
    ///
    /// The newest logs are kept, whether a feed reads them or not. They are kept while the store is
    /// closed. An opening removes what is beyond its own bound.
    #[doc(alias = "change data capture")]
    pub fn changes_bytes(mut self, bytes: u64) -> Builder {
        self.options.changes_bytes = bytes;
        self
    }

    /// The number of threads that merge, 1 to 1024. Default: 2.
    ///
    /// With two or more, one thread carries out only plans that take a memtable, and short ones if
    /// no memtable waits. So memtables never wait for a long merge. More threads merge faster, and
    /// take CPU and device bandwidth from reads and writes.
    #[doc(alias = "compaction threads")]
    pub fn threads(mut self, threads: usize) -> Builder {
        self.options.threads = threads.max(1);
        self
    }

    /// Threads that merge for several stores, in place of [`threads`](Builder::threads). Default:
    /// threads of the store's own.
    pub fn shared_threads(mut self, threads: &Threads) -> Builder {
        self.options.shared_threads = Some(threads.clone());
        self
    }

    /// The least logical bytes that a thread takes of a merge which several threads carry out
    /// together; smaller merges have one thread. Default: 32 MiB.
    ///
    /// Small values spread merges over more threads, and make more tables.
    pub fn split_bytes(mut self, bytes: u64) -> Builder {
        self.options.split_bytes = bytes.max(1);
        self
    }

    /// The most logical bytes per second that all merges of the store write; `None` for no limit.
    /// Default: `None`.
    ///
    /// A limit leaves device bandwidth to reads, and delays merges. Flushes of single memtables are
    /// not limited. The limit is lifted while writers are held back, and in lockstep.
    #[doc(alias = "rate limiter")]
    pub fn merge_bytes_per_s(mut self, bytes: Option<u64>) -> Builder {
        self.options.merge_bytes_per_s = bytes;
        self
    }

    /// How durable single writes are when they return. Default: [`PersistMode::Buffer`]. Batches
    /// choose for themselves.
    ///
    /// `SyncData` and `SyncAll` cost a sync of the device per write; concurrent writers share
    /// syncs.
    pub fn persist(mut self, mode: PersistMode) -> Builder {
        self.options.persist = mode;
        self
    }

    /// The most logical bytes of a data block, 1 to 2^28, unless one entry is larger. Default:
    /// 4096.
    ///
    /// A lookup reads a whole block. Large blocks need less memory for fence pointers (about
    /// 60 bytes per block) and compress better.
    pub fn block_bytes(mut self, bytes: usize) -> Builder {
        self.options.table.block_bytes = bytes.max(1);
        self
    }

    /// The bits of filter per key, on average over all runs; 0 for no filter. Default: 10.
    ///
    /// Filters take memory, and spare lookups the runs that do not hold the key. At 10 bits, about
    /// 1 % of the runs without the key are read in vain.
    #[doc(alias = "bloom filter")]
    pub fn filter_bits(mut self, bits: u8) -> Builder {
        self.options.table.filter_bits_per_key = bits;
        self
    }

    /// Sets whether merges keep tables as they are: a table where no other input of a merge has
    /// keys becomes a part of the output, and is neither read nor written. So keys that come in
    /// order are written once. Default: `true`. If `false`, merges write all that they take.
    ///
    /// Merges by hand always write all that they take, and so do merges of a keyspace that has an
    /// operator, a filter or expiry.
    #[doc(alias = "trivial move")]
    pub fn keep_tables(mut self, keep: bool) -> Builder {
        self.options.keep_tables = keep;
        self
    }

    /// Whether small runs get more bits of filter per key than large runs. Default: true.
    ///
    /// With the same memory, lookups of absent keys then read fewer blocks in vain.
    pub fn filters_by_size(mut self, by_size: bool) -> Builder {
        self.options.filters_by_size = by_size;
        self
    }

    /// The live share of a table, 0 to 1, below which its rest is rewritten. Default: 0.25.
    ///
    /// It matters only if the file system cannot punch holes: dead blocks then occupy space until
    /// their table goes. High values save space, and cost rewrites.
    pub fn rewrite_below(mut self, share: f64) -> Builder {
        self.options.rewrite_below = share;
        self
    }

    /// The length in bytes from which on values lie in files of their own, at least 1. Default:
    /// `None`, all values lie in tables. A length of less than some hundred bytes saves nothing.
    ///
    /// Merges then copy references of 28 bytes in place of the values. So a value is written to the
    /// log and once to a value file, however often its entry is merged. In return a read of such a
    /// value reads two files, and garbage stays until a file is
    /// [cleaned](Builder::value_space). docs/large-values.md says when that pays off.
    ///
    /// The option can change with each opening. Values move when merges meet them: long ones of
    /// tables into value files, and with `None` all back into tables. Keyspaces with an operator,
    /// with expiry or with a filter of merges, and append tables, keep all values in tables.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use lsmith::Store;
    ///
    /// let store = Store::builder(dir.path()).large_values(4096).open()?;
    /// let pictures = store.keyspace("pictures")?;
    /// pictures.put("cat", vec![7; 10_000])?;
    /// pictures.put("dot", "short")?;
    /// pictures.flush()?;
    /// assert_eq!(pictures.stats().value_files, 1);
    /// assert!(pictures.stats().table_bytes < 1000);
    /// assert_eq!(pictures.get("cat")?.unwrap().len(), 10_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("blob", "value log", "key-value separation"))]
    pub fn large_values(mut self, from_bytes: impl Into<Option<u64>>) -> Builder {
        self.options.values_from = from_bytes.into();
        self
    }

    /// The bound on the space of the value files of a keyspace: as many times the bytes of values
    /// that its tables refer to, at least 1.05. Default: 2.
    ///
    /// Beyond it, the files with the most garbage are cleaned: their values are written again, and
    /// the files go. Low bounds save space, and cost writes. Space that snapshots, readers and
    /// copies under way keep from being freed comes on top.
    pub fn value_space(mut self, ratio: f64) -> Builder {
        self.options.value_space = ratio;
        self
    }

    /// Whether [`Store::histograms`] records latencies and sizes, and [`Store::metrics`] says why
    /// merges wrote what they wrote. Default: false.
    ///
    /// It costs two readings of the clock per lookup and per write.
    pub fn histograms(mut self, histograms: bool) -> Builder {
        self.options.histograms = histograms;
        self
    }

    /// Whether writers carry out all merges themselves, until the tree is at rest, in place of
    /// threads. Default: false.
    ///
    /// The same writes then always lead to the same plans, as in a simulation. Writes that seal a
    /// memtable wait for all merges that follow.
    pub fn lockstep(mut self, lockstep: bool) -> Builder {
        self.options.lockstep = lockstep;
        self
    }

    /// Whether the store is opened for reading only. Default: false.
    ///
    /// Any number of processes may read a store, also while another one writes it. They see what
    /// was written when they opened it, synced or not; [`Store::refresh`] shows what came later.
    /// The write-ahead log is read back into memory. Nothing in the directory is changed but the
    /// folder `readers`, where each reader holds a lease: what it reads is not freed until it is
    /// closed, refreshed, or dead.
    ///
    /// Where no lease can be made, on a read-only or full medium or in a directory of others, the
    /// store is read without one. Nothing then keeps a writer, if there is one, from freeing what
    /// this store reads. So tables are not mapped, and each block is checked whenever it is read
    /// from its file: what is gone is an error, never a wrong answer. Opening the store again shows
    /// what is there.
    #[doc(alias = "secondary instance")]
    pub fn read_only(mut self, read_only: bool) -> Builder {
        self.options.read_only = read_only;
        self
    }

    /// The number of table files that stay open at a time, at least 1. Default: a quarter of the
    /// files that the process may have open.
    ///
    /// It matters where files are not mapped: compressed tables, and environments without maps.
    /// There the files that were read least recently are closed, and opened again by the next
    /// read, which costs a few microseconds. A mapped table keeps no file open. If the process
    /// cannot open a file because it has too many, the store closes all of these and tries again.
    /// Besides tables, a store has about eight files open, and two more for each thread that
    /// merges.
    pub fn max_open_files(mut self, files: usize) -> Builder {
        self.options.max_open_files = Some(files);
        self
    }

    /// Whether a store is created if the directory has none. Default: true.
    pub fn create_if_missing(mut self, create: bool) -> Builder {
        self.options.create_if_missing = create;
        self
    }

    /// The merge policies that specs may name. Default: the built-in policies.
    pub fn registry(mut self, registry: Registry) -> Builder {
        self.options.registry = registry;
        self
    }

    /// The observer that is called with every change of a tree. Default: none.
    ///
    /// Calls hold locks of the store, so a slow observer slows the store.
    #[doc(alias = "event listener")]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Builder {
        self.options.observer = Some(observer);
        self
    }

    /// Records the workload in a new file of `folder` from the opening on, as
    /// [`Store::record`] does. Default: no recording. A store that is opened for reading only is
    /// not recorded.
    #[doc(alias = "trace")]
    pub fn record(mut self, folder: impl AsRef<Path>, options: RecordOptions) -> Builder {
        self.options.record = Some((folder.as_ref().to_path_buf(), options));
        self
    }

    /// The environment that provides files, locks and time. Default: the operating system's.
    pub fn env(mut self, env: Arc<dyn Env>) -> Builder {
        self.options.env = match self.options.env.encryption() {
            Some(encryption) if env.encryption().is_none() => {
                Arc::new(CipherEnv::of(encryption.over(env)))
            }
            _ => env,
        };
        self
    }

    /// Encrypts all files of the store with `keys`. Default: no encryption. A store keeps what it
    /// has: one that was written without keys, or with others, does not open with these; the error
    /// is `Unsupported` and says which key is missing. See `docs/encryption.md`.
    ///
    /// The keys also encrypt checkpoints, exported tables and recordings.
    /// [`Backups`](crate::Backups) and [`TableWriter`](crate::TableWriter) get them by their
    /// environment, a [`CipherEnv`].
    #[doc(alias("cipher", "encryption", "tde"))]
    pub fn keys(mut self, keys: Keys) -> Builder {
        let env = match self.options.env.encryption() {
            Some(encryption) => Arc::clone(encryption.inner()),
            None => self.options.env,
        };
        self.options.env = Arc::new(CipherEnv::new(env, keys));
        self
    }

    /// Has the opening encrypt all files of the store that have an older key with the newest one,
    /// before it reads them. It takes as long as copying them, and room for the longest one.
    /// Afterwards no older key is needed. Without it, files get the newest key when merges write
    /// them. Default: `false`. A store that is opened for reading only is left as it is.
    ///
    /// Readers in other processes have to be opened again. Checkpoints and backups keep their keys,
    /// and so do `*.lost` files.
    #[doc(alias("rotate", "rekey"))]
    pub fn renew_keys(mut self, renew: bool) -> Builder {
        self.options.renew_keys = renew;
        self
    }

    /// Opens the store, or creates it. After a crash, everything that was durable is there again.
    ///
    /// * A missing directory is made, with its parents, so that it survives power loss. New
    ///   directories and files belong to their owner alone: modes 0700 and 0600, less the umask of
    ///   the process. An existing directory keeps its mode.
    /// * The directory may be a symbolic link. Symbolic links in the directory are not followed.
    /// * Files with other names than a store gives stay as they are, and so do files with ids that
    ///   the store never used.
    ///
    /// # Errors
    /// * `NotFound` if there is no store and none may be created.
    /// * `InvalidArgument` if the directory holds other files but no store, if its path is empty,
    ///   or if an option is out of range.
    /// * `Locked` if the store is open for writing already, in this process or another. Opening for
    ///   reading does not fail with it.
    /// * `Corruption` if a file is damaged; the error names path and offset.
    /// * `Unsupported` if the files have a newer format or name a policy or an operator that is not
    ///   registered, or a clock of another name.
    /// * `Full` if the device has no room.
    /// * `Io` if the system refuses an operation, or if a file of the store is not a regular file.
    pub fn open(mut self) -> Result<Store> {
        self.options.fit_into_group();
        self.options.check()?;
        Store::open(self.options)
    }
}
