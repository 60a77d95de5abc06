//! Halts a keyspace: gives up the plans under way, and keeps new ones away.

use super::KeyspaceShared;
use crate::context::Context;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::sync::MutexGuard;
use lsmith_storage::sync::atomic::Ordering;
use std::time::Duration;

/// How long a thread waits for plans to be given up before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Keeps plans and ingests away from a keyspace until it is dropped.
pub(crate) struct Halt<'a> {
    keyspace: &'a KeyspaceShared,
    context: &'a Context,
    _no_ingest: MutexGuard<'a, ()>,
}

impl KeyspaceShared {
    /// Waits for an ingest under way, has plans under way given up, and waits until there are none.
    /// Memtables may still be sealed.
    ///
    /// # Errors
    /// `ReadOnly`, `Poisoned`.
    pub(crate) fn halt<'a>(&'a self, context: &'a Context) -> Result<Halt<'a>> {
        let no_ingest = self.ingesting.lock();
        let mut state = self.state.lock();
        state.at_rest = false;
        self.halted.store(true, Ordering::Release);
        drop(state);
        let halt = Halt { keyspace: self, context, _no_ingest: no_ingest };
        loop {
            let turn = context.progress.turn();
            context.check_writable()?;
            if !self.state.lock().is_busy() {
                return Ok(halt);
            }
            context.progress.wait_beyond(turn, LOOK_AGAIN);
        }
    }

    /// Returns true while the keyspace is halted: no plan may begin, and those under way end.
    pub(crate) fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Acquire)
    }

    /// Fails if the keyspace is halted. Long work calls this now and then.
    pub(crate) fn check_not_halted(&self) -> Result<()> {
        if self.is_halted() {
            let message = "the merge was given up, because its keyspace is cleared or dropped";
            return Err(Error::new(ErrorKind::Io, message));
        }
        Ok(())
    }
}

impl Drop for Halt<'_> {
    fn drop(&mut self) {
        let mut state = self.keyspace.state.lock();
        state.at_rest = false;
        self.keyspace.halted.store(false, Ordering::Release);
        drop(state);
        self.context.progress.notify();
    }
}
