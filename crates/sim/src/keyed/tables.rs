//! All tables of a simulation, by name.

use super::table::KeyedTable;
use lsmith_tree::Slice;

/// Tables by their names, which are given out one after the other: each is found at once, however
/// many there are, as merges look up a table for each piece of a run.
#[derive(Clone, Debug)]
pub(super) struct Tables<R> {
    /// By name.
    slots: Vec<Option<KeyedTable<R>>>,
    /// The places of those that there are.
    taken: Vec<usize>,
}

impl<R> Default for Tables<R> {
    fn default() -> Tables<R> {
        Tables { slots: Vec::new(), taken: Vec::new() }
    }
}

impl<R> Tables<R> {
    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    pub(super) fn insert(&mut self, held: KeyedTable<R>) {
        let at = held.table.id.0 as usize;
        if at >= self.slots.len() {
            self.slots.resize_with(at + 1, || None);
        }
        if self.slots[at].replace(held).is_none() {
            self.taken.push(at);
        }
    }

    /// Returns the table of `slice`, which must be one of these.
    #[inline]
    pub(super) fn of(&self, slice: &Slice) -> &KeyedTable<R> {
        let held = self.slots.get(slice.table().id.0 as usize).and_then(Option::as_ref);
        held.expect("a tree holds tables of its own content only")
    }

    /// Lets go of those that `stays` says no to.
    pub(super) fn retain(&mut self, stays: impl Fn(&KeyedTable<R>) -> bool) {
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
