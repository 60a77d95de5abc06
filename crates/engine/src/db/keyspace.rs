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

/// A keyspace: a map of its own from keys to values, with a tree and a merge policy of its own.
/// It shares log, cache and threads with the other keyspaces of its store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Keyspace {
    store: Store,
    shared: Arc<KeyspaceShared>,
}

/// What a keyspace looks like now.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KeyspaceStats {
    /// The name.
    pub name: String,
    /// The merge policy.
    pub policy: String,
    /// How tables are compressed, level by level.
    pub compression: String,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// Logical bytes in the memtables, active and sealed.
    pub memory_bytes: u64,
    /// Memory that the memtables take, roughly.
    pub memory_allocated_bytes: u64,
    /// Memory that the fences of open tables take, and the places of their blocks.
    pub fence_bytes: u64,
    /// Memory that their filters take.
    pub filter_bytes: u64,
    /// Memory that their profiles take.
    pub profile_bytes: u64,
    /// Runs on storage.
    pub runs: u64,
    /// Tables.
    pub tables: u64,
    /// Bytes that the files of all tables take: live and dead ones.
    pub table_bytes: u64,
    /// Bytes of those files that are needed.
    pub live_bytes: u64,
    /// Bytes of blocks that no slice shows, as far as they have not been given back.
    pub dead_bytes: u64,
    /// Bytes of such blocks that have been given back: holes in the files.
    pub punched_bytes: u64,
    /// Logical bytes in all tables.
    pub logical_bytes: u64,
    /// Entries in all tables, old versions and tombstones included.
    pub entries: u64,
    /// Tombstones among them.
    pub tombstones: u64,
    /// Memtables flushed or merged since the keyspace was made.
    pub flushes: u64,
    /// How hard writers are held back, 0 to 1.
    pub pressure: f64,
    /// Why merges have failed and are not tried again yet.
    pub failures: Vec<String>,
}

impl Store {
    /// The keyspace called `name` with whatever policy and memtable size it has, made with the
    /// store's if it does not exist.
    ///
    /// # Errors
    /// `InvalidArgument` for a bad name; those of a write if it must be made.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.keyspace_with(name, &KeyspaceOptions::default())
    }

    /// The keyspace called `name`, made with `options` if it does not exist. One that exists must
    /// have what `options` name, whatever it was made with: the call never changes it.
    /// [`Keyspace::set_merge_policy`] does; the size of memtables stays.
    ///
    /// # Errors
    /// As [`keyspace`](Store::keyspace); `InvalidArgument` for a policy that cannot be built, for a
    /// memtable size that cannot be, and where a keyspace that exists has another policy or another
    /// memtable size: the error says which.
    pub fn keyspace_with(&self, name: &str, options: &KeyspaceOptions) -> Result<Keyspace> {
        let keyspace = self.engine().catalog.keyspace(name, options)?;
        Ok(Keyspace::new(self.clone(), keyspace))
    }

    /// The keyspace called `name` if it exists.
    ///
    /// # Errors
    /// `NotFound`.
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

    /// The name of the keyspace.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The number by which files of the store name the keyspace: never another in the life of the
    /// store.
    pub fn id(&self) -> u32 {
        self.shared.id
    }

    /// The store that the keyspace belongs to.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The value of `key`; `None` where it is absent, as every key is that no write can have: the
    /// empty one, and one that is too long. The value shares the memory of the block or
    /// memtable that holds it.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>> {
        self.read(key.as_ref(), self.latest(), |value| value.into_shared())
    }

    /// Shows the value of `key` to `look`, and tells what it makes of it; `None` where the key is
    /// absent. A value that lies in a table is neither copied nor given memory for: what is shown
    /// is the map of its file or the cached block, and is there for the call only. A short one
    /// that is still in a memtable is copied first, so `look` may write to the store.
    ///
    /// Space of merged tables that the value may lie in is given back after `look` has returned.
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
    /// `Io`, `Corruption`.
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

    /// Whether `key` is present.
    ///
    /// # Errors
    /// `Io`, `Corruption`.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.get_with(key, |_| ())?.is_some())
    }

    /// Hands the value that `key` has at `moment` to `take`, as long as the version is held that it
    /// lies in.
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
            recorders.get_blocks.record(reads.blocks_cached + reads.blocks_read);
        }
        timer.end(|recorders| &recorders.get_nanos);
        Ok(found?.map(take))
    }

    /// Gives `key` this `value`, whatever was there before. How far the write must have got is
    /// chosen by [`Builder::persist`](crate::Builder::persist); use a [`Batch`](crate::Batch) to
    /// choose per call.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Put, key.as_ref(), value.as_ref())
    }

    /// Removes `key`, whether it was there or not.
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Delete, key.as_ref(), &[])
    }

    /// Gives `key` this `value`; the caller promises that the key is absent. See
    /// [`Batch::insert`](crate::Batch::insert).
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Insert, key.as_ref(), value.as_ref())
    }

    /// Removes `key`; the caller promises that it is present and was inserted once. See
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

    /// All entries, from both ends.
    pub fn iter(&self) -> Iter {
        self.range::<&[u8]>(..)
    }

    /// The entries within `range`, from both ends, as of now; none where the range ends before it
    /// begins.
    pub fn range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Iter {
        let bound = |bound: Bound<&K>| bound.map(|key| Bytes::copy_from_slice(key.as_ref()));
        let bounds = (bound(range.start_bound()), bound(range.end_bound()));
        self.iterate(bounds, self.snapshot_guard())
    }

    /// The entries whose keys begin with `prefix`, from both ends, as of now.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.iterate(prefix_bounds(prefix.as_ref()), self.snapshot_guard())
    }

    fn snapshot_guard(&self) -> Arc<SnapshotGuard> {
        Arc::new(self.store.context().take_snapshot())
    }

    /// The snapshot is taken before the version, so that the version holds all that it sees.
    pub(crate) fn iterate(
        &self,
        bounds: (Bound<Bytes>, Bound<Bytes>),
        at: Arc<SnapshotGuard>,
    ) -> Iter {
        Iter::new(self.store.clone(), self.shared.version.load_full(), at, bounds)
    }

    /// The merge policy, as a spec.
    pub fn merge_policy(&self) -> String {
        self.shared.state.lock().policy.spec().to_string()
    }

    /// Gives the keyspace another merge policy from now on. Merges under way are finished; the new
    /// policy takes over the tree as it finds it.
    ///
    /// # Errors
    /// `InvalidArgument` for a spec that cannot be built; the error names the nearest right one.
    /// Those of a write.
    pub fn set_merge_policy(&self, spec: &str) -> Result<()> {
        self.store.engine().catalog.set_policy(&self.shared, spec)?;
        self.store.work_in_lockstep();
        Ok(())
    }

    /// How tables are compressed, level by level.
    pub fn compression(&self) -> String {
        self.shared.state.lock().compression.to_string()
    }

    /// Has tables compressed like this from now on, see
    /// [`Builder::compression`](crate::Builder::compression). Tables that are there stay as they
    /// are until they are merged.
    ///
    /// # Errors
    /// `InvalidArgument` for a list that cannot be read; those of a write.
    pub fn set_compression(&self, codecs: &str) -> Result<()> {
        self.store.engine().catalog.set_compression(&self.shared, codecs)
    }

    /// Merges everything into one run, by hand, and waits for it.
    ///
    /// # Errors
    /// What keeps the keyspace from coming to rest; `ReadOnly`.
    pub fn merge(&self) -> Result<()> {
        self.store.seal_and_ask(&self.shared, Request::Merge)?;
        self.store.settle()
    }

    /// Seals the memtable, and waits until it is flushed and merges have come to rest.
    ///
    /// # Errors
    /// What keeps the keyspace from coming to rest; `ReadOnly`.
    pub fn flush(&self) -> Result<()> {
        self.store.seal_and_ask(&self.shared, Request::Flush)?;
        self.store.settle()
    }

    /// The tree as it is now. Its `Display` is the text form.
    pub fn tree(&self) -> Tree {
        self.shared.version.load().tree.clone()
    }

    /// All that the merge policy sees now.
    pub fn view(&self) -> TreeView {
        self.shared.state.lock().view.clone()
    }

    /// What the policy would do next, and why.
    pub fn explain(&self) -> Explanation {
        let state = self.shared.state.lock();
        state.policy.explain(&state.view)
    }

    /// What the keyspace looks like now.
    pub fn stats(&self) -> KeyspaceStats {
        let state = self.shared.state.lock();
        let tree = &state.view.tree;
        let held = state.memory();
        let memory_bytes = tree.memory().bytes() + state.active.memtable.live_bytes();
        let table_bytes = state.table_bytes();
        let (mut dead_bytes, mut punched_bytes) = (0, 0);
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
            memory_allocated_bytes: held.memtables,
            fence_bytes: held.fences,
            filter_bytes: held.filters,
            profile_bytes: held.profiles,
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
