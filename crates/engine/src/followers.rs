//! Wakes threads that wait for changes. Writers pay one load of an atomic while nobody waits.

use lsmith_storage::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use lsmith_storage::sync::{Condvar, Mutex};
use std::time::Duration;

/// The threads that wait for the next write.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    /// The number of threads that wait, or are about to.
    waiting: AtomicUsize,
    /// The number of times that they were woken.
    turn: Mutex<u64>,
    changed: Condvar,
}

/// A thread that waits, or is about to.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    of: &'a Followers,
}

impl Followers {
    /// Wakes all that wait. Called behind each write, when it is visible and the lock of the writer
    /// is free again.
    #[inline]
    pub(crate) fn wake(&self) {
        if self.waiting.load(SeqCst) > 0 {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        *self.turn.lock() += 1;
        self.changed.notify_all();
    }

    /// Announces that this thread is going to wait. It looks for a write next, under the lock of
    /// the writer. A write that it does not see there comes later, and wakes it.
    pub(crate) fn announce(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, SeqCst);
        Waiting { of: self }
    }
}

impl Waiting<'_> {
    /// Returns a count to wait beyond, which is read before the thread looks for a write.
    pub(crate) fn turn(&self) -> u64 {
        *self.of.turn.lock()
    }

    /// Waits until a write was made after turn `turn`, for at most `longest`.
    pub(crate) fn wait_beyond(&self, turn: u64, longest: Duration) {
        let mut now = self.of.turn.lock();
        if *now == turn {
            self.of.changed.wait_for(&mut now, longest);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.of.waiting.fetch_sub(1, SeqCst);
    }
}
