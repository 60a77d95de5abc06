//! Reads one manifest of a damaged store: exactly up to the first damage, and loosely behind it.

use super::damaged::DamagedStore;
use super::loose::LooseTree;
use super::report::FindingKind;
use crate::manifest::{Account, KEYSPACE_MAX, KeyspaceFacts, KeyspaceRecord, LeastBytes, Record};
use crate::options::{DEFAULT_KEYSPACE, DEFAULT_POLICY};
use lsmith_storage::error::{ErrorKind, Result};
use lsmith_storage::log::{FoundRecord, LogId, LogKind, LogRemains};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::{Slice, Table, TableId, TreeEdit, apply};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The memtable size of a keyspace whose size is unknown, in logical bytes.
const MEMTABLE_BYTES: u64 = 56 << 20;

/// The name of the keyspace that gets tables whose keyspace is unknown.
const LOST_TABLES: &str = "lost-tables";

/// The id of that keyspace while the store is repaired.
pub(super) const LOST_TABLES_ID: u32 = KEYSPACE_MAX;

/// The keyspaces of tables, by table number.
type Owners = BTreeMap<u64, u32>;

/// A manifest that is being read.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) account: Account,
    /// True while all of it was readable.
    pub(super) is_whole: bool,
    /// The length that the file must have.
    least: LeastBytes,
    /// Trees to which edits were applied loosely. They replace the trees in `account`.
    pub(super) loose: BTreeMap<u32, LooseTree>,
    /// The metadata of tables, from all records.
    pub(super) tables: BTreeMap<TableId, Arc<Table>>,
    /// The keyspaces of tables, from readable records.
    pub(super) owners: Owners,
    /// The keyspaces of tables, from the text of damaged records.
    pub(super) likely_owners: Owners,
}

impl Reading {
    /// Reads manifest `file_id`, including records behind damage.
    pub(super) fn new(old: &mut DamagedStore, file_id: u64) -> Result<Reading> {
        let path = numbered(&old.dir, FileKind::Manifest, file_id);
        let id = LogId { kind: LogKind::Manifest, file_id };
        let mut reading = Reading::default();
        let remains = match LogRemains::read(&*old.env, &path, id) {
            Ok(remains) => remains,
            Err(error) if error.kind() == ErrorKind::Unsupported => return Err(error),
            Err(error) => {
                old.report_error(FindingKind::Guessed, &error);
                return Ok(reading);
            }
        };
        reading.is_whole = true;
        let is_torn = remains.end.is_ok();
        let mut end = remains.start();
        for record in remains.records().take_while(|record| record.skipped == 0 || !is_torn) {
            if record.skipped > 0 {
                reading.lose(&remains, end..record.offset);
            }
            end = record.offset + record.bytes;
            reading.take(old, &path, &record);
        }
        if let Err(error) = reading.least.check(&path, remains.bytes()) {
            // What looks like a torn end was cut off.
            reading.is_whole = false;
            old.report_error(FindingKind::Guessed, &error);
        }
        if let Err(error) = &remains.end {
            // The header alone may be damaged.
            if error.offset() >= Some(end) {
                reading.lose(&remains, end..remains.bytes());
            }
            let is_harmless = reading.is_whole;
            let kind = if is_harmless { FindingKind::Harmless } else { FindingKind::Guessed };
            old.report_error(kind, error);
        }
        // A manifest whose making was interrupted may have no records.
        reading.is_whole &= reading.account.next_file > 0;
        Ok(reading)
    }

    /// Notes that the bytes at `place` cannot be read as records, and which tables their text
    /// names.
    fn lose(&mut self, remains: &LogRemains, place: std::ops::Range<u64>) {
        self.is_whole = false;
        let text = String::from_utf8_lossy(remains.bytes_at(place)).into_owned();
        for (keyspace, tables) in named_tables(&text) {
            self.likely_owners.extend(tables.into_iter().map(|table| (table, keyspace)));
        }
    }

    /// Applies one record: exactly while all records before it were readable, then loosely.
    fn take(&mut self, old: &mut DamagedStore, path: &Path, found: &FoundRecord) {
        let record = match Record::decode(&found.payload) {
            Ok(record) => record,
            Err(fault) => {
                self.is_whole = false;
                old.report_error(FindingKind::Guessed, &fault.at(path, found.offset));
                return;
            }
        };
        self.note_tables(&record);
        self.least.take(&record, found.payload.len(), found.offset + found.bytes);
        if self.is_whole {
            match self.account.take(record.clone()) {
                Ok(()) => return,
                Err(message) => {
                    self.is_whole = false;
                    old.report(FindingKind::Guessed, path, Some(found.offset), message);
                }
            }
        }
        self.take_loosely(record);
    }

    /// Notes the tables that `record` names, with their keyspace and metadata.
    fn note_tables(&mut self, record: &Record) {
        let (keyspace, slices): (u32, Vec<_>) = match record {
            Record::Together(edits) => return edits.iter().for_each(|edit| self.note_tables(edit)),
            Record::Tree { keyspace, tree, .. } => {
                (*keyspace, tree.disk_runs().flat_map(|run| run.slices()).collect())
            }
            Record::Edit { keyspace, edit, .. } => {
                (*keyspace, edit.add.iter().flat_map(|addition| &addition.slices).collect())
            }
            _ => return,
        };
        for slice in slices {
            let table = slice.table();
            self.owners.insert(table.id.0, keyspace);
            if !table.range.is_all() {
                self.tables.insert(table.id, Arc::clone(table));
            }
        }
    }

    /// Makes up keyspace `id` if it does not exist.
    pub(super) fn make_keyspace(&mut self, id: u32) {
        if !self.account.keyspaces.contains_key(&id) {
            let made = self.account.take(Record::Keyspace(made_up(id)));
            made.expect("there is no such keyspace yet");
        }
    }

    /// Applies `record` as well as possible.
    fn take_loosely(&mut self, record: Record) {
        match record {
            Record::Together(edits) => edits.into_iter().for_each(|edit| self.take_loosely(edit)),
            Record::Edit { keyspace, flushed_seq, taken, mut edit } => {
                for added in &mut edit.add {
                    let slices = std::mem::take(&mut added.slices);
                    let known = slices.into_iter().filter_map(|slice| self.with_table(slice));
                    added.slices = known.collect();
                }
                edit.add.retain(|added| !added.slices.is_empty());
                self.make_keyspace(keyspace);
                let state = self.account.keyspaces.get_mut(&keyspace).expect("it was just made");
                state.flushed_seq = state.flushed_seq.max(flushed_seq);
                state.taken.extend(&taken);
                let (range_deletes, forget) = (edit.range_deletes.clone(), edit.forget.clone());
                let hiding = TreeEdit { range_deletes, forget, ..TreeEdit::default() };
                apply(&mut state.tree, &hiding).expect("range deletes fit any tree");
                let tree = self.loose.entry(keyspace);
                tree.or_insert_with(|| LooseTree::new(&state.tree)).change(edit);
            }
            Record::Tree { keyspace, .. } => {
                self.make_keyspace(keyspace);
                if self.account.take(record).is_ok() {
                    let tree = LooseTree::new(&self.account.keyspaces[&keyspace].tree);
                    self.loose.insert(keyspace, tree);
                }
            }
            Record::Keyspace(made) => self.name_keyspace(made, "none".to_string()),
            Record::CompressedKeyspace(made, codecs) => self.name_keyspace(made, codecs),
            Record::NumberedKeyspace(made, codecs) => {
                let id = made.id;
                self.name_keyspace(made, codecs);
                let state = self.account.keyspaces.get_mut(&id).expect("it was just made");
                state.keeps_seqs = true;
            }
            Record::Group(made, codecs) => {
                let id = made.id;
                self.name_keyspace(made, codecs);
                self.name_member(id, None);
            }
            Record::Member { group, member, name } => self.name_member(group, Some((member, name))),
            Record::Operator { operator, made } => {
                if let Some((state, member_id)) = self.make_loosely(*made) {
                    state.operators.insert(member_id, operator);
                }
            }
            Record::Expiry { expiry, made } => {
                if let Some((state, member_id)) = self.make_loosely(*made) {
                    state.expiries.insert(member_id, expiry);
                }
            }
            Record::Filters { filters, made } => {
                let Some(keyspace) = made.makes_tree() else { return };
                self.take_loosely(*made);
                if let Some(state) = self.account.keyspaces.get_mut(&keyspace)
                    && filters.check().is_ok()
                {
                    state.filters = filters;
                }
            }
            Record::Policy { keyspace, .. }
            | Record::Compression { keyspace, .. }
            | Record::Spill { keyspace, .. } => {
                self.make_keyspace(keyspace);
                self.take_if_it_fits(record);
            }
            record => self.take_if_it_fits(record),
        }
    }

    /// Makes keyspace `group` a group, and names one of its keyspaces. Those below it get made-up
    /// names if their records are lost.
    fn name_member(&mut self, group: u32, member: Option<(u8, String)>) {
        self.make_keyspace(group);
        let state = self.account.keyspaces.get_mut(&group).expect("it was just made");
        let members = state.members.get_or_insert_default();
        let Some((member_id, name)) = member else { return };
        for member_id in members.len()..=usize::from(member_id) {
            members.push(lost_member(group, member_id));
        }
        members[usize::from(member_id)] = name;
    }

    /// Applies `made`, a record that makes a keyspace. Returns its tree, and its id there.
    fn make_loosely(&mut self, made: Record) -> Option<(&mut KeyspaceFacts, u8)> {
        let (keyspace, member_id) = made.makes()?;
        self.take_loosely(made);
        Some((self.account.keyspaces.get_mut(&keyspace)?, member_id))
    }

    fn take_if_it_fits(&mut self, record: Record) {
        if let Err(message) = self.account.take(record) {
            tracing::warn!(message, "a record of the manifest does not fit and is left out");
        }
    }

    /// Sets name, policy, memtable size and codecs of a keyspace, which may exist already.
    fn name_keyspace(&mut self, made: KeyspaceRecord, compression: String) {
        self.make_keyspace(made.id);
        let state = self.account.keyspaces.get_mut(&made.id).expect("it was just made");
        state.name = made.name;
        state.policy = made.policy;
        state.memtable_bytes = made.memtable_bytes;
        state.compression = compression;
    }

    /// Returns `slice` with the metadata of its table, which the record may leave out. Returns
    /// `None` if the metadata is unknown.
    fn with_table(&self, slice: Slice) -> Option<Slice> {
        if !slice.table().range.is_all() {
            return Some(slice);
        }
        let table = self.tables.get(&slice.table().id)?;
        Slice::whole(table.clone()).clip(slice.range())
    }
}

/// Returns a record of a keyspace if only its id is known. Id 0 gets the name of the
/// default keyspace, which most stores make first.
pub(super) fn made_up(id: u32) -> KeyspaceRecord {
    let name = match id {
        0 => DEFAULT_KEYSPACE.to_string(),
        LOST_TABLES_ID => LOST_TABLES.to_string(),
        id => format!("keyspace-{id}"),
    };
    let policy = DEFAULT_POLICY.to_string();
    KeyspaceRecord { id, name, policy, memtable_bytes: MEMTABLE_BYTES }
}

/// Returns the tables that `text`, the remains of records of trees and edits, names, by keyspace.
fn named_tables(text: &str) -> BTreeMap<u32, BTreeSet<u64>> {
    let mut named = BTreeMap::<u32, BTreeSet<u64>>::new();
    let mut keyspace = None;
    for line in text.lines() {
        // The frame before a record does not end a line.
        let head = ["short_edit ", "short_tree "].iter().find_map(|kind| line.split_once(kind));
        if let Some((_, rest)) = head {
            keyspace = rest.split(' ').next().and_then(|id| id.parse().ok());
        }
        let Some(keyspace) = keyspace else { continue };
        let tables = line.split(['[', ' ']).filter_map(|word| {
            let (table, _) = word.strip_prefix('t')?.split_once(':')?;
            table.parse::<u64>().ok()
        });
        named.entry(keyspace).or_default().extend(tables);
    }
    named
}

/// Returns the name of keyspace `member_id` of group `id` if its own is lost.
pub(super) fn lost_member(id: u32, member_id: usize) -> String {
    format!("keyspace-{id}-{member_id}")
}
