//! Reads of one key, and cursors over all.

use super::own::{OwnWrites, hide_stored};
use super::{MemoryRun, Moment, OpenRun, Source, Value, Version};
use crate::values::ValueFiles;
use bytes::Bytes;
use lsmith_storage::combine::{Combiner, Stack};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::expiry::{EXPIRY_BYTES, has_expired};
use lsmith_storage::format::key_hash;
use lsmith_storage::read::MergingCursor;
use lsmith_storage::reference::{ReadBytes, ReadValue};
use lsmith_storage::table::{CacheFill, OpenTable, ReadCount, ReadTable, ReadTally};
use lsmith_tree::{EntryKind, KeyRange, SeqNo};
use std::borrow::Cow;
use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::Arc;

/// The number of keys whose blocks are [requested](Version::request) at a time. Fewer than the
/// requests after a read that waited, so that the next keys find that reads wait.
pub(crate) const KEYS_TOGETHER: usize = 16;

/// The number of tables whose filters are loaded from main memory at the same time.
const TABLES_ASKED: usize = 8;

/// Returns the error of a read in a keyspace that was dropped.
#[cold]
pub(crate) fn dropped() -> Error {
    Error::new(ErrorKind::NotFound, "the keyspace was dropped: its handles are of no use any more")
}

impl Version {
    /// Returns the value of `key` at `moment`, or `None` if the key is absent. Counts reads of
    /// tables in `reads`.
    #[inline]
    pub(crate) fn get(
        &self,
        key: &[u8],
        moment: Moment<'_>,
        reads: &mut ReadCount,
    ) -> Result<Option<Value<'_>>> {
        // Before the entry: see there.
        let newest_range_delete = self.newest_range_delete(key, moment);
        let found = match moment {
            Moment::Latest(visible) => self.active.get_latest(key, visible),
            Moment::Snapshot(seq) => self.active.get(key, seq),
        };
        let in_memory = || self.memory.iter().find_map(|memory| memory.get(key, moment));
        if let Some(version) = found.or_else(in_memory) {
            let lsmith_storage::memtable::FoundVersion { kind, value, seq } = version;
            if seq < newest_range_delete {
                return Ok(None);
            }
            if kind.is_value() {
                return Ok(Some(Value::InMemory(value)));
            }
            return self.compute(Value::InMemory(value), kind, key, moment, reads);
        }
        let seq = moment.in_tables();
        let hash = key_hash(key);
        let mut runs = self.runs.iter();
        loop {
            let mut slots: [Option<&OpenTable>; TABLES_ASKED] = [None; TABLES_ASKED];
            let mut asked = 0;
            while asked < TABLES_ASKED
                && let Some(run) = runs.next()
            {
                if let Some(handle) = run.table_of(key)
                    && (newest_range_delete == SeqNo(0) || handle.newest() >= newest_range_delete)
                {
                    slots[asked] = Some(handle.table());
                    asked += 1;
                }
            }
            let were_all = asked < TABLES_ASKED;
            let tables = slots[..asked].iter().flatten();
            black_box(tables.clone().fold(0, |all, table| all ^ table.touch(hash)));
            for table in tables {
                if table.excludes(hash, reads) {
                    continue;
                }
                if let Some((block, slot)) = table.search(key, seq, reads)? {
                    let value = Value::InBlock { block, slot, version: PhantomData };
                    if slot.seq < newest_range_delete {
                        return Ok(None);
                    }
                    if slot.kind.is_value() {
                        return Ok(Some(value));
                    }
                    return self.compute(value, slot.kind, key, moment, reads);
                }
            }
            if were_all {
                // Of a dropped keyspace nothing is found, so other reads need not look.
                return if self.is_dropped { Err(dropped()) } else { Ok(None) };
            }
        }
    }

    /// Requests the blocks and the values that reads of `keys` will wait for, so that the device
    /// reads them at the same time. Counts no read.
    #[cold]
    pub(crate) fn request(&self, keys: &[Cow<'_, [u8]>]) {
        let mut reads = ReadCount::default();
        // The first table that a filter lets a key into has it, nearly always.
        let mut table_of = |key: &[u8]| {
            let hash = key_hash(key);
            let tables = self.runs.iter().filter_map(|run| run.table_of(key));
            tables.map(|handle| handle.table()).find(|table| !table.excludes(hash, &mut reads))
        };
        let tables: Vec<_> = keys.iter().map(|key| table_of(key)).collect();
        let found = || keys.iter().zip(&tables).filter_map(|(key, table)| Some((key, (*table)?)));
        found().for_each(|(key, table)| table.request(key));
        let Some(values) = self.values.as_ref().filter(|values| values.waits()) else { return };
        for (key, table) in found() {
            if let Ok(Some((block, slot))) = table.search(key, SeqNo::MAX, &mut reads)
                && slot.kind.is_reference()
            {
                values.announce(block.value(&slot));
            }
        }
    }

    /// Returns the value of `key`, whose newest entry at `moment`, with value `stored`, does not
    /// say it by itself: it is a combine, a tombstone, expires, or lies in a value file.
    #[cold]
    #[inline(never)]
    fn compute<'a>(
        &'a self,
        stored: Value<'a>,
        kind: EntryKind,
        key: &[u8],
        moment: Moment<'_>,
        reads: &mut ReadCount,
    ) -> Result<Option<Value<'a>>> {
        if kind.is_tombstone() {
            return Ok(None);
        }
        if kind.is_reference() {
            let value = self.read_value(stored.bytes());
            return Ok(Some(Value::Apart(value.map_err(|error| error.of_key(key))?)));
        }
        if kind == EntryKind::Expiring {
            let has_expired = has_expired(kind, stored.bytes(), self.rules.now()?);
            return Ok((!has_expired).then(|| stored.without_first(EXPIRY_BYTES)));
        }
        let mut hidden_below = self.newest_range_delete(key, moment);
        // A range delete that became visible meanwhile may lie under entries that were seen.
        let stack = loop {
            let stack = self.stack(key, moment, hidden_below, reads)?;
            let newest = self.newest_range_delete(key, moment);
            if newest == std::mem::replace(&mut hidden_below, newest) {
                break stack;
            }
        };
        let value = stack.combine(key, Some(&*self.rules))?;
        Ok(value.map(Value::InMemory))
    }

    /// Returns the value that `reference` leads to, for a reader.
    fn read_value(&self, reference: &[u8]) -> Result<ReadBytes> {
        self.value_files()?.read_value(reference, false)
    }

    /// Reads the value that `reference` leads to by a call, and checks it.
    pub(crate) fn read_checked(&self, reference: &[u8]) -> Result<Bytes> {
        self.value_files()?.read_checked(reference)
    }

    fn value_files(&self) -> Result<&Arc<ValueFiles>> {
        let missing = || Error::new(ErrorKind::Corruption, "a table names no value file");
        self.values.as_ref().ok_or_else(missing)
    }

    /// Returns what reads the values of its references.
    pub(crate) fn value_reader(&self) -> Option<Arc<dyn ReadValue>> {
        self.values.as_ref().map(|values| Arc::clone(values) as Arc<dyn ReadValue>)
    }

    /// Reads all entries of `key` down to the first that is no combine, or that lies under the
    /// range delete `hidden_below`.
    fn stack(
        &self,
        key: &[u8],
        moment: Moment<'_>,
        hidden_below: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Stack> {
        let mut stack = Stack::at(self.rules.now()?).above(hidden_below);
        self.active.push_on(&mut stack, key, || moment.in_memory());
        for memory in self.memory.iter() {
            if !stack.is_whole() {
                memory.push_on(&mut stack, key, moment);
            }
        }
        let hash = key_hash(key);
        for table in self.runs.iter().filter_map(|run| run.table_of(key)) {
            let mut seq = moment.in_tables();
            while !stack.is_whole()
                && let Some((block, slot)) = table.table().find(key, hash, seq, reads)?
            {
                let stored = block.shared_value(&slot);
                let value = if slot.kind.is_reference() {
                    self.read_value(&stored)?.into_shared()
                } else {
                    stored
                };
                stack.push(slot.seq, slot.kind.resolved(), value);
                // A combine always has a sequence number, and older entries of the table smaller
                // ones.
                let Some(older) = slot.seq.0.checked_sub(1) else { break };
                seq = SeqNo(older);
            }
        }
        Ok(stack)
    }

    /// Returns a cursor over all entries, merged from all sources, newest source first. Adds all
    /// reads to `tally`.
    pub(crate) fn cursor(&self, tally: &Arc<ReadTally>) -> MergingCursor<Source> {
        self.cursor_within(None, || KeyRange::ALL, tally)
    }

    /// Returns the same cursor with the writes of `own`. Callers look only at keys in `range`, so
    /// runs that have none there may be missing. `range` is called at most once, and only if
    /// filters hold prefixes.
    pub(crate) fn cursor_within(
        &self,
        own: Option<OwnWrites>,
        range: impl FnOnce() -> KeyRange,
        tally: &Arc<ReadTally>,
    ) -> MergingCursor<Source> {
        let (own, range_deletes) = own.map(OwnWrites::into_source).unzip();
        let active = (!self.active.is_empty()).then(|| Source::Active(self.active.cursor()));
        let in_memory = |run: &Arc<MemoryRun>| Source::of_memory(run, &KeyRange::ALL);
        let memory = self.memory.iter().map(in_memory);
        let source = |run: &Arc<OpenRun>| run.source(&KeyRange::ALL, CacheFill::Yes, Some(tally));
        let range = self.runs.iter().any(|run| run.has_prefixes()).then(range);
        let is_wanted = |run: &&Arc<OpenRun>| {
            range.as_ref().is_none_or(|range| !run.has_prefixes() || !run.is_excluded(range, tally))
        };
        let runs = self.runs.iter().filter(is_wanted).map(source);
        let sources = own.into_iter().chain(active).chain(memory).chain(runs).collect();
        MergingCursor::new(match range_deletes {
            Some(range_deletes) => hide_stored(sources, &range_deletes),
            None => sources,
        })
    }
}
