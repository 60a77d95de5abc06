//! Which tables are newer than which, where tables may have been written anywhere.

mod change;
mod index;
#[cfg(test)]
mod tests;

use crate::entry::SeqNo;
use crate::range::KeyRange;
use crate::slice::{Table, TableId};
use index::HeightIndex;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// A table as the graph sees it: keys and sequence numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphTable {
    /// The name of the table.
    pub id: TableId,
    /// Its keys.
    pub range: KeyRange,
    /// The smallest sequence number of its entries.
    pub seq_min: SeqNo,
    /// The greatest sequence number of its entries.
    pub seq_max: SeqNo,
}

/// The graph of tables that may have come from anywhere, so that their place in a level says
/// nothing about their age.
///
/// An edge leads from a table to each older table with which it shares keys. If the sequence
/// numbers of two such tables interleave, edges lead both ways. Tables on a cycle form a *knot*: a
/// reader of one must read all. Without a cycle, a table is a knot of its own.
///
/// The *height* of a knot is the length of the longest path from it down to a knot with nothing
/// older below. Heights are kept rather than depths below the newest tables, because a new table on
/// top of all others changes no other height. [`levels`](TableGraph::levels) has the depths.
///
/// Edges are not stored: one wide table has as many as there are tables. Tables of one height are
/// found by key, and an edit looks only at tables that share keys with what changes.
///
/// Source: the LSM-graph of lsmtk (rescrv/blue), which compares all pairs of tables.
#[derive(Clone, Debug, Default)]
pub struct TableGraph {
    tables: BTreeMap<TableId, Node>,
    knots: BTreeMap<KnotName, Knot>,
    index: HeightIndex,
    next_knot: u64,
}

/// The name of a knot within a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct KnotName(u64);

#[derive(Clone, Debug)]
struct Node {
    table: GraphTable,
    knot: KnotName,
}

#[derive(Clone, Debug, Default)]
struct Knot {
    /// In the order of their names.
    members: Vec<TableId>,
    height: usize,
}

/// How the first of two tables that share keys relates to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    Newer,
    Older,
    Interleaved,
}

/// Compares the ages of two tables by the smallest and the greatest of their sequence numbers.
pub(crate) fn age(left: (SeqNo, SeqNo), right: (SeqNo, SeqNo)) -> Age {
    if left.0 > right.1 {
        Age::Newer
    } else if left.1 < right.0 {
        Age::Older
    } else {
        Age::Interleaved
    }
}

impl GraphTable {
    fn seqs(&self) -> (SeqNo, SeqNo) {
        (self.seq_min, self.seq_max)
    }
}

impl From<&Table> for GraphTable {
    fn from(table: &Table) -> GraphTable {
        let Table { id, seq_min, seq_max, .. } = *table;
        GraphTable { id, range: table.range.clone(), seq_min, seq_max }
    }
}

impl TableGraph {
    /// Returns a graph without tables.
    pub fn new() -> TableGraph {
        TableGraph::default()
    }

    /// Returns the number of tables.
    pub fn len(&self) -> usize {
        self.tables.len()
    }

    /// Returns true if there are no tables.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Returns the members of the knot of a table, itself included, in the order of their names;
    /// `None` if the graph does not have the table.
    pub fn knot_of(&self, table: TableId) -> Option<&[TableId]> {
        let node = self.tables.get(&table)?;
        Some(&self.knots[&node.knot].members)
    }

    /// Returns all knots of several tables.
    pub fn knots(&self) -> impl Iterator<Item = &[TableId]> {
        self.knots.values().map(|knot| &knot.members[..]).filter(|members| members.len() > 1)
    }

    /// Returns the length of the longest path from the knot of a table to a knot with nothing older
    /// below; `None` if the graph does not have the table.
    pub fn height(&self, table: TableId) -> Option<usize> {
        let node = self.tables.get(&table)?;
        Some(self.knots[&node.knot].height)
    }

    /// Returns the tables that edges from a table lead to: older tables and tables that interleave
    /// with it, in the order of their names.
    pub fn edges_from(&self, table: TableId) -> Vec<TableId> {
        let Some(node) = self.tables.get(&table) else { return Vec::new() };
        let mut found = Vec::new();
        self.index.visit(&node.table.range, 0, |entry| {
            if entry.id != table && age(node.table.seqs(), entry.seqs) != Age::Older {
                found.push(entry.id);
            }
        });
        found.sort_unstable();
        found
    }

    /// Returns the tables by the length of the longest path to them from a knot with nothing newer
    /// above, shortest first. This takes a pass over all edges.
    pub fn levels(&self) -> Vec<Vec<TableId>> {
        let mut depths: BTreeMap<KnotName, usize> = BTreeMap::new();
        let mut by_height: Vec<(usize, KnotName)> =
            self.knots.iter().map(|(name, knot)| (knot.height, *name)).collect();
        by_height.sort_unstable();
        // Every edge between knots leads to a smaller height.
        for (_, name) in by_height.into_iter().rev() {
            let depth = *depths.entry(name).or_default();
            for member in &self.knots[&name].members {
                for older in self.edges_from(*member) {
                    let below = self.tables[&older].knot;
                    if below != name {
                        let reached = depths.entry(below).or_default();
                        *reached = (*reached).max(depth + 1);
                    }
                }
            }
        }
        let mut levels = vec![Vec::new(); depths.values().max().map_or(0, |most| most + 1)];
        for (id, node) in &self.tables {
            levels[depths[&node.knot]].push(*id);
        }
        levels
    }

    /// Returns the graph in the language of Graphviz: a box per table, dashed in knots.
    pub fn to_dot(&self) -> String {
        let mut dot = String::from("digraph tables {\n  node [shape=box];\n");
        for (id, node) in &self.tables {
            let GraphTable { range, seq_min, seq_max, .. } = &node.table;
            let tied = self.knots[&node.knot].members.len() > 1;
            let style = if tied { ", style=dashed" } else { "" };
            let label = format!("{id} {range} s{}..{}", seq_min.0, seq_max.0);
            let label = label.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(dot, "  {id} [label=\"{label}\"{style}];");
        }
        for id in self.tables.keys() {
            for older in self.edges_from(*id) {
                let _ = writeln!(dot, "  {id} -> {older};");
            }
        }
        dot.push_str("}\n");
        dot
    }
}

/// One line per level, newest first: its tables, with knots in parentheses.
impl fmt::Display for TableGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, tables) in self.levels().into_iter().enumerate() {
            write!(f, "{depth}:")?;
            for id in &tables {
                let members = self.knot_of(*id).unwrap_or_default();
                if members.len() == 1 {
                    write!(f, " {id}")?;
                } else if members[0] == *id {
                    let names: Vec<String> = members.iter().map(TableId::to_string).collect();
                    write!(f, " ({})", names.join(" "))?;
                }
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}
