//! What writers owe: the bytes that were sealed since the tree was last at rest.
//!
//! Promised: the store tells it to the policy, which makes back-pressure of it. Data that came in
//! by other ways counts as no debt.

use crate::frame::gate::{Gate, GateEnv, Step};
use crate::frame::small::plain;
use crate::frame::watchdog::Watchdog;
use lsmith::env::MemEnv;
use lsmith::policy::{Load, MergePolicy, Shape, Spec};
use lsmith::tree::{MergePlan, Place, Reason, TreeView};
use lsmith::{IngestOptions, Keyspace, Store, TableWriter, TableWriterOptions};
use parking_lot::Mutex;
use std::sync::Arc;

const MEMTABLE_BYTES: u64 = 1000;

/// Flushes memtables, merges the runs once there are `runs`, and keeps the debts that the store
/// tells it.
#[derive(Debug)]
struct Told {
    runs: usize,
    debts: Arc<Mutex<Vec<u64>>>,
}

impl MergePolicy for Told {
    fn spec(&self) -> Spec {
        Spec::bare("told")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let runs: Vec<_> = view.tree.disk_runs().collect();
        let is_free = runs.iter().all(|run| !view.is_reserved(run.id()));
        (runs.len() >= self.runs && is_free).then(|| {
            let ids = runs.iter().map(|run| run.id());
            MergePlan::merge(
                ids,
                Place::NewRun(0),
                Reason::new("{} runs", [self.runs as u64, 0, 0]),
            )
        })
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.runs as u64 }
    }

    fn pressure(&self, _: &TreeView, load: &Load) -> f64 {
        self.debts.lock().push(load.owed_bytes);
        0.0
    }
}

fn open(runs: usize) -> (GateEnv, Store, Keyspace, Arc<Mutex<Vec<u64>>>) {
    let env = Gate::over(MemEnv::new());
    let debts = Arc::<Mutex<Vec<u64>>>::default();
    let policy = Told { runs, debts: Arc::clone(&debts) };
    let builder = plain(&env).policy(policy);
    let store = builder.memtable_bytes(MEMTABLE_BYTES).threads(2).open().unwrap();
    let space = store.keyspace("a").unwrap();
    store.settle().unwrap();
    (env, store, space, debts)
}

/// Fills a memtable.
fn seal(space: &Keyspace) {
    let next_run = space.tree().next_run();
    let mut number = 0_u32;
    while space.tree().next_run() == next_run {
        space.put(number.to_be_bytes(), [1; 50]).unwrap();
        number += 1;
    }
}

/// Returns the debt that the policy was told last, in memtables. If there is one, the store asks
/// last what the pressure will be once the active memtable is full.
fn last(debts: &Mutex<Vec<u64>>) -> f64 {
    *debts.lock().last().unwrap() as f64 / MEMTABLE_BYTES as f64
}

#[test]
fn debt_grows_while_a_merge_is_under_way_and_ends_with_it() {
    let _watchdog = Watchdog::new("somebody waits for a merge");
    let (env, store, space, debts) = open(100);
    env.hold_at(Step::ManifestSync, 1);
    let mut told = Vec::new();
    for _ in 0..2 {
        seal(&space);
        env.wait_until_held();
        told.push(last(&debts));
    }
    // A test that failed before would wait for the thread that is held.
    env.release();
    for (owed, memtables) in told.iter().zip(2_u32..) {
        let expected = f64::from(memtables) - 0.2..f64::from(memtables) + 0.2;
        assert!(expected.contains(owed), "{memtables} memtables expected: {told:?}");
    }
    store.settle().unwrap();
    // At rest nothing is owed, as the next memtable shows.
    seal(&space);
    store.settle().unwrap();
    assert!(last(&debts) <= 2.2, "{:?}", debts.lock());
}

#[test]
fn merges_of_tables_that_came_in_by_other_ways_are_no_debt() {
    let _watchdog = Watchdog::new("somebody waits for a merge");
    let (env, store, space, debts) = open(2);
    seal(&space);
    store.settle().unwrap();
    let options = TableWriterOptions { env: Arc::new(env.clone()), ..Default::default() };
    let mut writer = TableWriter::create_with("/table", &options).unwrap();
    for number in 0..1000_u32 {
        writer.put(number.to_be_bytes(), [2; 50]).unwrap();
    }
    writer.finish().unwrap();
    // The merge of what arrives is held, after the arrival itself.
    env.hold_at(Step::ManifestSync, 2);
    store.ingest(&space, &["/table"], &IngestOptions::default()).unwrap();
    env.wait_until_held();
    seal(&space);
    let told = last(&debts);
    env.release();
    assert_eq!(told, 0.0);
    store.settle().unwrap();
    assert!(debts.lock().iter().all(|debt| *debt <= 3 * MEMTABLE_BYTES));
}
