//! Atomic batches.

use super::{Keyspace, Store};
use crate::clock::Until;
use crate::keyspace::KeyspaceShared;
use crate::options::PersistMode;
use crate::write::{Op, OpBuffer, Ops};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::OpKind;
use lsmith_tree::EntryKind;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::time::Duration;

/// An ordered list of writes that take effect together, across keyspaces and across a crash: all of
/// them or none.
///
/// Adding a write never fails. If a write breaks a rule, the batch drops its writes, and
/// [`Store::write`](crate::Store::write) fails with an error that names that write and the rule.
/// The rules:
///
/// * a key has 1 to [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX) bytes, one less in a group;
/// * a value, or an operand, has at most [`VALUE_BYTES_MAX`](crate::VALUE_BYTES_MAX) bytes;
/// * a keyspace with combines has an operator;
/// * a batch has at most [`BATCH_BYTES_MAX`](crate::BATCH_BYTES_MAX) bytes.
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
#[doc(alias = "write batch")]
#[derive(Clone, Debug, Default)]
pub struct Batch {
    ops: OpBuffer,
}

impl Batch {
    /// Returns an empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Adds a put: sets the value of `key`, and replaces an older one.
    #[doc(alias("insert", "set"))]
    pub fn put(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Put, key.as_ref(), value.as_ref());
    }

    /// Adds a delete: deletes `key`, whether it is present or not.
    #[doc(alias("remove", "erase"))]
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Delete, key.as_ref(), &[]);
    }

    /// Adds an insert: sets the value of `key`, which the caller promises to be absent.
    ///
    /// This is not the insert of a map: nothing checks that the key is absent. Use
    /// [`put`](Batch::put) unless you know. A merge that meets an insert and the later
    /// [`delete_single_unchecked`](Batch::delete_single_unchecked) of its key drops both on any
    /// level, unless a snapshot needs the insert. The tombstone of a delete must reach the bottom
    /// of the tree first. If the promise is broken, older values of the key can reappear.
    pub fn put_new_unchecked(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) {
        self.add(keyspace, EntryKind::Insert, key.as_ref(), value.as_ref());
    }

    /// Adds a remove: deletes `key`, which the caller promises to be present and to have been
    /// inserted once. See [`put_new_unchecked`](Batch::put_new_unchecked).
    #[doc(alias("single delete", "SingleDelete"))]
    pub fn delete_single_unchecked(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) {
        self.add(keyspace, EntryKind::Remove, key.as_ref(), &[]);
    }

    /// Adds a combine: `key` gets what the operator of the keyspace makes of its value and
    /// `operand`. The keyspace must have an [operator](crate::KeyspaceOptions::operator) that does
    /// not [refuse](crate::Combine::check_operand) the operand.
    #[doc(alias = "merge operator")]
    pub fn combine(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) {
        let key = keyspace.stored_key(key.as_ref());
        let value = operand.as_ref();
        if let Err(error) = keyspace.check_operand(&key, value) {
            let op = refused(keyspace, EntryKind::Combine, &key, value);
            return self.ops.push_refused(op, error.message());
        }
        self.push_rare(keyspace, EntryKind::Combine, &key, value);
    }

    /// Adds a put: sets the value of `key` until `time`, as [`Keyspace::put_until`] does. Entries
    /// of the keyspace must be able to [expire](crate::KeyspaceOptions::expiry).
    pub fn put_until(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: impl Into<Until>,
    ) {
        let stored = keyspace.value_until(time.into(), value.as_ref());
        self.add_stored(keyspace, key.as_ref(), stored);
    }

    /// Adds a put: sets the value of `key` for the time `ttl` from now, as
    /// [`Keyspace::put_with_ttl`] does. The time counts from this call.
    pub fn put_with_ttl(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) {
        let stored = keyspace.value_with_ttl(ttl, value.as_ref());
        self.add_stored(keyspace, key.as_ref(), stored);
    }

    /// Adds a put that expires, whose value was `stored` by the keyspace.
    fn add_stored(&mut self, keyspace: &Keyspace, key: &[u8], stored: Result<Vec<u8>>) {
        let key = keyspace.stored_key(key);
        let kind = EntryKind::Expiring;
        match stored {
            Ok(value) => self.push_rare(keyspace, kind, &key, &value),
            Err(error) => {
                self.ops.push_refused(refused(keyspace, kind, &key, &[]), error.message());
            }
        }
    }

    #[inline]
    fn add(&mut self, keyspace: &Keyspace, kind: EntryKind, key: &[u8], value: &[u8]) {
        let key = keyspace.stored_key(key);
        if kind.is_value() && keyspace.lives().is_some() {
            return self.add_expiring(keyspace, kind, &key, value);
        }
        self.ops.push(Op::entry(keyspace.shared(), kind, &key, value));
    }

    /// Adds the entry that a write of `value` makes in a keyspace whose values all expire.
    #[cold]
    fn add_expiring(&mut self, keyspace: &Keyspace, kind: EntryKind, key: &[u8], value: &[u8]) {
        match keyspace.expiring(value) {
            Ok(Some(stored)) => self.push_rare(keyspace, EntryKind::Expiring, key, &stored),
            Ok(None) => self.push_rare(keyspace, kind, key, value),
            Err(error) => {
                let op = refused(keyspace, kind, key, value);
                self.ops.push_refused(op, error.message());
            }
        }
    }

    /// Adds a write that is rarer than puts and deletes, which push without a call.
    #[inline(never)]
    fn push_rare(&mut self, keyspace: &Keyspace, kind: EntryKind, key: &[u8], value: &[u8]) {
        self.ops.push(Op::entry(keyspace.shared(), kind, key, value));
    }

    /// Adds a range delete: deletes all keys in `range`, at the cost of one write, however many
    /// there are. Earlier writes of this batch count, later ones do not. See
    /// [`Keyspace::delete_range`].
    #[doc(alias = "range tombstone")]
    pub fn delete_range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) {
        let Some((start, end)) = keyspace.stored_range(range) else { return };
        let (keyspace, kind) = (keyspace.shared(), OpKind::DeleteRange);
        self.ops.push(Op { keyspace, kind, key: &start, value: &end });
    }

    /// Removes all writes, so that the batch can be used again.
    pub fn clear(&mut self) {
        self.ops = OpBuffer::default();
    }

    /// Returns the writes.
    pub(super) fn ops(&self) -> Ops<'_> {
        Ops::Many(&self.ops)
    }

    /// Returns the number of writes that were added.
    pub fn len(&self) -> usize {
        self.ops.len
    }

    /// Returns the bytes of all keys, values, operands, and ends of ranges. Each key in a group has
    /// one more; each value that expires has 8 more. A batch that has dropped its writes has none.
    pub fn bytes(&self) -> usize {
        self.ops().bytes()
    }

    /// Returns true if no write was added.
    pub fn is_empty(&self) -> bool {
        self.ops.len == 0
    }
}

impl Store {
    /// Writes `batch` atomically: readers, and the store after a crash, see all of its writes or
    /// none. Returns when the batch is as durable as `mode` says. The call waits while merges are
    /// behind.
    ///
    /// # Errors
    /// * `InvalidArgument` if a write breaks a rule of [`Batch`] (the message says which write) or
    ///   if a keyspace belongs to another store. Nothing is written.
    /// * `Full` while the device has no room. Nothing is written.
    /// * The error of a failed merge, if the memtables wait for that merge. Nothing is written.
    /// * `Io` if the log cannot be written or synced. The store is poisoned.
    /// * `Poisoned` if an earlier write of the log or the manifest failed.
    /// * `ReadOnly` if the store was opened for reading only.
    pub fn write(&self, batch: Batch, mode: PersistMode) -> Result<()> {
        let engine = self.engine();
        let ops = Ops::Many(&batch.ops);
        self.check_ours(ops)?;
        let timer = engine.context.timer();
        engine.write_path.write(ops, mode)?;
        timer.end(|recorders| &recorders.write_nanos);
        Ok(())
    }

    /// Fails with `InvalidArgument` if `ops` write to a keyspace of another store.
    pub(super) fn check_ours(&self, ops: Ops<'_>) -> Result<()> {
        let keyspaces = self.engine().keyspaces.read();
        let is_ours = |keyspace: &Arc<KeyspaceShared>| {
            keyspaces.get(keyspace.name.now()).is_some_and(|known| Arc::ptr_eq(known, keyspace))
        };
        if let Some(keyspace) = ops.keyspaces().iter().find(|keyspace| !is_ours(keyspace)) {
            keyspace.state.lock().check_kept(keyspace)?;
            let name = &keyspace.name;
            let message = format!("the batch writes to the keyspace `{name}` of another store");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        Ok(())
    }
}

/// Returns the write of one key that a batch refuses.
fn refused<'a>(keyspace: &'a Keyspace, kind: EntryKind, key: &'a [u8], value: &'a [u8]) -> Op<'a> {
    Op::entry(keyspace.shared(), kind, key, value)
}
