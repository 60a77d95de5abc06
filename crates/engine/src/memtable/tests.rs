//! Reads under pruning and what a flush makes of a memtable are compared with a whole history in
//! `merge::fold`; here are the cursor, the counts and the threads.

use super::*;
use crate::cursor::Cursor;
use crate::read::vec_cursor::{Owned, VecCursor, calls, compare, key};
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const KEEP_ALL: KeepFrom = KeepFrom(SeqNo(0));

fn insert(memtable: &Memtable, entry: Owned, keep: KeepFrom) {
    let Owned { key, seq, kind, value } = entry;
    memtable.insert(&key, Version { seq, kind, value }, keep);
}

proptest! {
    #[test]
    fn the_cursor_walks_all_versions(
        keys in vec(key(), 0..300),
        calls in calls(),
    ) {
        let memtable = Arc::new(Memtable::new());
        let entries: Vec<_> =
            keys.iter().enumerate().map(|(i, key)| Owned::put(key, i as u64 + 1)).collect();
        for entry in &entries {
            insert(&memtable, entry.clone(), KEEP_ALL);
        }
        compare(&mut VecCursor::new(entries), &mut memtable.cursor(), &calls);
    }

    /// A snapshot is taken, a cursor walks there and back, and between any two steps writers
    /// overwrite and add keys: the snapshot's entries are all shown, in order.
    #[test]
    fn writers_do_not_disturb_a_cursor(
        old in vec(key(), 1..60),
        new in vec(key(), 1..240),
    ) {
        let memtable = Arc::new(Memtable::new());
        let mut entries = Vec::new();
        for (i, key) in old.iter().enumerate() {
            let entry = Owned::put(key, i as u64 + 1);
            insert(&memtable, entry.clone(), KEEP_ALL);
            entries.push(entry);
        }
        let snapshot = SeqNo(old.len() as u64);
        let mut writes = new.iter().zip(snapshot.0 + 1..);
        let mut write = || if let Some((key, seq)) = writes.next() {
            insert(&memtable, Owned::put(key, seq), KeepFrom(snapshot));
        };
        let newest_seen = |entries: &[Owned]| {
            let mut seen: Vec<Owned> =
                entries.iter().filter(|entry| entry.seq <= snapshot).cloned().collect();
            seen.dedup_by(|older, newer| older.key == newer.key);
            seen
        };
        let mut cursor = memtable.cursor();
        let mut forward = Vec::new();
        cursor.seek_first().unwrap();
        while let Some(entry) = cursor.entry() {
            forward.push(Owned::from(entry));
            write();
            cursor.next().unwrap();
        }
        let mut backward = Vec::new();
        cursor.seek_last().unwrap();
        while let Some(entry) = cursor.entry() {
            backward.insert(0, Owned::from(entry));
            write();
            cursor.prev().unwrap();
        }
        crate::read::vec_cursor::sort(&mut entries);
        prop_assert_eq!(newest_seen(&forward), newest_seen(&entries));
        prop_assert_eq!(newest_seen(&backward), newest_seen(&entries));
    }
}

#[test]
fn overwriting_a_key_does_not_grow_the_memtable() {
    let memtable = Memtable::new();
    for seq in 1..=3 {
        insert(&memtable, Owned::put(b"hot", seq), KeepFrom(SeqNo(seq - 1)));
    }
    let (live, allocated) = (memtable.live_bytes(), memtable.allocated_bytes());
    for seq in 4..10 {
        insert(&memtable, Owned::put(b"hot", seq), KeepFrom(SeqNo(seq - 1)));
    }
    assert_eq!(live, 3 + 5 + 8);
    assert_eq!((memtable.live_bytes(), memtable.allocated_bytes()), (live, allocated));
    assert_eq!(memtable.entries(), 1);
    assert_eq!(memtable.seq_range(), Some((SeqNo(1), SeqNo(9))));
}

#[test]
fn versions_held_for_a_snapshot_count_as_memory_only() {
    let memtable = Memtable::new();
    insert(&memtable, Owned::put(b"hot", 1), KEEP_ALL);
    let (live, allocated) = (memtable.live_bytes(), memtable.allocated_bytes());
    insert(&memtable, Owned::put(b"hot", 2), KeepFrom(SeqNo(1)));
    assert_eq!(memtable.live_bytes(), live);
    assert!(memtable.allocated_bytes() > allocated);
}

#[test]
fn a_cancelled_key_counts_nothing_but_is_there() {
    let memtable = Memtable::new();
    assert_eq!((memtable.seq_range(), memtable.key_range()), (None, None));
    insert(&memtable, Owned::put(b"k", 1).with(EntryKind::Insert), KEEP_ALL);
    insert(&memtable, Owned::put(b"k", 2).with(EntryKind::Remove), KeepFrom(SeqNo(1)));
    assert_eq!((memtable.live_bytes(), memtable.entries()), (0, 0));
    assert_eq!(memtable.key_range(), Some((b"k".to_vec(), b"k".to_vec())));
    assert_eq!(memtable.get(b"k", SeqNo(2)).map(|version| version.kind), Some(EntryKind::Remove));
    assert_eq!(memtable.get(b"k", SeqNo(1)).map(|version| version.kind), Some(EntryKind::Insert));
}

/// Readers without a snapshot, while one key is overwritten and pruned as fast as it goes: the
/// key is always there, and never goes back in time.
#[test]
fn the_latest_visible_version_is_never_pruned_under_a_reader() {
    const WRITES: u64 = 100_000;
    let memtable = Memtable::new();
    let visible = AtomicU64::new(1);
    insert(&memtable, Owned::put(b"hot", 1), KEEP_ALL);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut before = SeqNo(1);
                while before < SeqNo(WRITES) {
                    let at_least = visible.load(Ordering::Acquire);
                    let found = memtable.get_latest(b"hot", &visible).expect("was never deleted");
                    assert!(found.seq >= before && found.seq >= SeqNo(at_least));
                    assert_eq!(found.value, Bytes::from(format!("hot@{}", found.seq)));
                    before = found.seq;
                }
            });
        }
        for seq in 2..=WRITES {
            let keep = KeepFrom(SeqNo(visible.load(Ordering::Relaxed)));
            insert(&memtable, Owned::put(b"hot", seq), keep);
            visible.store(seq, Ordering::Release);
        }
    });
}
