//! What an edit of the graph of 100,000 tables costs: an ingest that finds its place at the top, in
//! the middle or at the bottom, and a removal.

use criterion::{Criterion, criterion_group, criterion_main};
use lsmith_tree::{GraphTable, Key, KeyRange, SeqNo, TableGraph, TableId};

/// Levels of twice as many tables each, the last with half of all.
const TABLES: u64 = 100_000;
const LEVELS: u64 = 12;

/// Keys and sequence numbers.
const KEYS: u64 = 1 << 40;
const SEQS_PER_LEVEL: u64 = 1000;

fn table(id: u64, keys: (u64, u64), seqs: (u64, u64)) -> GraphTable {
    let range = KeyRange { start: Key::of_number(keys.0), end: Some(Key::of_number(keys.1)) };
    GraphTable { id: TableId(id), range, seq_min: SeqNo(seqs.0), seq_max: SeqNo(seqs.1) }
}

/// Returns the graph of a settled tree with eight wide tables on top, and the name of its next
/// table.
fn settled() -> (TableGraph, u64) {
    let mut graph = TableGraph::new();
    let mut next = 0;
    for depth in (0..LEVELS).rev() {
        let count = (TABLES >> (LEVELS - depth)).max(1);
        let seqs = (LEVELS - depth) * SEQS_PER_LEVEL;
        for at in 0..count {
            let width = KEYS / count;
            let keys = (at * width, (at + 1) * width);
            assert!(graph.insert(table(next, keys, (seqs, seqs + SEQS_PER_LEVEL - 1))));
            next += 1;
        }
    }
    for newer in 0..8 {
        let seq = 2 * LEVELS * SEQS_PER_LEVEL + newer;
        assert!(graph.insert(table(next, (0, KEYS), (seq, seq))));
        next += 1;
    }
    (graph, next)
}

fn edits(criterion: &mut Criterion) {
    let (mut graph, next) = settled();
    let mut group = criterion.benchmark_group(format!("edit of {} tables", graph.len()));
    let narrow = (KEYS / 3, KEYS / 3 + KEYS / TABLES);
    let middle = LEVELS / 2 * SEQS_PER_LEVEL;
    let cases = [
        ("wide and newest", (0, KEYS), (1 << 30, 1 << 30)),
        ("narrow and newest", narrow, (1 << 30, 1 << 30)),
        ("narrow and oldest", narrow, (1, 2)),
        ("narrow, interleaved with a level", narrow, (middle, middle + 1)),
        ("narrow, between two levels", narrow, (middle - 1, middle - 1)),
    ];
    for (name, keys, seqs) in cases {
        let new = table(next, keys, seqs);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                assert!(graph.insert(new.clone()));
                assert!(graph.remove(new.id));
            });
        });
    }
    group.finish();
}

criterion_group!(benches, edits);
criterion_main!(benches);
