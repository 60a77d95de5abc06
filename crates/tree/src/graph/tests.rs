//! The graph against its definition, pair by pair.

use super::{Age, GraphTable, TableGraph, age};
use crate::entry::SeqNo;
use crate::key::Key;
use crate::range::KeyRange;
use crate::slice::TableId;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn table(id: u64, keys: (u64, u64), seqs: (u64, u64)) -> GraphTable {
    let range = KeyRange { start: Key::of_number(keys.0), end: Some(Key::of_number(keys.1)) };
    GraphTable { id: TableId(id), range, seq_min: SeqNo(seqs.0), seq_max: SeqNo(seqs.1) }
}

fn seqs(table: &GraphTable) -> (SeqNo, SeqNo) {
    (table.seq_min, table.seq_max)
}

/// Knots and heights by definition: all pairs, reachability by closure, longest paths by relaxing.
fn defined(tables: &[GraphTable]) -> (BTreeSet<Vec<TableId>>, BTreeMap<TableId, usize>) {
    let count = tables.len();
    let mut reaches: Vec<Vec<bool>> = (0..count)
        .map(|from| {
            let leads = |to: usize| {
                from != to
                    && tables[from].range.overlaps(&tables[to].range)
                    && age(seqs(&tables[from]), seqs(&tables[to])) != Age::Older
            };
            (0..count).map(leads).collect()
        })
        .collect();
    let edges = reaches.clone();
    for via in 0..count {
        for from in 0..count {
            for to in 0..count {
                reaches[from][to] |= reaches[from][via] && reaches[via][to];
            }
        }
    }
    let tied =
        |left: usize, right: usize| left == right || reaches[left][right] && reaches[right][left];
    let knot = |at: usize| {
        let mut ids: Vec<_> =
            (0..count).filter(|to| tied(at, *to)).map(|to| tables[to].id).collect();
        ids.sort();
        ids
    };
    let mut heights = vec![0; count];
    let mut is_stable = false;
    while !is_stable {
        is_stable = true;
        for from in 0..count {
            for to in 0..count {
                let least = match (edges[from][to], tied(from, to)) {
                    (true, false) => heights[to] + 1,
                    (_, true) => heights[to],
                    _ => 0,
                };
                if heights[from] < least {
                    heights[from] = least;
                    is_stable = false;
                }
            }
        }
    }
    let heights = tables.iter().map(|table| table.id).zip(heights).collect();
    ((0..count).map(knot).collect(), heights)
}

fn assert_defined(graph: &TableGraph, tables: &[GraphTable]) {
    let (knots, heights) = defined(tables);
    let found: BTreeSet<Vec<TableId>> = tables
        .iter()
        .map(|table| graph.knot_of(table.id).expect("a table of the graph").to_vec())
        .collect();
    assert_eq!(found, knots, "{tables:?}");
    assert_eq!(graph.heights(), heights, "{tables:?}");
}

proptest! {
    #[test]
    fn edits_keep_what_the_definition_says(
        steps in proptest::collection::vec((0..24u64, 0..12u64, 1..8u64, 0..30u64, 0..6u64), 1..60)
    ) {
        let mut graph = TableGraph::new();
        let mut tables: Vec<GraphTable> = Vec::new();
        for (id, start, width, seq, span) in steps {
            if let Some(at) = tables.iter().position(|table| table.id == TableId(id)) {
                tables.remove(at);
                prop_assert!(graph.remove(TableId(id)));
            } else {
                let table = table(id, (start, start + width), (seq, seq + span));
                prop_assert!(graph.insert(table.clone()));
                tables.push(table);
            }
            assert_defined(&graph, &tables);
        }
    }
}

/// A cycle can close even if no two tables that follow each other in it interleave both ways.
#[test]
fn a_knot_can_close_far_from_the_table_that_closes_it() {
    let tables = [
        table(1, (0, 2), (11, 12)),
        table(2, (1, 4), (1, 10)),
        table(3, (3, 6), (5, 20)),
        table(4, (5, 8), (1, 4)),
        table(5, (7, 20), (3, 30)),
    ];
    let mut graph = TableGraph::new();
    tables.iter().for_each(|table| assert!(graph.insert(table.clone())));
    assert_defined(&graph, &tables);
    let bridge = table(6, (0, 9), (29, 40));
    assert!(graph.insert(bridge.clone()));
    let tables: Vec<_> = tables.into_iter().chain([bridge]).collect();
    assert_defined(&graph, &tables);
    assert!(graph.knot_of(TableId(6)).is_some_and(|members| members.len() > 2));
}

#[test]
fn what_is_no_table_is_refused() {
    let mut graph = TableGraph::new();
    assert!(!graph.insert(table(1, (5, 5), (1, 2))));
    assert!(!graph.insert(table(1, (5, 6), (3, 2))));
    assert!(graph.insert(table(1, (5, 6), (3, 3))));
    assert!(!graph.insert(table(1, (7, 9), (4, 5))));
    assert!(!graph.remove(TableId(2)) && graph.remove(TableId(1)) && graph.is_empty());
}

#[test]
fn levels_and_pictures() {
    let mut graph = TableGraph::new();
    for table in [
        table(1, (0, 5), (1, 4)),
        table(2, (5, 9), (1, 4)),
        table(3, (0, 9), (5, 6)),
        table(4, (2, 3), (7, 9)),
        table(5, (2, 4), (8, 10)),
    ] {
        assert!(graph.insert(table));
    }
    assert_eq!(graph.to_string(), "0: (t4 t5)\n1: t3\n2: t1 t2\n");
    let dot = graph.to_dot();
    for line in ["t4 -> t5;", "t5 -> t4;", "t3 -> t1;", "t3 -> t2;"] {
        assert!(dot.contains(line), "{dot}");
    }
    assert!(dot.contains("style=dashed") && !dot.contains("t1 -> t3"), "{dot}");
}

/// A hundred thousand tables in ten levels, a wide level 0 above. An edit must not look at all of
/// them: `benches/graph.rs` measures how long it takes.
#[test]
fn a_wide_new_table_changes_no_height() {
    let mut graph = TableGraph::new();
    let (levels, per_level) = (5, 200);
    for level in 0..levels {
        for at in 0..per_level {
            let id = level * per_level + at;
            assert!(graph.insert(table(id, (10 * at, 10 * at + 10), (level * 10, level * 10 + 9))));
        }
    }
    let before = graph.heights();
    for newer in 0..4 {
        let wide = table(10_000 + newer, (0, 10 * per_level), (100 + newer, 100 + newer));
        assert!(graph.insert(wide));
        assert_eq!(graph.height(TableId(10_000 + newer)), Some((levels + newer) as usize));
    }
    assert!(before.iter().all(|(id, height)| graph.height(*id) == Some(*height)));
    // What a removal leaves falls by one, there alone.
    assert!(graph.remove(TableId(per_level)));
    assert_eq!(graph.height(TableId(2 * per_level)), Some(1));
    assert_eq!(graph.height(TableId(2 * per_level + 1)), Some(2));
}
