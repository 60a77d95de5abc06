//! Edits of a tree behind one that was lost.
//!
//! Each says which runs it takes and where what it adds goes. Of that, what can be done is done:
//! what it takes of runs that are not known is not there to be taken, and what it adds beside such
//! a run goes above the first run that it takes, or on top where it takes none. So the order of
//! all tables but those of the lost edit is mostly what it was.

use super::known::Reading;
use crate::manifest::{Record, SpaceRecord};
use lsmith_tree::{AddPlace, Addition, Input, KeyRange, RunId, Slice, Tree, TreeEdit};

impl Reading {
    /// Has `record` take effect as well as it can.
    pub(super) fn take_loosely(&mut self, record: Record) {
        let record = match record {
            Record::Edit { space, flushed_seq, taken, edit } => {
                self.make_space(space);
                let edit = self.loosen(space, edit);
                Record::Edit { space, flushed_seq, taken, edit }
            }
            Record::Tree { space, .. }
            | Record::Policy { space, .. }
            | Record::Compression { space, .. }
            | Record::Spill { space, .. } => {
                self.make_space(space);
                record
            }
            Record::Space(made) => return self.name_space(made, "none".to_string()),
            Record::CompressedSpace(made, codecs) => return self.name_space(made, codecs),
            record => record,
        };
        // What does not fit in spite of all is left out: its tables are without a place then.
        let _ = self.account.take(record);
    }

    /// Says what a keyspace is of which something was said already.
    fn name_space(&mut self, made: SpaceRecord, compression: String) {
        self.make_space(made.id);
        let state = self.account.spaces.get_mut(&made.id).expect("it was just made");
        let SpaceRecord { name, policy, memtable_bytes, .. } = made;
        (state.name, state.policy) = (name, policy);
        (state.memtable_bytes, state.compression) = (memtable_bytes, compression);
    }

    fn loosen(&self, space: u32, mut edit: TreeEdit) -> TreeEdit {
        let tree = &self.account.spaces[&space].tree;
        edit.remove.retain(|input| tree.run(input.run).is_some());
        let beside = edit.remove.first().map(|input| input.run);
        let place = beside.map_or(AddPlace::Top(0), AddPlace::Above);
        for addition in &mut edit.add {
            let slices = std::mem::take(&mut addition.slices);
            addition.slices = slices.into_iter().filter_map(|slice| self.known(slice)).collect();
            let is_known = |run: RunId| tree.run(run).is_some();
            match addition.place {
                AddPlace::Into if !is_known(addition.run) => addition.place = place,
                AddPlace::Above(run) if !is_known(run) => addition.place = place,
                _ => {}
            }
        }
        edit.add.retain(|addition| !addition.slices.is_empty());
        let cuts: Vec<Input> =
            edit.add.iter().filter_map(|added| cut(tree, &edit, added)).collect();
        edit.remove.extend(cuts);
        edit
    }

    /// `slice`, which may only name its table, with all that is known of that.
    fn known(&self, slice: Slice) -> Option<Slice> {
        match slice.table().range.is_all() {
            false => Some(slice),
            true => {
                let table = self.tables.get(&slice.table().id)?;
                Slice::whole(table.clone()).clip(slice.range())
            }
        }
    }
}

/// What has to be cut out of the run that `added` goes into: an edit that was lost has taken it.
fn cut(tree: &Tree, edit: &TreeEdit, added: &Addition) -> Option<Input> {
    let (_, run) = tree.run(added.run).filter(|_| added.place == AddPlace::Into)?;
    let (first, last) = (added.slices.first()?, added.slices.last()?);
    let range = KeyRange { start: first.range().start.clone(), end: last.range().end.clone() };
    let takes = |input: &Input| input.run == added.run && input.range.covers(&range);
    let is_free = edit.remove.iter().any(takes) || run.overlapping(&range).is_empty();
    (!is_free).then_some(Input { run: added.run, range })
}
