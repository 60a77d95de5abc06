//! Walks entries once, in order, from first to last.

use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use lsmith_tree::Size;
use std::borrow::Cow;

/// Walks entries in the store's order, forward only. Every [`Cursor`] can do so.
pub trait Walk {
    /// Goes to the first entry.
    fn begin(&mut self) -> Result<()>;

    /// Goes to the next entry. Must be on an entry.
    fn advance(&mut self) -> Result<()>;

    /// Goes to the next entry, given the size of this one. So a walk that counts sizes need not
    /// look at the entry again.
    #[inline]
    fn pass(&mut self, _: Size) -> Result<()> {
        self.advance()
    }

    /// Returns the entry under the walk, or `None` at its end.
    fn here(&self) -> Option<EntryRef<'_>>;

    /// Reads the value of the entry under the walk, if `here` has something else in its place.
    ///
    /// # Errors
    /// Fails if the value cannot be read.
    fn read_value(&self) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(self.here().map_or(&[], |entry| entry.value)))
    }

    /// Returns a mark by which the caller of a fold knows the entry under the walk
    /// again.
    #[inline]
    fn mark(&self) -> u32 {
        0
    }
}

impl<C: Cursor> Walk for C {
    fn begin(&mut self) -> Result<()> {
        self.seek_first()
    }

    fn advance(&mut self) -> Result<()> {
        self.next()
    }

    fn here(&self) -> Option<EntryRef<'_>> {
        self.entry()
    }
}
