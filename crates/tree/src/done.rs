//! Finds range deletes that hide nothing any more.

use crate::entry::SeqNo;
use crate::key::Key;
use crate::range::KeyRange;
use crate::range_deletes::RangeDeletePart;
use crate::slice::Slice;
use crate::tree::Tree;

/// What bounds the range deletes that can be forgotten.
#[derive(Clone, Copy, Debug)]
pub struct DoneReaders {
    /// No reader is older than this sequence number, now and later.
    pub oldest: SeqNo,
    /// The smallest sequence number of an entry that the tree does not show: in the active
    /// memtable.
    pub unsealed: SeqNo,
}

impl Default for DoneReaders {
    /// Without readers and without an active memtable.
    fn default() -> DoneReaders {
        DoneReaders { oldest: SeqNo::MAX, unsealed: SeqNo::MAX }
    }
}

impl Slice {
    /// Returns true if the range delete with sequence number `seq` may hide entries of the slice.
    fn may_lie_under(&self, seq: SeqNo) -> bool {
        let table = self.table();
        table.seq_min < seq && table.deletes_applied < seq
    }
}

impl Tree {
    /// Returns ranges within `region` and sequence numbers: in each range, range deletes up to the
    /// sequence number are done. They hide nothing, or no reader can tell them from newer ones.
    ///
    /// A part that still hides something is shortened at its ends only, so there are never more
    /// parts than before.
    pub fn range_deletes_done(
        &self,
        region: &KeyRange,
        readers: DoneReaders,
    ) -> Vec<(KeyRange, SeqNo)> {
        let mut done = Vec::new();
        for part in self.range_deletes.overlapping(region) {
            self.part_done(part, readers, &mut done);
        }
        done
    }

    fn part_done(
        &self,
        part: &RangeDeletePart,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::TreeEdit;

    /// Returns the tree after an edit that forgets what is done.
    fn after(tree: &str, edit: &str, oldest: u64) -> Tree {
        let mut tree: Tree = tree.parse().unwrap();
        let mut edit: TreeEdit = edit.parse().unwrap();
        let readers = DoneReaders { oldest: SeqNo(oldest), unsealed: SeqNo(900) };
        edit.forget_done(&tree, readers).unwrap();
        edit.apply_to(&mut tree).unwrap();
        tree
    }

    fn range_delete_lines(tree: &Tree) -> Vec<String> {
        let text = tree.to_string();
        text.lines().filter(|line| line.starts_with("erased")).map(str::to_string).collect()
    }

    #[test]
    fn a_range_delete_stays_while_a_run_may_hold_older_entries() {
        let tree = "tree\nmem r4[t4:a..z 1kB s60..70]\nL0 r3[t3:b..d 1kB s30..35]\n\
                L1 r1[t1:a..g 1MB s1..20, t2:m..z 1MB s1..20]\n";
        let range_deletes = "edit\nerase 50 c..x\n";
        assert_eq!(range_delete_lines(&after(tree, range_deletes, 800)), ["erased 50 c..x"]);
        // Merged without what it hides, and with one newer entry.
        let tree = format!("{tree}erased 50 c..x\n");
        let merged = "edit\ntake r3 ..\ntake r1 ..h\nadd r1 [t5:a..g 1MB s1..60 cleared 50]\n";
        let left = after(&tree, merged, 800);
        assert_eq!(range_delete_lines(&left), ["erased 50 m..x"]);
        assert_eq!(left.dropped().below(&KeyRange::new("c", "d")), SeqNo(50));
        assert_eq!(left.dropped().below(&KeyRange::new("n", "o")), SeqNo(0));
        // A table to which only an older range delete was applied may hold hidden entries.
        let merged = merged.replace("cleared 50", "cleared 49");
        assert_eq!(range_delete_lines(&after(&tree, &merged, 800)), ["erased 50 c..x"]);
        let gone = "edit\ntake r3 ..\ntake r1 ..\n";
        assert_eq!(range_delete_lines(&after(&tree, gone, 800)), [""; 0]);
        // The active memtable has older entries.
        let late = tree.replace("erased 50", "erased 950");
        assert_eq!(range_delete_lines(&after(&late, gone, 800)), ["erased 950 c..x"]);
    }

    #[test]
    fn older_numbers_go_when_no_reader_needs_them() {
        let tree = "tree\nL1 r1[t1:a..z 1MB s1..20]\nerased 30 a..m\nerased 50 c..x\n";
        let range_deletes = "edit\nerase 60 b..d\n";
        let lines = |oldest| range_delete_lines(&after(tree, range_deletes, oldest));
        let all = ["erased 30 a..b", "erased 30 b..c", "erased 60 b..c", "erased 30 c..d"];
        assert_eq!(lines(29)[..4], all);
        assert_eq!(lines(55)[..3], ["erased 30 a..b", "erased 30 b..c", "erased 60 b..c"]);
        assert_eq!(lines(55)[3..5], ["erased 50 c..d", "erased 60 c..d"]);
        // Parts that the edit does not touch stay as they are.
        assert_eq!(lines(60)[..3], ["erased 30 a..b", "erased 60 b..d", "erased 30 d..m"]);
    }
}
