//! Explanations: causes sum to what is written, and store and simulation count alike.

use crate::lockstep::{BLOCK_POLICIES, POLICIES, play};
use lsmith::env::MemEnv;
use lsmith::{Event, Observer, Store};
use lsmith_lab::explain::{Explained, Kept, KeptLevel, Side, Tally, explain};
use lsmith_lab::{
    Content, FileInputs, FileSizes, NoProgress, Options, simulate, simulate_observed,
};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{KeyedWorkload, simulate_keyed};
use lsmith_tree::{Cause, Input, LevelId, MergePlan, Mode, Place, Tree, TreeEdit};
use lsmith_workload::Workload;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

const MEMTABLE_BYTES: u64 = 32 << 10;

const WORKLOADS: [&str; 3] = [
    "load(keys=8k, value=100B)",
    "churn(keys=2k, ops=15k, deletes=0.3, value=100B)",
    "uniform(domain=9k, keys=3k, ops=15k)",
];

fn workload(spec: &str) -> KeyedWorkload {
    KeyedWorkload::new(Workload::from_spec(&spec.parse().unwrap(), &FileInputs).unwrap())
}

fn policy(spec: &str) -> Arc<dyn MergePolicy> {
    Registry::builtin().build(spec).unwrap()
}

fn explained(a: &str, b: &str, workload: &KeyedWorkload) -> Explained {
    explain([&policy(a), &policy(b)], workload, MEMTABLE_BYTES, &NoProgress).unwrap()
}

/// The causes, the routes, the sizes and the rules of a policy each sum to the bytes that a
/// simulation of it writes.
#[test]
fn causes_sum_to_the_bytes_that_a_simulation_writes() {
    for workload in WORKLOADS.map(workload) {
        let policies: Vec<_> = POLICIES.iter().chain(BLOCK_POLICIES).collect();
        for pair in policies.chunks(2) {
            let a = pair[0];
            let b = pair[pair.len() - 1];
            let found = explained(a, b, &workload);
            let sum_of = |bytes: fn(&lsmith_lab::explain::CauseBytes) -> i64| {
                found.causes.iter().map(bytes).sum::<i64>()
            };
            let sums = [sum_of(|cause| cause.a_bytes), sum_of(|cause| cause.b_bytes)];
            for ((spec, side), sum) in [(a, &found.a), (b, &found.b)].into_iter().zip(sums) {
                let content = Content::Keyed(&workload);
                let simulated =
                    simulate(&policy(spec), &content, MEMTABLE_BYTES, &mut |_| {}).unwrap();
                let name = format!("{spec}, {}", workload.workload().spec());
                let bytes = simulated.report.bytes;
                assert_eq!(sum, (bytes.flush_written + bytes.merge_written) as i64, "{name}");
                check_side(side, sum as u64, &name);
                assert_eq!(side.flush_bytes, bytes.flush, "{name}");
                assert_eq!(side.write_cost_system, simulated.report.costs.write_cost_system);
            }
        }
    }
}

/// Nodes of append tables are written too: by logical bytes alone `jungle` seems to write less.
#[test]
fn bytes_of_files_are_told_beside_logical_bytes() {
    let workload = workload("churn(keys=4k, ops=40k, value=20B)");
    let [a, b] = ["jungle(c=3)", "tiered(ratio=4)"];
    let found = explained(a, b, &workload);
    let options = Options { memtable_bytes: MEMTABLE_BYTES, ..Options::default() };
    let files = FileSizes::measured(workload.workload(), &options).unwrap();
    let costs = [(a, &found.a), (b, &found.b)].map(|(spec, side)| {
        let content = Content::Keyed(&workload);
        let policy = policy(spec);
        let on_event = &mut |_: lsmith_sim::Event<'_>| {};
        let simulated =
            simulate_observed(&policy, &content, MEMTABLE_BYTES, files.as_ref(), on_event).unwrap();
        assert_eq!(side.physical, simulated.report.physical, "{spec}");
        side.physical.expect("files are measured").write_cost_user
    });
    assert!(costs[0] > 1.1 * costs[1], "{costs:?}");
    let told = &found.sentences[1];
    let figures = costs.map(|cost| format!("{cost:.2}"));
    assert!(told.contains("jungle writes ") && told.contains(" tiered: "), "{told}");
    assert!(figures.iter().all(|figure| told.contains(figure.as_str())), "{told}");
}

fn check_side(side: &Side, written: u64, name: &str) {
    assert_eq!(side.bytes_written, written, "{name}");
    let routes = side.merges.iter().map(|route| route.bytes_written);
    assert_eq!(routes.sum::<u64>(), written, "{name}");
    assert_eq!(side.sizes.iter().map(|class| class.bytes_written).sum::<u64>(), written, "{name}");
    assert_eq!(side.rules.iter().map(|rule| rule.bytes_written).sum::<u64>(), written, "{name}");
    let runs: f64 = side.reads.iter().map(|level| level.runs_mean).sum();
    assert!((runs - side.read_cost_mean).abs() < 1e-9, "{name}: {runs}");
    for level in &side.space {
        assert!(level.obsolete_bytes_mean <= level.bytes_mean, "{name}: {level:?}");
    }
}

#[derive(Debug, Default)]
struct TallyOfStore {
    /// True if rests are counted.
    rests: bool,
    tally: Mutex<Tally>,
}

impl Observer for TallyOfStore {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        let mut tally = self.tally.lock().unwrap();
        match event {
            Event::Committed { plan, edit, before, .. } => tally.merge(before, plan, edit),
            Event::Rest { tree, .. } if self.rests => tally.rest(tree),
            _ => {}
        }
    }
}

/// In lockstep the store and the keyed simulation give the same table: routes, causes, sizes,
/// rules, tombstones, and runs at rest. Under policies that count in blocks the store folds memory
/// at other times, so that it rests more or less often.
#[test]
fn store_and_simulation_count_alike() {
    for workload in WORKLOADS.map(workload) {
        for spec in POLICIES.iter().chain(BLOCK_POLICIES) {
            let rests = POLICIES.contains(spec);
            let mut simulated = Tally::new();
            simulate_keyed(&policy(spec), &workload, MEMTABLE_BYTES, &mut |event| match event {
                lsmith_sim::Event::Merge { tree, plan, edit } => simulated.merge(tree, plan, edit),
                lsmith_sim::Event::Rest { tree } if rests => simulated.rest(tree),
                _ => {}
            })
            .unwrap();
            let observer = Arc::new(TallyOfStore { rests, ..TallyOfStore::default() });
            let store = Store::builder("/store").env(Arc::new(MemEnv::new())).policy(*spec);
            let store = store.memtable_bytes(MEMTABLE_BYTES).lockstep(true);
            let store = store.observer(Arc::<TallyOfStore>::clone(&observer)).open().unwrap();
            play(&store, workload.workload(), &AtomicU64::new(0));
            drop(store);
            let stored = Arc::into_inner(observer).expect("the store is closed");
            let stored = stored.tally.into_inner().unwrap();
            assert_eq!(simulated, stored, "{spec}, {}", workload.workload().spec());
            assert!(simulated.causes().written() > 0);
        }
    }
}

/// The counters of the last tree, which a store keeps, have the totals of the tally. If merges go
/// from one level to the next, the derived split equals the split of the merges.
#[test]
fn kept_counters_have_the_totals_of_single_merges() {
    for workload in WORKLOADS.map(workload) {
        for spec in POLICIES.iter().chain(BLOCK_POLICIES) {
            let mut tally = Tally::new();
            let mut carried = Vec::new();
            let mut rewritten = Vec::new();
            let mut observe = |event: lsmith_sim::Event<'_>| {
                let lsmith_sim::Event::Merge { tree, plan, edit } = event else { return };
                tally.merge(tree, plan, edit);
                let level = edit.counters[0].0;
                carried.resize(carried.len().max(level + 1), 0);
                rewritten.resize(carried.len(), 0);
                let [above, same] = taken_from(tree, plan, edit, level);
                carried[level] += above;
                rewritten[level] += same;
            };
            let policy = policy(spec);
            let done = simulate_keyed(&policy, &workload, MEMTABLE_BYTES, &mut observe);
            let kept = Kept::of(&done.unwrap().tree);
            let causes = tally.causes();
            let name = format!("{spec}, {}", workload.workload().spec());
            let sum = |bytes: fn(&KeptLevel) -> u64| kept.levels.iter().map(bytes).sum::<u64>();
            assert_eq!(kept.bytes_written as i64, causes.written(), "{name}");
            for (kept, cause) in [
                (sum(|level| level.from_memory_bytes), Cause::Flushed),
                (sum(|level| level.dropped_bytes), Cause::Dropped),
                (sum(|level| level.reused_bytes), Cause::Reused),
                (sum(|level| level.moved_bytes), Cause::Moved),
            ] {
                assert_eq!(kept as i64, causes.bytes(cause).abs(), "{name}: {cause:?}");
            }
            // A piece that cuts a table has a size that is estimated.
            let cuts = spec.contains("in_turn");
            if spec.starts_with("tiered") || (spec.starts_with("leveled") && !cuts) {
                assert!(kept.is_split, "{name}");
            }
            // One merge of theirs can take several levels, or they move runs within a level.
            let others = ["fluid", "lazy_leveling", "autumn", "moose", "hbase_stripe"];
            let steps = others.iter().all(|it| !spec.starts_with(it));
            if kept.is_split && steps {
                let derived = |bytes: fn(&KeptLevel) -> Option<u64>| {
                    kept.levels.iter().map(|level| bytes(level).unwrap()).collect::<Vec<_>>()
                };
                assert_eq!(derived(|level| level.from_above_bytes), carried, "{name}");
                assert_eq!(derived(|level| level.rewritten_bytes), rewritten, "{name}");
            }
        }
    }
}

/// Returns the bytes that a merge takes from levels above `level`, and all others that it takes
/// from storage: from the level, and from blocks next to its inputs.
fn taken_from(tree: &Tree, plan: &MergePlan, edit: &TreeEdit, level: usize) -> [u64; 2] {
    let disk_bytes = |input: &Input| match tree.run(input.run).unwrap() {
        (LevelId::Disk(from), run) => Some((from, run.size_within(&input.range).bytes)),
        (LevelId::Memory, _) => None,
    };
    if plan.mode == Mode::Move {
        return [0, 0];
    }
    let all: u64 = match plan.place {
        // The rest of a tree is not read.
        Place::Append(_) => edit.counters.iter().map(|(_, counts)| counts.bytes_in).sum(),
        _ => edit.remove.iter().filter_map(disk_bytes).map(|(_, bytes)| bytes).sum(),
    };
    let inputs = plan.inputs.iter().filter_map(disk_bytes);
    let above = inputs.filter(|(from, _)| *from < level).map(|(_, bytes)| bytes).sum();
    [above, all - above]
}

#[test]
fn the_main_cause_comes_first_in_words() {
    let workload = workload("load(keys=30k, value=100B)");
    let found = explained("tiered(ratio=4)", "leveled(ratio=10)", &workload);
    let [headline, _, main, ..] = &found.sentences[..] else { panic!("{:?}", found.sentences) };
    let ratio = found.b.bytes_written as f64 / found.a.bytes_written as f64;
    let times = format!(" writes {ratio:.1} times as much as tiered(ratio=4): ");
    assert!(headline.starts_with("leveled(ratio=10, ") && headline.contains(&times), "{headline}");
    assert!(main.contains(" % of the difference is rewriting level "), "{main}");
    let route = found.b.merges.iter().max_by_key(|route| route.bytes_written).unwrap();
    let text = format!("rewriting {} when {} is merged into it", route.to, route.from);
    assert!(main.contains(&text), "{main}");
    assert_eq!((&*found.a.name, &*found.b.name), ("tiered", "leveled"));

    let found = explained("leveled(ratio=4)", "leveled(ratio=8)", &workload);
    assert_eq!((&*found.a.name, &*found.b.name), ("leveled(ratio=4)", "leveled(ratio=8)"));
}

#[test]
fn equal_policies_write_the_same() {
    let found = explained("tiered", "tiered(ratio=4)", &workload("load(keys=5k, value=100B)"));
    let headline = "tiered(ratio=4) and tiered(ratio=4) write the same: ";
    assert!(found.sentences[0].starts_with(headline), "{:?}", found.sentences);
    assert_eq!(found.sentences.len(), 4);
    assert_eq!(found.a, found.b);
}

/// Every key is overwritten again and again: most of what older levels hold is obsolete. A load
/// overwrites nothing.
#[test]
fn obsolete_bytes_are_those_of_old_versions() {
    let churn = explained("tiered(ratio=3)", "none", &workload(WORKLOADS[1]));
    for side in [&churn.a, &churn.b] {
        let held: f64 = side.space.iter().map(|level| level.bytes_mean).sum();
        let obsolete: f64 = side.space.iter().map(|level| level.obsolete_bytes_mean).sum();
        assert!(obsolete > 0.3 * held, "{side:?}");
    }
    let load = explained("tiered(ratio=3)", "none", &workload(WORKLOADS[0]));
    let levels = load.a.space.iter().chain(&load.b.space);
    assert!(levels.clone().count() > 1);
    assert!(levels.into_iter().all(|level| level.obsolete_bytes_mean == 0.0));
}
