//! Range deletes that come late: they have older sequence numbers than other range deletes in the
//! tree.

use super::{AddPlace, Addition, TreeEdit};
use crate::entry::SeqNo;
use crate::plan::Input;
use crate::range::KeyRange;
use crate::slice::Slice;
use crate::tree::Tree;

impl TreeEdit {
    /// Adds range deletes that come from outside, with sequence numbers of their own. No merge has
    /// applied them yet. So tables to which merges have applied later range deletes say that only
    /// earlier ones are applied, in the edit and in `tree`.
    pub fn add_late(&mut self, tree: &Tree, late: impl IntoIterator<Item = (KeyRange, SeqNo)>) {
        let late: Vec<(KeyRange, SeqNo)> = late.into_iter().collect();
        for slice in self.add.iter_mut().flat_map(|addition| &mut addition.slices) {
            if let Some(seq) = cleared_before(slice, &late) {
                *slice = slice.clone().with_deletes_applied(seq);
            }
        }
        let mut changed = Vec::new();
        for run in tree.disk_runs() {
            let removed = self.remove.iter().filter(|input| input.run == run.id());
            let removed: Vec<&KeyRange> = removed.map(|input| &input.range).collect();
            for slice in run.slices() {
                let Some(seq) = cleared_before(slice, &late) else { continue };
                let kept = slice.left_without(&removed);
                changed.extend(kept.map(|slice| (run.id(), slice.with_deletes_applied(seq))));
            }
        }
        for (run, slice) in changed {
            self.remove.push(Input { run, range: slice.range().clone() });
            self.add.push(Addition { run, place: AddPlace::Into, knot: None, slices: vec![slice] });
        }
        self.range_deletes.extend(late);
    }
}

impl Slice {
    /// Returns the parts of the slice outside of `ranges`.
    fn left_without(&self, ranges: &[&KeyRange]) -> impl Iterator<Item = Slice> {
        let mut left = vec![self.range().clone()];
        for range in ranges {
            left = left.iter().flat_map(|part| part.without(range)).collect();
        }
        left.into_iter().filter_map(|part| self.clip(&part))
    }
}

/// Returns the sequence number up to which range deletes are applied to the table of `slice` once
/// `late` have come, if that is less than before. It is the same for all slices of a table.
fn cleared_before(slice: &Slice, late: &[(KeyRange, SeqNo)]) -> Option<SeqNo> {
    let table = slice.table();
    let is_new = |(range, seq): &&(KeyRange, SeqNo)| {
        table.seq_min < *seq && *seq <= table.deletes_applied && range.overlaps(&table.range)
    };
    let oldest = late.iter().filter(is_new).map(|(_, seq)| *seq).min();
    oldest.map(|seq| SeqNo(seq.0 - 1))
}
