//! One interface to walk entries in order, whatever holds them.

use crate::error::Result;
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};

/// The entry that a cursor stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryRef<'a> {
    /// The user's key.
    pub(crate) key: &'a [u8],
    /// When it was written.
    pub(crate) seq: SeqNo,
    /// What it says.
    pub(crate) kind: EntryKind,
    /// The value; empty for tombstones.
    pub(crate) value: &'a [u8],
}

/// Walks entries in the store's order: keys ascending, and for one key the newest entry first.
///
/// A new cursor stands nowhere. After any call that returned an error it stands nowhere.
pub(crate) trait Cursor: Send {
    /// Stands on the first entry of all.
    fn seek_first(&mut self) -> Result<()>;

    /// Stands on the last entry of all.
    fn seek_last(&mut self) -> Result<()>;

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
