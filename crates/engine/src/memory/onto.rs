//! Walks a memtable over the rest of a folded run, key by key of the memtable.

use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::Result;
use lsmith_storage::fold::Walk;
use lsmith_storage::memtable::FoldedRest;

/// Walks the keys of a memtable. For each key it visits all versions, newest first: those in the
/// memtable, then those in the folded run. Behind each key the walk pauses, so that folded entries
/// of other keys can stay where they are.
pub(super) struct Onto {
    new: Box<dyn Cursor>,
    old: FoldedRest,
    key: Vec<u8>,
    at: OntoSide,
}

/// The side that holds the current version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OntoSide {
    New,
    Old,
    Nowhere,
}

impl Onto {
    pub(super) fn new(new: Box<dyn Cursor>, old: FoldedRest) -> Onto {
        Onto { new, old, key: Vec::new(), at: OntoSide::Nowhere }
    }

    /// Returns the unvisited rest of the folded run, and the next key of the memtable, if any.
    pub(super) fn rest_and_next_key(&mut self) -> (&mut FoldedRest, Option<&[u8]>) {
        (&mut self.old, self.new.entry().map(|new| new.key))
    }

    /// Moves to the next key of the memtable. Returns false if there is none.
    pub(super) fn next_key(&mut self) -> bool {
        let Some(entry) = self.new.entry() else { return false };
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.at = OntoSide::New;
        true
    }
}

impl Walk for Onto {
    fn begin(&mut self) -> Result<()> {
        self.new.seek_first()
    }

    fn advance(&mut self) -> Result<()> {
        match self.at {
            OntoSide::New => self.new.next()?,
            OntoSide::Old => self.old.advance(),
            OntoSide::Nowhere => {}
        }
        let is_same = |entry: Option<EntryRef<'_>>| entry.is_some_and(|e| e.key == self.key);
        self.at = match () {
            () if is_same(self.new.entry()) => OntoSide::New,
            () if is_same(self.old.entry()) => OntoSide::Old,
            () => OntoSide::Nowhere,
        };
        Ok(())
    }

    fn here(&self) -> Option<EntryRef<'_>> {
        match self.at {
            OntoSide::New => self.new.entry(),
            OntoSide::Old => self.old.entry(),
            OntoSide::Nowhere => None,
        }
    }
}
