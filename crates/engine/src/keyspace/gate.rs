//! The gate at which writers are held back while merges are behind.

use super::{KeyspaceState, SEALED_MAX};
use lsmith_policy::Load;
use lsmith_policy::back_pressure::{
    BackPressure, MEASURE_BYTES, delay_nanos_per_byte, sleep_nanos,
};
use lsmith_storage::account::{Account, Charge};
use lsmith_storage::sync::Mutex;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

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
#[derive(Debug)]
pub(crate) struct Gate {
    /// The policy's latest pressure while the active memtable is empty, as the bits of an `f64`.
    pressure: AtomicU64,
    /// The same once the active memtable is full.
    pressure_full: AtomicU64,
    /// The number of memtables that wait to be merged.
    waiting: AtomicUsize,
    /// Their logical bytes.
    waiting_bytes: AtomicU64,
    /// These bytes if they are going to be merged, in the account of the store.
    coming_free: Mutex<Charge>,
    /// Bytes written since the active memtable was last measured.
    unmeasured_bytes: AtomicU64,
    /// True if there are failed plans, or the keyspace was dropped.
    failing: AtomicBool,
    /// Nanoseconds that writers still have to sleep.
    owed_nanos: AtomicU64,
}

impl Gate {
    /// Returns an open gate. The logical bytes of memtables that are going to be merged count in
    /// `coming_free`.
    pub(super) fn new(coming_free: &Arc<Account>) -> Gate {
        Gate {
            pressure: AtomicU64::default(),
            pressure_full: AtomicU64::default(),
            waiting: AtomicUsize::default(),
            waiting_bytes: AtomicU64::default(),
            coming_free: Mutex::new(Charge::new(coming_free)),
            unmeasured_bytes: AtomicU64::default(),
            failing: AtomicBool::default(),
            owed_nanos: AtomicU64::default(),
        }
    }

    /// Returns the policy's latest pressure on writers, for an empty active memtable: from 0, none,
    /// to 1, stop.
    pub(crate) fn pressure(&self) -> f64 {
        f64::from_bits(self.pressure.load(Ordering::Relaxed))
    }

    /// Takes over what `state`, the state of the keyspace, means for writers. Asks the policy for
    /// its pressure.
    pub(crate) fn note(&self, state: &KeyspaceState) {
        let waiting = state.waiting_memtables();
        let owed_bytes = state.owed_bytes.unwrap_or(0);
        let load = Load { waiting_memtables: waiting, owed_bytes };
        let of_policy = |load: &Load| state.policy.pressure(&state.view, load);
        let memtable_bytes = state.view.memtable_bytes;
        let pressure = BackPressure::of(&load, state.waiting_bytes(), memtable_bytes, of_policy);
        self.pressure.store(pressure.empty.to_bits(), Ordering::Relaxed);
        self.pressure_full.store(pressure.full.to_bits(), Ordering::Relaxed);
        self.waiting.store(waiting, Ordering::Relaxed);
        self.waiting_bytes.store(pressure.waiting_bytes, Ordering::Relaxed);
        let is_failing = !state.failures.is_empty() || state.is_dropped;
        self.failing.store(is_failing, Ordering::Relaxed);
        self.coming_free.lock().set(if is_failing { 0 } else { pressure.waiting_bytes });
        if pressure.full <= 0.0 {
            self.owed_nanos.store(0, Ordering::Relaxed);
        }
    }

    /// Returns true if writers may go on without the lock of the keyspace's state.
    pub(crate) fn is_open(&self) -> bool {
        self.pressure() < 1.0
            && self.waiting.load(Ordering::Relaxed) < SEALED_MAX
            && !self.failing.load(Ordering::Relaxed)
    }

    /// Returns true if there are failed plans, or the keyspace was dropped.
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Returns how long the writer of `bytes` must sleep now, and why, if at all. One of many small
    /// writes sleeps for all ([`sleep_nanos`]). `active_bytes`
    /// returns the logical bytes in the active memtable.
    pub(crate) fn delay(
        &self,
        bytes: u64,
        memtable_bytes: u64,
        active_bytes: impl FnOnce() -> u64,
    ) -> Option<(Duration, HeldBackBy)> {
        let pressure = BackPressure {
            empty: self.pressure(),
            full: f64::from_bits(self.pressure_full.load(Ordering::Relaxed)),
            waiting_bytes: self.waiting_bytes.load(Ordering::Relaxed),
        };
        if pressure.is_none() {
            return None;
        }
        let bytes = self.unmeasured_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if bytes < MEASURE_BYTES {
            return None;
        }
        self.unmeasured_bytes.store(0, Ordering::Relaxed);
        let active_bytes = active_bytes();
        let memory = pressure.of_memory(active_bytes, memtable_bytes);
        let merges = pressure.of_merges(active_bytes, memtable_bytes);
        let by = if memory > merges { HeldBackBy::Memory } else { HeldBackBy::Merges };
        let nanos = bytes as f64 * delay_nanos_per_byte(memory.max(merges));
        let owed = self.owed_nanos.fetch_add(nanos as u64, Ordering::Relaxed) + nanos as u64;
        let sleep = sleep_nanos(owed)?;
        self.owed_nanos.store(0, Ordering::Relaxed);
        Some((Duration::from_nanos(sleep), by))
    }
}
