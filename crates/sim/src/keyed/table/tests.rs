use super::super::entry::Entry;
use super::*;
use lsmith_tree::SeqNo;
use lsmith_tree::{EntryKind, ProfilePoint, key_after};

fn entries(ranks: &[u32], bytes: u32) -> Vec<Entry> {
    let entry = |rank: &u32| Entry::new(*rank, bytes, SeqNo(u64::from(*rank)), EntryKind::Put);
    ranks.iter().map(entry).collect()
}

fn table(entries: Vec<Entry>, by_block: bool) -> KeyedTable<Entry> {
    let mut builder = Builder::new(Layout { block_bytes: 4096, by_block, lives: Lives::Stay });
    entries.into_iter().for_each(|entry| builder.push(entry));
    builder.finish(TableId(1))
}

#[test]
fn any_bound_finds_its_place_among_the_ranks() {
    let entries = entries(&[1, 5, 9], 10);
    let range = |start: Key, end: Option<Key>| within(&entries, &KeyRange { start, end });
    assert_eq!(range(Key::new(), None), 0..3);
    assert_eq!(range(rank_key(5), None), 1..3);
    assert_eq!(range(key_after(&rank_key(5)), None), 2..3);
    assert_eq!(range(Key::new(), Some(rank_key(5))), 0..1);
    assert_eq!(range(Key::new(), Some(key_after(&rank_key(5)))), 0..2);
    // Keys that are no rank's: shorter ones lie below the ranks that they begin.
    assert_eq!(range(Key::from(&[0, 0, 0]), None), 0..3);
    assert_eq!(range(Key::from(&[1]), None), 3..3);
    assert_eq!(range(Key::from(&[255; 9]), None), 3..3);
}

#[test]
fn profile_points_stand_behind_each_multiple_of_the_step() {
    let third = (PROFILE_STEP_BYTES / 3) as u32 + 1;
    let KeyedTable { table, .. } = table(entries(&[0, 1, 2, 3, 4, 5, 6, 7], third), false);
    let points: Vec<_> = table.profile.iter().map(|p| (p.key.clone(), p.below.entries)).collect();
    assert_eq!(points, [(rank_key(3), 3), (rank_key(6), 6)]);
    assert!(table.profile.iter().all(|point| point.after.is_none()));
    assert_eq!(table.range, KeyRange::inclusive(&rank_key(0), &rank_key(7)));
    assert_eq!((table.seq_min, table.seq_max), (SeqNo(0), SeqNo(7)));
}

#[test]
fn profile_points_stand_at_every_border_of_a_block() {
    let mut three = entries(&[2, 4, 6, 8, 10], 1500);
    three.push(Entry::new(12, 9000, SeqNo(20), EntryKind::Put));
    three.push(Entry::new(14, 10, SeqNo(21), EntryKind::Delete));
    let held = table(three, true);
    let point = |p: &ProfilePoint| (p.key.clone(), p.below.entries, p.after.clone());
    let points: Vec<_> = held.table.profile.iter().map(point).collect();
    let expected = [(6, 2, 4), (10, 4, 8), (12, 5, 10), (14, 6, 12)];
    let expected =
        expected.map(|(key, below, last)| (rank_key(key), below, Some(key_after(&rank_key(last)))));
    assert_eq!(points, expected);
    let all = held.part(&KeyRange::ALL);
    let sizes: Vec<u64> = all.blocks().map(|block| block.size().bytes).collect();
    assert_eq!(sizes, [3000, 3000, 1500, 9000, 10]);
    assert_eq!((all.block_count(), all.size()), (5, held.table.size));
}

/// Entries that are put first and cut all at once make the table that they make one by one.
#[test]
fn entries_may_be_cut_behind_them() {
    for by_block in [false, true] {
        let rank = |rank: u32| Entry::new(rank, 1 + rank * 7919 % 5000, SeqNo(9), EntryKind::Put);
        let all: Vec<Entry> = (0..500).map(rank).collect();
        let one_by_one = table(all.clone(), by_block);
        let mut builder = Builder::new(Layout { block_bytes: 4096, by_block, lives: Lives::Stay });
        for some in [&all[..0], &all[..7], &all[7..]] {
            some.iter().for_each(|entry| builder.put(*entry));
            builder.cut_all();
        }
        let at_once = builder.finish(TableId(1));
        assert_eq!((at_once.table, at_once.cells), (one_by_one.table, one_by_one.cells));
    }
}

#[test]
fn parts_of_tables_are_counted_to_the_entry() {
    let ranks: Vec<u32> = (0..20).collect();
    let held = table(entries(&ranks, 1300), true);
    for from in 0..20 {
        for end in from + 1..=20 {
            let range = KeyRange { start: rank_key(from), end: Some(rank_key(end)) };
            let part = held.part(&range);
            let message = format!("{from}..{end}");
            assert_eq!(part.entries().len() as u64, end - from, "{message}");
            assert_eq!(part.size().bytes, (end - from) * 1300, "{message}");
            let blocks: Vec<Part<'_, Entry>> = part.blocks().collect();
            assert_eq!(blocks.len() as u64, (end - 1) / 3 - from / 3 + 1, "{message}");
            assert_eq!(blocks.len() as u64, part.block_count(), "{message}");
            let sizes: Size = blocks.iter().map(Part::size).sum();
            assert_eq!(sizes, part.size(), "{message}");
            let last = blocks[blocks.len() - 1];
            let found = part.last_block();
            assert_eq!((found.from, found.end, found.cell), (last.from, last.end, last.cell));
        }
    }
    assert_eq!(held.part(&KeyRange::new(rank_key(30), rank_key(40))).block_count(), 0);
}
