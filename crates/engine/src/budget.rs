//! One bound on all memory of a store.
//!
//! Memtables grow as they are written to, and tables must have their fences and filters: only the
//! cache can give way. So its capacity is what the others leave, set anew whenever a memtable was
//! sealed or tables have come or gone.

use crate::db::MEMORY_PARTS;
use crate::shared::Shared;
use crate::stats::MemoryUse;
use crate::version::{Core, TableHandle};
use std::sync::Arc;

impl Core {
    /// What the memtables and the open tables of the keyspace hold.
    pub(crate) fn memory(&self) -> MemoryUse {
        let sealed = self.sealed.iter().map(|held| held.sealed.allocated_bytes() as u64);
        let mut held = MemoryUse {
            memtables: sealed.sum::<u64>() + self.active.memtable.allocated_bytes() as u64,
            ..MemoryUse::default()
        };
        for table in self.tables.values() {
            let of = table.table().memory();
            held.fences += of.fences;
            held.filters += of.filters;
            held.profiles += of.profiles;
        }
        held
    }
}

impl Shared {
    /// What is held in memory now.
    pub(crate) fn memory(&self) -> MemoryUse {
        let mut all = MemoryUse::default();
        for space in self.all_spaces() {
            let held = space.core.lock().memory();
            all.memtables += held.memtables;
            all.fences += held.fences;
            all.filters += held.filters;
            all.profiles += held.profiles;
        }
        // Last: the cache gives way before tables come.
        all.cache = self.cache.bytes();
        all
    }

    /// Gives the cache what the others leave of the bound, if there is one. No lock may be held but
    /// the writer's.
    pub(crate) fn balance_memory(&self) {
        self.balance_memory_for(&[]);
    }

    /// The same, with `coming` tables about to join the others.
    pub(crate) fn balance_memory_for(&self, coming: &[Arc<TableHandle>]) {
        let Some(bytes) = self.options.memory_bytes else { return };
        let of = |table: &Arc<TableHandle>| {
            let of = table.table().memory();
            of.fences + of.filters + of.profiles
        };
        let mut others = coming.iter().map(of).sum::<u64>();
        for space in self.all_spaces() {
            let core = space.core.lock();
            let held = core.memory();
            // The active memtable will grow until it is full; short entries take nearly as much
            // again for their numbers and lengths.
            let active = core.active.memtable.allocated_bytes() as u64;
            let full = core.policy.seal_bytes(&core.view).min(space.memtable_bytes);
            others += held.total() + (2 * full).saturating_sub(active);
        }
        self.cache.set_capacity(bytes.saturating_sub(others).max(bytes / MEMORY_PARTS));
    }
}
