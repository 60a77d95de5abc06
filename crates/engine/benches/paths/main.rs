//! What the hot paths of the store take on the clock: puts one by one and a hundred a batch, gets
//! of keys that are there and that are not, a walk over four runs, and the merge of these.
//!
//! `once get 10000` instead takes one of them so often and nothing else, for tools that count
//! instructions; with 0 it only makes ready. `cargo xtask instructions` calls it.

#[path = "../shared/keys.rs"]
mod keys;
mod work;

use criterion::{BatchSize, Criterion, Throughput, criterion_group};
use work::{KEYS, PATHS, Work};

fn paths(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("paths");
    group.sample_size(10).throughput(Throughput::Elements(KEYS));
    for path in PATHS {
        let work = || Work::new(path).expect("memory does not fail");
        group.bench_function(path, |bencher| {
            let run = |work: Work| (work.run(KEYS).expect("memory does not fail"), work);
            bencher.iter_batched(work, run, BatchSize::PerIteration);
        });
    }
    group.finish();
}

fn once(path: &str, ops: u64) -> lsmith::Result<()> {
    let work = Work::new(path)?;
    if ops > 0 {
        std::hint::black_box(work.run(ops)?);
    }
    // What comes after is not part of the path.
    std::mem::forget(work);
    Ok(())
}

criterion_group!(benches, paths);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, path, ops, ..] = &arguments[..]
        && word == "once"
    {
        let ops = ops.parse().expect("once PATH COUNT");
        return once(path, ops).expect("memory does not fail");
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
