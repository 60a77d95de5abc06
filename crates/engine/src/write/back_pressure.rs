//! Back-pressure: slows writers as merges fall behind, and stops them before memory runs out.

use super::WritePath;
use crate::budget::Sealer;
use crate::keyspace::{HeldBackBy, KeyspaceShared, SEALED_MAX};
use crate::space::SpaceLimit;
use crate::stats::add;
use lsmith_policy::back_pressure::LOOK_AGAIN_NANOS;
use lsmith_storage::error::Result;
use std::time::Duration;

/// How long a stopped writer sleeps before it looks again, if no progress wakes it.
const LOOK_AGAIN: Duration = Duration::from_nanos(LOOK_AGAIN_NANOS);

/// Less than this part of what memtables may have is not worth waiting for.
const LITTLE_PART: u64 = 8;

/// What a writer must do, given the state of its keyspace.
enum Verdict {
    Go,
    /// Sleep once, for so long.
    Slow(Duration, HeldBackBy),
    /// Wait for progress beyond this turn, then ask again.
    Stop(u64, HeldBackBy),
}

impl WritePath {
    /// Delays a writer of `bytes` to `keyspace` as long as merges are behind.
    ///
    /// # Errors
    /// `Full` while a merge waits for room on the device. The error of a failed merge, if memtables
    /// wait for that merge. `Poisoned`.
    pub(super) fn hold_back(&self, keyspace: &KeyspaceShared, bytes: u64) -> Result<()> {
        // Nothing has failed behind an open gate.
        if self.context.options.lockstep && !keyspace.gate.is_open() {
            self.retry_in_lockstep(keyspace);
        }
        let mut waited = false;
        loop {
            let turn = || self.context.progress.turn();
            let (turn, wait, by, stopped) = match self.judge(keyspace, bytes, turn)? {
                Verdict::Go => break,
                Verdict::Slow(..) if waited => break,
                Verdict::Slow(delay, by) => (turn(), delay, by, false),
                Verdict::Stop(turn, by) => (turn, LOOK_AGAIN, by, true),
            };
            waited = true;
            let start = self.context.options.env.now();
            self.context.progress.wait_beyond(turn, wait);
            let delay = self.context.options.env.now().saturating_sub(start);
            self.note_wait(keyspace, delay, by, stopped);
            self.context.check_writable()?;
            if !stopped {
                break;
            }
        }
        Ok(())
    }

    /// Seals the largest memtable if all together have too much of the limit on memory and none is
    /// about to be freed, or asks another store to seal it. Otherwise waits while they have all
    /// that they may have.
    ///
    /// Does neither if that would free little: readers may hold memtables that were merged long
    /// ago.
    ///
    /// # Errors
    /// As [`hold_back`](WritePath::hold_back).
    #[cold]
    pub(super) fn make_room(&self) -> Result<()> {
        let share = &self.context.share;
        let limit = share.limit();
        let little = limit.memtables_low / LITTLE_PART;
        loop {
            self.context.check_writable()?;
            let turn = self.context.progress.turn();
            let is_coming = share.all_coming_free() >= little;
            if is_coming && share.held_bytes() <= limit.memtables_max {
                return Ok(());
            }
            if share.held_bytes() > limit.memtables_max {
                share.free_spare();
            }
            let used = share.used_bytes();
            if used <= limit.memtables_low {
                return Ok(());
            }
            let sealer = match is_coming {
                true => Sealer::Other,
                false => self.scheduler.choose_sealer(limit.memtables_low / 2),
            };
            match sealer {
                Sealer::None => return Ok(()),
                Sealer::Own => {
                    let mut guard = self.wal.lock();
                    let Some(writer) = guard.as_mut() else { return Ok(()) };
                    if !self.scheduler.seal_largest(writer) {
                        return Ok(());
                    }
                }
                Sealer::Other if used <= limit.memtables_max => return Ok(()),
                Sealer::Other => self.wait_for_memory(turn),
            }
        }
    }

    /// Waits until the limit on `space` leaves a writer room. Flushes memory and asks for merges
    /// that free space.
    ///
    /// # Errors
    /// `Full` if nothing would free enough. `Poisoned`.
    #[cold]
    pub(super) fn make_space(&self, space: &SpaceLimit, only_deletes: bool) -> Result<()> {
        let start = self.context.options.env.now();
        loop {
            let turn = self.context.progress.turn();
            let memory = self.context.memtable_memory();
            if !space.is_tight(memory, only_deletes) {
                break;
            }
            let is_coming = self.context.share.coming_free.bytes() > 0;
            let is_sealed = !is_coming && space.is_in_memory(memory) && {
                let mut guard = self.wal.lock();
                guard
                    .as_mut()
                    .is_some_and(|writer| self.scheduler.seal_if_large(writer, memory / 2))
            };
            if !is_sealed && !self.scheduler.reclaim_space() && !self.flush_for_space() {
                self.scheduler.remove_obsolete();
                if space.is_tight(self.context.memtable_memory(), only_deletes) {
                    return Err(self.scheduler.no_space(space));
                }
            }
            if self.context.options.lockstep {
                if let Some(writer) = self.wal.lock().as_mut() {
                    self.scheduler.after_seal(writer);
                }
            } else {
                self.context.progress.wait_beyond(turn, LOOK_AGAIN);
            }
            self.context.check_writable()?;
        }
        let delay = self.context.options.env.now().saturating_sub(start).as_micros() as u64;
        add(&self.context.counts.held_back_micros, delay);
        add(&self.context.counts.stopped_by_space_micros, delay);
        Ok(())
    }

    /// Flushes all memtables: deletes in them free space once they are merged. Returns false if
    /// there is nothing to flush.
    fn flush_for_space(&self) -> bool {
        let mut guard = self.wal.lock();
        guard.as_mut().is_some_and(|writer| self.scheduler.flush_for_space(writer))
    }

    /// Waits until something has happened beyond `turn`, or memory of another store was freed.
    fn wait_for_memory(&self, turn: u64) {
        let start = self.context.options.env.now();
        let wait = || self.context.progress.wait_beyond(turn, LOOK_AGAIN);
        self.context.share.wait_for_memory(wait);
        let delay = self.context.options.env.now().saturating_sub(start);
        add(&self.context.counts.held_back_micros, delay.as_micros() as u64);
        add(&self.context.counts.stopped_by_memory_micros, delay.as_micros() as u64);
    }

    /// Counts that a writer waited for `delay`, and tells it.
    fn note_wait(&self, keyspace: &KeyspaceShared, delay: Duration, by: HeldBackBy, stopped: bool) {
        let micros = delay.as_micros() as u64;
        let counts = &self.context.counts;
        add(&counts.held_back_micros, micros);
        let counter = match (by, stopped) {
            (HeldBackBy::Memory, false) => &counts.slowed_by_memory_micros,
            (HeldBackBy::Merges, false) => &counts.slowed_by_merges_micros,
            (HeldBackBy::Memory, true) => &counts.stopped_by_memory_micros,
            (HeldBackBy::Merges, true) => &counts.stopped_by_merges_micros,
        };
        add(counter, micros);
        let (keyspace, by) = (&keyspace.name, by.name());
        tracing::debug!(%keyspace, by, stopped, micros, "a writer was held back");
    }

    /// Returns what a writer of `bytes` must do. `turn` returns the present turn of the progress,
    /// and is called before the state is read.
    fn judge(
        &self,
        keyspace: &KeyspaceShared,
        bytes: u64,
        turn: impl Fn() -> u64,
    ) -> Result<Verdict> {
        if !keyspace.gate.is_open() {
            let turn = turn();
            if let Some(by) = self.must_stop(keyspace)? {
                return Ok(Verdict::Stop(turn, by));
            }
        }
        let active_bytes = || keyspace.active.load().memtable.live_bytes();
        match keyspace.gate.delay(bytes, keyspace.memtable_bytes, active_bytes) {
            // In lockstep this writer does the merging itself, so nothing can fall behind.
            Some((delay, by)) if !self.context.options.lockstep => Ok(Verdict::Slow(delay, by)),
            _ => Ok(Verdict::Go),
        }
    }

    /// Returns why a writer must wait for progress, if it must.
    fn must_stop(&self, keyspace: &KeyspaceShared) -> Result<Option<HeldBackBy>> {
        let mut state = keyspace.state.lock();
        state.check_kept(keyspace)?;
        if !self.context.options.lockstep {
            state.retry_failures(&self.context);
        }
        keyspace.gate.note(&state);
        if let Some(failure) = state.failures.iter().find(|failure| failure.is_full()) {
            let error = failure.to_error();
            drop(state);
            let is_coming = self.context.space.is_some() && self.scheduler.reclaim_space();
            return if is_coming { Ok(Some(HeldBackBy::Merges)) } else { Err(error) };
        }
        let waiting = state.waiting_memtables();
        let crowded = waiting >= SEALED_MAX;
        if self.context.options.lockstep {
            return match state.failures.first().filter(|_| crowded) {
                Some(failure) => Err(failure.to_error()),
                None => Ok(None),
            };
        }
        if !crowded && keyspace.gate.pressure() < 1.0 {
            return Ok(None);
        }
        let by = if crowded { HeldBackBy::Memory } else { HeldBackBy::Merges };
        if waiting > 0 && state.trouble().is_none() {
            return Ok(Some(by));
        }
        // Other work is under way or to come, and may free memory.
        if state.is_busy() || !state.at_rest {
            return Ok(Some(by));
        }
        match state.trouble() {
            Some(error) => Err(error),
            // The tree is at rest, so the policy's pressure will not change: a writer is delayed,
            // and not stopped for ever.
            None => Ok((waiting > 0).then_some(by)),
        }
    }

    /// Tries failed plans again. In lockstep no thread does, so the next writer must.
    fn retry_in_lockstep(&self, keyspace: &KeyspaceShared) {
        let mut state = keyspace.state.lock();
        let any = state.retry_failures(&self.context);
        drop(state);
        let any = any || self.context.space.is_some() && self.scheduler.reclaim_space();
        if any && let Some(writer) = self.wal.lock().as_mut() {
            self.scheduler.after_seal(writer);
        }
    }
}
