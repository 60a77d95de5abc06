//! What merges and lookups miss in caches of blocks.

use lsmith_policy::Registry;
use lsmith_sim::{BlockSim, BlockSizes, BlocksUncached};
use lsmith_tree::{Counters, EntryKind, Tree};
use lsmith_workload::{NoInputs, OpKind, Workload};

const POLICIES: &[&str] = &[
    "full(ratio=4)",
    "full(ratio=4, reuse=false)",
    "rr(ratio=4, rate=0.2)",
    "choose_best(ratio=4, rate=0.2)",
    "choose_best(ratio=4, rate=0.1, reuse=false)",
    "test_mixed(ratio=4, rate=0.2)",
    "mixed(ratio=4, rate=0.2, tau=0.5/0.3, beta=true)",
];

const WORKLOADS: &[&str] = &[
    "uniform(domain=4k, keys=1500, ops=6k, deletes=0.5, weigh=records)",
    "normal(domain=100k, omega=200, keys=2k, ops=5k, deletes=0.4, weigh=records)",
    "tpc(warehouses=3, districts=2, keys=1k, ops=5k, weigh=records)",
];

/// More blocks than any simulation here writes.
const ALL: u64 = 1 << 20;

/// Plays `workload` with caches of these sizes, and calls `look` after each request.
fn play(
    (policy, workload, per_block): (&str, &str, usize),
    caches: &[u64],
    mut look: impl FnMut(&BlockSim),
) -> BlockSim {
    let built = Registry::builtin().build(policy).expect(policy);
    let sizes = BlockSizes { memory_blocks: 20, per_block, entry_bytes: 100 };
    let mut sim = BlockSim::new(&built, sizes).with_caches(caches);
    let spec = workload.parse().expect(workload);
    for op in Workload::from_spec(&spec, &NoInputs).expect(workload).ops() {
        let op = op.expect("no inputs that could fail");
        let kind = if op.kind == OpKind::Insert { EntryKind::Insert } else { EntryKind::Remove };
        let key = u32::try_from(op.item).expect("keys are 4 bytes");
        sim.write(kind, key).expect(policy);
        look(&sim);
    }
    sim
}

fn sum_of_levels(tree: &Tree, count: impl Fn(&Counters) -> u64) -> u64 {
    tree.levels().iter().map(|level| count(level.counters())).sum()
}

fn blocks_held(tree: &Tree) -> u64 {
    tree.disk_runs().map(|run| run.cell_count()).sum()
}

/// A cache of nothing misses each block that merges read. One that holds everything misses none,
/// because blocks enter it when they are written. A larger one never misses more.
#[test]
fn merges_read_what_they_count_and_miss_nothing_that_was_kept() {
    for per_block in [1, 9] {
        for workload in WORKLOADS {
            for policy in POLICIES {
                let caches = [0, 1, 10, 50, 200, 1000, ALL];
                let sim = play((policy, workload, per_block), &caches, |_| {});
                let message = format!("{policy}, {per_block} per block, {workload}");
                let missed: Vec<u64> = sim.uncached().iter().map(|missed| missed.merges).collect();
                let read = sum_of_levels(sim.tree(), |counters| counters.blocks_in);
                assert!(read > 200, "{message}: {read}");
                assert_eq!(missed[0], read, "{message}");
                assert!(missed.is_sorted_by(|less, more| less >= more), "{message}: {missed:?}");
                assert_eq!(missed.last(), Some(&0), "{message}");
            }
        }
    }
}

/// Blocks that a merge has replaced leave the cache. So it misses nothing if there is room for all
/// blocks of the tree and for the largest output.
#[test]
fn replaced_blocks_take_no_room() {
    for policy in POLICIES {
        let setting = (*policy, WORKLOADS[0], 4);
        let mut held_max = 0;
        let mut written = 0;
        let mut written_max = 0;
        play(setting, &[], |sim| {
            held_max = held_max.max(blocks_held(sim.tree()));
            let now = sum_of_levels(sim.tree(), |counters| counters.blocks_written);
            written_max = written_max.max(now - written);
            written = now;
        });
        let sim = play(setting, &[held_max + written_max], |_| {});
        assert_eq!(
            sim.uncached(),
            [BlocksUncached::default()],
            "{policy}: {held_max} {written_max}"
        );
        assert!(written > 3 * (held_max + written_max), "{policy}: blocks come and go");
    }
}

/// A lookup reads one block of each level down to its key. Here each key is inserted once.
#[test]
fn lookups_read_a_block_of_each_level_down_to_that_of_their_key() {
    let workload = "uniform(domain=100k, keys=8k, deletes=0, weigh=records)";
    for policy in POLICIES {
        let mut sim = play((policy, workload, 9), &[0, ALL], |_| {});
        let before = sim.uncached();
        let keys = sim.live();
        keys.iter().for_each(|key| sim.lookup(*key));
        let read = sim.uncached()[0].since(before[0]);
        let runs = sim.tree().disk_runs().enumerate();
        let blocks: u64 = runs.map(|(depth, run)| (depth as u64 + 1) * run.size().entries).sum();
        assert_eq!(
            read,
            BlocksUncached { lookups: blocks, ..BlocksUncached::default() },
            "{policy}"
        );
        assert!(blocks > keys.len() as u64 && sim.tree().disk_run_count() > 1, "{policy}");
        // A range read of everything stands in every block.
        let before = sim.uncached()[0];
        sim.scan(0, u32::MAX);
        let scans = sim.uncached()[0].since(before);
        assert_eq!(scans, BlocksUncached { scans: blocks_held(sim.tree()), ..Default::default() });
        // An absent key costs a block of every level.
        let absent = (0..100_000).find(|key| !keys.contains(key)).unwrap();
        let before = sim.uncached()[0];
        sim.lookup(absent);
        let levels = sim.tree().disk_run_count() as u64;
        assert_eq!(sim.uncached()[0].since(before).lookups, levels, "{policy}");
        assert_eq!(sim.uncached()[1], BlocksUncached::default(), "{policy}");
    }
}
