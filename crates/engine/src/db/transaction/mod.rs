//! Transactions: reads and writes that take effect as if nobody else had done anything meanwhile.

mod changes;
mod ends;
mod iter;
mod reads;
mod savepoints;

pub use iter::TransactionIter;

use super::{Keyspace, Store};
use crate::clock::Until;
use crate::group::Member;
use crate::keyspace::KeyspaceShared;
use crate::options::PersistMode;
use crate::snapshots::SnapshotGuard;
use crate::write::{Footprint, Op, OpBuffer, Ops};
use bytes::Bytes;
use changes::{Before, Changes};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::OpKind;
use lsmith_storage::sync::Mutex;
use lsmith_tree::{EntryKind, Key, KeyRange, SeqNo};
use reads::Reads;
use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::time::Duration;

/// What a transaction must find unchanged when it commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolation {
    /// The keys that it writes or has read with [`get_for_update`](Transaction::get_for_update).
    /// Two transactions that read the same keys and write different ones may both commit.
    #[default]
    Snapshot,
    /// All keys and key ranges that it has read. The transactions that commit have the same effect
    /// as one after the other. A key that it writes and has not read may have changed: of two that
    /// write it, the later one has the last word.
    Serializable,
}

/// Reads and writes that take effect together, as if nobody else had written meanwhile.
///
/// A transaction reads the store as it was when the transaction began, with its own writes on top.
/// Its writes are kept in memory until [`commit`](Transaction::commit). If what it used has changed
/// meanwhile, the commit fails with [`Conflict`](ErrorKind::Conflict), and nothing is written:
/// begin a new transaction. No other writer ever waits for a transaction. Dropping it takes its
/// writes back.
///
/// A transaction keeps the older entries that it sees, as a [`Snapshot`](crate::Snapshot) does, and
/// keeps its store open.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{ErrorKind, Isolation, PersistMode, Store};
///
/// let store = Store::builder(dir.path()).open()?;
/// let accounts = store.keyspace("accounts")?;
/// accounts.put("ada", "10")?;
///
/// let mut transfer = store.transaction(Isolation::Serializable);
/// assert_eq!(transfer.get(&accounts, "ada")?.as_deref(), Some(&b"10"[..]));
/// transfer.put(&accounts, "ada", "3")?;
/// transfer.put(&accounts, "bob", "7")?;
/// assert_eq!(accounts.get("bob")?, None);
/// transfer.commit(PersistMode::SyncData)?;
/// assert_eq!(accounts.get("bob")?.as_deref(), Some(&b"7"[..]));
///
/// let mut late = store.transaction(Isolation::Snapshot);
/// late.put(&accounts, "ada", "0")?;
/// accounts.put("ada", "5")?;
/// let refused = late.commit(PersistMode::Buffer).unwrap_err();
/// assert_eq!(refused.kind(), ErrorKind::Conflict);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a transaction that is dropped writes nothing"]
pub struct Transaction {
    store: Store,
    isolation: Isolation,
    began: Arc<SnapshotGuard>,
    /// What was done in each keyspace or group, in the order of their first use.
    spaces: Vec<Space>,
    /// How to undo the writes since the oldest savepoint, oldest first.
    undo: Vec<Undo>,
    /// For each savepoint, the length of `undo` when it was set.
    savepoints: Vec<usize>,
}

/// What a transaction did in a keyspace, or in its group.
#[derive(Debug)]
struct Space {
    keyspace: Arc<KeyspaceShared>,
    changes: Changes,
    /// Keys that must not have changed, whatever the isolation.
    locked: BTreeSet<Key>,
    reads: Arc<Mutex<Reads>>,
}

/// A write that may be taken back.
#[derive(Debug)]
struct Undo {
    /// The index of its space.
    space: usize,
    before: Before,
}

impl Store {
    /// Begins a transaction that sees the store as it is now.
    pub fn transaction(&self, isolation: Isolation) -> Transaction {
        Transaction {
            store: self.clone(),
            isolation,
            began: Arc::new(self.context().take_snapshot()),
            spaces: Vec::new(),
            undo: Vec::new(),
            savepoints: Vec::new(),
        }
    }
}

impl Transaction {
    /// Returns the sequence number of the last write of others that the transaction sees.
    pub fn seq(&self) -> SeqNo {
        self.began.seq()
    }

    /// Returns the number of keys and ranges of keys that the transaction writes. Ranges that touch
    /// count as one.
    pub fn len(&self) -> usize {
        self.spaces.iter().map(|space| space.changes.len()).sum()
    }

    /// Returns true if the transaction writes nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets the value of `key` in `keyspace`, and replaces an older one.
    ///
    /// # Errors
    /// `InvalidArgument` if key or value break a rule of [`Batch`](crate::Batch), or if the
    /// keyspace belongs to another store.
    #[doc(alias("insert", "set"))]
    pub fn put(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let value = Bytes::copy_from_slice(value.as_ref());
        self.write(keyspace, key.as_ref(), EntryKind::Put, value)
    }

    /// Sets the value of `key` in `keyspace` until `time`, as
    /// [`Keyspace::put_until`](crate::Keyspace::put_until) does. From then on the key is absent for
    /// everyone, also for this transaction.
    ///
    /// # Errors
    /// `InvalidArgument` if entries of the keyspace cannot
    /// [expire](crate::KeyspaceOptions::expiry), or if `time` is no time of the
    /// [clock](crate::Builder::clock). Otherwise as [`put`](Transaction::put).
    pub fn put_until(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: impl Into<Until>,
    ) -> Result<()> {
        let stored = keyspace.value_until(time.into(), value.as_ref())?;
        self.write(keyspace, key.as_ref(), EntryKind::Expiring, Bytes::from(stored))
    }

    /// Sets the value of `key` in `keyspace` for the time `ttl`, as
    /// [`Keyspace::put_with_ttl`](crate::Keyspace::put_with_ttl) does. The time counts from this
    /// call, not from the commit.
    ///
    /// # Errors
    /// As [`put_until`](Transaction::put_until). `InvalidArgument` if the clock does not say how
    /// long a [tick](crate::Clock::with_tick) is; `Callback` if the clock panics.
    #[doc(alias("ttl", "time to live"))]
    pub fn put_with_ttl(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        let stored = keyspace.value_with_ttl(ttl, value.as_ref())?;
        self.write(keyspace, key.as_ref(), EntryKind::Expiring, Bytes::from(stored))
    }

    /// Deletes `key` in `keyspace`, whether it is present or not.
    ///
    /// # Errors
    /// As [`put`](Transaction::put).
    #[doc(alias("remove", "erase"))]
    pub fn delete(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<()> {
        self.write(keyspace, key.as_ref(), EntryKind::Delete, Bytes::new())
    }

    /// Sets the value of `key` in `keyspace`, which the caller promises to be absent for this
    /// transaction: beneath, or after its own writes. See
    /// [`Batch::put_new_unchecked`](crate::Batch::put_new_unchecked).
    ///
    /// The promise must still hold when the transaction commits. So the commit fails if others have
    /// written `key` meanwhile, under each [`Isolation`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use lsmith::{ErrorKind, Isolation, PersistMode, Store};
    ///
    /// let store = Store::builder(dir.path()).open()?;
    /// let jobs = store.keyspace("jobs")?;
    /// let mut one = store.transaction(Isolation::Snapshot);
    /// one.put_new_unchecked(&jobs, "7", "wash up")?;
    /// one.commit(PersistMode::SyncData)?;
    ///
    /// let mut two = store.transaction(Isolation::Snapshot);
    /// assert_eq!(two.get(&jobs, "7")?.as_deref(), Some(&b"wash up"[..]));
    /// two.delete_single_unchecked(&jobs, "7")?;
    /// two.commit(PersistMode::SyncData)?;
    /// assert_eq!(jobs.get("7")?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Transaction::put).
    pub fn put_new_unchecked(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        let value = Bytes::copy_from_slice(value.as_ref());
        self.write(keyspace, key.as_ref(), EntryKind::Insert, value)
    }

    /// Deletes `key` in `keyspace`, which the caller promises to be present for this transaction
    /// and to have been inserted once. See
    /// [`Batch::put_new_unchecked`](crate::Batch::put_new_unchecked). If this transaction has
    /// inserted it, nothing is left to write.
    ///
    /// The commit fails if others have written `key` meanwhile, as after
    /// [`put_new_unchecked`](Transaction::put_new_unchecked).
    ///
    /// # Errors
    /// As [`put`](Transaction::put).
    #[doc(alias("single delete", "SingleDelete"))]
    pub fn delete_single_unchecked(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.write(keyspace, key.as_ref(), EntryKind::Remove, Bytes::new())
    }

    /// Gives `key` what the operator of `keyspace` makes of its value and `operand`. Reads and
    /// merges call the operator later; reads of this transaction call it too. A combine is a write:
    /// under [`Isolation::Snapshot`] the commit fails if others have written `key` meanwhile, also
    /// if they have only combined. Outside of transactions, combines do not conflict:
    /// [`Keyspace::combine`].
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use lsmith::{Isolation, KeyspaceOptions, PersistMode, Store};
    ///
    /// let store = Store::builder(dir.path()).open()?;
    /// let options = KeyspaceOptions { operator: Some("counter".into()), ..Default::default() };
    /// let visits = store.keyspace_with("visits", &options)?;
    /// visits.combine("/index", 2_i64.to_le_bytes())?;
    ///
    /// let mut one = store.transaction(Isolation::Snapshot);
    /// one.combine(&visits, "/index", 1_i64.to_le_bytes())?;
    /// assert_eq!(one.get(&visits, "/index")?.as_deref(), Some(&3_i64.to_le_bytes()[..]));
    /// one.commit(PersistMode::SyncData)?;
    /// assert_eq!(visits.get("/index")?.as_deref(), Some(&3_i64.to_le_bytes()[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace has no [operator](crate::KeyspaceOptions::operator), or if
    /// its operator refuses the operand. Otherwise as [`put`](Transaction::put).
    pub fn combine(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        keyspace.check_operand(&keyspace.stored_key(key), operand)?;
        self.write(keyspace, key, EntryKind::Combine, Bytes::copy_from_slice(operand))
    }

    /// Deletes all keys in `range` of `keyspace`, as
    /// [`Keyspace::delete_range`](crate::Keyspace::delete_range) does. The transaction sees none of
    /// them, except for keys that it writes afterwards. It holds the range, not its keys.
    ///
    /// The range counts as written, and not as read: under [`Isolation::Snapshot`] the commit fails
    /// if others have written a key in it meanwhile, also one that was absent.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # use lsmith::{Isolation, PersistMode, Store};
    /// # let store = Store::builder(dir.path()).open()?;
    /// # let queue = store.keyspace("queue")?;
    /// # for number in 0..9_u64 {
    /// #     queue.put(number.to_be_bytes(), "a task")?;
    /// # }
    /// let mut one = store.transaction(Isolation::Serializable);
    /// let taken = one.iter(&queue).take(3).collect::<lsmith::Result<Vec<_>>>()?;
    /// let (last, _) = taken[2].clone();
    /// one.delete_range(&queue, ..=last)?;
    /// one.commit(PersistMode::SyncData)?;
    /// assert_eq!(queue.iter().count(), 6);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the range ends before it begins, or if the keyspace belongs to another
    /// store. An empty range is no error, and deletes nothing.
    #[doc(alias = "range tombstone")]
    pub fn delete_range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> Result<()> {
        let space = self.space(keyspace)?;
        let Some(range) = keyspace.deletable(range)? else { return Ok(()) };
        let member_id = keyspace.member().map_or(0, Member::id);
        let before = self.spaces[space].changes.delete_range(range, member_id);
        self.note(Undo { space, before });
        Ok(())
    }

    /// Writes an entry of `kind`.
    fn write(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        kind: EntryKind,
        value: Bytes,
    ) -> Result<()> {
        let key = keyspace.stored_key(key);
        Ops::One(Op::entry(keyspace.shared(), kind, &key, &value)).check()?;
        let space = self.space(keyspace)?;
        let key = Key::copy_from_slice(&key);
        if matches!(kind, EntryKind::Insert | EntryKind::Remove) {
            // What the caller promises must hold at the commit.
            self.spaces[space].locked.insert(key.clone());
        }
        let before = self.spaces[space].changes.write(key, kind, value);
        self.note(Undo { space, before });
        Ok(())
    }

    /// Keeps `undo` if it may be needed.
    fn note(&mut self, undo: Undo) {
        if !self.savepoints.is_empty() {
            self.undo.push(undo);
        }
    }

    /// Returns the value that `key` has in `keyspace` for this transaction: what it has written
    /// itself, or what was there when it began. `None` if the key is absent.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace belongs to another store. Otherwise as [`Keyspace::get`].
    pub fn get(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.read(keyspace, key.as_ref(), false)
    }

    /// Returns true if `key` has a value in `keyspace` for this transaction. The key counts as
    /// read.
    ///
    /// # Errors
    /// As [`get`](Transaction::get).
    #[doc(alias = "contains_key")]
    pub fn contains(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get(keyspace, key)?.is_some())
    }

    /// Returns the values that `keys` have in `keyspace` for this transaction, in their order.
    ///
    /// # Errors
    /// As [`get`](Transaction::get).
    pub fn multi_get<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Bytes>>> {
        keys.into_iter().map(|key| self.get(keyspace, key)).collect()
    }

    /// Returns the same value as [`get`](Transaction::get). The commit then fails if others have
    /// written `key` meanwhile, under each [`Isolation`], even if the transaction writes other keys
    /// or none. Others need not wait.
    ///
    /// # Errors
    /// As [`get`](Transaction::get).
    pub fn get_for_update(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<Bytes>> {
        self.read(keyspace, key.as_ref(), true)
    }

    fn read(&mut self, keyspace: &Keyspace, key: &[u8], locks: bool) -> Result<Option<Bytes>> {
        let space = self.space(keyspace)?;
        let Space { changes, locked, reads, .. } = &mut self.spaces[space];
        let stored = keyspace.stored_key(key);
        if locks {
            locked.insert(Key::copy_from_slice(&stored));
        }
        let older = if changes.need_older(&stored) {
            if self.isolation == Isolation::Serializable {
                reads.lock().add_key(&stored);
            }
            keyspace.read(key, Some(&*self.began), |value| value.into_shared())?
        } else {
            None
        };
        match changes.get(&stored) {
            Some(own) => own.value(&stored, older, &*keyspace.shared().rules),
            None => Ok(older),
        }
    }

    /// Returns an iterator over the entries that `keyspace` has in `range` for this transaction, in
    /// key order. It can be read from both ends. Writes that the transaction makes later do not
    /// change it.
    ///
    /// Under [`Isolation::Serializable`] the keys from either end of the range up to the last one
    /// that was returned from there count as read, and the whole range once the iterator has ended.
    ///
    /// If the keyspace belongs to another store, the iterator yields one error of kind
    /// `InvalidArgument`.
    pub fn range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> TransactionIter {
        let bound = |bound: Bound<&K>| bound.map(|key| Bytes::copy_from_slice(key.as_ref()));
        self.iterate(keyspace, (bound(range.start_bound()), bound(range.end_bound())))
    }

    /// Returns an iterator over all entries of `keyspace`, as [`range`](Transaction::range) does.
    pub fn iter(&mut self, keyspace: &Keyspace) -> TransactionIter {
        self.iterate(keyspace, (Bound::Unbounded, Bound::Unbounded))
    }

    /// Returns an iterator over the entries of `keyspace` whose keys begin with `prefix`, as
    /// [`range`](Transaction::range) does.
    pub fn prefix(&mut self, keyspace: &Keyspace, prefix: impl AsRef<[u8]>) -> TransactionIter {
        self.iterate(keyspace, super::prefix_bounds(prefix.as_ref()))
    }

    fn iterate(
        &mut self,
        keyspace: &Keyspace,
        bounds: (Bound<Bytes>, Bound<Bytes>),
    ) -> TransactionIter {
        let began = Arc::clone(&self.began);
        let space = match self.space(keyspace) {
            Ok(space) => space,
            Err(error) => return TransactionIter::failed(keyspace, bounds, began, error),
        };
        let Space { changes, reads, .. } = &self.spaces[space];
        let reads = (self.isolation == Isolation::Serializable).then(|| Arc::clone(reads));
        TransactionIter::new(keyspace, bounds, began, changes, reads)
    }

    /// Writes all changes of the transaction atomically, if what its [`Isolation`] says is
    /// unchanged. Returns when they are as durable as `mode` says. Returns the sequence number of
    /// the last write, or of the transaction's begin if it has no changes. A transaction that has
    /// neither written nor read for update always commits: it has read one moment.
    ///
    /// # Errors
    /// `Conflict` if others have changed what must be unchanged since the transaction began: the
    /// message names a key. `NotFound` if a keyspace was dropped that it has written or must find
    /// unchanged. Nothing is written then. Otherwise as [`Store::write`].
    pub fn commit(self, mode: PersistMode) -> Result<SeqNo> {
        let locks = self.spaces.iter().any(|space| !space.locked.is_empty());
        if self.is_empty() && !locks {
            return Ok(self.seq());
        }
        let mut buffer = OpBuffer::default();
        self.spaces.iter().try_for_each(|space| space.add_to(&mut buffer))?;
        let used: Vec<Footprint> =
            self.spaces.iter().map(|space| space.footprint(self.isolation)).collect();
        let ops = Ops::Many(&buffer);
        self.store.check_ours(ops)?;
        let engine = self.store.engine();
        let timer = engine.context.timer();
        let seq = engine.write_path.write_unchanged(ops, mode, &used, &self.began)?;
        timer.end(|recorders| &recorders.write_nanos);
        Ok(seq.max(self.seq()))
    }

    /// Takes all writes back. So does dropping the transaction.
    pub fn rollback(self) {}

    /// Returns the index of the space of `keyspace`, which is added if it is new.
    fn space(&mut self, keyspace: &Keyspace) -> Result<usize> {
        if !Arc::ptr_eq(self.store.context(), keyspace.store().context()) {
            let name = keyspace.name();
            let message =
                format!("the keyspace `{name}` belongs to another store than the transaction");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let shared = keyspace.shared();
        let known = self.spaces.iter().position(|space| Arc::ptr_eq(&space.keyspace, shared));
        Ok(known.unwrap_or_else(|| {
            self.spaces.push(Space {
                keyspace: Arc::clone(shared),
                changes: Changes::default(),
                locked: BTreeSet::new(),
                reads: Arc::default(),
            });
            self.spaces.len() - 1
        }))
    }
}

impl Space {
    /// Adds what was written to `buffer`: range deletes first, and of each key the oldest write
    /// first.
    ///
    /// # Errors
    /// `Callback` if values expire and the clock panics.
    fn add_to(&self, buffer: &mut OpBuffer) -> Result<()> {
        let Space { keyspace, changes, .. } = self;
        for KeyRange { start, end } in changes.range_deletes() {
            let (kind, value) = (OpKind::DeleteRange, end.as_deref().unwrap_or_default());
            buffer.push(Op { keyspace, kind, key: start, value });
        }
        for (key, own) in changes.iter() {
            for (kind, value) in own.entries().rev() {
                let expiring = match kind.is_value() {
                    true => keyspace.rules.expiring(key, value)?,
                    false => None,
                };
                let op = match &expiring {
                    Some(stored) => Op::entry(keyspace, EntryKind::Expiring, key, stored),
                    None => Op::entry(keyspace, kind, key, value),
                };
                buffer.push(op);
            }
        }
        Ok(())
    }

    /// Returns what must be unchanged when the transaction commits.
    fn footprint(&self, isolation: Isolation) -> Footprint {
        let written = self.changes.iter().map(|(key, _)| key.clone()).collect();
        let range_deletes = self.changes.range_deletes().cloned().collect();
        let mut read = self.locked.clone();
        let mut ranges = Vec::new();
        let is_serializable = isolation == Isolation::Serializable;
        if is_serializable {
            self.reads.lock().add_to(&mut read, &mut ranges);
        }
        let keyspace = Arc::clone(&self.keyspace);
        Footprint { keyspace, written, range_deletes, first_wins: !is_serializable, read, ranges }
    }
}
