//! All keyspaces of a store, and the one bound on the memory of all of them.
//!
//! Memtables grow as they are written to, and tables must have their fences and filters: only the
//! cache can give way. So its capacity is what the others leave, set anew whenever a memtable was
//! sealed or tables have come or gone.

use crate::context::Context;
use crate::keyspace::KeyspaceShared;
use crate::options::MEMORY_PARTS;
use crate::stats::MemoryUse;
use crate::version::TableHandle;
use lsmith_storage::sync::RwLock;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Keyspaces by name.
type ByName = BTreeMap<String, Arc<KeyspaceShared>>;

/// All keyspaces of an open store.
#[derive(Debug)]
pub(crate) struct Keyspaces {
    context: Arc<Context>,
    by_name: RwLock<ByName>,
}

impl Keyspaces {
    /// Returns the set of `keyspaces`.
    pub(crate) fn new(
        context: &Arc<Context>,
        keyspaces: impl IntoIterator<Item = Arc<KeyspaceShared>>,
    ) -> Keyspaces {
        let named = |keyspace: Arc<KeyspaceShared>| (keyspace.name.clone(), keyspace);
        let by_name = RwLock::new(keyspaces.into_iter().map(named).collect());
        Keyspaces { context: Arc::clone(context), by_name }
    }

    /// Returns all keyspaces, sorted by name.
    pub(crate) fn all(&self) -> Vec<Arc<KeyspaceShared>> {
        self.by_name.read().values().map(Arc::clone).collect()
    }

    /// Returns the keyspace called `name`, if it exists.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<KeyspaceShared>> {
        self.by_name.read().get(name).map(Arc::clone)
    }

    /// Returns the keyspaces by name, which stay as they are as long as the guard lives.
    pub(crate) fn read(&self) -> impl Deref<Target = ByName> {
        self.by_name.read()
    }

    /// Returns the keyspaces by name, to be added to.
    pub(crate) fn write(&self) -> impl DerefMut<Target = ByName> {
        self.by_name.write()
    }

    /// Returns the size of the largest memtable that a keyspace may have, in logical bytes.
    pub(crate) fn memtable_bytes_max(&self) -> u64 {
        let keyspaces = self.by_name.read();
        let largest = keyspaces.values().map(|keyspace| keyspace.memtable_bytes).max();
        largest.unwrap_or(self.context.options.memtable_bytes)
    }

    /// Returns the sum of the memtable sizes of all keyspaces, in logical bytes.
    pub(crate) fn memtable_bytes_sum(&self) -> u64 {
        self.by_name.read().values().map(|keyspace| keyspace.memtable_bytes).sum()
    }

    /// Returns what the store holds in memory now.
    pub(crate) fn memory(&self) -> MemoryUse {
        let mut all = MemoryUse::default();
        for keyspace in self.all() {
            let held = keyspace.state.lock().memory();
            all.memtables += held.memtables;
            all.fences += held.fences;
            all.filters += held.filters;
            all.profiles += held.profiles;
        }
        // Last: the cache gives way before tables come.
        all.cache = self.context.cache.bytes();
        all
    }

    /// Gives the cache what the others leave of the bound on memory, if there is one. The caller
    /// may hold the lock of the writer, and no other.
    pub(crate) fn balance_memory(&self) {
        self.balance_memory_for(&[]);
    }

    /// Does the same, with `coming` tables about to join the others.
    pub(crate) fn balance_memory_for(&self, coming: &[Arc<TableHandle>]) {
        let Some(bytes) = self.context.options.memory_bytes else { return };
        let mut others = coming.iter().map(|table| table.table().memory().total()).sum::<u64>();
        for keyspace in self.all() {
            let state = keyspace.state.lock();
            // The active memtable will grow until it is full; short entries take nearly as much
            // again for their numbers and lengths.
            let active = state.active.memtable.allocated_bytes() as u64;
            let full = state.policy.seal_bytes(&state.view).min(keyspace.memtable_bytes);
            others += state.memory().total() + (2 * full).saturating_sub(active);
        }
        let left = bytes.saturating_sub(others).max(bytes / MEMORY_PARTS);
        self.context.cache.set_capacity(left);
    }
}
