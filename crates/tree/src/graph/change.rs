//! Tables come and go: only knots and heights that change are computed anew.

use super::index::IndexEntry;
use super::{Age, GraphTable, Knot, KnotName, Node, TableGraph, age};
use crate::slice::TableId;
use std::collections::BTreeSet;

/// Knots by height, so that the lowest come first.
type ByHeight = BTreeSet<(usize, KnotName)>;

impl TableGraph {
    /// Adds a table. Returns false, and changes nothing, if the graph has a table of that name, if
    /// the table has no keys, or if its smallest sequence number exceeds its greatest.
    pub fn insert(&mut self, table: GraphTable) -> bool {
        let is_bad = table.range.is_empty() || table.seq_min > table.seq_max;
        if is_bad || self.tables.contains_key(&table.id) {
            return false;
        }
        let is_newest = self.index.is_above_all(table.seq_min);
        let mut members = vec![table.id];
        let id = table.id;
        let name = self.new_name();
        self.tables.insert(id, Node { table, knot: name });
        if !is_newest {
            for joined in self.joined_by(id) {
                members.extend(self.take_out(joined));
            }
        }
        self.put_in(name, members);
        if !is_newest {
            self.spread([name]);
        }
        true
    }

    /// Removes a table. Returns false if the graph does not have it.
    pub fn remove(&mut self, table: TableId) -> bool {
        let Some(node) = self.tables.get(&table) else { return false };
        let knot = node.knot;
        let height = self.knots[&knot].height;
        let mut members = self.take_out(knot);
        let Some(gone) = self.tables.remove(&table) else { return false };
        members.retain(|member| *member != table);
        let mut changed = Vec::new();
        for members in self.cycles_among(&members) {
            let name = self.new_name();
            self.put_in(name, members);
            changed.push(name);
        }
        let mut above = ByHeight::new();
        // What is newer lies above the knot.
        self.add_newer(&gone.table, height, &mut above);
        self.raise_or_lower(above);
        self.spread(changed);
        true
    }

    fn new_name(&mut self) -> KnotName {
        self.next_knot += 1;
        KnotName(self.next_knot)
    }

    /// Removes a knot from the index, and returns its members.
    fn take_out(&mut self, name: KnotName) -> Vec<TableId> {
        let Some(Knot { members, height }) = self.knots.remove(&name) else { return Vec::new() };
        for member in &members {
            self.index.remove(height, &self.tables[member].table.range, *member);
        }
        members
    }

    /// Makes a knot of tables that are in none. Everything older must be in the index.
    fn put_in(&mut self, name: KnotName, mut members: Vec<TableId>) {
        members.sort_unstable();
        let height = self.height_above(name, &members);
        self.place(name, Knot { members, height });
    }

    fn place(&mut self, name: KnotName, knot: Knot) {
        for member in &knot.members {
            let Some(node) = self.tables.get_mut(member) else { continue };
            node.knot = name;
            let GraphTable { id, range, .. } = &node.table;
            let (end, seqs) = (range.end.clone(), node.table.seqs());
            self.index.insert(knot.height, range, IndexEntry { id: *id, end, seqs, knot: name });
        }
        self.knots.insert(name, knot);
    }

    /// Returns one more than the greatest height of the older tables outside of a knot.
    fn height_above(&self, name: KnotName, members: &[TableId]) -> usize {
        let below = members.iter().filter_map(|member| {
            let table = &self.tables[member].table;
            self.index.greatest(&table.range, |entry| {
                entry.knot != name && age(table.seqs(), entry.seqs) == Age::Newer
            })
        });
        below.max().map_or(0, |height| height + 1)
    }

    /// Adds the knots of all newer tables of the height `from` and above that share keys with
    /// `table`.
    fn add_newer(&self, table: &GraphTable, from: usize, above: &mut ByHeight) {
        self.index.visit(&table.range, from, |entry| {
            if entry.id != table.id && age(entry.seqs, table.seqs()) == Age::Newer {
                above.insert((self.knots[&entry.knot].height, entry.knot));
            }
        });
    }

    /// Brings the heights above knots up to date.
    fn spread(&mut self, changed: impl IntoIterator<Item = KnotName>) {
        let mut above = ByHeight::new();
        for name in changed {
            self.add_above(name, 0, &mut above);
        }
        self.raise_or_lower(above);
    }

    fn add_above(&self, name: KnotName, from: usize, above: &mut ByHeight) {
        let Some(knot) = self.knots.get(&name) else { return };
        for member in &knot.members {
            self.add_newer(&self.tables[member].table, from, above);
        }
        above.remove(&(knot.height, name));
    }

    /// Computes the heights of `knots` anew, and goes on upwards wherever a height changes.
    fn raise_or_lower(&mut self, mut knots: ByHeight) {
        while let Some((_, name)) = knots.pop_first() {
            let Some(knot) = self.knots.get(&name) else { continue };
            let before = knot.height;
            let height = self.height_above(name, &knot.members);
            if height != before {
                let members = self.take_out(name);
                self.place(name, Knot { members, height });
                // What is newer lay above it before, and below that heights need no other look.
                self.add_above(name, before.min(height), &mut knots);
            }
        }
    }

    /// Returns the knots that a new table, which is not in the index yet, ties into one: all knots
    /// on a path from the table back to it.
    fn joined_by(&self, id: TableId) -> Vec<KnotName> {
        let table = &self.tables[&id].table;
        let mut after = BTreeSet::new();
        let mut before = BTreeSet::new();
        let mut lowest = usize::MAX;
        let mut highest = 0;
        self.index.visit(&table.range, 0, |entry| {
            let height = self.knots[&entry.knot].height;
            let age = age(table.seqs(), entry.seqs);
            if age != Age::Older {
                highest = highest.max(height);
                after.insert(entry.knot);
            }
            if age != Age::Newer {
                lowest = lowest.min(height);
                before.insert(entry.knot);
            }
        });
        // Every path leads to smaller heights. So nothing leads back if all that is older than the
        // table lies below all that is newer.
        if after.is_empty() || before.is_empty() || highest < lowest {
            return Vec::new();
        }
        after.retain(|knot| self.knots[knot].height >= lowest);
        before.retain(|knot| self.knots[knot].height <= highest);
        let ahead = self.reached(after, |entry, own| {
            (self.knots[&entry.knot].height >= lowest && age(own, entry.seqs) == Age::Newer)
                .then_some(entry.knot)
        });
        let behind = self.reached(before, |entry, own| {
            (self.knots[&entry.knot].height <= highest && age(own, entry.seqs) == Age::Older)
                .then_some(entry.knot)
        });
        ahead.intersection(&behind).copied().collect()
    }

    /// Returns `from` and all knots reached from them by steps.
    fn reached(
        &self,
        from: BTreeSet<KnotName>,
        step: impl Fn(&IndexEntry, (crate::SeqNo, crate::SeqNo)) -> Option<KnotName>,
    ) -> BTreeSet<KnotName> {
        let mut open: Vec<KnotName> = from.iter().copied().collect();
        let mut found = from;
        while let Some(name) = open.pop() {
            for member in &self.knots[&name].members {
                let table = &self.tables[member].table;
                self.index.visit(&table.range, 0, |entry| {
                    if let Some(next) = step(entry, table.seqs())
                        && found.insert(next)
                    {
                        open.push(next);
                    }
                });
            }
        }
        found
    }

    /// Returns the strongly connected components among tables of one former knot, which are not in
    /// the index, the oldest first.
    ///
    /// Source: R. Tarjan, "Depth-first search and linear graph algorithms", 1972, without
    /// recursion.
    fn cycles_among(&self, members: &[TableId]) -> Vec<Vec<TableId>> {
        let leads = |from: &TableId, to: &TableId| {
            let [from, to] = [from, to].map(|id| &self.tables[id].table);
            from.id != to.id
                && from.range.overlaps(&to.range)
                && age(from.seqs(), to.seqs()) != Age::Older
        };
        let edges = |at: usize| -> Vec<usize> {
            (0..members.len()).filter(|to| leads(&members[at], &members[*to])).collect()
        };
        let mut orders: Vec<Option<usize>> = vec![None; members.len()];
        let mut lows = vec![0; members.len()];
        let mut is_open = vec![false; members.len()];
        let mut stack = Vec::new();
        let mut found = Vec::new();
        let mut next = 0;
        for root in 0..members.len() {
            if orders[root].is_some() {
                continue;
            }
            let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
            let mut enter = Some(root);
            loop {
                if let Some(at) = enter.take() {
                    orders[at] = Some(next);
                    lows[at] = next;
                    next += 1;
                    stack.push(at);
                    is_open[at] = true;
                    path.push((at, edges(at)));
                }
                let Some((at, ahead)) = path.last_mut() else { break };
                let at = *at;
                if let Some(to) = ahead.pop() {
                    match orders[to] {
                        None => enter = Some(to),
                        Some(order) if is_open[to] => lows[at] = lows[at].min(order),
                        Some(_) => {}
                    }
                    continue;
                }
                path.pop();
                if let Some((above, _)) = path.last() {
                    lows[*above] = lows[*above].min(lows[at]);
                }
                if Some(lows[at]) == orders[at] {
                    let start = stack.iter().rposition(|open| *open == at).unwrap_or(0);
                    let cycle: Vec<usize> = stack.drain(start..).collect();
                    cycle.iter().for_each(|member| is_open[*member] = false);
                    found.push(cycle.into_iter().map(|member| members[member]).collect());
                }
            }
        }
        found
    }

    /// Returns the heights of all tables, for tests.
    #[cfg(test)]
    pub(super) fn heights(&self) -> std::collections::BTreeMap<TableId, usize> {
        self.tables.iter().map(|(id, node)| (*id, self.knots[&node.knot].height)).collect()
    }
}
