//! Tables without the blocks that no reader needs.

use super::*;
use crate::error::ErrorKind;
use crate::table::{ProfileGrain, ReadCount, ReadCursor, ReadTable};

/// Returns some disjoint ranges in key order, which start and end at keys, beside keys and in gaps,
/// without parts that are known to be empty at their ends.
fn ranges(dice: &mut Dice, entries: &[Entry], table: &Table) -> Vec<KeyRange> {
    let mut borders = std::collections::BTreeSet::new();
    for _ in 0..2 + dice.below(12) {
        let mut key = entries[dice.below(entries.len() as u64) as usize].key.clone();
        match dice.below(3) {
            0 => key.push(0),
            1 => {}
            _ => *key.last_mut().expect("no key is empty") ^= 1,
        }
        borders.insert(key);
    }
    let sorted: Vec<_> = borders.into_iter().collect();
    let mut ranges = Vec::new();
    for pair in sorted.windows(2).filter(|_| dice.below(2) == 0) {
        let asked = KeyRange::new(pair[0].clone(), pair[1].clone());
        let range = table.tree_table().filled(asked.intersection(&table.tree_table().range));
        if !range.is_empty() {
            ranges.push(range);
        }
    }
    ranges
}

/// Returns the table with zeros in place of every block that reads within `ranges` do not need.
fn without(disk: &Arc<MemEnv>, table: &Table, ranges: &[KeyRange]) -> Arc<MemEnv> {
    changed(disk, |bytes| {
        for place in table.dead_places(ranges) {
            bytes[place.start as usize..place.end as usize].fill(0);
        }
    })
}

fn check_cursor(table: &Arc<Table>, range: &KeyRange, expected: &[Entry], fill: CacheFill) {
    let mut cursor = table.cursor(fill);
    cursor.keep_within(range.clone());
    let within = |entry: &Option<Entry>| entry.as_ref().is_some_and(|e| range.contains(&e.key));
    let mut found = Vec::new();
    cursor.seek_first().unwrap();
    while let Some(entry) = here(&cursor).filter(|entry| within(&Some(entry.clone()))) {
        found.push(entry);
        cursor.next().unwrap();
    }
    assert_eq!(found, expected);
    cursor.seek_last().unwrap();
    while let Some(entry) = here(&cursor).filter(|entry| within(&Some(entry.clone()))) {
        assert_eq!(Some(entry), found.pop());
        cursor.prev().unwrap();
    }
    assert!(found.is_empty());
}

#[test]
fn needed_blocks_are_enough() {
    let mut dead_bytes = 0;
    for (index, shape) in SHAPES.into_iter().enumerate() {
        for round in 0..12 {
            let mut dice = Dice(index as u64 * 100 + round);
            let entries = random_entries(&mut dice, shape);
            let grain = [ProfileGrain::Steps, ProfileGrain::Blocks][round as usize % 2];
            let block_bytes = [1, 100, 1000][round as usize % 3];
            let options = TableOptions { grain, ..options(block_bytes) };
            let (disk, _) = write(&entries, &options);
            let cache = || Arc::new(BlockCache::new(0));
            let whole = open(&disk, &cache()).unwrap();
            let ranges = ranges(&mut dice, &entries, &whole);
            dead_bytes += whole.dead_places(&ranges).iter().map(|p| p.end - p.start).sum::<u64>();
            let table = open(&without(&disk, &whole, &ranges), &cache()).unwrap();
            table.verify(&ranges).unwrap();
            for range in &ranges {
                let inside = entries.iter().filter(|entry| range.contains(&entry.key));
                let shown: Vec<Entry> = inside.cloned().collect();
                for fill in [CacheFill::Yes, CacheFill::No] {
                    check_cursor(&table, range, &shown, fill);
                }
                for entry in &shown {
                    let reads = &mut ReadCount::default();
                    let found = table.get(&entry.key, SeqNo(entry.seq), reads).unwrap();
                    assert_eq!(found.map(|found| found.seq.0), Some(entry.seq));
                }
            }
        }
    }
    assert!(dead_bytes > 100_000, "{dead_bytes}");
}

#[test]
#[allow(clippy::single_range_in_vec_init, reason = "lists of ranges are meant")]
fn no_other_blocks_are_needed() {
    let entries: Vec<Entry> =
        (0..100u64).map(|n| Entry::put(format!("key{n:02}"), n, [1; 50])).collect();
    // Ten entries of 63 bytes to a block.
    let options = TableOptions { grain: ProfileGrain::Blocks, ..options(630) };
    let table = table(&entries, &options);
    let range = |start: &'static str, end: &'static str| KeyRange::new(start, end);
    let needed = |ranges: &[KeyRange]| {
        let ranges = ranges.iter().map(|range| table.tree_table().filled(range.clone()));
        table.needed_blocks(&ranges.collect::<Vec<_>>())
    };
    assert_eq!(needed(&[KeyRange::ALL]), [0..10]);
    assert!(needed(&[]).is_empty());
    assert_eq!(needed(&[range("key10", "key19\0")]), [1..2]);
    assert_eq!(needed(&[range("key10", "key20")]), [1..2]);
    assert_eq!(needed(&[range("key09", "key20\0")]), [0..3]);
    assert_eq!(needed(&[range("key11", "key12"), range("key18", "key25")]), [1..3]);
    assert_eq!(
        needed(&[range("a", "key00\0"), range("key50", "key51"), range("key99", "z")]),
        [0..1, 5..6, 9..10]
    );
}

#[test]
fn damage_is_found_only_in_blocks_that_a_slice_needs() {
    let entries: Vec<Entry> =
        (0..100u64).map(|n| Entry::put(format!("key{n:02}"), n, [1; 50])).collect();
    let options = TableOptions { grain: ProfileGrain::Blocks, ..options(630) };
    let (disk, _) = write(&entries, &options);
    let cache = || Arc::new(BlockCache::new(0));
    let whole = open(&disk, &cache()).unwrap();
    let asked = [KeyRange::new("key20", "key40"), KeyRange::new("key70", "key71")];
    let ranges = asked.map(|range| whole.tree_table().filled(range));
    for index in 0..whole.fences.count() {
        let place = whole.fences.place(index);
        let disk = changed(&disk, |bytes| bytes[place.start as usize + 5] ^= 1);
        let table = open(&disk, &cache()).unwrap();
        let shown = [2, 3, 7].contains(&index);
        match table.verify(&ranges) {
            Ok(()) => assert!(!shown, "block {index}"),
            Err(error) => {
                assert!(shown, "block {index}: {error}");
                assert_eq!(
                    (error.kind(), error.offset()),
                    (ErrorKind::Corruption, Some(place.start))
                );
            }
        }
    }
}
