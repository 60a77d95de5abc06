//! The options that a store is opened with, and the rules that they obey.

use crate::budget::Memory;
use crate::clock::Clock;
use crate::compression::Compression;
use crate::event::Observer;
use crate::limit::MemoryLimit;
use crate::rules::{CombineOperators, Expiry, Filters};
use crate::space::{check_space, usual_memtable};
use crate::threads::{Threads, check_threads};
use lsmith_policy::{MergePolicy, PolicyChoice, Registry};
use lsmith_spec::{Spec, SpecError};
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::VALUE_BYTES_MAX;
use lsmith_storage::table::{Cache, OpenFiles, TableOptions};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The name of the default keyspace, which commands use if none is given.
pub const DEFAULT_KEYSPACE: &str = "default";

/// The merge policy of a keyspace if none is chosen.
pub const DEFAULT_POLICY: &str = "minlatency(k=6)";

/// The smallest bound on memory, in bytes.
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// The largest memtable that options may ask for, in logical bytes: 1 TiB, far more than one can
/// hold.
pub(crate) const MEMTABLE_BYTES_MAX: u64 = 1 << 40;

/// The largest data block that options may ask for, in logical bytes: as long as the longest value.
const BLOCK_BYTES_MAX: usize = VALUE_BYTES_MAX;

/// The least bound on the space of value files. Below it most of what is written would be values
/// that are moved.
const VALUE_SPACE_MIN: f64 = 1.05;

/// The longest prefix that filters can hold, in bytes.
const PREFIX_BYTES_MAX: u16 = 1024;

/// The bytes of a recording at which it ends, by default.
const RECORDING_BYTES_MAX: u64 = 256 << 20;

/// Of as many keys one is recorded, by default.
const RECORDED_ONE_IN: u32 = 64;

/// How a store is recorded: see [`Store::record`](crate::Store::record).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordOptions {
    /// Of as many keys one is recorded, 1 to 2^20. Default: 64. A memtable should hold at least
    /// some hundred recorded entries: with fewer, the recording does not say what merges cost.
    pub one_in: u32,
    /// The length of the recording in bytes at which it ends. Default: 256 MiB.
    pub bytes_max: u64,
    /// The time after which it ends. Default: none.
    pub time_max: Option<Duration>,
    /// Whether the recording has the keys that are there when it begins. Default: `true`. They are
    /// found by reading the whole store once, in the background. Without them, a replay begins
    /// with an empty store.
    pub base: bool,
}

impl Default for RecordOptions {
    fn default() -> RecordOptions {
        RecordOptions {
            one_in: RECORDED_ONE_IN,
            bytes_max: RECORDING_BYTES_MAX,
            time_max: None,
            base: true,
        }
    }
}

/// What a write survives once its call has returned.
#[doc(alias("wal", "sync"))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PersistMode {
    /// The death of the process. The write is in the write-ahead log. After power loss the store
    /// opens on a prefix of the batches, in their order.
    #[default]
    Buffer,
    /// Power loss. The write is on the device, with the metadata that reading it back needs.
    SyncData,
    /// Power loss. The write is on the device, with all metadata of the log file.
    SyncAll,
}

/// Options of one keyspace. They are chosen when the keyspace is made; only the policy can be
/// changed later. A keyspace that exists must agree with them: see
/// [`Store::keyspace_with`](crate::Store::keyspace_with).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceOptions {
    /// The merge policy, for example `tiered(ratio=4)`, as text or as a value. `None` means the
    /// store's default for a new keyspace, and any policy for one that exists.
    pub policy: Option<PolicyChoice>,
    /// Logical bytes at which a memtable is sealed, 1 to 2^40. `None` means the store's default for
    /// a new keyspace, and any size for one that exists.
    pub memtable_bytes: Option<u64>,
    /// The group that the keyspace belongs to. Keyspaces of one group share a memtable, a tree and
    /// a merge policy: they are sealed at the same write, and the same runs of all of them are
    /// merged at the same time. So run by run they cover the same writes.
    ///
    /// The first keyspace of a group makes it, and chooses the policy and the memtable size of all.
    /// The policy must merge whole runs, as `minlatency` and `tiered` do. It sees the bytes of all
    /// keyspaces together. A group has at most 256 keyspaces. Their keys are at most 65,534 bytes
    /// long, and each entry counts one byte more.
    ///
    /// `None` means no group for a new keyspace, and any group for one that exists.
    #[doc(alias = "correlated merge policy")]
    pub group: Option<String>,
    /// If `true`, tables keep the sequence number of each entry, which costs 1 to 9 bytes each. So
    /// the keyspace can [ingest](crate::Store::ingest) tables with sequence numbers of their own.
    /// Without it, merges forget sequence numbers that no snapshot needs. A keyspace of a group
    /// cannot keep them.
    ///
    /// `None` means `false` for a new keyspace, and either for one that exists.
    pub keep_numbers: Option<bool>,
    /// The name of the operator that [`Keyspace::combine`](crate::Keyspace::combine) applies:
    /// `counter`, or one that [`Builder::operator`](crate::Builder::operator) registers.
    ///
    /// With `None`, a new keyspace gets no operator, and one that exists keeps its own.
    #[doc(alias = "merge operator")]
    pub operator: Option<String>,
    /// If given, entries of the keyspace can [expire](Expiry). A keyspace with an operator cannot
    /// have it.
    ///
    /// `None` means no expiry for a new keyspace, and any for one that exists.
    #[doc(alias = "ttl")]
    pub expiry: Option<Expiry>,
    /// The bits of filter per key; 0 for no filter. The first keyspace of a group chooses for all.
    ///
    /// `None` for a new keyspace means that each table gets what
    /// [`Builder::filter_bits`](crate::Builder::filter_bits) is when the table is written. `None`
    /// for a keyspace that exists accepts whatever it has.
    pub filter_bits: Option<u8>,
    /// The length of a prefix in bytes, 1 to 1024. Filters then also hold the prefix of each key
    /// that is as long. The first keyspace of a group chooses for all. A prefix takes as many bits
    /// of a filter as a key, once in each table.
    ///
    /// A range read, as by [`Keyspace::prefix`](crate::Keyspace::prefix), skips each run whose
    /// filters exclude its prefix. Its bounds must leave only keys that share their first
    /// `prefix_bytes` bytes. Memtables are always looked at.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use lsmith::{KeyspaceOptions, Store};
    ///
    /// let store = Store::builder(dir.path()).open()?;
    /// // Keys are a user of eight bytes and the number of an order.
    /// let options = KeyspaceOptions { prefix_bytes: Some(8), ..KeyspaceOptions::default() };
    /// let orders = store.keyspace_with("orders", &options)?;
    /// orders.put("user-017/0001", "3 pears")?;
    /// orders.put("user-019/0001", "1 apple")?;
    /// orders.flush()?;
    /// assert_eq!(orders.prefix("user-017").count(), 1);
    /// assert_eq!(orders.prefix("user-018").count(), 0);
    /// assert_eq!(store.stats().scan_filter_negatives, 1, "no block was read for user 18");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// `None` means no prefixes for a new keyspace, and any for one that exists.
    #[doc(alias = "prefix bloom filter")]
    pub prefix_bytes: Option<u16>,
}

impl KeyspaceOptions {
    /// Returns what the options ask of filters.
    pub(crate) fn filters(&self) -> FilterChoice {
        FilterChoice { bits: self.filter_bits, prefix_bytes: self.prefix_bytes }
    }
}

/// What a keyspace asks of the filters of its tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FilterChoice {
    /// Bits per key; `None` if the store's default applies.
    pub(crate) bits: Option<u8>,
    /// The length of the prefixes that filters hold, if they hold any.
    pub(crate) prefix_bytes: Option<u16>,
}

impl FilterChoice {
    /// Fails if no keyspace can have such filters.
    pub(crate) fn check(self) -> Result<()> {
        let message = match self {
            FilterChoice { prefix_bytes: Some(bytes), .. }
                if !(1..=PREFIX_BYTES_MAX).contains(&bytes) =>
            {
                format!("prefixes of {bytes} bytes: expected 1 to {PREFIX_BYTES_MAX}")
            }
            FilterChoice { bits: Some(0), prefix_bytes: Some(_) } => {
                "filters hold the prefixes: leave out `prefix_bytes`, or ask for `filter_bits`"
                    .to_string()
            }
            _ => return Ok(()),
        };
        Err(Error::new(ErrorKind::InvalidArgument, message))
    }

    /// Returns how these filters contradict what `asked` asks for, if they do.
    pub(crate) fn conflict(self, asked: FilterChoice) -> Option<String> {
        if let Some(asked) = asked.bits.filter(|&asked| self.bits != Some(asked)) {
            let has = self.bits.map_or("the store's".to_string(), |bits| bits.to_string());
            return Some(format!("{has} bits of filter per key, not {asked}"));
        }
        let asked = asked.prefix_bytes.filter(|&asked| self.prefix_bytes != Some(asked))?;
        let has = self.prefix_bytes.map_or("no".to_string(), |bytes| format!("{bytes}-byte"));
        Some(format!("{has} prefixes in its filters, not {asked}-byte prefixes"))
    }

    /// Returns options of tables, which are otherwise `of_store`. Each key of the tree has
    /// `member_bytes` bytes in front of the user's key.
    pub(crate) fn table_options(self, of_store: &TableOptions, member_bytes: u16) -> TableOptions {
        TableOptions {
            filter_bits_per_key: self.bits.unwrap_or(of_store.filter_bits_per_key),
            prefix_bytes: self.prefix_bytes.map_or(0, |bytes| member_bytes + bytes),
            ..of_store.clone()
        }
    }
}

/// The options that a store was opened with. [`Builder`](crate::Builder) documents each.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) dir: PathBuf,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) registry: Registry,
    pub(crate) operators: CombineOperators,
    pub(crate) clock: Clock,
    /// True if the caller chose the clock.
    pub(crate) names_clock: bool,
    pub(crate) filters: Filters,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) policy: PolicyChoice,
    pub(crate) memtable_bytes: u64,
    pub(crate) compression: String,
    pub(crate) cache_bytes: u64,
    /// A cache that other stores share.
    pub(crate) cache: Option<Cache>,
    /// The limit on all memory, in bytes.
    pub(crate) memory_bytes: Option<u64>,
    /// The memory that the process shares with the system's cache of its files, in bytes.
    pub(crate) shared_memory: Option<u64>,
    /// The same limit, if other stores share it.
    pub(crate) memory: Option<Memory>,
    /// True if the caller chose the size of memtables or of the cache.
    pub(crate) names_sizes: bool,
    /// The limit on what the files of the directory take, in bytes.
    pub(crate) space_bytes: Option<u64>,
    pub(crate) log_bytes: Option<u64>,
    pub(crate) log_bytes_max: Option<u64>,
    /// The bytes of logs that are kept for change feeds.
    pub(crate) changes_bytes: u64,
    pub(crate) threads: usize,
    pub(crate) shared_threads: Option<Threads>,
    pub(crate) split_bytes: u64,
    pub(crate) merge_bytes_per_s: Option<u64>,
    pub(crate) persist: PersistMode,
    pub(crate) table: TableOptions,
    pub(crate) filters_by_size: bool,
    pub(crate) keep_tables: bool,
    pub(crate) rewrite_below: f64,
    /// The length from which on values go into value files; `None` for all in tables.
    pub(crate) values_from: Option<u64>,
    pub(crate) value_space: f64,
    pub(crate) histograms: bool,
    pub(crate) lockstep: bool,
    pub(crate) read_only: bool,
    /// True if opening encrypts all files with the newest key.
    pub(crate) renew_keys: bool,
    pub(crate) create_if_missing: bool,
    /// The number of table files that keep a descriptor.
    pub(crate) max_open_files: Option<usize>,
    /// True if the store is read without a lease, because none can be made.
    pub(crate) unleased: bool,
    /// The folder in which the store is recorded from its opening on, and how.
    pub(crate) record: Option<(PathBuf, RecordOptions)>,
}

impl Options {
    /// Returns the policy that a caller asks for.
    ///
    /// # Errors
    /// `InvalidArgument` if it cannot be built, or if its spec cannot be read back: the manifest
    /// would be damaged by it.
    pub(crate) fn build_policy(&self, asked: &PolicyChoice) -> Result<Arc<dyn MergePolicy>> {
        let policy = asked.build(&self.registry).map_err(bad_policy)?;
        let text = policy.spec().to_string();
        if text.parse::<Spec>().is_ok_and(|read| read.to_string() == text) {
            return Ok(policy);
        }
        let text = text.escape_debug();
        Err(bad_policy(format!("expected a policy whose spec can be read back, found `{text}`")))
    }

    /// Returns the policy of a keyspace that has `spec` in the manifest: the value that the builder
    /// was given, if that is its spec, or else what the registry builds.
    pub(crate) fn stored_policy(
        &self,
        spec: &str,
    ) -> std::result::Result<Arc<dyn MergePolicy>, SpecError> {
        match &self.policy {
            PolicyChoice::Value(policy) if policy.spec().to_string() == spec => {
                Ok(Arc::clone(policy))
            }
            _ => self.registry.build(spec),
        }
    }

    /// Sets a limit on all memory, in bytes.
    pub(crate) fn limit_memory(&mut self, bytes: u64) {
        self.memory_bytes = Some(bytes);
        self.memory = None;
        self.memtable_bytes = MemoryLimit::memtable_bytes(bytes).min(MEMTABLE_BYTES_MAX);
        self.fit_into_space();
    }

    /// Makes memtables small enough for the limit on space, if there is one.
    pub(crate) fn fit_into_space(&mut self) {
        if let Some(bytes) = self.space_bytes {
            self.memtable_bytes = self.memtable_bytes.min(usual_memtable(bytes));
        }
    }

    /// Finds out how much memory there is. Keeps the store within its part of what the control
    /// group leaves, if the caller has said nothing of memory.
    pub(crate) fn fit_into_group(&mut self) {
        self.shared_memory = self.env.shared_memory();
        if self.memory_bytes.is_some() || self.names_sizes {
            return;
        }
        if let Some(bytes) = self.env.memory_max().and_then(MemoryLimit::in_group) {
            self.limit_memory(bytes.max(MEMORY_BYTES_MIN));
        }
    }

    /// Fails with `InvalidArgument` if an option breaks a rule.
    pub(crate) fn check(&self) -> Result<()> {
        check_memtable(self.memtable_bytes)?;
        check_block(self.table.block_bytes)?;
        check_threads(self.threads)?;
        check_share(self.rewrite_below)?;
        check_values(self.values_from, self.value_space)?;
        self.build_policy(&self.policy)?;
        Compression::parse(&self.compression)?;
        self.operators.names().try_for_each(check_operator_name)?;
        self.clock.name().map_or(Ok(()), check_clock_name)?;
        self.space_bytes.map_or(Ok(()), |bytes| check_space(bytes, self.memtable_bytes))?;
        check_memory(self)
    }

    /// Returns the number of table files that keep a descriptor.
    pub(crate) fn open_files(&self) -> usize {
        self.max_open_files.unwrap_or_else(|| OpenFiles::usual_max(&*self.env))
    }

    /// Returns the capacity of a log file in bytes, for memtables of `memtable_bytes`.
    pub(crate) fn log_bytes(&self, memtable_bytes: u64) -> u64 {
        self.log_bytes.unwrap_or(memtable_bytes / 8).clamp(64 * 1024, 1 << 30)
    }

    /// Returns the bytes of log that may follow the first entry of a memtable. Beyond that the
    /// memtable is sealed, however little it holds.
    pub(crate) fn quiet_bytes(&self, memtable_bytes: u64) -> u64 {
        self.log_bytes.unwrap_or(2 * memtable_bytes).max(64 * 1024).saturating_mul(3)
    }
}

/// Fails if the bound on memory is too small, or a shared cache is set as well.
fn check_memory(options: &Options) -> Result<()> {
    let message = match options.memory_bytes {
        Some(bytes) if bytes < MEMORY_BYTES_MIN => {
            format!("memory of {bytes} bytes: expected at least {MEMORY_BYTES_MIN}")
        }
        Some(_) if options.cache.is_some() => {
            "a limit on memory has a cache of its own: it excludes the option cache".to_string()
        }
        Some(_) if options.memory.is_some() && options.lockstep => {
            "a store in lockstep shares no limit on memory: other stores would change its plans"
                .to_string()
        }
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// Fails if no memtable can have a size of `bytes`.
pub(crate) fn check_memtable(bytes: u64) -> Result<()> {
    if (1..=MEMTABLE_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    let message = format!("a memtable of {bytes} bytes: expected 1 to {MEMTABLE_BYTES_MAX}");
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// Fails if no data block can have a size of `bytes`.
pub(crate) fn check_block(bytes: usize) -> Result<()> {
    if (1..=BLOCK_BYTES_MAX).contains(&bytes) {
        return Ok(());
    }
    let message = format!("data blocks of {bytes} bytes: expected 1 to {BLOCK_BYTES_MAX}");
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// Fails if `share` is no part of a whole.
fn check_share(share: f64) -> Result<()> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    let message = format!("rewrite_below is {share}: expected 0 to 1");
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// Fails if values cannot go into value files from that length on, or cannot be bounded so.
fn check_values(from_bytes: Option<u64>, space: f64) -> Result<()> {
    let message = match from_bytes {
        Some(0) => "large_values is 0: expected at least 1 byte".to_string(),
        _ if !(VALUE_SPACE_MIN..).contains(&space) => {
            format!("value_space is {space}: expected at least {VALUE_SPACE_MIN}")
        }
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// Returns the error for a policy spec that cannot be built.
pub(crate) fn bad_policy(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidArgument, error.to_string())
}

/// Fails if no combine operator can have this name. The manifest holds it.
pub(crate) fn check_operator_name(name: &str) -> Result<()> {
    check_name(name).map_err(|_| {
        let message = format!(
            "a combine operator called `{name}`: expected 1 to 64 letters, digits, `_`, `-` or `.`"
        );
        Error::new(ErrorKind::InvalidArgument, message)
    })
}

/// Fails if no clock can have this name. The manifest holds it.
pub(crate) fn check_clock_name(name: &str) -> Result<()> {
    check_name(name).map_err(|_| {
        let message =
            format!("a clock called `{name}`: expected 1 to 64 letters, digits, `_`, `-` or `.`");
        Error::new(ErrorKind::InvalidArgument, message)
    })
}

/// Fails if `name` cannot name a keyspace. Names appear in text files and in commands.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=64).contains(&name.len()) && name.chars().all(is_allowed) {
        return Ok(());
    }
    let message =
        format!("a keyspace called `{name}`: expected 1 to 64 letters, digits, `_`, `-` or `.`");
    Err(Error::new(ErrorKind::InvalidArgument, message))
}
