//! A merge policy that proposes anything.
//!
//! Promised: a wrong policy costs bytes, never a right answer. Illegal plans are refused. Legal
//! plans may take any part of any run anywhere: reads stay right, and everything acknowledged is
//! there when the process dies in the middle.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{Batches, Progress, any_mode};
use crate::frame::small::plain;
use lsmith::env::MemEnv;
use lsmith::{Event, Observer};
use lsmith_policy::{Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Registry, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{Cuts, Input, KeyRange, MergePlan, Mode, Overlap, Place, Reason, Run, TreeView};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use xxhash_rust::xxh3::xxh3_64;

/// Makes random plans from a seed that depends on the view, so that equal views give equal plans.
#[derive(Debug)]
struct Rogue {
    seed: u64,
    /// True if memory is folded into one run, and stays in memory until a plan takes it.
    blocks: bool,
}

const INFO: PolicyInfo = PolicyInfo {
    name: "rogue",
    source: "this test",
    summary: "proposes anything",
    params: &[
        ParamInfo { name: "seed", default: "0", meaning: "what the dice begin with" },
        ParamInfo { name: "blocks", default: "false", meaning: "whether it counts in blocks" },
    ],
    build: |params| {
        let seed = params.count("seed", 0, 0..)?;
        let blocks = params.flag("blocks", false)?;
        Ok(Arc::new(Rogue { seed, blocks }))
    },
};

/// The built-in policies, and this one.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::builtin();
    registry.register(INFO);
    registry
}

impl MergePolicy for Rogue {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("rogue").with("seed", self.seed);
        if self.blocks { spec.with("blocks", true) } else { spec }
    }

    fn needs(&self) -> Needs {
        Needs { blocks: self.blocks, ..Needs::default() }
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let text = format!("{}{}", view.tree, view.reservations.len());
        let mut dice = Dice::new(xxh3_64(text.as_bytes()) ^ self.seed);
        // Every commit makes another tree and so another throw: it ends some time.
        if dice.chance(40) {
            return None;
        }
        // Most throws are no legal plan; some of these are let through, to be refused.
        let vetted = !dice.chance(5);
        let mut plans = (0..30).map(|_| plan(view, &mut dice));
        plans.find(|plan| !vetted || lsmith_tree::check_plan(view, plan).is_ok())
    }

    fn pressure(&self, _: &TreeView, load: &Load) -> f64 {
        (load.waiting_memtables as f64 / 5.0).min(1.0)
    }

    fn shape(&self) -> Shape {
        Shape::Unmerged
    }
}

fn plan(view: &TreeView, dice: &mut Dice) -> MergePlan {
    let runs: Vec<Arc<Run>> = view.tree.runs().map(|(_, run)| Arc::clone(run)).collect();
    let shared = range(&runs, dice);
    let first = dice.below(runs.len());
    let share = *dice.pick(&[30, 80, 100]);
    let mut inputs = Vec::new();
    for run in runs.iter().skip(first).take(1 + dice.below(6)) {
        if dice.chance(share) {
            let range = if dice.chance(80) { shared.clone() } else { range(&runs, dice) };
            inputs.push(Input { run: run.id(), range });
        }
    }
    let named = runs.get(dice.below(runs.len() + 1)).map_or(view.tree.next_run(), |run| run.id());
    let place = match dice.below(12) {
        0..=3 => Place::Oldest,
        4..=6 => Place::NewRun(dice.below(5)),
        7 | 8 => Place::Into(named),
        9 => Place::NewAppend(dice.below(5)),
        _ => Place::Append(named),
    };
    let mode = match dice.below(100) {
        0..20 => Mode::Move,
        20..25 => Mode::Drop,
        _ => Mode::Merge,
    };
    let cut_bytes = dice.chance(70).then(|| dice.below(3000) as u64);
    let memo = vec![("throw".into(), dice.chance(50).then(|| dice.number().to_string()))];
    let reason = Reason::new("thrown", [0; 3]);
    let keys = if dice.chance(30) { shared.end.into_iter().collect() } else { Vec::new() };
    let overlap = dice.chance(30).then(|| Overlap { run: named, bytes: dice.below(3000) as u64 });
    let cuts = Cuts { keys, overlap };
    MergePlan { inputs, place, mode, cut_bytes, cuts, reuse: None, memo, reason }
}

/// Returns all keys, or those between two borders of slices, or between two keys of [`Batches`].
fn range(runs: &[Arc<Run>], dice: &mut Dice) -> KeyRange {
    if dice.chance(30) {
        let [from, upto] = [dice.below(60), dice.below(60)].map(|number| format!("{number:08}"));
        return KeyRange::new(from.clone().min(upto.clone()), from.max(upto));
    }
    let Some(run) = runs.get(dice.below(2 * runs.len())) else { return KeyRange::ALL };
    let slices = run.slices();
    let [from, upto] = [dice.below(slices.len()), dice.below(slices.len())];
    let start = slices[from.min(upto)].range().start.clone();
    let end = slices[from.max(upto)].range().end.clone();
    KeyRange { start, end: end.filter(|_| dice.chance(90)) }
}

#[test]
fn any_plan_at_all_never_costs_an_answer() {
    let mut refused = 0;
    let mut carried_out = 0;
    let counts = std::cell::RefCell::new((&mut refused, &mut carried_out));
    with_seeds(25, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches::new(seed);
        let mut env = MemEnv::new();
        let mut progress = Progress::default();
        for _ in 0..4 {
            let store = plain(&env)
                .registry(registry())
                .policy(format!("rogue(seed={seed}, blocks={})", seed % 2 == 1))
                .memtable_bytes(1000)
                .block_bytes(100)
                .lockstep(dice.chance(50))
                .open()
                .unwrap();
            assert_eq!(batches.check(&store), progress.acknowledged);
            for _ in 0..100 {
                batches.go_on(&store, &mut progress, any_mode(&mut dice)).unwrap();
            }
            batches.check(&store);
            // Taken while threads merge.
            env = env.process_crash_clone();
            let damage = store.verify().unwrap();
            assert!(damage.is_empty(), "{damage:?}");
            let stats = store.stats();
            let mut counts = counts.borrow_mut();
            *counts.0 += stats.plans_refused;
            *counts.1 += stats.plans;
        }
    });
    assert!(refused > 0 && carried_out > 100, "{refused} refused, {carried_out} carried out");
}

/// Plans take parts of memory, which stay taken over reopenings, and entries that cancel do not
/// reappear. Compares inserts and removes with a sorted map.
#[test]
fn parts_of_memory_are_taken_for_good() {
    let taken = Arc::new(Taken::default());
    with_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let mut map = BTreeMap::new();
        for _ in 0..6 {
            let store = plain(&env)
                .registry(registry())
                .policy(format!("rogue(seed={seed}, blocks={})", dice.chance(70)))
                .memtable_bytes(300)
                .block_bytes(100)
                .log_bytes(64 << 10)
                .observer(Arc::clone(&taken) as Arc<dyn Observer>)
                .lockstep(dice.chance(50))
                .open()
                .unwrap();
            let space = store.keyspace("default").unwrap();
            for _ in 0..1000 {
                let key = format!("{:08}", dice.below(60)).into_bytes();
                if map.remove(&key).is_some() {
                    space.delete_single_unchecked(&key).unwrap();
                } else {
                    let value = dice.bytes(dice.clone().below(60));
                    space.put_new_unchecked(&key, &value).unwrap();
                    map.insert(key, value);
                }
            }
            let found = space.iter().map(|entry| entry.unwrap());
            let found: BTreeMap<_, _> = found.map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
            assert!(found == map, "{:?} and {:?}", found.keys(), map.keys());
            if dice.chance(20) {
                store.flush().unwrap();
            }
            let damage = store.verify().unwrap();
            assert!(damage.is_empty(), "{damage:?}");
        }
    });
    // How many depends on who is faster where there are threads.
    let parts = taken.parts.load(Relaxed);
    assert!(parts > 50, "{parts} parts of memory were taken");
}

/// Counts plans that take a part of a memory run and leave another.
#[derive(Debug, Default)]
struct Taken {
    parts: AtomicU64,
}

impl Observer for Taken {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        let Event::Committed { plan, before, tree, .. } = event else { return };
        let memory = before.memory().runs().iter();
        let parts = memory.filter(|run| plan.takes(run.id()) && tree.run(run.id()).is_some());
        self.parts.fetch_add(parts.count() as u64, Relaxed);
    }
}
