//! Sealing full memtables, and the work that follows.

use super::Scheduler;
use crate::keyspace::{KeyspaceShared, KeyspaceState};
use crate::memory::seal;
use crate::wal::WalWriter;
use lsmith_storage::sync::MutexGuard;
use lsmith_storage::sync::atomic::Ordering;
use std::sync::Arc;

/// What to do where another thread holds the lock of the keyspace's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenLocked {
    /// Wait for the lock.
    Wait,
    /// Leave the sealing to a later writer, or to a thread that merges.
    Leave,
}

impl Scheduler {
    /// Seals those memtables of `keyspaces` that are full, and has them flushed.
    pub(crate) fn seal_full(
        &self,
        writer: &mut WalWriter,
        keyspaces: &[Arc<KeyspaceShared>],
        when_locked: WhenLocked,
    ) {
        // A log that has begun may have had memtables sealed.
        let mut sealed = writer.log_began && self.context.options.lockstep;
        for keyspace in keyspaces {
            let Some(mut state) = self.lock_to_seal(keyspace, when_locked) else { continue };
            if state.active.is_full(state.policy.seal_bytes(&state.view)) {
                seal(&self.context, keyspace, &mut state);
                sealed = true;
            }
        }
        if sealed {
            self.after_seal(writer);
        }
    }

    /// Locks the state of `keyspace`, to see whether its memtable is full. Where others hold the
    /// lock, because they plan or commit, a writer goes on: a later writer looks, or a thread that
    /// merges, unless the memtable has grown to twice the size at which it is sealed. In lockstep
    /// no thread would come.
    fn lock_to_seal<'a>(
        &self,
        keyspace: &'a KeyspaceShared,
        when_locked: WhenLocked,
    ) -> Option<MutexGuard<'a, KeyspaceState>> {
        keyspace.state.try_lock().or_else(|| {
            let bytes = keyspace.active.load().memtable.live_bytes();
            if when_locked == WhenLocked::Wait
                || self.context.options.lockstep
                || bytes >= 2 * keyspace.memtable_bytes
            {
                return Some(keyspace.state.lock());
            }
            keyspace.seal_due.store(true, Ordering::Relaxed);
            None
        })
    }

    /// Seals the memtable of `keyspace` if it is full and was not sealed because the state was
    /// locked.
    pub(super) fn seal_overdue(&self, keyspace: &Arc<KeyspaceShared>, when_locked: WhenLocked) {
        // Where nothing is due, no lock is taken to find that out.
        if !keyspace.seal_due.load(Ordering::Relaxed) {
            return;
        }
        if let Some(writer) = self.wal.lock().as_mut() {
            // Set again where the state is still locked and nobody waits.
            keyspace.seal_due.store(false, Ordering::Relaxed);
            self.seal_full(writer, std::slice::from_ref(keyspace), when_locked);
        }
    }

    /// Lets the threads that merge know of a sealed memtable, or in lockstep does their work.
    pub(crate) fn after_seal(&self, writer: &mut WalWriter) {
        if self.context.options.lockstep {
            writer.log_began = false;
            self.work_in_lockstep(&writer.logs_to_sync());
            self.wal.retire_logs_of(writer);
        } else {
            self.keyspaces.balance_memory();
            self.context.progress.notify();
        }
    }
}
