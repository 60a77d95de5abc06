//! Back-pressure: writers are slowed as merges fall behind, and stopped before memory runs out.

use crate::error::{ErrorKind, Result};
use crate::shared::Shared;
use crate::stats::add;
use crate::version::{Core, SEALED_MAX, Space};
use lsmith_policy::Load;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A byte waits this long, in nanoseconds, times p * p / (1 - p) at pressure p.
const NANOS_PER_BYTE: f64 = 10.0;

/// The shortest sleep. Few long ones disturb fewer writes than many short ones: at half speed, with
/// a microsecond for each write, one of five thousand sleeps.
const DELAY_MIN: Duration = Duration::from_millis(5);

/// The longest that one write is slowed without being stopped.
const DELAY_MAX: Duration = Duration::from_millis(15);

/// The pressure up to which writers are slowed. A little below the one at which they stop.
const PRESSURE_MAX: f64 = 0.999;

/// How long a stopped writer sleeps before it looks again, should nobody wake it.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What the state of a keyspace means for a writer.
enum Verdict {
    Go,
    Slow(Duration),
    Stop,
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
            let turn = *self.work.turn.lock();
            let verdict = self.judge(space, bytes)?;
            let wait = match verdict {
                Verdict::Go => break,
                Verdict::Slow(_) if start.is_some() => break,
                Verdict::Slow(delay) => delay,
                Verdict::Stop => LOOK_AGAIN,
            };
            start.get_or_insert_with(|| self.options.env.now());
            let mut now = self.work.turn.lock();
            if *now == turn {
                self.work.changed.wait_for(&mut now, wait);
            }
            drop(now);
            self.check_writable()?;
            if matches!(verdict, Verdict::Slow(_)) {
                break;
            }
        }
        if let Some(start) = start {
            let held = self.options.env.now().saturating_sub(start);
            add(&self.counts.held_back_micros, held.as_micros() as u64);
        }
        Ok(())
    }

    fn judge(&self, space: &Space, bytes: u64) -> Result<Verdict> {
        let mut core = match space.core.try_lock() {
            Some(core) => core,
            // A merge that commits holds it while it waits for the device.
            None if space.calm.load(Ordering::Relaxed) => return Ok(Verdict::Go),
            None => space.core.lock(),
        };
        let verdict = self.judge_by(space, &mut core, bytes);
        let calm = matches!(verdict, Ok(Verdict::Go)) && core.owed_nanos <= 0.0;
        space.calm.store(calm, Ordering::Relaxed);
        verdict
    }

    fn judge_by(&self, space: &Space, core: &mut Core, bytes: u64) -> Result<Verdict> {
        if !core.failures.is_empty() {
            if !self.options.lockstep {
                self.retry_failures(core);
            }
            let full = core.failures.iter().find(|failure| failure.kind == ErrorKind::Full);
            if let Some(failure) = full {
                return Err(failure.to_error().at(&self.options.dir));
            }
        }
        if self.options.lockstep {
            // This writer does the merging itself, so nothing can fall behind.
            return match core.failures.first().filter(|_| core.waiting_memtables() >= SEALED_MAX) {
                Some(failure) => Err(failure.to_error()),
                None => Ok(Verdict::Go),
            };
        }
        if core.waiting_memtables() >= SEALED_MAX || core.pressure >= 1.0 {
            // While there is something else to do, that may be what helps.
            let stuck = || !core.is_busy() && self.propose(core).is_none();
            return match core.failures.first() {
                Some(failure) if stuck() => Err(failure.to_error()),
                _ => Ok(Verdict::Stop),
            };
        }
        if core.pressure <= 0.0 {
            core.owed_nanos = 0.0;
            return Ok(Verdict::Go);
        }
        let pressure = core.pressure.max(memory_pressure(space, core)).min(PRESSURE_MAX);
        core.owed_nanos += bytes as f64 * NANOS_PER_BYTE * pressure * pressure / (1.0 - pressure);
        // Short sleeps cost more than they give, so many small writes sleep once.
        if core.owed_nanos < DELAY_MIN.as_nanos() as f64 {
            return Ok(Verdict::Go);
        }
        let delay = Duration::from_nanos(core.owed_nanos as u64).min(DELAY_MAX);
        core.owed_nanos = 0.0;
        Ok(Verdict::Slow(delay))
    }

    /// Lets plans that failed for want of room be tried again once there is room: at once where
    /// there is more than there was, else after a while, in case the room there was is not ours to
    /// use. Whether there are such plans.
    pub(crate) fn retry_failures(&self, core: &mut Core) -> bool {
        if !core.failures.iter().any(|failure| failure.kind == ErrorKind::Full) {
            return false;
        }
        let options = &self.options;
        let Ok(free) = options.env.free_bytes(&options.dir) else { return false };
        let now = options.env.now();
        let before = core.failures.len();
        core.unblock(|failure| {
            let hopeful = free > failure.free_bytes || now >= failure.retry_at;
            failure.kind != ErrorKind::Full || failure.needs_bytes > free || !hopeful
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

    /// Asks the policy how hard writers must be held back.
    pub(crate) fn note_pressure(&self, core: &mut Core) {
        let load = Load { free_bytes: None, waiting_memtables: core.waiting_memtables() };
        core.pressure = core.policy.pressure(&core.view, &load).clamp(0.0, 1.0);
    }
}

/// The pressure of memory alone: it grows with every byte, from where two memtables wait to where
/// there is room for no more.
fn memory_pressure(space: &Space, core: &Core) -> f64 {
    let full = core.active.live_bytes() as f64 / space.memtable_bytes as f64;
    let room = (SEALED_MAX - 2) as f64;
    (core.waiting_memtables() as f64 - 2.0 + full.min(1.0)) / room
}
