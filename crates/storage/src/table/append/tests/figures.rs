//! What reads and batches cost.

use super::*;
use crate::table::ReadTable;

fn key(index: u64) -> Vec<u8> {
    index.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec()
}

/// Returns a batch of random updates.
fn updates(dice: &mut Dice, keys: u64, count: u64, seq: u64) -> Vec<Owned> {
    let mut batch = BTreeMap::new();
    for _ in 0..count {
        let key = key(dice.below(keys));
        batch.insert(key.clone(), entry(key, seq, dice.bytes(100)));
    }
    batch.into_values().collect()
}

/// Returns the blocks that a read of each key looks at, on average.
fn blocks_per_read(table: &AppendTable, keys: u64, absent: bool) -> f64 {
    let mut reads = ReadCount::default();
    for index in 0..keys {
        let mut key = key(index);
        if absent {
            key[7] ^= 1;
            key.push(7);
        }
        if !table.excludes(key_hash(&key), &mut reads) {
            table.search(&key, SeqNo::MAX, &mut reads).unwrap();
        }
    }
    reads.blocks() as f64 / keys as f64
}

#[test]
fn reads_cost_the_same_however_many_batches_there_were() {
    let keys = 10_000;
    let mut dice = Dice(1);
    let mut bench = Bench::new(TableOptions::default());
    let all: BTreeMap<_, _> = (0..keys).map(|n| (key(n), entry(key(n), 1, [1; 100]))).collect();
    bench.append(all.into_values().collect());
    let levels = bench.open().root.levels;
    let after_one = blocks_per_read(&bench.open(), keys, false);
    assert_eq!(after_one, levels as f64 + 1.0);
    for seq in 2..42 {
        bench.append(updates(&mut dice, keys, 1000, seq));
    }
    let table = bench.open();
    assert_eq!(table.batches(), 41);
    assert_eq!(blocks_per_read(&table, keys, false), table.root.levels as f64 + 1.0);
    assert_eq!(table.root.levels, levels);
    assert!(blocks_per_read(&table, keys, true) < 0.1);
    // Updates add no keys, so the filter still comes from the first batch.
    assert_eq!(table.root.filter.len(), 1);
    assert_eq!(table.keys(), keys);
}

#[test]
fn filter_follows_batches_of_new_keys() {
    let mut bench = Bench::new(TableOptions::default());
    let mut written = 0;
    for round in 0..60 {
        let new =
            (round * 100..round * 100 + 100).map(|n| (key(n), entry(key(n), round + 1, [1; 100])));
        let new: BTreeMap<_, _> = new.collect();
        written += bench.append(new.into_values().collect()).filter_bytes;
        assert!(bench.open().root.filter.len() <= crate::format::FILTER_PARTS_MAX);
    }
    bench.check();
    let table = bench.open();
    assert!(blocks_per_read(&table, 6000, true) < 0.1);
    // Eight bytes for each key, twice that for joined lists, and the filters of all sizes.
    assert!(written < 6000 * 24, "{written} bytes of filters for 6,000 keys");
}

#[test]
fn live_and_total_bytes_are_exact() {
    let mut dice = Dice(2);
    let mut bench = Bench::new(TableOptions::default());
    for seq in 1..9 {
        bench.append(updates(&mut dice, 3000, 1500, seq));
        let table = bench.open();
        assert_eq!(table.facts().size, size_of(&bench.model));
        assert_eq!(table.appended_bytes(), bench.appended_bytes);
        assert_eq!(table.facts().file_bytes, bench.disk.file_bytes(path()).unwrap());
    }
}
