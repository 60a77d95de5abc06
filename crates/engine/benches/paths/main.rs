//! What the hot paths of the store take on the clock: puts one by one and a hundred a batch, gets
//! of keys that are there and that are not, a walk over four runs, and the merge of these.

mod work;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
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

criterion_group!(benches, paths);
criterion_main!(benches);
