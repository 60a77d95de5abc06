//! The entries of a merge, as one walk for each table.

use super::super::{InputCursor, Merger, ReservedPlan};
use crate::keyspace::KeyspaceShared;
use crate::throttle::PACE_BYTES;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::error::Result;
use lsmith_storage::fold::{Fold, FoldCounts, Walk};
use lsmith_tree::{CutWalk, Key, MergePlan, Size, logical_bytes};

/// Walks the entries that a merge writes. The walk ends where the entries of a table end, and goes
/// on from there for the next table. All versions of a key go to one table.
pub(super) struct TablesWalk<'a, B> {
    merger: &'a Merger,
    keyspace: &'a KeyspaceShared,
    fold: Fold<InputCursor, B>,
    /// True if the last entry of the fold is the next one of the walk.
    has_entry: bool,
    /// The first key that does not belong to the part.
    end: Option<Key>,
    /// Logical bytes at which a table is cut, and the bytes of the table so far.
    cut_bytes: u64,
    bytes: u64,
    /// Keys at which tables are cut whatever their size.
    cuts: CutWalk<Key>,
    /// True if the next entry belongs to the next table of the part.
    is_cut: bool,
    last_key: Vec<u8>,
    entries: u64,
    /// Logical bytes since the last call of the throttle. `None` without a limit.
    unpaced_bytes: Option<u64>,
}

impl<'a, B: FnMut(&[u8]) -> bool> TablesWalk<'a, B> {
    /// Returns a walk over the entries of `fold`. Tables are cut at `cuts`.
    pub(super) fn new(
        merger: &'a Merger,
        mut fold: Fold<InputCursor, B>,
        reserved: &'a ReservedPlan,
        cuts: Vec<Key>,
    ) -> Result<TablesWalk<'a, B>> {
        let mut cuts = CutWalk::new(cuts);
        let has_entry = match fold.next_entry()? {
            Some(first) => {
                // A cut in front of the first entry cuts nothing.
                cuts.passes(|cut| **cut <= *first.key);
                true
            }
            None => false,
        };
        Ok(TablesWalk {
            merger,
            keyspace: &reserved.keyspace,
            fold,
            has_entry,
            end: None,
            cut_bytes: u64::MAX,
            bytes: 0,
            cuts,
            is_cut: false,
            last_key: Vec::new(),
            entries: 0,
            unpaced_bytes: reserved.is_limited().then_some(0),
        })
    }

    /// Enters the part that ends in front of `end`. Its tables are cut at `cut_bytes`.
    pub(super) fn enter(&mut self, end: Option<Key>, cut_bytes: u64) {
        self.end = end;
        self.cut_bytes = cut_bytes;
        self.begins_table();
    }

    /// Begins the next table of the part. Returns false if the part has no more entries.
    pub(super) fn begins_table(&mut self) -> bool {
        self.is_cut = false;
        self.bytes = 0;
        self.next_entry().is_some()
    }

    /// Returns the counts of the fold, and the size taken from each input.
    pub(super) fn end(self) -> (FoldCounts, Vec<Size>) {
        debug_assert!(!self.has_entry, "all entries went to tables");
        (self.fold.counts(), self.fold.walk().taken_each())
    }

    #[inline]
    fn next_entry(&self) -> Option<EntryRef<'_>> {
        let entry = (self.has_entry && !self.is_cut).then(|| self.fold.last_entry())?;
        self.end.as_ref().is_none_or(|end| *entry.key < **end).then_some(entry)
    }

    fn advance(&mut self) -> Result<()> {
        let entry = self.fold.last_entry();
        let bytes = logical_bytes(entry.key.len(), entry.value.len());
        self.bytes += bytes;
        self.last_key.clear();
        self.last_key.extend_from_slice(entry.key);
        self.entries += 1;
        self.merger.check_open(self.keyspace, self.entries)?;
        if let Some(unpaced) = &mut self.unpaced_bytes {
            *unpaced += bytes;
            if *unpaced >= PACE_BYTES {
                self.merger.throttle.keep_pace(std::mem::take(unpaced));
            }
        }
        let Some(next) = self.fold.next_entry()? else {
            self.has_entry = false;
            return Ok(());
        };
        if next.key != self.last_key {
            let passed = self.cuts.passes(|cut| **cut <= *next.key);
            let bytes = logical_bytes(next.key.len(), next.value.len());
            self.is_cut = passed || MergePlan::ends_append(self.bytes, bytes, self.cut_bytes);
        }
        Ok(())
    }
}

/// The walk over the entries of one table.
pub(super) struct OneTable<'w, 'a, B>(pub(super) &'w mut TablesWalk<'a, B>);

impl<B: FnMut(&[u8]) -> bool> Walk for OneTable<'_, '_, B> {
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn advance(&mut self) -> Result<()> {
        self.0.advance()
    }

    #[inline]
    fn here(&self) -> Option<EntryRef<'_>> {
        self.0.next_entry()
    }
}
