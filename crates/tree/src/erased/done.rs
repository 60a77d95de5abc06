//! Finds range deletes that hide nothing any more.

use super::{Erased, ErasedPart};
use crate::check::check_plan;
use crate::entry::SeqNo;
use crate::key::Key;
use crate::plan::{MergePlan, Reason};
use crate::range::KeyRange;
use crate::run::Run;
use crate::slice::Slice;
use crate::tree::Tree;
use crate::view::TreeView;

/// What bounds the range deletes that can be forgotten.
#[derive(Clone, Copy, Debug)]
pub struct DoneReaders {
    /// No reader is older than this number, now and later.
    pub oldest: SeqNo,
    /// The smallest number of an entry that the tree does not show: in the active memtable.
    pub unsealed: SeqNo,
}

impl Default for DoneReaders {
    /// Without readers and without an active memtable.
    fn default() -> DoneReaders {
        DoneReaders { oldest: SeqNo::MAX, unsealed: SeqNo::MAX }
    }
}

impl Slice {
    /// Returns true if the range delete with number `seq` may hide entries of the slice.
    pub(crate) fn may_lie_under(&self, seq: SeqNo) -> bool {
        let table = self.table();
        table.seq_min < seq && table.cleared < seq
    }
}

impl Tree {
    /// Returns ranges within `region` and numbers: in each range, range deletes up to the number
    /// are done. They hide nothing, or no reader can tell them from newer ones.
    ///
    /// A part that still hides something is shortened at its ends only, so there are never more
    /// parts than before.
    pub fn erased_done(&self, region: &KeyRange, readers: DoneReaders) -> Vec<(KeyRange, SeqNo)> {
        let mut done = Vec::new();
        for part in self.erased.overlapping(region) {
            self.part_done(part, readers, &mut done);
        }
        done
    }

    fn part_done(
        &self,
        part: &ErasedPart,
        readers: DoneReaders,
        done: &mut Vec<(KeyRange, SeqNo)>,
    ) {
        let seen = part.seqs.partition_point(|seq| *seq > readers.oldest);
        if let Some(older) = part.seqs.get(seen + 1) {
            done.push((part.range.clone(), *older));
        }
        let told_apart = part.seqs.iter().take(seen + 1).enumerate();
        for (index, seq) in told_apart.filter(|(_, seq)| **seq < readers.unsealed) {
            let hull = self.hidden_hull(&part.range, *seq);
            if hull.is_empty() {
                done.push((part.range.clone(), *seq));
                return;
            }
            if index == 0 {
                let ends = part.range.without(&hull).into_iter();
                done.extend(ends.filter(|end| !end.is_empty()).map(|end| (end, *seq)));
            }
        }
    }

    /// Returns the hull of the slices within `range` in which the range delete `seq` may hide
    /// entries.
    fn hidden_hull(&self, range: &KeyRange, seq: SeqNo) -> KeyRange {
        let mut hull = KeyRange { start: Key::new(), end: Some(Key::new()) };
        for (_, run) in self.runs() {
            let slices = run.overlapping(range);
            let first = slices.iter().find(|slice| slice.may_lie_under(seq));
            let last = slices.iter().rev().find(|slice| slice.may_lie_under(seq));
            if let (Some(first), Some(last)) = (first, last) {
                let start = first.range().start.clone();
                let under = KeyRange { start, end: last.range().end.clone() };
                hull = hull.hull(&under.intersection(range));
            }
        }
        hull
    }
}

/// The least logical bytes of a part of a slice that a plan of its own drops.
const ERASED_BYTES_MIN: u64 = 1 << 20;

impl MergePlan {
    /// Returns a plan that [drops](crate::Mode::Drop) a slice on storage that range deletes hide
    /// from all readers, who are at `oldest` or later; or the part of a slice that they hide, if
    /// that is at least half of it and a mebibyte. Returns `None` if there is no such slice, or if
    /// the plan is not legal now.
    pub fn erase(view: &TreeView, oldest: SeqNo) -> Option<MergePlan> {
        let tree = &view.tree;
        tree.disk_runs().find_map(|run| {
            tree.erased.parts().find_map(|part| {
                let slices = run.overlapping(&part.range).iter();
                let is_hidden = |slice: &&Slice| part.hides_all(slice.table().seq_max, oldest);
                slices.filter(is_hidden).find_map(|slice| {
                    let hidden = tree.erased.stretch_over(slice, &part.range, oldest);
                    let range = whole_cells(slice, &hidden)?;
                    let is_whole = range == *slice.range();
                    let bytes = if is_whole { 0 } else { slice.size_within(&range).bytes };
                    let is_large = bytes >= ERASED_BYTES_MIN && 2 * bytes >= slice.size().bytes;
                    (is_whole || is_large).then(|| drop_of(view, run, range)).flatten()
                })
            })
        })
    }
}

/// Returns the part of `slice` in `range`, without the cells that `range` cuts. Returns `None` if
/// that is nothing.
fn whole_cells(slice: &Slice, range: &KeyRange) -> Option<KeyRange> {
    let mut part = slice.range().intersection(range);
    if part.start > slice.range().start {
        part.start = slice.cell_end(&part.start)?;
    }
    if part.end != slice.range().end {
        part.end = part.end.map(|end| slice.cell_start(&end));
    }
    (!part.is_empty()).then_some(part)
}

/// Returns the plan that drops `range` of `run`, if it is legal.
fn drop_of(view: &TreeView, run: &Run, range: KeyRange) -> Option<MergePlan> {
    let reason = Reason::new("range deletes hide this part of run {}", [run.id().0, 0, 0]);
    let plan = MergePlan::drop(run.id(), range, reason);
    check_plan(view, &plan).is_ok().then_some(plan)
}

impl Erased {
    /// Returns the stretch of neighbouring parts around the part at `range` that hide all of
    /// `slice`, as far as they cover it, from readers at `at`.
    fn stretch_over(&self, slice: &Slice, range: &KeyRange, at: SeqNo) -> KeyRange {
        let newest = slice.table().seq_max;
        let mut stretch = KeyRange { start: Key::new(), end: Some(Key::new()) };
        for part in self.overlapping(slice.range()) {
            let hides = part.hides_all(newest, at);
            if hides && stretch.end.as_ref() == Some(&part.range.start) {
                stretch.end = part.range.end.clone();
            } else if stretch.covers(range) {
                break;
            } else if hides {
                stretch = part.range.clone();
            }
        }
        stretch
    }

    /// Returns the number up to which all range deletes in `range` that a reader at `at` sees are
    /// known here: 0 if there are none.
    pub fn cleared_by(&self, range: &KeyRange, at: SeqNo) -> SeqNo {
        self.overlapping(range).map(|part| part.newest_at(at)).max().unwrap_or_default()
    }
}
