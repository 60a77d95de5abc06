//! All tables of a simulation, by name.

use super::table::KeyedTable;
use lsmith_tree::{Slice, Table, TableId};
use std::sync::Arc;

/// Tables by name. Names are consecutive numbers, so a lookup takes constant time; merges look up a
/// table for each piece of a run.
#[derive(Clone, Debug)]
pub(super) struct Tables<E> {
    /// The tables, indexed by name.
    slots: Vec<Option<KeyedTable<E>>>,
    /// The indexes of the existing tables.
    taken: Vec<usize>,
}

impl<E> Default for Tables<E> {
    fn default() -> Tables<E> {
        Tables { slots: Vec::new(), taken: Vec::new() }
    }
}

impl<E> Tables<E> {
    /// Returns the number of tables.
    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    pub(super) fn insert(&mut self, held: KeyedTable<E>) {
        let at = held.table.id.0 as usize;
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, || None);
        }
        if self.slots[at].replace(held).is_none() {
            self.taken.push(at);
        }
    }

    /// Replaces what is known of a table that the tree describes anew.
    pub(super) fn adopt(&mut self, table: &Arc<Table>) {
        if let Some(Some(held)) = self.slots.get_mut(table.id.0 as usize) {
            held.table = Arc::clone(table);
        }
    }

    /// Returns the table of `slice`, which must exist.
    #[inline]
    pub(super) fn of(&self, slice: &Slice) -> &KeyedTable<E> {
        let held = self.slots.get(slice.table().id.0 as usize).and_then(Option::as_ref);
        held.expect("a tree holds tables of its own content only")
    }

    /// Returns the table with this name, if it exists.
    pub(super) fn named(&self, id: TableId) -> Option<&KeyedTable<E>> {
        self.slots.get(id.0 as usize)?.as_ref()
    }

    /// Removes the tables for which `stays` is false.
    pub(super) fn retain(&mut self, stays: impl Fn(&KeyedTable<E>) -> bool) {
        let slots = &mut self.slots;
        self.taken.retain(|&at| {
            let slot = &mut slots[at];
            let stays = slot.as_ref().is_some_and(&stays);
            if !stays {
                *slot = None;
            }
            stays
        });
    }
}
