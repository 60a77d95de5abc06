//! Appending entries to append tables.

use super::content::{KeyedContent, inputs};
use super::entry::KeyedEntry;
use super::merge::{Dropped, Dropping, merge};
use super::rank::rank_from;
use super::table::later;
use lsmith_tree::{
    KeptTables, Key, KeyRange, MergePlan, Outcome, ReplacedNodes, RunId, Size, Slice, TableId, Tree,
};
use std::ops::Range;

impl<E: KeyedEntry> KeyedContent<E> {
    /// Carries out a plan that appends to the append tables of `target`. Counts as read what it
    /// takes from other runs, and those entries of the append tables whose keys it has. The other
    /// entries of the append tables are neither read nor written.
    pub(super) fn append(&mut self, tree: &Tree, plan: &MergePlan, target: RunId) -> Outcome {
        let dropping = self.dropping(tree, plan).unwrap_or_default();
        let mut outcome =
            Outcome { deletes_applied: dropping.deletes_applied(plan), ..Outcome::default() };
        let mut sides = Vec::new();
        let mut tables: Vec<Slice> = Vec::new();
        for (level, run, range) in inputs(tree, plan) {
            if run.id() == target {
                tables = run.overlapping(range).iter().cloned().collect();
                continue;
            }
            sides.push(self.take_input(
                (level, run, range),
                &KeptTables::default(),
                &dropping,
                &mut outcome,
            ));
        }
        let mut new: Vec<E> = Vec::new();
        let dropped = merge(sides, dropping.of_first(), |entry| new.push(entry));
        count_dropped(dropped, &mut outcome);
        let cut_bytes = plan.cut_bytes.unwrap_or(u64::MAX);
        let mut ids = (tree.next_table().0..).map(TableId);
        for TablePart { table, entries } in parts(&new, &tables, cut_bytes) {
            let entries = &new[entries];
            let root = match table {
                Some(slice) if entries.is_empty() => Some(slice.clone()),
                Some(slice) => self.append_to(slice, entries, dropping.clone(), &mut outcome),
                None => {
                    let id = ids.next().unwrap_or_default();
                    self.new_table(id, entries, dropping.clone(), &mut outcome)
                }
            };
            outcome.slices.extend(root);
        }
        outcome.blocks.written = outcome.written.bytes.div_ceil(self.layout.block_bytes);
        outcome
    }

    /// Appends `new` to the append table of `slice`. Returns the new root, or `None` if nothing is
    /// left.
    fn append_to(
        &mut self,
        slice: &Slice,
        new: &[E],
        mut dropping: Dropping,
        outcome: &mut Outcome,
    ) -> Option<Slice> {
        let before = slice.table();
        let mut builder = self.builder(new.len() + before.size.entries as usize);
        let mut old = self.tables.of(slice).part(&KeyRange::ALL).entries();
        let mut met = Size::default();
        let old_entries = old.len();
        let mut replaced = ReplacedNodes::of(old_entries as u64);
        // Old entries count that the batch replaces, as in the store.
        let all_expire = before.expires > 0 || before.size.tombstones == before.size.entries;
        let mut expires = all_expire.then_some(before.expires);
        let lives = self.layout.lives.clone();
        for entry in new {
            let below = old.partition_point(|older| older.rank() < entry.rank());
            old[..below].iter().for_each(|older| builder.push(*older));
            old = &old[below..];
            replaced.add((old_entries - old.len()) as u64);
            let older = old.first().filter(|older| older.rank() == entry.rank()).copied();
            let net = match older {
                Some(older) => {
                    met += older.size();
                    old = &old[1..];
                    match dropping.shown(older) {
                        Some(older) => dropping.fold(*entry, older),
                        None => Some(*entry),
                    }
                }
                None => Some(*entry),
            };
            if let Some(net) = net.and_then(|net| dropping.survivor(net)) {
                outcome.written += net.size();
                expires = expires.and_then(|latest| later(latest, net, &lives));
                builder.push(net);
            }
        }
        old.iter().for_each(|older| builder.push(*older));
        let held = (builder.len() > 0).then(|| builder.finish(before.id));
        self.builder = builder;
        outcome.read += met;
        count_dropped(dropping.dropped, outcome);
        held.map(|mut held| {
            held.set_root(before.root + 1, before.dead_bytes + met.bytes + replaced.bytes());
            held.set_expires(expires.unwrap_or_default());
            self.add_table(held)
        })
    }

    /// Returns a new append table of `entries`, or `None` if nothing is left of them.
    fn new_table(
        &mut self,
        id: TableId,
        entries: &[E],
        mut dropping: Dropping,
        outcome: &mut Outcome,
    ) -> Option<Slice> {
        let mut builder = self.builder(entries.len());
        for entry in entries.iter().filter_map(|entry| dropping.survivor(*entry)) {
            outcome.written += entry.size();
            builder.push(entry);
        }
        let held = (builder.len() > 0).then(|| builder.finish(id));
        self.builder = builder;
        count_dropped(dropping.dropped, outcome);
        held.map(|mut held| {
            held.set_root(1, 0);
            self.add_table(held)
        })
    }
}

fn count_dropped(dropped: Dropped, outcome: &mut Outcome) {
    outcome.entries_dropped += dropped.entries;
    outcome.dropped_below = outcome.dropped_below.max(dropped.below);
}

/// New entries that go to one append table: an old one, or a new one.
struct TablePart<'a> {
    table: Option<&'a Slice>,
    /// Their indexes.
    entries: Range<usize>,
}

/// Divides `new` among `tables`. Entries between two append tables, or beyond them, make new append
/// tables if they fill [one part in so many](MergePlan::NEW_APPEND_PARTS) of a table of
/// `cut_bytes`.
fn parts<'a, E: KeyedEntry>(new: &[E], tables: &'a [Slice], cut_bytes: u64) -> Vec<TablePart<'a>> {
    let place = |key: Option<&Key>| {
        let end = key.map_or(u64::MAX, |key| rank_from(key));
        new.partition_point(|entry| u64::from(entry.rank()) < end)
    };
    let least = (cut_bytes / MergePlan::NEW_APPEND_PARTS).max(1);
    let is_large =
        |entries: &Range<usize>| tables.is_empty() || bytes_of(&new[entries.clone()]) >= least;
    let new_tables = |entries: Range<usize>, parts: &mut Vec<TablePart<'a>>| {
        parts
            .extend(cut(new, entries, cut_bytes).map(|entries| TablePart { table: None, entries }));
    };
    let mut parts = Vec::new();
    let mut from = 0;
    let in_front = 0..place(tables.first().map(|table| &table.range().start));
    if is_large(&in_front) {
        from = in_front.end;
        new_tables(in_front, &mut parts);
    }
    for (index, table) in tables.iter().enumerate() {
        let end = place(tables.get(index + 1).map(|next| &next.range().start));
        let behind = place(table.range().end.as_ref()).max(from)..end;
        let is_new = is_large(&behind);
        let own = from..if is_new { behind.start } else { end };
        parts.push(TablePart { table: Some(table), entries: own });
        if is_new {
            new_tables(behind, &mut parts);
        }
        from = end;
    }
    parts
}

fn bytes_of<E: KeyedEntry>(entries: &[E]) -> u64 {
    entries.iter().map(|entry| entry.bytes()).sum()
}

/// Cuts the entries with these indexes into tables of about `cut_bytes` and equal size.
fn cut<E: KeyedEntry>(
    all: &[E],
    entries: Range<usize>,
    cut_bytes: u64,
) -> impl Iterator<Item = Range<usize>> {
    let bytes = bytes_of(&all[entries.clone()]);
    let tables = (bytes.saturating_add(cut_bytes / 2) / cut_bytes.max(1)).max(1);
    let table_bytes = bytes.div_ceil(tables);
    let mut from = entries.start;
    std::iter::from_fn(move || {
        let mut sum = 0;
        let full = all[from..entries.end].iter().position(|entry| {
            let is_end = MergePlan::ends_append(sum, entry.bytes(), table_bytes);
            sum += entry.bytes();
            is_end
        });
        let end = full.map_or(entries.end, |next| from + next);
        let table = from..end;
        from = end;
        (!table.is_empty()).then_some(table)
    })
}
