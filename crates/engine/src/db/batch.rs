//! Atomic batches.

use super::{Keyspace, Store};
use crate::keyspace::KeyspaceShared;
use crate::options::PersistMode;
use crate::write::{OpBuffer, Ops};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::EntryKind;
use std::sync::Arc;

/// Writes that take effect together, in their order: all of them or none, also across keyspaces
/// and across a crash.
///
/// Adding a write never fails. A write that breaks a rule spoils the batch: its memory is freed,
/// and [`Store::write`](crate::Store::write) refuses all of it, with an error that says which write
/// it was and why. The rules: a key is not empty and has at most
/// [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX) bytes, a value at most
/// [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX), a batch at most
/// [`BATCH_BYTES_MAX`](crate::BATCH_BYTES_MAX).
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{Batch, PersistMode, Store};
///
/// let store = Store::builder(dir.path()).open()?;
/// let users = store.keyspace("users")?;
/// let names = store.keyspace("names")?;
/// let mut batch = Batch::new();
/// batch.put(&users, "7", "ada");
/// batch.put(&names, "ada", "7");
/// store.write(batch, PersistMode::SyncData)?;
/// assert_eq!(names.get("ada")?.as_deref(), Some(&b"7"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    ops: OpBuffer,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Gives `key` this `value`, whatever was there before.
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.ops.push(keyspace.shared(), EntryKind::Put, key.as_ref(), value.as_ref());
    }

    /// Removes `key`, whether it was there or not.
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        self.ops.push(keyspace.shared(), EntryKind::Delete, key.as_ref(), &[]);
    }

    /// Gives `key` this `value`; the caller promises that the key is absent. In exchange this
    /// entry and a later [`remove`](Batch::remove) may vanish together early. A broken promise
    /// can bring older values of the key back.
    pub fn insert(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.ops.push(keyspace.shared(), EntryKind::Insert, key.as_ref(), value.as_ref());
    }

    /// Removes `key`; the caller promises that it is present and was inserted once. See
    /// [`insert`](Batch::insert).
    pub fn remove(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        self.ops.push(keyspace.shared(), EntryKind::Remove, key.as_ref(), &[]);
    }

    /// How many writes there are.
    pub fn len(&self) -> usize {
        self.ops.len
    }

    /// Whether there are no writes.
    pub fn is_empty(&self) -> bool {
        self.ops.len == 0
    }
}

impl Store {
    /// Writes `batch` as one: after a crash all of it is there or nothing. Returns when it has got
    /// as far as `mode` says.
    ///
    /// # Errors
    /// `InvalidArgument` where a key is empty, a key, a value or the batch is too long (the error
    /// says which write it was), or a keyspace belongs to another store: nothing is written then.
    /// `Full` while there is no room: nothing is written either. `Poisoned`, `ReadOnly`, `Io`.
    pub fn write(&self, batch: Batch, mode: PersistMode) -> Result<()> {
        let engine = self.engine();
        let ops = Ops::Many(&batch.ops);
        let keyspaces = engine.keyspaces.read();
        let is_ours = |keyspace: &Arc<KeyspaceShared>| {
            keyspaces.get(&keyspace.name).is_some_and(|known| Arc::ptr_eq(known, keyspace))
        };
        if let Some(keyspace) = ops.keyspaces().iter().find(|keyspace| !is_ours(keyspace)) {
            let name = &keyspace.name;
            let message = format!("the batch writes to the keyspace `{name}` of another store");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        drop(keyspaces);
        let timer = engine.context.timer();
        engine.write_path.write(ops, mode)?;
        timer.end(|recorders| &recorders.write_nanos);
        Ok(())
    }
}
