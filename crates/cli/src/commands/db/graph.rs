//! `tree --graph`: which tables share keys, and which of them are newer.

use crate::output::{Output, print, print_json};
use lsmith::Keyspace;
use lsmith_lab::plot::{TableBox, TablesPicture};
use lsmith_tree::{GraphTable, Key, KeyRange, SeqNo, TableGraph, TableId, Tree};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// The most tables of one level that a row names one by one.
const NAMES_MAX: usize = 8;

/// A node: a table, or a part of one where a run shows several parts.
struct Node {
    name: String,
    level: usize,
    run: String,
    range: KeyRange,
    bytes: u64,
}

/// The tables of a tree on storage. Node `n` of the graph is number `n` of the list.
struct Graph {
    nodes: Vec<Node>,
    graph: TableGraph,
}

impl Graph {
    /// Returns the graph of `tree`. The order of its runs says which tables are newer.
    fn of(tree: &Tree) -> Graph {
        let runs = tree.disk_run_count() as u64;
        let slices = || tree.disk_runs().flat_map(|run| run.slices().iter());
        let mut parts = BTreeMap::<TableId, (usize, usize)>::new();
        slices().for_each(|slice| parts.entry(slice.table().id).or_default().0 += 1);
        let mut nodes = Vec::new();
        let mut graph = TableGraph::new();
        let levels = tree.levels().iter().enumerate();
        let runs_of =
            levels.flat_map(|(level, all)| all.runs().iter().map(move |run| (level, run)));
        for (index, (level, run)) in runs_of.enumerate() {
            let age = SeqNo(runs - index as u64);
            for slice in run.slices() {
                let id = slice.table().id;
                let (all, seen) = parts.entry(id).or_default();
                *seen += 1;
                let name = if *all == 1 { id.to_string() } else { format!("{id}.{seen}") };
                let range = slice.range().clone();
                let node = TableId(nodes.len() as u64);
                let table =
                    GraphTable { id: node, range: range.clone(), seq_min: age, seq_max: age };
                graph.insert(table);
                let run = run.id().to_string();
                nodes.push(Node { name, level, run, range, bytes: slice.size().bytes });
            }
        }
        Graph { nodes, graph }
    }

    fn node(&self, id: TableId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn print(&self) -> anyhow::Result<()> {
        let mut output = Output::new();
        for (row, tables) in self.graph.levels().iter().enumerate() {
            output.line(format_args!("{row}:{}", self.row_text(tables)))?;
        }
        let note = "A table shares keys with a newer one in the row above it. \
                    t5.2@L1: part 2 of table 5, in level 1. \
                    `--json` lists all tables of long rows.";
        output.line(format_args!("\n{note}"))?;
        Ok(output.finish()?)
    }

    /// Returns the names of `tables`, level by level. Of many tables in a level it names two.
    fn row_text(&self, tables: &[TableId]) -> String {
        let mut by_level = BTreeMap::<usize, Vec<&str>>::new();
        for node in tables.iter().map(|id| self.node(*id)) {
            by_level.entry(node.level).or_default().push(&node.name);
        }
        let mut text = String::new();
        for (level, names) in by_level {
            if let [first, .., last] = &names[..]
                && names.len() > NAMES_MAX
            {
                let _ = write!(text, " {} tables {first} .. {last} @L{level}", names.len());
            } else {
                names.iter().for_each(|name| text.push_str(&format!(" {name}@L{level}")));
            }
        }
        text
    }

    fn dot(&self) -> String {
        let mut dot = String::from("digraph tables {\n  node [shape=box];\n");
        for (node, Node { name, level, range, .. }) in self.nodes.iter().enumerate() {
            let label = format!("{name} L{level} {range}");
            let label = label.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(dot, "  n{node} [label=\"{label}\"];");
        }
        for node in 0..self.nodes.len() as u64 {
            for older in self.graph.edges_from(TableId(node)) {
                let _ = writeln!(dot, "  n{node} -> n{};", older.0);
            }
        }
        dot.push_str("}\n");
        dot
    }

    fn json(&self) -> Value {
        let mut tables = Vec::new();
        for (row, ids) in self.graph.levels().iter().enumerate() {
            for id in ids {
                let Node { name, level, run, range, bytes } = self.node(*id);
                let edges = self.graph.edges_from(*id);
                let older = edges.iter().map(|older| &self.node(*older).name);
                tables.push(json!({
                    "table": name, "row": row, "level": level, "run": run,
                    "range": range.to_string(), "bytes": bytes, "older": older.collect::<Vec<_>>(),
                }));
            }
        }
        json!({ "graph": tables })
    }

    /// Returns the picture. Its width is divided evenly among the borders of tables.
    fn picture(&self) -> TablesPicture {
        let starts = self.nodes.iter().map(|node| Some(node.range.start.clone()));
        let ends = self.nodes.iter().map(|node| node.range.end.clone());
        let mut borders: Vec<Key> = starts.chain(ends).flatten().collect();
        borders.sort_unstable();
        borders.dedup();
        let most = borders.len().max(2) - 1;
        let share = |key: &Key| borders.partition_point(|border| border < key) as f64 / most as f64;
        let table = |id: &TableId| {
            let Node { name, level, range, .. } = self.node(*id);
            let end = range.end.as_ref().map_or(1.0, share);
            TableBox { name: name.clone(), level: *level, keys: (share(&range.start), end) }
        };
        let rows = self.graph.levels();
        TablesPicture { rows: rows.iter().map(|ids| ids.iter().map(table).collect()).collect() }
    }
}

pub(super) fn graph(keyspace: &Keyspace, dot: bool, json: bool) -> anyhow::Result<()> {
    let graph = Graph::of(&keyspace.tree());
    match (dot, json) {
        (true, _) => Ok(print(graph.dot().trim_end())?),
        (false, true) => print_json(&graph.json()),
        (false, false) => graph.print(),
    }
}

pub(super) fn picture(keyspace: &Keyspace, path: &Path, json: bool) -> anyhow::Result<()> {
    let graph = Graph::of(&keyspace.tree());
    graph.picture().write(path)?;
    let tables = graph.nodes.len();
    if json {
        return print_json(&json!({ "svg": path.display().to_string(), "tables": tables }));
    }
    Ok(print(format_args!("wrote {}: {tables} tables", path.display()))?)
}
