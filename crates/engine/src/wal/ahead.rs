//! Makes log files ahead, before a writer needs them.

use super::{Spare, Wal, WalWriter};
use lsmith_storage::sync::atomic::Ordering;
use std::ops::Range;

/// Shorter logs than this are not made ahead: a writer makes one in negligible time.
const AHEAD_BYTES_MIN: u64 = 1 << 20;

/// The first log is made ahead when this part (1 of 8) of the current log is full. Later ones are
/// made whenever there are too few.
const AHEAD_AFTER: u64 = 8;

/// The number of logs that are made ahead. There are two, because a thread that makes one may wait
/// for a busy device for longer than writers need to fill one.
pub(super) const AHEAD_LOGS: usize = 2;

impl Wal {
    /// Asks the threads that merge to make a log ahead, if there are too few.
    pub(super) fn ask_for_log(&self, writer: &WalWriter) {
        if writer.spares.len() < AHEAD_LOGS && writer.current.capacity() >= AHEAD_BYTES_MIN {
            self.ahead_due.store(true, Ordering::Release);
            self.context.progress.notify();
        }
    }

    /// Makes a log ahead if that was asked for, so that no writer waits for it. Ignores errors: the
    /// writer that needs the log tries again, and returns its error.
    pub(crate) fn make_log_ahead(&self) {
        // Checked without a lock, because a thread that is preempted with the lock delays writers.
        let due =
            self.ahead_due.load(Ordering::Relaxed) && self.ahead_due.swap(false, Ordering::AcqRel);
        if !due || self.context.check_writable().is_err() {
            return;
        }
        let Ok(spare) = self.create_log(0) else { return };
        if let Some(unused) = self.keep_spare(spare) {
            self.remove_log(unused.0);
        }
    }

    /// Keeps `spare` until the current log is full, and asks for another if one is too few. Returns
    /// `spare` if it is useless: other threads have made enough logs, or a writer has begun a log
    /// with a higher id. Logs are used in the order of their ids.
    fn keep_spare(&self, spare: Spare) -> Option<Spare> {
        let mut guard = self.writer.lock();
        let Some(writer) = guard.as_mut() else { return Some(spare) };
        if writer.spares.len() >= AHEAD_LOGS || spare.0 < writer.file_id {
            return Some(spare);
        }
        let place = writer.spares.partition_point(|other| other.0 < spare.0);
        writer.spares.insert(place, spare);
        self.ask_for_log(writer);
        None
    }

    /// Asks for a log file ahead if the record that was just appended at `place` fills the first
    /// eighth of the current one.
    pub(super) fn ask_when_due(&self, writer: &WalWriter, place: Range<u64>) {
        let due = writer.current.capacity() / AHEAD_AFTER;
        if place.start < due && place.end >= due {
            self.ask_for_log(writer);
        }
    }
}
