//! Log files that are made before a writer needs them.

use super::{Spare, Wal, WalWriter};
use lsmith_storage::sync::atomic::Ordering;
use std::ops::Range;

/// Logs shorter than this are made when they are needed: it takes a writer no time to speak of.
const AHEAD_BYTES_MIN: u64 = 1 << 20;

/// The first logs ahead are made when this part of the current one is full, one of so many. From
/// then on there are always some.
const AHEAD_AFTER: u64 = 8;

/// Logs that are made ahead: two, because those who make them may be waiting for the device, and it
/// may be busy for longer than it takes to fill one.
pub(super) const AHEAD_LOGS: usize = 2;

impl Wal {
    /// Asks those who merge for a log file ahead, if there are too few.
    pub(super) fn ask_for_log(&self, writer: &WalWriter) {
        if writer.spares.len() < AHEAD_LOGS && writer.current.capacity() >= AHEAD_BYTES_MIN {
            self.ahead_due.store(true, Ordering::Release);
            self.context.progress.notify();
        }
    }

    /// Makes a log file ahead if it was asked for, so that no writer has to wait for it. Where it
    /// cannot be made the writer who needs it tries again, and tells.
    pub(crate) fn make_log_ahead(&self) {
        // No lock is taken to find out: one who is interrupted while he has it keeps writers
        // waiting.
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

    /// Keeps the log for when the current one is full, and asks for another where that is not
    /// enough. Gives back one that is of no use: other threads may have been quicker, or a writer,
    /// and the files of logs are used in the order of their numbers.
    fn keep_spare(&self, spare: Spare) -> Option<Spare> {
        let mut guard = self.writer.lock();
        let Some(writer) = guard.as_mut() else { return Some(spare) };
        if writer.spares.len() >= AHEAD_LOGS || spare.0 < writer.number {
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
