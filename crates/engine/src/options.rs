//! How a store is opened: the choices, and the rules that they obey.

use crate::compression::Compression;
use crate::event::Observer;
use crate::threads::Threads;
use lsmith_policy::Registry;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::table::{Cache, TableOptions};
use std::path::PathBuf;
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
    /// Fails with `InvalidArgument` if an option breaks a rule.
    pub(crate) fn check(&self) -> Result<()> {
        check_memtable(self.memtable_bytes)?;
        self.registry.build(&self.policy).map_err(bad_policy)?;
        Compression::parse(&self.compression)?;
        check_memory(self)
    }

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
