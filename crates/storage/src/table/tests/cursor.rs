use super::*;
use crate::table::ReadTable;

/// Returns one of the keys of `entries`, a key slightly greater or smaller, or an unrelated key.
fn target(dice: &mut Dice, entries: &[Entry]) -> Vec<u8> {
    let mut key = entries[dice.below(entries.len() as u64) as usize].key.clone();
    match dice.below(5) {
        0 => key.push(0),
        1 => drop(key.pop()),
        2 => key = dice.bytes(1 + key.len() as u64, 256),
        3 => *key.last_mut().expect("no key is empty") ^= 1,
        _ => {}
    }
    key
}

/// Makes the same moves with a cursor and with an index into `entries`.
fn wander(table: &Arc<Table>, entries: &[Entry], fill: CacheFill, dice: &mut Dice) {
    let mut cursor = table.cursor(fill);
    assert_eq!(here(&cursor), None, "a new cursor stands nowhere");
    let mut at: Option<usize> = None;
    for step in 0..600 {
        let key = target(dice, entries);
        let bound = entries.partition_point(|entry| entry.key < key);
        let action = if at.is_some() { dice.below(14) } else { dice.below(4) };
        match action {
            0 => (at, _) = (Some(0), cursor.seek_first().unwrap()),
            1 => (at, _) = (Some(entries.len() - 1), cursor.seek_last().unwrap()),
            2 => (at, _) = (Some(bound), cursor.seek(&key).unwrap()),
            3 => (at, _) = (bound.checked_sub(1), cursor.seek_before(&key).unwrap()),
            4..9 => (at, _) = (at.map(|at| at + 1), cursor.next().unwrap()),
            _ => (at, _) = (at.and_then(|at| at.checked_sub(1)), cursor.prev().unwrap()),
        }
        at = at.filter(|at| *at < entries.len());
        assert_eq!(here(&cursor), at.map(|at| entries[at].clone()), "step {step}");
    }
}

#[test]
fn cursor_moves_like_an_index_into_a_list() {
    for (index, shape) in SHAPES.into_iter().enumerate() {
        for block_bytes in [1, 100, 1000, 4096] {
            let mut dice = Dice(index as u64 * 1000 + block_bytes as u64);
            let entries = random_entries(&mut dice, shape);
            let table = table(&entries, &options(block_bytes));
            table.verify(&[KeyRange::ALL]).unwrap();
            for fill in [CacheFill::Yes, CacheFill::No] {
                assert_eq!(scan(&table, fill).unwrap(), entries);
                let back: Vec<Entry> = entries.iter().rev().cloned().collect();
                assert_eq!(scan_back(&table, fill).unwrap(), back);
                wander(&table, &entries, fill, &mut dice);
            }
        }
    }
}

#[test]
fn merge_reads_many_blocks_at_once_without_the_cache() {
    let entries: Vec<Entry> =
        (0..3000u64).map(|n| Entry::put(n.to_be_bytes(), n, [7; 250])).collect();
    let (disk, facts) = write(&entries, &TableOptions::default());
    let cache = Arc::new(BlockCache::new(1 << 20));
    let table = open(&disk, &cache).unwrap();
    let mut cursor = table.cursor(CacheFill::No);
    cursor.seek_first().unwrap();
    let first = cursor.reads();
    assert_eq!(first.blocks_read, 1);
    assert!((200 << 10..=256 << 10).contains(&first.bytes_read), "{first:?}");
    while cursor.entry().is_some() {
        cursor.next().unwrap();
    }
    assert_eq!(cursor.reads().blocks_read, facts.data_blocks);
    assert!(cursor.reads().bytes_read < facts.data_bytes + (16 << 10), "{:?}", cursor.reads());
    assert_eq!((cache.bytes(), cache.hits(), cache.misses()), (0, 0, 0));
}

#[test]
fn a_reader_fills_the_cache_until_its_table_is_removed() {
    let entries: Vec<Entry> =
        (0..100u64).map(|n| Entry::put(n.to_be_bytes(), n, [7; 99])).collect();
    let (disk, facts) = write(&entries, &TableOptions::default());
    let cache = Arc::new(BlockCache::new(1 << 20));
    let table = open(&disk, &cache).unwrap();
    scan(&table, CacheFill::Yes).unwrap();
    assert_eq!((cache.hits(), cache.misses()), (0, facts.data_blocks));
    scan_back(&table, CacheFill::Yes).unwrap();
    assert_eq!((cache.hits(), cache.misses()), (facts.data_blocks, facts.data_blocks));
    assert!(cache.bytes() > facts.data_bytes);
    // Perhaps of another store, which has a table of the same id.
    let other = open(&disk, &cache).unwrap();
    scan(&other, CacheFill::Yes).unwrap();
    assert_eq!(cache.misses(), 2 * facts.data_blocks, "it has blocks of its own");
    other.forget_blocks();
    assert!(cache.bytes() > facts.data_bytes);
    table.forget_blocks();
    assert_eq!(cache.bytes(), 0);
    scan(&table, CacheFill::Yes).unwrap();
    assert_eq!(cache.misses(), 3 * facts.data_blocks);
}

#[test]
fn cache_stays_within_its_capacity() {
    let entries: Vec<Entry> =
        (0..4000u64).map(|n| Entry::put(n.to_be_bytes(), n, [7; 99])).collect();
    let (disk, _) = write(&entries, &TableOptions::default());
    for capacity_bytes in [0, 100_000] {
        let cache = Arc::new(BlockCache::new(capacity_bytes));
        let table = open(&disk, &cache).unwrap();
        assert_eq!(scan(&table, CacheFill::Yes).unwrap(), entries);
        assert!(cache.bytes() <= capacity_bytes);
        assert_eq!(cache.misses() > 0, capacity_bytes > 0);
    }
}

/// A long walk does not evict the blocks of others from the cache. Only its first blocks are added,
/// the others are read many at once.
#[test]
fn continuing_reader_reads_ahead_without_the_cache() {
    let entries: Vec<Entry> =
        (0..4000u64).map(|n| Entry::put(n.to_be_bytes(), n, [7; 99])).collect();
    let (disk, facts) = write(&entries, &TableOptions::default());
    let cache = Arc::new(BlockCache::new(1 << 20));
    let table = open(&disk, &cache).unwrap();
    let mut cursor = table.cursor(CacheFill::Yes);
    cursor.seek_first().unwrap();
    let mut values = Vec::new();
    while cursor.entry().is_some() {
        values.push(cursor.value());
        cursor.next().unwrap();
    }
    assert_eq!(
        (cursor.reads().blocks_read, cursor.reads().bytes_read),
        (facts.data_blocks, facts.data_bytes)
    );
    assert!((1..40_000).contains(&cache.bytes()), "{}", cache.bytes());
    assert!(values.iter().all(|value| value[..] == [7; 99]), "memory in use is not read over");
    assert_eq!(values.len(), entries.len());
}
