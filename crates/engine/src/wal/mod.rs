//! The write-ahead log of a store: a row of files.

mod ahead;
mod retire;
#[cfg(test)]
mod tests;

use crate::context::Context;
use crate::keyspaces::Keyspaces;
use crate::manifest::Manifest;
use crate::options::PersistMode;
use crate::stats::add;
use lsmith_storage::directory;
use lsmith_storage::env::SyncReach;
use lsmith_storage::error::{ErrorKind, Result};
use lsmith_storage::log::{LOG_START_BYTES_MAX, LogId, LogKind, LogStart, LogWriter};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lsmith_storage::sync::{Mutex, MutexGuard};
use lsmith_tree::SeqNo;
use std::collections::VecDeque;
use std::sync::Arc;

/// The write-ahead log of an open store.
#[derive(Debug)]
pub(crate) struct Wal {
    context: Arc<Context>,
    manifest: Arc<Manifest>,
    keyspaces: Arc<Keyspaces>,
    /// Held by the thread that writes. `None` before [`Wal::open`], and for ever in a store opened
    /// for reading only.
    writer: Mutex<Option<WalWriter>>,
    /// True if a log is to be made ahead.
    ahead_due: AtomicBool,
    /// Held by a thread that removes logs, so that a second caller returns after they are removed.
    retiring: Mutex<()>,
    /// True if several keyspaces share the log, or a second one is being made.
    is_shared: AtomicBool,
    /// The newest log that the manifest is known to name.
    named: AtomicU64,
    /// The usual length of a record in the last log that was filled; see
    /// [`usual_bytes`](LogWriter::usual_bytes).
    usual_bytes: AtomicU64,
}

/// A log made ahead, with its file id.
type Spare = (u64, LogWriter);

/// The writing side of the write-ahead log.
#[derive(Debug)]
pub(crate) struct WalWriter {
    current: Arc<LogWriter>,
    pub(crate) file_id: u64,
    /// Logs made ahead, by file id.
    spares: VecDeque<Spare>,
    /// Earlier logs, oldest first, whose ends may not be synced.
    unsynced: Vec<Arc<LogWriter>>,
    /// All logs that memory may need, oldest first. The current log is the last.
    logs: Vec<Log>,
    /// Older logs that are kept for change feeds, oldest first.
    kept: Vec<Log>,
    /// The sequence number of the next write.
    pub(crate) next_seq: u64,
    /// A buffer for the parts of a record.
    pub(crate) buffer: Vec<u8>,
    /// True if a log has begun since a writer last did the work that lets older logs be removed.
    pub(crate) log_began: bool,
}

/// The logs that can be read at one moment.
#[derive(Clone, Debug)]
pub(crate) struct LogsNow {
    /// All logs, oldest first.
    pub(crate) logs: Vec<Log>,
    /// The id of the newest, which is written on.
    pub(crate) newest: u64,
    /// The bytes of the newest that are written.
    pub(crate) written: u64,
    /// The sequence number of the next write.
    pub(crate) next: u64,
}

/// A log file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    pub(crate) file_id: u64,
    /// The sequence number of the first write in it.
    pub(crate) first: SeqNo,
    /// The length of the file in bytes.
    pub(crate) bytes: u64,
}

impl WalWriter {
    /// Returns the logs that must be synced so that everything written so far survives power loss.
    pub(crate) fn logs_to_sync(&self) -> Vec<Arc<LogWriter>> {
        self.unsynced.iter().chain([&self.current]).map(Arc::clone).collect()
    }

    /// Returns the logs as they are now, for readers of the change feed.
    pub(crate) fn logs_now(&self) -> LogsNow {
        LogsNow {
            logs: self.kept.iter().chain(&self.logs).copied().collect(),
            newest: self.file_id,
            written: self.current.bytes(),
            next: self.next_seq,
        }
    }

    /// Returns the logs from id `from` on, oldest first, and the bytes of the last one that are
    /// written. The others are full, and do not change any more.
    pub(crate) fn logs_from(&self, from: u64) -> (Vec<Log>, u64) {
        let logs = self.logs.iter().filter(|log| log.file_id >= from).copied().collect();
        (logs, self.current.bytes())
    }
}

impl Wal {
    /// Returns a log that cannot be written to until [`begin`](Wal::begin) and
    /// [`open`](Wal::open) are called.
    pub(crate) fn new(
        context: &Arc<Context>,
        manifest: &Arc<Manifest>,
        keyspaces: &Arc<Keyspaces>,
    ) -> Wal {
        Wal {
            context: Arc::clone(context),
            manifest: Arc::clone(manifest),
            keyspaces: Arc::clone(keyspaces),
            writer: Mutex::new(None),
            ahead_due: AtomicBool::new(false),
            retiring: Mutex::default(),
            is_shared: AtomicBool::new(keyspaces.read().len() > 1),
            named: AtomicU64::new(0),
            usual_bytes: AtomicU64::new(0),
        }
    }

    /// Begins a new log file behind `older` logs, which are still needed, and `kept` ones before
    /// them, which are not, for writes from sequence number `first` on. `are_synced` says that the
    /// older logs are synced. The caller gives what comes out to [`open`](Wal::open).
    ///
    /// # Errors
    /// `Full`, `Io`.
    pub(crate) fn begin(
        &self,
        kept: &[Log],
        older: &[Log],
        first: SeqNo,
        are_synced: bool,
    ) -> Result<WalWriter> {
        // The new log names the log before it. So a log that opening left out is never read again,
        // even if it could not be set aside.
        let before = older.last().or(kept.last()).map_or(0, |log| log.file_id);
        let synced = older.last().filter(|_| are_synced).map_or(0, |log| log.bytes);
        let (file_id, log) = self.create_log(0)?;
        log.append(&[&LogStart { before, first, synced }.encode()])?;
        let current = Log { file_id, first, bytes: log.capacity() };
        Ok(WalWriter {
            current: Arc::new(log),
            file_id,
            spares: VecDeque::new(),
            unsynced: Vec::new(),
            logs: older.iter().copied().chain([current]).collect(),
            kept: kept.to_vec(),
            next_seq: first.0,
            buffer: Vec::new(),
            log_began: false,
        })
    }

    /// Lets threads write with `writer`.
    pub(crate) fn open(&self, writer: WalWriter) {
        self.named.store(writer.file_id, Ordering::Release);
        *self.writer.lock() = Some(writer);
    }

    /// Waits until no other thread writes, and keeps others from writing as long as the guard
    /// lives. The guard holds `None` in a store opened for reading only.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<WalWriter>> {
        self.writer.lock()
    }

    /// Takes the lock as [`lock`](Wal::lock) does, for one write: whoever holds it is about to end.
    #[inline]
    pub(crate) fn lock_to_write(&self) -> MutexGuard<'_, Option<WalWriter>> {
        self.writer.lock_soon()
    }

    /// Returns the logs that must be synced so that everything written so far survives power loss.
    pub(crate) fn logs_to_sync(&self) -> Vec<Arc<LogWriter>> {
        self.writer.lock().as_ref().map_or(Vec::new(), WalWriter::logs_to_sync)
    }

    /// Returns true if several keyspaces share the log, or a second one is being made.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::SeqCst)
    }

    /// Prepares the log for a second keyspace: syncs it, and has later flushes sync it first.
    ///
    /// A store with one keyspace flushes memory without syncing the log, because flushed writes do
    /// not need the log. After power loss the log may lack them. A keyspace made later would seem
    /// to need the missing writes, and opening would take the gap for damage.
    pub(crate) fn share(&self) -> Result<()> {
        self.is_shared.store(true, Ordering::SeqCst);
        self.sync_before_record()
    }

    /// Syncs the log before a record of the manifest that changes what the store is, and not what
    /// it holds. Power loss must not take a write that returned before the change, and leave the
    /// change.
    ///
    /// # Errors
    /// Fails with `Io`.
    pub(crate) fn sync_before_record(&self) -> Result<()> {
        self.sync_for(PersistMode::SyncData, &self.logs_to_sync())
    }

    /// Appends a record that consists of `parts`. Begins a new log file if the current one is full.
    ///
    /// # Errors
    /// Fails with `Full` or `Io` if no new file could be made; nothing has then been written. After
    /// any other error the store is poisoned.
    pub(crate) fn append(&self, writer: &mut WalWriter, parts: &[&[u8]]) -> Result<()> {
        let record_bytes = parts.iter().map(|part| part.len()).sum();
        if !writer.current.room(record_bytes) {
            self.next_log(writer, record_bytes)?;
        }
        let step = self.context.one_step();
        let appended = writer.current.append(parts);
        step.over();
        let place = appended.inspect_err(|_| self.context.poison())?;
        add(&self.context.counts.wal_bytes, place.end - place.start);
        self.ask_when_due(writer, place);
        Ok(())
    }

    /// Syncs `logs`, so that all records appended to them so far survive power loss, and has the
    /// manifest name the newest of them.
    ///
    /// # Errors
    /// Fails with `Io`. The store is then poisoned if it is uncertain what was synced.
    pub(crate) fn sync(&self, logs: &[Arc<LogWriter>], reach: SyncReach) -> Result<()> {
        let synced = logs.iter().try_for_each(|log| log.sync(reach).map(drop));
        synced.inspect_err(|_| self.context.poison())?;
        logs.last().map_or(Ok(()), |newest| self.name(newest.file_id()))
    }

    /// Has the manifest name log `file_id`, unless it names that or a newer one. Otherwise nothing
    /// could tell that the log is missing.
    fn name(&self, file_id: u64) -> Result<()> {
        if file_id <= self.named.load(Ordering::Acquire) {
            return Ok(());
        }
        match self.manifest.name_log(file_id) {
            Ok(()) => drop(self.named.fetch_max(file_id, Ordering::Release)),
            // What was synced is synced. The next sync tries again.
            Err(error) if error.kind() == ErrorKind::Full => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Syncs `logs` as `mode` asks. The writer then forgets the full logs among them.
    ///
    /// # Errors
    /// Fails as [`sync`](Wal::sync) does, also if another process may have taken the directory
    /// over: what is synced to logs that nobody will read is not there.
    pub(crate) fn sync_for(&self, mode: PersistMode, logs: &[Arc<LogWriter>]) -> Result<()> {
        let reach = match mode {
            PersistMode::Buffer => return Ok(()),
            PersistMode::SyncData => SyncReach::Data,
            PersistMode::SyncAll => SyncReach::All,
        };
        self.context.check_held().inspect_err(|_| self.context.poison())?;
        add(&self.context.counts.syncs, 1);
        self.sync(logs, reach)?;
        // The last log may have received records since, or even have become full.
        if let [full @ .., _] = logs
            && !full.is_empty()
            && let Some(writer) = self.writer.lock().as_mut()
        {
            writer.unsynced.retain(|log| !full.iter().any(|synced| Arc::ptr_eq(synced, log)));
        }
        Ok(())
    }

    /// Begins a new log file that has room for a record of `record_bytes`.
    fn next_log(&self, writer: &mut WalWriter, record_bytes: usize) -> Result<()> {
        let fits = |(_, log): &Spare| log.room_for_both(LOG_START_BYTES_MAX, record_bytes);
        let spare =
            if writer.spares.front().is_some_and(fits) { writer.spares.pop_front() } else { None };
        let (file_id, log) = match spare {
            Some(spare) => spare,
            None => {
                // A new log has a higher id than the spares, which are too small. Logs are used
                // in the order of their ids.
                writer.spares.drain(..).for_each(|(file_id, _)| self.remove_log(file_id));
                self.create_log(record_bytes)?
            }
        };
        let first = SeqNo(writer.next_seq);
        let start =
            LogStart { before: writer.file_id, first, synced: writer.current.synced_bytes() };
        log.append(&[&start.encode()]).inspect_err(|_| self.context.poison())?;
        let old = std::mem::replace(&mut writer.current, Arc::new(log));
        self.usual_bytes.store(old.usual_bytes(), Ordering::Relaxed);
        // There may be many of them before a sync.
        old.release();
        writer.unsynced.push(old);
        writer.file_id = file_id;
        writer.logs.push(Log { file_id, first, bytes: writer.current.capacity() });
        writer.log_began = true;
        tracing::debug!(file_id, "a log begins");
        self.ask_for_log(writer);
        self.bound_logs(writer);
        self.context.progress.notify();
        Ok(())
    }

    /// Creates an empty log file that has room for a record of `record_bytes`, and makes its name
    /// durable. Returns its file id with it.
    pub(crate) fn create_log(&self, record_bytes: usize) -> Result<(u64, LogWriter)> {
        let options = &self.context.options;
        let needed = LogWriter::capacity_for(&*options.env, [LOG_START_BYTES_MAX, record_bytes]);
        let capacity = options.log_bytes(self.keyspaces.memtable_bytes_max()).max(needed);
        let (file_id, log) = self.context.make_numbered(FileKind::Wal, |path, file_id| {
            let id = LogId { kind: LogKind::Wal, file_id };
            let usual_bytes = self.usual_bytes.load(Ordering::Relaxed);
            LogWriter::create_for(&*options.env, path, id, capacity, usual_bytes)
        })?;
        directory::sync(&*options.env, &options.dir).inspect_err(|_| {
            let path = numbered(&options.dir, FileKind::Wal, file_id);
            directory::remove(&*options.env, &path, "an empty log");
        })?;
        Ok((file_id, log))
    }

    fn remove_log(&self, file_id: u64) {
        let options = &self.context.options;
        let path = numbered(&options.dir, FileKind::Wal, file_id);
        // A log that cannot be removed does no harm: the manifest records that it is not needed.
        self.context.leases.remove(file_id, path, "an old log");
    }

    /// Syncs the logs and notes that in the manifest, removes those made ahead, and cuts the unused
    /// end off the current log.
    ///
    /// # Errors
    /// Fails with `Io` or `Poisoned`.
    pub(crate) fn close(&self) -> Result<()> {
        if self.context.options.read_only {
            return Ok(());
        }
        self.context.check_writable()?;
        let last = |writer: &WalWriter| (writer.logs_to_sync(), SeqNo(writer.next_seq - 1));
        let Some((logs, last)) = self.writer.lock().as_ref().map(last) else { return Ok(()) };
        // Wherever the directory is now: these files are open.
        self.sync(&logs, SyncReach::All)?;
        // Nothing is appended after this sync that could tell of it.
        self.manifest.note_synced(last)?;
        let mut guard = self.writer.lock();
        let Some(writer) = guard.as_mut() else { return Ok(()) };
        writer.spares.drain(..).for_each(|(file_id, _)| self.remove_log(file_id));
        writer.current.cut()
    }
}
