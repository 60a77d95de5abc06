//! The gate at which writers are held back while merges are behind.

use super::{KeyspaceState, SEALED_MAX};
use lsmith_policy::Load;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// At pressure p each byte costs this many nanoseconds of sleep, times p * p / (1 - p).
const NANOS_PER_BYTE: f64 = 10.0;

/// The shortest sleep. Few long sleeps disturb fewer writes than many short ones: at half speed,
/// with a microsecond per write, one write of five thousand sleeps.
const DELAY_MIN: Duration = Duration::from_millis(5);

/// Bytes written between two measurements of the active memtable. Measuring takes a lock.
const MEASURE_BYTES: u64 = 4 << 10;

/// The reserve of memory for writes that arrive while a full memtable is merged: these bytes, or
/// [`SEALED_MAX`] memtables if they are smaller, or a seventh of a memtable if it is larger. Memory
/// is better spent on the memtable than on the reserve: a larger memtable means fewer merges, while
/// a small reserve only makes writers wait now and then.
const RESERVE_BYTES: u64 = 8 << 20;

/// The longest sleep of a write that is slowed but not stopped.
const DELAY_MAX: Duration = Duration::from_millis(12);

/// The highest pressure that slows writers. At pressure 1 they stop.
const PRESSURE_MAX: f64 = 0.999;

/// Why a writer is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldBackBy {
    /// Memtables wait to be merged, and memory fills up.
    Memory,
    /// The merge policy reports pressure.
    Merges,
}

impl HeldBackBy {
    /// Returns the cause as a word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            HeldBackBy::Memory => "memory",
            HeldBackBy::Merges => "merges",
        }
    }
}

/// How far behind merges are. Writers read it without a lock that a merge could hold.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// The policy's latest pressure, as the bits of an `f64`.
    pressure: AtomicU64,
    /// The number of memtables that wait to be merged.
    waiting: AtomicUsize,
    /// Their logical bytes.
    waiting_bytes: AtomicU64,
    /// Bytes written since the active memtable was last measured.
    unmeasured_bytes: AtomicU64,
    /// True if there are failed plans, or the keyspace was dropped.
    failing: AtomicBool,
    /// Nanoseconds that writers still have to sleep.
    owed_nanos: AtomicU64,
}

impl Gate {
    /// Returns the policy's latest pressure on writers: from 0, none, to 1, stop.
    pub(crate) fn pressure(&self) -> f64 {
        f64::from_bits(self.pressure.load(Ordering::Relaxed))
    }

    /// Takes over what `state`, the state of the keyspace, means for writers. Asks the policy for
    /// its pressure.
    pub(crate) fn note(&self, state: &KeyspaceState) {
        let waiting = state.waiting_memtables();
        let load = Load { waiting_memtables: waiting };
        let pressure = state.policy.pressure(&state.view, &load);
        self.pressure.store(pressure.to_bits(), Ordering::Relaxed);
        self.waiting.store(waiting, Ordering::Relaxed);
        self.waiting_bytes.store(state.waiting_bytes(), Ordering::Relaxed);
        self.failing.store(!state.failures.is_empty() || state.is_dropped, Ordering::Relaxed);
        if pressure <= 0.0 {
            self.owed_nanos.store(0, Ordering::Relaxed);
        }
    }

    /// Returns true if writers may go on without the lock of the keyspace's state.
    pub(crate) fn is_open(&self) -> bool {
        self.pressure() < 1.0
            && self.waiting.load(Ordering::Relaxed) < SEALED_MAX
            && !self.failing.load(Ordering::Relaxed)
    }

    /// Returns how long the writer of `bytes` must sleep now, and why, if at all. One of many small
    /// writes sleeps for all, because a short sleep costs more than it gives. `active_bytes`
    /// returns the logical bytes in the active memtable.
    pub(crate) fn delay(
        &self,
        bytes: u64,
        memtable_bytes: u64,
        active_bytes: impl FnOnce() -> u64,
    ) -> Option<(Duration, HeldBackBy)> {
        let waiting = self.waiting_bytes.load(Ordering::Relaxed);
        if waiting == 0 && self.pressure() <= 0.0 {
            return None;
        }
        let bytes = self.unmeasured_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if bytes < MEASURE_BYTES {
            return None;
        }
        self.unmeasured_bytes.store(0, Ordering::Relaxed);
        let memory = memory_pressure(waiting + active_bytes(), memtable_bytes);
        let by = if memory > self.pressure() { HeldBackBy::Memory } else { HeldBackBy::Merges };
        let pressure = self.pressure().max(memory).min(PRESSURE_MAX);
        let nanos = bytes as f64 * NANOS_PER_BYTE * pressure * pressure / (1.0 - pressure);
        let owed = self.owed_nanos.fetch_add(nanos as u64, Ordering::Relaxed) + nanos as u64;
        if owed < DELAY_MIN.as_nanos() as u64 {
            return None;
        }
        self.owed_nanos.store(0, Ordering::Relaxed);
        Some((Duration::from_nanos(owed).min(DELAY_MAX), by))
    }
}

/// Returns the pressure of memory alone, if active and waiting memtables hold `bytes`. It is 0 up
/// to one full memtable, and grows evenly to 1 as the reserve fills up. It may exceed 1.
fn memory_pressure(bytes: u64, memtable_bytes: u64) -> f64 {
    let small = RESERVE_BYTES.min(memtable_bytes.saturating_mul(SEALED_MAX as u64));
    let reserve = small.max(memtable_bytes / 7).max(1);
    bytes.saturating_sub(memtable_bytes) as f64 / reserve as f64
}
