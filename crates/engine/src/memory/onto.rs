//! A memtable over what is left of folded memory, where both have the same keys.

use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::Result;
use lsmith_storage::fold::Walk;
use lsmith_storage::memtable::FoldedRest;

/// Walks all versions of one key of a memtable after the other, those of the folded entries
/// included. It stands nowhere behind each, so that folded entries in between can stay where they
/// are.
pub(super) struct Onto {
    new: Box<dyn Cursor>,
    old: FoldedRest,
    key: Vec<u8>,
    at: At,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    New,
    Old,
    Nowhere,
}

impl Onto {
    pub(super) fn new(new: Box<dyn Cursor>, old: FoldedRest) -> Onto {
        Onto { new, old, key: Vec::new(), at: At::Nowhere }
    }

    /// What is left of folded memory, and the next key of the memtable, if there is one.
    pub(super) fn left(&mut self) -> (&mut FoldedRest, Option<&[u8]>) {
        (&mut self.old, self.new.entry().map(|new| new.key))
    }

    /// Goes to the next key of the memtable; whether there is one.
    pub(super) fn go_on(&mut self) -> bool {
        let Some(entry) = self.new.entry() else { return false };
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.at = At::New;
        true
    }
}

impl Walk for Onto {
    fn begin(&mut self) -> Result<()> {
        self.new.seek_first()
    }

    fn advance(&mut self) -> Result<()> {
        match self.at {
            At::New => self.new.next()?,
            At::Old => self.old.advance(),
            At::Nowhere => {}
        }
        let is_same = |entry: Option<EntryRef<'_>>| entry.is_some_and(|e| e.key == self.key);
        self.at = match () {
            () if is_same(self.new.entry()) => At::New,
            () if is_same(self.old.entry()) => At::Old,
            () => At::Nowhere,
        };
        Ok(())
    }

    fn here(&self) -> Option<EntryRef<'_>> {
        match self.at {
            At::New => self.new.entry(),
            At::Old => self.old.entry(),
            At::Nowhere => None,
        }
    }
}
