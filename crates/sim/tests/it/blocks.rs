//! Partial and block-preserving merges in blocks: what is kept, what is promised, and the numbers
//! of the paper.

use lsmith_policy::Registry;
use lsmith_sim::{BlockSim, BlockSizes};
use lsmith_tree::{EntryKind, LevelId, Tree};
use lsmith_workload::{NoInputs, OpKind, Workload};
use std::collections::BTreeSet;

const POLICIES: &[&str] = &[
    "full(ratio=4)",
    "full(ratio=4, reuse=false)",
    "rr(ratio=4, rate=0.2)",
    "choose_best(ratio=4, rate=0.2)",
    "choose_best(ratio=4, rate=0.1, reuse=false)",
    "test_mixed(ratio=4, rate=0.2)",
    "mixed(ratio=4, rate=0.2)",
    "mixed(ratio=4, rate=0.2, search=golden)",
    "mixed(ratio=4, rate=0.2, tau=0.5/0.3, beta=true)",
];

fn requests(spec: &str) -> (u64, Vec<(EntryKind, u32)>) {
    let spec = spec.parse().expect(spec);
    let workload = Workload::from_spec(&spec, &NoInputs).expect("a workload");
    let ops = workload.ops().map(|op| {
        let op = op.expect("no inputs that could fail");
        let kind = match op.kind {
            OpKind::Insert => EntryKind::Insert,
            OpKind::Remove => EntryKind::Remove,
            other => panic!("{other:?} is neither insert nor remove"),
        };
        (kind, u32::try_from(op.item).expect("keys are 4 bytes"))
    });
    (workload.load_ops(), ops.collect())
}

/// Every pair of neighbouring blocks holds more than fits into one, and no level wastes more than
/// a fifth of its room.
fn check_waste(tree: &Tree, sizes: BlockSizes, message: &str) {
    let full = sizes.per_block as u64;
    for run in tree.disk_runs() {
        let blocks: Vec<u64> = run.cells().map(|cell| cell.size.entries).collect();
        assert!(blocks.iter().all(|block| (1..=full).contains(block)), "{message}: {blocks:?}");
        let thin = blocks.windows(2).find(|pair| pair[0] + pair[1] <= full);
        assert_eq!(thin, None, "{message}: two blocks would fit into one");
        let room = blocks.len() as u64 * full;
        let empty = room - blocks.iter().sum::<u64>();
        assert!(blocks.len() < 2 || empty * 5 <= room, "{message}: {empty} of {room} empty");
    }
}

#[test]
fn nothing_is_lost_and_waste_is_bounded_under_every_policy() {
    for per_block in [1, 4, 9] {
        for workload in [
            "uniform(domain=4k, keys=1500, ops=6k, deletes=0.5, weigh=records)",
            "normal(domain=100k, omega=200, keys=2k, ops=5k, deletes=0.4, weigh=records)",
            "tpc(warehouses=3, districts=2, keys=1k, ops=5k, weigh=records)",
        ] {
            let (_, requests) = requests(workload);
            for policy in POLICIES {
                let sizes = BlockSizes { memory_blocks: 20, per_block, entry_bytes: 100 };
                let built = Registry::builtin().build(policy).expect(policy);
                let mut sim = BlockSim::new(&built, sizes);
                let mut model = BTreeSet::new();
                let message = format!("{policy}, {per_block} per block, {workload}");
                for (index, &(kind, key)) in requests.iter().enumerate() {
                    let changed = match kind {
                        EntryKind::Insert => model.insert(key),
                        _ => model.remove(&key),
                    };
                    assert!(changed, "the workload keeps its promises");
                    sim.write(kind, key).expect(&message);
                    if index % 500 == 0 {
                        check_waste(sim.tree(), sizes, &message);
                    }
                }
                let model: Vec<u32> = model.into_iter().collect();
                assert_eq!(sim.live(), model, "{message}");
                lsmith_tree::check_tree(sim.tree()).expect(&message);
            }
        }
    }
}

/// Theorem 2: no merge of `choose_best` writes more than rate * (1/ratio + 1) * K_i blocks into
/// level i, plus the blocks that are joined at its edges.
#[test]
fn every_merge_of_the_best_window_is_bounded() {
    let sizes = BlockSizes { memory_blocks: 40, per_block: 8, entry_bytes: 100 };
    // Keys that make every window overlap most of the level below, and ordinary keys.
    for workload in [
        "uniform(domain=20k, keys=8k, ops=20k, deletes=0.5, weigh=records)",
        "normal(domain=1M, sigma=0.0005, omega=100, keys=6k, ops=20k, weigh=records)",
    ] {
        let (_, requests) = requests(workload);
        let policy = Registry::builtin().build("choose_best(ratio=4, rate=0.2)");
        let policy = policy.expect("a policy");
        let mut sim = BlockSim::new(&policy, sizes);
        let mut before: Vec<(u64, u64)> = Vec::new();
        for &(kind, key) in &requests {
            sim.write(kind, key).expect("legal plans");
            let levels = sim.tree().levels().iter().map(|level| level.counters());
            let now: Vec<(u64, u64)> =
                levels.map(|c| (c.merges + c.flushes, c.blocks_written)).collect();
            for (level, &(merges, written)) in now.iter().enumerate() {
                let (merges_before, written_before) = before.get(level).copied().unwrap_or((0, 0));
                let capacity = 40.0 * 4_f64.powi(level as i32);
                let bound = 0.2 * (1.0 / 4.0 + 1.0) * capacity + 1.0;
                // A window of whole blocks can be a block more than its part below, and a border
                // of the window can lie inside a block: one each.
                let allowed = (merges - merges_before) as f64 * (bound + 2.0);
                let written = (written - written_before) as f64;
                let compacted = sim.tree().levels()[level].counters().compactions > 0;
                assert!(written <= allowed || compacted, "level {level}: {written} > {allowed}");
            }
            before = now;
        }
    }
}

/// Figure 2a of the paper at 20 MB, as an independent simulation has it: blocks written per
/// megabyte of requests in steady state.
#[test]
fn the_costs_of_figure_2a_at_20_megabytes() {
    let (load, requests) =
        requests("uniform(keys=192k, ops=900k, deletes=0.5, value=100B, weigh=records)");
    let sizes = BlockSizes { memory_blocks: 250, per_block: 39, entry_bytes: 104 };
    for (policy, expected) in [
        ("full", 1838.0),
        ("rr(rate=0.05)", 1525.0),
        ("choose_best(rate=0.05)", 1550.0),
        ("test_mixed(rate=0.05)", 1235.0),
    ] {
        let policy = Registry::builtin().build(policy).expect(policy);
        let mut sim = BlockSim::new(&policy, sizes);
        for (index, &(kind, key)) in requests.iter().enumerate() {
            if index as u64 == load + 300_000 {
                sim.restart();
            }
            sim.write(kind, key).expect("legal plans");
        }
        let found = sim.figures().write_cost_blocks;
        let off = (found / expected - 1.0).abs();
        assert!(off < 0.05, "{}: {found:.0} blocks per MB, {expected} expected", policy.spec());
    }
}

/// With one level between memory and the bottom, the policy learns the decision for the bottom and
/// notes it in the tree.
#[test]
fn mixed_learns_to_empty_the_level_above_a_small_bottom() {
    let (_, requests) =
        requests("uniform(keys=192k, ops=1M, deletes=0.5, value=100B, weigh=records)");
    let sizes = BlockSizes { memory_blocks: 250, per_block: 39, entry_bytes: 104 };
    let policy = Registry::builtin().build("mixed(rate=0.05)").expect("a policy");
    let mut sim = BlockSim::new(&policy, sizes);
    for &(kind, key) in &requests {
        sim.write(kind, key).expect("legal plans");
    }
    let memo = sim.tree().memo();
    assert_eq!((memo.text("learn"), memo.text("beta")), (Some("done"), Some("true")), "{memo}");
    assert_eq!(sim.tree().runs_at(LevelId::Disk(0)).len(), 0);
}
