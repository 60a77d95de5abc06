//! Which tables a merge keeps as they are, because no other input has keys there
//! (docs/design/0014-kept-tables.md).

use crate::key::Key;
use crate::plan::{MergePlan, Mode};
use crate::range::KeyRange;
use crate::range_deletes::RangeDeletes;
use crate::run::Run;
use crate::size::Size;
use crate::slice::{Slice, Table, TableId};
use crate::tree::{LevelId, Tree};
use std::sync::Arc;

/// The tables that a merge keeps as they are. It neither reads nor writes them. The run that takes
/// the output in has them between the new tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptTables {
    /// In key order.
    slices: Vec<Slice>,
    /// In order.
    ids: Vec<TableId>,
    size: Size,
}

impl KeptTables {
    /// If the plan does not cut its output, a kept table has at least one part in so many of the
    /// bytes of the merge. So a run has at most as many kept tables.
    ///
    /// Measured with keys in order and memtables of equal size, which become a table each: with 256
    /// parts each byte is written 1.6 to 2 times from 1,600 memtables on; with 64 parts 2 times,
    /// and 3 times from 16,000 on. With 1,024 parts it is written once up to 1,024 memtables, and
    /// less than twice up to 16,000 (more only under `constant`). An edit then names at most 1,024
    /// tables, at some 70 bytes each, and 5 to 10 per flush on average. Without a bound it would
    /// name all, and a store of small memtables would write more about tables than into them.
    pub const PARTS_MAX: u64 = 1024;

    /// If the plan cuts its output, a kept table has at least one part in so many of the bytes of a
    /// cut. A smaller one is joined with its neighbours. Otherwise every merge could leave pieces
    /// between the tables that it keeps.
    pub const CUT_PARTS_MAX: u64 = 4;

    /// Returns the tables that `plan` keeps in `tree`. The merge applies `range_deletes`.
    /// `may_keep` says whether the merge would write the entries of a table as they are, as far as
    /// the tree does not know.
    ///
    /// A table is kept if it is whole in the run, if no other input has keys between its first and
    /// last key, and if the merge has nothing to do with its entries: it has no tombstone, and no
    /// range delete may hide an entry of it. It must also be large enough to be left alone, and
    /// not so large that the plan would cut it. Merges of one input rewrite everything: somebody
    /// wants that. So do merges that keep blocks, and merges of or into append tables.
    pub fn of(
        tree: &Tree,
        plan: &MergePlan,
        range_deletes: &RangeDeletes,
        may_keep: impl Fn(&Table) -> bool,
    ) -> KeptTables {
        let is_plain = plan.mode == Mode::Merge && plan.reuse.is_none() && !plan.makes_append();
        if !is_plain || plan.inputs.len() < 2 {
            return KeptTables::default();
        }
        let Some(taken) = Taken::all(tree, plan) else { return KeptTables::default() };
        let least = least_bytes(tree, plan);
        let most = plan.cut_bytes.map_or(u64::MAX, |bytes| bytes.saturating_mul(2));
        let cuts = plan.cut_keys(tree);
        let mut kept = KeptTables::default();
        for slice in alone(&taken) {
            let range = slice.range();
            let cut = cuts.partition_point(|cut| *cut <= range.start);
            let is_cut = cuts.get(cut).is_some_and(|cut| !range.lies_below(cut));
            if (least..most).contains(&slice.size().bytes)
                && !is_cut
                && is_plain_table(slice.table(), range_deletes)
                && may_keep(slice.table())
            {
                kept.push(slice.clone());
            }
        }
        kept.ids.sort_unstable();
        kept
    }

    fn push(&mut self, slice: Slice) {
        self.size += slice.size();
        self.ids.push(slice.table().id);
        self.slices.push(slice);
    }

    /// Returns true if nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.slices.is_empty()
    }

    /// Returns the kept tables as slices, in key order.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Returns the size of all of them.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns true if the table called `id` is kept.
    pub fn has(&self, id: TableId) -> bool {
        self.ids.binary_search(&id).is_ok()
    }

    /// Adds the first keys of the kept tables to `keys`, which are in order, so that no new table
    /// reaches over a kept one.
    pub fn cut_keys(&self, mut keys: Vec<Key>) -> Vec<Key> {
        if !self.is_empty() {
            keys.extend(self.slices.iter().map(|slice| slice.range().start.clone()));
            keys.sort_unstable();
            keys.dedup();
        }
        keys
    }

    /// Returns the kept tables that start in `range`, in key order.
    pub fn within(&self, range: &KeyRange) -> &[Slice] {
        let from = self.slices.partition_point(|slice| slice.range().start < range.start);
        let is_below =
            |slice: &Slice| range.end.as_ref().is_none_or(|end| slice.range().start < *end);
        let end = self.slices.partition_point(is_below);
        &self.slices[from..end.max(from)]
    }

    /// Adds `kept` tables to `new`, which share no key with them. The result is in key order.
    pub fn join(kept: &[Slice], new: &mut Vec<Slice>) {
        if !kept.is_empty() {
            new.extend_from_slice(kept);
            new.sort_by(|left, right| left.range().start.cmp(&right.range().start));
        }
    }
}

/// Returns the least bytes of a table that `plan` keeps.
fn least_bytes(tree: &Tree, plan: &MergePlan) -> u64 {
    match plan.cut_bytes {
        Some(bytes) => bytes / KeptTables::CUT_PARTS_MAX,
        None => plan.size_taken(tree).bytes / KeptTables::PARTS_MAX,
    }
}

/// Returns true if a merge that applies `range_deletes` has nothing to do with the entries of
/// `table`, apart from what the tree does not know.
fn is_plain_table(table: &Table, range_deletes: &RangeDeletes) -> bool {
    let known = table.seq_min.max(table.deletes_applied);
    table.size.tombstones == 0
        && table.root == 0
        && !range_deletes.overlapping(&table.range).any(|part| part.seqs[0] > known)
}

/// A part of a slice that a plan takes.
struct Taken<'a> {
    slice: &'a Slice,
    start: &'a Key,
    /// `None` for no bound.
    end: Option<&'a Key>,
    /// True if the plan takes all of a table that lies on storage.
    is_table: bool,
}

impl<'a> Taken<'a> {
    /// Returns all that `plan` takes, in the order of the first keys. Returns `None` if a run is
    /// not there, or is in a knot: there the order of runs does not say what is newer.
    fn all(tree: &'a Tree, plan: &'a MergePlan) -> Option<Vec<Taken<'a>>> {
        let mut taken = Vec::new();
        for input in &plan.inputs {
            let (level, run): (LevelId, &Arc<Run>) = tree.run(input.run)?;
            if run.knot().is_some() {
                return None;
            }
            for slice in run.overlapping(&input.range) {
                let range = slice.range();
                let is_whole = slice.is_whole() && input.range.covers(range);
                let ends = [&range.end, &input.range.end].into_iter().flatten();
                taken.push(Taken {
                    slice,
                    start: (&range.start).max(&input.range.start),
                    end: ends.min(),
                    is_table: is_whole && level != LevelId::Memory,
                });
            }
        }
        taken.sort_unstable_by_key(|part| part.start);
        Some(taken)
    }
}

/// Returns the tables among `taken`, in the order of first keys, that share no key with the others.
fn alone<'a>(taken: &[Taken<'a>]) -> impl Iterator<Item = &'a Slice> {
    // The end of all parts before: a bound of their keys, or `None` for no part.
    let mut before: Option<Option<&Key>> = None;
    taken.iter().enumerate().filter_map(move |(at, part)| {
        let begins_behind = before.is_none_or(|end| end.is_some_and(|end| end <= part.start));
        let ends_before =
            taken.get(at + 1).is_none_or(|next| part.end.is_some_and(|end| end <= next.start));
        before = match (before, part.end) {
            (None, end) => Some(end),
            (Some(Some(before)), Some(end)) => Some(Some(before.max(end))),
            (Some(_), _) => Some(None),
        };
        (part.is_table && begins_behind && ends_before).then_some(part.slice)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names of the tables that a plan keeps.
    fn kept(tree: &str, plan: &str) -> String {
        let tree: Tree = tree.parse().expect(tree);
        let plan: MergePlan = plan.parse().expect(plan);
        let kept = KeptTables::of(&tree, &plan, tree.range_deletes(), |_| true);
        let names = kept.slices().iter().map(|slice| slice.table().id.to_string());
        let names = names.collect::<Vec<_>>().join(" ");
        assert!(kept.slices().iter().all(|slice| kept.has(slice.table().id)), "{names}");
        assert_eq!(kept.size(), kept.slices().iter().map(Slice::size).sum());
        names
    }

    const ALL: &str = "merge r3 r2 r1 in place";

    #[test]
    fn tables_without_keys_of_other_inputs_are_kept() {
        let in_order = "tree\nL0 r3[t3:g..i 1MB] r2[t2:d..f 1MB] r1[t1:a..c 1MB]";
        assert_eq!(kept(in_order, ALL), "t1 t2 t3");
        // From the end of one to the start of the next.
        assert_eq!(kept(&in_order.replace("d..f", "c..g"), ALL), "t1 t2 t3");
        assert_eq!(kept(&in_order.replace("d..f", "c..gg"), ALL), "t1");
        assert_eq!(kept(&in_order.replace("d..f", "bb..g"), ALL), "t3");
        // A table that reaches over all later ones.
        assert_eq!(kept(&in_order.replace("a..c", "a..z"), ALL), "");
        // Two tables with keys on both sides of a third.
        let around = "tree\nL0 r3[t4:a..b 1MB, t5:y..z 1MB] r2[t2:d..f 1MB] r1[t1:a..c 1MB]";
        assert_eq!(kept(around, ALL), "t2 t5");
    }

    #[test]
    fn memory_is_written() {
        let tree = "tree\nmem r3[t3:g..i 1MB]\nL0 r2[t2:d..f 1MB] r1[t1:a..c 1MB]";
        assert_eq!(kept(tree, ALL), "t1 t2");
        assert_eq!(kept(&tree.replace("g..i", "b..e"), ALL), "");
    }

    /// Only keys that the plan takes count.
    #[test]
    fn plans_of_key_ranges_keep_tables_that_lie_in_them() {
        let tree = "tree\nL0 r2[t2:d..f 1MB]\nL1 r1[t1:a..c 1MB, t3:d..p 1MB, t4:q..z 1MB]";
        assert_eq!(kept(tree, "merge r2 r1 over c..z into r1"), "t4");
        assert_eq!(kept(tree, "merge r2 r1 over g..z into r1"), "t4");
        assert_eq!(kept(tree, "merge r2 r1 over g..y into r1"), "");
    }

    #[test]
    fn merges_that_somebody_wants_rewrite_everything() {
        let tree = "tree\nL0 r2[t2:d..f 1MB]\nL1 r1[t1:a..c 1MB]";
        assert_eq!(kept(tree, "merge r2 r1 in place"), "t1 t2");
        for plan in [
            "merge r1 in place",
            "move r2 into r1",
            "merge r2 r1 in place reuse 1MB full 4kB",
            "merge r2 r1 appended to r1",
        ] {
            assert_eq!(kept(tree, plan), "", "{plan}");
        }
    }

    #[test]
    fn tables_on_which_a_merge_would_work_are_rewritten() {
        let tree = "tree\nL0 r2[t2:d..f 1MB]\nL1 r1[t1:a..c 1MB]\n";
        let plan = "merge r2 r1 in place";
        assert_eq!(kept(&tree.replace("a..c 1MB", "a..c 1MB 9e 1d"), plan), "t2");
        assert_eq!(kept(&tree.replace("a..c 1MB", "a..c 1MB root 3"), plan), "t2");
        assert_eq!(kept(&tree.replace("t1:a..c 1MB", "t1:a..c of a..cc 1MB"), plan), "t2");
        let erased = format!("{}erased 7 b..e", tree.replace("a..c 1MB", "a..c 1MB s3..5"));
        assert_eq!(kept(&erased, plan), "");
        assert_eq!(kept(&erased.replace("b..e", "c..e"), plan), "t1");
        // All entries of the first table are newer, or the range delete is applied to it.
        assert_eq!(kept(&erased.replace("s3..5", "s7..9"), plan), "t1");
        assert_eq!(kept(&erased.replace("s3..5", "s3..5 cleared 7"), plan), "t1");
        assert_eq!(kept(&erased.replace("s3..5", "s3..5 cleared 6"), plan), "");
        let knot = tree.replace("r2[", "r2~k1[").replace("r1[", "r1~k1[");
        assert_eq!(kept(&knot, plan), "");
    }

    #[test]
    fn small_tables_are_rewritten() {
        let tree = "tree\nL0 r2[t2:d..f 1025kB]\nL1 r1[t1:a..c 1kB]";
        let whole = "merge r2 r1 in place";
        assert_eq!(kept(tree, whole), "t2");
        assert_eq!(kept(&tree.replace("1025kB", "1022kB"), whole), "t1 t2");
        let cut = |bytes: &str| kept(tree, &format!("merge r2 r1 in place cut {bytes}"));
        assert_eq!(cut("4kB"), "t1");
        assert_eq!(cut("5kB"), "");
        assert_eq!(cut("1MB"), "t2");
        // A table that the plan would cut.
        assert_eq!(cut("512kB"), "");
        assert_eq!(cut("513kB"), "t2");
        for (key, expected) in [("d", "t2"), ("e", ""), ("f", "t2")] {
            assert_eq!(kept(tree, &format!("merge r2 r1 in place cut 1MB at {key}")), expected);
        }
    }

    #[test]
    fn outputs_are_cut_and_joined_around_kept_tables() {
        let tree: Tree =
            "tree\nL0 r2[t2:d..f 1MB]\nL1 r1[t1:a..c 1MB, t3:h..k 1MB]".parse().unwrap();
        let plan: MergePlan = "merge r2 r1 in place".parse().unwrap();
        let kept = KeptTables::of(&tree, &plan, tree.range_deletes(), |table| table.id.0 != 1);
        let key = |key: &'static str| Key::from(key);
        assert_eq!(
            kept.cut_keys(vec![key("b"), key("d"), key("x")]),
            ["b", "d", "h", "x"].map(key)
        );
        let within = |start, end| kept.within(&KeyRange::new(start, end)).len();
        assert_eq!((within("a", "d"), within("d", "h"), within("d", "i")), (0, 1, 2));
        let new: Tree = "tree\nL0 r9[t7:a..c 1MB, t8:g..h 1MB]".parse().unwrap();
        let mut slices: Vec<Slice> =
            new.disk_runs().flat_map(|run| run.slices().iter().cloned()).collect();
        KeptTables::join(kept.slices(), &mut slices);
        let ids: Vec<u64> = slices.iter().map(|slice| slice.table().id.0).collect();
        assert_eq!(ids, [7, 2, 8, 3]);
    }
}
