//! Times one evaluation of the LevelDB model, and a search for the best level sizes. With as many
//! keys as disks hold, the first should take microseconds, the second less than 0.1 seconds.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use lsmith_model::formulas::{LeveledModel, Sweep};
use lsmith_model::{KeyOrder, LEVELS_MAX, Popularity, Setting, optimal_sizes};
use std::hint::black_box;

const CASES: [(u64, f64); 5] = [
    (100_000_000, 0.0),
    (1_000_000_000, 0.0),
    (100_000_000, 0.99),
    (1_000_000_000, 0.99),
    (1_000_000_000, 1.6),
];

fn leveldb(keys: u64) -> LeveledModel {
    LeveledModel {
        memtable: 4194.304,
        level0_merged: 4.0,
        level0_kept: 1.5,
        sizes: LeveledModel::geometric(10_485.76, 10.0, keys as f64),
        sweep: Sweep::RoundRobin,
        false_overlap: 1.0,
    }
}

fn benchmarks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("leveldb");
    group.sample_size(20);
    for (keys, skew) in CASES {
        let popularity = Popularity::zipf(keys, skew).expect("there are keys");
        let setting = Setting {
            popularity: &popularity,
            memtable: 4194.304,
            item_bytes: 1000.0,
            requests: keys as f64,
            false_positives: 1.0,
            loaded: 0.0,
            order: KeyOrder::Random,
        };
        let model = leveldb(keys);
        let of = format!("{keys} keys, skew {skew}");
        group.bench_function(BenchmarkId::new("classes", &of), |bencher| {
            bencher.iter(|| Popularity::zipf(black_box(keys), black_box(skew)));
        });
        group.bench_function(BenchmarkId::new("evaluation", &of), |bencher| {
            bencher.iter(|| black_box(&model).evaluate(&setting).write_cost_user());
        });
        group.bench_function(BenchmarkId::new("best sizes", &of), |bencher| {
            bencher.iter(|| optimal_sizes(black_box(&model), &popularity, 0..=LEVELS_MAX));
        });
    }
    group.finish();
}

criterion_group!(benches, benchmarks);
criterion_main!(benches);
