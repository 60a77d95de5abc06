//! What a million unit flushes cost, and whether the cost of a flush grows with their number: it
//! should grow with the runs or levels of the tree alone.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{Figures, UNIT_BYTES, simulate_unit};
use std::hint::black_box;
use std::sync::Arc;

fn run(policy: &Arc<dyn MergePolicy>, flushes: usize) -> Figures {
    let sizes = std::iter::repeat_n(UNIT_BYTES, black_box(flushes));
    let result = simulate_unit(policy, sizes, UNIT_BYTES, &mut |_| {});
    result.expect("policies of this project are legal").figures
}

fn benchmark(criterion: &mut Criterion, name: &str, specs: &[&str], flushes: &[usize]) {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10);
    for spec in specs {
        let policy = Registry::builtin().build(spec).expect("a known policy");
        for &flushes in flushes {
            group.throughput(Throughput::Elements(flushes as u64));
            let id = BenchmarkId::new(*spec, flushes);
            group.bench_function(id, |bencher| bencher.iter(|| run(&policy, flushes)));
        }
    }
    group.finish();
}

const STACKS: [&str; 4] =
    ["minlatency(k=10)", "binomial(k=10)", "bigtable(k=10)", "exploring(k=10)"];

fn a_million_flushes(criterion: &mut Criterion) {
    benchmark(criterion, "a million flushes", &STACKS, &[1_000_000]);
    benchmark(criterion, "a million flushes", &["leveled(ratio=4)"], &[1_000_000]);
}

fn cost_of_a_flush(criterion: &mut Criterion) {
    let flushes = [1000, 10_000, 100_000];
    benchmark(criterion, "flushes", &STACKS, &flushes);
    benchmark(criterion, "flushes", &["minlatency(k=2)", "binomial(k=2)"], &flushes);
    benchmark(criterion, "flushes", &["tiered(ratio=4)", "leveled(ratio=4)"], &flushes);
}

criterion_group!(benches, a_million_flushes, cost_of_a_flush);
criterion_main!(benches);
