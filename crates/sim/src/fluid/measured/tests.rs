//! Compares counts with a scan of every write.

use super::Counted;
use crate::fluid::place::PLACES;
use lsmith_workload::{NoInputs, Op, OpKind, Workload};
use std::collections::BTreeMap;

/// Returns the first and the last write of an interval for each key, by item.
fn looked_at(
    workload: &Workload,
    from: usize,
    until: usize,
) -> BTreeMap<u64, (OpKind, OpKind, u64)> {
    let mut keys = BTreeMap::new();
    let ops = workload.ops().map(Result::unwrap);
    let writes = ops.filter(|op| op.writes_value() || op.deletes());
    for op in writes.take(until).skip(from) {
        let bytes = workload.key_bytes(op.item) as u64 + u64::from(op.value_bytes) + 8;
        let entry = keys.entry(op.item).or_insert((op.kind, op.kind, bytes));
        *entry = (entry.0, op.kind, bytes);
    }
    keys
}

fn counted(spec: &str) -> (Workload, Counted) {
    let workload = Workload::from_spec(&spec.parse().unwrap(), &NoInputs).unwrap();
    let counted = Counted::of(&workload).unwrap();
    (workload, counted)
}

#[test]
fn totals_of_intervals_match_their_writes() {
    for spec in [
        "ycsb(a, records=3k, ops=6k, value=100B)",
        "churn(keys=500, ops=4k, value=100B, deletes=0.3)",
        "uniform(keys=1500, ops=3k)",
        "update(keys=4k)",
    ] {
        let (workload, counted) = counted(spec);
        for (from, until) in [(0, 4000), (0, 1), (17, 1700), (1200, 3900), (3999, 4000), (50, 50)] {
            let found = counted.all(from as f64, until as f64);
            let keys = looked_at(&workload, from, until);
            let is_gone =
                |key: &&(OpKind, OpKind, u64)| key.0 == OpKind::Insert && key.1 == OpKind::Remove;
            let is_tombstone =
                |key: &&(OpKind, OpKind, u64)| matches!(key.1, OpKind::Delete | OpKind::Remove);
            let tombstones = keys.values().filter(is_tombstone).count();
            let left = tombstones - keys.values().filter(is_gone).count();
            let message = format!("{spec}: {from} to {until}");
            assert_eq!(found.keys, keys.len() as f64, "{message}");
            assert_eq!(found.puts, (keys.len() - tombstones) as f64, "{message}");
            assert!((found.tombstones - left as f64).abs() < 1e-6, "{message}");
            let puts = keys.values().filter(|key| !is_tombstone(key));
            let bytes = puts.map(|key| key.2).sum::<u64>() as f64;
            assert!((found.put_bytes - bytes).abs() <= 0.002 * bytes, "{message}");
        }
    }
}

#[test]
fn parts_of_the_key_space_come_to_the_whole() {
    let (_, counted) = counted("update(keys=20k, order=sequential)");
    for (from, until) in [(0.0, 30_000.0), (7_000.0, 9_000.0), (29_000.0, 29_500.0)] {
        let mut place = 0;
        let mut keys = 0.0;
        let mut parts = 0;
        while place < PLACES {
            let border = counted.border_after(place);
            let width = (border - place) as f64 / PLACES as f64;
            keys += counted.found(place, from, until).keys * width;
            place = border;
            parts += 1;
        }
        assert!(parts > 100, "{parts} parts");
        assert!((keys - counted.all(from, until).keys).abs() < 1e-6);
    }
}

#[test]
fn a_memtable_is_full_when_its_newest_versions_are() {
    let (workload, counted) = counted("ycsb(a, records=3k, ops=6k, value=100B)");
    let writes: Vec<(u64, u64)> = workload
        .ops()
        .map(Result::unwrap)
        .filter(Op::writes_value)
        .map(|op| (op.item, op.user_bytes(workload.key_bytes(op.item)) + 8))
        .collect();
    let mut from = 0;
    let mut memtables = 0;
    loop {
        let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
        let fills = |&(item, bytes): &(u64, u64)| {
            newest.insert(item, bytes);
            newest.values().sum::<u64>() >= 50_000
        };
        let end = writes[from..].iter().position(fills).map(|index| from + index + 1);
        assert_eq!(counted.memtable_end(from as f64, 50_000), end.map(|end| end as f64));
        let Some(end) = end else { break };
        (from, memtables) = (end, memtables + 1);
    }
    assert!(memtables > 5, "{memtables} memtables");
}

#[test]
fn bytes_are_known_at_every_moment() {
    let (_, counted) = counted("load(keys=1000, value=100B, order=sequential)");
    for writes in [0.0, 1.0, 255.0, 256.0, 900.0, 1000.0, 1001.0] {
        let bytes = counted.requested_bytes(writes);
        assert!((bytes - 132.0 * f64::min(writes, 1000.0)).abs() < 1e-6, "{bytes}");
    }
}
