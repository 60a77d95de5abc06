//! The versions of one key, of a batch and of the table before it, as one walk.

use super::reader::AppendTable;
use crate::cursor::{EntryRef, newest_first};
use crate::error::Result;
use crate::fold::Walk;
use crate::format::ValueRef;
use lsmith_tree::{EntryKind, SeqNo, Size, logical_bytes};
use std::borrow::Cow;
use std::cmp::Ordering;

/// The [mark](Walk::mark) of entries that the table has.
pub(super) const OLD: u32 = 1;

/// A version that the table has.
#[derive(Debug)]
pub(super) struct OldVersion {
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    /// The reference to the value, as bytes.
    pub(super) reference: Vec<u8>,
}

/// Returns the length of the value that `reference` leads to, which was read before.
pub(super) fn value_bytes(reference: &[u8]) -> usize {
    ValueRef::parse(reference, u64::MAX).map_or(0, |value| value.value_bytes as usize)
}

/// Walks all versions of one key, of the batch and of the table, in the store's order. The walk
/// ends behind each key.
pub(super) struct GroupWalk<'a, C> {
    pub(super) batch: C,
    /// The table before the batch.
    base: Option<&'a AppendTable>,
    /// The key of the walk; empty before the first one.
    pub(super) key: Vec<u8>,
    old: Vec<OldVersion>,
    /// The number of old versions that the walk has passed.
    passed: usize,
}

impl<'a, C: Walk> GroupWalk<'a, C> {
    pub(super) fn new(batch: C, base: Option<&'a AppendTable>) -> GroupWalk<'a, C> {
        GroupWalk { batch, base, key: Vec::new(), old: Vec::new(), passed: 0 }
    }

    /// Starts a walk of the key under the batch. `old` has the versions of the key in the table.
    pub(super) fn enter(&mut self, old: Vec<OldVersion>) {
        self.key.clear();
        if let Some(entry) = self.batch.here() {
            self.key.extend_from_slice(entry.key);
        }
        self.old = old;
        self.passed = 0;
    }

    /// Returns the size of the versions that the table has of the key.
    pub(super) fn old_size(&self) -> Size {
        let of = |old: &OldVersion| Size {
            bytes: logical_bytes(self.key.len(), value_bytes(&old.reference)),
            entries: 1,
            tombstones: u64::from(old.kind.is_tombstone()),
        };
        self.old.iter().map(of).sum()
    }

    fn next_new(&self) -> Option<EntryRef<'_>> {
        self.batch.here().filter(|entry| entry.key == self.key)
    }

    /// Returns the next version of the table, if it comes before the next version of the batch.
    /// With equal sequence numbers, the version of the batch is newer.
    fn next_old(&self) -> Option<&OldVersion> {
        let old = self.old.get(self.passed)?;
        let is_first = |new: EntryRef<'_>| newest_first(new.seq, old.seq) == Ordering::Greater;
        self.next_new().is_none_or(is_first).then_some(old)
    }
}

impl<C: Walk> Walk for GroupWalk<'_, C> {
    fn begin(&mut self) -> Result<()> {
        self.batch.begin()
    }

    fn advance(&mut self) -> Result<()> {
        if self.next_old().is_some() {
            self.passed += 1;
            return Ok(());
        }
        self.batch.advance()
    }

    fn here(&self) -> Option<EntryRef<'_>> {
        match self.next_old() {
            Some(OldVersion { seq, kind, reference }) => {
                Some(EntryRef { key: &self.key, seq: *seq, kind: *kind, value: reference })
            }
            None => self.next_new(),
        }
    }

    fn read_value(&self) -> Result<Cow<'_, [u8]>> {
        match (self.next_old(), self.base) {
            (Some(old), Some(base)) => base.read_value(&old.reference).map(Cow::Owned),
            _ => Ok(Cow::Borrowed(self.next_new().map_or(&[], |entry| entry.value))),
        }
    }

    fn mark(&self) -> u32 {
        if self.next_old().is_some() { OLD } else { 0 }
    }
}
