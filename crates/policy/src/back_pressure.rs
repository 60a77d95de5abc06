//! What the pressure of a policy and full memory mean for the next byte that is written. The store,
//! simulations of time and the law of [free runs](crate::laws::Law::Free) share it.

use crate::Load;

/// Sealed memtables that wait to be merged at which writers stop.
pub const WAITING_MEMTABLES_MAX: usize = 4;

/// At pressure p each byte costs this many nanoseconds of sleep, times p * p / (1 - p).
const NANOS_PER_BYTE: f64 = 10.0;

/// The reserve of memory for writes that arrive while a full memtable is merged: these bytes, or
/// [`WAITING_MEMTABLES_MAX`] memtables if they are smaller, or a seventh of a memtable if it is
/// larger. Memory is better spent on the memtable than on the reserve: a larger memtable means
/// fewer merges, while a small reserve only makes writers wait now and then.
const RESERVE_BYTES: u64 = 8 << 20;

/// The highest pressure that slows writers. At pressure 1 they stop.
const PRESSURE_MAX: f64 = 0.999;

/// How hard writers are held back until the tree changes next: by how much depends on what the
/// active memtable has taken by then.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BackPressure {
    /// The policy's pressure while the active memtable is empty, from 0 to 1.
    pub empty: f64,
    /// The policy's pressure once the active memtable is full, from 0 to 1.
    pub full: f64,
    /// Logical bytes of the sealed memtables that wait to be merged.
    pub waiting_bytes: u64,
}

impl BackPressure {
    /// Asks a policy for its [pressure](crate::MergePolicy::pressure) under `load`, and under the
    /// load that there will be once the active memtable of `memtable_bytes` is full.
    pub fn of(
        load: &Load,
        waiting_bytes: u64,
        memtable_bytes: u64,
        pressure: impl Fn(&Load) -> f64,
    ) -> BackPressure {
        let empty = pressure(load);
        let full = match load.owed_bytes {
            0 => empty,
            owed => {
                let owed_bytes = owed.saturating_add(memtable_bytes);
                pressure(&Load { owed_bytes, ..*load }).max(empty)
            }
        };
        BackPressure { empty, full, waiting_bytes }
    }

    /// Returns true if no writer is delayed, however full the active memtable is.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.waiting_bytes == 0 && self.full <= 0.0
    }

    /// Returns the policy's pressure while the active memtable holds `active_bytes` of
    /// `memtable_bytes`.
    #[must_use]
    pub fn of_merges(&self, active_bytes: u64, memtable_bytes: u64) -> f64 {
        let part = (active_bytes as f64 / memtable_bytes.max(1) as f64).min(1.0);
        self.empty + part * (self.full - self.empty)
    }

    /// Returns the pressure of memory alone: 0 while active and waiting memtables hold no more than
    /// one full memtable. It grows evenly to 1 as the reserve fills up, and may exceed 1.
    #[must_use]
    pub fn of_memory(&self, active_bytes: u64, memtable_bytes: u64) -> f64 {
        let waiting_max = memtable_bytes.saturating_mul(WAITING_MEMTABLES_MAX as u64);
        let reserve = RESERVE_BYTES.min(waiting_max).max(memtable_bytes / 7).max(1);
        let bytes = self.waiting_bytes.saturating_add(active_bytes);
        bytes.saturating_sub(memtable_bytes) as f64 / reserve as f64
    }
}

/// Returns the nanoseconds for which a writer sleeps per byte at `pressure`. At a pressure of 1 it
/// would stop, and the answer is that for a little less.
#[must_use]
pub fn delay_nanos_per_byte(pressure: f64) -> f64 {
    let pressure = pressure.clamp(0.0, PRESSURE_MAX);
    NANOS_PER_BYTE * pressure * pressure / (1.0 - pressure)
}

/// The shortest sleep. Few long sleeps disturb fewer writes than many short ones: at half speed,
/// with a microsecond per write, one write of five thousand sleeps.
const SLEEP_MIN_NANOS: u64 = 5_000_000;

/// The longest sleep of a write that is slowed but not stopped.
const SLEEP_MAX_NANOS: u64 = 12_000_000;

/// Bytes written between two measurements of the active memtable. Measuring takes a lock.
pub const MEASURE_BYTES: u64 = 4 << 10;

/// How long a stopped writer sleeps before it looks again, if no progress wakes it, in nanoseconds.
pub const LOOK_AGAIN_NANOS: u64 = 50_000_000;

/// Returns how long a writer sleeps, in nanoseconds, if writers owe `owed_nanos` of sleep. `None`
/// if it goes on: a short sleep would slow it down by more than was meant.
#[must_use]
pub fn sleep_nanos(owed_nanos: u64) -> Option<u64> {
    (owed_nanos >= SLEEP_MIN_NANOS).then(|| owed_nanos.min(SLEEP_MAX_NANOS))
}
