//! Reads the entries of tables whose blocks may be damaged.

use super::damaged::DamagedStore;
use super::report::{Finding, FindingKind};
use crate::inspect::Entry;
use bytes::Bytes;
use lsmith_storage::error::Error;
use lsmith_storage::format::Damage;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::table::{
    AppendPart, AppendRemains, AppendWalk, BlockWalk, Piece, RemainsEntry, RemainsLoss,
    TableRemains,
};
use lsmith_tree::{EntryKind, Key, KeyRange, SeqNo, Slice, Table};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// A key range in which a source has lost entries, and the finding about it.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    /// The index of the source, newest source first.
    pub(super) source: usize,
    pub(super) keys: KeyRange,
    /// The keys, if they are known one by one.
    pub(super) only: Option<BTreeSet<Bytes>>,
    pub(super) finding: Finding,
}

impl Loss {
    /// Returns true if an entry of `key` newer than one of `source` may be lost. `is_older` says
    /// that the source itself may have lost a newer one.
    pub(super) fn is_above(&self, key: &[u8], source: usize, is_older: bool) -> bool {
        let is_newer = self.source < source || self.source == source && is_older;
        is_newer && self.keys.contains(key) && self.only.as_ref().is_none_or(|it| it.contains(key))
    }
}

/// The list to which all sources of a keyspace add their losses.
pub(super) type Losses = Rc<RefCell<Vec<Loss>>>;

/// An entry of a source.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) entry: Entry,
    /// If the entry is a combine, older ones of the key, newest first, down to one that is none.
    pub(super) below: Vec<Entry>,
    /// True if the source may have lost a newer entry of the key.
    pub(super) is_older: bool,
}

impl From<Entry> for Found {
    fn from(entry: Entry) -> Found {
        Found { entry, below: Vec::new(), is_older: false }
    }
}

/// Iterates over the newest entry of each key of a run, or of a table, in key order.
pub(super) struct RunSource {
    /// The index of this source among all sources.
    source: usize,
    slices: VecDeque<SourceSlice>,
    block: Option<OpenBlock>,
    /// Entries of an append table that come next.
    ready: VecDeque<Found>,
    last_key: Vec<u8>,
    /// The first entry of the next key, if it was read already.
    ahead: Option<Found>,
    losses: Losses,
}

/// A slice of a table that may be damaged.
struct SourceSlice {
    range: KeyRange,
    table: SourceTable,
}

enum SourceTable {
    Sorted(SortedSlice),
    Append(Rc<AppendRemains>, AppendWalk),
}

struct SortedSlice {
    table: Rc<TableRemains>,
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
    /// The sequence number of entries that have 0 in the file.
    date: SeqNo,
}

/// The tables of a keyspace.
pub(super) struct Tables {
    /// The opened tables, by file id; `None` for tables that cannot be opened.
    opened: BTreeMap<u64, Option<Remains>>,
    /// True if slices name the roots of append tables. Otherwise the last roots count.
    names_roots: bool,
}

impl Tables {
    /// `names_roots` says that slices name the roots of append tables. Otherwise the last roots
    /// count.
    pub(super) fn new(names_roots: bool) -> Tables {
        Tables { opened: BTreeMap::new(), names_roots }
    }
}

#[derive(Clone)]
enum Remains {
    Sorted(Rc<TableRemains>),
    Append(Rc<AppendRemains>),
}

/// Which kind of table a file is.
#[derive(Clone, Copy)]
enum Kind {
    Sorted,
    /// An append table, with the name of its root.
    Append(Option<u64>),
    Unknown,
}

impl RunSource {
    pub(super) fn new(source: usize, losses: &Losses) -> RunSource {
        RunSource {
            source,
            slices: VecDeque::new(),
            block: None,
            ready: VecDeque::new(),
            last_key: Vec::new(),
            ahead: None,
            losses: Rc::clone(losses),
        }
    }

    /// Adds the slices of a run.
    pub(super) fn add_run(&mut self, old: &mut DamagedStore, tables: &mut Tables, run: &[Slice]) {
        for (index, slice) in run.iter().enumerate() {
            let mut range = slice.range().clone();
            if slice.is_append() && !tables.names_roots {
                // The last root may have keys of the gaps beside it.
                let start = if index == 0 { Key::new() } else { range.start };
                let end = run.get(index + 1).map(|next| next.range().start.clone());
                range = KeyRange { start, end };
            }
            self.add_slice(old, tables, slice.table(), range);
        }
    }

    fn add_slice(
        &mut self,
        old: &mut DamagedStore,
        tables: &mut Tables,
        named: &Table,
        range: KeyRange,
    ) {
        let kind = match named.root {
            0 => Kind::Sorted,
            root => Kind::Append(tables.names_roots.then_some(root)),
        };
        let table = match old.table(tables, named.id.0, kind) {
            Ok(Some(table)) => table,
            Ok(None) => return self.lose_all(old, named.id.0, &range, "the table cannot be read"),
            Err(error) => return self.lose_all(old, named.id.0, &range, error.message()),
        };
        self.slices.push_back(match table {
            Remains::Sorted(table) => {
                let is_dated = named.seq_min == named.seq_max;
                let date = if is_dated { named.seq_max } else { SeqNo::default() };
                let range = filled_range(&table, &range);
                let may_have_holes = table.facts.is_none();
                let slice = SortedSlice { table, date, may_have_holes, next: 0 };
                SourceSlice { range, table: SourceTable::Sorted(slice) }
            }
            Remains::Append(table) => append_slice(table, range),
        });
    }

    /// Adds all of table `file_id`, whose slices are not known.
    pub(super) fn add_table(&mut self, old: &mut DamagedStore, tables: &mut Tables, file_id: u64) {
        match old.table(tables, file_id, Kind::Unknown) {
            Ok(Some(Remains::Sorted(table))) => {
                let date = SeqNo::default();
                let slice = SortedSlice { table, date, may_have_holes: true, next: 0 };
                let table = SourceTable::Sorted(slice);
                self.slices.push_back(SourceSlice { range: KeyRange::ALL, table });
            }
            Ok(Some(Remains::Append(table))) => {
                self.slices.push_back(append_slice(table, KeyRange::ALL));
            }
            Ok(None) => self.lose_all(old, file_id, &KeyRange::ALL, "the table cannot be read"),
            Err(error) => self.lose_all(old, file_id, &KeyRange::ALL, error.message()),
        }
    }

    fn lose_all(&mut self, old: &DamagedStore, file_id: u64, keys: &KeyRange, message: &str) {
        let path = numbered(&old.dir, FileKind::Table, file_id);
        self.lose(keys.clone(), None, Error::corruption(&path, 0, message));
    }

    fn lose(&mut self, keys: KeyRange, only: Option<BTreeSet<Bytes>>, error: Error) {
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
        self.losses.borrow_mut().push(Loss { source: self.source, keys, only, finding });
    }

    /// Opens the next readable block or leaf of the slices, and reports the damaged ones before it.
    /// Returns false if there is none.
    fn next_block(&mut self) -> bool {
        loop {
            let Some(slice) = self.slices.front_mut() else { return false };
            let range = slice.range.clone();
            match &mut slice.table {
                SourceTable::Sorted(slice) => match slice.next_block(&range) {
                    None => drop(self.slices.pop_front()),
                    Some(Ok(block)) => {
                        self.block = Some(block);
                        return true;
                    }
                    Some(Err((keys, error))) => self.lose(keys, None, error),
                },
                SourceTable::Append(table, walk) => {
                    let table = Rc::clone(table);
                    match table.next_part(walk) {
                        None => self.end_append(&table, &range),
                        Some(part) => self.take_part(&table, part, &range),
                    }
                    if !self.ready.is_empty() {
                        return true;
                    }
                }
            }
        }
    }

    /// Ends the slice of `table`. If its top is lost, reports its entries as lost, and salvages
    /// what it can.
    fn end_append(&mut self, table: &AppendRemains, range: &KeyRange) {
        self.slices.pop_front();
        if let Some(error) = table.lost_top() {
            self.salvage(table, range);
            self.lose(range.clone(), None, error);
        }
    }

    fn take_part(&mut self, table: &AppendRemains, part: AppendPart, range: &KeyRange) {
        for RemainsLoss { keys, only, error } in part.losses {
            let keys = keys.intersection(range);
            if only.is_none() {
                self.salvage(table, &keys);
            }
            self.lose(keys, only, error);
        }
        let is_shown = |entry: &RemainsEntry| range.contains(&entry.key);
        self.ready.extend(part.entries.into_iter().filter(is_shown).filter_map(found));
    }

    fn salvage(&mut self, table: &AppendRemains, keys: &KeyRange) {
        self.ready.extend(table.salvage(keys).into_iter().filter_map(found));
    }

    /// Returns the next entry of the open block or leaf.
    fn next_in_block(&mut self) -> Option<Found> {
        if let Some(found) = self.ready.pop_front() {
            return Some(found);
        }
        while let Some(block) = &mut self.block {
            match block.entries.next_slot() {
                Ok(Some(slot)) => {
                    let entry = block.entries.entry(&slot);
                    if !self.slices.front()?.range.contains(entry.key) {
                        continue;
                    }
                    let mut entry: Entry = entry.into();
                    if entry.seq == SeqNo(0) {
                        entry.seq = block.date;
                    }
                    return Some(entry.into());
                }
                Ok(None) => self.block = None,
                Err(damage) => self.lose_rest(damage),
            }
        }
        None
    }

    /// Reports the rest of the open block as lost: it cannot be decoded although its checksum is
    /// right.
    fn lose_rest(&mut self, damage: Damage) {
        let Some(block) = self.block.take() else { return };
        let Some(slice) = self.slices.front() else { return };
        let SourceTable::Sorted(SortedSlice { table, .. }) = &slice.table else { return };
        let start = KeyRange { start: block.entries.key().into(), end: None };
        let keys = block.piece.keys.intersection(&slice.range).intersection(&start);
        let error = table.damaged(damage, &block.piece);
        self.lose(keys, None, error);
    }
}

fn append_slice(table: Rc<AppendRemains>, range: KeyRange) -> SourceSlice {
    let walk = table.walk(&range);
    SourceSlice { range, table: SourceTable::Append(table, walk) }
}

/// Returns an entry of an append table, unless its value is lost.
fn found(entry: RemainsEntry) -> Option<Found> {
    let RemainsEntry { key, seq, kind, value, is_older } = entry;
    let entry = Entry { key, seq, kind, value: value? };
    Some(Found { entry, below: Vec::new(), is_older })
}

impl SortedSlice {
    /// Opens the next block with keys of `range`. If it is damaged, returns which of them it may
    /// have. Returns `None` if there is no other.
    fn next_block(&mut self, range: &KeyRange) -> Option<Result<OpenBlock, (KeyRange, Error)>> {
        loop {
            let piece = self.table.pieces().get(self.next)?.clone();
            self.next += 1;
            let keys = piece.keys.intersection(range);
            if keys.is_empty() {
                continue;
            }
            match self.table.block(&piece) {
                Ok(block) => {
                    let entries = BlockWalk::new(block);
                    return Some(Ok(OpenBlock { piece, entries, date: self.date }));
                }
                Err(_) if self.may_have_holes && self.is_hole(&piece) => {}
                Err(error) => return Some(Err((keys, error))),
            }
        }
    }

    fn is_hole(&self, piece: &Piece) -> bool {
        self.table.touches_hole(piece).unwrap_or(false)
    }
}

impl Iterator for RunSource {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let mut found = self.ahead.take().or_else(|| self.next_entry())?;
            // The newest entry of a key comes first.
            if *found.entry.key != *self.last_key {
                self.last_key.clear();
                self.last_key.extend_from_slice(&found.entry.key);
                let mut is_whole = found.entry.kind != EntryKind::Combine;
                while !is_whole && let Some(older) = self.next_entry() {
                    if older.entry.key != found.entry.key {
                        self.ahead = Some(older);
                        break;
                    }
                    is_whole = older.entry.kind != EntryKind::Combine;
                    found.below.push(older.entry);
                }
                return Some(found);
            }
        }
    }
}

impl RunSource {
    /// Returns the next entry, of the next block if need be.
    fn next_entry(&mut self) -> Option<Found> {
        loop {
            if let Some(found) = self.next_in_block() {
                return Some(found);
            }
            if !self.next_block() {
                return None;
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
    /// Opens table `file_id`, or returns it from `tables`. Returns `None` if an earlier call failed
    /// to open it.
    fn table(
        &mut self,
        tables: &mut Tables,
        file_id: u64,
        kind: Kind,
    ) -> Result<Option<Remains>, Error> {
        if let Some(known) = tables.opened.get(&file_id) {
            return Ok(known.clone());
        }
        let opened = self.open_table(file_id, kind);
        tables.opened.insert(file_id, opened.as_ref().ok().cloned());
        let table = opened?;
        let damage = match &table {
            Remains::Sorted(table) => &table.damage,
            // Damage that costs the top is reported with the lost keys.
            Remains::Append(append) if append.lost_top().is_some() => return Ok(Some(table)),
            Remains::Append(append) => &append.damage,
        };
        for error in damage {
            // The blocks are found without the damaged parts.
            self.report_error(FindingKind::Harmless, error);
        }
        Ok(Some(table))
    }

    fn open_table(&self, file_id: u64, kind: Kind) -> Result<Remains, Error> {
        let path = numbered(&self.dir, FileKind::Table, file_id);
        let (env, files) = (&*self.env, &self.open_files);
        let kind = match kind {
            Kind::Unknown if AppendRemains::is_append(env, &path, file_id)? => Kind::Append(None),
            kind => kind,
        };
        Ok(match kind {
            Kind::Append(root) => {
                Remains::Append(Rc::new(AppendRemains::open(env, &path, file_id, root, files)?))
            }
            _ => Remains::Sorted(Rc::new(TableRemains::open(env, &path, file_id, files)?)),
        })
    }
}

/// Returns a source with the entries of memory.
pub(super) fn of_memory(newest: super::memory::Newest) -> Box<dyn Iterator<Item = Found>> {
    Box::new(newest.into_values().filter_map(|mut entries| {
        let entry = entries.pop_front()?;
        Some(Found { entry, below: entries.into(), is_older: false })
    }))
}
