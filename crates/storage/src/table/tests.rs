mod cursor;
mod damage;
mod facts;
mod get;
mod outside;
mod prefixes;
#[cfg(all(feature = "lz4", feature = "zstd"))]
mod values;
mod verify;
mod visible;

use super::{BlockCache, CacheFill, ReadCount, Table, TableFacts, TableOptions, TableWriter};
use crate::cursor::{Cursor, EntryRef};
use crate::env::{Env, MemEnv};
use crate::error::Result;
use crate::format::key_hash;
use crate::table::ReadTable;
use bytes::Bytes;
use lsmith_spec::random;
use lsmith_tree::{EntryKind, KeyRange, SeqNo};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const TABLE: u64 = 42;

/// An entry of the model. A table must behave like a sorted list of these.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    key: Vec<u8>,
    seq: u64,
    kind: EntryKind,
    value: Vec<u8>,
}

impl Entry {
    fn put(key: impl Into<Vec<u8>>, seq: u64, value: impl Into<Vec<u8>>) -> Entry {
        Entry { key: key.into(), seq, kind: EntryKind::Put, value: value.into() }
    }

    fn as_ref(&self) -> EntryRef<'_> {
        EntryRef { key: &self.key, seq: SeqNo(self.seq), kind: self.kind, value: &self.value }
    }
}

/// A version of a key, as a lookup returns it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FoundEntry {
    seq: SeqNo,
    kind: EntryKind,
    value: Bytes,
}

impl Table {
    fn get(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Option<FoundEntry>> {
        let is_excluded = self.excludes(key_hash(key), reads);
        let found = if is_excluded { None } else { self.search(key, snapshot, reads)? };
        Ok(found.map(|(block, slot)| {
            let value = block.shared_value(&slot);
            assert_eq!(value, block.value(&slot));
            FoundEntry { seq: slot.seq, kind: slot.kind, value }
        }))
    }
}

/// Pseudo-random numbers that are always the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        random::next(&mut self.0) % limit
    }

    fn bytes(&mut self, length: u64, letters: u64) -> Vec<u8> {
        (0..length).map(|_| self.below(letters) as u8).collect()
    }
}

/// The parameters of a random table.
#[derive(Clone, Copy, Debug)]
struct Shape {
    keys: u64,
    key_bytes_max: u64,
    letters: u64,
    versions_max: u64,
    value_bytes_max: u64,
    /// One value in this many has 10,000 bytes.
    huge_one_in: u64,
}

const SHAPES: [Shape; 5] = [
    // Many short keys that share prefixes, one version each.
    Shape {
        keys: 400,
        key_bytes_max: 8,
        letters: 3,
        versions_max: 1,
        value_bytes_max: 40,
        huge_one_in: 10_000,
    },
    // Many versions, which fill whole blocks.
    Shape {
        keys: 40,
        key_bytes_max: 4,
        letters: 3,
        versions_max: 40,
        value_bytes_max: 30,
        huge_one_in: 10_000,
    },
    // Huge entries among small ones.
    Shape {
        keys: 60,
        key_bytes_max: 30,
        letters: 256,
        versions_max: 2,
        value_bytes_max: 100,
        huge_one_in: 5,
    },
    // Long keys, mostly without values.
    Shape {
        keys: 80,
        key_bytes_max: 600,
        letters: 2,
        versions_max: 3,
        value_bytes_max: 1,
        huge_one_in: 10_000,
    },
    Shape {
        keys: 1,
        key_bytes_max: 1,
        letters: 256,
        versions_max: 1,
        value_bytes_max: 9,
        huge_one_in: 10_000,
    },
];

fn random_entries(dice: &mut Dice, shape: Shape) -> Vec<Entry> {
    let mut keys = BTreeMap::new();
    for _ in 0..shape.keys {
        let length = 1 + dice.below(shape.key_bytes_max);
        keys.insert(dice.bytes(length, shape.letters), 1 + dice.below(shape.versions_max));
    }
    let mut entries = Vec::new();
    for (key, versions) in keys {
        let mut seq = 1_000_000 + dice.below(1000);
        for _ in 0..versions {
            let kind = EntryKind::from_byte(dice.below(4) as u8).expect("four kinds");
            let length = match (kind.is_tombstone(), dice.below(shape.huge_one_in)) {
                (true, _) => 0,
                (false, 0) => 10_000,
                (false, _) => dice.below(shape.value_bytes_max),
            };
            entries.push(Entry { key: key.clone(), seq, kind, value: dice.bytes(length, 256) });
            seq -= 1 + dice.below(5);
        }
    }
    entries
}

fn options(block_bytes: usize) -> TableOptions {
    TableOptions { block_bytes, ..TableOptions::default() }
}

fn path() -> &'static Path {
    Path::new("/42.table")
}

/// Writes `entries` as table [`TABLE`] to a new disk.
fn write(entries: &[Entry], options: &TableOptions) -> (Arc<MemEnv>, TableFacts) {
    let disk = Arc::new(MemEnv::new());
    let env: Arc<dyn Env> = disk.clone();
    let mut writer = TableWriter::create(&env, path(), TABLE, options).unwrap();
    for entry in entries {
        writer.add(entry.as_ref()).unwrap();
    }
    assert_eq!(writer.entries(), entries.len() as u64);
    let logical_bytes = writer.logical_bytes();
    let facts = writer.finish().unwrap();
    assert_eq!(facts.size.bytes, logical_bytes);
    (disk, facts)
}

/// Opens the table on `disk` through `cache`, without a map.
fn open(disk: &Arc<MemEnv>, cache: &Arc<BlockCache>) -> crate::Result<Arc<Table>> {
    let env: Arc<dyn Env> = Arc::new(MemEnv::clone(disk).unmapped());
    Table::open(&env, path(), TABLE, cache.clone())
}

/// Returns a copy of `disk` whose file at [`path`] is changed by `change`.
fn changed(disk: &Arc<MemEnv>, change: impl FnOnce(&mut Vec<u8>)) -> Arc<MemEnv> {
    let mut bytes = vec![0; disk.file_bytes(path()).unwrap() as usize];
    disk.open(path()).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    change(&mut bytes);
    let disk = Arc::new(MemEnv::new());
    let mut file = disk.create(path()).unwrap();
    file.write_all(&bytes).unwrap();
    file.sync().unwrap();
    disk
}

/// Returns a table of `entries`, with a cache that holds some of its blocks.
fn table(entries: &[Entry], options: &TableOptions) -> Arc<Table> {
    open(&write(entries, options).0, &Arc::new(BlockCache::new(64 * 1024))).unwrap()
}

fn here(cursor: &impl Cursor) -> Option<Entry> {
    let entry = cursor.entry()?;
    assert_eq!(cursor.value(), entry.value);
    let key = entry.key.to_vec();
    let value = entry.value.to_vec();
    Some(Entry { key, seq: entry.seq.0, kind: entry.kind, value })
}

/// Returns all entries of a table, from first to last.
fn scan(table: &Arc<Table>, fill: CacheFill) -> crate::Result<Vec<Entry>> {
    let mut cursor = table.cursor(fill);
    let mut entries = Vec::new();
    cursor.seek_first()?;
    while let Some(entry) = here(&cursor) {
        entries.push(entry);
        cursor.next()?;
    }
    Ok(entries)
}

/// Returns all entries of a table, from last to first.
fn scan_back(table: &Arc<Table>, fill: CacheFill) -> crate::Result<Vec<Entry>> {
    let mut cursor = table.cursor(fill);
    let mut entries = Vec::new();
    cursor.seek_last()?;
    while let Some(entry) = here(&cursor) {
        entries.push(entry);
        cursor.prev()?;
    }
    Ok(entries)
}
