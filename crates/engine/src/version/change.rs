//! The change of a tree by an edit, seen run by run.

use lsmith_tree::{Addition, Input, KeyRange, Run, Tree, TreeEdit};
use std::sync::Arc;

/// An edit, and the tree before the edit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    pub(crate) before: &'a Tree,
    pub(crate) edit: &'a TreeEdit,
}

impl Change<'_> {
    /// Returns a range of keys that covers all slices of `run` that the edit changed. Returns
    /// `None` if the tree before the edit did not hold this very run, and for a run that the edit
    /// does not name.
    pub(crate) fn of(&self, run: &Arc<Run>) -> Option<KeyRange> {
        let (_, before) = self.before.run(run.id())?;
        if !Arc::ptr_eq(before, run) {
            return None;
        }
        let removed = self.edit.remove.iter().filter(|input: &&Input| input.run == run.id());
        let added = self.edit.add.iter().filter(|addition: &&Addition| addition.run == run.id());
        let slices = added.flat_map(|addition| addition.slices.first().zip(addition.slices.last()));
        let hull = |(first, last): (&lsmith_tree::Slice, &lsmith_tree::Slice)| KeyRange {
            start: first.range().start.clone(),
            end: last.range().end.clone(),
        };
        let ranges = removed.map(|input| input.range.clone()).chain(slices.map(hull));
        ranges.reduce(|left, right| left.hull(&right))
    }
}
