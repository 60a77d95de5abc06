//! Records in blocks.

use lsmith_tree::{EntryKind, Key, KeyRange, ProfilePoint, Size, Slice, Table, TableId, key_after};

/// A record: its key as a number, and what it says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: u32,
    pub(super) kind: EntryKind,
}

/// The key that stands for a number in trees and plans.
pub(super) fn block_key(number: u32) -> Key {
    Key::copy_from_slice(&u64::from(number).to_be_bytes())
}

/// The least number whose key is at or above `key`; `None` where all are below.
fn number_from(key: &[u8]) -> Option<u32> {
    let mut first = [0; 8];
    let taken = key.len().min(8);
    first[..taken].copy_from_slice(&key[..taken]);
    let number = u64::from_be_bytes(first) + u64::from(key.len() > 8);
    u32::try_from(number).ok()
}

/// The first and the last number within `range`.
pub(super) fn numbers(range: &KeyRange) -> (u32, u32) {
    let from = number_from(&range.start).unwrap_or(u32::MAX);
    let end = range.end.as_ref().and_then(|end| number_from(end));
    (from, end.map_or(u32::MAX, |end| end.saturating_sub(1)).max(from))
}

/// Sorted records, and where each block begins.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockTable {
    records: Vec<Record>,
    starts: Vec<u32>,
}

impl BlockTable {
    /// Records packed `per_block` to a block.
    pub(super) fn packed(records: Vec<Record>, per_block: usize) -> BlockTable {
        let starts = (0..records.len()).step_by(per_block).map(|start| start as u32).collect();
        BlockTable { records, starts }
    }

    /// Adds a block.
    pub(super) fn push(&mut self, block: &[Record]) {
        self.starts.push(self.records.len() as u32);
        self.records.extend_from_slice(block);
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn block(&self, index: usize) -> &[Record] {
        let end = self.starts.get(index + 1).map_or(self.records.len(), |end| *end as usize);
        &self.records[self.starts[index] as usize..end]
    }

    /// The blocks from index `from` up to `upto`.
    pub(super) fn blocks(&self, from: usize, upto: usize) -> impl Iterator<Item = &[Record]> {
        (from..upto).map(|index| self.block(index))
    }

    /// The blocks whose first keys lie within `range`.
    pub(super) fn within(&self, range: &KeyRange) -> std::ops::Range<usize> {
        let first = |index: &u32| self.records[*index as usize].key;
        let from = |key: &[u8]| match number_from(key) {
            Some(number) => self.starts.partition_point(|start| first(start) < number),
            None => self.starts.len(),
        };
        let upto = range.end.as_ref().map_or(self.starts.len(), |end| from(end));
        from(&range.start)..upto
    }

    /// The slice that shows the blocks of `table` from index `from` up to `upto`.
    pub(super) fn slice(&self, table: &Slice, from: usize, upto: usize) -> Option<Slice> {
        let first = self.block(from).first()?.key;
        let last = self.block(upto - 1).last()?.key;
        let (start, end) = (block_key(first), Some(key_after(&block_key(last))));
        table.clip(&KeyRange { start, end })
    }

    /// What trees know of these records, each of `record_bytes`: a profile point at every border
    /// of a block.
    pub(super) fn facts(&self, id: TableId, record_bytes: u64) -> Table {
        let size = |records: &[Record]| Size {
            bytes: records.len() as u64 * record_bytes,
            entries: records.len() as u64,
            tombstones: 0,
        };
        let (first, last) = (self.records[0].key, self.records[self.records.len() - 1].key);
        let points = (1..self.len()).map(|index| {
            let start = self.starts[index] as usize;
            ProfilePoint {
                key: block_key(self.records[start].key),
                below: size(&self.records[..start]),
                after: Some(key_after(&block_key(self.records[start - 1].key))),
            }
        });
        Table {
            id,
            range: KeyRange::inclusive(&block_key(first), &block_key(last)),
            size: size(&self.records),
            profile: points.collect(),
            ..Table::default()
        }
    }
}
