//! Entries from tables of which parts cannot be read.

use super::{Finding, FindingKind, Old};
use crate::inspect::Entry;
use lsmith_storage::error::Error;
use lsmith_storage::format::Damage;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::table::{BlockWalk, Piece, TableRemains};
use lsmith_tree::{KeyRange, SeqNo, Slice, Table};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Keys that a source has lost, with what was found.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    /// The index of the source, the newest first.
    pub(super) source: usize,
    pub(super) keys: KeyRange,
    pub(super) finding: Finding,
}

/// Where sources tell what they have lost.
pub(super) type Losses = Rc<RefCell<Vec<Loss>>>;

/// The newest entry of each key of a run, or of a table, in key order.
pub(super) struct RunSource {
    /// Its index among all sources.
    source: usize,
    parts: VecDeque<Part>,
    walk: Option<Walk>,
    last_key: Vec<u8>,
    losses: Losses,
}

/// What a run shows of a table.
struct Part {
    table: Rc<TableRemains>,
    range: KeyRange,
    /// The number of all entries that have none.
    date: SeqNo,
    /// Whether zeros are what was given back, and no loss.
    may_have_holes: bool,
    /// Index of the next block.
    next: usize,
}

/// A block of a part.
struct Walk {
    piece: Piece,
    entries: BlockWalk,
}

/// All tables of a store that have been looked at.
pub(super) type Tables = BTreeMap<u64, Option<Rc<TableRemains>>>;

impl RunSource {
    pub(super) fn new(source: usize, losses: &Losses) -> RunSource {
        RunSource {
            source,
            parts: VecDeque::new(),
            walk: None,
            last_key: Vec::new(),
            losses: Rc::clone(losses),
        }
    }

    /// Adds `slice`, which lies behind all others.
    pub(super) fn add_slice(&mut self, old: &mut Old, tables: &mut Tables, slice: &Slice) {
        let named = slice.table();
        match old.table(tables, named.id.0) {
            Ok(Some(table)) => {
                let is_dated = named.seq_min == named.seq_max;
                let date = if is_dated { named.seq_max } else { SeqNo::default() };
                let range = filled_range(&table, slice.range());
                let may_have_holes = table.facts.is_none();
                self.parts.push_back(Part { table, range, date, may_have_holes, next: 0 });
            }
            Ok(None) => self.lose_all(old, named.id.0, slice.range(), "the table cannot be read"),
            Err(error) => self.lose_all(old, named.id.0, slice.range(), error.message()),
        }
    }

    /// Adds all of table `number`, of which it is not known what is shown.
    pub(super) fn add_table(&mut self, old: &mut Old, tables: &mut Tables, number: u64) {
        match old.table(tables, number) {
            Ok(Some(table)) => self.parts.push_back(Part {
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

    fn lose_all(&mut self, old: &Old, number: u64, keys: &KeyRange, told: &str) {
        let path = numbered(&old.dir, FileKind::Table, number);
        self.lose(keys.clone(), Error::corruption(&path, 0, told));
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

    /// Goes to the next block with keys to show; whether there is one.
    fn next_block(&mut self) -> bool {
        loop {
            let Some(part) = self.parts.front_mut() else { return false };
            let Some(piece) = part.table.pieces().get(part.next).cloned() else {
                self.parts.pop_front();
                continue;
            };
            part.next += 1;
            let keys = piece.keys.intersection(&part.range);
            if keys.is_empty() {
                continue;
            }
            match part.table.block(&piece) {
                Ok(block) => {
                    let entries = BlockWalk::new(block);
                    self.walk = Some(Walk { piece, entries });
                    return true;
                }
                Err(_) if part.may_have_holes && part.is_hole(&piece) => {}
                Err(error) => self.lose(keys, error),
            }
        }
    }

    /// The next entry of the block, whether it shows or not.
    fn next_in_block(&mut self) -> Option<Entry> {
        let walk = self.walk.as_mut()?;
        match walk.entries.next_slot() {
            Ok(Some(slot)) => {
                let mut entry: Entry = walk.entries.entry(&slot).into();
                let part = self.parts.front()?;
                if entry.seq == SeqNo(0) {
                    entry.seq = part.date;
                }
                Some(entry)
            }
            Ok(None) => {
                self.walk = None;
                None
            }
            Err(damage) => {
                self.lose_rest(damage);
                None
            }
        }
    }

    /// Notes that what is left of the block, which passed its checksum, makes no sense.
    fn lose_rest(&mut self, damage: Damage) {
        let (Some(walk), Some(part)) = (self.walk.take(), self.parts.front()) else { return };
        let start = KeyRange { start: walk.entries.key().into(), end: None };
        let keys = walk.piece.keys.intersection(&part.range).intersection(&start);
        let error = part.table.damaged(damage, &walk.piece);
        self.lose(keys, error);
    }
}

impl Part {
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
            let shows = self.parts.front().is_some_and(|part| part.range.contains(&entry.key));
            // The newest comes first.
            if shows && *entry.key != *self.last_key {
                self.last_key.clear();
                self.last_key.extend_from_slice(&entry.key);
                return Some(entry);
            }
        }
    }
}

/// `range` without keys at its ends that `table` is known not to have: the blocks there may have
/// been given back.
fn filled_range(table: &TableRemains, range: &KeyRange) -> KeyRange {
    let Some(facts) = &table.facts else { return range.clone() };
    let known = Table { profile: facts.profile.clone().into(), ..Table::default() };
    known.filled(range.clone())
}

impl Old {
    /// Table `number`, as far as it can be read; `None` where an earlier look has failed.
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
            // Blocks are found all the same.
            self.find_error(FindingKind::Harmless, error);
        }
        Ok(Some(table))
    }
}

/// A source of what was in memory.
pub(super) fn of_memory(newest: super::memory::Newest) -> Box<dyn Iterator<Item = Entry>> {
    Box::new(newest.into_values())
}
