//! All keyspaces of a store, and what they hold of its memory.
//!
//! Under a [limit](crate::limit), the capacity of the cache is set anew whenever a memtable is
//! sealed, and whenever tables are added or removed.

use crate::budget::Balance;
use crate::context::Context;
use crate::group::Member;
use crate::keyspace::KeyspaceShared;
use crate::stats::MemoryUse;
use crate::version::TableHandle;
use lsmith_storage::sync::RwLock;
use lsmith_storage::table::ReadTable;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Keyspaces and groups by name. Keyspaces of a group are in the group.
pub(crate) type ByName = BTreeMap<String, Arc<KeyspaceShared>>;

/// What a name names.
#[derive(Debug)]
pub(crate) enum Named {
    /// A keyspace of its own.
    Alone(Arc<KeyspaceShared>),
    /// A keyspace of a group.
    Member(Arc<KeyspaceShared>, Member),
    /// A group.
    Group(Arc<KeyspaceShared>),
}

/// Returns what `name` names, if it is in use.
pub(crate) fn find(by_name: &ByName, name: &str) -> Option<Named> {
    if let Some(found) = by_name.get(name).map(Arc::clone) {
        let is_group = found.members.is_some();
        return Some(if is_group { Named::Group(found) } else { Named::Alone(found) });
    }
    by_name.values().find_map(|keyspace| {
        let member = keyspace.members.as_ref()?.get(name)?;
        Some(Named::Member(Arc::clone(keyspace), member))
    })
}

/// All keyspaces of an open store.
#[derive(Debug)]
pub(crate) struct Keyspaces {
    context: Arc<Context>,
    by_name: RwLock<ByName>,
}

impl Keyspaces {
    /// Returns a set of `keyspaces`.
    pub(crate) fn new(
        context: &Arc<Context>,
        keyspaces: impl IntoIterator<Item = Arc<KeyspaceShared>>,
    ) -> Keyspaces {
        let named = |keyspace: Arc<KeyspaceShared>| (keyspace.name.to_string(), keyspace);
        let by_name = RwLock::new(keyspaces.into_iter().map(named).collect());
        Keyspaces { context: Arc::clone(context), by_name }
    }

    /// Returns all keyspaces and groups, sorted by name.
    pub(crate) fn all(&self) -> Vec<Arc<KeyspaceShared>> {
        self.by_name.read().values().map(Arc::clone).collect()
    }

    /// Returns what `name` names, if it is in use.
    pub(crate) fn find(&self, name: &str) -> Option<Named> {
        find(&self.by_name.read(), name)
    }

    /// Returns the names of all keyspaces, sorted. Groups are no keyspaces, but theirs are.
    pub(crate) fn names(&self) -> Vec<String> {
        let by_name = self.by_name.read();
        let names_of = |keyspace: &Arc<KeyspaceShared>| match &keyspace.members {
            None => vec![keyspace.name.to_string()],
            Some(members) => members.all().iter().map(|member| member.name.to_string()).collect(),
        };
        let mut names: Vec<String> = by_name.values().flat_map(names_of).collect();
        names.sort_unstable();
        names
    }

    /// Returns the keyspaces by name. No keyspace is added as long as the guard lives.
    pub(crate) fn read(&self) -> impl Deref<Target = ByName> {
        self.by_name.read()
    }

    /// Returns the keyspaces by name, for adding one.
    pub(crate) fn write(&self) -> impl DerefMut<Target = ByName> {
        self.by_name.write()
    }

    /// Returns the largest memtable size of any keyspace, in logical bytes.
    pub(crate) fn memtable_bytes_max(&self) -> u64 {
        let keyspaces = self.by_name.read();
        let largest = keyspaces.values().map(|keyspace| keyspace.memtable_bytes).max();
        largest.unwrap_or(self.context.options.memtable_bytes)
    }

    /// Returns the sum of the memtable sizes of all keyspaces, in logical bytes.
    pub(crate) fn memtable_bytes_sum(&self) -> u64 {
        self.by_name.read().values().map(|keyspace| keyspace.memtable_bytes).sum()
    }

    /// Returns the bytes that the store holds in memory now.
    pub(crate) fn memory(&self) -> MemoryUse {
        let mut all = MemoryUse { limit: self.context.share.limit().bytes, ..MemoryUse::default() };
        let mut written = 0;
        for keyspace in self.all() {
            let state = keyspace.state.lock();
            let held = state.memory();
            written += state.written_bytes();
            all.memtables += held.memtables;
            all.fences += held.fences;
            all.filters += held.filters;
            all.profiles += held.profiles;
        }
        all.spare = self.context.share.chunks.held_bytes().saturating_sub(written);
        all.merges = self.context.share.merging.bytes();
        // The cache is read last, because it shrinks before tables are added.
        all.cache = self.context.cache.bytes();
        all
    }

    /// Sets the capacity of the cache to what the limit on memory leaves, if there is a limit. The
    /// caller may hold the lock of the log's writer, and no other lock.
    pub(crate) fn balance_memory(&self) {
        self.balance_memory_for(&[]);
    }

    /// Sets the capacity of the cache as [`balance_memory`](Keyspaces::balance_memory) does, and
    /// leaves room for the tables `coming`, which are about to be added.
    pub(crate) fn balance_memory_for(&self, coming: &[Arc<TableHandle>]) {
        if self.context.share.limit().bytes.is_none() {
            return;
        }
        let mut tables = coming.iter().map(|table| table.table().memory().total()).sum::<u64>();
        let mut memtables = 0;
        for keyspace in self.all() {
            let state = keyspace.state.lock();
            // The active memtable will grow until it is full. Short entries need nearly twice
            // their logical bytes, because of their sequence numbers and lengths.
            let active = state.active.memtable.allocated_bytes() as u64;
            let full = state.policy.seal_bytes(&state.view).min(keyspace.memtable_bytes);
            let held = state.memory();
            memtables += held.memtables + (2 * full).saturating_sub(active);
            tables += held.tables();
        }
        let set_capacity = |bytes| self.context.cache.set_capacity(bytes);
        let balance = self.context.share.balance(tables, memtables, set_capacity);
        if let Some(Balance { needed, begins_to_exceed: true }) = balance {
            let limit = self.context.share.limit().bytes.unwrap_or(u64::MAX);
            tracing::warn!(limit, needed, "open tables make the store exceed its limit on memory");
        }
        self.context.share.wake_waiting();
    }

    /// Notes the bytes of active memtables that can be sealed, for other stores with the same
    /// limit on memory.
    pub(crate) fn note_active(&self) {
        let bytes = match self.context.is_poisoned() {
            true => 0,
            false => self.all().iter().map(|keyspace| keyspace.sealable_bytes()).sum(),
        };
        self.context.share.note_active(bytes);
    }
}
