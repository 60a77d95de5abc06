//! Seals full memtables, and starts the work that follows.

use super::{Scheduler, WhenLocked};
use crate::budget::Sealer;
use crate::keyspace::{KeyspaceShared, KeyspaceState};
use crate::memory::seal;
use crate::wal::WalWriter;
use lsmith_storage::sync::MutexGuard;
use lsmith_storage::sync::atomic::Ordering;
use std::sync::Arc;

impl Scheduler {
    /// Seals the full memtables of `keyspaces`, and calls [`after_seal`](Scheduler::after_seal) if
    /// there are any.
    pub(crate) fn seal_full(
        &self,
        writer: &mut WalWriter,
        keyspaces: &[Arc<KeyspaceShared>],
        when_locked: WhenLocked,
    ) {
        // Memtables may have been sealed when a log file was begun.
        let mut sealed = writer.log_began && self.context.options.lockstep;
        for keyspace in keyspaces {
            let Some(mut state) = self.lock_to_seal(keyspace, when_locked) else { continue };
            if !state.is_dropped && state.active.is_full(state.policy.seal_bytes(&state.view)) {
                seal(&self.context, keyspace, &mut state);
                sealed = true;
            }
        }
        if sealed {
            self.after_seal(writer);
        }
    }

    /// Returns which store must seal its largest memtable, out of all with the same limit on
    /// memory, if all active ones together take at least `bytes_min`.
    pub(crate) fn choose_sealer(&self, bytes_min: u64) -> Sealer {
        self.keyspaces.note_active();
        self.context.share.choose_sealer(bytes_min)
    }

    /// Seals the largest active memtable of this store if all of them together take at least
    /// `bytes_min`. Returns true if it did.
    pub(crate) fn seal_if_large(&self, writer: &mut WalWriter, bytes_min: u64) -> bool {
        let all = self.keyspaces.all();
        let together = all.iter().map(|keyspace| keyspace.sealable_bytes()).sum::<u64>();
        together >= bytes_min && self.seal_largest(writer)
    }

    /// Seals the active memtable that takes most memory. Returns true if it did.
    pub(crate) fn seal_largest(&self, writer: &mut WalWriter) -> bool {
        let all = self.keyspaces.all();
        let largest = all.iter().max_by_key(|keyspace| keyspace.sealable_bytes());
        let Some(keyspace) = largest else { return false };
        let mut state = keyspace.state.lock();
        if state.is_dropped || state.active.memtable.is_empty() {
            return false;
        }
        seal(&self.context, keyspace, &mut state);
        drop(state);
        self.after_seal(writer);
        true
    }

    /// Seals the largest memtable if a writer of another store has asked for that.
    pub(super) fn seal_for_others(&self) {
        if !self.context.share.is_shared() {
            return;
        }
        self.keyspaces.note_active();
        if self.context.share.is_asked_to_seal() {
            if let Some(writer) = self.wal.lock().as_mut() {
                self.seal_largest(writer);
            }
            self.keyspaces.note_active();
        }
    }

    /// Locks the state of `keyspace`, to see whether its memtable is full.
    ///
    /// If a thread that plans or commits holds the lock, a writer goes on, and marks the memtable
    /// as due for a later writer or for a thread that merges. But it waits for the lock in
    /// lockstep, where there are no such threads, and if the memtable has twice the size at which
    /// it is sealed.
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

    /// Seals the memtable of `keyspace` if it is full and a writer has left it, because the state
    /// was locked.
    pub(super) fn seal_overdue(&self, keyspace: &Arc<KeyspaceShared>, when_locked: WhenLocked) {
        // Takes no lock if nothing is due.
        if !keyspace.seal_due.load(Ordering::Relaxed) {
            return;
        }
        if let Some(writer) = self.wal.lock().as_mut() {
            // Set again if the state is still locked and this thread does not wait.
            keyspace.seal_due.store(false, Ordering::Relaxed);
            self.seal_full(writer, std::slice::from_ref(keyspace), when_locked);
        }
    }

    /// Wakes the threads that merge after a memtable was sealed, or in lockstep does their work.
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
