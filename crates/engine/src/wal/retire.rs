//! Which logs go, and what is done so that they can.

use super::{Log, Wal, WalWriter};
use crate::keyspace::{Request, WriteSpan};
use crate::manifest::{LogRow, Record};
use crate::memory::seal;
use lsmith_storage::log::LogWriter;
use std::sync::Arc;

/// Logs whose files are to be removed.
struct UnneededLogs {
    files: Vec<Log>,
    /// Held, so that their memory is unmapped when the files go.
    _writers: Vec<Arc<LogWriter>>,
}

impl Wal {
    /// Has memory let go of logs where it holds on to more of them than the options allow.
    pub(crate) fn bound_logs(&self, writer: &WalWriter) {
        self.seal_holders(writer);
        self.spill_holders(writer);
    }

    /// Seals memtables that have not been written to for so long that they hold on to a log with
    /// more behind it than the options allow: a quiet keyspace must not keep the log of a busy one
    /// from going.
    fn seal_holders(&self, writer: &WalWriter) {
        let quiet_bytes = self.context.options.quiet_bytes(self.keyspaces.memtable_bytes_max());
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
        for keyspace in self.keyspaces.all() {
            let mut state = keyspace.state.lock();
            if state.active.log().is_some_and(|log| log <= limit) {
                seal(&self.context, &keyspace, &mut state);
            }
        }
    }

    /// Has memory copied where old entries of it hold on to more of the log than the options allow.
    fn spill_holders(&self, writer: &WalWriter) {
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
        for keyspace in self.keyspaces.all() {
            let mut state = keyspace.state.lock();
            let holds = |writes: &WriteSpan| writes.log.is_some_and(|log| log <= limit);
            let stays =
                !state.flushes_memory() && state.sealed.iter().any(|held| holds(&held.writes));
            if stays || state.vanished.is_some_and(|vanished| holds(&vanished)) {
                state.ask(Request::Spill);
            }
        }
    }

    /// Returns the bytes of log that old entries may hold on to.
    fn log_bytes_max(&self) -> u64 {
        let default = || self.keyspaces.memtable_bytes_sum().saturating_mul(4);
        self.context.options.log_bytes_max.unwrap_or_else(default)
    }

    /// Removes logs that no memtable needs any more. The lock of the writer is not held while
    /// others are waited for, nor while files go, which takes large ones their time.
    pub(crate) fn retire_logs(&self) {
        let _retiring = self.retiring.lock();
        // Whatever is written from here on is in this log or a later one.
        let Some(newest) = self.writer.lock().as_ref().map(|writer| writer.number) else {
            return;
        };
        let needed = self.oldest_needed_log(newest);
        let row = self.writer.lock().as_ref().and_then(|writer| row_from(writer, needed));
        if row.is_none_or(|row| self.manifest.write(Record::Logs(row), |_| ()).is_err()) {
            return;
        }
        let gone = self.writer.lock().as_mut().map(|writer| take_logs_below(writer, needed));
        gone.into_iter().for_each(|gone| self.remove_logs(gone));
    }

    /// The same for one who has the writer's lock.
    pub(crate) fn retire_logs_of(&self, writer: &mut WalWriter) {
        let needed = self.oldest_needed_log(writer.number);
        let Some(row) = row_from(writer, needed) else { return };
        if self.manifest.write(Record::Logs(row), |_| ()).is_ok() {
            let gone = take_logs_below(writer, needed);
            self.remove_logs(gone);
        }
    }

    /// The oldest log that holds entries of a memtable, at most `newest`.
    fn oldest_needed_log(&self, newest: u64) -> u64 {
        let keyspaces = self.keyspaces.all();
        let oldest =
            keyspaces.iter().filter_map(|keyspace| keyspace.state.lock().oldest_log()).min();
        oldest.map_or(newest, |oldest| oldest.min(newest))
    }

    fn remove_logs(&self, logs: UnneededLogs) {
        logs.files.iter().for_each(|log| self.remove_log(log.number));
    }
}

/// What the manifest is to say of the logs from `needed` on; `None` where there are no others.
fn row_from(writer: &WalWriter, needed: u64) -> Option<LogRow> {
    let oldest = writer.logs.first().filter(|oldest| oldest.number < needed);
    let kept = oldest.and_then(|_| writer.logs.iter().find(|log| log.number >= needed));
    kept.map(|kept| LogRow { from: needed, first: kept.first, newest: writer.number })
}

fn take_logs_below(writer: &mut WalWriter, needed: u64) -> UnneededLogs {
    let (gone, kept) = writer.logs.iter().partition::<Vec<Log>, _>(|log| log.number < needed);
    writer.logs = kept;
    // What was in them is in synced tables, or in a synced copy of memory.
    let writers = writer.unsynced.extract_if(.., |log| log.number() < needed).collect();
    UnneededLogs { files: gone, _writers: writers }
}
