//! What keyed simulation costs, per policy and by the number of operations.
//!
//! Ten million operations should take less than ten seconds of a processor under every policy at
//! its default settings, and ten times the operations not much more than ten times as long: what
//! more there is comes from the levels that the tree has more. With values of 100 bytes they do.
//! With values of 1000 bytes, three or four make a block, and under a load of new keys some do not:
//! on a slow machine the slowest take 8 (`full`) to 15 seconds (`choose_best`), as there are many
//! times as many blocks and merges, and a block that is written takes some 440 nanoseconds with all
//! that was looked at to choose and build it; `constant`, which writes 25 times as many blocks,
//! takes 42.
//!
//! Seconds of the processor, not of the clock, so that what else runs does not count: one pass per
//! line, as no line takes less than tenths of a second. With arguments, only what has
//! all of them in its workload and policy is run, such as `uniform` and `mixed`.
#![allow(clippy::print_stdout, reason = "the bench prints a table")]

use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{KeyedWorkload, Simulation, simulate_keyed};
use lsmith_workload::{NoInputs, Workload};
use rustix::time::{ClockId, clock_gettime};
use std::sync::Arc;

/// Bytes of a memtable where nobody says otherwise, as `lsmith simulate` has it.
const MEMTABLE_BYTES: u64 = 4 << 20;

/// Workloads with so many operations.
const WORKLOADS: [&str; 4] = [
    "uniform(keys={half}, ops={half})",
    "update(keys={all}, ops={all})",
    "load(keys={all}, value=100B)",
    // Four to a block: what blocks cost shows.
    "load(keys={all}, value=1000B)",
];

fn cpu_seconds() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    println!("| workload | policy | seconds | blocks per MB |");
    println!("|---|---|---|---|");
    for workload in WORKLOADS {
        for millions in [1, 10] {
            let spec = workload
                .replace("{half}", &format!("{}k", millions * 500))
                .replace("{all}", &format!("{millions}M"));
            measure(&spec, |policy| {
                let line = format!("{spec} {policy}");
                wanted.iter().all(|part| line.contains(part))
            });
        }
    }
}

/// Prints a line for each policy that is wanted.
fn measure(spec: &str, is_wanted: impl Fn(&str) -> bool) {
    let registry = Registry::builtin();
    let names = registry.infos().iter().map(|info| info.name);
    let names: Vec<&str> = names.filter(|name| is_wanted(name)).collect();
    if names.is_empty() {
        return;
    }
    let spec = spec.parse().expect("a workload of this file");
    let input = Workload::from_spec(&spec, &NoInputs).expect("a workload of this file");
    let input = KeyedWorkload::new(input);
    for name in names {
        let policy = registry.build(name).expect("a known policy");
        let (seconds, simulation) = timed(&policy, &input);
        let cost = simulation.figures.write_cost_blocks;
        println!("| {spec} | {name} | {seconds:.2} | {cost:.0} |");
    }
}

fn timed(policy: &Arc<dyn MergePolicy>, input: &KeyedWorkload) -> (f64, Simulation) {
    let start = cpu_seconds();
    let simulation = simulate_keyed(policy, input, MEMTABLE_BYTES, &mut |_| {});
    (cpu_seconds() - start, simulation.expect("policies of this project are legal"))
}
