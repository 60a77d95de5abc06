use super::*;
use lsmith_tree::{ProfilePoint, Size, logical_bytes};

#[test]
fn facts_are_those_of_the_entries_and_survive_reopening() {
    for (number, shape) in SHAPES.into_iter().enumerate() {
        let entries = random_entries(&mut Dice(number as u64 + 300), shape);
        let (disk, facts) = write(&entries, &options(512));
        let sum = |count: fn(&Entry) -> u64| entries.iter().map(count).sum::<u64>();
        assert_eq!(facts.table, TABLE);
        assert_eq!(facts.file_bytes, disk.file_bytes(path()).unwrap());
        assert_eq!(facts.size.entries, entries.len() as u64);
        assert_eq!(facts.size.tombstones, sum(|entry| u64::from(entry.kind.is_tombstone())));
        assert_eq!(facts.size.bytes, sum(|e| logical_bytes(e.key.len(), e.value.len())));
        assert_eq!(facts.first_key, entries[0].key);
        assert_eq!(facts.last_key, entries[entries.len() - 1].key);
        assert_eq!(Some(facts.seq_min.0), entries.iter().map(|entry| entry.seq).min());
        assert_eq!(Some(facts.seq_max.0), entries.iter().map(|entry| entry.seq).max());
        let table = open(&disk, &Arc::new(BlockCache::new(0))).unwrap();
        assert_eq!(table.facts(), &facts);
    }
}

/// The profile by its definition: what lies below each key that is the first to start at or
/// behind a multiple of 64 KiB.
fn profile(entries: &[Entry]) -> Vec<ProfilePoint> {
    let (mut points, mut below, mut steps) = (Vec::new(), Size::default(), 0);
    for (index, entry) in entries.iter().enumerate() {
        let new_key = index == 0 || entries[index - 1].key != entry.key;
        if new_key && below.bytes >> 16 > steps {
            steps = below.bytes >> 16;
            points.push(ProfilePoint { key: entry.key.clone().into(), below, after: None });
        }
        below += Size {
            bytes: logical_bytes(entry.key.len(), entry.value.len()),
            entries: 1,
            tombstones: u64::from(entry.kind.is_tombstone()),
        };
    }
    points
}

#[test]
fn the_profile_depends_on_the_entries_alone() {
    let shape = Shape { keys: 2000, versions_max: 8, ..SHAPES[2] };
    let mut entries = random_entries(&mut Dice(1), shape);
    // One value that passes many multiples at once, in the middle.
    let middle = entries.len() / 2;
    entries[middle] =
        Entry { kind: EntryKind::Put, value: vec![1; 300_000], ..entries[middle].clone() };
    let expected = profile(&entries);
    assert!(expected.len() > 100);
    for block_bytes in [1, 4096, 100_000] {
        assert_eq!(write(&entries, &options(block_bytes)).1.profile, expected);
    }
}

#[test]
fn the_first_point_of_a_profile_comes_after_the_first_64_kib() {
    // 64 entries of 1024 logical bytes are 64 KiB: the 65th is the first that starts there.
    let entries: Vec<Entry> =
        (0..65u64).map(|n| Entry::put(n.to_be_bytes(), n, [0; 1008])).collect();
    let of = |count: usize| write(&entries[..count], &TableOptions::default()).1.profile;
    assert_eq!(of(64), []);
    let below = Size { bytes: 65_536, entries: 64, tombstones: 0 };
    assert_eq!(of(65), [ProfilePoint { key: entries[64].key.clone().into(), below, after: None }]);
}

fn overhead(key_bytes: u64, value_bytes: u64, count: u64) -> f64 {
    let mut dice = Dice(8);
    let mut keys: Vec<Vec<u8>> = (0..count).map(|_| dice.bytes(key_bytes, 256)).collect();
    keys.sort();
    let value = vec![1; value_bytes as usize];
    let entries: Vec<Entry> = keys
        .into_iter()
        .map(|key| Entry::put(key, dice.below(10_000_000), value.clone()))
        .collect();
    let facts = write(&entries, &TableOptions::default()).1;
    facts.file_bytes as f64 / facts.size.bytes as f64 - 1.0
}

#[test]
fn a_file_is_hardly_larger_than_its_logical_bytes() {
    let (small, large) = (overhead(16, 100, 40_000), overhead(24, 1000, 8_000));
    assert!(small < 0.015, "{small}");
    assert!(large < 0.01, "{large}");
}

#[test]
fn a_huge_entry_has_a_block_of_its_own() {
    let entries =
        [Entry::put("a", 1, "small"), Entry::put("b", 2, [1; 5000]), Entry::put("c", 3, "small")];
    assert_eq!(write(&entries, &options(4096)).1.data_blocks, 3);
    assert_eq!(write(&entries[1..], &options(4096)).1.data_blocks, 2);
    assert_eq!(write(&entries, &options(9000)).1.data_blocks, 1);
}

#[test]
#[should_panic(expected = "in the order of their keys")]
fn keys_out_of_order_are_the_callers_bug() {
    write(&[Entry::put("b", 1, ""), Entry::put("a", 2, "")], &options(1));
}

#[test]
#[should_panic(expected = "newest first")]
fn versions_out_of_order_are_the_callers_bug() {
    write(&[Entry::put("a", 1, ""), Entry::put("a", 1, "")], &options(1));
}
