//! How far behind merges are, as writers see it.

use super::{KeyspaceState, SEALED_MAX};
use lsmith_policy::Load;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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

    /// Notes what the state of the keyspace, which is `state`, means for writers.
    pub(crate) fn note(&self, state: &KeyspaceState) {
        let waiting = state.waiting_memtables();
        let load = Load { waiting_memtables: waiting };
        let pressure = state.policy.pressure(&state.view, &load);
        self.pressure.store(pressure.to_bits(), Ordering::Relaxed);
        self.waiting.store(waiting, Ordering::Relaxed);
        self.waiting_bytes.store(state.waiting_bytes(), Ordering::Relaxed);
        self.failing.store(!state.failures.is_empty(), Ordering::Relaxed);
        if pressure <= 0.0 {
            self.owed_nanos.store(0, Ordering::Relaxed);
        }
    }

    /// Whether writers may go on without a look at the keyspace.
    pub(crate) fn is_ajar(&self) -> bool {
        self.pressure() < 1.0
            && self.waiting.load(Ordering::Relaxed) < SEALED_MAX
            && !self.failing.load(Ordering::Relaxed)
    }

    /// How long the writer of `bytes` must sleep now. Short sleeps cost more than they give, so of
    /// many small writes one sleeps for all. `active_bytes` tells what the active memtable holds.
    pub(crate) fn delay(
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
