//! Copying memory, so that the start of the log can go.
//!
//! A file of the log's framing holds every entry of a keyspace's sealed memory, with its sequence
//! number and as memory has it: what was overwritten or has cancelled is left out, and kinds say
//! what all writes beneath come to. It stands in for what the log has up to the newest of those
//! writes. A record of it is
//!
//! ```text
//! keyspace | count | entry ...
//! entry = kind: u8 | sequence number | key: bytes | value: bytes, for put and insert
//! ```
//!
//! where numbers are varints.

use crate::context::Context;
use crate::keyspace::{KeyspaceShared, KeyspaceState, Request, WriteSpan};
use crate::manifest::{Manifest, Record, Spill};
use crate::stats::add;
use crate::version::Version;
use bytes::Bytes;
use lsmith_storage::cursor::EntryRef;
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

/// Bytes of entries after which a record ends.
const RECORD_BYTES: usize = 256 * 1024;

/// All runs in memory, to be copied.
pub(crate) struct ReservedSpill {
    keyspace: Arc<KeyspaceShared>,
    what: SpillContent,
}

enum SpillContent {
    /// Runs in memory, and what keeps plans away from them meanwhile.
    Runs(MergePlan),
    /// Nothing: there is no run in memory, and these writes have left nothing.
    Vanished(WriteSpan),
}

/// An entry read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spilled {
    pub(crate) seq: SeqNo,
    pub(crate) kind: EntryKind,
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
}

impl ReservedSpill {
    /// Reserves the copying of memory, if it is due and can be done now.
    pub(crate) fn next(keyspace: &Arc<KeyspaceShared>, state: &mut KeyspaceState) -> Option<Self> {
        if !state.is_spill_due() {
            state.requests.withdraw(Request::Spill);
            return None;
        }
        (!state.is_memory_reserved()).then(|| {
            state.requests.withdraw(Request::Spill);
            let what = match state.vanished.filter(|_| state.sealed.is_empty()) {
                Some(vanished) => {
                    // Whoever waits for rest waits for this too.
                    state.leaving += 1;
                    SpillContent::Vanished(vanished)
                }
                None => {
                    SpillContent::Runs(state.reserve_memory("memory is copied so that logs can go"))
                }
            };
            ReservedSpill { keyspace: Arc::clone(keyspace), what }
        })
    }

    /// Lets go of the log: copies what memory holds, or writes down that there is nothing. A
    /// failure is tried again when the log has grown further. `synced` is what came out of syncing
    /// the logs first.
    pub(crate) fn carry_out(&self, context: &Context, manifest: &Manifest, synced: Result<()>) {
        let spill = Spilling { context, manifest, keyspace: &self.keyspace };
        let done = match &self.what {
            SpillContent::Runs(reserved) => spill.copy_runs(reserved, synced),
            SpillContent::Vanished(vanished) => {
                let _busy = self.keyspace.busy_guard();
                panics::as_error("forgetting what has vanished", || {
                    synced.and_then(|()| spill.forget_vanished(*vanished))
                })
            }
        };
        if let Err(error) = done {
            tracing::warn!(keyspace = self.keyspace.name, %error, "memory could not be copied");
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
    /// Notes that `vanished` have left memory, all writes of `space` before them included.
    fn forget_vanished(&self, vanished: WriteSpan) -> Result<()> {
        let keyspace = self.keyspace;
        let committing = keyspace.committing.lock();
        let (flushed_seq, edit) = (vanished.newest, TreeEdit::default());
        let record = Record::Edit { keyspace: keyspace.id, flushed_seq, taken: Vec::new(), edit };
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

    /// Copies the runs that `reserved` keeps, unless `synced` is an error.
    fn copy_runs(&self, reserved: &MergePlan, synced: Result<()>) -> Result<()> {
        let Spilling { context, keyspace, .. } = *self;
        let file = context.new_number();
        let path = numbered(&context.options.dir, FileKind::Spill, file);
        let version = keyspace.version.load_full();
        let runs: Vec<RunId> = reserved.inputs.iter().map(|input| input.run).collect();
        let written = panics::as_error("copying memory", || {
            synced?;
            let copy = Copy { context, keyspace, runs: &runs, version: &version, file };
            copy.write(&path)
        });
        let committing = keyspace.committing.lock();
        let mut state = keyspace.state.lock();
        let committed = panics::as_error("copying memory", || {
            written.and_then(|entries| self.commit(&mut state, &runs, (file, entries)))
        });
        state.release(reserved);
        drop(state);
        drop(committing);
        // In a poisoned store nobody knows whether the manifest names it.
        if committed.is_err() && context.check_writable().is_ok() {
            remove_file(context, &path);
        }
        committed
    }

    /// The reservation keeps memory as it is while others may have the lock of `state`; what is
    /// sealed meanwhile is newer than what was copied.
    fn commit(
        &self,
        state: &mut MutexGuard<'_, KeyspaceState>,
        runs: &[RunId],
        (file, entries): (u64, u64),
    ) -> Result<()> {
        let writes = state.writes_of(runs).expect("nobody takes what is reserved");
        let spill = Spill { file, newest: writes.newest, entries };
        let record = Record::Spill { keyspace: self.keyspace.id, spill };
        MutexGuard::unlocked(state, || self.manifest.write(record, |_| ()))?;
        let step = self.context.one_step();
        for held in state.sealed.iter_mut().filter(|held| runs.contains(&held.run)) {
            held.writes.log = None;
        }
        // All that had vanished is older.
        state.vanished = state.vanished.filter(|vanished| vanished.newest > spill.newest);
        let old = state.spill.replace(spill);
        step.over();
        remove_spill(self.context, old);
        Ok(())
    }
}

/// Removes the file of a copy that the manifest does not name any more.
pub(crate) fn remove_spill(context: &Context, spill: Option<Spill>) {
    if let Some(spill) = spill {
        remove_file(context, &numbered(&context.options.dir, FileKind::Spill, spill.file));
    }
}

fn remove_file(context: &Context, path: &Path) {
    let remove = || directory::remove(&*context.options.env, path, "an old copy of memory");
    panics::logged("the environment", remove);
}

/// A copy in the making.
struct Copy<'a> {
    context: &'a Context,
    keyspace: &'a KeyspaceShared,
    runs: &'a [RunId],
    version: &'a Version,
    file: u64,
}

impl Copy<'_> {
    /// Writes the file, durably with its name; how many entries are in it.
    fn write(&self, path: &Path) -> Result<u64> {
        let options = &self.context.options;
        // All of its room is asked for at once, so its length must be known.
        let mut lengths = Vec::new();
        let entries = self.records(|record| {
            lengths.push(record.len());
            Ok(())
        })?;
        let id = LogId { kind: LogKind::Spill, number: self.file };
        let capacity = LogWriter::capacity_for(lengths);
        let log = LogWriter::create(&*options.env, path, id, capacity)?;
        self.records(|record| log.append(&[record]).map(drop))?;
        log.sync(SyncReach::All)?;
        directory::sync(&*options.env, &options.dir)?;
        let counts = &self.context.counts;
        add(&counts.wal_bytes, log.bytes());
        add(&counts.spill_bytes, log.bytes());
        Ok(entries)
    }

    /// Gives `take` one record after the other; how many entries there are.
    fn records(&self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
        let sources = self.runs.iter().filter_map(|run| self.version.memory_run(*run));
        let sources = sources.map(|memory| memory.cursor(&KeyRange::ALL)).collect();
        let mut cursor = MergingCursor::new(sources);
        lsmith_storage::cursor::Cursor::seek_first(&mut cursor)?;
        let (mut record, mut body) = (Vec::new(), Vec::new());
        let (mut count, mut entries) = (0, 0);
        loop {
            let entry = lsmith_storage::cursor::Cursor::entry(&cursor);
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
            lsmith_storage::cursor::Cursor::next(&mut cursor)?;
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

/// The keyspace that a record of a copy is of.
pub(crate) fn spilled_keyspace(payload: &[u8]) -> std::result::Result<u32, Damage> {
    let mut reader = Reader::new(payload, 0);
    let keyspace = reader.varint()?;
    u32::try_from(keyspace).map_err(|_| reader.damage("an unknown keyspace"))
}

/// The entries in a record of a copy of memory of `space`, which holds writes up to number `newest`.
pub(crate) fn take_record(
    payload: &[u8],
    keyspace: u32,
    newest: SeqNo,
) -> std::result::Result<Vec<Spilled>, Damage> {
    let mut reader = Reader::new(payload, 0);
    if reader.varint()? != u64::from(keyspace) {
        return Err(reader.damage("it is of another keyspace"));
    }
    let count = reader.varint()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let [kind] = reader.array()?;
        let kind = EntryKind::from_byte(kind).ok_or_else(|| reader.damage("an unknown kind"))?;
        let seq = SeqNo(reader.varint()?);
        if seq == SeqNo(0) || seq > newest {
            return Err(reader.damage("a write has a number that none of the copy can have"));
        }
        let (key, value) = take_pair(&mut reader, kind)?;
        let [key, value] = [key, value].map(Bytes::copy_from_slice);
        entries.push(Spilled { seq, kind, key, value });
    }
    reader.finish()?;
    Ok(entries)
}

/// Reads the copy back of what memory held of `space`, in key order.
///
/// # Errors
/// `Corruption` with path and offset, also where the end is missing: it was synced before the
/// manifest named it. `Io`.
pub(crate) fn read_spill(
    env: &dyn Env,
    dir: &Path,
    keyspace: u32,
    spill: Spill,
) -> Result<Vec<Spilled>> {
    let path = numbered(dir, FileKind::Spill, spill.file);
    let id = LogId { kind: LogKind::Spill, number: spill.file };
    let mut reader = LogReader::open(env, &path, id)?;
    let (mut entries, mut end) = (Vec::new(), 0);
    while let Some((offset, payload)) = reader.next_record()? {
        let found = take_record(payload, keyspace, spill.newest);
        entries.extend(found.map_err(|damage| Error::corruption(&path, offset, damage.what))?);
        end = offset;
    }
    if let Some(LogEnd::Torn { offset, .. }) = reader.end() {
        return Err(Error::corruption(&path, offset, "a record is missing"));
    }
    if entries.len() as u64 != spill.entries {
        let message = format!("expected {} entries, found {}", spill.entries, entries.len());
        return Err(Error::corruption(&path, end, message));
    }
    let mut seqs: Vec<SeqNo> = entries.iter().map(|entry| entry.seq).collect();
    seqs.sort_unstable();
    if let Some(pair) = seqs.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("two writes have the number {}", pair[0]);
        return Err(Error::corruption(&path, end, message));
    }
    Ok(entries)
}
