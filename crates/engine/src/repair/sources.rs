//! Reads the entries of tables whose blocks may be damaged.

use super::{DamagedStore, Finding, FindingKind};
use crate::inspect::Entry;
use lsmith_storage::error::Error;
use lsmith_storage::format::Damage;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::table::{BlockWalk, Piece, TableRemains};
use lsmith_tree::{KeyRange, SeqNo, Slice, Table};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// A key range in which a source has lost entries, and the finding about it.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    /// The index of the source, newest source first.
    pub(super) source: usize,
    pub(super) keys: KeyRange,
    pub(super) finding: Finding,
}

/// The list to which all sources of a keyspace add their losses.
pub(super) type Losses = Rc<RefCell<Vec<Loss>>>;

/// Iterates over the newest entry of each key of a run, or of a table, in key order.
pub(super) struct RunSource {
    /// The index of this source among all sources.
    source: usize,
    slices: VecDeque<SourceSlice>,
    block: Option<OpenBlock>,
    last_key: Vec<u8>,
    losses: Losses,
}

/// A slice of a table that may be damaged.
struct SourceSlice {
    table: Rc<TableRemains>,
    range: KeyRange,
    /// The sequence number of entries that have 0 in the file.
    date: SeqNo,
    /// True if pages of zeros may be punched holes, which are no loss.
    may_have_holes: bool,
    /// The index of the next block.
    next: usize,
}

/// A block that is being read.
struct OpenBlock {
    piece: Piece,
    entries: BlockWalk,
}

/// The tables that have been opened, by number; `None` for tables that cannot be opened.
pub(super) type Tables = BTreeMap<u64, Option<Rc<TableRemains>>>;

impl RunSource {
    pub(super) fn new(source: usize, losses: &Losses) -> RunSource {
        RunSource {
            source,
            slices: VecDeque::new(),
            block: None,
            last_key: Vec::new(),
            losses: Rc::clone(losses),
        }
    }

    /// Adds `slice`, whose keys are greater than those of all slices so far.
    pub(super) fn add_slice(&mut self, old: &mut DamagedStore, tables: &mut Tables, slice: &Slice) {
        let named = slice.table();
        match old.table(tables, named.id.0) {
            Ok(Some(table)) => {
                let is_dated = named.seq_min == named.seq_max;
                let date = if is_dated { named.seq_max } else { SeqNo::default() };
                let range = filled_range(&table, slice.range());
                let may_have_holes = table.facts.is_none();
                self.slices.push_back(SourceSlice { table, range, date, may_have_holes, next: 0 });
            }
            Ok(None) => self.lose_all(old, named.id.0, slice.range(), "the table cannot be read"),
            Err(error) => self.lose_all(old, named.id.0, slice.range(), error.message()),
        }
    }

    /// Adds all of table `number`, whose slices are not known.
    pub(super) fn add_table(&mut self, old: &mut DamagedStore, tables: &mut Tables, number: u64) {
        match old.table(tables, number) {
            Ok(Some(table)) => self.slices.push_back(SourceSlice {
                table,
                range: KeyRange::ALL,
                date: SeqNo::default(),
                may_have_holes: true,
                next: 0,
            }),
            Ok(None) => self.lose_all(old, number, &KeyRange::ALL, "the table cannot be read"),
            Err(error) => self.lose_all(old, number, &KeyRange::ALL, error.message()),
        }
    }

    fn lose_all(&mut self, old: &DamagedStore, number: u64, keys: &KeyRange, message: &str) {
        let path = numbered(&old.dir, FileKind::Table, number);
        self.lose(keys.clone(), Error::corruption(&path, 0, message));
    }

    fn lose(&mut self, keys: KeyRange, error: Error) {
        if keys.is_empty() {
            return;
        }
        let kind = FindingKind::LostKeys { keys: keys.clone(), older: 0, logged: 0 };
        let finding = Finding {
            kind,
            path: error.path().map(Into::into).unwrap_or_default(),
            offset: error.offset(),
            keyspace: None,
            message: error.message().to_string(),
        };
        self.losses.borrow_mut().push(Loss { source: self.source, keys, finding });
    }

    /// Opens the next readable block with keys of its slice, and reports the damaged ones before.
    /// Returns false if there is none.
    fn next_block(&mut self) -> bool {
        loop {
            let Some(slice) = self.slices.front_mut() else { return false };
            let Some(piece) = slice.table.pieces().get(slice.next).cloned() else {
                self.slices.pop_front();
                continue;
            };
            slice.next += 1;
            let keys = piece.keys.intersection(&slice.range);
            if keys.is_empty() {
                continue;
            }
            match slice.table.block(&piece) {
                Ok(block) => {
                    let entries = BlockWalk::new(block);
                    self.block = Some(OpenBlock { piece, entries });
                    return true;
                }
                Err(_) if slice.may_have_holes && slice.is_hole(&piece) => {}
                Err(error) => self.lose(keys, error),
            }
        }
    }

    /// Returns the next entry of the open block, which may lie outside the slice.
    fn next_in_block(&mut self) -> Option<Entry> {
        let block = self.block.as_mut()?;
        match block.entries.next_slot() {
            Ok(Some(slot)) => {
                let mut entry: Entry = block.entries.entry(&slot).into();
                let slice = self.slices.front()?;
                if entry.seq == SeqNo(0) {
                    entry.seq = slice.date;
                }
                Some(entry)
            }
            Ok(None) => {
                self.block = None;
                None
            }
            Err(damage) => {
                self.lose_rest(damage);
                None
            }
        }
    }

    /// Reports the rest of the open block as lost: it cannot be decoded although its checksum is
    /// right.
    fn lose_rest(&mut self, damage: Damage) {
        let Some(block) = self.block.take() else { return };
        let Some(slice) = self.slices.front() else { return };
        let start = KeyRange { start: block.entries.key().into(), end: None };
        let keys = block.piece.keys.intersection(&slice.range).intersection(&start);
        let error = slice.table.damaged(damage, &block.piece);
        self.lose(keys, error);
    }
}

impl SourceSlice {
    fn is_hole(&self, piece: &Piece) -> bool {
        self.table.touches_hole(piece).unwrap_or(false)
    }
}

impl Iterator for RunSource {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        loop {
            let Some(entry) = self.next_in_block() else {
                if !self.next_block() {
                    return None;
                }
                continue;
            };
            let slice = self.slices.front();
            let is_shown = slice.is_some_and(|slice| slice.range.contains(&entry.key));
            // The newest entry of a key comes first.
            if is_shown && *entry.key != *self.last_key {
                self.last_key.clear();
                self.last_key.extend_from_slice(&entry.key);
                return Some(entry);
            }
        }
    }
}

/// Returns `range` without the keys at its ends that `table` is known not to have. The blocks there
/// may be punched holes.
fn filled_range(table: &TableRemains, range: &KeyRange) -> KeyRange {
    let Some(facts) = &table.facts else { return range.clone() };
    let known = Table { profile: facts.profile.clone().into(), ..Table::default() };
    known.filled(range.clone())
}

impl DamagedStore {
    /// Opens table `number`, or returns it from `tables`. Returns `None` if an earlier call failed
    /// to open it.
    fn table(
        &mut self,
        tables: &mut Tables,
        number: u64,
    ) -> Result<Option<Rc<TableRemains>>, Error> {
        if let Some(known) = tables.get(&number) {
            return Ok(known.clone());
        }
        let path = numbered(&self.dir, FileKind::Table, number);
        let opened = TableRemains::open(&*self.env, &path, number).map(Rc::new);
        tables.insert(number, opened.as_ref().ok().cloned());
        let table = opened?;
        for error in &table.damage {
            // The blocks are found without the damaged parts.
            self.report_error(FindingKind::Harmless, error);
        }
        Ok(Some(table))
    }
}

/// Returns a source with the entries of memory.
pub(super) fn of_memory(newest: super::memory::Newest) -> Box<dyn Iterator<Item = Entry>> {
    Box::new(newest.into_values())
}
