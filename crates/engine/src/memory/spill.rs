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

use crate::manifest::{Record, Spill};
use crate::shared::Shared;
use crate::stats::add;
use crate::version::{Core, Space, Version, Writes};
use bytes::Bytes;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::env::{Env, SyncReach};
use lsmith_storage::error::{Error, Result};
use lsmith_storage::format::take_pair;
use lsmith_storage::format::{Damage, Reader, put_bytes, put_varint};
use lsmith_storage::log::{LogEnd, LogId, LogKind, LogReader, LogWriter};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::panics;
use lsmith_storage::read::MergingCursor;
use lsmith_storage::sync::MutexGuard;
use lsmith_storage::sync::atomic::Ordering;
use lsmith_tree::{EntryKind, KeyRange, MergePlan, RunId, SeqNo, TreeEdit};
use std::path::Path;
use std::sync::Arc;

/// Bytes of entries after which a record ends.
const RECORD_BYTES: usize = 256 * 1024;

/// All runs in memory, to be copied.
pub(crate) struct SpillJob {
    space: Arc<Space>,
    what: What,
}

enum What {
    /// Runs in memory, and what keeps plans away from them meanwhile.
    Runs(MergePlan),
    /// Nothing: there is no run in memory, and these writes have left nothing.
    Vanished(Writes),
}

impl Core {
    /// Whether memory is to be copied, and holds on to a log.
    pub(crate) fn is_spill_due(&self) -> bool {
        let mut writes = self.sealed.iter().map(|held| &held.writes).chain(&self.vanished);
        self.spill_due && writes.any(|writes| writes.log.is_some())
    }
}

/// An entry read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spilled {
    pub(crate) seq: SeqNo,
    pub(crate) kind: EntryKind,
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
}

impl Shared {
    /// Reserves the copying of memory, if it is due and can be done now.
    pub(crate) fn next_spill(&self, space: &Arc<Space>, core: &mut Core) -> Option<SpillJob> {
        core.spill_due = core.is_spill_due();
        (core.spill_due && !core.is_memory_reserved()).then(|| {
            core.spill_due = false;
            let what = match core.vanished.filter(|_| core.sealed.is_empty()) {
                Some(vanished) => {
                    // Whoever waits for rest waits for this too.
                    core.leaving += 1;
                    What::Vanished(vanished)
                }
                None => What::Runs(core.reserve_memory("memory is copied so that logs can go")),
            };
            SpillJob { space: Arc::clone(space), what }
        })
    }

    /// Lets go of the log: copies what memory holds, or writes down that there is nothing. What
    /// fails is tried again when the log has grown further.
    pub(crate) fn run_spill(&self, job: &SpillJob, logs: &[Arc<LogWriter>]) {
        let synced = panics::as_error("syncing the log", || self.sync_all_logs(logs));
        let done = match &job.what {
            What::Runs(reserved) => self.spill_runs(&job.space, reserved, synced),
            What::Vanished(vanished) => {
                let _leaving = job.space.counted_leaving();
                panics::as_error("forgetting what has vanished", || {
                    synced.and_then(|()| self.forget_vanished(&job.space, *vanished))
                })
            }
        };
        if let Err(error) = done {
            tracing::warn!(keyspace = job.space.name, %error, "memory could not be copied");
        }
    }

    /// Notes that `vanished` have left memory, all writes of `space` before them included.
    fn forget_vanished(&self, space: &Space, vanished: Writes) -> Result<()> {
        let committing = space.committing.lock();
        let (flushed_seq, edit) = (vanished.newest, TreeEdit::default());
        let record = Record::Edit { space: space.id, flushed_seq, taken: Vec::new(), edit };
        self.write_record(record, |_| ())?;
        let mut core = space.core.lock();
        core.vanished = core.vanished.filter(|now| now.newest > flushed_seq);
        let spill = core.spill.filter(|spill| spill.upto <= flushed_seq);
        if spill.is_some() {
            core.spill = None;
        }
        drop(core);
        drop(committing);
        self.remove_spill(spill);
        Ok(())
    }

    fn spill_runs(
        &self,
        space: &Arc<Space>,
        reserved: &MergePlan,
        synced: Result<()>,
    ) -> Result<()> {
        let file = self.files.fetch_add(1, Ordering::Relaxed);
        let path = numbered(&self.options.dir, FileKind::Spill, file);
        let version = space.version.load_full();
        let runs: Vec<RunId> = reserved.inputs.iter().map(|input| input.run).collect();
        let written = panics::as_error("copying memory", || {
            synced?;
            let copy = Copy { shared: self, space, runs: &runs, version: &version, file };
            copy.write(&path)
        });
        let committing = space.committing.lock();
        let mut core = space.core.lock();
        let committed = panics::as_error("copying memory", || {
            written.and_then(|entries| self.commit_spill(space, &mut core, &runs, (file, entries)))
        });
        core.release(reserved);
        drop(core);
        drop(committing);
        // In a poisoned store nobody knows whether the manifest names it.
        if committed.is_err() && self.check_writable().is_ok() {
            remove(&*self.options.env, &path);
        }
        committed
    }

    /// The reservation keeps memory as it is while others may have the lock of `core`; what is
    /// sealed meanwhile is newer than what was copied.
    fn commit_spill(
        &self,
        space: &Space,
        core: &mut MutexGuard<'_, Core>,
        runs: &[RunId],
        (file, entries): (u64, u64),
    ) -> Result<()> {
        let writes = core.writes_of(runs).expect("nobody takes what is reserved");
        let spill = Spill { file, upto: writes.newest, entries };
        let record = Record::Spill { space: space.id, spill };
        MutexGuard::unlocked(core, || self.write_record(record, |_| ()))?;
        let step = self.one_step();
        for held in core.sealed.iter_mut().filter(|held| runs.contains(&held.run)) {
            held.writes.log = None;
        }
        // All that had vanished is older.
        core.vanished = core.vanished.filter(|vanished| vanished.newest > spill.upto);
        let old = core.spill.replace(spill);
        step.over();
        self.remove_spill(old);
        Ok(())
    }

    /// Removes the file of a copy that the manifest does not name any more.
    pub(crate) fn remove_spill(&self, spill: Option<Spill>) {
        if let Some(spill) = spill {
            remove(&*self.options.env, &numbered(&self.options.dir, FileKind::Spill, spill.file));
        }
    }
}

/// One that stays costs space only, and the next opening removes it.
fn remove(env: &dyn Env, path: &Path) {
    panics::logged("the environment", || match env.remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "cannot remove an old copy of memory");
        }
        _ => {}
    });
}

/// A copy in the making.
struct Copy<'a> {
    shared: &'a Shared,
    space: &'a Space,
    runs: &'a [RunId],
    version: &'a Version,
    file: u64,
}

impl Copy<'_> {
    /// Writes the file, durably with its name; how many entries are in it.
    fn write(&self, path: &Path) -> Result<u64> {
        let options = &self.shared.options;
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
        let synced = options.env.sync_dir(&options.dir);
        synced.map_err(|error| Error::io("sync the directory", &options.dir, error))?;
        let counts = &self.shared.counts;
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
                put_varint(&mut record, u64::from(self.space.id));
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
pub(crate) fn spilled_space(payload: &[u8]) -> std::result::Result<u32, Damage> {
    let mut reader = Reader::new(payload, 0);
    let space = reader.varint()?;
    u32::try_from(space).map_err(|_| reader.damage("an unknown keyspace"))
}

/// The entries in a record of a copy of memory of `space`, which holds writes up to number `upto`.
pub(crate) fn take_record(
    payload: &[u8],
    space: u32,
    upto: SeqNo,
) -> std::result::Result<Vec<Spilled>, Damage> {
    let mut reader = Reader::new(payload, 0);
    if reader.varint()? != u64::from(space) {
        return Err(reader.damage("it is of another keyspace"));
    }
    let count = reader.varint()?;
    let mut entries = Vec::new();
    for _ in 0..count {
        let [kind] = reader.array()?;
        let kind = EntryKind::from_byte(kind).ok_or_else(|| reader.damage("an unknown kind"))?;
        let seq = SeqNo(reader.varint()?);
        if seq == SeqNo(0) || seq > upto {
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
    space: u32,
    spill: Spill,
) -> Result<Vec<Spilled>> {
    let path = numbered(dir, FileKind::Spill, spill.file);
    let id = LogId { kind: LogKind::Spill, number: spill.file };
    let mut reader = LogReader::open(env, &path, id)?;
    let (mut entries, mut end) = (Vec::new(), 0);
    while let Some((offset, payload)) = reader.next_record()? {
        let found = take_record(payload, space, spill.upto);
        entries.extend(found.map_err(|damage| Error::corruption(&path, offset, damage.what))?);
        end = offset;
    }
    if let Some(LogEnd::Torn { offset, .. }) = reader.end() {
        return Err(Error::corruption(&path, offset, "a record is missing"));
    }
    if entries.len() as u64 != spill.entries {
        let told = format!("expected {} entries, found {}", spill.entries, entries.len());
        return Err(Error::corruption(&path, end, told));
    }
    let mut seqs: Vec<SeqNo> = entries.iter().map(|entry| entry.seq).collect();
    seqs.sort_unstable();
    if let Some(pair) = seqs.windows(2).find(|pair| pair[0] == pair[1]) {
        let told = format!("two writes have the number {}", pair[0]);
        return Err(Error::corruption(&path, end, told));
    }
    Ok(entries)
}
