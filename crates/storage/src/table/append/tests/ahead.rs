//! What cursors that go on fetch together.

use super::*;
use crate::cursor::EntryRef;
use crate::env::{FaultEnv, OpClass};
use crate::table::{AppendCursor, ReadCursor, Table, TableWriter};

const KEYS: u64 = 4000;

const BATCHES: u64 = 10;

fn key(index: u64) -> Vec<u8> {
    format!("{index:08}").into_bytes()
}

fn entry_ref(entry: &Owned) -> EntryRef<'_> {
    EntryRef { key: &entry.key, seq: entry.seq, kind: entry.kind, value: &entry.value }
}

/// A sorted table, and a table of ten batches of every tenth key, with the same entries.
struct Pair {
    appended: Bench,
    sorted: MemEnv,
}

impl Pair {
    fn new(value_bytes: u64, codec: Codec) -> Pair {
        let options = TableOptions { codec, ..TableOptions::default() };
        let mut appended = Bench::new(options);
        let mut dice = Dice(1);
        for batch in 0..BATCHES {
            let numbers = (batch..KEYS).step_by(BATCHES as usize);
            let value = |dice: &mut Dice| {
                let mut value = vec![7; value_bytes as usize];
                value[..8].copy_from_slice(&dice.bytes(8));
                value
            };
            appended.append(numbers.map(|n| entry(key(n), batch + 1, value(&mut dice))).collect());
        }
        let sorted = MemEnv::new();
        let env: Arc<dyn Env> = Arc::new(sorted.clone());
        let mut writer = TableWriter::create(&env, path(), TABLE, &appended.options).unwrap();
        appended.model.iter().for_each(|entry| writer.add(entry_ref(entry)).unwrap());
        writer.finish().unwrap();
        Pair { appended, sorted }
    }

    /// Returns the calls that read both tables, and the bytes that they read, for
    /// ranges of `entries` entries, without maps.
    fn reads(&self, fill: CacheFill, entries: u64) -> [(u64, u64); 2] {
        let cache = || Arc::new(BlockCache::new(1 << 20));
        let env = FaultEnv::over(self.sorted.clone().unmapped());
        let shared: Arc<dyn Env> = Arc::new(env.clone());
        let table = Table::open(&shared, path(), TABLE, cache()).unwrap();
        let (calls, bytes) = (env.count(OpClass::Read), Arc::default());
        let mut cursor = table.cursor(fill);
        cursor.count_in(&bytes);
        read_ranges(&mut cursor, entries, &self.appended.model);
        drop(cursor);
        let sorted = (env.count(OpClass::Read) - calls, bytes.bytes());
        let appended = self.appended_reads(fill, |cursor| {
            read_ranges(cursor, entries, &self.appended.model);
        });
        [sorted, appended]
    }

    /// Returns the calls and the bytes of `read` on the append table, without maps.
    fn appended_reads(&self, fill: CacheFill, read: impl FnOnce(&mut AppendCursor)) -> (u64, u64) {
        let env = FaultEnv::over(self.appended.disk.clone().unmapped());
        let shared: Arc<dyn Env> = Arc::new(env.clone());
        let cache = Arc::new(BlockCache::new(1 << 20));
        let table = AppendTable::open(&shared, path(), TABLE, self.appended.root, cache).unwrap();
        let (calls, bytes) = (env.count(OpClass::Read), Arc::default());
        let mut cursor = table.cursor(fill);
        cursor.count_in(&bytes);
        read(&mut cursor);
        drop(cursor);
        (env.count(OpClass::Read) - calls, bytes.bytes())
    }
}

/// Reads ranges of `entries` entries, far from each other, or all entries.
fn read_ranges(cursor: &mut impl Cursor, entries: u64, model: &[Owned]) {
    let starts = if entries == KEYS { vec![0] } else { vec![100, 1100, 2300, 3500] };
    for start in starts {
        cursor.seek(&key(start)).unwrap();
        for expected in &model[start as usize..(start + entries) as usize] {
            assert_eq!(cursor.entry(), Some(entry_ref(expected)));
            cursor.next().unwrap();
        }
    }
}

#[test]
fn a_scan_of_ten_batches_reads_little_more_than_one_of_a_sorted_table() {
    for value_bytes in [100, 1000, 8000] {
        for codec in [Codec::None, Codec::Lz4] {
            let pair = Pair::new(value_bytes, codec);
            for fill in [CacheFill::Yes, CacheFill::No] {
                let [sorted, appended] = pair.reads(fill, KEYS);
                let what =
                    format!("{value_bytes} B, {codec:?}, {fill:?}: {sorted:?}, {appended:?}");
                // Nodes take a fifth at 100 bytes. They are never compressed, so they take as much
                // as values that are.
                let most = if codec == Codec::None { 1.4 } else { 2.2 };
                assert!(appended.1 as f64 <= sorted.1 as f64 * most, "bytes of {what}");
                // Ten places for each window of up to half a megabyte, and leaves. The first
                // windows are short.
                let windows = KEYS * value_bytes / (512 << 10);
                assert!(appended.0 <= windows * 12 + 80, "calls of {what}");
            }
        }
    }
}

#[test]
fn a_range_of_ten_batches_reads_at_most_twice_what_one_of_a_sorted_table_does() {
    for value_bytes in [1000, 8000] {
        let pair = Pair::new(value_bytes, Codec::None);
        for entries in [100, 400] {
            let [sorted, appended] = pair.reads(CacheFill::Yes, entries);
            let what = format!("{entries} of {value_bytes} B: {sorted:?}, {appended:?}");
            assert!(appended.1 <= sorted.1 * 2, "bytes of {what}");
        }
    }
}

/// Reads `model` from its end to its start.
fn read_back(cursor: &mut AppendCursor, model: &[Owned]) {
    cursor.seek_last().unwrap();
    for expected in model.iter().rev() {
        assert_eq!(cursor.entry(), Some(entry_ref(expected)));
        cursor.prev().unwrap();
    }
    assert!(cursor.entry().is_none());
}

#[test]
fn a_scan_back_reads_as_much_at_once_as_a_scan_forward() {
    for value_bytes in [100, 1000, 8000] {
        for codec in [Codec::None, Codec::Lz4] {
            let pair = Pair::new(value_bytes, codec);
            let model = &pair.appended.model;
            for fill in [CacheFill::Yes, CacheFill::No] {
                let forward = pair.appended_reads(fill, |it| read_ranges(it, KEYS, model));
                let back = pair.appended_reads(fill, |it| read_back(it, model));
                let what = format!("{value_bytes} B, {codec:?}, {fill:?}: {forward:?}, {back:?}");
                assert!(back.0 <= forward.0 * 11 / 10, "calls of {what}");
                assert!(back.1 <= forward.1 * 11 / 10, "bytes of {what}");
            }
        }
    }
}

/// Damage of a block that is read ahead is told when the cursor gets there, not before.
#[test]
fn damage_ahead_does_no_harm_to_entries_in_front_of_it() {
    let pair = Pair::new(300, Codec::None);
    let Bench { disk, model, root, .. } = &pair.appended;
    for maps in [false, true] {
        for fill in [CacheFill::Yes, CacheFill::No] {
            let mut dice = Dice(3);
            for _ in 0..20 {
                let disk = disk.process_crash_clone();
                disk.flip(path(), dice.below(root * 9 / 10), 4).unwrap();
                let bench = Bench { disk, ..pair.appended.clone() };
                let Ok(table) = bench.open_at(*root, maps) else { continue };
                for back in [false, true] {
                    let mut cursor = table.cursor(fill);
                    let mut read = 0;
                    let mut moved = if back { cursor.seek_last() } else { cursor.seek_first() };
                    let at = |read| if back { model.len() - 1 - read } else { read };
                    while moved.is_ok() && cursor.entry().is_some() {
                        assert_eq!(cursor.entry(), Some(entry_ref(&model[at(read)])));
                        read += 1;
                        moved = if back { cursor.prev() } else { cursor.next() };
                    }
                    let Err(error) = moved else {
                        assert_eq!(read, model.len());
                        continue;
                    };
                    assert_eq!(error.kind(), crate::error::ErrorKind::Corruption);
                    assert!(cursor.entry().is_none());
                    // That entry, or its leaf, or a node above, cannot be read alone either.
                    let mut other = table.cursor(fill);
                    assert!(other.seek(&model[at(read)].key).is_err(), "entry {}", at(read));
                }
            }
        }
    }
}

/// An entry that the cursor returns to is the same however it was read ahead.
#[test]
fn turns_in_the_middle_of_what_was_read_ahead() {
    let pair = Pair::new(500, Codec::None);
    let model = &pair.appended.model;
    let mut dice = Dice(9);
    for maps in [false, true] {
        let table = pair.appended.open_at(pair.appended.root, maps).unwrap();
        for fill in [CacheFill::Yes, CacheFill::No] {
            let mut cursor = table.cursor(fill);
            let mut at = dice.below(KEYS / 2) as usize;
            cursor.seek(&key(at as u64)).unwrap();
            for _ in 0..60 {
                for _ in 0..dice.below(90) {
                    assert_eq!(cursor.entry(), Some(entry_ref(&model[at])));
                    cursor.next().unwrap();
                    at += 1;
                }
                for _ in 0..dice.below(70).min(at as u64) {
                    assert_eq!(cursor.entry(), Some(entry_ref(&model[at])));
                    cursor.prev().unwrap();
                    at -= 1;
                }
            }
        }
    }
}
