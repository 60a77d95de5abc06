//! The value files of a store: which are open, how much of each is referred to, and when one goes.
//!
//! A table refers to the value files that its facts name, and its handle holds them open. So
//! whatever holds a table (a tree, an old version, a snapshot, a copy under way) holds its values
//! too. Nothing else counts references, neither in memory nor in files: a value file is in use if a
//! living version has a table that refers to it. A file that no table of a tree refers to any more
//! is removed with the last handle, as the file of a table is.
//!
//! Garbage is what tables of trees do not refer to. [`ValueHandle::garbage_bytes`] is what
//! cleaning chooses files by.

use crate::leases::Leases;
use bytes::Bytes;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::VALUE_START_BYTES;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::panics;
use lsmith_storage::reference::{ReadBytes, ReadValue, ValueReference};
use lsmith_storage::sync::RwLock;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lsmith_storage::table::{BlockCache, ValueFile};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

/// The value files of a store that are open.
#[derive(Debug)]
pub(crate) struct ValueFiles {
    env: Arc<dyn Env>,
    dir: PathBuf,
    cache: Arc<BlockCache>,
    leases: Arc<Leases>,
    open: RwLock<FxHashMap<u64, Weak<ValueHandle>>>,
}

/// An open value file. Dropping the last handle of an obsolete file removes it.
#[derive(Debug)]
pub(crate) struct ValueHandle {
    file: ValueFile,
    file_id: u64,
    leases: Arc<Leases>,
    /// The number of tables of trees that refer to the file.
    tables: AtomicU64,
    /// The bytes of records that these tables show references to.
    live_bytes: AtomicU64,
    /// True if no tree has a table that refers to the file.
    is_obsolete: AtomicBool,
    /// True if merges move the values that they meet here.
    is_cleaned: AtomicBool,
    /// True if a value could not be moved because it is damaged.
    is_stuck: AtomicBool,
}

/// A value file that a table of a tree refers to.
#[derive(Debug)]
pub(crate) struct TableValues {
    file: Arc<ValueHandle>,
    /// The bytes of the records that the table refers to.
    bytes: u64,
    /// The share of them that counts as live in the file.
    counted: AtomicU64,
}

/// Sizes of the value files of a keyspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ValueTotals {
    pub(crate) files: u64,
    pub(crate) file_bytes: u64,
    pub(crate) record_bytes: u64,
    /// Bytes of records that tables refer to.
    pub(crate) live_bytes: u64,
}

impl ValueFiles {
    /// Returns the value files in `dir`, none of them open. They have descriptors, and are mapped,
    /// as the tables of `cache`.
    pub(crate) fn new(
        env: &Arc<dyn Env>,
        dir: &Path,
        cache: &Arc<BlockCache>,
        leases: &Arc<Leases>,
    ) -> ValueFiles {
        ValueFiles {
            env: Arc::clone(env),
            dir: dir.to_path_buf(),
            cache: Arc::clone(cache),
            leases: Arc::clone(leases),
            open: RwLock::default(),
        }
    }

    /// Returns true if a value file was opened.
    pub(crate) fn are_used(&self) -> bool {
        !self.open.read().is_empty()
    }

    /// Returns value file `file_id`, which may be open already.
    ///
    /// # Errors
    /// As [`ValueFile::open`].
    pub(crate) fn open(&self, file_id: u64) -> Result<Arc<ValueHandle>> {
        let mut open = self.open.write();
        if let Some(handle) = open.get(&file_id).and_then(Weak::upgrade) {
            return Ok(handle);
        }
        let path = numbered(&self.dir, FileKind::Values, file_id);
        let file = ValueFile::open(&*self.env, &path, file_id, self.cache.open_files())?;
        let handle = Arc::new(ValueHandle {
            file: file.mapped(&self.cache),
            file_id,
            leases: Arc::clone(&self.leases),
            tables: AtomicU64::new(0),
            live_bytes: AtomicU64::new(0),
            is_obsolete: AtomicBool::new(false),
            is_cleaned: AtomicBool::new(false),
            is_stuck: AtomicBool::new(false),
        });
        open.retain(|_, file| file.strong_count() > 0);
        open.insert(file_id, Arc::downgrade(&handle));
        Ok(handle)
    }

    /// Reads the value of `reference` by a call, and checks it, for what is written anew.
    ///
    /// # Errors
    /// As [`file_of`](ValueFiles::file_of), and as [`ValueFile::read`].
    pub(crate) fn read_checked(&self, reference: &[u8]) -> Result<Bytes> {
        let (file, reference) = self.file_of(reference)?;
        file.read(&reference)
    }

    /// Returns the file that `reference` leads to. The caller holds a table with the reference.
    ///
    /// # Errors
    /// Fails with `Corruption` if it is no reference, or if its table does not name the file.
    pub(crate) fn file_of(&self, reference: &[u8]) -> Result<(Arc<ValueHandle>, ValueReference)> {
        let damaged = |message: String| Error::new(ErrorKind::Corruption, message).at(&self.dir);
        let reference = ValueReference::decode(reference)
            .ok_or_else(|| damaged("expected a reference to a value, found other bytes".into()))?;
        let file = self.open.read().get(&reference.file).and_then(Weak::upgrade);
        let file = file.ok_or_else(|| {
            damaged(format!(
                "a table has a value in file {}, which it does not name",
                reference.file
            ))
        })?;
        Ok((file, reference))
    }
}

impl ReadValue for ValueFiles {
    fn read_value(&self, reference: &[u8], is_announced: bool) -> Result<ReadBytes> {
        let (file, reference) = self.file_of(reference)?;
        file.file.look(&reference, is_announced, &self.cache, &*self.env)
    }

    fn announce(&self, reference: &[u8]) {
        if let Ok((file, reference)) = self.file_of(reference) {
            file.file.announce(&reference);
        }
    }

    fn waits(&self) -> bool {
        self.cache.values_wait()
    }
}

impl ValueHandle {
    /// Returns the id of the file.
    pub(crate) fn file_id(&self) -> u64 {
        self.file_id
    }

    /// Returns the length of the file in bytes.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.file.file_bytes()
    }

    /// Returns the bytes of all records.
    pub(crate) fn record_bytes(&self) -> u64 {
        self.file_bytes().saturating_sub(VALUE_START_BYTES as u64)
    }

    /// Returns the bytes of records that tables of trees refer to.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes.load(Ordering::Relaxed).min(self.record_bytes())
    }

    /// Returns the bytes of records that no table of a tree refers to.
    pub(crate) fn garbage_bytes(&self) -> u64 {
        self.record_bytes() - self.live_bytes()
    }

    /// Reads the value of `reference` by a call, and checks it.
    ///
    /// # Errors
    /// As [`ValueFile::read`].
    pub(crate) fn read(&self, reference: &ValueReference) -> Result<Bytes> {
        self.file.read(reference)
    }

    /// Reads what is stored of the value of `reference`, and checks it.
    ///
    /// # Errors
    /// As [`ValueFile::read_stored`].
    pub(crate) fn read_stored(&self, reference: &ValueReference) -> Result<Bytes> {
        self.file.read_stored(reference)
    }

    /// Returns true if merges move the values that they meet here.
    pub(crate) fn is_cleaned(&self) -> bool {
        self.is_cleaned.load(Ordering::Relaxed)
    }

    /// Returns true if tables are to be rewritten so that the file can go.
    pub(crate) fn is_in_the_way(&self) -> bool {
        self.is_cleaned() && !self.is_stuck.load(Ordering::Relaxed)
    }

    /// Has merges move the values that they meet here.
    pub(crate) fn clean(&self) {
        self.is_cleaned.store(true, Ordering::Relaxed);
    }

    /// Has no table rewritten for the file any more, because a damaged value stays there. Returns
    /// false if that was so already.
    pub(crate) fn give_up(&self) -> bool {
        !self.is_stuck.swap(true, Ordering::Relaxed)
    }
}

impl Drop for ValueHandle {
    fn drop(&mut self) {
        if !self.is_obsolete.load(Ordering::Acquire) {
            return;
        }
        // A panic may be dropping this handle and others. A second panic would end the process.
        panics::logged("the environment", || {
            let path = self.file.path().to_path_buf();
            self.leases.remove(self.file_id, path, "an obsolete value file");
        });
    }
}

impl TableValues {
    /// Returns `bytes` of `file`, to which a table of a tree refers now.
    pub(crate) fn new(file: Arc<ValueHandle>, bytes: u64) -> TableValues {
        file.tables.fetch_add(1, Ordering::AcqRel);
        file.live_bytes.fetch_add(bytes, Ordering::Relaxed);
        TableValues { file, bytes, counted: AtomicU64::new(bytes) }
    }

    /// Returns the file.
    pub(crate) fn file(&self) -> &Arc<ValueHandle> {
        &self.file
    }

    /// Counts `share` of the references as live, because slices show that share of the table.
    pub(crate) fn show(&self, share: f64) {
        let live = (self.bytes as f64 * share) as u64;
        let before = self.counted.swap(live, Ordering::Relaxed);
        // In one step, so that the sum is right whatever other tables do.
        self.file.live_bytes.fetch_add(live.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Counts the table out: no tree has it any more.
    pub(crate) fn let_go(&self) {
        self.show(0.0);
        if self.file.tables.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.file.is_obsolete.store(true, Ordering::Release);
        }
    }
}

impl ValueTotals {
    /// Returns the sizes of `files`.
    pub(crate) fn of<'a>(files: impl Iterator<Item = &'a Arc<ValueHandle>>) -> ValueTotals {
        let mut totals = ValueTotals::default();
        for file in files {
            totals.files += 1;
            totals.file_bytes += file.file_bytes();
            totals.record_bytes += file.record_bytes();
            totals.live_bytes += file.live_bytes();
        }
        totals
    }

    /// Returns true if the records take more than `ratio` times the bytes that are referred to.
    pub(crate) fn exceed(&self, ratio: f64) -> bool {
        self.record_bytes as f64 > ratio * self.live_bytes as f64
    }
}
