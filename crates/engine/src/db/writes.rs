//! Single writes to a keyspace.

use super::Keyspace;
use crate::options::PersistMode;
use crate::write::{Op, Ops};
use lsmith_storage::error::Result;
use lsmith_tree::EntryKind;

impl Keyspace {
    /// Sets the value of `key`, and replaces an older one.
    ///
    /// [`Builder::persist`](crate::Builder::persist) chooses how durable the write is when the call
    /// returns. [`put_with`](Keyspace::put_with) and [`Store::write`](crate::Store::write) choose
    /// per call.
    ///
    /// # Errors
    /// `InvalidArgument` if the key is empty, or key or value are too long. Otherwise as
    /// [`Store::write`](crate::Store::write).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Put, key.as_ref(), value.as_ref())
    }

    /// Does the same, and returns when the write is as durable as `mode` says.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = lsmith::Store::builder(dir.path()).open()?;
    /// # let users = store.keyspace("users")?;
    /// use lsmith::PersistMode;
    ///
    /// users.put_with("7", "ada", PersistMode::SyncData)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Keyspace::put).
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        mode: PersistMode,
    ) -> Result<()> {
        self.write_one_with(EntryKind::Put, key.as_ref(), value.as_ref(), mode)
    }

    /// Deletes `key`, whether it is present or not.
    ///
    /// # Errors
    /// As [`put`](Keyspace::put).
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Delete, key.as_ref(), &[])
    }

    /// Does the same, and returns when the write is as durable as `mode` says.
    ///
    /// # Errors
    /// As [`put`](Keyspace::put).
    pub fn delete_with(&self, key: impl AsRef<[u8]>, mode: PersistMode) -> Result<()> {
        self.write_one_with(EntryKind::Delete, key.as_ref(), &[], mode)
    }

    /// Sets the value of `key`, which the caller promises to be absent. See
    /// [`Batch::insert_new`](crate::Batch::insert_new).
    ///
    /// # Errors
    /// As [`put`](Keyspace::put).
    pub fn insert_new(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Insert, key.as_ref(), value.as_ref())
    }

    /// Deletes `key`, which the caller promises to be present and to have been inserted once. See
    /// [`Batch::insert_new`](crate::Batch::insert_new).
    ///
    /// # Errors
    /// As [`put`](Keyspace::put).
    pub fn remove_single(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Remove, key.as_ref(), &[])
    }

    fn write_one(&self, kind: EntryKind, key: &[u8], value: &[u8]) -> Result<()> {
        self.write_one_with(kind, key, value, self.store().context().options.persist)
    }

    fn write_one_with(
        &self,
        kind: EntryKind,
        key: &[u8],
        value: &[u8],
        mode: PersistMode,
    ) -> Result<()> {
        let key = self.stored_key(key);
        self.write_op(Op { keyspace: self.shared(), kind, is_range: false, key: &key, value }, mode)
    }

    pub(super) fn write_op(&self, op: Op<'_>, mode: PersistMode) -> Result<()> {
        let timer = self.store().context().timer();
        self.store().engine().write_path.write(Ops::One(op), mode)?;
        timer.end(|recorders| &recorders.write_nanos);
        Ok(())
    }
}
