//! The handle of a keyspace.

use super::iter::prefix_bounds;
use super::{Iter, Store};
use crate::keyspace::{KeyspaceShared, Request};
use crate::options::KeyspaceOptions;
use crate::snapshots::SnapshotGuard;
use crate::version::{Moment, Value};
use crate::write::{Op, Ops};
use bytes::Bytes;
use lsmith_policy::Explanation;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::table::ReadCount;
use lsmith_tree::{EntryKind, Tree, TreeView};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The handle of a keyspace: a sorted map from keys to values with its own tree and merge policy.
///
/// The keyspaces of a store share its write-ahead log, its block cache and its threads. Clones are
/// cheap and name the same keyspace. A handle keeps its store open.
#[derive(Clone, Debug)]
pub struct Keyspace {
    store: Store,
    shared: Arc<KeyspaceShared>,
}

/// Sizes and settings of a keyspace at one moment; returned by [`Keyspace::stats`].
///
/// Logical bytes are key + value + 8 per entry. Other bytes are those of files or of memory.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KeyspaceStats {
    /// The name of the keyspace.
    pub name: String,
    /// The merge policy, as a spec such as `tiered(ratio=4)`.
    pub policy: String,
    /// The codecs of the levels, youngest first, as in
    /// [`Builder::compression`](crate::Builder::compression).
    pub compression: String,
    /// The logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// Logical bytes in the active and the sealed memtables.
    pub memory_bytes: u64,
    /// Bytes of memory that the memtables have allocated, roughly.
    pub memory_allocated_bytes: u64,
    /// Bytes of memory that the fence pointers and block positions of open tables take.
    pub fence_bytes: u64,
    /// Bytes of memory that the filters of open tables take.
    pub filter_bytes: u64,
    /// Bytes of memory that the profiles of open tables take.
    pub profile_bytes: u64,
    /// The number of runs on storage.
    pub runs: u64,
    /// The number of table files that the tree names.
    pub tables: u64,
    /// Bytes that the files of all tables occupy, live and dead blocks together.
    pub table_bytes: u64,
    /// Bytes of those files that slices of the tree need.
    pub live_bytes: u64,
    /// Bytes of those files in blocks that no slice needs and that still occupy storage.
    pub dead_bytes: u64,
    /// Bytes of blocks that no slice needs and that were freed: holes in the files.
    pub punched_bytes: u64,
    /// Logical bytes in all tables.
    pub logical_bytes: u64,
    /// The number of entries in all tables, with old versions and tombstones.
    pub entries: u64,
    /// The number of tombstones among those entries.
    pub tombstones: u64,
    /// The number of memtables flushed or merged since the keyspace was made.
    pub flushes: u64,
    /// How hard the merge policy holds writers back, from 0 (not at all) to 1 (completely).
    pub pressure: f64,
    /// The errors of failed merges that wait to be tried again, and of panics.
    pub failures: Vec<String>,
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
    /// A keyspace that exists must match every option that is `Some`; the call never changes it.
    /// [`Keyspace::set_merge_policy`] changes the policy. The memtable size cannot be changed.
    ///
    /// # Errors
    /// `InvalidArgument` if the policy cannot be built, if the memtable size is out of range, or if
    /// the keyspace exists with another policy or memtable size: the message says which. Otherwise
    /// as [`keyspace`](Store::keyspace).
    pub fn keyspace_with(&self, name: &str, options: &KeyspaceOptions) -> Result<Keyspace> {
        let keyspace = self.engine().catalog.keyspace(name, options)?;
        Ok(Keyspace::new(self.clone(), keyspace))
    }

    /// Returns the keyspace called `name`, and never makes one.
    ///
    /// # Errors
    /// `NotFound` if there is no such keyspace.
    pub fn existing_keyspace(&self, name: &str) -> Result<Keyspace> {
        let keyspace = self.engine().keyspaces.get(name).ok_or_else(|| {
            let message = format!("there is no keyspace called `{name}`");
            Error::new(ErrorKind::NotFound, message).at(&self.context().options.dir)
        })?;
        Ok(Keyspace::new(self.clone(), keyspace))
    }
}

impl Keyspace {
    fn new(store: Store, shared: Arc<KeyspaceShared>) -> Keyspace {
        Keyspace { store, shared }
    }

    /// Returns what all threads share of the keyspace.
    pub(super) fn shared(&self) -> &Arc<KeyspaceShared> {
        &self.shared
    }

    /// Returns the name of the keyspace.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the number by which the files of the store name the keyspace. It never changes.
    pub fn id(&self) -> u32 {
        self.shared.id
    }

    /// Returns the store that the keyspace belongs to.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the latest value of `key`, or `None` if the key is absent. Keys that no write
    /// accepts, empty ones and those that are too long, are always absent.
    ///
    /// The value may share the memory of the block or the memtable that holds it.
    ///
    /// # Errors
    /// `Io` if a read fails; `Corruption` if a block that is read is damaged.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.read(key.as_ref(), self.latest(), |value| value.into_shared())
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
        self.read(key.as_ref(), self.latest(), |value| look(value.bytes()))
    }

    fn latest(&self) -> Moment<'_> {
        Moment::Latest(&self.store.context().visible)
    }

    /// Returns true if `key` has a value.
    ///
    /// # Errors
    /// As [`get`](Keyspace::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_with(key, |_| ())?.is_some())
    }

    /// Returns `take` of the value that `key` has at `moment`. The version that holds the value
    /// lives until `take` returns.
    #[inline]
    pub(crate) fn read<R>(
        &self,
        key: &[u8],
        moment: Moment<'_>,
        take: impl FnOnce(Value<'_>) -> R,
    ) -> Result<Option<R>> {
        let context = self.store.context();
        let timer = context.timer();
        let mut reads = ReadCount::default();
        let version = self.shared.version.load();
        let found = version.get(key, moment, &mut reads);
        let present = matches!(found, Ok(Some(_)));
        context.counts.note_get(present, &reads);
        if let Some(recorders) = &context.recorders {
            recorders.get_blocks.record(reads.blocks());
        }
        timer.end(|recorders| &recorders.get_nanos);
        Ok(found?.map(take))
    }

    /// Sets the value of `key`, and replaces an older one.
    ///
    /// [`Builder::persist`](crate::Builder::persist) chooses how durable the write is when the call
    /// returns. A [`Batch`](crate::Batch) chooses per call.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Put, key.as_ref(), value.as_ref())
    }

    /// Deletes `key`, whether it is present or not.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Delete, key.as_ref(), &[])
    }

    /// Sets the value of `key`, which the caller promises to be absent. See
    /// [`Batch::insert`](crate::Batch::insert).
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Insert, key.as_ref(), value.as_ref())
    }

    /// Deletes `key`, which the caller promises to be present and to have been inserted once. See
    /// [`Batch::insert`](crate::Batch::insert).
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Remove, key.as_ref(), &[])
    }

    fn write_one(&self, kind: EntryKind, key: &[u8], value: &[u8]) -> Result<()> {
        let op = Op { keyspace: &self.shared, kind, key, value };
        let context = self.store.context();
        let timer = context.timer();
        self.store.engine().write_path.write(Ops::One(op), context.options.persist)?;
        timer.end(|recorders| &recorders.write_nanos);
        Ok(())
    }

    /// Returns an iterator over all entries as they are now, in key order. It can be read from both
    /// ends.
    pub fn iter(&self) -> Iter {
        self.range::<&[u8]>(..)
    }

    /// Returns an iterator over the entries in `range` as they are now, in key order. It can be
    /// read from both ends, and is empty if the range ends before it begins.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        let bound = |bound: Bound<&K>| bound.map(|key| Bytes::copy_from_slice(key.as_ref()));
        let bounds = (bound(range.start_bound()), bound(range.end_bound()));
        self.iterate(bounds, self.snapshot_guard())
    }

    /// Returns an iterator over the entries whose keys begin with `prefix` as they are now, in key
    /// order. It can be read from both ends.
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
        Iter::new(self.store.clone(), self.shared.version.load_full(), at, bounds)
    }

    /// Returns the merge policy as a spec such as `tiered(ratio=4)`.
    pub fn merge_policy(&self) -> String {
        self.shared.state.lock().policy.spec().to_string()
    }

    /// Changes the merge policy, durably. Merges under way are finished, and the new policy
    /// continues with the tree as it is.
    ///
    /// # Errors
    /// `InvalidArgument` if the spec cannot be built: the message names the nearest known name.
    /// Otherwise as a [write](Store::write).
    pub fn set_merge_policy(&self, spec: &str) -> Result<()> {
        self.store.engine().catalog.set_policy(&self.shared, spec)?;
        self.store.work_in_lockstep();
        Ok(())
    }

    /// Returns the codecs of the levels, youngest first, such as `none,none,zstd(level=6)`.
    pub fn compression(&self) -> String {
        self.shared.state.lock().compression.to_string()
    }

    /// Changes the compression of tables that are written from now on, durably. Existing tables
    /// stay as they are until they are merged. `codecs` is as in
    /// [`Builder::compression`](crate::Builder::compression).
    ///
    /// # Errors
    /// `InvalidArgument` if `codecs` cannot be parsed. Otherwise as a [write](Store::write).
    pub fn set_compression(&self, codecs: &str) -> Result<()> {
        self.store.engine().catalog.set_compression(&self.shared, codecs)
    }

    /// Merges the memtables and all runs of the keyspace into one run, and waits until all merges
    /// of the store have come to rest. The merge policy may then reshape the tree.
    ///
    /// # Errors
    /// As [`Store::settle`].
    pub fn merge(&self) -> Result<()> {
        self.store.seal_and_ask(&self.shared, Request::Merge)?;
        self.store.settle()
    }

    /// Seals the memtable of the keyspace, and waits until it is flushed and all merges of the
    /// store have come to rest.
    ///
    /// # Errors
    /// As [`Store::settle`].
    pub fn flush(&self) -> Result<()> {
        self.store.seal_and_ask(&self.shared, Request::Flush)?;
        self.store.settle()
    }

    /// Returns the tree as it is now. Its `Display` is the text form.
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

    /// Returns the sizes and settings of the keyspace as they are now. Looks at every table.
    pub fn stats(&self) -> KeyspaceStats {
        let state = self.shared.state.lock();
        let tree = &state.view.tree;
        let memory = state.memory();
        let memory_bytes = tree.memory().bytes() + state.active.memtable.live_bytes();
        let table_bytes = state.table_bytes();
        let mut dead_bytes = 0;
        let mut punched_bytes = 0;
        for table in state.tables.values() {
            let (dead, punched) = table.dead_and_punched_bytes();
            dead_bytes += dead;
            punched_bytes += punched;
        }
        let size: lsmith_tree::Size = tree.levels().iter().map(|level| level.size()).sum();
        KeyspaceStats {
            name: self.shared.name.clone(),
            policy: state.policy.spec().to_string(),
            compression: state.compression.to_string(),
            memtable_bytes: self.shared.memtable_bytes,
            memory_bytes,
            memory_allocated_bytes: memory.memtables,
            fence_bytes: memory.fences,
            filter_bytes: memory.filters,
            profile_bytes: memory.profiles,
            runs: tree.disk_run_count() as u64,
            tables: state.tables.len() as u64,
            table_bytes,
            live_bytes: table_bytes - dead_bytes,
            dead_bytes,
            punched_bytes,
            logical_bytes: size.bytes,
            entries: size.entries,
            tombstones: size.tombstones,
            flushes: tree.flushes(),
            pressure: self.shared.gate.pressure(),
            failures: self.shared.troubles(&state),
        }
    }
}
