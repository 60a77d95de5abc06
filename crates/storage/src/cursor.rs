//! The interface that walks entries in order, in memtables, tables and merged sources.

use crate::error::{Error, ErrorKind, Result};
use crate::reference;
use bytes::Bytes;
use lsmith_tree::{EntryKind, KeyRange, SeqNo, logical_bytes};
use std::cmp::Ordering;

/// The entry under a cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef<'a> {
    /// The user's key.
    pub key: &'a [u8],
    /// The sequence number of its write.
    pub seq: SeqNo,
    /// Put, delete, insert, remove or combine.
    pub kind: EntryKind,
    /// The value; empty for tombstones, the operand for a combine, a
    /// [reference](crate::reference::ValueReference) if the value lies in a value file.
    pub value: &'a [u8],
}

impl EntryRef<'_> {
    /// Returns the length of the value in bytes, wherever it lies.
    #[inline]
    pub fn value_bytes(&self) -> usize {
        if self.kind.is_reference() { reference::value_bytes(self.value) } else { self.value.len() }
    }

    /// Returns the logical bytes of the entry, wherever its value lies.
    #[inline]
    pub fn logical_bytes(&self) -> u64 {
        logical_bytes(self.key.len(), self.value_bytes())
    }
}

/// What is wrong with a table in which a search goes astray.
pub const DISORDER: &str = "expected entries in the order of their keys";

/// Returns the error for entries in a wrong order, of no known table.
#[cold]
pub fn disordered() -> Error {
    Error::new(ErrorKind::Corruption, DISORDER)
}

/// Compares two entries of one key by their sequence numbers, newest first. Sequence number 0 means
/// that the entry no longer knows when it was written. Then, and for equal sequence numbers, the
/// result is `Equal`, and the order of the sources decides. (Only in a knot can sequence numbers
/// disagree with the order of the sources, and a merge into a knot keeps the sequence numbers.)
#[inline]
pub fn newest_first(left: SeqNo, right: SeqNo) -> Ordering {
    match (left, right) {
        (SeqNo(0), _) | (_, SeqNo(0)) => Ordering::Equal,
        _ => right.cmp(&left),
    }
}

/// Walks entries in the store's order: keys ascending, and for one key the newest entry first.
///
/// A new cursor is on no entry. After a call that returned an error, the cursor is on no entry.
pub trait Cursor: Send {
    /// Goes to the first entry.
    fn seek_first(&mut self) -> Result<()>;

    /// Goes to the last entry.
    fn seek_last(&mut self) -> Result<()>;

    /// Takes one step of a [`seek`](Cursor::seek) to `key`. Returns true if another step can
    /// follow. The next call must be that seek, another step, or [`touch`](Cursor::touch). Errors
    /// are left to the seek.
    ///
    /// A caller that seeks in many cursors makes rounds of one step and one touch per cursor, until
    /// no cursor has another step. So the loads from main memory overlap, instead of one waiting
    /// for the other.
    fn approach(&mut self, _key: &[u8]) -> bool {
        false
    }

    /// Does for [`seek_before`](Cursor::seek_before) to `key` what [`approach`](Cursor::approach)
    /// does for a seek.
    fn approach_before(&mut self, _key: &[u8]) -> bool {
        false
    }

    /// Loads the memory that the next step reads, and returns an arbitrary word of it. It does
    /// nothing else, because loads overlap only if there is hardly any code between them.
    fn touch(&self) -> u64 {
        0
    }

    /// Goes to the first entry whose key is `key` or greater.
    fn seek(&mut self, key: &[u8]) -> Result<()>;

    /// Goes to the last entry whose key is less than `key`.
    fn seek_before(&mut self, key: &[u8]) -> Result<()>;

    /// Goes to the next entry, or past the end. The cursor must be on an entry.
    fn next(&mut self) -> Result<()>;

    /// Goes to the previous entry, or before the start. The cursor must be on an entry.
    fn prev(&mut self) -> Result<()>;

    /// Goes to the next entry, and may pass over what the range delete with sequence number `below`
    /// hides in `range`, if that costs less than to visit it: entries with smaller sequence
    /// numbers, and the tombstone that stands for the range delete in memory. The cursor must be on
    /// such an entry.
    fn leap(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        let _ = (range, below);
        self.next()
    }

    /// The reverse of [`leap`](Cursor::leap).
    fn leap_back(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        let _ = (range, below);
        self.prev()
    }

    /// Returns a sequence number that no entry of the table or memtable under the cursor exceeds.
    fn newest(&self) -> SeqNo {
        SeqNo::MAX
    }

    /// Returns the error for entries in a wrong order, as of the table under the cursor.
    fn disorder(&self) -> Error {
        disordered()
    }

    /// Returns the entry under the cursor, or `None` if the cursor is on no entry.
    fn entry(&self) -> Option<EntryRef<'_>>;

    /// Returns true if the cursor knows that its source has no other entry of the current key. The
    /// cursor must be on an entry.
    fn is_alone(&self) -> bool {
        false
    }

    /// Returns true if the cursor has looked at a run on storage.
    fn has_opened(&self) -> bool {
        false
    }

    /// Returns the value under the cursor as a handle that shares its memory if the cursor can do
    /// so without a copy. The cursor must be on an entry.
    fn value(&self) -> Bytes;
}

impl Cursor for Box<dyn Cursor> {
    fn seek_first(&mut self) -> Result<()> {
        (**self).seek_first()
    }

    fn seek_last(&mut self) -> Result<()> {
        (**self).seek_last()
    }

    fn approach(&mut self, key: &[u8]) -> bool {
        (**self).approach(key)
    }

    fn approach_before(&mut self, key: &[u8]) -> bool {
        (**self).approach_before(key)
    }

    fn touch(&self) -> u64 {
        (**self).touch()
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        (**self).seek(key)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        (**self).seek_before(key)
    }

    fn next(&mut self) -> Result<()> {
        (**self).next()
    }

    fn prev(&mut self) -> Result<()> {
        (**self).prev()
    }

    fn leap(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        (**self).leap(range, below)
    }

    fn leap_back(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        (**self).leap_back(range, below)
    }

    fn newest(&self) -> SeqNo {
        (**self).newest()
    }

    fn disorder(&self) -> Error {
        (**self).disorder()
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        (**self).entry()
    }

    fn is_alone(&self) -> bool {
        (**self).is_alone()
    }

    fn has_opened(&self) -> bool {
        (**self).has_opened()
    }

    fn value(&self) -> Bytes {
        (**self).value()
    }
}
