//! The manifest of an open store, which all threads share.

use super::file::ManifestFile;
use super::{Account, LogRow, Record};
use crate::context::{Context, read_only};
use crate::identity::Identity;
use lsmith_storage::error::Result;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::sync::{Mutex, MutexGuard};
use lsmith_tree::SeqNo;
use std::sync::Arc;

/// The manifest of an open store.
#[derive(Debug)]
pub(crate) struct Manifest {
    context: Arc<Context>,
    /// `None` before [`Manifest::begin`], and for ever in a store opened for reading only.
    file: Mutex<Option<ManifestFile>>,
}

impl Manifest {
    /// Returns a manifest that refuses writes until [`begin`](Manifest::begin) is called.
    pub(crate) fn new(context: &Arc<Context>) -> Manifest {
        Manifest { context: Arc::clone(context), file: Mutex::new(None) }
    }

    /// Begins a new file that holds `account`, and puts it in force.
    ///
    /// # Errors
    /// Fails with `Full` or `Io`.
    pub(crate) fn begin(&self, account: Account) -> Result<()> {
        let Context { options, counts, next_file, .. } = &*self.context;
        let file = ManifestFile::create(&options.env, &options.dir, counts, next_file, account)?;
        self.context.leases.note(file.position());
        *self.file.lock() = Some(file);
        Ok(())
    }

    /// Writes `record` durably. Returns `then(account)` for the account with the record.
    ///
    /// # Errors
    /// Fails with `ReadOnly`, with `Io` if the directory was moved, or as [`ManifestFile::write`]
    /// does. If it is uncertain what was written, the store is poisoned.
    pub(crate) fn write<T>(&self, record: Record, then: impl FnOnce(&Account) -> T) -> Result<T> {
        let mut guard = self.file.lock();
        self.write_to(guard.as_mut().ok_or_else(read_only)?, record)?;
        Ok(then(guard.as_ref().expect("it was just written to").account()))
    }

    /// Writes `record` to `file`, which the caller has locked.
    fn write_to(&self, file: &mut ManifestFile, record: Record) -> Result<()> {
        self.context.check_held()?;
        let step = self.context.one_step();
        let written = file.write(record);
        self.context.leases.note(file.position());
        if let Some(file_id) = file.take_replaced() {
            let old = numbered(&self.context.options.dir, FileKind::Manifest, file_id);
            self.context.leases.remove(file_id, old, "an old manifest");
        }
        step.over();
        if file.failed() {
            self.context.poison();
        }
        written
    }

    /// Has the row of logs name log `file_id` as its newest, unless it names that or a newer one.
    ///
    /// # Errors
    /// As [`write`](Manifest::write).
    pub(crate) fn name_log(&self, file_id: u64) -> Result<()> {
        let mut guard = self.file.lock();
        let file = guard.as_mut().ok_or_else(read_only)?;
        match file.account().logs {
            Some(row) if row.newest < file_id => {
                self.write_to(file, Record::Logs(LogRow { newest: file_id, ..row }))
            }
            _ => Ok(()),
        }
    }

    /// Notes that all writes up to sequence number `seq` are synced, unless the manifest says so
    /// already.
    ///
    /// # Errors
    /// As [`write`](Manifest::write).
    pub(crate) fn note_synced(&self, seq: SeqNo) -> Result<()> {
        let is_known = self.account()?.synced_seq >= seq;
        if is_known { Ok(()) } else { self.write(Record::Synced(seq), |_| ()) }
    }

    /// Returns the id for the next keyspace.
    ///
    /// # Errors
    /// Fails with `ReadOnly`.
    pub(crate) fn next_keyspace(&self) -> Result<u32> {
        let guard = self.file.lock();
        Ok(guard.as_ref().ok_or_else(read_only)?.account().next_keyspace)
    }

    /// Returns who the store is.
    ///
    /// # Errors
    /// Fails with `ReadOnly`.
    pub(crate) fn identity(&self) -> Result<Option<Identity>> {
        let guard = self.file.lock();
        Ok(guard.as_ref().ok_or_else(read_only)?.account().identity)
    }

    /// Returns the name of the clock, if the manifest has it.
    ///
    /// # Errors
    /// Fails with `ReadOnly`.
    pub(crate) fn clock(&self) -> Result<Option<String>> {
        let guard = self.file.lock();
        Ok(guard.as_ref().ok_or_else(read_only)?.account().clock.clone())
    }

    /// Returns what the manifest says now.
    ///
    /// # Errors
    /// Fails with `ReadOnly`.
    pub(crate) fn account(&self) -> Result<Account> {
        let guard = self.file.lock();
        Ok(guard.as_ref().ok_or_else(read_only)?.account().clone())
    }

    /// Keeps all threads from writing to the manifest until the guard is dropped.
    pub(crate) fn lock(&self) -> MutexGuard<'_, impl Sized> {
        self.file.lock()
    }
}
