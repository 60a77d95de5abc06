//! Outputs are cut at keys and at the borders of another run, whatever tables hold.

use crate::fluid::workload;
use lsmith_policy::{MergePolicy, Shape};
use lsmith_sim::{FluidWorkload, KeyedWorkload, UNIT_BYTES, rank_key, simulate_fluid};
use lsmith_sim::{simulate_keyed, simulate_unit};
use lsmith_spec::Spec;
use lsmith_tree::{Cuts, Key, LevelId, MergePlan, Overlap, Place, Reason, Tree, TreeView};
use std::sync::Arc;

/// Merges every two runs of level 0 into a run of level 1, once into level 2, with cuts.
#[derive(Debug)]
struct Cutting {
    key: Key,
}

/// Bytes of level 2 that a table of level 1 may overlap.
const OVERLAP_BYTES: u64 = 10_000;

impl MergePolicy for Cutting {
    fn spec(&self) -> Spec {
        Spec::bare("cutting")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let level0 = view.tree.runs_at(LevelId::Disk(0));
        let level1 = view.tree.runs_at(LevelId::Disk(1));
        let level2 = view.tree.runs_at(LevelId::Disk(2)).first();
        if level0.len() < 2 {
            return None;
        }
        let runs = level0.iter().chain(level1).map(|run| run.id());
        let place = Place::NewRun(if level2.is_some() { 1 } else { 2 });
        let plan = MergePlan::merge(runs, place, Reason::new("to cut", [0; 3]));
        let overlap = level2.map(|run| Overlap { run: run.id(), bytes: OVERLAP_BYTES });
        let keys = vec![self.key.clone()];
        Some(MergePlan { cut_bytes: Some(3000), cuts: Cuts { keys, overlap }, ..plan })
    }

    fn shape(&self) -> Shape {
        Shape::Leveled { ratio: 10.0, level0_runs: 1 }
    }
}

/// Checks the tables of level 1 against the cuts of the plans that wrote them.
fn check(tree: &Tree, key: &Key) {
    let [upper, lower] = [1, 2].map(|level| &tree.levels()[level].runs()[0]);
    for slice in upper.slices().iter().chain(lower.slices()) {
        let crosses = slice.range().start < *key && slice.range().contains(key);
        assert!(!crosses, "{} goes on beyond {key:?}", slice.range());
    }
    let starts_at_key = |slice: &&lsmith_tree::Slice| slice.range().start >= *key;
    assert!(lower.slices().iter().any(|slice| starts_at_key(&slice)));
    for slice in upper.slices() {
        let met: u64 =
            lower.overlapping(slice.range()).iter().map(|below| below.size().bytes).sum();
        // A cut lies where a table below starts, so that one is not met in part.
        assert!(met <= OVERLAP_BYTES, "{} overlaps {met} bytes", slice.range());
    }
    let plan = MergePlan {
        cuts: Cuts {
            keys: Vec::new(),
            overlap: Some(Overlap { run: lower.id(), bytes: OVERLAP_BYTES }),
        },
        ..MergePlan::merge([upper.id()], Place::Oldest, Reason::new("", [0; 3]))
    };
    assert!(plan.cut_keys(tree).len() > 2, "too few borders to say anything");
}

const LOAD: &str = "load(keys=1000, value=100B)";

/// Level 2 gets two memtables, level 1 the two thirds that follow at first: fewer bytes per key.
const MEMTABLE_BYTES: u64 = 30_000;

#[test]
fn keyed_outputs_are_cut() {
    let key = rank_key(333);
    let policy: Arc<dyn MergePolicy> = Arc::new(Cutting { key: key.clone() });
    let input = KeyedWorkload::new(workload(LOAD));
    let done = simulate_keyed(&policy, &input, MEMTABLE_BYTES, &mut |_| {}).expect("legal plans");
    check(&done.tree, &key);
}

#[test]
fn fluid_outputs_are_cut() {
    let key = rank_key(1 << 60);
    let policy: Arc<dyn MergePolicy> = Arc::new(Cutting { key: key.clone() });
    let input = FluidWorkload::new(&workload(LOAD)).expect("a fluid workload");
    let done = simulate_fluid(&policy, &input, MEMTABLE_BYTES, &mut |_| {}).expect("legal plans");
    check(&done.tree, &key);
}

/// Every table of a unit simulation covers all keys.
#[test]
fn unit_outputs_stay_whole() {
    let policy: Arc<dyn MergePolicy> = Arc::new(Cutting { key: rank_key(333) });
    let sizes = std::iter::repeat_n(UNIT_BYTES, 4);
    let done = simulate_unit(&policy, sizes, UNIT_BYTES, &mut |_| {}).expect("legal plans");
    assert_eq!(done.level_bytes(), [0, 2 * UNIT_BYTES, 2 * UNIT_BYTES]);
}
