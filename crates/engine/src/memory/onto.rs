//! Walks a memtable over the rest of a folded run, key by key of the memtable.

use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::Result;
use lsmith_storage::fold::Walk;
use lsmith_storage::format::key_prefix;
use lsmith_storage::memtable::{FoldedBuilder, FoldedRest};

/// Walks the keys of a memtable that have several versions, newest version first: the memtable's
/// versions, then the folded run's. Behind each key the walk pauses, so that entries of other keys
/// can be [added](Onto::add_single) without a fold.
pub(super) struct Onto {
    new: Box<dyn Cursor>,
    old: FoldedRest,
    key: Vec<u8>,
    /// The [prefix](key_prefix) of the key.
    prefix: u64,
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
        Onto { new, old, key: Vec::new(), prefix: 0, at: OntoSide::Nowhere }
    }

    /// Adds the entries up to the next key with several versions to `builder`. Entries of the
    /// folded run stay in place; entries of the memtable are copied. None of them needs a fold.
    pub(super) fn add_single(&mut self, builder: &mut FoldedBuilder) -> Result<()> {
        while let Some(entry) = self.new.entry() {
            builder.keep_below(&mut self.old, Some(entry.key));
            if !self.new.is_alone() || self.old.is_at(key_prefix(entry.key), entry.key) {
                return Ok(());
            }
            builder.add(entry);
            self.new.next()?;
        }
        builder.keep_below(&mut self.old, None);
        Ok(())
    }

    /// Returns the unvisited rest of the folded run.
    pub(super) fn rest(&self) -> &FoldedRest {
        &self.old
    }

    /// Moves to the next key of the memtable. Returns false if there is none.
    pub(super) fn next_key(&mut self) -> bool {
        let Some(entry) = self.new.entry() else { return false };
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.prefix = key_prefix(entry.key);
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
        self.at = match () {
            () if self.new.entry().is_some_and(|new| new.key == self.key) => OntoSide::New,
            () if self.old.is_at(self.prefix, &self.key) => OntoSide::Old,
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
