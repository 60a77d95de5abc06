//! Applies records of a manifest to trees loosely, after a record was lost.
//!
//! An edit names the runs that it takes, and the place of the runs that it adds. Runs that are not
//! known are not taken. A run that is added next to an unknown run goes above the newest run that
//! the edit takes, or on top if it takes none. So the order of all tables is mostly right, except
//! for the tables of the lost edit.

use lsmith_tree::{AddPlace, Addition, KeyRange, LevelId, RunId, Slice, TableId, Tree, TreeEdit};

/// The runs of a tree, newest first, without the guarantees of a legal tree.
#[derive(Clone, Debug, Default)]
pub(super) struct LooseTree {
    runs: Vec<LooseRun>,
}

#[derive(Clone, Debug)]
struct LooseRun {
    id: RunId,
    level: usize,
    /// In key order.
    slices: Vec<Slice>,
}

impl LooseTree {
    pub(super) fn new(tree: &Tree) -> LooseTree {
        let runs = tree.runs().filter_map(|(level, run)| match level {
            LevelId::Memory => None,
            LevelId::Disk(level) => {
                let slices = run.slices().iter().cloned().collect();
                Some(LooseRun { id: run.id(), level, slices })
            }
        });
        LooseTree { runs: runs.collect() }
    }

    /// Returns the slices of each run, newest run first.
    pub(super) fn into_runs(self) -> Vec<Vec<Slice>> {
        self.runs.into_iter().map(|run| run.slices).collect()
    }

    /// Returns the table of each slice.
    pub(super) fn tables(&self) -> impl Iterator<Item = TableId> {
        self.runs.iter().flat_map(|run| &run.slices).map(|slice| slice.table().id)
    }

    fn find(&self, id: RunId) -> Option<usize> {
        self.runs.iter().position(|run| run.id == id)
    }

    /// Applies `edit` as far as its runs are known.
    pub(super) fn change(&mut self, edit: TreeEdit) {
        let taken = edit.remove.iter().filter_map(|input| self.find(input.run)).min();
        let beside = taken.map(|index| self.runs[index].id);
        let (new, into): (Vec<Addition>, Vec<Addition>) = edit
            .add
            .into_iter()
            .partition(|added| added.place != AddPlace::Into || self.find(added.run).is_none());
        for added in new {
            self.forget(&added.slices);
            self.add_run(added, beside);
        }
        for input in &edit.remove {
            let run = self.runs.iter_mut().find(|run| run.id == input.run);
            run.into_iter().for_each(|run| run.cut(&input.range));
        }
        for added in into {
            self.forget(&added.slices);
            let run = self.runs.iter_mut().find(|run| run.id == added.run);
            run.into_iter().for_each(|run| run.add(&added.slices));
        }
        self.runs.retain(|run| !run.slices.is_empty());
    }

    /// Adds a new run at its place, or above run `beside` if that place is unknown.
    fn add_run(&mut self, added: Addition, beside: Option<RunId>) {
        let known = match added.place {
            AddPlace::Top(level) => self.runs.iter().position(|run| run.level >= level),
            AddPlace::Above(run) => self.find(run).or(beside.and_then(|run| self.find(run))),
            AddPlace::Memory | AddPlace::Into => beside.and_then(|run| self.find(run)),
        };
        let is_top = matches!(added.place, AddPlace::Top(_));
        let index = known.unwrap_or(if is_top { self.runs.len() } else { 0 });
        let level = match added.place {
            AddPlace::Top(level) => level,
            _ => self.runs.get(index).map_or(0, |run| run.level),
        };
        self.runs.insert(index, LooseRun { id: added.run, level, slices: added.slices });
    }

    /// Cuts `slices`, which are about to be added, out of the runs that have them now.
    fn forget(&mut self, slices: &[Slice]) {
        for slice in slices {
            for run in &mut self.runs {
                let is_same = |other: &Slice| other.table().id == slice.table().id;
                run.cut_where(slice.range(), is_same);
            }
        }
    }
}

impl LooseRun {
    fn cut(&mut self, range: &KeyRange) {
        self.cut_where(range, |_| true);
    }

    /// Cuts `range` out of the slices for which `which` returns true.
    fn cut_where(&mut self, range: &KeyRange, which: impl Fn(&Slice) -> bool) {
        let is_cut = |slice: &Slice| which(slice) && slice.range().overlaps(range);
        if !self.slices.iter().any(is_cut) {
            return;
        }
        let rest = |slice: &Slice| {
            if !is_cut(slice) {
                return vec![slice.clone()];
            }
            let parts = slice.range().without(range);
            parts.iter().filter_map(|part| slice.clip(part)).collect()
        };
        self.slices = self.slices.iter().flat_map(rest).collect();
    }

    /// Adds `slices`. They replace what the run holds in their ranges.
    fn add(&mut self, slices: &[Slice]) {
        slices.iter().for_each(|slice| self.cut(slice.range()));
        self.slices.extend_from_slice(slices);
        self.slices.sort_by(|left, right| left.range().start.cmp(&right.range().start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_texts(tree: LooseTree) -> Vec<String> {
        let run = |slices: Vec<Slice>| {
            let slices =
                slices.iter().map(|slice| format!("{}:{}", slice.table().id, slice.range()));
            slices.collect::<Vec<_>>().join(" ")
        };
        tree.into_runs().into_iter().map(run).collect()
    }

    fn changed(edits: &[&str]) -> Vec<String> {
        let tree: Tree =
            "tree runs 5 tables 9\nL0 r4[t4:a..z 1kB]\nL1 r3[t3:a..m 1kB, t2:m..z 1kB]"
                .parse()
                .unwrap();
        let mut tree = LooseTree::new(&tree);
        edits.iter().for_each(|edit| tree.change(edit.parse().unwrap()));
        run_texts(tree)
    }

    #[test]
    fn edits_that_fit_do_what_they_say() {
        let flush = "edit flushes 1\nadd r5 at L0 [t5:b..c 1kB]";
        let merge = "edit\ntake r4 a..n\ntake r3 a..m\nadd r3 [t6:a..l 2kB]";
        assert_eq!(changed(&[flush, merge]), ["t5:b..c", "t4:n..z", "t6:a..l t2:m..z"]);
    }

    /// Run 5 came with an edit that was lost.
    #[test]
    fn what_is_not_known_is_not_needed() {
        let merge = "edit\ntake r5 ..\ntake r4 ..\nadd r6 above r5 [t6:a..z 2kB]";
        assert_eq!(changed(&[merge]), ["t6:a..z", "t3:a..m t2:m..z"]);
        let only_unknown = "edit\ntake r5 ..\nadd r6 above r5 [t6:a..z 2kB]";
        assert_eq!(changed(&[only_unknown]), ["t6:a..z", "t4:a..z", "t3:a..m t2:m..z"]);
        let into = "edit\ntake r3 c..d\nadd r5 [t6:c..d 2kB]";
        assert_eq!(changed(&[into]), ["t4:a..z", "t6:c..d", "t3:a..c t3:d..m t2:m..z"]);
    }

    /// The edit that took table 3 out of run 3 was lost.
    #[test]
    fn a_table_is_where_it_was_said_to_be_last() {
        let placed = "edit\nadd r5 at L2 [t3:a..c of a..m 1kB]";
        assert_eq!(changed(&[placed]), ["t4:a..z", "t3:c..m t2:m..z", "t3:a..c"]);
        let over = "edit\nadd r3 [t6:b..d 1kB]";
        assert_eq!(changed(&[over]), ["t4:a..z", "t3:a..b t6:b..d t3:d..m t2:m..z"]);
    }
}
