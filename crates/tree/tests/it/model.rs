//! A tree whose tables have contents, and reads of it.

use crate::random::{self, Random};
use lsmith_tree::{
    KeyRange, MergePlan, Mode, Outcome, Run, Size, Slice, Table, TableId, Tree, TreeEdit, apply,
};
use std::collections::BTreeMap;

/// Keys are numbers below this.
pub(crate) const KEYS: usize = 12;

/// The bytes of a key: one letter.
pub(crate) fn key(number: usize) -> Vec<u8> {
    vec![b'a' + number as u8]
}

/// The keys from `start` up to, not including, `end`.
pub(crate) fn range(start: usize, end: usize) -> KeyRange {
    KeyRange::new(key(start), key(end))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) seq: u64,
    pub(crate) tombstone: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) tree: Tree,
    /// What every table ever made holds.
    pub(crate) entries: BTreeMap<(TableId, usize), Entry>,
    pub(crate) next_seq: u64,
    tables: u64,
}

impl Model {
    pub(crate) fn new_table(&mut self) -> TableId {
        self.tables += 1;
        TableId(self.tables)
    }

    /// A table of these entries.
    pub(crate) fn table(&mut self, id: TableId, entries: BTreeMap<usize, Entry>) -> Slice {
        let first = entries.keys().next();
        let last = entries.keys().next_back();
        let first = key(*first.expect("entries"));
        let last = key(*last.expect("entries"));
        let tombstones = entries.values().filter(|entry| entry.tombstone).count() as u64;
        let count = entries.len() as u64;
        self.entries.extend(entries.into_iter().map(|(key, entry)| ((id, key), entry)));
        Slice::whole(Table {
            id,
            range: KeyRange::inclusive(&first, &last),
            size: Size { bytes: 10 * count, entries: count, tombstones },
            ..Table::default()
        })
    }

    fn entry(&self, run: &Run, number: usize) -> Option<Entry> {
        let slice = run.slices().iter().find(|slice| slice.range().contains(&key(number)))?;
        self.entries.get(&(slice.table().id, number)).copied()
    }

    /// The entry that a reader of `runs`, newest first, meets: the newest run that has the key
    /// decides, but one of a knot sends the reader on through its oldest member for the greatest
    /// sequence number.
    fn newest<'a>(&self, runs: impl Iterator<Item = &'a Run>, number: usize) -> Option<Entry> {
        let runs: Vec<&Run> = runs.collect();
        let (first, found) = runs
            .iter()
            .enumerate()
            .find_map(|(index, run)| Some((index, self.entry(run, number)?)))?;
        let Some(knot) = runs[first].knot() else { return Some(found) };
        let last = runs.iter().rposition(|run| run.knot() == Some(knot)).expect("found one");
        let met = runs[first..=last].iter().filter_map(|run| self.entry(run, number));
        met.max_by_key(|entry| entry.seq)
    }

    /// For each key the sequence number of what a reader gets; `None` where the key is absent.
    pub(crate) fn answers(&self) -> Vec<Option<u64>> {
        let runs = || self.tree.runs().map(|(_, run)| run.as_ref());
        let visible = |number| self.newest(runs(), number).filter(|entry| !entry.tombstone);
        (0..KEYS).map(|number| visible(number).map(|entry| entry.seq)).collect()
    }

    /// What comes out of a plan on the tree as it is now.
    pub(crate) fn outcome(&mut self, plan: &MergePlan, random: &mut Random) -> Outcome {
        let taken: Vec<Run> = plan
            .inputs
            .iter()
            .map(|input| {
                let (_, run) = self.tree.run(input.run).expect("checked");
                Run::new(run.id(), run.clip(&input.range).collect()).in_knot(run.knot())
            })
            .collect();
        if plan.mode == Mode::Drop {
            return Outcome::default();
        }
        if plan.mode == Mode::Move {
            let mut slices: Vec<Slice> =
                taken.iter().flat_map(|run| run.slices().iter().cloned()).collect();
            slices.sort_by(|left, right| left.range().start.cmp(&right.range().start));
            return Outcome { slices, ..Outcome::default() };
        }
        let bottom = self.tree.is_bottom_for(plan).expect("checked");
        let merged: BTreeMap<usize, Entry> = (0..KEYS)
            .filter_map(|number| Some((number, self.newest(taken.iter(), number)?)))
            .filter(|(_, entry)| !(bottom && entry.tombstone))
            .collect();
        let count = |entries| Size { bytes: 10 * entries, entries, tombstones: 0 };
        let entries_in = taken.iter().map(|run| {
            (0..KEYS).filter(|number| self.entry(run, *number).is_some()).count() as u64
        });
        let entries_in = entries_in.sum();
        let written = merged.len() as u64;
        Outcome {
            slices: random::tables(random, self, merged),
            read: count(entries_in),
            written: count(written),
            entries_dropped: entries_in - written,
            ..Outcome::default()
        }
    }

    /// Makes the change that carries out `plan`.
    pub(crate) fn commit(&mut self, plan: &MergePlan, outcome: Outcome) {
        let edit = TreeEdit::of_plan(&self.tree, plan, outcome).expect("conserved");
        apply(&mut self.tree, &edit).expect("fits");
        assert_eq!(lsmith_tree::check_tree(&self.tree), Ok(()), "after {plan}");
    }
}
