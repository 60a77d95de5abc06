//! One interface to walk entries in order, whatever holds them.

use crate::error::Result;
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};
use std::cmp::Ordering;

/// The entry that a cursor stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef<'a> {
    /// The user's key.
    pub key: &'a [u8],
    /// When it was written.
    pub seq: SeqNo,
    /// What it says.
    pub kind: EntryKind,
    /// The value; empty for tombstones.
    pub value: &'a [u8],
}

/// The order of two entries of one key, newest first, as far as their numbers say it. An entry with
/// the number 0 has forgotten when it was written: the order of its source among the others says it
/// then, as it does of equal numbers. (Only in a knot do the numbers say anything else than the
/// sources, and who knots runs keeps the numbers.)
#[inline]
pub fn newest_first(left: SeqNo, right: SeqNo) -> Ordering {
    match (left, right) {
        (SeqNo(0), _) | (_, SeqNo(0)) => Ordering::Equal,
        _ => right.cmp(&left),
    }
}

/// Rounds of [`Cursor::approach`] after which a seek finds all that it looks at loaded.
pub const APPROACHES: usize = 4;

/// Walks entries in the store's order: keys ascending, and for one key the newest entry first.
///
/// A new cursor stands nowhere. After any call that returned an error it stands nowhere.
pub trait Cursor: Send {
    /// Stands on the first entry of all.
    fn seek_first(&mut self) -> Result<()>;

    /// Stands on the last entry of all.
    fn seek_last(&mut self) -> Result<()>;

    /// Takes a step of those that [`seek`](Cursor::seek) to `key` takes, which must be the next
    /// call but for more of these two. Errors are those of the seek.
    ///
    /// Who has many cursors to place takes [`APPROACHES`] rounds of a step and a
    /// [`touch`](Cursor::touch) of each: so they wait for main memory at once, instead of one after
    /// the other.
    fn approach(&mut self, _key: &[u8]) {}

    /// Does for [`seek_before`](Cursor::seek_before) to `key`, which must be the next call, what
    /// [`approach`](Cursor::approach) does for a seek. One round is enough.
    fn approach_before(&mut self, _key: &[u8]) {}

    /// Loads what the next step looks at, and gives anything of it. It does nothing else: loads go
    /// on side by side only where hardly anything lies between them.
    fn touch(&self) -> u64 {
        0
    }

    /// Stands on the first entry whose key is `key` or above.
    fn seek(&mut self, key: &[u8]) -> Result<()>;

    /// Stands on the last entry whose key is below `key`.
    fn seek_before(&mut self, key: &[u8]) -> Result<()>;

    /// Goes to the following entry, or past the end. Must stand on an entry.
    fn next(&mut self) -> Result<()>;

    /// Goes to the preceding entry, or before the start. Must stand on an entry.
    fn prev(&mut self) -> Result<()>;

    /// The entry under the cursor; `None` where it stands nowhere or beyond either end.
    fn entry(&self) -> Option<EntryRef<'_>>;

    /// The value under the cursor as a handle that shares its memory, without a copy where the
    /// cursor's owner allows. Must stand on an entry.
    fn value(&self) -> Bytes;
}

impl Cursor for Box<dyn Cursor> {
    fn seek_first(&mut self) -> Result<()> {
        (**self).seek_first()
    }

    fn seek_last(&mut self) -> Result<()> {
        (**self).seek_last()
    }

    fn approach(&mut self, key: &[u8]) {
        (**self).approach(key);
    }

    fn approach_before(&mut self, key: &[u8]) {
        (**self).approach_before(key);
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

    fn entry(&self) -> Option<EntryRef<'_>> {
        (**self).entry()
    }

    fn value(&self) -> Bytes {
        (**self).value()
    }
}
