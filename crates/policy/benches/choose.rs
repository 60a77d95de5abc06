//! What it costs to choose the window of a level that overlaps least, and how that grows with the
//! blocks of the level: `choose_best` is asked on the path of every flush.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_spec::random;
use lsmith_tree::{
    Key, KeyRange, Level, ProfilePoint, Run, RunId, Size, Slice, Table, TableId, Tree, TreeView,
};
use std::sync::Arc;

const BLOCK_BYTES: u64 = 4096;

/// Blocks of the tables of a level: one, so that each block is a slice of its own, or many.
#[derive(Clone, Copy)]
enum Tables {
    OfOneBlock,
    Large,
}

impl Tables {
    fn blocks(self) -> usize {
        match self {
            Tables::OfOneBlock => 1,
            Tables::Large => 16_384,
        }
    }
}

/// Ascending keys at random distances, the same each time; one more than there are blocks.
fn borders(blocks: usize, seed: u64) -> Vec<Key> {
    let mut state = seed;
    let mut keys: Vec<u64> = (0..=blocks).map(|_| random::next(&mut state) >> 1).collect();
    keys.sort_unstable();
    keys.dedup();
    keys.into_iter().map(|key| Key::copy_from_slice(&key.to_be_bytes())).collect()
}

fn table(id: TableId, borders: &[Key]) -> Slice {
    let (Some(start), Some(end)) = (borders.first(), borders.last()) else {
        unreachable!("at least a block")
    };
    let size = |blocks: usize| Size { bytes: blocks as u64 * BLOCK_BYTES, ..Size::default() };
    let inner = borders[1..borders.len() - 1].iter().enumerate();
    let point = |(index, key): (usize, &Key)| ProfilePoint {
        key: key.clone(),
        below: size(index + 1),
        after: None,
    };
    Slice::whole(Table {
        id,
        range: KeyRange::new(start.clone(), end.clone()),
        size: size(borders.len() - 1),
        profile: inner.map(point).collect(),
        ..Table::default()
    })
}

/// A run of so many blocks, or a few less where keys meet.
fn run(id: u64, blocks: usize, tables: Tables) -> Run {
    let borders = borders(blocks, id);
    let starts = (0..borders.len() - 1).step_by(tables.blocks());
    let slices = starts.map(|from| {
        let end = (from + tables.blocks()).min(borders.len() - 1);
        table(TableId((id << 32) + from as u64), &borders[from..=end])
    });
    Run::new(RunId(id), slices.collect())
}

/// A view in which level 1 with `blocks` blocks has one too many, above a level 2 of `below`.
fn view(blocks: usize, below: usize, tables: Tables) -> TreeView {
    let levels = [vec![], vec![run(1, blocks, tables)], vec![run(0, below, tables)]];
    let tree = Tree::from_levels(levels.into_iter().map(Level::new).collect());
    let allowed = tree.levels()[1].runs()[0].cell_count() - 1;
    let mut view = TreeView::new(tree, allowed * BLOCK_BYTES / 10);
    view.block_bytes = BLOCK_BYTES;
    view
}

fn policy() -> Arc<dyn MergePolicy> {
    let registry = Registry::builtin();
    registry.build("choose_best(ratio=10)").expect("a known policy")
}

fn choose(criterion: &mut Criterion, name: &str, below: usize, sizes: &[usize], tables: Tables) {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(20);
    let policy = policy();
    for &blocks in sizes {
        // A little less, that it be level 1 that overflows.
        let view = view(blocks, below * blocks * 99 / 100, tables);
        let plan = policy.next_merge(&view).expect("a block too many");
        assert_eq!((plan.inputs.len(), plan.inputs[0].run), (2, RunId(1)), "{plan}");
        group.throughput(Throughput::Elements(blocks as u64));
        let id = BenchmarkId::new(policy.spec().to_string(), blocks);
        group.bench_function(id, |bencher| bencher.iter(|| policy.next_merge(&view)));
    }
    group.finish();
}

const BLOCKS: [usize; 3] = [1000, 10_000, 100_000];

fn slices(criterion: &mut Criterion) {
    choose(criterion, "slices of a block", 1, &BLOCKS, Tables::OfOneBlock);
    choose(criterion, "slices over ten times as many", 10, &BLOCKS, Tables::OfOneBlock);
}

fn cells(criterion: &mut Criterion) {
    choose(criterion, "blocks of large tables", 1, &BLOCKS, Tables::Large);
    choose(criterion, "blocks over ten times as many", 10, &BLOCKS, Tables::Large);
}

criterion_group!(benches, slices, cells);
criterion_main!(benches);
