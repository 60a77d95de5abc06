//! Tests of the cursor, the counts and the threads. `fold::tests` compares reads under pruning, and
//! the entries that a flush writes, with a whole history.

use super::*;
use crate::cursor::Cursor;
use crate::read::vec_cursor::{Owned, VecCursor, calls, compare, key};
use crate::sync::atomic::{AtomicU64, Ordering};
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

const KEEP_ALL: KeepFrom = KeepFrom(SeqNo(0));

fn insert(memtable: &Memtable, entry: Owned, keep: KeepFrom) {
    memtable.insert(entry.as_ref(), keep);
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

    /// A cursor walks forward and backward for a snapshot, and between any two steps writers
    /// overwrite and add keys. The cursor shows all entries of the snapshot, in order.
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
    let live = memtable.live_bytes();
    let allocated = memtable.allocated_bytes();
    for seq in 4..10 {
        insert(&memtable, Owned::put(b"hot", seq), KeepFrom(SeqNo(seq - 1)));
    }
    assert_eq!(live, 3 + 5 + 8);
    assert_eq!((memtable.live_bytes(), memtable.allocated_bytes()), (live, allocated));
    assert_eq!(memtable.entries(), 1);
    assert_eq!(memtable.seq_range(), Some((SeqNo(1), SeqNo(9))));
}

#[test]
fn versions_kept_for_a_snapshot_count_as_memory_only() {
    let memtable = Memtable::new();
    insert(&memtable, Owned::put(b"hot", 1), KEEP_ALL);
    let live = memtable.live_bytes();
    let allocated = memtable.allocated_bytes();
    insert(&memtable, Owned::put(b"hot", 2), KeepFrom(SeqNo(1)));
    assert_eq!(memtable.live_bytes(), live);
    assert!(memtable.allocated_bytes() > allocated);
}

#[test]
fn cancelled_key_counts_nothing_but_is_present() {
    let memtable = Memtable::new();
    assert_eq!((memtable.seq_range(), memtable.key_range()), (None, None));
    insert(&memtable, Owned::put(b"k", 1).with(EntryKind::Insert), KEEP_ALL);
    insert(&memtable, Owned::put(b"k", 2).with(EntryKind::Remove), KeepFrom(SeqNo(1)));
    assert_eq!((memtable.live_bytes(), memtable.entries()), (0, 0));
    assert_eq!(memtable.key_range(), Some((b"k".to_vec(), b"k".to_vec())));
    assert_eq!(memtable.get(b"k", SeqNo(2)).map(|version| version.kind), Some(EntryKind::Remove));
    assert_eq!(memtable.get(b"k", SeqNo(1)).map(|version| version.kind), Some(EntryKind::Insert));
}

/// Readers without a snapshot read one key while it is overwritten and pruned as fast as possible.
/// The key is always present, and its versions never go back in time.
#[test]
fn the_latest_visible_version_is_never_pruned_under_a_reader() {
    const WRITES: u64 = 100_000;
    let memtable = Memtable::new();
    let visible = AtomicU64::new(1);
    insert(&memtable, Owned::put(b"hot", 1), KEEP_ALL);
    crate::sync::thread::scope(|scope| {
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

/// Returns keys of many kinds, enough for an index of some levels. Each kind is written in an order
/// of its own, and many keys are written twice.
fn many_keys() -> Vec<Vec<Vec<u8>>> {
    let scattered = |n: u64| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let count = 0..9000_u64;
    vec![
        count.clone().map(|n| scattered(n).to_be_bytes().to_vec()).collect(),
        count.clone().map(|n| format!("a common beginning/{n:010}").into_bytes()).collect(),
        count.clone().rev().map(|n| format!("user{n}").into_bytes()).collect(),
        // Few different bytes, keys of all lengths, many of them prefixes of others.
        count.clone().map(|n| vec![(scattered(n) >> 62) as u8; n as usize % 300]).collect(),
        // Keys that differ in one bit only.
        count.map(|n| (0..40).map(|bit| u8::from(bit == scattered(n) >> 59)).collect()).collect(),
    ]
}

#[test]
fn many_keys_are_found_and_walked_in_order() {
    for keys in many_keys() {
        let memtable = Arc::new(Memtable::new());
        let mut model = std::collections::BTreeMap::new();
        for (index, key) in keys.iter().chain(keys.iter().step_by(3)).enumerate() {
            let mut entry = Owned::put(key, index as u64 + 1);
            // Some values are long, and most differ in length from the values that they overwrite.
            entry.value = Bytes::from(vec![index as u8; [0, 1, 20, 600][index % 4]]);
            memtable.insert(entry.as_ref(), KeepFrom(SeqNo(index as u64)));
            model.insert(key.clone(), entry);
        }
        let live: usize = model.iter().map(|(key, entry)| key.len() + entry.value.len() + 8).sum();
        assert_eq!((memtable.live_bytes(), memtable.entries()), (live as u64, model.len() as u64));
        let first = model.keys().next().unwrap();
        let last = model.keys().next_back().unwrap();
        assert_eq!(memtable.key_range(), Some((first.clone(), last.clone())));
        for (key, entry) in &model {
            let found = memtable.get(key, SeqNo::MAX).unwrap();
            assert_eq!((found.seq, &found.value), (entry.seq, &entry.value));
            let beside = [key, &b"\0"[..]].concat();
            assert_eq!(memtable.get(&beside, SeqNo::MAX).is_some(), model.contains_key(&beside));
        }
        let newest = |cursor: &MemtableCursor| cursor.entry().map(Owned::from);
        let mut cursor = memtable.cursor();
        cursor.seek_first().unwrap();
        for entry in model.values() {
            assert_eq!(newest(&cursor).as_ref(), Some(entry));
            while cursor.entry().is_some_and(|here| here.key == entry.key) {
                cursor.next().unwrap();
            }
        }
        assert_eq!(cursor.entry(), None);
        cursor.seek_last().unwrap();
        for entry in model.values().rev() {
            let mut last = None;
            while cursor.entry().is_some_and(|here| here.key == entry.key) {
                last = newest(&cursor);
                cursor.prev().unwrap();
            }
            assert_eq!(last.as_ref(), Some(entry));
        }
        assert_eq!(cursor.entry(), None);
    }
}

/// Readers and a walker continue while a writer splits their leaves.
#[test]
fn readers_go_on_while_the_index_grows() {
    let keys = &many_keys()[0];
    let (old, new) = keys.split_at(1000);
    let memtable = Arc::new(Memtable::new());
    for (index, key) in old.iter().enumerate() {
        insert(&memtable, Owned::put(key, index as u64 + 1), KEEP_ALL);
    }
    let done = AtomicU64::new(0);
    crate::sync::thread::scope(|scope| {
        scope.spawn(|| {
            while done.load(Ordering::Acquire) == 0 {
                for (index, key) in old.iter().enumerate() {
                    let found = memtable.get(key, SeqNo(1000)).expect("was written before");
                    assert_eq!(found.seq, SeqNo(index as u64 + 1));
                }
            }
        });
        scope.spawn(|| {
            let mut sorted = old.to_vec();
            sorted.sort();
            while done.load(Ordering::Acquire) == 0 {
                let mut cursor = memtable.cursor();
                cursor.seek_first().unwrap();
                let mut seen = Vec::new();
                while let Some(entry) = cursor.entry() {
                    if entry.seq <= SeqNo(1000) {
                        seen.push(entry.key.to_vec());
                    }
                    cursor.next().unwrap();
                }
                assert_eq!(seen, sorted);
            }
        });
        for (index, key) in new.iter().enumerate() {
            insert(&memtable, Owned::put(key, index as u64 + 1001), KeepFrom(SeqNo(1000)));
        }
        done.store(1, Ordering::Release);
    });
    assert_eq!(memtable.entries(), keys.len() as u64);
}

/// Returns an entry with a value of `bytes` bytes.
fn sized(key: &[u8], seq: u64, bytes: usize) -> Owned {
    Owned { value: Bytes::from(vec![seq as u8; bytes]), ..Owned::put(key, seq) }
}

/// Keys are added and overwritten while snapshots are taken and released. Each snapshot sees the
/// entries of its moment, wherever splits have moved the keys since.
#[test]
fn snapshots_see_their_versions_across_splits() {
    const HELD: u64 = 900;
    let memtable = Memtable::new();
    let keys = &many_keys()[0][..3000];
    let mut history: Vec<Vec<Owned>> = vec![Vec::new(); keys.len()];
    let mut snapshot = SeqNo(0);
    for seq in 1..=12_000_u64 {
        // A quarter of the writes are of new keys, the others of existing ones.
        let new = (seq / 4) as usize;
        let old = (seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize;
        let index = if seq % 4 == 0 || new == 0 { new } else { old % new };
        let Some(key) = keys.get(index) else { continue };
        let entry = sized(key, seq, [0, 1, 100, 512, 513, 3000][seq as usize % 6]);
        insert(&memtable, entry.clone(), KeepFrom(snapshot));
        history[index].push(entry);
        if seq % HELD == 0 {
            for (key, versions) in keys.iter().zip(&history) {
                for snapshot in [snapshot, SeqNo(seq)] {
                    let expected = versions.iter().rev().find(|entry| entry.seq <= snapshot);
                    let version = memtable.get(key, snapshot);
                    let found = version.map(|version| (version.seq, version.value));
                    assert_eq!(found, expected.map(|entry| (entry.seq, entry.value.clone())));
                }
            }
            snapshot = SeqNo(seq);
        }
    }
}

/// Also with values of changing lengths, and while snapshots keep versions for some time.
#[test]
fn holes_are_reused_however_often_keys_are_overwritten() {
    let memtable = Memtable::new();
    let keys = &many_keys()[0][..1000];
    let lengths = [0, 3, 8, 20, 100, 512, 700];
    let mut seq = 0;
    let mut largest = Vec::new();
    for _ in 0..4 {
        let mut most = 0;
        for round in 0..35 {
            // Rounds 10 to 13 drop no versions.
            let held = seq;
            for (index, key) in keys.iter().enumerate() {
                seq += 1;
                let keep = if (10..14).contains(&round) { held } else { seq - 1 };
                let entry = sized(key, seq, lengths[(index + round) % lengths.len()]);
                insert(&memtable, entry, KeepFrom(SeqNo(keep)));
            }
            most = most.max(memtable.allocated_bytes());
        }
        largest.push(most);
    }
    assert!(largest[3] <= largest[1] + largest[1] / 50, "{largest:?}");
    assert_eq!(memtable.entries(), keys.len() as u64);
}

#[test]
fn writes_far_from_the_first_one_keep_their_numbers() {
    let memtable = Arc::new(Memtable::new());
    let seqs = [1, 2, (1 << 36) - 1, 1 << 36, (1 << 36) + 1, (1 << 36) + 2, 1 << 60];
    for (index, seq) in seqs.into_iter().enumerate() {
        insert(&memtable, Owned::put(&[index as u8], seq), KEEP_ALL);
    }
    let mut cursor = memtable.cursor();
    cursor.seek_first().unwrap();
    for (index, seq) in seqs.into_iter().enumerate() {
        let expected = Owned::put(&[index as u8], seq);
        assert_eq!(cursor.entry().map(Owned::from), Some(expected.clone()));
        assert_eq!(memtable.get(&[index as u8], SeqNo(seq)).unwrap().value, expected.value);
        assert_eq!(memtable.get(&[index as u8], SeqNo(seq - 1)), None);
        cursor.next().unwrap();
    }
}

#[test]
fn keys_may_be_as_long_as_they_like() {
    let memtable = Arc::new(Memtable::new());
    let long = |index: u8| {
        let mut key = vec![7; 65_535];
        *key.last_mut().unwrap() = index;
        key
    };
    let key = |index: u8| if index.is_multiple_of(2) { long(index) } else { vec![index] };
    let mut model = std::collections::BTreeMap::new();
    for seq in 1..=80 {
        let entry = sized(&key((seq * 37 % 80) as u8), seq, 200);
        insert(&memtable, entry.clone(), KeepFrom(SeqNo(seq - 1)));
        model.insert(entry.key.clone(), entry);
    }
    assert_eq!(model.len(), 80);
    let mut cursor = memtable.cursor();
    cursor.seek_first().unwrap();
    for entry in model.values() {
        assert!(cursor.entry().map(Owned::from).as_ref() == Some(entry), "at {}", entry.seq);
        assert_eq!(memtable.get(&entry.key, SeqNo::MAX).unwrap().value, entry.value);
        cursor.next().unwrap();
    }
    assert!(cursor.entry().is_none());
}

/// Long values lie outside the arena. They were counted only when the arena grew, so that many
/// memtables together held far more than their limit knew.
#[test]
fn long_values_count_as_they_are_written() {
    let all = Arc::new(Chunks::new(0, &Arc::default()));
    let memtable = Memtable::within(&all);
    let mut written = 0;
    for seq in 1..=300 {
        insert(&memtable, sized(&[(seq % 200) as u8], seq, 10_000), KEEP_ALL);
        written += 10_000;
        let held = all.held_bytes();
        assert!(held + 48 * 1024 >= written, "{held} of {written} are counted");
    }
    drop(memtable);
    assert_eq!(all.held_bytes(), 0);
}
