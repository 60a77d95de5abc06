//! Runs on the real store that time every merge.

use crate::store::{Merge, Stopwatch, builder, check_plans};
use crate::unsynced::Unsynced;
use anyhow::Context;
use lsmith::{DEFAULT_KEYSPACE, Observer};
use lsmith_lab::Scratch;
use lsmith_policy::PolicyChoice;
use lsmith_workload::{NoInputs, Workload};
use std::sync::Arc;

/// The least logical bytes of an entry without its value: `user`, one digit and 8.
const RECORD_BYTES_MIN: u64 = 13;

/// The scale of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) flushes: u64,
    /// Logical bytes of a memtable.
    pub(super) memtable_bytes: u64,
    /// Bytes of a value.
    pub(super) value_bytes: u64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(super) struct StoreRun {
    /// Physical bytes of all tables written, per byte written by flushes.
    pub(super) write_cost: f64,
    /// The same so far, after each flush, when merges have come to rest.
    pub(super) write_costs: Vec<f64>,
    /// The merges in order, without pure flushes and moves.
    pub(super) merges: Vec<Merge>,
}

/// Returns the spec `name(parameters)` for a store that writes each flush before it merges it, as
/// in the paper. Policies of levels always do.
pub(super) fn flushed_first(name: &str, parameters: &str) -> String {
    match name {
        "leveled" => format!("{name}({parameters})"),
        _ => format!("{name}({parameters}, eager=never)"),
    }
}

impl Scale {
    /// Returns a load of new keys in random order, more than enough to fill all memtables.
    ///
    /// # Errors
    /// Fails if the scale is too large for a workload.
    pub(super) fn workload(&self) -> anyhow::Result<Workload> {
        let value_bytes = self.value_bytes;
        let records = self.memtable_bytes / (value_bytes + RECORD_BYTES_MIN) + 1;
        let keys = self.flushes * records;
        let flushes = self.flushes;
        let spec = format!("load(keys={keys}, value={value_bytes}B, flushes={flushes})");
        Ok(Workload::from_spec(&spec.parse()?, &NoInputs)?)
    }

    /// Returns the note on this scale.
    pub(super) fn note(&self) -> String {
        format!(
            "Real store, in lockstep: {} flushes of memtables of {} KiB with values of {} B, new \
             keys in random order, merged as soon as the policy says so and on the thread that \
             writes. Files are real but never synced. The paper had 24,000 flushes of 4 MB with \
             records of 1 kB.",
            self.flushes,
            self.memtable_bytes >> 10,
            self.value_bytes
        )
    }

    /// Plays `workload` on a new store under `policy`. Calls `on_flush` after each flush.
    ///
    /// # Errors
    /// Fails if the store fails or the policy breaks a rule.
    pub(super) fn run(
        &self,
        policy: impl Into<PolicyChoice>,
        workload: &Workload,
        on_flush: &mut dyn FnMut(),
    ) -> anyhow::Result<StoreRun> {
        let dir = Scratch::new("lsmith-reproduce-")?;
        let stopwatch = Arc::new(Stopwatch::default());
        let observer: Arc<dyn Observer> = Arc::<Stopwatch>::clone(&stopwatch);
        let store = builder(dir.path(), Unsynced::default())
            .policy(policy)
            .memtable_bytes(self.memtable_bytes)
            .observer(observer)
            .open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let mut key = Vec::new();
        let mut value = Vec::new();
        let mut flushes = 0;
        for (index, op) in (0..).zip(workload.ops()) {
            let op = op?;
            workload.key(op.item, &mut key);
            value.resize(op.value_bytes as usize, 0);
            workload.value(op.item, index, &mut value);
            keyspace.put(&key, &value)?;
            while flushes < stopwatch.sealed() {
                flushes += 1;
                on_flush();
            }
            if flushes >= self.flushes {
                break;
            }
        }
        store.settle().context("merges did not come to rest")?;
        check_plans(&keyspace)?;
        let stats = store.stats();
        let mut times = stopwatch.times();
        times.rest();
        let written = stats.flush_bytes + stats.merge_bytes_written;
        Ok(StoreRun {
            write_cost: written as f64 / stats.flush_bytes as f64,
            write_costs: std::mem::take(&mut times.write_costs),
            merges: std::mem::take(&mut times.merges),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_policy::Registry;
    use lsmith_sim::{KeyedWorkload, simulate_keyed};

    /// The clocks time every merge and nothing else.
    #[test]
    fn every_merge_is_timed() {
        let scale = Scale { flushes: 40, memtable_bytes: 8 << 10, value_bytes: 100 };
        for policy in ["minlatency(k=3, eager=never)", "leveled(ratio=4)"] {
            let mut flushes = 0;
            let run = scale.run(policy, &scale.workload().unwrap(), &mut || flushes += 1).unwrap();
            assert_eq!(flushes, 40, "{policy}");

            let built = Registry::builtin().build(policy).unwrap();
            let workload = KeyedWorkload::new(scale.workload().unwrap());
            let simulated = simulate_keyed(&built, &workload, scale.memtable_bytes, &mut |_| {});
            let figures = simulated.unwrap().figures;
            assert_eq!(run.merges.len() as u64, figures.parts.merges, "{policy}");
            let error = run.write_cost / figures.write_cost_system - 1.0;
            assert!(error.abs() < 0.05, "{policy}: {error}");
            let takes = |merge: &Merge| merge.bytes_written > 0 && merge.cpu_seconds > 0.0;
            assert!(run.merges.iter().all(takes), "{policy}");
        }
    }
}
