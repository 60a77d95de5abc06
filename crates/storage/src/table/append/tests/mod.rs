mod ahead;
mod damage;
mod expiry;
mod figures;
mod fuzz;
mod model;
mod prefixes;
mod remains;
mod shapes;

use super::{AppendTable, Appended, BatchRules};
use crate::cursor::Cursor;
use crate::env::{Env, MemEnv};
use crate::error::Result;
use crate::fold::Fold;
use crate::format::{Codec, key_hash, prefix_hash_of};
use crate::read::vec_cursor::{Owned, VecCursor};
use crate::table::{BlockCache, CacheFill, ReadCount, ReadTable, TableOptions};
use bytes::Bytes;
use lsmith_spec::random;
use lsmith_tree::{EntryKind, KeyRange, SeqNo, Size, logical_bytes};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const TABLE: u64 = 42;

fn path() -> &'static Path {
    Path::new("/42.table")
}

fn entry(key: impl AsRef<[u8]>, seq: u64, value: impl AsRef<[u8]>) -> Owned {
    Owned {
        key: Bytes::copy_from_slice(key.as_ref()),
        seq: SeqNo(seq),
        kind: EntryKind::Put,
        value: Bytes::copy_from_slice(value.as_ref()),
    }
}

fn deletion(key: impl AsRef<[u8]>, seq: u64) -> Owned {
    entry(key, seq, b"").with(EntryKind::Delete)
}

/// A disk with one append table, and what the table must hold.
#[derive(Clone)]
struct Bench {
    disk: MemEnv,
    options: TableOptions,
    cache: Arc<BlockCache>,
    /// The name of the newest root; 0 before the first batch.
    root: u64,
    /// All entries, in order.
    model: Vec<Owned>,
    appended_bytes: u64,
}

impl Bench {
    fn new(options: TableOptions) -> Bench {
        Bench {
            disk: MemEnv::new(),
            options,
            cache: Arc::new(BlockCache::new(64 * 1024)),
            root: 0,
            model: Vec::new(),
            appended_bytes: 0,
        }
    }

    fn small() -> Bench {
        Bench::new(TableOptions { block_bytes: 300, ..TableOptions::default() })
    }

    fn open_at(&self, root: u64, maps: bool) -> Result<Arc<AppendTable>> {
        let disk = if maps { self.disk.clone() } else { self.disk.clone().unmapped() };
        let env: Arc<dyn Env> = Arc::new(disk);
        AppendTable::open(&env, path(), TABLE, root, Arc::clone(&self.cache))
    }

    fn open(&self) -> Arc<AppendTable> {
        self.open_at(self.root, false).unwrap()
    }

    /// Appends `batch`, whose entries are in order. Neither snapshots nor anything beneath.
    fn append(&mut self, batch: Vec<Owned>) -> Appended {
        self.append_with(batch, &[], true)
    }

    /// Appends `batch`. `snapshots` are the live ones, newest first.
    fn append_with(
        &mut self,
        batch: Vec<Owned>,
        snapshots: &[SeqNo],
        nothing_beneath: bool,
    ) -> Appended {
        let snapshots = snapshots.to_vec();
        let rules = BatchRules {
            snapshots,
            nothing_beneath: move |_: &[u8]| nothing_beneath,
            forgets: false,
            operators: None,
            hiding: crate::fold::Hiding::default(),
        };
        let walk = VecCursor::new(batch.clone());
        let done = match self.root {
            0 => {
                let file = self.disk.create(path()).unwrap();
                let options = &self.options;
                AppendTable::create(file, path(), TABLE, options, walk, rules.clone()).unwrap()
            }
            _ => self.open().append(&self.options, walk, rules.clone()).unwrap(),
        };
        self.root = done.root;
        self.appended_bytes += done.written.bytes + done.replaced_bytes;
        self.expect_batch(&batch, &rules.snapshots, nothing_beneath);
        done
    }

    /// Changes the model as a merge of the batch and of the old versions of its keys would.
    fn expect_batch(&mut self, batch: &[Owned], snapshots: &[SeqNo], nothing_beneath: bool) {
        let mut keys: BTreeMap<Bytes, Vec<Owned>> = BTreeMap::new();
        for entry in batch {
            keys.entry(entry.key.clone()).or_default().push(entry.clone());
        }
        for (key, mut versions) in keys {
            let start = self.model.partition_point(|entry| entry.key < key);
            let end = self.model.partition_point(|entry| entry.key <= key);
            versions.extend(self.model[start..end].iter().cloned());
            let walk = VecCursor::new(versions);
            let mut fold = Fold::new(walk, snapshots.to_vec(), |_: &[u8]| nothing_beneath).unwrap();
            let mut left = Vec::new();
            while let Some(entry) = fold.next_entry().unwrap() {
                left.push(Owned::from(entry));
            }
            self.model.splice(start..end, left);
        }
    }

    /// Checks everything that can be asked of the newest root.
    fn check(&self) {
        for maps in [false, true] {
            let table = self.open_at(self.root, maps).unwrap();
            check_table(&table, &self.model);
            check_prefixes(&table, &self.model);
            assert_eq!(table.appended_bytes(), self.appended_bytes);
        }
    }
}

fn size_of(entries: &[Owned]) -> Size {
    let of = |entry: &Owned| Size {
        bytes: logical_bytes(entry.key.len(), entry.value.len()),
        entries: 1,
        tombstones: u64::from(entry.kind.is_tombstone()),
    };
    entries.iter().map(of).sum()
}

/// Asserts that the filter excludes no prefix of a key.
fn check_prefixes(table: &AppendTable, model: &[Owned]) {
    let prefix_bytes = table.facts().prefix_bytes;
    let hashes = model.iter().filter_map(|entry| prefix_hash_of(&entry.key, prefix_bytes));
    for hash in hashes {
        assert!(!table.excludes(hash, &mut ReadCount::default()), "of {prefix_bytes} bytes");
    }
}

fn check_table(table: &Arc<AppendTable>, model: &[Owned]) {
    table.verify(&[KeyRange::ALL]).unwrap();
    let mut keys: Vec<&Bytes> = model.iter().map(|entry| &entry.key).collect();
    keys.dedup();
    assert_eq!(table.keys(), keys.len() as u64);
    assert_eq!(table.facts().size, size_of(model));
    assert_eq!(table.tree_table().size, size_of(model));
    if let (Some(first), Some(last)) = (model.first(), model.last()) {
        assert_eq!(
            (&*table.facts().first_key, &*table.facts().last_key),
            (&first.key[..], &last.key[..])
        );
    }
    for fill in [CacheFill::Yes, CacheFill::No] {
        assert_eq!(scan(table, fill).unwrap(), model);
        let mut back = scan_back(table, fill).unwrap();
        back.reverse();
        assert_eq!(back, model);
    }
    for entry in model {
        assert_eq!(get(table, &entry.key, entry.seq).unwrap().as_ref(), Some(entry));
        let beside = [&entry.key[..], b"!"].concat();
        if model.binary_search_by(|other| other.key[..].cmp(&beside)).is_err() {
            assert_eq!(get(table, &beside, SeqNo::MAX).unwrap(), None);
        }
    }
    check_seeks(table, model);
}

/// Compares seeks and steps with a sorted list.
fn check_seeks(table: &Arc<AppendTable>, model: &[Owned]) {
    let mut cursor = table.cursor(CacheFill::Yes);
    let mut expected = VecCursor::new(model.to_vec());
    let step = (model.len() / 40).max(1);
    for entry in model.iter().step_by(step) {
        let cut = &entry.key[..entry.key.len() - 1];
        for target in [&entry.key[..], cut, &[&entry.key[..], b"\0"].concat()] {
            cursor.seek(target).unwrap();
            expected.seek(target).unwrap();
            assert_eq!(cursor.entry(), expected.entry());
            if cursor.entry().is_some() {
                cursor.prev().unwrap();
                expected.prev().unwrap();
                assert_eq!(cursor.entry(), expected.entry());
            }
            cursor.seek_before(target).unwrap();
            expected.seek_before(target).unwrap();
            assert_eq!(cursor.entry(), expected.entry());
            if cursor.entry().is_some() {
                cursor.next().unwrap();
                expected.next().unwrap();
                assert_eq!(cursor.entry(), expected.entry());
            }
        }
    }
}

/// Returns the newest version of `key` up to `seq`.
fn get(table: &AppendTable, key: &[u8], seq: SeqNo) -> Result<Option<Owned>> {
    let mut reads = ReadCount::default();
    let is_excluded = table.excludes(key_hash(key), &mut reads);
    let found = if is_excluded { None } else { table.search(key, seq, &mut reads)? };
    Ok(found.map(|(block, slot)| Owned {
        key: Bytes::copy_from_slice(key),
        seq: slot.seq,
        kind: slot.kind,
        value: block.shared_value(&slot),
    }))
}

fn scan(table: &Arc<AppendTable>, fill: CacheFill) -> Result<Vec<Owned>> {
    let mut cursor = table.cursor(fill);
    let mut entries = Vec::new();
    cursor.seek_first()?;
    while let Some(entry) = cursor.entry() {
        assert_eq!(cursor.value(), entry.value);
        entries.push(Owned::from(entry));
        cursor.next()?;
    }
    Ok(entries)
}

fn scan_back(table: &Arc<AppendTable>, fill: CacheFill) -> Result<Vec<Owned>> {
    let mut cursor = table.cursor(fill);
    let mut entries = Vec::new();
    cursor.seek_last()?;
    while let Some(entry) = cursor.entry() {
        entries.push(Owned::from(entry));
        cursor.prev()?;
    }
    Ok(entries)
}

/// Pseudo-random numbers that are always the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        random::next(&mut self.0) % limit
    }

    fn bytes(&mut self, length: u64) -> Vec<u8> {
        (0..length).map(|_| self.below(256) as u8).collect()
    }
}
