use super::*;
use crate::error::ErrorKind;
use crate::table::{ProfileGrain, ReadTable};
use lsmith_tree::blocks::fits;
use lsmith_tree::{ProfilePoint, Size, key_after, logical_bytes};

#[test]
fn facts_agree_with_the_entries_and_survive_reopening() {
    for (index, shape) in SHAPES.into_iter().enumerate() {
        let entries = random_entries(&mut Dice(index as u64 + 300), shape);
        let (disk, facts) = write(&entries, &options(512));
        let sum = |count: fn(&Entry) -> u64| entries.iter().map(count).sum::<u64>();
        assert_eq!(facts.table, TABLE);
        assert_eq!(facts.file_bytes, disk.file_bytes(path()).unwrap());
        assert_eq!(facts.size.entries, entries.len() as u64);
        assert_eq!(facts.size.tombstones, sum(|entry| u64::from(entry.kind.is_tombstone())));
        assert_eq!(facts.size.bytes, sum(|e| logical_bytes(e.key.len(), e.value.len())));
        assert_eq!(*facts.first_key, entries[0].key);
        assert_eq!(*facts.last_key, entries[entries.len() - 1].key);
        assert_eq!(Some(facts.seq_min.0), entries.iter().map(|entry| entry.seq).min());
        assert_eq!(Some(facts.seq_max.0), entries.iter().map(|entry| entry.seq).max());
        let table = open(&disk, &Arc::new(BlockCache::new(0))).unwrap();
        assert_eq!(opened(&table), facts);
    }
}

/// Returns the facts of an open table, with the profile.
fn opened(table: &Table) -> TableFacts {
    TableFacts { profile: table.tree_table().profile.to_vec(), ..table.facts().clone() }
}

/// Computes the profile from its definition: the size below each key that is the first to start at
/// or behind a multiple of 64 KiB.
fn profile(entries: &[Entry]) -> Vec<ProfilePoint> {
    let mut points = Vec::new();
    let mut below = Size::default();
    let mut steps = 0;
    for (index, entry) in entries.iter().enumerate() {
        let new_key = index == 0 || entries[index - 1].key != entry.key;
        if new_key && below.bytes >> 16 > steps {
            steps = below.bytes >> 16;
            points.push(ProfilePoint { key: entry.key.clone().into(), below, after: None });
        }
        below += size(entry);
    }
    points
}

fn size(entry: &Entry) -> Size {
    Size {
        bytes: logical_bytes(entry.key.len(), entry.value.len()),
        entries: 1,
        tombstones: u64::from(entry.kind.is_tombstone()),
    }
}

/// Computes the profile by blocks from its definition, and the number of blocks.
fn block_profile(entries: &[Entry], block_bytes: u64) -> (Vec<ProfilePoint>, u64) {
    let mut points = Vec::new();
    let mut below = Size::default();
    let mut open = 0;
    let mut blocks = 1;
    for (index, entry) in entries.iter().enumerate() {
        let bytes = size(entry).bytes;
        if !fits(block_bytes, open, bytes) {
            open = 0;
            blocks += 1;
            let last = &entries[index - 1].key;
            if *last != entry.key {
                let after = Some(key_after(last));
                points.push(ProfilePoint { key: entry.key.clone().into(), below, after });
            }
        }
        open += bytes;
        below += size(entry);
    }
    (points, blocks)
}

#[test]
fn blocks_are_cut_by_logical_bytes_and_can_be_seen_in_the_profile() {
    for (index, shape) in SHAPES.into_iter().enumerate() {
        let entries = random_entries(&mut Dice(index as u64 + 500), shape);
        for block_bytes in [1, 200, 4096] {
            let options = TableOptions { grain: ProfileGrain::Blocks, ..options(block_bytes) };
            let (disk, facts) = write(&entries, &options);
            let (expected, blocks) = block_profile(&entries, block_bytes as u64);
            assert_eq!((&facts.profile, facts.data_blocks), (&expected, blocks));
            let table = open(&disk, &Arc::new(BlockCache::new(0))).unwrap();
            assert_eq!(opened(&table), facts);
            table.verify(&[KeyRange::ALL]).unwrap();
        }
    }
}

#[test]
fn block_can_be_ended_early() {
    let disk: Arc<dyn Env> = Arc::new(MemEnv::new());
    let options = TableOptions { grain: ProfileGrain::Blocks, ..options(4096) };
    let mut writer = TableWriter::create(&disk, path(), TABLE, &options).unwrap();
    for (key, ends) in [("a", false), ("b", true), ("c", true), ("d", false)] {
        writer.add(Entry::put(key, 1, "value").as_ref()).unwrap();
        if ends {
            writer.end_block().unwrap();
            writer.end_block().unwrap();
        }
    }
    let facts = writer.finish().unwrap();
    assert_eq!(facts.data_blocks, 3);
    let keys: Vec<_> = facts.profile.iter().map(|point| &point.key[..]).collect();
    assert_eq!(keys, [b"c", b"d"]);
    let table = Table::open(&disk, path(), TABLE, Arc::new(BlockCache::new(0))).unwrap();
    table.verify(&[KeyRange::ALL]).unwrap();
}

#[test]
fn the_profile_depends_on_the_entries_alone() {
    let shape = Shape { keys: 2000, versions_max: 8, ..SHAPES[2] };
    let mut entries = random_entries(&mut Dice(1), shape);
    // One value in the middle crosses many multiples at once.
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
    let small = overhead(16, 100, 40_000);
    let large = overhead(24, 1000, 8_000);
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

/// Merges read tables that may be damaged, so a bad entry is no bug of the caller.
#[test]
fn invalid_entries_are_refused() {
    let disk: Arc<dyn Env> = Arc::new(MemEnv::new());
    for (index, (last, message)) in [
        (Entry::put("a", 2, ""), "entries do not come in the order of their keys"),
        (Entry::put("b", 1, ""), "versions of a key do not come newest first"),
        (Entry::put("", 1, ""), "a key is empty or too long"),
        (Entry { kind: EntryKind::Delete, ..Entry::put("c", 1, "x") }, "a tombstone has a value"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = Path::new("/").join(index.to_string());
        let mut writer = TableWriter::create(&disk, &path, TABLE, &options(1)).unwrap();
        writer.add(Entry::put("b", 1, "").as_ref()).unwrap();
        let error = writer.add(last.as_ref()).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path)));
        assert!(error.to_string().starts_with(message), "{error}");
    }
}
