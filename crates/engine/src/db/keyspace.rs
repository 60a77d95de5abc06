//! The handle of a keyspace.

use super::change::{range_ends, within_keys};
use super::iter::{RecordedScan, prefix_bounds};
use super::{Iter, Store};
use crate::catalog::is_group;
use crate::group::{MEMBER_BYTES, Member};
use crate::keyspace::{KeyspaceShared, Request};
use crate::keyspaces::Named;
use crate::options::KeyspaceOptions;
use crate::record::note;
use crate::recorder::Picked;
use crate::snapshots::SnapshotGuard;
use crate::version::{Moment, OwnWrites, Value, Version, dropped};
use crate::write::{Op, Ops};
use bytes::Bytes;
use lsmith_policy::{Explanation, PolicyChoice};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::{OpKind, deleted_range};
use lsmith_storage::table::ReadCount;
use lsmith_tree::{KeyRange, Tree, TreeView};
use std::borrow::Cow;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The handle of a keyspace: a sorted map from keys to values with its own tree and merge policy.
///
/// The keyspaces of a store share its write-ahead log, its block cache and its threads. Keyspaces
/// of a [group](KeyspaceOptions::group) also share a tree and a merge policy. Clones are cheap and
/// name the same keyspace. A handle keeps its store open.
///
/// A key has 1 to [`KEY_BYTES_MAX`](crate::KEY_BYTES_MAX) bytes, one less in a group. Everything
/// that writes refuses an empty key. Reads find none. As a bound of a range or as a prefix, the
/// empty key lies below all keys.
#[doc(alias("column family", "partition"))]
#[derive(Clone, Debug)]
pub struct Keyspace {
    store: Store,
    /// The keyspace, or the group that it belongs to.
    shared: Arc<KeyspaceShared>,
    /// The keyspace within its group.
    member: Option<Member>,
    /// The time that values live which are written without a time of their own.
    lives: Option<u64>,
}

impl Store {
    /// Returns the keyspace called `name`. If it does not exist, makes it with the merge policy,
    /// memtable size and compression of the store's [`Builder`](crate::Builder).
    ///
    /// A name has 1 to 64 letters, digits, `_`, `-` or `.`.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace must be made and the name is invalid. Making a keyspace
    /// also fails with the errors of a [write](Store::write).
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.keyspace_with(name, &KeyspaceOptions::default())
    }

    /// Returns the keyspace called `name`. If it does not exist, makes it with `options`.
    ///
    /// `options` can put it into a [group](KeyspaceOptions::group).
    ///
    /// A keyspace that exists must match every option that is `Some`; the call never changes it.
    /// [`Keyspace::set_merge_policy`] changes the policy. Memtable size and group stay.
    ///
    /// # Errors
    /// `InvalidArgument` if the policy cannot be built, if the memtable size is out of range, if a
    /// group is full or has a policy that does not merge whole runs, if `name` is a group, or if
    /// the keyspace or its group exists with another policy, memtable size or group: the message
    /// says which. Otherwise as [`keyspace`](Store::keyspace).
    pub fn keyspace_with(&self, name: &str, options: &KeyspaceOptions) -> Result<Keyspace> {
        self.context().check_here()?;
        let found = self.engine().catalog.keyspace(name, options)?;
        Keyspace::new(self.clone(), found)
    }

    /// Returns the keyspace called `name`, and never makes one.
    ///
    /// # Errors
    /// `NotFound` if there is no such keyspace; `InvalidArgument` if it is a group.
    pub fn existing_keyspace(&self, name: &str) -> Result<Keyspace> {
        self.context().check_here()?;
        let found = self.engine().keyspaces.find(name).ok_or_else(|| {
            let message = format!("there is no keyspace called `{name}`");
            Error::new(ErrorKind::NotFound, message).at(&self.context().options.dir)
        })?;
        Keyspace::new(self.clone(), found)
    }
}

impl Keyspace {
    fn new(store: Store, found: Named) -> Result<Keyspace> {
        let (shared, member) = match found {
            Named::Alone(shared) => (shared, None),
            Named::Member(shared, member) => (shared, Some(member)),
            Named::Group(shared) => return Err(is_group(&shared)),
        };
        let member_id = member.as_ref().map_or(0, Member::id);
        let lives = shared.rules.expiry(member_id).and_then(|expiry| expiry.ticks());
        Ok(Keyspace { store, shared, member, lives })
    }

    /// Returns a handle of the whole tree that the keyspace shares. Its keys begin with the numbers
    /// of keyspaces.
    pub(crate) fn of_group(&self) -> Keyspace {
        Keyspace { member: None, ..self.clone() }
    }

    /// Returns what all threads share of the keyspace, or of its group.
    pub(crate) fn shared(&self) -> &Arc<KeyspaceShared> {
        &self.shared
    }

    /// Returns what the keyspace is within its group.
    pub(super) fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }

    /// Returns `key` as the tree has it.
    pub(super) fn stored_key<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        self.member.as_ref().map_or(Cow::Borrowed(key), |member| member.stored_key(key))
    }

    /// Returns the time that values live which are written without a time of their own.
    #[inline]
    pub(super) fn lives(&self) -> Option<u64> {
        self.lives
    }

    /// Returns the bytes in front of each key in the tree.
    pub(super) fn member_bytes(&self) -> usize {
        if self.member.is_some() { MEMBER_BYTES } else { 0 }
    }

    /// Returns the name of the keyspace.
    pub fn name(&self) -> &str {
        self.member.as_ref().map_or(&self.shared.name, |member| &*member.name).now()
    }

    /// Returns the name of the group that the keyspace belongs to, if it does.
    pub fn group(&self) -> Option<&str> {
        self.member.as_ref().map(|_| self.shared.name.now())
    }

    /// Returns the id by which the files of the store name the keyspace, or its group. It never
    /// changes.
    pub fn id(&self) -> u32 {
        self.shared.id
    }

    /// Returns the store that the keyspace belongs to.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the latest value of `key`, or `None` if the key is absent. Keys that no write
    /// accepts, because they are empty or too long, are always absent.
    ///
    /// The value may share the memory of the block or the memtable that holds it.
    ///
    /// # Errors
    /// `Io` if a read fails; `Corruption` if a block that is read is damaged; `Callback` if a
    /// [combine operator](KeyspaceOptions::operator) fails or panics.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.read(key.as_ref(), None, |value| value.into_shared())
    }

    /// Calls `look` with the latest value of `key` and returns the result of `look`, or `None` if
    /// the key is absent.
    ///
    /// Nothing is allocated or copied for a value in a table: `look` sees the mapped file or the
    /// cached block. A short value in a memtable is copied first, so `look` may write to the store.
    /// The space of merged tables that may hold the value is freed only after `look` returns.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// let store = lsmith::Store::builder(dir.path()).open()?;
    /// let keyspace = store.keyspace("default")?;
    /// keyspace.put("key", "a long value")?;
    /// assert_eq!(keyspace.get_with("key", |value| value.len())?, Some(12));
    /// assert_eq!(keyspace.get_with("other", |value| value.len())?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Keyspace::get).
    pub fn get_with<R>(
        &self,
        key: impl AsRef<[u8]>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        self.read(key.as_ref(), None, |value| look(value.bytes()))
    }

    /// Returns true if `key` has a value.
    ///
    /// # Errors
    /// As [`get`](Keyspace::get).
    #[doc(alias = "contains_key")]
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_with(key, |_| ())?.is_some())
    }

    /// Returns `take` of the value that `key` has at the snapshot `at`, or now. The version that
    /// holds the value lives until `take` returns.
    #[inline]
    pub(crate) fn read<R>(
        &self,
        key: &[u8],
        at: Option<&SnapshotGuard>,
        take: impl FnOnce(Value<'_>) -> R,
    ) -> Result<Option<R>> {
        let context = self.store.context();
        context.check_here()?;
        let timer = context.timer();
        let mut reads = ReadCount::default();
        let newest = self.shared.version.load();
        let (moment, pinned) = match at {
            Some(at) => (Moment::Snapshot(at.seq()), context.snapshots.pinned(self.shared.id, at)),
            None => (Moment::Latest(&context.visible), None),
        };
        let version: &Version = pinned.as_deref().unwrap_or(&newest);
        let found = version.get(&self.stored_key(key), moment, &mut reads);
        let present = matches!(found, Ok(Some(_)));
        context.counts.note_get(present, &reads);
        if let Some(counted) = &version.counted {
            counted.note_get(present);
        }
        if let Some(recorders) = &context.recorders {
            recorders.get_blocks.record(reads.blocks());
        }
        if context.recorder.wants(key) {
            self.note(key, &Picked::Get(key));
        }
        timer.end(|recorders| &recorders.get_nanos);
        Ok(found?.map(take))
    }

    /// Returns true if reads have waited for a device recently.
    pub(super) fn reads_wait(&self) -> bool {
        self.store.context().cache.reads_wait()
    }

    /// Requests what reads of `keys` at the snapshot `at` will wait for.
    pub(super) fn request<'a>(&self, keys: impl Iterator<Item = &'a [u8]>, at: &SnapshotGuard) {
        let context = self.store.context();
        if context.check_here().is_err() {
            return;
        }
        let newest = self.shared.version.load();
        let pinned = context.snapshots.pinned(self.shared.id, at);
        let version: &Version = pinned.as_deref().unwrap_or(&newest);
        let keys: Vec<_> = keys.map(|key| self.stored_key(key)).collect();
        version.request(&keys);
    }

    /// Records `picked`, an operation on `key`.
    #[cold]
    #[inline(never)]
    pub(super) fn note(&self, key: &[u8], picked: &Picked<'_>) {
        note(self.store.context(), &self.shared, &self.stored_key(key), picked);
    }

    /// Deletes all keys in `range`, at the cost of one write, however many there are.
    ///
    /// Reads and scans pass over deleted entries. Merges drop them. A table whose entries are all
    /// deleted is dropped unread. See `docs/range-deletes.md`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = lsmith::Store::builder(dir.path()).open()?;
    /// let queue = store.keyspace("queue")?;
    /// for number in 0..100_u64 {
    ///     queue.put(number.to_be_bytes(), "a task")?;
    /// }
    /// queue.delete_range(..70_u64.to_be_bytes())?;
    /// let (first, _) = queue.iter().next().expect("30 tasks are left")?;
    /// assert_eq!(first, 70_u64.to_be_bytes().as_slice());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the range ends before it begins; an empty range is no error, and
    /// deletes nothing. Otherwise as [`Store::write`].
    #[doc(alias = "range tombstone")]
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        let Some((start, end)) = self.stored_range(range) else { return Ok(()) };
        let (keyspace, kind) = (&self.shared, OpKind::DeleteRange);
        let op = Op { keyspace, kind, key: &start, value: &end };
        self.write_op(op, self.store.context().options.persist)
    }

    /// Returns `range` as the tree has it, if a range delete may have it. Returns `None` if it is
    /// empty.
    ///
    /// # Errors
    /// `InvalidArgument` if a range delete may not have it.
    pub(super) fn deletable<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
    ) -> Result<Option<KeyRange>> {
        let Some((start, end)) = self.stored_range(range) else { return Ok(None) };
        let kind = OpKind::DeleteRange;
        Ops::One(Op { keyspace: &self.shared, kind, key: &start, value: &end }).check()?;
        Ok(Some(deleted_range(&start, &end)))
    }

    /// Returns the first key of `range` and the first behind it, as the tree has them; an end that
    /// is missing is empty. Returns `None` if the range is empty.
    pub(super) fn stored_range<K: AsRef<[u8]>>(
        &self,
        range: impl RangeBounds<K>,
    ) -> Option<(Vec<u8>, Vec<u8>)> {
        let (start, end) = range_ends(range)?;
        let Some(member) = &self.member else { return Some((start, end.unwrap_or_default())) };
        let upper = end.map_or(Bound::Unbounded, |end| Bound::Excluded(Bytes::from(end)));
        let (start, end) = match member.stored_bounds((Bound::Included(Bytes::from(start)), upper))
        {
            (Bound::Included(start), Bound::Excluded(end)) => (start.into(), Some(end.into())),
            (Bound::Included(start), _) => (start.into(), None),
            _ => return None,
        };
        // The id in front leaves a byte less for the key.
        let (start, end) = within_keys(start, end)?;
        Some((start, end.unwrap_or_default()))
    }

    /// Returns an iterator over all entries as they are now, in key order. It can be read from both
    /// ends.
    #[doc(alias = "iterator")]
    pub fn iter(&self) -> Iter {
        self.range::<&[u8]>(..)
    }

    /// Returns an iterator over the entries in `range` as they are now, in key order. It can be
    /// read from both ends, and is empty if the range ends before it begins.
    #[doc(alias = "scan")]
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        let bound = |bound: Bound<&K>| bound.map(|key| Bytes::copy_from_slice(key.as_ref()));
        let bounds = (bound(range.start_bound()), bound(range.end_bound()));
        self.iterate(bounds, self.snapshot_guard())
    }

    /// Returns an iterator over the entries whose keys begin with `prefix` as they are now, in key
    /// order. It can be read from both ends.
    ///
    /// It looks into each run, unless filters hold
    /// [prefixes](crate::KeyspaceOptions::prefix_bytes).
    #[doc(alias = "prefix scan")]
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.iterate(prefix_bounds(prefix.as_ref()), self.snapshot_guard())
    }

    fn snapshot_guard(&self) -> Arc<SnapshotGuard> {
        Arc::new(self.store.context().take_snapshot())
    }

    /// Returns an iterator over the entries within `bounds` at snapshot `at`. The snapshot is older
    /// than the version that is loaded here, so the version holds every entry that it sees.
    pub(crate) fn iterate(
        &self,
        bounds: (Bound<Bytes>, Bound<Bytes>),
        at: Arc<SnapshotGuard>,
    ) -> Iter {
        self.iterate_over(None, self.stored_bounds(bounds), at)
    }

    /// Returns the bounds of keys within `bounds` as the tree has them.
    pub(super) fn stored_bounds(
        &self,
        bounds: (Bound<Bytes>, Bound<Bytes>),
    ) -> (Bound<Bytes>, Bound<Bytes>) {
        match &self.member {
            Some(member) => member.stored_bounds(bounds),
            None => bounds,
        }
    }

    /// Returns an iterator as [`iterate`](Keyspace::iterate) does, within `bounds` of the tree,
    /// with the writes of `own` on top.
    pub(super) fn iterate_over(
        &self,
        own: Option<OwnWrites>,
        bounds: (Bound<Bytes>, Bound<Bytes>),
        at: Arc<SnapshotGuard>,
    ) -> Iter {
        let (store, member_bytes) = (self.store.clone(), self.member_bytes());
        if let Err(error) = store.context().check_here() {
            let version = Arc::new(Version::empty());
            return Iter::new(store, version, at, None, bounds, member_bytes).replaced_by(error);
        }
        let version = self.version_at(&at);
        let is_dropped = version.is_dropped;
        let is_recorded = own.is_none() && store.context().recorder.wants_scan();
        let start = is_recorded.then(|| RecordedScan::new(&self.shared, &bounds));
        let mut entries = Iter::new(store, version, at, own, bounds, member_bytes);
        entries.record(start);
        if is_dropped { entries.replaced_by(dropped()) } else { entries }
    }

    /// Returns the version that a snapshot reads.
    pub(super) fn version_at(&self, at: &SnapshotGuard) -> Arc<Version> {
        let newest = self.shared.version.load_full();
        let pinned = self.store.context().snapshots.pinned(self.shared.id, at);
        pinned.unwrap_or(newest)
    }

    /// Returns the merge policy as a spec such as `tiered(ratio=4)`. A group has one policy.
    pub fn merge_policy(&self) -> String {
        self.shared.state.lock().policy.spec().to_string()
    }

    /// Changes the merge policy, durably. Merges under way are finished, and the new policy
    /// continues with the tree as it is. A group has one policy. The policy is text or a value, as
    /// in [`Builder::policy`](crate::Builder::policy).
    ///
    /// # Errors
    /// `InvalidArgument` if the spec cannot be built: the message names the nearest known name.
    /// Also if the keyspace is in a group, and the policy does not merge whole runs.
    /// Otherwise as a [write](Store::write).
    #[doc(alias = "compaction strategy")]
    pub fn set_merge_policy(&self, policy: impl Into<PolicyChoice>) -> Result<()> {
        self.store.context().check_here()?;
        self.store.engine().catalog.set_policy(&self.shared, &policy.into())?;
        self.store.work_in_lockstep();
        Ok(())
    }

    /// Returns the codecs of the levels, youngest first, such as `none,none,zstd(level=6)`.
    pub fn compression(&self) -> String {
        self.shared.state.lock().compression.to_string()
    }

    /// Changes the compression of tables and value files that are written from now on, durably.
    /// Existing tables stay as they are until they are merged, and value files until they are
    /// cleaned. A group has one compression. `codecs` is as in
    /// [`Builder::compression`](crate::Builder::compression).
    ///
    /// # Errors
    /// `InvalidArgument` if `codecs` cannot be parsed. Otherwise as a [write](Store::write).
    pub fn set_compression(&self, codecs: &str) -> Result<()> {
        self.store.context().check_here()?;
        self.store.engine().catalog.set_compression(&self.shared, codecs)
    }

    /// Merges the memtables and all runs of the keyspace, or of its group, into one run, and waits
    /// until all merges of the store have come to rest. The merge policy may then reshape the tree.
    ///
    /// # Errors
    /// As [`Store::settle`], except that what blocks other keyspaces is no error, and not waited
    /// for.
    #[doc(alias("compaction", "compact"))]
    pub fn merge(&self) -> Result<()> {
        self.seal_and_settle(Request::Merge)
    }

    /// Seals the memtable of the keyspace, or of its group, and waits until it is flushed and all
    /// merges of the store have come to rest.
    ///
    /// # Errors
    /// As [`merge`](Keyspace::merge).
    pub fn flush(&self) -> Result<()> {
        self.seal_and_settle(Request::Flush)
    }

    fn seal_and_settle(&self, request: Request) -> Result<()> {
        self.store.seal_and_ask(&self.shared, request)?;
        self.store.engine().scheduler.settle(Some(&self.shared))
    }

    /// Returns the tree as it is now. Its `Display` is the text form. In the tree of a group, the
    /// first byte of a key is the id of its keyspace.
    pub fn tree(&self) -> Tree {
        self.shared.version.load().tree.clone()
    }

    /// Returns all that the merge policy sees now.
    pub fn view(&self) -> TreeView {
        self.shared.state.lock().view.clone()
    }

    /// Returns what the merge policy would do next, and why.
    pub fn explain(&self) -> Explanation {
        let state = self.shared.state.lock();
        state.policy.explain(&state.view)
    }
}
