//! What memory held, from copies of it and from the logs: the newest write of each key.

use super::known::Known;
use super::logs::{Logs, synced_before};
use super::{FindingKind, Old};
use crate::inspect::Entry;
use crate::memory::{Spilled, spilled_keyspace, take_record};
use bytes::Bytes;
use lsmith_storage::bounds::SEQ_MAX;
use lsmith_storage::log::{LogId, LogKind, LogRemains};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::{Key, KeyRange, SeqNo, key_after};
use std::collections::BTreeMap;

/// The newest write of each key.
pub(super) type Newest = BTreeMap<Bytes, Entry>;

/// What memory held of one keyspace.
#[derive(Default)]
pub(super) struct Memory {
    /// What is newer than all tables.
    pub(super) held: Newest,
    /// What is in a copy of memory, and the number of that file, where it is not known what has
    /// left memory since.
    pub(super) copied: Option<(u64, Newest)>,
    /// What the log still has though it is in tables as well.
    pub(super) logged: Newest,
    /// Up to this number a copy of memory stands in for the log.
    copied_upto: SeqNo,
}

/// What memory held of all keyspaces, by their numbers.
pub(super) type Memories = BTreeMap<u32, Memory>;

/// Keeps `entry` if it is the newest of its key.
fn keep(newest: &mut Newest, entry: Entry) {
    if newest.get(&entry.key).is_none_or(|known| known.seq <= entry.seq) {
        newest.insert(entry.key.clone(), entry);
    }
}

/// Reads all copies of memory and all logs.
pub(super) fn read(old: &mut Old, known: &mut Known) -> Memories {
    let mut memories = Memories::new();
    if known.is_exact {
        let keyspaces = known.keyspaces.iter();
        let spills: Vec<_> =
            keyspaces.filter_map(|(id, keyspace)| Some((*id, keyspace.state.spill?))).collect();
        for (id, spill) in spills {
            let copied = old.read_copy(spill.file, known);
            let memory: &mut Memory = memories.entry(id).or_default();
            if copied.entries >= spill.entries {
                memory.copied_upto = spill.newest;
            } else if !copied.is_told {
                let name = known.keyspaces[&id].state.name.clone();
                old.lose_copied(spill.file, copied.bytes, KeyRange::ALL, name);
            }
            memory.held = copied.newest;
        }
    } else {
        for file in old.numbers(FileKind::Spill) {
            let copied = old.read_copy(file, known);
            if let Some(id) = copied.keyspace {
                memories.entry(id).or_default().copied = Some((file, copied.newest));
            }
        }
    }
    let durable = known.keyspaces.values().map(|keyspace| keyspace.state.durable_seq()).max();
    let row = known.logs.filter(|_| known.is_exact);
    let mut numbers = old.numbers(FileKind::Wal);
    numbers.retain(|number| row.is_none_or(|row| *number >= row.from));
    let before = row.map_or(SeqNo(0), |row| SeqNo(row.first.0.saturating_sub(1)));
    let durable = durable.unwrap_or_default().max(before);
    let mut logs = Logs::new(known.is_exact.then_some(durable), synced_before(old, &numbers));
    for number in numbers {
        logs.read(old, number, &mut |old, first, ops| {
            for (op, seq) in ops.iter().zip(first.0..) {
                let memory = memories.entry(op.keyspace).or_default();
                let state = &known.keyspace(old, op.keyspace).state;
                let seq = SeqNo(seq);
                let is_past = seq <= memory.copied_upto || state.has_left_memory(op.key, seq);
                let (key, value) =
                    (Bytes::copy_from_slice(op.key), Bytes::copy_from_slice(op.value));
                let entry = Entry { key, seq, kind: op.kind, value };
                // Where marks are not known exactly the log is the better witness.
                match is_past && known.is_exact {
                    true => keep(&mut memory.logged, entry),
                    false => keep(&mut memory.held, entry),
                }
            }
        });
    }
    memories
}

/// What was read of a copy of memory.
#[derive(Default)]
struct Copied {
    keyspace: Option<u32>,
    newest: Newest,
    /// How many entries there were.
    entries: u64,
    /// Whether it was told that some are missing.
    is_told: bool,
    /// The length of the file.
    bytes: u64,
}

impl Old {
    /// Reads the copy of memory number `file`.
    fn read_copy(&mut self, file: u64, known: &mut Known) -> Copied {
        let path = numbered(&self.dir, FileKind::Spill, file);
        let mut copied = Copied::default();
        let id = LogId { kind: LogKind::Spill, number: file };
        // What is missing then is told by who knows of it.
        let Ok(remains) = LogRemains::read(&*self.env, &path, id) else { return copied };
        copied.bytes = remains.bytes();
        let (mut end, mut after) = (LogRemains::START, Key::new());
        for record in remains.records() {
            let Ok(keyspace) = spilled_keyspace(&record.payload) else { continue };
            let Ok(entries) = take_record(&record.payload, keyspace, SEQ_MAX) else { continue };
            copied.keyspace = Some(keyspace);
            let state = &known.keyspace(self, keyspace).state;
            if record.offset > end {
                let upto = entries.first().map(|first| key_after(&first.key));
                let keys = KeyRange { start: std::mem::take(&mut after), end: upto };
                self.lose_copied(file, end, keys, state.name.clone());
                copied.is_told = true;
            }
            end = record.offset + record.bytes;
            copied.entries += entries.len() as u64;
            after = entries.last().map(|last| key_after(&last.key)).unwrap_or_default();
            for Spilled { seq, kind, key, value } in entries {
                if !state.has_left_memory(&key, seq) {
                    keep(&mut copied.newest, Entry { key, seq, kind, value });
                }
            }
        }
        let is_used = remains.bytes_at(end..remains.bytes()).iter().any(|byte| *byte != 0);
        if let Some(keyspace) = copied.keyspace.filter(|_| is_used) {
            let name = known.keyspace(self, keyspace).state.name.clone();
            self.lose_copied(file, end, KeyRange { start: after, end: None }, name);
            copied.is_told = true;
        }
        copied
    }

    fn lose_copied(&mut self, file: u64, offset: u64, keys: KeyRange, keyspace: String) {
        let path = numbered(&self.dir, FileKind::Spill, file);
        let kind = FindingKind::LostKeys { keys, older: 0, logged: 0 };
        self.find(kind, &path, Some(offset), "entries of a copy of memory cannot be read");
        if let Some(last) = self.findings.last_mut() {
            last.keyspace = Some(keyspace);
        }
    }
}
