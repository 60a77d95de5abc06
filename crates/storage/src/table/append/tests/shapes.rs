//! Tables that grow, shrink and vanish, with keys and values of all lengths.

use super::*;
use crate::fold::{Hiding, Walk};
use crate::format::NODE_BYTES;

fn key(index: u64) -> Vec<u8> {
    format!("key {index:08}").into_bytes()
}

fn puts(numbers: impl IntoIterator<Item = u64>, seq: u64, value_bytes: usize) -> Vec<Owned> {
    numbers.into_iter().map(|n| entry(key(n), seq, vec![n as u8; value_bytes])).collect()
}

#[test]
fn table_of_several_levels_grows_by_single_keys_and_by_whole_batches() {
    let mut bench = Bench::small();
    let long = |n: u64| [vec![b'k'; 300], key(n)].concat();
    bench.append((0..900).map(|n| entry(long(n * 10), 1, b"value")).collect());
    bench.append((0..900).map(|n| entry(long(n * 10 + n % 3), 2, b"value")).collect());
    bench.check();
    let mut bench = Bench::small();
    bench.append(puts((0..270_000).step_by(3), 1, 9));
    assert!(bench.open().root.levels >= 3);
    bench.check();
    bench.append(puts([1, 14_999, 269_999], 2, 9));
    bench.check();
    bench.append(puts((0..270_000).step_by(1000), 3, 9));
    bench.check();
    bench.append(puts(0..20_000, 4, 9));
    bench.check();
}

#[test]
fn batch_writes_only_the_leaves_of_its_keys_and_the_nodes_above() {
    let mut bench = Bench::small();
    let first = bench.append(puts(0..20_000, 1, 100));
    let levels = bench.open().root.levels;
    let second = bench.append(puts([7], 2, 100));
    assert!(second.node_bytes <= levels * NODE_BYTES as u64, "{second:?}");
    assert!(second.root - first.root < second.node_bytes + 600, "{second:?}");
    assert_eq!((second.met.entries, second.written.entries), (1, 1));
    assert_eq!(second.filter_bytes, 0);
}

#[test]
fn nodes_are_filled_and_split_in_halves() {
    let mut bench = Bench::small();
    bench.append(puts((0..20_000).map(|n| n * 1000), 1, 9));
    let leaves = |bench: &Bench| {
        let table = bench.open();
        let mut leaves = Vec::new();
        let mut nodes = vec![(table.root.top.node, table.root.levels)];
        while let Some((span, levels)) = nodes.pop() {
            match levels {
                1 => leaves.push(span.bytes),
                _ => {
                    let below = table.children(span).unwrap();
                    nodes.extend(below.into_iter().map(|(_, child)| (child.node, levels - 1)));
                }
            }
        }
        leaves
    };
    let packed = leaves(&bench);
    let mean = packed.iter().sum::<u64>() / packed.len() as u64;
    assert!(mean > NODE_BYTES as u64 * 9 / 10, "{mean}");
    for seq in 2..60 {
        bench.append(puts((0..200).map(|n| n * 100_000 + seq), seq, 9));
    }
    bench.check();
    let split = leaves(&bench);
    assert!(split.iter().all(|bytes| *bytes <= NODE_BYTES as u64));
    let mean = split.iter().sum::<u64>() / split.len() as u64;
    assert!(mean > NODE_BYTES as u64 * 6 / 10, "{mean}");
}

#[test]
fn emptied_leaves_vanish_and_small_ones_join() {
    let mut bench = Bench::small();
    bench.append(puts(0..5000, 1, 9));
    let all = bench.open().root.clone();
    bench.append((1..4999).map(|n| deletion(key(n), 2)).collect());
    bench.check();
    assert_eq!(bench.model.len(), 2);
    assert_eq!(bench.open().root.levels, 1);
    bench.append(vec![deletion(key(0), 3), deletion(key(4999), 3)]);
    bench.check();
    assert_eq!((bench.open().root.levels, bench.open().keys()), (0, 0));
    bench.append(puts([5], 4, 9));
    bench.check();
    assert_eq!(bench.open().root.batches, all.batches + 3);
}

#[test]
fn leaves_that_lose_most_keys_join_the_next() {
    let mut bench = Bench::small();
    bench.append(puts(0..20_000, 1, 9));
    let keeps = |n: &u64| n.is_multiple_of(50);
    bench.append((0..20_000).filter(|n| !keeps(n)).map(|n| deletion(key(n), 2)).collect());
    bench.check();
    let table = bench.open();
    let nodes = table.children(table.root.top.node).unwrap();
    assert!(nodes.len() < 12, "400 keys in {} nodes", nodes.len());
}

#[test]
fn first_leaf_can_be_emptied_and_filled_again() {
    let mut bench = Bench::small();
    bench.append(puts(1000..6000, 1, 9));
    bench.append((1000..1500).map(|n| deletion(key(n), 2)).collect());
    bench.check();
    bench.append(puts(0..3, 3, 9));
    bench.check();
    bench.append((5000..6000).map(|n| deletion(key(n), 4)).collect());
    bench.check();
    bench.append(puts(9000..9002, 5, 9));
    bench.check();
}

#[test]
fn keys_and_values_may_be_longer_than_nodes() {
    let mut bench = Bench::new(TableOptions::default());
    let long = |n: u8| [vec![b'k'; 60_000], vec![n]].concat();
    bench.append((0..20).map(|n| entry(long(n), 1, b"v")).collect());
    bench.check();
    bench.append((0..20).step_by(3).map(|n| entry(long(n), 2, vec![n; 100_000])).collect());
    bench.check();
    bench.append((0..20).step_by(2).map(|n| deletion(long(n), 3)).collect());
    bench.check();
    bench.append(vec![entry(b"k", 4, vec![9; 3 << 20]), entry(long(7), 4, b"")]);
    bench.check();
}

#[test]
fn all_versions_of_a_key_stay_in_one_leaf() {
    let mut bench = Bench::small();
    let snapshots: Vec<SeqNo> = (1..2000).rev().map(SeqNo).collect();
    let versions = (1..2000).rev().map(|seq| entry(b"key", seq, b"value"));
    let others = (0..9).map(|n| entry([n], 1, b"value"));
    bench.append_with(others.chain(versions).collect(), &snapshots, true);
    bench.check();
    assert_eq!((bench.model.len(), bench.open().keys()), (2008, 10));
    // Without snapshots only the newest version is left.
    bench.append(vec![entry(b"key", 3000, b"newest")]);
    bench.check();
    assert_eq!(bench.model.len(), 10);
}

#[test]
fn tombstones_stay_while_something_lies_beneath() {
    let mut bench = Bench::small();
    bench.append_with(vec![deletion(b"a", 5), entry(b"b", 6, b"x")], &[], false);
    assert_eq!(bench.model.len(), 2);
    bench.check();
    let done = bench.append_with(vec![entry(b"a", 7, b"y"), deletion(b"b", 8)], &[], true);
    assert_eq!(done.counts.tombstones_dropped, 1);
    assert_eq!(done.counts.dropped_below, SeqNo(8));
    bench.check();
}

#[test]
fn entries_out_of_order_are_refused() {
    let bench = Bench::small();
    for batch in [
        vec![entry(b"b", 1, b""), entry(b"a", 1, b"")],
        vec![entry(b"", 1, b"")],
        vec![entry(vec![b'k'; 65_536], 1, b"")],
    ] {
        let snapshots = vec![SeqNo(1)];
        let rules = BatchRules {
            snapshots,
            nothing_beneath: |_: &[u8]| true,
            forgets: false,
            operators: None,
            hiding: Hiding::default(),
        };
        let file = MemEnv::new().create(path()).unwrap();
        let walk = Listed(batch, 0);
        let refused = AppendTable::create(file, path(), TABLE, &bench.options, walk, rules);
        assert!(refused.is_err());
    }
}

/// Walks entries in the order of the list.
struct Listed(Vec<Owned>, usize);

impl Walk for Listed {
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        self.1 += 1;
        Ok(())
    }

    fn here(&self) -> Option<crate::cursor::EntryRef<'_>> {
        self.0.get(self.1).map(Owned::as_ref)
    }
}
