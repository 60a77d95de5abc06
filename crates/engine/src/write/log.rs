//! The write-ahead log of a store: a row of files.

use crate::db::PersistMode;
use crate::manifest::{LogRow, Record};
use crate::shared::{Log, Shared, Spare, Writer};
use crate::stats::add;
use crate::version::Writes;
use lsmith_storage::env::SyncReach;
use lsmith_storage::error::Result;
use lsmith_storage::log::{LOG_START_BYTES_MAX, LogId, LogKind, LogStart, LogWriter};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::sync::atomic::Ordering;
use lsmith_tree::SeqNo;
use std::sync::Arc;

/// Logs shorter than this are made when they are needed: it takes a writer no time to speak of.
const AHEAD_BYTES_MIN: u64 = 1 << 20;

/// The first logs ahead are made when this part of the current one is full, one of so many. From
/// then on there are always some.
const AHEAD_AFTER: u64 = 8;

/// Logs that are made ahead: two, because those who make them may be waiting for the device, and it
/// may be busy for longer than it takes to fill one.
const AHEAD_LOGS: usize = 2;

/// Logs whose files are to be removed.
struct UnneededLogs {
    files: Vec<Log>,
    /// Held, so that their memory is unmapped when the files go.
    _writers: Vec<Arc<LogWriter>>,
}

impl Shared {
    /// Appends the record that consists of `parts`, to a new log file where the current one is
    /// full.
    ///
    /// # Errors
    /// `Full` or `Io` where no new file could be made: nothing has been written. After any other
    /// error the store is poisoned.
    pub(super) fn append_record(&self, writer: &mut Writer, parts: &[&[u8]]) -> Result<()> {
        let record_bytes = parts.iter().map(|part| part.len()).sum();
        if !writer.wal.room(record_bytes) {
            self.next_log(writer, record_bytes)?;
        }
        let before = writer.wal.bytes();
        let step = self.one_step();
        let appended = writer.wal.append(parts);
        step.over();
        if let Err(error) = appended {
            self.poison();
            return Err(error);
        }
        let after = writer.wal.bytes();
        add(&self.counts.wal_bytes, after - before);
        let due = writer.wal.capacity() / AHEAD_AFTER;
        if before < due && after >= due {
            self.ask_for_log(writer);
        }
        Ok(())
    }

    /// Asks those who merge for a log file ahead, if there are too few.
    fn ask_for_log(&self, writer: &Writer) {
        if writer.spares.len() < AHEAD_LOGS && writer.wal.capacity() >= AHEAD_BYTES_MIN {
            self.log_due.store(true, Ordering::Release);
            self.work.notify();
        }
    }

    /// Makes a log file ahead if it was asked for, so that no writer has to wait for it. Where it
    /// cannot be made the writer who needs it tries again, and tells.
    pub(crate) fn make_log_ahead(&self) {
        // No lock is taken to find out: one who is interrupted while he has it keeps writers
        // waiting.
        let due =
            self.log_due.load(Ordering::Relaxed) && self.log_due.swap(false, Ordering::AcqRel);
        if !due || self.check_writable().is_err() {
            return;
        }
        let Ok(spare) = self.create_log(0) else { return };
        if let Some(unused) = self.keep_spare(spare) {
            self.remove_log(unused.0);
        }
    }

    /// Keeps the log for when the current one is full, and asks for another where that is not
    /// enough. Gives back one that is of no use: other threads may have been quicker, or a writer,
    /// and the files of logs are used in the order of their numbers.
    fn keep_spare(&self, spare: Spare) -> Option<Spare> {
        let mut guard = self.writer.lock();
        let Some(writer) = guard.as_mut() else { return Some(spare) };
        if writer.spares.len() >= AHEAD_LOGS || spare.0 < writer.wal_number {
            return Some(spare);
        }
        let place = writer.spares.partition_point(|other| other.0 < spare.0);
        writer.spares.insert(place, spare);
        self.ask_for_log(writer);
        None
    }

    fn remove_log(&self, number: u64) {
        let path = numbered(&self.options.dir, FileKind::Wal, number);
        // A log that stays is removed at the next opening: the manifest says that it is not needed.
        if let Err(error) = self.options.env.remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove an old log");
        }
    }

    /// Begins a new log file with room for a record of `record_bytes` at least.
    fn next_log(&self, writer: &mut Writer, record_bytes: usize) -> Result<()> {
        let fits = |log: &LogWriter| log.room_for_both(LOG_START_BYTES_MAX, record_bytes);
        let fits = writer.spares.front().is_some_and(|(_, log)| fits(log));
        let spare = if fits { writer.spares.pop_front() } else { None };
        let (number, log) = match spare {
            Some(spare) => spare,
            None => {
                // A new one has a higher number than those that are too small.
                writer.spares.drain(..).for_each(|(number, _)| self.remove_log(number));
                self.create_log(record_bytes)?
            }
        };
        let first = SeqNo(writer.next_seq);
        let start =
            LogStart { before: writer.wal_number, first, synced: writer.wal.synced_bytes() };
        log.append(&[&start.encode()]).inspect_err(|_| self.poison())?;
        let old = std::mem::replace(&mut writer.wal, Arc::new(log));
        writer.unsynced.push(old);
        writer.wal_number = number;
        writer.logs.push(Log { number, first, bytes: writer.wal.capacity() });
        writer.log_began = true;
        self.ask_for_log(writer);
        self.bound_logs(writer);
        self.work.notify();
        Ok(())
    }

    /// Creates a log file.
    pub(crate) fn create_log(&self, record_bytes: usize) -> Result<(u64, LogWriter)> {
        let options = &self.options;
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let path = numbered(&options.dir, FileKind::Wal, number);
        let id = LogId { kind: LogKind::Wal, number };
        let capacity = options.log_bytes(self.memtable_bytes_max());
        let needed = LogWriter::capacity_for([LOG_START_BYTES_MAX, record_bytes]);
        let capacity = capacity.max(needed);
        let log = LogWriter::create(&*options.env, &path, id, capacity)?;
        let synced = options.env.sync_dir(&options.dir).inspect_err(|_| {
            // Nothing is in it: one that stays costs space only, and the next opening removes it.
            let _ = options.env.remove_file(&path);
        });
        synced.map_err(|error| crate::Error::io("sync the directory", &options.dir, error))?;
        Ok((number, log))
    }

    fn memtable_bytes_max(&self) -> u64 {
        let spaces = self.spaces.read();
        let largest = spaces.values().map(|space| space.memtable_bytes).max();
        largest.unwrap_or(self.options.memtable_bytes)
    }

    /// Has memory let go of logs where it holds on to more of them than the options allow.
    pub(crate) fn bound_logs(&self, writer: &Writer) {
        self.seal_holders(writer);
        self.spill_holders(writer);
    }

    /// Seals memtables that have not been written to for so long that they hold on to a log with
    /// more behind it than the options allow: a quiet keyspace must not keep the log of a busy one
    /// from going.
    fn seal_holders(&self, writer: &Writer) {
        let quiet_bytes = self.options.quiet_bytes(self.memtable_bytes_max());
        let mut bytes = 0;
        // The newest log has just been begun.
        let mut old = writer.logs.iter().rev().skip(1).skip_while(|log| {
            bytes += log.bytes;
            bytes <= quiet_bytes
        });
        if let Some(limit) = old.next().map(|log| log.number) {
            self.seal_up_to(limit);
        }
    }

    /// Seals memtables that hold on to log `limit` or an older one.
    pub(crate) fn seal_up_to(&self, limit: u64) {
        for space in self.all_spaces() {
            let mut core = space.core.lock();
            if core.active.log().is_some_and(|log| log <= limit) {
                self.seal(&space, &mut core);
            }
        }
    }

    /// Has memory copied where old entries of it hold on to more of the log than the options allow.
    fn spill_holders(&self, writer: &Writer) {
        let log_bytes_max = self.log_bytes_max();
        let mut bytes = 0;
        let newest_first = writer.logs.iter().rev();
        let mut surplus = newest_first.skip_while(|log| {
            bytes += log.bytes;
            bytes <= log_bytes_max
        });
        if let Some(limit) = surplus.next().map(|log| log.number) {
            self.spill_up_to(limit);
        }
    }

    /// Has memory copied that holds on to log `limit` or an older one. Where memory does not stay,
    /// it is flushed soon anyway.
    pub(crate) fn spill_up_to(&self, limit: u64) {
        for space in self.all_spaces() {
            let mut core = space.core.lock();
            let holds = |writes: &Writes| writes.log.is_some_and(|log| log <= limit);
            let stays =
                !core.flushes_memory() && core.sealed.iter().any(|held| holds(&held.writes));
            core.spill_due |= stays || core.vanished.is_some_and(|vanished| holds(&vanished));
        }
    }

    /// Bytes of log that old entries may hold on to.
    fn log_bytes_max(&self) -> u64 {
        let spaces = self.spaces.read();
        let all = || spaces.values().map(|space| space.memtable_bytes).sum::<u64>();
        self.options.log_bytes_max.unwrap_or_else(|| all().saturating_mul(4))
    }

    /// Removes logs that no memtable needs any more. The lock of the writer is not held while
    /// others are waited for, nor while files go, which takes large ones their time.
    pub(crate) fn retire_logs(&self) {
        let _retiring = self.retiring.lock();
        // Whatever is written from here on is in this log or a later one.
        let Some(newest) = self.writer.lock().as_ref().map(|writer| writer.wal_number) else {
            return;
        };
        let needed = self.oldest_needed_log(newest);
        let row = self.writer.lock().as_ref().and_then(|writer| row_from(writer, needed));
        if row.is_none_or(|row| self.write_record(Record::Logs(row), |_| ()).is_err()) {
            return;
        }
        let gone = self.writer.lock().as_mut().map(|writer| take_logs_below(writer, needed));
        gone.into_iter().for_each(|gone| self.remove_logs(gone));
    }

    /// The same for one who has the writer's lock.
    pub(crate) fn retire_logs_of(&self, writer: &mut Writer) {
        let needed = self.oldest_needed_log(writer.wal_number);
        let Some(row) = row_from(writer, needed) else { return };
        if self.write_record(Record::Logs(row), |_| ()).is_ok() {
            let gone = take_logs_below(writer, needed);
            self.remove_logs(gone);
        }
    }

    /// Syncs the logs, and gives back the room in them that nobody will use any more.
    ///
    /// # Errors
    /// `Io`, `Poisoned`.
    pub(crate) fn close_logs(&self) -> Result<()> {
        if self.options.read_only {
            return Ok(());
        }
        self.check_writable()?;
        let logs = self.writer.lock().as_ref().map(Writer::logs_to_sync);
        self.sync_for(PersistMode::SyncAll, &logs.unwrap_or_default())?;
        let mut guard = self.writer.lock();
        let Some(writer) = guard.as_mut() else { return Ok(()) };
        writer.spares.drain(..).for_each(|(number, _)| self.remove_log(number));
        writer.wal.cut()
    }

    /// The oldest log that holds entries of a memtable, at most `newest`.
    fn oldest_needed_log(&self, newest: u64) -> u64 {
        let spaces = self.all_spaces();
        let oldest = spaces.iter().filter_map(|space| space.core.lock().oldest_log()).min();
        oldest.map_or(newest, |oldest| oldest.min(newest))
    }

    fn remove_logs(&self, logs: UnneededLogs) {
        logs.files.iter().for_each(|log| self.remove_log(log.number));
    }

    /// Makes everything written so far survive power loss: what a flush must do first where
    /// another keyspace shares the log, or a batch of both could be torn.
    pub(crate) fn sync_all_logs(&self, logs: &[Arc<LogWriter>]) -> Result<()> {
        self.sync_logs(logs, SyncReach::Data)
    }
}

/// What the manifest is to say of the logs from `needed` on; `None` where there are no others.
fn row_from(writer: &Writer, needed: u64) -> Option<LogRow> {
    let oldest = writer.logs.first().filter(|oldest| oldest.number < needed);
    let kept = oldest.and_then(|_| writer.logs.iter().find(|log| log.number >= needed));
    kept.map(|kept| LogRow { from: needed, first: kept.first, newest: writer.wal_number })
}

fn take_logs_below(writer: &mut Writer, needed: u64) -> UnneededLogs {
    let (gone, kept) = writer.logs.iter().partition::<Vec<Log>, _>(|log| log.number < needed);
    writer.logs = kept;
    // What was in them is in synced tables, or in a synced copy of memory.
    let writers = writer.unsynced.extract_if(.., |log| log.number() < needed).collect();
    UnneededLogs { files: gone, _writers: writers }
}

#[cfg(test)]
mod tests {
    use super::AHEAD_LOGS;
    use crate::{DEFAULT_KEYSPACE, Store};
    use lsmith_storage::env::{Env, MemEnv};
    use std::path::Path;
    use std::sync::Arc;

    #[test]
    fn a_log_made_ahead_is_the_next_one_used() {
        let env = MemEnv::new();
        let open = || {
            let builder = Store::builder("/store").env(Arc::new(env.clone())).lockstep(true);
            builder.log_bytes(1 << 20).memtable_bytes(64 << 20).open().unwrap()
        };
        let logs = || {
            let names = env.list(Path::new("/store")).unwrap();
            names.into_iter().filter(|name| name.ends_with(".wal")).collect::<Vec<_>>()
        };
        let store = open();
        let keyspace = store.keyspace(DEFAULT_KEYSPACE).unwrap();
        let put = |numbers: std::ops::Range<u32>| {
            for number in numbers {
                keyspace.put(number.to_be_bytes(), [7; 1000]).unwrap();
            }
        };
        put(0..100);
        store.shared().make_log_ahead();
        assert_eq!(logs().len(), 1, "the log is nearly empty");
        put(100..700);
        (0..5).for_each(|_| store.shared().make_log_ahead());
        let ahead = logs();
        assert_eq!(ahead.len(), 1 + AHEAD_LOGS);
        put(700..2500);
        assert_eq!(logs(), ahead, "no writer had to make one");
        store.shared().make_log_ahead();
        assert_eq!(logs().len(), 2 + AHEAD_LOGS, "the first is needed still");
        store.shared().make_log_ahead();
        drop((keyspace, store));
        let keyspace = open().keyspace(DEFAULT_KEYSPACE).unwrap();
        assert_eq!(keyspace.iter().count(), 2500);
    }
}
