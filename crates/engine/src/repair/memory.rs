//! Reads what memory held, from spills and from the logs: the newest write of each key.

use super::damaged::DamagedStore;
use super::known::Known;
use super::logs::Logs;
use super::report::FindingKind;
use crate::inspect::Entry;
use crate::memory::{Spilled, spilled_keyspace, take_record};
use bytes::Bytes;
use lsmith_storage::bounds::SEQ_MAX;
use lsmith_storage::format::{OpKind, deleted_range};
use lsmith_storage::log::{LogId, LogKind, LogRemains};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::{EntryKind, Key, KeyRange, RangeDeletes, Readers, SeqNo, key_after};
use std::collections::{BTreeMap, VecDeque};

/// The newest writes of each key, newest first: combines, and the first write below them that is
/// none.
pub(super) type Newest = BTreeMap<Bytes, VecDeque<Entry>>;

/// The entries of one keyspace from logs and spills.
#[derive(Default)]
pub(super) struct Memory {
    /// Entries that are newer than all tables.
    pub(super) held: Newest,
    /// The file id and the entries of a spill, if it is unknown which of them have
    /// been merged into tables since.
    pub(super) copied: Option<(u64, Newest)>,
    /// Entries of the log that are in tables too.
    pub(super) logged: Newest,
    /// The range deletes of the logs that are not in the tree yet.
    pub(super) range_deletes: RangeDeletes,
    /// All range deletes of the logs.
    pub(super) logged_range_deletes: RangeDeletes,
    /// The sequence number up to which a spill replaces the log.
    copied_end: SeqNo,
}

/// The entries of all keyspaces, by the id of the keyspace.
pub(super) type Memories = BTreeMap<u32, Memory>;

/// Adds `entry`, unless newer writes of its key hide it.
fn keep_newest(newest: &mut Newest, entry: Entry) {
    let known = newest.entry(entry.key.clone()).or_default();
    let newer = known.partition_point(|known| known.seq > entry.seq);
    if newer > 0 && known[newer - 1].kind != EntryKind::Combine {
        return;
    }
    if entry.kind != EntryKind::Combine {
        known.truncate(newer);
    } else if known.get(newer).is_some_and(|known| known.seq == entry.seq) {
        known.remove(newer);
    }
    known.insert(newer, entry);
}

/// Reads all spills and all logs.
pub(super) fn read(old: &mut DamagedStore, known: &mut Known) -> Memories {
    let mut memories = Memories::new();
    if known.is_exact {
        let keyspaces = known.keyspaces.iter();
        let spills: Vec<_> =
            keyspaces.filter_map(|(id, keyspace)| Some((*id, keyspace.state.spill?))).collect();
        for (id, spill) in spills {
            let copied = old.read_copy(spill.file, known);
            let memory: &mut Memory = memories.entry(id).or_default();
            if copied.entries >= spill.entries {
                memory.copied_end = spill.newest;
            } else if !copied.is_reported {
                let name = known.keyspaces[&id].state.name.clone();
                old.lose_copied(spill.file, copied.bytes, KeyRange::ALL, name);
            }
            memory.held = copied.newest;
        }
    } else {
        for file in old.file_ids(FileKind::Spill) {
            let copied = old.read_copy(file, known);
            if let Some(id) = copied.keyspace {
                memories.entry(id).or_default().copied = Some((file, copied.newest));
            }
        }
    }
    let (mut logs, log_ids) = Logs::new(old, known);
    for &file_id in &log_ids {
        logs.read(old, file_id, &mut |old, first, ops| {
            for (op, seq) in ops.iter().zip(first.0..) {
                if known.was_dropped(op.keyspace) {
                    continue;
                }
                let memory = memories.entry(op.keyspace).or_default();
                let state = &known.keyspace(old, op.keyspace).state;
                let seq = SeqNo(seq);
                let OpKind::Entry(kind) = op.kind else {
                    let range = deleted_range(op.key, op.value);
                    memory.logged_range_deletes.delete_range(&range, seq, &Readers::ANY);
                    if !state.has_in_tree(seq) {
                        memory.range_deletes.delete_range(&range, seq, &Readers::ANY);
                    }
                    continue;
                };
                let is_past = seq <= memory.copied_end || state.has_left_memory(op.key, seq);
                let entry = Entry {
                    key: Bytes::copy_from_slice(op.key),
                    seq,
                    kind,
                    value: Bytes::copy_from_slice(op.value),
                };
                // If marks are not exact, the log is more reliable than they are.
                let in_tables = is_past && known.is_exact;
                let target = if in_tables { &mut memory.logged } else { &mut memory.held };
                keep_newest(target, entry);
            }
        });
    }
    logs.end(old, known, log_ids.last().copied());
    memories
}

/// The readable content of a spill.
#[derive(Default)]
struct CopiedMemory {
    keyspace: Option<u32>,
    newest: Newest,
    /// The number of entries.
    entries: u64,
    /// True if missing entries were reported.
    is_reported: bool,
    /// The length of the file.
    bytes: u64,
}

impl DamagedStore {
    /// Reads the spill with file id `file`, and reports entries that are lost behind its first
    /// record. The caller reports a file that cannot be read at all.
    fn read_copy(&mut self, file: u64, known: &mut Known) -> CopiedMemory {
        let path = numbered(&self.dir, FileKind::Spill, file);
        let mut copied = CopiedMemory::default();
        let id = LogId { kind: LogKind::Spill, file_id: file };
        let Ok(remains) = LogRemains::read(&*self.env, &path, id) else { return copied };
        copied.bytes = remains.bytes();
        let mut end = remains.start();
        let mut after = Key::new();
        for record in remains.records() {
            let Ok(keyspace) = spilled_keyspace(&record.payload) else { continue };
            let Ok(entries) = take_record(&record.payload, keyspace, SEQ_MAX) else { continue };
            copied.keyspace = Some(keyspace);
            let state = &known.keyspace(self, keyspace).state;
            if record.offset > end {
                let keys = KeyRange {
                    start: std::mem::take(&mut after),
                    end: entries.first().map(|first| key_after(&first.key)),
                };
                self.lose_copied(file, end, keys, state.name.clone());
                copied.is_reported = true;
            }
            end = record.offset + record.bytes;
            copied.entries += entries.len() as u64;
            after = entries.last().map(|last| key_after(&last.key)).unwrap_or_default();
            for Spilled { seq, kind, key, value } in entries {
                if !state.has_left_memory(&key, seq) {
                    keep_newest(&mut copied.newest, Entry { key, seq, kind, value });
                }
            }
        }
        let is_used = remains.bytes_at(end..remains.bytes()).iter().any(|byte| *byte != 0);
        if let Some(keyspace) = copied.keyspace.filter(|_| is_used) {
            let name = known.keyspace(self, keyspace).state.name.clone();
            self.lose_copied(file, end, KeyRange { start: after, end: None }, name);
            copied.is_reported = true;
        }
        copied
    }

    /// Reports that the spill with file id `file` has lost entries within `keys`.
    fn lose_copied(&mut self, file: u64, offset: u64, keys: KeyRange, keyspace: String) {
        let path = numbered(&self.dir, FileKind::Spill, file);
        let kind = FindingKind::LostKeys { keys, older: 0, logged: 0 };
        self.report(kind, &path, Some(offset), "entries of a spill cannot be read");
        if let Some(last) = self.findings.last_mut() {
            last.keyspace = Some(keyspace);
        }
    }
}
