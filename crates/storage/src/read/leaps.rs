//! Leaps that always go on.

use crate::cursor::Cursor;
use crate::error::Result;
use lsmith_tree::{KeyRange, SeqNo};

/// Takes the leaps of one walk, and fails where they come back.
///
/// A leap searches. In a damaged table, with entries in a wrong order, a search can come back to
/// where the walk has been. Without this check the walk could do so for ever.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leaps {
    /// The key at which the last leap ended.
    before: Option<Vec<u8>>,
}

impl Leaps {
    /// Forgets the last leap: the walk begins anew.
    pub(crate) fn restart(&mut self) {
        self.before = None;
    }

    /// Goes on from an entry in `range` that the range delete `below` hides by
    /// [`Cursor::leap`].
    ///
    /// # Errors
    /// Fails with the cursor's error, and if the walk has come back to a key before the one at
    /// which the last leap ended. The error names the table.
    #[cold]
    pub(crate) fn leap(
        &mut self,
        cursor: &mut impl Cursor,
        range: &KeyRange,
        below: SeqNo,
    ) -> Result<()> {
        self.note(cursor, |key, before| key < before)?;
        cursor.leap(range, below)?;
        self.note(cursor, |key, before| key < before)
    }

    /// Goes on from an entry in `range` to the first one behind the range.
    ///
    /// # Errors
    /// As [`leap`](Leaps::leap).
    #[cold]
    pub(crate) fn pass(&mut self, cursor: &mut impl Cursor, range: &KeyRange) -> Result<()> {
        self.note(cursor, |key, before| key < before)?;
        let Some(end) = &range.end else {
            cursor.seek_last()?;
            return cursor.next();
        };
        cursor.seek(end)?;
        self.note(cursor, |key, _| *key < **end)
    }

    /// The reverse of [`pass`](Leaps::pass).
    #[cold]
    pub(crate) fn pass_back(&mut self, cursor: &mut impl Cursor, range: &KeyRange) -> Result<()> {
        self.note(cursor, |key, before| key > before)?;
        cursor.seek_before(&range.start)?;
        self.note(cursor, |key, _| *key >= *range.start)
    }

    /// The reverse of [`leap`](Leaps::leap).
    #[cold]
    pub(crate) fn leap_back(
        &mut self,
        cursor: &mut impl Cursor,
        range: &KeyRange,
        below: SeqNo,
    ) -> Result<()> {
        self.note(cursor, |key, before| key > before)?;
        cursor.leap_back(range, below)?;
        self.note(cursor, |key, before| key > before)
    }

    /// Fails if the key under `cursor` is `wrong` beside the one noted last, then notes it.
    fn note(
        &mut self,
        cursor: &impl Cursor,
        wrong: impl FnOnce(&[u8], &[u8]) -> bool,
    ) -> Result<()> {
        let Some(entry) = cursor.entry() else { return Ok(()) };
        let before = self.before.get_or_insert_with(|| entry.key.to_vec());
        if wrong(entry.key, before) {
            return Err(cursor.disorder());
        }
        before.clear();
        before.extend_from_slice(entry.key);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
