use super::*;

fn model_get(entries: &[Entry], key: &[u8], snapshot: u64) -> Option<FoundEntry> {
    let entry = entries.iter().find(|entry| entry.key == key && entry.seq <= snapshot)?;
    let seq = SeqNo(entry.seq);
    let kind = entry.kind;
    Some(FoundEntry { seq, kind, value: entry.value.clone().into() })
}

fn check_gets(entries: &[Entry], options: &TableOptions) {
    let table = table(entries, options);
    let mut reads = ReadCount::default();
    for entry in entries {
        for snapshot in [0, entry.seq - 1, entry.seq, entry.seq + 1, u64::MAX] {
            let found = table.get(&entry.key, SeqNo(snapshot), &mut reads).unwrap();
            assert_eq!(found, model_get(entries, &entry.key, snapshot), "{entry:?} {snapshot}");
        }
        for key in [[&entry.key[..], &[0]].concat(), entry.key[1..].to_vec()] {
            let found = table.get(&key, SeqNo::MAX, &mut reads).unwrap();
            assert_eq!(found, model_get(entries, &key, u64::MAX), "{key:?}");
        }
    }
}

#[test]
fn a_get_finds_the_newest_version_that_a_snapshot_sees() {
    for (index, shape) in SHAPES.into_iter().enumerate() {
        for block_bytes in [1, 200, 4096] {
            let entries = random_entries(&mut Dice(index as u64 + 77), shape);
            check_gets(&entries, &options(block_bytes));
        }
    }
}

#[test]
fn a_get_needs_no_filter() {
    let entries = random_entries(&mut Dice(5), SHAPES[1]);
    check_gets(&entries, &TableOptions { filter_bits_per_key: 0, ..options(300) });
}

/// Keys of fixed width that count up: each fence is a whole key, and is the first key of its block.
#[test]
fn get_reads_one_block_even_if_the_fence_is_the_key() {
    let entries: Vec<Entry> =
        (0..500u64).map(|n| Entry::put(n.to_be_bytes(), n, [1; 30])).collect();
    let table = table(&entries, &options(1));
    let mut reads = ReadCount::default();
    for entry in &entries {
        assert!(table.get(&entry.key, SeqNo::MAX, &mut reads).unwrap().is_some());
    }
    assert_eq!(reads.blocks(), 500);
}

#[test]
fn get_counts_its_work() {
    let entries: Vec<Entry> =
        (0..2000u64).map(|n| Entry::put((2 * n).to_be_bytes(), n, [1; 50])).collect();
    let table = table(&entries, &options(500));
    let mut reads = ReadCount::default();
    table.get(&entries[9].key, SeqNo::MAX, &mut reads).unwrap();
    table.get(&entries[9].key, SeqNo::MAX, &mut reads).unwrap();
    let once = ReadCount { filter_negatives: 0, blocks_cached: 1, blocks_read: 1, ..reads };
    assert_eq!(reads, once);
    assert!((400..600).contains(&reads.bytes_read), "{reads:?}");
    let mut reads = ReadCount::default();
    for n in 0..1999u64 {
        assert_eq!(table.get(&(2 * n + 1).to_be_bytes(), SeqNo::MAX, &mut reads).unwrap(), None);
    }
    assert_eq!(reads.filter_negatives + reads.blocks(), 1999);
    assert!(reads.filter_negatives > 1940, "{reads:?}");
}

#[test]
fn a_value_shares_the_memory_of_its_cached_block() {
    let entries = [Entry::put("key", 1, [9; 2000])];
    let table = table(&entries, &options(4096));
    let get = || table.get(b"key", SeqNo::MAX, &mut ReadCount::default()).unwrap().unwrap().value;
    assert_eq!(get().as_ptr(), get().as_ptr());
}
