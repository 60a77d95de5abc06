//! Free runs in simulated time.

use crate::machine::spec_of_machine;
use crate::report::{Costs, Moment};
use crate::run::{Options, per_second};
use lsmith_policy::MergePolicy;
use lsmith_sim::{FreeOptions, KeyedWorkload, Machine, PutPercentiles, SimError, simulate_free};
use serde::Serialize;
use std::sync::Arc;

/// A free run in simulated time: what a run of the same workload on the store is expected to take
/// on a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimulatedTime {
    /// The spec of the machine.
    pub machine: String,
    /// Threads that merge.
    pub threads: usize,
    /// The costs, sampled as in a free run on the store.
    pub costs: Costs,
    /// Operations.
    pub ops: u64,
    /// Seconds, up to the end of the last merge.
    pub seconds: f64,
    /// CPU seconds of the client and of the threads that merge.
    pub cpu_seconds: f64,
    /// CPU seconds of the threads that merge.
    pub merge_cpu_seconds: f64,
    /// Operations per second.
    pub ops_per_second: f64,
    /// Seconds for which writers were held back.
    pub held_back_seconds: f64,
    /// Seconds of the longest pause of a write.
    pub pause_longest: f64,
    /// Percentiles of the time of a write. `None` if the machine does not say how long a write
    /// takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put_nanos: Option<PutNanos>,
    /// How far the run had come at moments that are evenly spread over its operations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<Moment>,
}

/// Percentiles of the time of a write in simulated time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PutNanos {
    /// The median.
    pub p50: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p999: u64,
}

impl PutNanos {
    fn of(PutPercentiles { p50, p99, p999 }: PutPercentiles) -> PutNanos {
        PutNanos { p50, p99, p999 }
    }
}

/// Simulates a free run of `workload` under `policy` on `machine`, with the memtables, the threads
/// and the limit of time of `options`.
///
/// # Errors
/// Fails if the policy breaks a rule, or the workload has a damaged line.
pub fn simulate_time(
    policy: &Arc<dyn MergePolicy>,
    workload: &KeyedWorkload,
    machine: &Machine,
    options: &Options,
) -> Result<SimulatedTime, SimError> {
    let free = FreeOptions {
        machine: *machine,
        threads: options.threads,
        memtable_bytes: options.memtable_bytes,
        seconds_max: options.duration.map_or(f64::INFINITY, |duration| duration.as_secs_f64()),
    };
    let run = simulate_free(policy, workload, &free, &mut |_| {})?;
    Ok(SimulatedTime {
        machine: spec_of_machine(machine).to_string(),
        threads: options.threads,
        costs: Costs::of_simulation(&run.simulation.figures),
        ops: run.ops,
        seconds: run.seconds,
        cpu_seconds: run.cpu_seconds,
        merge_cpu_seconds: run.merge_cpu_seconds,
        ops_per_second: per_second(run.ops, run.seconds),
        held_back_seconds: run.held_back_seconds,
        pause_longest: run.pause_longest,
        put_nanos: run.puts.map(PutNanos::of),
        course: Moment::all(&run.course),
    })
}
