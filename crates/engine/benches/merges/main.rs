//! What a merge writes per second of CPU: four runs of interleaved keys become one, from and to
//! files that the page cache holds, and files in memory.
//!
//! The merge is carried out by the calling thread, and it is the CPU time of that thread that is
//! measured, in user and system: it holds on a busy machine, within what others do to the caches.
//!
//! `once files 100 5` instead merges values of 100 bytes five times, says how many bytes a second
//! that came to each time, and does nothing else, for profilers.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "benches time the store")]
#![allow(clippy::print_stdout, reason = "`once` prints what it measured")]

mod cpu;
#[path = "../shared/keys.rs"]
mod keys;
mod runs;

use cpu::{CpuTime, thread_cpu};
use criterion::{BatchSize, Criterion, Throughput, criterion_group};
use runs::{Files, Runs};

/// Bytes of values: entries of 116 bytes, and of a little over 1 KB.
const VALUE_BYTES: [usize; 2] = [100, 1000];

fn merges(criterion: &mut Criterion<CpuTime>) {
    for files in [Files::Real, Files::Memory] {
        let mut group = criterion.benchmark_group(format!("merge/{}", files.name()));
        group.sample_size(10);
        for value_bytes in VALUE_BYTES {
            let runs = Runs::new(files, value_bytes).expect("there is room");
            group.throughput(Throughput::Bytes(runs.bytes()));
            group.bench_function(format!("{value_bytes}"), |bencher| {
                let open = || runs.open().expect("there is room");
                bencher.iter_batched(
                    open,
                    |open| (open.merge().expect("there is room"), open),
                    BatchSize::PerIteration,
                );
            });
        }
        group.finish();
    }
}

fn once(files: &str, value_bytes: &str, times: &str) -> lsmith::Result<()> {
    let files = Files::named(files).expect("`files` or `memory`");
    let runs = Runs::new(files, value_bytes.parse().expect("a number of bytes"))?;
    for _ in 0..times.parse().expect("a count") {
        let open = runs.open()?;
        let start = thread_cpu();
        open.merge()?;
        let took = thread_cpu() - start;
        let rate = runs.bytes() as f64 / took.as_secs_f64();
        eprintln!("{:.0} MB/s of CPU, {took:.0?}", rate / 1e6);
    }
    Ok(())
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime);
    targets = merges
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, files, value_bytes, times, ..] = &arguments[..]
        && word == "once"
    {
        return once(files, value_bytes, times).expect("there is room");
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
