//! What a plan has changed.

use lsmith_tree::{Addition, Input, KeyRange, Run, Tree, TreeEdit};
use std::sync::Arc;

/// An edit, and the tree that it was applied to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    pub(crate) before: &'a Tree,
    pub(crate) edit: &'a TreeEdit,
}

impl Change<'_> {
    /// A range outside of which all slices of `run` are what they were; `None` where it is not
    /// known to have been in the tree before.
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
