//! Removes logs that no memtable needs, and makes memory stop needing old logs.

use super::{Log, Wal, WalWriter};
use crate::keyspace::{Request, WriteSpan};
use crate::manifest::{LogRow, Record};
use crate::memory::seal;
use lsmith_storage::log::LogWriter;
use std::sync::Arc;

/// A log with at least this many bytes is replaced when nothing needs it.
const LEFT_BYTES_MIN: u64 = 1 << 20;

/// Logs whose files are to be removed.
struct UnneededLogs {
    files: Vec<Log>,
    /// Held until the files are removed. Dropping them unmaps the files.
    _writers: Vec<Arc<LogWriter>>,
}

impl Wal {
    /// Seals memtables and requests spills that keep more logs than the options allow.
    pub(crate) fn bound_logs(&self, writer: &WalWriter) {
        self.seal_holders(writer);
        self.spill_holders(writer);
    }

    /// Seals memtables whose oldest entry has more bytes of log behind it than the options allow. A
    /// keyspace with few writes must not keep the logs of a busy one.
    fn seal_holders(&self, writer: &WalWriter) {
        let quiet_bytes = self.context.options.quiet_bytes(self.keyspaces.memtable_bytes_max());
        let mut bytes = 0;
        // The newest log has just begun and does not count.
        let mut old = writer.logs.iter().rev().skip(1).skip_while(|log| {
            bytes += log.bytes;
            bytes <= quiet_bytes
        });
        if let Some(limit) = old.next().map(|log| log.file_id) {
            self.seal_up_to(limit);
        }
    }

    /// Seals memtables that need log `limit` or an older one.
    pub(crate) fn seal_up_to(&self, limit: u64) {
        for keyspace in self.keyspaces.all() {
            let mut state = keyspace.state.lock();
            if state.active.log().is_some_and(|log| log <= limit) {
                seal(&self.context, &keyspace, &mut state);
            }
        }
    }

    /// Requests spills whose old entries need more bytes of log than the options allow.
    fn spill_holders(&self, writer: &WalWriter) {
        let log_bytes_max = self.log_bytes_max();
        let mut bytes = 0;
        let newest_first = writer.logs.iter().rev();
        let mut surplus = newest_first.skip_while(|log| {
            bytes += log.bytes;
            bytes <= log_bytes_max
        });
        if let Some(limit) = surplus.next().map(|log| log.file_id) {
            self.spill_up_to(limit);
        }
    }

    /// Requests spills that needs log `limit` or an older one. Leaves out keyspaces that
    /// flush their memory soon anyway. Where a plan has failed, nobody knows when that will be.
    pub(crate) fn spill_up_to(&self, limit: u64) {
        for keyspace in self.keyspaces.all() {
            let mut state = keyspace.state.lock();
            let needs = |writes: &WriteSpan| writes.log.is_some_and(|log| log <= limit);
            let flushes_soon = state.flushes_memory() && state.failures.is_empty();
            let stays = !flushes_soon && state.sealed.iter().any(|run| needs(&run.writes));
            if stays || state.vanished.is_some_and(|vanished| needs(&vanished)) {
                state.ask(Request::Spill);
            }
        }
    }

    /// Returns the bytes of log that old entries may keep.
    fn log_bytes_max(&self) -> u64 {
        let default = || self.keyspaces.memtable_bytes_sum().saturating_mul(4);
        self.context.options.log_bytes_max.unwrap_or_else(default)
    }

    /// Removes logs that no memtable needs any more. Releases the lock of the writer while it waits
    /// for other locks, and while it removes files: large files take time.
    pub(crate) fn retire_logs(&self) {
        let _retiring = self.retiring.lock();
        // All later writes go to this log or a later one.
        let Some(newest) = self.writer.lock().as_ref().map(|writer| writer.file_id) else {
            return;
        };
        let needed = self.oldest_needed_log(newest);
        let row = self.writer.lock().as_ref().and_then(|writer| row_from(writer, needed));
        if row.is_none_or(|row| self.manifest.write(Record::Logs(row), |_| ()).is_err()) {
            return;
        }
        let bytes = self.context.options.changes_bytes;
        let mut guard = self.writer.lock();
        let gone = guard.as_mut().map(|writer| take_logs_below(writer, needed, bytes));
        drop(guard);
        gone.into_iter().for_each(|gone| self.remove_logs(gone));
    }

    /// Removes logs that no memtable needs any more, for a caller that holds the writer's lock.
    pub(crate) fn retire_logs_of(&self, writer: &mut WalWriter) {
        let needed = self.oldest_needed_log(writer.file_id);
        let Some(row) = row_from(writer, needed) else { return };
        if self.manifest.write(Record::Logs(row), |_| ()).is_ok() {
            let bytes = self.context.options.changes_bytes;
            let gone = take_logs_below(writer, needed, bytes);
            self.remove_logs(gone);
        }
    }

    /// Begins a new log if no memtable needs the current one or an older one, and much of it is
    /// written. So it can go too.
    pub(crate) fn leave_log(&self, writer: &mut WalWriter) {
        let is_needed = self.oldest_needed_log(u64::MAX) <= writer.file_id;
        if is_needed || writer.current.bytes() < LEFT_BYTES_MIN {
            return;
        }
        // Without room it stays.
        if let Err(error) = self.next_log(writer, 0) {
            tracing::warn!(%error, "cannot begin a log in place of one that nothing needs");
        }
    }

    /// Returns the oldest log that a keyspace needs, at most `newest`.
    fn oldest_needed_log(&self, newest: u64) -> u64 {
        let keyspaces = self.keyspaces.all();
        let oldest =
            keyspaces.iter().filter_map(|keyspace| keyspace.state.lock().oldest_log()).min();
        oldest.map_or(newest, |oldest| oldest.min(newest))
    }

    fn remove_logs(&self, logs: UnneededLogs) {
        logs.files.iter().for_each(|log| self.remove_log(log.file_id));
    }
}

/// Returns the row of logs from `needed` on for the manifest, or `None` if there is no older log to
/// remove.
fn row_from(writer: &WalWriter, needed: u64) -> Option<LogRow> {
    let oldest = writer.logs.first().filter(|oldest| oldest.file_id < needed);
    let kept = oldest.and_then(|_| writer.logs.iter().find(|log| log.file_id >= needed));
    kept.map(|kept| LogRow { from: needed, first: kept.first, newest: writer.file_id })
}

/// Removes the logs below `needed` from `writer`. Keeps the newest of them for change feeds, with
/// at most `kept_bytes` bytes together. Returns the removed logs.
fn take_logs_below(writer: &mut WalWriter, needed: u64, kept_bytes: u64) -> UnneededLogs {
    let (gone, logs) = writer.logs.iter().partition::<Vec<Log>, _>(|log| log.file_id < needed);
    writer.logs = logs;
    writer.kept.extend(gone);
    let mut bytes = 0_u64;
    let fits = |log: &&Log| {
        bytes = bytes.saturating_add(log.bytes);
        bytes <= kept_bytes
    };
    let kept = writer.kept.iter().rev().take_while(fits).count();
    let files = writer.kept.drain(..writer.kept.len() - kept).collect();
    // All their writes are in synced tables or in a synced spill.
    let writers = writer.unsynced.extract_if(.., |log| log.file_id() < needed).collect();
    UnneededLogs { files, _writers: writers }
}
