//! Reads the entries of tables whose blocks may be damaged.

use super::damaged::DamagedStore;
use super::report::{Finding, FindingKind};
use super::values::ValueRemains;
use crate::inspect::Entry;
use bytes::Bytes;
use lsmith_storage::error::Error;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::table::{
    AppendPart, AppendRemains, AppendWalk, BlockWalk, Piece, RemainsEntry, RemainsLoss,
    TableRemains,
};
use lsmith_tree::{EntryKind, Key, KeyRange, SeqNo, Slice, Table, key_after};
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
    slices: VecDeque<Box<dyn SliceWalk>>,
    last_key: Vec<u8>,
    /// The first entry of the next key, if it was read already.
    ahead: Option<Found>,
    losses: Losses,
}

/// The tables of a keyspace.
pub(super) struct Tables {
    /// The opened tables, by file id; `None` for tables that cannot be opened.
    opened: BTreeMap<u64, Option<Rc<dyn Remains>>>,
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

/// What can be read of a table of either kind.
trait Remains {
    /// Returns the damage without which the blocks are found all the same.
    fn harmless(&self) -> &[Error];

    /// Walks over the entries in `range`. `named` is the table as the tree names it, if it does.
    fn walk(self: Rc<Self>, range: KeyRange, named: Option<&Table>) -> Box<dyn SliceWalk>;
}

/// A walk over the entries of a slice in key order.
trait SliceWalk {
    /// Returns the next entry. Adds the losses before it to `lost`.
    fn next(&mut self, lost: &mut Vec<RemainsLoss>) -> Option<Found>;
}

struct SortedWalk {
    table: Rc<TableRemains>,
    range: KeyRange,
    /// The sequence number of entries that have 0 in the file.
    date: SeqNo,
    /// True if pages of zeros may be punched holes, which are no loss.
    may_have_holes: bool,
    /// The index of the next block.
    next: usize,
    /// The block that is being read.
    block: Option<(Piece, BlockWalk)>,
}

struct AppendedWalk {
    table: Rc<AppendRemains>,
    range: KeyRange,
    walk: AppendWalk,
    /// Entries that come next.
    ready: VecDeque<Found>,
    /// True when the walk has ended and a lost top is reported.
    is_over: bool,
}

impl RunSource {
    pub(super) fn new(source: usize, losses: &Losses) -> RunSource {
        RunSource {
            source,
            slices: VecDeque::new(),
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
            let named = slice.table();
            self.add(old, tables, (named.id.0, Some(named)), range);
        }
    }

    /// Adds all of table `file_id`, whose slices are not known.
    pub(super) fn add_table(&mut self, old: &mut DamagedStore, tables: &mut Tables, file_id: u64) {
        self.add(old, tables, (file_id, None), KeyRange::ALL);
    }

    fn add(
        &mut self,
        old: &mut DamagedStore,
        tables: &mut Tables,
        (file_id, named): (u64, Option<&Table>),
        range: KeyRange,
    ) {
        let error = match old.table(tables, file_id, named) {
            Ok(Some(table)) => {
                let (entries, values) = (table.walk(range, named), Rc::clone(&old.values));
                return self.slices.push_back(Box::new(ValuesWalk { entries, values }));
            }
            Ok(None) => "the table cannot be read".to_string(),
            Err(error) => error.message().to_string(),
        };
        let path = numbered(&old.dir, FileKind::Table, file_id);
        let error = Error::corruption(&path, 0, error);
        self.lose(RemainsLoss { keys: range, only: None, error });
    }

    fn lose(&mut self, RemainsLoss { keys, only, error }: RemainsLoss) {
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

    /// Returns the next entry, of the next slice if need be.
    fn next_entry(&mut self) -> Option<Found> {
        loop {
            let mut lost = Vec::new();
            let next = self.slices.front_mut()?.next(&mut lost);
            lost.into_iter().for_each(|loss| self.lose(loss));
            if next.is_some() {
                return next;
            }
            self.slices.pop_front();
        }
    }
}

impl Remains for TableRemains {
    fn harmless(&self) -> &[Error] {
        &self.damage
    }

    fn walk(self: Rc<Self>, range: KeyRange, named: Option<&Table>) -> Box<dyn SliceWalk> {
        let is_dated = named.filter(|named| named.seq_min == named.seq_max);
        Box::new(SortedWalk {
            range: if named.is_some() { filled_range(&self, &range) } else { range },
            date: is_dated.map_or(SeqNo::default(), |named| named.seq_max),
            may_have_holes: named.is_none() || self.facts.is_none(),
            next: 0,
            block: None,
            table: self,
        })
    }
}

impl Remains for AppendRemains {
    fn harmless(&self) -> &[Error] {
        // Damage that costs the top is reported with the lost keys.
        if self.lost_top().is_some() { &[] } else { &self.damage }
    }

    fn walk(self: Rc<Self>, range: KeyRange, _: Option<&Table>) -> Box<dyn SliceWalk> {
        let walk = AppendRemains::walk(&self, &range);
        Box::new(AppendedWalk { table: self, range, walk, ready: VecDeque::new(), is_over: false })
    }
}

impl SliceWalk for SortedWalk {
    fn next(&mut self, lost: &mut Vec<RemainsLoss>) -> Option<Found> {
        loop {
            let Some((piece, entries)) = &mut self.block else {
                self.open_block(lost)?;
                continue;
            };
            match entries.next_slot() {
                Ok(Some(slot)) => {
                    let entry = entries.entry(&slot);
                    if !self.range.contains(entry.key) {
                        continue;
                    }
                    let mut entry: Entry = entry.into();
                    if entry.seq == SeqNo(0) {
                        entry.seq = self.date;
                    }
                    return Some(entry.into());
                }
                Ok(None) => self.block = None,
                // The rest cannot be decoded although the checksum of the block is right.
                Err(damage) => {
                    let rest = KeyRange { start: entries.key().into(), end: None };
                    let keys = piece.keys.intersection(&self.range).intersection(&rest);
                    let error = self.table.damaged(damage, piece);
                    lost.push(RemainsLoss { keys, only: None, error });
                    self.block = None;
                }
            }
        }
    }
}

/// A walk that has the values of references in their place, and loses entries without a value.
struct ValuesWalk {
    entries: Box<dyn SliceWalk>,
    values: Rc<ValueRemains>,
}

impl SliceWalk for ValuesWalk {
    fn next(&mut self, lost: &mut Vec<RemainsLoss>) -> Option<Found> {
        let mut lost_key = None;
        loop {
            let mut found = self.entries.next(lost)?;
            found.is_older |= lost_key.as_ref() == Some(&found.entry.key);
            if !found.entry.kind.is_reference() {
                return Some(found);
            }
            match self.values.read(&found.entry.value) {
                Ok(value) => {
                    found.entry.kind = found.entry.kind.resolved();
                    found.entry.value = value;
                    return Some(found);
                }
                Err(error) => {
                    let key = found.entry.key;
                    let end = Some(key_after(&key));
                    let keys = KeyRange { start: key.as_ref().into(), end };
                    let only = Some(BTreeSet::from([key.clone()]));
                    lost.push(RemainsLoss { keys, only, error });
                    lost_key = Some(key);
                }
            }
        }
    }
}

impl SortedWalk {
    /// Opens the next readable block. Adds the damaged ones before it to `lost`. Returns `None` if
    /// there is no other.
    fn open_block(&mut self, lost: &mut Vec<RemainsLoss>) -> Option<()> {
        loop {
            let piece = self.table.pieces().get(self.next)?.clone();
            self.next += 1;
            let keys = piece.keys.intersection(&self.range);
            if keys.is_empty() {
                continue;
            }
            match self.table.block(&piece) {
                Ok(block) => {
                    self.block = Some((piece, BlockWalk::new(block)));
                    return Some(());
                }
                Err(_) if self.may_have_holes && self.is_hole(&piece) => {}
                Err(error) => lost.push(RemainsLoss { keys, only: None, error }),
            }
        }
    }

    fn is_hole(&self, piece: &Piece) -> bool {
        self.table.touches_hole(piece).unwrap_or(false)
    }
}

impl SliceWalk for AppendedWalk {
    fn next(&mut self, lost: &mut Vec<RemainsLoss>) -> Option<Found> {
        loop {
            if let Some(found) = self.ready.pop_front() {
                return Some(found);
            }
            if self.is_over {
                return None;
            }
            match self.table.next_part(&mut self.walk) {
                Some(part) => self.take_part(part, lost),
                None => self.end(lost),
            }
        }
    }
}

impl AppendedWalk {
    /// Ends the walk. If the top of the table is lost, reports its entries as lost, and salvages
    /// what it can.
    fn end(&mut self, lost: &mut Vec<RemainsLoss>) {
        self.is_over = true;
        if let Some(error) = self.table.lost_top() {
            self.salvage(&self.range.clone());
            lost.push(RemainsLoss { keys: self.range.clone(), only: None, error });
        }
    }

    fn take_part(&mut self, part: AppendPart, lost: &mut Vec<RemainsLoss>) {
        for RemainsLoss { keys, only, error } in part.losses {
            let keys = keys.intersection(&self.range);
            if only.is_none() {
                self.salvage(&keys);
            }
            lost.push(RemainsLoss { keys, only, error });
        }
        let is_shown = |entry: &RemainsEntry| self.range.contains(&entry.key);
        self.ready.extend(part.entries.into_iter().filter(is_shown).filter_map(found));
    }

    fn salvage(&mut self, keys: &KeyRange) {
        self.ready.extend(self.table.salvage(keys).into_iter().filter_map(found));
    }
}

/// Returns an entry of an append table, unless its value is lost.
fn found(entry: RemainsEntry) -> Option<Found> {
    let RemainsEntry { key, seq, kind, value, is_older } = entry;
    let entry = Entry { key, seq, kind, value: value? };
    Some(Found { entry, below: Vec::new(), is_older })
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
        named: Option<&Table>,
    ) -> Result<Option<Rc<dyn Remains>>, Error> {
        if let Some(known) = tables.opened.get(&file_id) {
            return Ok(known.clone());
        }
        let opened = self.open_table(tables.names_roots, file_id, named);
        tables.opened.insert(file_id, opened.as_ref().ok().cloned());
        let table = opened?;
        for error in table.harmless() {
            self.report_error(FindingKind::Harmless, error);
        }
        Ok(Some(table))
    }

    fn open_table(
        &self,
        names_roots: bool,
        file_id: u64,
        named: Option<&Table>,
    ) -> Result<Rc<dyn Remains>, Error> {
        let path = numbered(&self.dir, FileKind::Table, file_id);
        let (env, files) = (&*self.env, &self.open_files);
        let is_append = match named {
            Some(named) => named.root != 0,
            None => AppendRemains::is_append(env, &path, file_id)?,
        };
        let root = named.map(|named| named.root).filter(|_| names_roots);
        Ok(match is_append {
            true => Rc::new(AppendRemains::open(env, &path, file_id, root, files)?),
            false => Rc::new(TableRemains::open(env, &path, file_id, files)?),
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
