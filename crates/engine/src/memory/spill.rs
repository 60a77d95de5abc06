//! Copies memory to a file, so that the start of the log can be removed.
//!
//! The file is framed like a log. It holds every entry of a keyspace's sealed memory, with its
//! sequence number. As in memory, overwritten and cancelled entries are absent, and an entry's kind
//! sums up the writes beneath it. The copy replaces the log up to the newest write in it. A record
//! of the file is
//!
//! ```text
//! keyspace | count | entry ...
//! entry = kind: u8 | sequence number | key: bytes | value: bytes, for put and insert
//! ```
//!
//! where integers are varints.

use crate::context::Context;
use crate::keyspace::{KeyspaceShared, KeyspaceState, Request, WriteSpan};
use crate::manifest::{Manifest, Record, Spill};
use crate::stats::add;
use crate::version::Version;
use bytes::Bytes;
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::directory;
use lsmith_storage::env::{Env, SyncReach};
use lsmith_storage::error::{Error, Result};
use lsmith_storage::format::take_pair;
use lsmith_storage::format::{Damage, Reader, put_bytes, put_varint};
use lsmith_storage::log::{LogEnd, LogId, LogKind, LogReader, LogWriter};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::panics;
use lsmith_storage::read::MergingCursor;
use lsmith_storage::sync::MutexGuard;
use lsmith_tree::{EntryKind, KeyRange, MergePlan, RunId, SeqNo, TreeEdit};
use std::path::Path;
use std::sync::Arc;

/// A record ends when its entries have this number of bytes.
const RECORD_BYTES: usize = 256 * 1024;

/// The reserved copying of memory.
pub(crate) struct ReservedSpill {
    keyspace: Arc<KeyspaceShared>,
    content: SpillContent,
}

enum SpillContent {
    /// The inputs of this plan, which are all runs in memory. Its reservation keeps plans away.
    Runs(MergePlan),
    /// Nothing. There is no run in memory, because these writes have cancelled each other.
    Vanished(WriteSpan),
}

/// An entry that was read from a spill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spilled {
    pub(crate) seq: SeqNo,
    pub(crate) kind: EntryKind,
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
}

impl ReservedSpill {
    /// Reserves the memory of `keyspace` for copying, if that is due and no plan under way takes
    /// from memory. A blocked plan does not stand in the way: it may be why memory is copied.
    pub(crate) fn next(keyspace: &Arc<KeyspaceShared>, state: &mut KeyspaceState) -> Option<Self> {
        if !state.is_spill_due() {
            state.requests.withdraw(Request::Spill);
            return None;
        }
        (!state.is_memory_in_work()).then(|| {
            state.requests.withdraw(Request::Spill);
            let content = match state.vanished.filter(|_| state.sealed.is_empty()) {
                Some(vanished) => {
                    // Keeps the keyspace from coming to rest before this is done.
                    state.leaving += 1;
                    SpillContent::Vanished(vanished)
                }
                None => {
                    SpillContent::Runs(state.reserve_memory("memory is copied so that logs can go"))
                }
            };
            ReservedSpill { keyspace: Arc::clone(keyspace), content }
        })
    }

    /// Copies memory, or records that the writes have left nothing, so that memory no longer needs
    /// the log. After a failure the log's owner asks again when the log has grown further. `synced`
    /// is the result of syncing the logs first.
    pub(crate) fn carry_out(&self, context: &Context, manifest: &Manifest, synced: Result<()>) {
        let spill = Spilling { context, manifest, keyspace: &self.keyspace };
        let done = match &self.content {
            SpillContent::Runs(reserved) => spill.copy_runs(reserved, synced),
            SpillContent::Vanished(vanished) => {
                let _busy = self.keyspace.busy_guard();
                panics::as_error("forgetting cancelled writes", || {
                    synced.and_then(|()| spill.forget_vanished(*vanished))
                })
            }
        };
        if let Err(error) = done {
            tracing::warn!(
                keyspace = %self.keyspace.name,
                error = %format_args!("{error:#}"),
                "memory could not be copied"
            );
        }
    }
}

/// The copying of the memory of one keyspace.
#[derive(Clone, Copy)]
struct Spilling<'a> {
    context: &'a Context,
    manifest: &'a Manifest,
    keyspace: &'a KeyspaceShared,
}

impl Spilling<'_> {
    /// Records in the manifest that the writes `vanished`, and all writes of the keyspace before
    /// them, have left memory.
    fn forget_vanished(&self, vanished: WriteSpan) -> Result<()> {
        let keyspace = self.keyspace;
        let committing = keyspace.committing.lock();
        let flushed_seq = vanished.newest;
        let record = Record::Edit {
            keyspace: keyspace.id,
            flushed_seq,
            taken: Vec::new(),
            edit: TreeEdit::default(),
        };
        self.manifest.write(record, |_| ())?;
        let mut state = keyspace.state.lock();
        state.vanished = state.vanished.filter(|now| now.newest > flushed_seq);
        let spill = state.spill.filter(|spill| spill.newest <= flushed_seq);
        if spill.is_some() {
            state.spill = None;
        }
        drop(state);
        drop(committing);
        remove_spill(self.context, spill);
        Ok(())
    }

    /// Copies the runs that `reserved` takes. Fails with the error in `synced`, if it is one.
    fn copy_runs(&self, reserved: &MergePlan, synced: Result<()>) -> Result<()> {
        let Spilling { context, keyspace, .. } = *self;
        // The id of the file, once it is made.
        let mut made = None;
        let version = keyspace.version.load_full();
        let runs: Vec<RunId> = reserved.inputs.iter().map(|input| input.run).collect();
        let written = panics::as_error("copying memory", || {
            synced?;
            Copy { context, keyspace, runs: &runs, version: &version }.write(&mut made)
        });
        // Before the runs are released: it may hold obsolete tables.
        drop(version);
        let committing = keyspace.committing.lock();
        let mut state = keyspace.state.lock();
        let committed = panics::as_error("copying memory", || {
            written.and_then(|copy| self.commit(&mut state, &runs, copy))
        });
        state.release(reserved);
        drop(state);
        drop(committing);
        // If the store is poisoned, the manifest may name the file.
        if let (Err(_), Some(file), Ok(())) = (&committed, made, context.check_writable()) {
            remove_file(context, file);
        }
        committed
    }

    /// Records the copy in the manifest, and removes the one before. Other threads may take the
    /// lock of `state` while the manifest is written. The reservation keeps the copied runs as they
    /// are, and memtables sealed meanwhile are newer than the copy.
    fn commit(
        &self,
        state: &mut MutexGuard<'_, KeyspaceState>,
        runs: &[RunId],
        (file, entries): (u64, u64),
    ) -> Result<()> {
        let writes = state.writes_of(runs).expect("no plan takes reserved runs");
        let spill = Spill { file, newest: writes.newest, entries };
        self.record_range_deletes(state, writes.newest)?;
        let record = Record::Spill { keyspace: self.keyspace.id, spill };
        MutexGuard::unlocked(state, || self.manifest.write(record, |_| ()))?;
        let step = self.context.one_step();
        for sealed in state.sealed.iter_mut().filter(|sealed| runs.contains(&sealed.run)) {
            sealed.writes.log = None;
        }
        // Cancelled writes that are older than the copy need no log any more.
        state.vanished = state.vanished.filter(|vanished| vanished.newest > spill.newest);
        let old = state.spill.replace(spill);
        step.over();
        remove_spill(self.context, old);
        Ok(())
    }
}

impl Spilling<'_> {
    /// Records the range deletes in memory up to sequence number `newest` in the manifest, and
    /// moves them to the tree: the copy has only entries, and the log will not be read.
    fn record_range_deletes(
        &self,
        state: &mut MutexGuard<'_, KeyspaceState>,
        newest: SeqNo,
    ) -> Result<()> {
        let edit =
            TreeEdit { range_deletes: state.range_deletes_upto(newest), ..TreeEdit::default() };
        if edit.range_deletes.is_empty() {
            return Ok(());
        }
        let record = Record::Edit {
            keyspace: self.keyspace.id,
            flushed_seq: SeqNo(0),
            taken: Vec::new(),
            edit: edit.clone(),
        };
        MutexGuard::unlocked(state, || self.manifest.write(record, |_| ()))?;
        let step = self.context.one_step();
        // Memtables may have been sealed meanwhile.
        edit.clone().apply_to(&mut state.view.tree).expect("range deletes fit any tree");
        state.forget_range_deletes(newest);
        self.keyspace.publish(state);
        step.over();
        Ok(())
    }
}

/// Removes the file of the copy `spill`, if there is one. The manifest must no longer name it.
pub(crate) fn remove_spill(context: &Context, spill: Option<Spill>) {
    if let Some(spill) = spill {
        remove_file(context, spill.file);
    }
}

fn remove_file(context: &Context, file: u64) {
    let path = numbered(&context.options.dir, FileKind::Spill, file);
    let remove = || context.leases.remove(file, path, "an old spill");
    panics::logged("the environment", remove);
}

/// A spill that is being written.
struct Copy<'a> {
    context: &'a Context,
    keyspace: &'a KeyspaceShared,
    runs: &'a [RunId],
    version: &'a Version,
}

impl Copy<'_> {
    /// Writes the file, and makes it and its name durable. Returns its file id, which `made` gets
    /// as soon as it is made, and the number of entries.
    fn write(&self, made: &mut Option<u64>) -> Result<(u64, u64)> {
        let options = &self.context.options;
        // The file is allocated at its full length, which a first pass over the entries finds out.
        let mut lengths = Vec::new();
        let entries = self.records(|record| {
            lengths.push(record.len());
            Ok(())
        })?;
        let capacity = LogWriter::capacity_for(&*options.env, lengths);
        let (file_id, log) = self.context.make_numbered(FileKind::Spill, |path, file_id| {
            let id = LogId { kind: LogKind::Spill, file_id };
            LogWriter::create(&*options.env, path, id, capacity)
        })?;
        *made = Some(file_id);
        self.records(|record| log.append(&[record]).map(drop))?;
        log.sync(SyncReach::All)?;
        directory::sync(&*options.env, &options.dir)?;
        let counts = &self.context.counts;
        add(&counts.wal_bytes, log.bytes());
        add(&counts.spill_bytes, log.bytes());
        Ok((file_id, entries))
    }

    /// Calls `take` with each record. Returns the number of entries in all records.
    fn records(&self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
        let runs = self.runs.iter().filter_map(|run| self.version.memory_run(*run));
        let sources = runs.map(|memory| memory.cursor(&KeyRange::ALL)).collect();
        let mut cursor = MergingCursor::new(sources);
        cursor.seek_first()?;
        let mut record = Vec::new();
        let mut body = Vec::new();
        let mut count = 0;
        let mut entries = 0;
        loop {
            let entry = cursor.entry();
            if count > 0 && (entry.is_none() || body.len() >= RECORD_BYTES) {
                record.clear();
                put_varint(&mut record, u64::from(self.keyspace.id));
                put_varint(&mut record, count);
                record.extend_from_slice(&body);
                take(&record)?;
                entries += count;
                count = 0;
                body.clear();
            }
            let Some(entry) = entry else { return Ok(entries) };
            put_entry(&mut body, &entry);
            count += 1;
            cursor.next()?;
        }
    }
}

fn put_entry(out: &mut Vec<u8>, entry: &EntryRef<'_>) {
    out.push(entry.kind as u8);
    put_varint(out, entry.seq.0);
    put_bytes(out, entry.key);
    if !entry.kind.is_tombstone() {
        put_bytes(out, entry.value);
    }
}

/// Returns the id of the keyspace in a record of a copy.
pub(crate) fn spilled_keyspace(payload: &[u8]) -> std::result::Result<u32, Damage> {
    let mut reader = Reader::new(payload, 0);
    let keyspace = reader.varint()?;
    u32::try_from(keyspace).map_err(|_| reader.damage("an unknown keyspace"))
}

/// Returns the entries in a record of a copy of the memory of `keyspace`, which holds writes up to
/// sequence number `newest`.
///
/// # Errors
/// Fails if the record is of another keyspace, or not as a spill has it.
pub(crate) fn take_record(
    payload: &[u8],
    keyspace: u32,
    newest: SeqNo,
) -> std::result::Result<Vec<Spilled>, Damage> {
    let mut reader = Reader::new(payload, 0);
    if reader.varint()? != u64::from(keyspace) {
        return Err(reader.damage("the record is of another keyspace"));
    }
    let count = reader.varint()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let [kind] = reader.array()?;
        let kind = EntryKind::from_byte(kind).filter(|kind| !kind.is_reference());
        let kind = kind.ok_or_else(|| reader.damage("an unknown kind"))?;
        let seq = SeqNo(reader.varint()?);
        if seq == SeqNo(0) || seq > newest {
            return Err(reader.damage("the sequence number of an entry is outside of the copy"));
        }
        let (key, value) = take_pair(&mut reader, kind)?;
        let [key, value] = [key, value].map(Bytes::copy_from_slice);
        entries.push(Spilled { seq, kind, key, value });
    }
    reader.finish()?;
    Ok(entries)
}

/// Reads a copy of the memory of `keyspace`. Returns its entries in key order.
///
/// # Errors
/// Fails with `Io`, or with `Corruption` if the copy is damaged or torn: the whole copy was synced
/// before the manifest named it.
pub(crate) fn read_spill(
    env: &dyn Env,
    dir: &Path,
    keyspace: u32,
    spill: Spill,
) -> Result<Vec<Spilled>> {
    let path = numbered(dir, FileKind::Spill, spill.file);
    let id = LogId { kind: LogKind::Spill, file_id: spill.file };
    let mut reader = LogReader::open(env, &path, id)?;
    let mut entries = Vec::new();
    let mut end = 0;
    while let Some((offset, payload)) = reader.next_record()? {
        let found = take_record(payload, keyspace, spill.newest);
        entries.extend(found.map_err(|damage| Error::corruption(&path, offset, damage.what))?);
        end = offset;
    }
    if let Some(LogEnd::Torn { offset, .. }) = reader.end() {
        return Err(Error::corruption(&path, offset, "the end of the spill is missing"));
    }
    if entries.len() as u64 != spill.entries {
        let message = format!("expected {} entries, found {}", spill.entries, entries.len());
        return Err(Error::corruption(&path, end, message));
    }
    let mut seqs: Vec<SeqNo> = entries.iter().map(|entry| entry.seq).collect();
    seqs.sort_unstable();
    if let Some(pair) = seqs.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("two entries have the sequence number {}", pair[0]);
        return Err(Error::corruption(&path, end, message));
    }
    Ok(entries)
}
