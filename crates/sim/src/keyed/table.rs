//! Tables of entries, and how ranks are written as keys.

use super::entry::Entry;
use lsmith_tree::{Key, KeyRange, PROFILE_STEP_BYTES, ProfilePoint, SeqNo, Size, Table, TableId};
use std::ops::Range;

/// The key that stands for `rank` in trees and plans: its eight bytes, so that order is kept.
pub fn rank_key(rank: u64) -> Key {
    Key::copy_from_slice(&rank.to_be_bytes())
}

/// The least rank whose key is at or above `key`.
fn rank_from(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let bytes = key.len().min(8);
    first[..bytes].copy_from_slice(&key[..bytes]);
    u64::from_be_bytes(first).saturating_add(u64::from(key.len() > 8))
}

/// Which of `entries`, in key order, have their keys in `range`.
pub(super) fn within(entries: &[Entry], range: &KeyRange) -> Range<usize> {
    let place = |key: &[u8]| {
        let rank = rank_from(key);
        entries.partition_point(|entry| u64::from(entry.rank) < rank)
    };
    let from = if range.start.is_empty() { 0 } else { place(&range.start) };
    from..range.end.as_ref().map_or(entries.len(), |end| place(end).max(from))
}

/// What `entries` come to.
pub(super) fn size(entries: &[Entry]) -> Size {
    entries.iter().fold(Size::default(), |size, entry| size + entry_size(*entry))
}

fn entry_size(entry: Entry) -> Size {
    let tombstones = u64::from(entry.kind().is_tombstone());
    Size { bytes: u64::from(entry.bytes), entries: 1, tombstones }
}

/// The facts about a table of `entries`, at least one, in key order. Its profile has a point at
/// the first key behind each multiple of the profile's step, as in tables of the store.
pub(super) fn table(id: TableId, entries: &[Entry]) -> Table {
    let mut table = Table { id, seq_min: SeqNo::MAX, ..Table::default() };
    let mut mark_bytes = PROFILE_STEP_BYTES;
    for entry in entries {
        if table.size.bytes >= mark_bytes {
            let key = rank_key(u64::from(entry.rank));
            table.profile.push(ProfilePoint { key, below: table.size, after: None });
            mark_bytes = (table.size.bytes / PROFILE_STEP_BYTES + 1) * PROFILE_STEP_BYTES;
        }
        table.size += entry_size(*entry);
        table.seq_min = table.seq_min.min(entry.seq());
        table.seq_max = table.seq_max.max(entry.seq());
    }
    let key_of = |entry: &Entry| u64::from(entry.rank).to_be_bytes();
    if let (Some(first), Some(last)) = (entries.first(), entries.last()) {
        table.range = KeyRange::inclusive(&key_of(first), &key_of(last));
    }
    table
}

/// Cuts merged entries into tables: behind each key with which a table has reached `cut_bytes`.
pub(super) fn cut(entries: Vec<Entry>, cut_bytes: Option<u64>) -> Vec<Vec<Entry>> {
    let mut tables = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (index, entry) in entries.iter().enumerate() {
        bytes += u64::from(entry.bytes);
        if cut_bytes.is_some_and(|cut| bytes >= cut) {
            tables.push(entries[from..=index].to_vec());
            (from, bytes) = (index + 1, 0);
        }
    }
    match from {
        0 if entries.is_empty() => {}
        0 => tables.push(entries),
        _ if from < entries.len() => tables.push(entries[from..].to_vec()),
        _ => {}
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_tree::{EntryKind, key_after};

    fn entries(ranks: &[u32], bytes: u32) -> Vec<Entry> {
        let entry = |rank: &u32| Entry::new(*rank, bytes, SeqNo(u64::from(*rank)), EntryKind::Put);
        ranks.iter().map(entry).collect()
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
        assert_eq!(range(Key::from_static(&[0, 0, 0]), None), 0..3);
        assert_eq!(range(Key::from_static(&[1]), None), 3..3);
        assert_eq!(range(Key::from_static(&[255; 9]), None), 3..3);
    }

    #[test]
    fn a_table_ends_with_the_entry_that_fills_it() {
        let cut = |bytes| cut(entries(&[1, 2, 3, 4, 5], 10), bytes).iter().map(Vec::len).collect();
        let lengths: [Vec<usize>; 4] = [cut(Some(20)), cut(Some(11)), cut(Some(50)), cut(None)];
        assert_eq!(lengths, [vec![2, 2, 1], vec![2, 2, 1], vec![5], vec![5]]);
        assert!(super::cut(Vec::new(), None).is_empty());
    }

    #[test]
    fn profile_points_stand_behind_each_multiple_of_the_step() {
        let third = (PROFILE_STEP_BYTES / 3) as u32 + 1;
        let table = table(TableId(1), &entries(&[0, 1, 2, 3, 4, 5, 6, 7], third));
        let points: Vec<_> =
            table.profile.iter().map(|p| (p.key.clone(), p.below.entries)).collect();
        assert_eq!(points, [(rank_key(3), 3), (rank_key(6), 6)]);
        assert_eq!(table.range, KeyRange::inclusive(&rank_key(0), &rank_key(7)));
        assert_eq!((table.seq_min, table.seq_max), (SeqNo(0), SeqNo(7)));
    }
}
