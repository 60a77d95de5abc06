//! Tests of the learning of `mixed`: its results, its repetition, and its end.

use crate::steps::{Dice, Present, Step, Watched};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{BlockSim, BlockSizes};
use lsmith_tree::{EntryKind, MemoChange, TreeView};
use std::sync::Arc;

/// Keys are below this.
const DOMAIN: u32 = 1_000_000_000;
/// Records that fill two fifths of what level 3 holds.
const FEW: u32 = 1_800;
/// Records that fill four fifths of it.
const MANY: u32 = 3_600;

/// A simulation with three levels below memory, of 40, 160 and 640 blocks.
struct Run {
    sim: BlockSim,
    policy: Arc<Watched>,
    present: Present,
    dice: Dice,
    /// What plans have noted since [`Run::notes`] was last asked.
    noted: Vec<MemoChange>,
    /// Views that were printed and parsed in the middle of learning.
    parsed: Option<usize>,
}

impl Run {
    fn new(spec: &str) -> Run {
        Run::with(spec, BlockSizes { memory_blocks: 10, per_block: 8, entry_bytes: 100 })
    }

    fn with(spec: &str, sizes: BlockSizes) -> Run {
        let policy = Watched::new(Registry::builtin().build(spec).expect(spec));
        let watched: Arc<dyn MergePolicy> = policy.clone();
        let sim = BlockSim::new(&watched, sizes);
        let present = Present::default();
        let dice = Dice(7);
        Run { sim, policy, present, dice, noted: Vec::new(), parsed: None }
    }

    /// Returns a simulation that holds `records` records and has learned under uniform keys.
    fn learned(spec: &str, records: u32) -> Run {
        let mut run = Run::new(spec);
        run.grow(records);
        run.uniform(35_000);
        assert_eq!(run.memo("learn"), Some("done"), "{}", run.message());
        run
    }

    /// Inserts `records` more records.
    fn grow(&mut self, records: u32) {
        for _ in 0..records {
            let key = self.dice.below(DOMAIN);
            self.insert(key);
        }
    }

    /// Makes requests for keys from anywhere. Half of them are removes.
    fn uniform(&mut self, requests: u32) {
        for _ in 0..requests / 2 {
            let key = self.dice.below(DOMAIN);
            self.insert(key);
            self.remove();
        }
    }

    /// Makes inserts within 40,000 keys around a place, which moves after every 200 inserts, and as
    /// many removes from anywhere.
    fn normal(&mut self, requests: u32) {
        let mut middle = 0;
        for index in 0..requests / 2 {
            if index % 200 == 0 {
                middle = self.dice.below(DOMAIN - 40_000);
            }
            let key = middle + (0..4).map(|_| self.dice.below(10_000)).sum::<u32>();
            self.insert(key);
            self.remove();
        }
    }

    fn insert(&mut self, key: u32) {
        let request = self.present.insert(key);
        self.write(request);
    }

    fn remove(&mut self) {
        let request = self.present.remove(self.dice.below(DOMAIN));
        self.write(request);
    }

    fn write(&mut self, (kind, key): (EntryKind, u32)) {
        self.sim.write(kind, key).expect("legal plans");
        for step in self.policy.take() {
            let noted: Vec<_> = step.plan.iter().flat_map(|plan| plan.memo.clone()).collect();
            if self.parsed.is_some() && noted.iter().any(|(name, _)| name == "learn") {
                self.parse(&step);
            }
            self.noted.extend(noted);
        }
    }

    /// Checks that the policy answers the same to the view of `step` once it is printed and parsed.
    fn parse(&mut self, step: &Step) {
        let view: TreeView = step.view.to_string().parse().expect("what was printed");
        assert_eq!(self.policy.next_merge(&view), step.plan);
        assert_eq!(self.policy.explain(&view).notes, self.policy.explain(&step.view).notes);
        self.policy.take();
        if view.memo("learn").is_some_and(|step| step != "done") {
            self.parsed = self.parsed.map(|parsed| parsed + 1);
        }
    }

    fn memo(&self, name: &str) -> Option<&str> {
        self.sim.tree().memo().text(name)
    }

    fn message(&self) -> String {
        self.policy.explain(self.sim.drive().view()).notes.join("; ")
    }

    /// The notes called `name` that plans made since this was last asked.
    fn notes(&mut self, name: &str) -> Vec<String> {
        let noted = std::mem::take(&mut self.noted).into_iter();
        noted.filter(|(note, _)| note == name).filter_map(|(_, text)| text).collect()
    }
}

const SEARCHES: [&str; 2] = ["mixed(ratio=4, rate=0.3)", "mixed(ratio=4, rate=0.3, search=golden)"];

#[test]
fn learning_goes_from_the_top_down_and_ends() {
    for spec in SEARCHES {
        let mut run = Run::learned(spec, FEW);
        let message = run.message();
        let steps = run.notes("learn");
        let names: Vec<&str> = steps.iter().map(|step| step.split(' ').next().unwrap()).collect();
        let mut order = names.clone();
        order.dedup();
        assert_eq!(order, ["tau", "full", "settle", "part", "done"], "{spec}: {steps:?}");
        let least = if spec.contains("golden") { 4 } else { 2 };
        let trials = names.iter().filter(|name| **name == "tau").count();
        assert!(trials > least, "{spec}: a cycle for each setting tried, {steps:?}");
        assert!(message.contains("tau_2 0") && message.contains("learned with"), "{message}");
    }
}

/// Blocks per million requests under uniform keys, once they have gone on for a while.
fn cost(run: &mut Run, requests: u32) -> f64 {
    let written = |run: &Run| -> u64 {
        let levels = run.sim.tree().levels().iter();
        levels.map(|level| level.counters().blocks_written).sum()
    };
    run.uniform(requests / 2);
    let before = written(run);
    run.uniform(requests);
    (written(run) - before) as f64 * 1e6 / f64::from(requests)
}

/// If the bottom level is two thirds full, the best windows cost a tenth less than full merges.
/// They cost more during their first pass over a level that a full merge has emptied, so the policy
/// must not judge by that pass.
#[test]
fn windows_are_measured_as_they_are_in_the_long_run() {
    let sizes = BlockSizes { memory_blocks: 40, per_block: 39, entry_bytes: 104 };
    let [mut learning, mut full] =
        ["mixed(rate=0.05)", "mixed(rate=0.05, tau=0, beta=true)"].map(|spec| {
            let mut run = Run::with(spec, sizes);
            run.grow(104_000);
            run
        });
    learning.uniform(300_000);
    assert_eq!(learning.memo("learn"), Some("done"), "{}", learning.message());
    assert_eq!(learning.memo("beta"), Some("false"), "{}", learning.message());
    let costs = [cost(&mut learning, 350_000), cost(&mut full, 350_000)];
    assert!(costs[0] < 0.95 * costs[1], "{costs:?}");
}

#[test]
fn nothing_is_learned_again_under_a_steady_workload() {
    for (spec, is_normal) in [(SEARCHES[0], false), (SEARCHES[1], false), (SEARCHES[0], true)] {
        let mut run = Run::new(spec);
        run.grow(FEW);
        for _ in 0..2 {
            if is_normal { run.normal(80_000) } else { run.uniform(60_000) }
        }
        let again = run.memo("relearn").map(str::to_string);
        assert_eq!((run.memo("learn"), again), (Some("done"), None), "{spec}: {}", run.message());
        let cycles = run.notes("last_cycle").len();
        assert!(cycles > 40, "{spec}: {cycles} cycles in which it could have");
    }
}

#[test]
fn a_cheaper_workload_is_noticed_and_learned() {
    for spec in SEARCHES {
        let mut run = Run::learned(spec, FEW);
        let before = run.memo("learned_at").map(str::to_string);
        run.notes("learn");
        run.normal(80_000);
        let message = run.message();
        assert!(message.contains("learned again because two cycles cost"), "{message}");
        assert_eq!(run.memo("learn"), Some("done"), "{message}");
        assert_ne!(run.memo("learned_at").map(str::to_string), before, "{message}");
        // Only the change of costs made it learn. It does not learn the same workload again.
        run.notes("learn");
        run.normal(40_000);
        assert_eq!(run.notes("relearn"), [""; 0], "{}", run.message());
    }
}

#[test]
fn twice_the_data_is_noticed_and_learned() {
    for spec in SEARCHES {
        let mut run = Run::learned(spec, FEW);
        // Half as much data again is too little to learn anew, and level 3 still holds all of it.
        run.grow(FEW / 2);
        run.uniform(10_000);
        assert_eq!(run.notes("relearn"), [""; 0], "{}", run.message());
        run.grow(FEW);
        run.uniform(40_000);
        let message = run.message();
        let why = run.notes("relearn");
        assert!(matches!(&why[..], [why] if why.starts_with("the bottom level has")), "{why:?}");
        assert_eq!(run.memo("learn"), Some("done"), "{message}");
        assert!(message.contains("; learned again because the bottom level has"), "{message}");
    }
}

#[test]
fn another_level_is_noticed_and_learned() {
    let mut run = Run::learned(SEARCHES[0], MANY);
    run.uniform(20_000);
    assert_eq!(run.notes("relearn"), [""; 0], "{}", run.message());
    run.grow(MANY);
    run.uniform(120_000);
    let why = run.notes("relearn");
    assert_eq!(why.first().map(String::as_str), Some("level 4 is the bottom, it was 3"), "{why:?}");
    assert!(run.memo("tau_3").is_some(), "{}", run.message());
}

#[test]
fn thresholds_that_are_given_need_no_learning() {
    let mut run = Run::new("mixed(ratio=4, rate=0.3, tau=0.4, beta=true)");
    run.grow(FEW);
    run.uniform(20_000);
    assert_eq!(run.message(), "tau_2 0.4, beta true");
    assert!(run.sim.tree().memo().iter().all(|(name, _)| name != "learn"), "{:?}", run.message());
    assert_eq!(run.notes("learn"), [""; 0]);
}

#[test]
fn where_beta_is_given_the_first_cycle_says_what_to_expect() {
    let mut run = Run::learned("mixed(ratio=4, rate=0.3, beta=true)", FEW);
    let learned: Vec<&str> = run.memo("learned_at").unwrap().split(' ').collect();
    assert_eq!(learned.len(), 3, "level, blocks and cost: {learned:?}");
    run.normal(60_000);
    assert!(run.message().contains("learned again because two cycles cost"), "{}", run.message());
}

/// A tree that is printed and parsed in the middle of learning continues as before, because plans
/// depend only on what is printed.
#[test]
fn learning_survives_print_and_parse() {
    for spec in SEARCHES {
        let mut run = Run::new(spec);
        run.parsed = Some(0);
        run.grow(FEW);
        run.uniform(35_000);
        run.grow(FEW);
        run.normal(20_000);
        assert!(run.parsed > Some(10), "{:?} views only in the middle of learning", run.parsed);
    }
}
