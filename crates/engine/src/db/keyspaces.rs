//! Dropping, renaming and clearing keyspaces.

use super::{Keyspace, Store};
use lsmith_storage::error::Result;

impl Store {
    /// Drops the keyspace called `name`, with all its entries. If `name` is a group, drops the
    /// group with all its keyspaces. When the call returns, the drop survives power loss, and so
    /// does every earlier write of the store.
    ///
    /// The space of its tables, memtables and copies is free when the call returns, except for what
    /// [iterators](crate::Iter) under way still read. Merges under way are given up. Snapshots do
    /// not keep a keyspace.
    ///
    /// Reads and writes through its handles fail with `NotFound` from then on. A new keyspace may
    /// get the name.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use lsmith::{ErrorKind, Store};
    ///
    /// let store = Store::builder(dir.path()).open()?;
    /// let old = store.keyspace("sessions")?;
    /// old.put("7", "ada")?;
    /// store.drop_keyspace("sessions")?;
    /// assert_eq!(old.get("7").unwrap_err().kind(), ErrorKind::NotFound);
    /// assert!(store.keyspace("sessions")?.get("7")?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// * `NotFound` if there is no such keyspace or group.
    /// * `InvalidArgument` if the keyspace belongs to a group: [clear](Keyspace::clear) it, or drop
    ///   the group.
    /// * `Full` while the device has no room, `Io` or `Poisoned` as a [write](Store::write),
    ///   `ReadOnly`.
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.context().check_here()?;
        self.engine().catalog.drop_keyspace(name)
    }

    /// Renames the keyspace or the group called `from` to `to`, durably and in one step. Handles
    /// stay valid, and know the new name.
    ///
    /// # Errors
    /// `NotFound` if there is no such keyspace or group; `InvalidArgument` if `to` is in use, or is
    /// no [name](Store::keyspace). Otherwise as [`drop_keyspace`](Store::drop_keyspace).
    pub fn rename_keyspace(&self, from: &str, to: &str) -> Result<()> {
        self.context().check_here()?;
        self.engine().catalog.rename(from, to)
    }
}

impl Keyspace {
    /// Removes all entries, at one moment. Earlier writes are gone, later ones stay. Live snapshots
    /// and iterators go on reading the entries from before. When the call returns, the clearing
    /// survives power loss, and so does every earlier write of the store.
    ///
    /// The cost does not depend on the number of entries. The space is free when the call returns,
    /// except for what snapshots and iterators still read. Merges under way in the keyspace, or in
    /// its group, are given up.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// let store = lsmith::Store::builder(dir.path()).open()?;
    /// let cache = store.keyspace("cache")?;
    /// cache.put("a", "1")?;
    /// let snapshot = store.snapshot();
    /// cache.clear()?;
    /// assert!(cache.get("a")?.is_none());
    /// assert!(snapshot.get(&cache, "a")?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::write`](crate::Store::write).
    pub fn clear(&self) -> Result<()> {
        self.store().context().check_here()?;
        self.store().engine().write_path.clear(self.shared(), self.member())
    }
}
