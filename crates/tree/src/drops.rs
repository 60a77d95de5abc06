//! When plans may drop tables unread, and which tables they drop: tables that have expired, and
//! tables that range deletes hide.

use crate::check::check_plan;
use crate::entry::SeqNo;
use crate::key::Key;
use crate::plan::{MergePlan, Mode, Reason};
use crate::range::KeyRange;
use crate::range_deletes::RangeDeletes;
use crate::run::Run;
use crate::size::Size;
use crate::slice::Slice;
use crate::tree::Tree;
use crate::view::TreeView;
use std::sync::Arc;

/// The least logical bytes of a part of a slice that a plan of its own drops.
const HIDDEN_BYTES_MIN: u64 = 1 << 20;

impl MergePlan {
    /// Returns the greatest sequence number of the tables that the plan takes from; 0 if they have
    /// none.
    pub fn newest_taken(&self, tree: &Tree) -> SeqNo {
        let runs = self.taken_from(tree).flat_map(|(run, range)| run.overlapping(range));
        runs.map(|slice| slice.table().seq_max).max().unwrap_or_default()
    }

    /// Returns the size of what the plan takes.
    pub fn size_taken(&self, tree: &Tree) -> Size {
        self.taken_from(tree).map(|(run, range)| run.size_within(range)).sum()
    }

    fn taken_from<'a>(
        &'a self,
        tree: &'a Tree,
    ) -> impl Iterator<Item = (&'a Arc<Run>, &'a KeyRange)> {
        self.inputs.iter().filter_map(|input| Some((tree.run(input.run)?.1, &input.range)))
    }

    /// Returns true if the plan drops what readers at `oldest` or later may not lose: entries that
    /// are newer, or some that hide older ones of their keys from them.
    pub fn drops_too_early(&self, tree: &Tree, oldest: SeqNo) -> bool {
        let leaves_none =
            || self.is_hidden(tree, oldest) || tree.is_bottom_for(self).unwrap_or(false);
        self.mode == Mode::Drop && (self.newest_taken(tree) > oldest || !leaves_none())
    }

    /// Returns true if range deletes hide all that the plan takes from readers at `at`.
    pub fn is_hidden(&self, tree: &Tree, at: SeqNo) -> bool {
        self.inputs.iter().all(|input| {
            tree.run(input.run).is_some_and(|(_, run)| tree.hides(run, &input.range, at))
        })
    }

    /// Returns a plan that [drops](crate::Mode::Drop) a slice on storage whose entries have all
    /// expired when the clock shows `now`. Returns `None` if there is none, or if the plan is not
    /// legal now.
    ///
    /// An expired entry goes on hiding older ones of its key, so the oldest table of a key goes
    /// first. Entries that are newer than `oldest`, which the oldest reader sees, stay: a
    /// transaction must find that its keys were written.
    pub fn expire(view: &TreeView, now: u64, oldest: SeqNo) -> Option<MergePlan> {
        let has_expired = |slice: &&Slice| {
            let table = slice.table();
            (1..=now).contains(&table.expires) && table.seq_max <= oldest
        };
        view.tree.disk_runs().find_map(|run| {
            run.slices().iter().filter(has_expired).find_map(|slice| {
                let reason = Reason::new("this part of run {} has expired", [run.id().0, 0, 0]);
                let plan = MergePlan::drop(run.id(), slice.range().clone(), reason);
                check_plan(view, &plan).is_ok().then_some(plan)
            })
        })
    }

    /// Returns a plan that [drops](crate::Mode::Drop) a slice on storage that range deletes hide
    /// from all readers, who are at `oldest` or later; or the part of a slice that they hide, if
    /// that is at least half of it and a mebibyte. Returns `None` if there is no such slice, or if
    /// the plan is not legal now.
    pub fn drop_hidden(view: &TreeView, oldest: SeqNo) -> Option<MergePlan> {
        let tree = &view.tree;
        tree.disk_runs().find_map(|run| {
            tree.range_deletes.parts().find_map(|part| {
                let slices = run.overlapping(&part.range).iter();
                let is_hidden = |slice: &&Slice| part.hides_all(slice.table().seq_max, oldest);
                slices.filter(is_hidden).find_map(|slice| {
                    let hidden = tree.range_deletes.stretch_over(slice, &part.range, oldest);
                    let range = whole_cells(slice, &hidden)?;
                    let is_whole = range == *slice.range();
                    let bytes = if is_whole { 0 } else { slice.size_within(&range).bytes };
                    let is_large = bytes >= HIDDEN_BYTES_MIN && 2 * bytes >= slice.size().bytes;
                    (is_whole || is_large).then(|| drop_of(view, run, range)).flatten()
                })
            })
        })
    }
}

impl Tree {
    /// Returns true if range deletes hide all that `run` has in `range` from readers at `at`.
    fn hides(&self, run: &Run, range: &KeyRange, at: SeqNo) -> bool {
        run.overlapping(range).iter().all(|slice| {
            let taken = slice.range().intersection(range);
            self.range_deletes().shown(&taken, slice.table().seq_max, at).is_empty()
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

impl RangeDeletes {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broken::PlanError;
    use crate::run::RunId;

    /// Returns the plan that drops what nobody sees.
    fn hiding(view: &str, oldest: u64) -> Option<String> {
        let view: TreeView = view.parse().unwrap();
        MergePlan::drop_hidden(&view, SeqNo(oldest)).map(|plan| plan.to_string())
    }

    #[test]
    fn slices_that_nobody_sees_are_dropped_by_a_plan() {
        let tree = "tree\nL1 r1[t1:a..c 1kB s1..20, t2:c..g 1kB s1..60, t3:g..i 1kB s1..20]\n\
                erased 50 b..k";
        let plan = "drop r1 over g..i into r1 # range deletes hide this part of run 1";
        assert_eq!(hiding(tree, 50), Some(plan.into()));
        // A reader sees the slice, and not the range delete.
        assert_eq!(hiding(tree, 49), None);
        assert_eq!(hiding(&tree.replace(" s1..20", ""), 49), None);
        let reserved = format!("{tree}\nunder_way merge r1 into r1");
        assert_eq!(hiding(&reserved, 50), None);
        // Two range deletes hide a slice together, unless there is a gap between them.
        let two = tree.replace("b..k", "b..h\nerased 60 h..k");
        assert_eq!(hiding(&two, 60), Some(plan.into()));
        assert_eq!(hiding(&two, 50), None);
        assert_eq!(hiding(&two.replace("60 h", "60 h1"), 60), None);
        let newer = tree.replace("g..i 1kB s1..20", "g..i 1kB s1..51");
        assert_eq!(hiding(&newer, 50), None);
    }

    /// The part ends at a profile point.
    #[test]
    fn a_large_part_that_nobody_sees_is_dropped() {
        let tree = "tree\nL1 r1[t1:a..z 8MiB s1..20 {f 2MiB, n 5MiB}]\nerased 50 ..p";
        let plan = "drop r1 over a..n into r1 # range deletes hide this part of run 1";
        assert_eq!(hiding(tree, 50), Some(plan.into()));
        assert_eq!(hiding(&tree.replace("..p", "..m"), 50), None, "less than half");
        assert_eq!(hiding(&tree.replace("MiB", "kB"), 50), None, "less than a megabyte");
        let behind = tree.replace("..p", "c..");
        let plan = plan.replace("a..n", "f..z");
        assert_eq!(hiding(&behind, 50), Some(plan));
    }

    /// What lies over older entries of its keys may go if range deletes hide both.
    #[test]
    fn a_drop_over_older_entries_needs_range_deletes_that_all_readers_see() {
        let tree = "tree\nL0 r2[t2:b..d 1kB s30..40]\nL1 r1[t1:a..z 1kB s1..20]\n";
        let plan = MergePlan::drop(RunId(2), KeyRange::new("b", "d"), Reason::new("", [0; 3]));
        let bare: TreeView = tree.parse().unwrap();
        let refused = Err(PlanError::CannotDrop { run: RunId(2) });
        assert_eq!(check_plan(&bare, &plan), refused);
        let hidden: TreeView = format!("{tree}erased 50 b..k").parse().unwrap();
        assert_eq!(check_plan(&hidden, &plan), Ok(0));
        let [seen, unseen] =
            [50, 49].map(|oldest| plan.drops_too_early(&hidden.tree, SeqNo(oldest)));
        assert_eq!((seen, unseen), (false, true));
        for range_deletes in
            ["erased 39 b..k", "erased 50 c..k", "erased 50 b..c", "erased 50 b..c, c1..k"]
        {
            let partly: TreeView =
                format!("{tree}{}", range_deletes.replace(", ", "\nerased 50 ")).parse().unwrap();
            assert_eq!(check_plan(&partly, &plan), refused, "{range_deletes}");
        }
        // Without sequence numbers it lies under every range delete, except for readers that see
        // none.
        let bare: TreeView =
            format!("{}erased 50 b..k", tree.replace(" s30..40", "")).parse().unwrap();
        assert!(!plan.drops_too_early(&bare.tree, SeqNo(50)));
        assert!(plan.drops_too_early(&bare.tree, SeqNo(49)));
        // Two range deletes hide it together.
        let parts: TreeView = format!("{tree}erased 50 b..c\nerased 60 c..k").parse().unwrap();
        assert_eq!(check_plan(&parts, &plan), Ok(0));
    }
}
