//! Figures of small histories that can be computed by hand.

use crate::common::{ALL, unit};
use lsmith_policy::Registry;
use lsmith_sim::{
    Event, FigureCounter, Figures, FluidWorkload, KeyedSim, KeyedWorkload, Parts, ScanCost,
    UNIT_BYTES, simulate_fluid, simulate_keyed,
};
use lsmith_tree::{
    EntryKind, KeyRange, Outcome, Size, Slice, Table, TableId, Tree, TreeEdit, apply,
};
use lsmith_workload::{NoInputs, Workload};

/// Flushes 1 to 4 under tiered(ratio=2): 1 | 2 | 2 1 | 4, the last by two merges.
#[test]
fn a_cascade_pays_for_each_step_but_eagerly_only_for_the_last() {
    let Figures { parts, .. } = unit("tiered(ratio=2)", 4).figures;
    assert_eq!(
        parts,
        Parts {
            sealed: 4,
            flushes: 4,
            flush_bytes: 4 * UNIT_BYTES,
            flush_written_bytes: 2 * UNIT_BYTES,
            merges: 3,
            merge_memory_bytes: 2 * UNIT_BYTES,
            merge_read_bytes: 6 * UNIT_BYTES,
            merge_written_bytes: 8 * UNIT_BYTES,
            ..Parts::default()
        }
    );
    let figures = unit("tiered(ratio=2)", 4).figures;
    // Flushed: 1 + 1 + 1 + 1; merged: 2, 2, 4. Runs at rest that were new: 1, 2, 1, 4.
    assert_eq!(figures.write_cost_system, 12.0 / 4.0);
    assert_eq!(figures.write_cost_eager, 8.0 / 4.0);
    // Runs at rest: 1, 1, 2, 1.
    assert_eq!((figures.read_cost_mean, figures.runs_max), (5.0 / 4.0, 2));
    assert_eq!(figures.settled_runs_mean, 0.0);
    // The last merge; flushes 1 and 3 are not merged.
    assert_eq!((figures.merge_bytes_max, figures.flushes_unmerged_max), (4 * UNIT_BYTES, 1));
    // Of those, none or one in level 0.
    assert_eq!(figures.read_cost_mean_l0_one, 5.0 / 4.0);
    // At most: 1 of 1; 1 + 2 of 2; 2 + 1 of 3; 2 + 2 + 4 of 4. At rest all of it is live.
    assert_eq!((figures.space_cost_peak, figures.space_cost_mean), (2.0, 1.0));
}

/// Runs of more than half of the largest merge are counted apart.
#[test]
fn settled_runs_are_a_part_of_all_runs() {
    let largest = 3 * UNIT_BYTES + 1;
    let figures = unit(&format!("constant(k=1, largest={largest}B, eager=never)"), 6).figures;
    // Runs at rest, in units: 1; 2; 2 1; 2 2; 2 2 1; 2 2 2.
    assert_eq!((figures.read_cost_mean, figures.runs_max), (12.0 / 6.0, 3));
    assert_eq!(figures.settled_runs_mean, 9.0 / 6.0);
}

/// Costs are counted the same, however a memtable got into a merge.
#[test]
fn eager_merges_cost_what_others_cost() {
    for policy in [
        "bigtable(k=3",
        "constant(k=3",
        "exploring(k=3",
        "minlatency(k=3",
        "binomial(k=3",
        "tiered(ratio=3",
    ] {
        let [always, never, auto] = ["always", "never", "auto"].map(|eager| {
            let figures = unit(&format!("{policy}, eager={eager})"), 300).figures;
            [figures.write_cost_eager, figures.write_cost_system, figures.read_cost_mean]
        });
        assert_eq!(always, never, "{policy})");
        assert_eq!(auto, never, "{policy})");
    }
}

#[test]
fn level_0_counts_as_one_run_where_it_has_any() {
    let figures = unit("none", 9).figures;
    assert_eq!((figures.read_cost_mean, figures.read_cost_mean_l0_one), (5.0, 1.0));
    assert_eq!((figures.write_cost_eager, figures.write_cost_system), (1.0, 1.0));
    assert_eq!((figures.space_cost_peak, figures.space_cost_mean), (1.0, 1.0));
}

#[test]
fn no_policy_stores_less_than_what_is_live_nor_writes_less_than_it_flushes() {
    for spec in ALL {
        let figures = unit(spec, 100).figures;
        assert!(figures.write_cost_eager >= 1.0, "{spec}: {figures:?}");
        assert!(figures.write_cost_system >= figures.write_cost_eager, "{spec}: {figures:?}");
        assert!(figures.space_cost_mean >= 1.0, "{spec}: {figures:?}");
        assert!(figures.space_cost_peak >= figures.space_cost_mean, "{spec}: {figures:?}");
    }
}

/// A flush and half of the next one are obsolete: 3 memtables' worth of bytes for 2 live ones.
#[test]
fn space_is_sampled_at_rest_and_counts_memory_once() {
    let table = |id, bytes| {
        let size = Size { bytes, entries: bytes, tombstones: 0 };
        let range = KeyRange::new("a", "c");
        Slice::whole(Table { id: TableId(id), range, size, ..Table::default() })
    };
    let mut tree = Tree::new();
    let mut counter = FigureCounter::new();
    for (id, live_bytes) in [(0, 100), (1, 100), (2, 150)] {
        let seal = TreeEdit::seal(tree.next_run(), table(2 * id, 100));
        apply(&mut tree, &seal).expect("it fits");
        counter.sealed(live_bytes);
        if id == 2 {
            break;
        }
        let size = Size { bytes: 100, entries: 100, tombstones: 0 };
        let slices = vec![table(2 * id + 1, 100)];
        let outcome = Outcome { slices, from_memory: size, written: size, ..Outcome::default() };
        let flush = lsmith_tree::MergePlan::flush(&tree).expect("there is a memtable");
        let edit = TreeEdit::of_plan(&tree, &flush, outcome).expect("nothing is missing");
        counter.merge(&tree, &edit);
        apply(&mut tree, &edit).expect("it fits");
        counter.rest(&tree);
    }
    // The last memtable stays in memory.
    counter.rest(&tree);
    let figures = counter.figures();
    assert_eq!(figures.space_cost_peak, 2.0);
    assert_eq!(figures.space_cost_mean, (1.0 + 2.0 + 2.0) / 3.0);
}

#[test]
fn rests_without_live_entries_are_no_samples_of_space() {
    let tree: Tree = "tree\nL0 r0[t0:g..m 300B 3e]".parse().expect("a tree");
    let mut counter = FigureCounter::new();
    counter.sealed(0);
    counter.rest(&tree);
    counter.sealed(200);
    counter.rest(&tree);
    assert_eq!(counter.figures().space_cost_mean, 1.5);
}

#[test]
fn without_flushes_there_are_no_costs() {
    assert_eq!(FigureCounter::new().figures(), Figures::default());
}

/// A move is no write, and a tombstone dropped on its way out of memory is not written.
#[test]
fn moves_and_drops_are_kept_apart() {
    let mut tree: Tree =
        "tree\nL0 r1[t1:a..f 600B 6e] r0[t0:g..m 300B 3e]".parse().expect("a tree");
    let mut counter = FigureCounter::new();
    let mut carry_out = |tree: &mut Tree, plan: &str, outcome| {
        let plan = plan.parse().expect("a plan");
        let edit = TreeEdit::of_plan(tree, &plan, outcome).expect("nothing is missing");
        counter.merge(tree, &edit);
        apply(tree, &edit).expect("it fits");
    };
    let slices = tree.disk_runs().flat_map(|run| run.slices().to_vec()).collect();
    let moved = Outcome { slices, ..Outcome::default() };
    carry_out(&mut tree, "move r1 r0 over .. into new run at L1", moved);

    let size = Size { bytes: 100, entries: 2, tombstones: 1 };
    let table = |id, size| {
        let range = KeyRange::new("a", "c");
        Slice::whole(Table { id: TableId(id), range, size, ..Table::default() })
    };
    let seal = TreeEdit::seal(tree.next_run(), table(7, size));
    apply(&mut tree, &seal).expect("it fits");
    let written = Size { bytes: 80, entries: 1, tombstones: 0 };
    let slices = vec![table(8, written)];
    let outcome =
        Outcome { slices, from_memory: size, written, entries_dropped: 1, ..Outcome::default() };
    carry_out(&mut tree, "merge r3 over .. into new run at L0", outcome);
    counter.rest(&tree);

    let figures = counter.figures();
    let expected = Parts {
        flushes: 1,
        flush_bytes: 100,
        flush_written_bytes: 80,
        moves: 1,
        moved_bytes: 900,
        ..Parts::default()
    };
    assert_eq!(figures.parts, expected);
    assert_eq!((figures.write_cost_eager, figures.write_cost_system), (0.8, 0.8));
}

/// As many flushes are as many writes, whether memory leaves as a whole or window by window.
#[test]
fn flushes_are_memtables_of_logical_bytes_under_every_policy() {
    const MEMTABLE_BYTES: u64 = 64 << 10;
    let load = "load(keys=40k, value=100B, flushes=25)";
    let churn = "churn(keys=300, ops=90k, value=100B, deletes=0.2, flushes=25)";
    for spec in [load, churn] {
        let workload = Workload::from_spec(&spec.parse().unwrap(), &NoInputs).unwrap();
        let fluid = FluidWorkload::new(&workload).unwrap();
        let keyed = KeyedWorkload::new(workload);
        let mut requested = Vec::new();
        for policy in ["tiered", "full(ratio=3)", "rr", "choose_best(ratio=32)", "mixed(ratio=3)"] {
            let policy = Registry::builtin().build(policy).unwrap();
            for is_keyed in [true, false] {
                let mut seen = 0;
                let mut observe =
                    |event: Event<'_>| seen += u64::from(matches!(event, Event::Flushed { .. }));
                let simulated = if is_keyed {
                    simulate_keyed(&policy, &keyed, MEMTABLE_BYTES, &mut observe)
                } else {
                    simulate_fluid(&policy, &fluid, MEMTABLE_BYTES, &mut observe)
                };
                let parts = simulated.unwrap().figures.parts;
                let name = format!("{spec}, {}, keyed {is_keyed}", policy.spec());
                assert_eq!((parts.flushes, seen), (25, 25), "{name}");
                // The keys of the other workload all fit into memory.
                if spec == load && policy.needs().windows {
                    assert!(parts.merges > 20 && parts.sealed >= 25, "{name}: {parts:?}");
                }
                requested.push((parts.requested_bytes, name));
            }
        }
        let (first, _) = requested[0];
        assert!(first >= 25 * MEMTABLE_BYTES);
        for (bytes, name) in &requested {
            // A memtable may be sealed at four times its bytes if keys are overwritten.
            let full = first / 25;
            assert!(bytes.abs_diff(first) <= full, "{name}: {bytes} for {first}");
        }
    }
}

/// Entries of 100 bytes lie in blocks of 40. Each memtable is one block of new keys.
#[test]
fn a_range_read_looks_at_a_block_of_each_run_and_at_what_it_passes() {
    let policy = Registry::builtin().build("none").unwrap();
    for (items, blocks) in [
        // A quarter of one block, then an eighth of two.
        (10.0, [1.0 + 0.25, 2.0 + 0.25]),
        // All of one block and no more, then five eighths of two.
        (50.0, [1.0 + 1.0, 2.0 + 1.25]),
    ] {
        let mut sim = KeyedSim::new(&policy, 4000).with_scan_items(items);
        assert_eq!(sim.figures().scan_cost_mean.blocks, None);
        for rank in 0..80 {
            sim.write(EntryKind::Put, rank, 100);
            if sim.is_full() {
                sim.set_live_entries(u64::from(rank) + 1);
                sim.flush((u64::from(rank) + 1) * 100, &mut |_| {}).unwrap();
            }
        }
        let mean = f64::midpoint(blocks[0], blocks[1]);
        let expected = ScanCost { runs: 1.5, blocks: Some(mean) };
        assert_eq!(sim.figures().scan_cost_mean, expected, "{items}");
        assert_eq!(sim.figures().scan_cost_measured, None);
    }
}

/// Runs that end before the start are not looked at, and blocks count up to the last entry.
#[test]
fn scans_count_runs_and_blocks() {
    let policy = Registry::builtin().build("none").unwrap();
    let mut sim = KeyedSim::new(&policy, 8000).with_scans();
    // Runs of keys 0 to 79 and 100 to 179, with 40 to a block; in memory keys 200 to 209.
    for rank in (0..80).chain(100..180).chain(200..210) {
        sim.write(EntryKind::Put, rank, 100);
        if sim.is_full() {
            sim.flush(100, &mut |_| {}).unwrap();
        }
    }
    let mut total = (0.0, 0.0);
    let mut scans = 0.0;
    for (from, items, runs, blocks) in [
        // The second run stands on its first entry.
        (0, 40, 2, 2),
        (0, 41, 2, 3),
        // Its last entry is in the first run's second block.
        (40, 40, 2, 2),
        (79, 2, 2, 2),
        // The first run ends before the start.
        (80, 40, 1, 1),
        (139, 2, 1, 2),
        // Memory only.
        (180, 5, 0, 0),
        // There are not so many.
        (0, 1000, 2, 4),
    ] {
        sim.scan(from, items);
        let mean = sim.figures().scan_cost_measured.unwrap();
        scans += 1.0;
        let now = (mean.runs * scans, mean.blocks.unwrap() * scans);
        let found = (now.0 - total.0, now.1 - total.1);
        assert!((found.0 - f64::from(runs)).abs() < 1e-9, "{from} {items}: {found:?}");
        assert!((found.1 - f64::from(blocks)).abs() < 1e-9, "{from} {items}: {found:?}");
        total = now;
    }
}
