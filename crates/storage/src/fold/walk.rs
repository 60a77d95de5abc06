//! Entries in order, once, from first to last.

use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;

/// Walks entries in the store's order, forward only. Every [`Cursor`] does.
pub trait Walk {
    /// Stands on the first entry of all.
    fn begin(&mut self) -> Result<()>;

    /// Goes to the following entry. Must stand on an entry.
    fn advance(&mut self) -> Result<()>;

    /// The entry under it; `None` where it stands nowhere.
    fn here(&self) -> Option<EntryRef<'_>>;
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
