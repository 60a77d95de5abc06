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
    /// The least share of the bytes of a merge that a kept table has, if the plan does not cut its
    /// output: one part in so many. So a run has at most as many kept tables.
    ///
    /// With keys in order of time a run then consists of flushes until it has so many of them, and
    /// each is written again at most once per factor of so many. At 256 a sequential load of 10,000
    /// memtables writes each byte less than twice, and the edits that name kept tables, some 100
    /// bytes each, stay below a hundredth of what is flushed if memtables have 2.5 MB.
    pub const PARTS_MAX: u64 = 256;

    /// The least share of the bytes at which a plan cuts its output that a kept table has: one part
    /// in so many. A smaller one is joined with its neighbours, or else every merge could leave
    /// pieces between those that it keeps.
    pub const CUT_PARTS_MAX: u64 = 4;

    /// Returns the tables that `plan` keeps in `tree`. `range_deletes` are those that the merge
    /// applies. `may_keep` says whether the merge would write the entries of a table as they are,
    /// as far as the tree does not know.
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
        kept.slices().iter().map(|slice| slice.table().id.to_string()).collect::<Vec<_>>().join(" ")
    }
}
