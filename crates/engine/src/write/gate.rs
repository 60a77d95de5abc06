//! Back-pressure: writers are slowed as merges fall behind, and stopped before memory runs out.

use crate::error::Result;
use crate::shared::Shared;
use crate::stats::add;
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::version::{Core, Failure, SEALED_MAX, Space};
use lsmith_policy::Load;
use std::time::Duration;

/// A byte waits this long, in nanoseconds, times p * p / (1 - p) at pressure p.
const NANOS_PER_BYTE: f64 = 10.0;

/// The shortest sleep. Few long ones disturb fewer writes than many short ones: at half speed, with
/// a microsecond for each write, one of five thousand sleeps.
const DELAY_MIN: Duration = Duration::from_millis(5);

/// Bytes after which it is looked anew how much memory is full: a look takes a lock.
const LOOK_BYTES: u64 = 4 << 10;

/// Beside a full memtable there is room in memory for the writes that come while it is merged: for
/// these bytes, or a seventh of a memtable where that is more, but for not more than [`SEALED_MAX`]
/// small ones. A larger memtable saves more than more room does: what is merged is written as often
/// as memtables come, while writers that wait for a merge now and then lose nothing but time.
const ROOM_BYTES: u64 = 8 << 20;

/// The longest that one write is slowed without being stopped.
const DELAY_MAX: Duration = Duration::from_millis(12);

/// The pressure up to which writers are slowed. A little below the one at which they stop.
const PRESSURE_MAX: f64 = 0.999;

/// How long a stopped writer sleeps before it looks again, should nobody wake it.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How far behind merges are: what a writer looks at, without a lock that a merge could hold.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// The bits of how hard writers are held back, as the policy last said.
    pressure: AtomicU64,
    /// Memtables that wait.
    waiting: AtomicUsize,
    /// Their logical bytes.
    waiting_bytes: AtomicU64,
    /// Bytes written since it was last looked how much memory is full.
    unseen_bytes: AtomicU64,
    /// Whether there are plans that failed.
    failing: AtomicBool,
    /// Nanoseconds that writers have yet to sleep for under the present pressure.
    owed_nanos: AtomicU64,
}

impl Gate {
    /// How hard writers are held back: from 0, not at all, to 1, completely.
    pub(crate) fn pressure(&self) -> f64 {
        f64::from_bits(self.pressure.load(Ordering::Relaxed))
    }

    /// Notes what the state of the keyspace, which is `core`, means for writers.
    pub(crate) fn note(&self, core: &Core) {
        let waiting = core.waiting_memtables();
        let load = Load { waiting_memtables: waiting };
        let pressure = core.policy.pressure(&core.view, &load);
        self.pressure.store(pressure.to_bits(), Ordering::Relaxed);
        self.waiting.store(waiting, Ordering::Relaxed);
        self.waiting_bytes.store(core.waiting_bytes(), Ordering::Relaxed);
        self.failing.store(!core.failures.is_empty(), Ordering::Relaxed);
        if pressure <= 0.0 {
            self.owed_nanos.store(0, Ordering::Relaxed);
        }
    }

    /// Whether writers may go on without a look at the keyspace.
    fn is_ajar(&self) -> bool {
        self.pressure() < 1.0
            && self.waiting.load(Ordering::Relaxed) < SEALED_MAX
            && !self.failing.load(Ordering::Relaxed)
    }

    /// How long the writer of `bytes` must sleep now. Short sleeps cost more than they give, so of
    /// many small writes one sleeps for all. `active_bytes` tells what the active memtable holds.
    fn delay(
        &self,
        bytes: u64,
        memtable_bytes: u64,
        active_bytes: impl FnOnce() -> u64,
    ) -> Option<Duration> {
        let waiting = self.waiting_bytes.load(Ordering::Relaxed);
        if waiting == 0 && self.pressure() <= 0.0 {
            return None;
        }
        let bytes = self.unseen_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if bytes < LOOK_BYTES {
            return None;
        }
        self.unseen_bytes.store(0, Ordering::Relaxed);
        let memory = memory_pressure(waiting + active_bytes(), memtable_bytes);
        let pressure = self.pressure().max(memory).min(PRESSURE_MAX);
        let nanos = bytes as f64 * NANOS_PER_BYTE * pressure * pressure / (1.0 - pressure);
        let owed = self.owed_nanos.fetch_add(nanos as u64, Ordering::Relaxed) + nanos as u64;
        if owed < DELAY_MIN.as_nanos() as u64 {
            return None;
        }
        self.owed_nanos.store(0, Ordering::Relaxed);
        Some(Duration::from_nanos(owed).min(DELAY_MAX))
    }
}

/// The pressure of memory alone, if the active memtable and those that wait hold `bytes`. It grows
/// with every byte, from a full memtable to where there is room for no more.
fn memory_pressure(bytes: u64, memtable_bytes: u64) -> f64 {
    let room = ROOM_BYTES.min(memtable_bytes.saturating_mul(SEALED_MAX as u64));
    let room = room.max(memtable_bytes / 7).max(1);
    bytes.saturating_sub(memtable_bytes) as f64 / room as f64
}

/// What the state of a keyspace means for a writer.
enum Verdict {
    Go,
    Slow(Duration),
    /// Until something has changed since work stood here.
    Stop(u64),
}

impl Shared {
    /// Holds the writer of `bytes` to `space` back as long as it takes.
    ///
    /// # Errors
    /// `Full` while a merge waits for room on the device; the error of a failed merge once memory
    /// is full behind it; `Poisoned`.
    pub(super) fn hold_back(&self, space: &Space, bytes: u64) -> Result<()> {
        if self.options.lockstep {
            self.retry_in_lockstep(space);
        }
        let mut start = None;
        loop {
            let turn = || *self.work.turn.lock();
            let (turn, wait, stopped) = match self.judge(space, bytes, turn)? {
                Verdict::Go => break,
                Verdict::Slow(_) if start.is_some() => break,
                Verdict::Slow(delay) => (turn(), delay, false),
                Verdict::Stop(turn) => (turn, LOOK_AGAIN, true),
            };
            start.get_or_insert_with(|| self.options.env.now());
            let mut now = self.work.turn.lock();
            if *now == turn {
                self.work.changed.wait_for(&mut now, wait);
            }
            drop(now);
            self.check_writable()?;
            if !stopped {
                break;
            }
        }
        if let Some(start) = start {
            let held = self.options.env.now().saturating_sub(start);
            add(&self.counts.held_back_micros, held.as_micros() as u64);
        }
        Ok(())
    }

    /// `turn` tells where the work stands, before anything else is looked at.
    fn judge(&self, space: &Space, bytes: u64, turn: impl Fn() -> u64) -> Result<Verdict> {
        if !space.gate.is_ajar() {
            let turn = turn();
            if self.must_stop(space)? {
                return Ok(Verdict::Stop(turn));
            }
        }
        let active_bytes = || space.active.load().memtable.live_bytes();
        match space.gate.delay(bytes, space.memtable_bytes, active_bytes) {
            // In lockstep this writer does the merging itself, so nothing can fall behind.
            Some(delay) if !self.options.lockstep => Ok(Verdict::Slow(delay)),
            _ => Ok(Verdict::Go),
        }
    }

    /// Whether a writer must wait until something has changed.
    fn must_stop(&self, space: &Space) -> Result<bool> {
        let mut core = space.core.lock();
        if !self.options.lockstep {
            self.retry_failures(&mut core);
        }
        space.gate.note(&core);
        if let Some(failure) = core.failures.iter().find(|failure| failure.is_full()) {
            return Err(failure.to_error());
        }
        let waiting = core.waiting_memtables();
        let crowded = waiting >= SEALED_MAX;
        if self.options.lockstep {
            return match core.failures.first().filter(|_| crowded) {
                Some(failure) => Err(failure.to_error()),
                None => Ok(false),
            };
        }
        if !crowded && space.gate.pressure() < 1.0 {
            return Ok(false);
        }
        if waiting > 0 && core.trouble().is_none() {
            return Ok(true);
        }
        // While there is something else to do, that may be what helps.
        if core.is_busy() || self.propose(&core).is_some() {
            return Ok(true);
        }
        match core.trouble() {
            Some(error) => Err(error),
            // Nothing is going to happen that could make the policy think otherwise: its pressure
            // is worth a delay, not a stop for ever.
            None => Ok(waiting > 0),
        }
    }

    /// Lets plans that failed for want of room be tried again once there is room: at once where
    /// there is more than there was, else after a while, in case the room there was is not ours to
    /// use. Whether there are such plans.
    pub(crate) fn retry_failures(&self, core: &mut Core) -> bool {
        if !core.failures.iter().any(Failure::is_full) {
            return false;
        }
        let options = &self.options;
        let Ok(free) = options.env.free_bytes(&options.dir) else { return false };
        let now = options.env.now();
        let before = core.failures.len();
        core.unblock(|failure| {
            let hopeful = free > failure.free_bytes || now >= failure.retry_at;
            !failure.is_full() || failure.needs_bytes > free || !hopeful
        });
        let any = core.failures.len() < before;
        if any {
            self.work.notify();
        }
        any
    }

    /// In lockstep it is the next writer who tries failed plans again.
    fn retry_in_lockstep(&self, space: &Space) {
        let mut core = space.core.lock();
        let any = self.retry_failures(&mut core);
        drop(core);
        if any && let Some(writer) = self.writer.lock().as_mut() {
            self.after_seal(writer);
        }
    }
}
