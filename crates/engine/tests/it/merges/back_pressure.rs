//! Merges that are slower than writers.
//!
//! Promised: writers are held back in time, so that the runs that a lookup must consider stay near
//! the bound of the policy, under every policy that merges. Tables that are ingested meanwhile
//! change nothing in that.

use crate::frame::scripted::{Call, Op, Script, Scripted};
use crate::frame::small::plain;
use crate::frame::watchdog::ends;
use lsmith::env::{Env, MemEnv};
use lsmith::{IngestOptions, Keyspace, TableWriter, TableWriterOptions};
use lsmith_policy::{Load, MergePolicy, PolicyInfo, Registry, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use parking_lot::{Condvar, Mutex};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

const MEMTABLE_BYTES: u64 = 16 << 10;
const VALUE_BYTES: u64 = 1000;
const WRITES: u64 = 2000;

/// Bytes that tables may take per byte that the user writes. Enough for flushes, too few for
/// merges.
const TABLE_BYTES_PER_BYTE: u64 = 2;

/// How long a table waits for the user to write. Then writers are being held back, and merges go on
/// alone. A slow machine only makes merges faster than they should be.
const PATIENCE: Duration = Duration::from_millis(2);

/// Tables are written more slowly than the user writes.
#[derive(Debug, Default)]
struct Pace {
    /// Bytes that tables may still take.
    credit: Mutex<i64>,
    raised: Condvar,
}

impl Pace {
    /// Reports that the user has written `bytes`.
    fn wrote(&self, bytes: u64) {
        *self.credit.lock() += (bytes * TABLE_BYTES_PER_BYTE) as i64;
        self.raised.notify_all();
    }

    /// Waits until a table may take `bytes`.
    fn take(&self, bytes: usize) {
        let mut credit = self.credit.lock();
        while *credit <= 0 {
            if self.raised.wait_for(&mut credit, PATIENCE).timed_out() {
                break;
            }
        }
        *credit = (*credit - bytes as i64).max(-(bytes as i64));
    }
}

impl Script for Pace {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        if call.is_before(Op::Write) {
            for start in (0..call.range.end).step_by(4096) {
                self.take((call.range.end - start).min(4096) as usize);
            }
        }
        Ok(())
    }
}

/// Levels without back-pressure.
#[derive(Debug)]
struct Careless(Arc<dyn MergePolicy>);

const CARELESS: PolicyInfo = PolicyInfo {
    name: "careless",
    source: "this test",
    summary: "leveled, without back-pressure",
    params: &[],
    build: |_| Ok(Arc::new(Careless(Registry::builtin().build("leveled").unwrap()))),
};

impl MergePolicy for Careless {
    fn spec(&self) -> Spec {
        Spec::bare("careless")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.0.choose_merge(view)
    }

    fn pressure(&self, _: &TreeView, _: &Load) -> f64 {
        0.0
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}

/// A user who writes as fast as the store lets them.
#[derive(Clone, Copy, Debug)]
struct Job<'a> {
    policy: &'a str,
    lockstep: bool,
    /// Each key is written [`WRITES`] times over this.
    keys: u64,
    /// Another thread ingests a table of a memtable's bytes for so many memtables of the user. 0
    /// for none.
    memtables_per_table: u64,
}

/// What storage held, looked at after each write.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    runs_max: u64,
    /// In memtables.
    bytes_max: f64,
}

impl Job<'_> {
    fn run(self) -> Held {
        let mut registry = Registry::builtin();
        registry.register(CARELESS);
        let disk = MemEnv::new();
        let env = Scripted::new(disk.clone(), Pace::default());
        let builder = plain(&env).registry(registry);
        let builder = builder.policy(self.policy).memtable_bytes(MEMTABLE_BYTES);
        let store = builder.lockstep(self.lockstep).open().unwrap();
        if self.lockstep {
            env.wrote(1 << 40);
        }
        let space = store.keyspace("default").unwrap();
        let held = thread::scope(|threads| {
            // The channel closes when the user is done.
            let (orders, ordered) = mpsc::sync_channel(0);
            threads.spawn(|| ordered.into_iter().for_each(|number| ingest(&disk, &space, number)));
            self.write(&env, &space, &orders)
        });
        env.wrote(1 << 40);
        store.settle().unwrap();
        held
    }

    fn write(self, pace: &Pace, space: &Keyspace, orders: &SyncSender<u64>) -> Held {
        let table_writes = self.memtables_per_table * MEMTABLE_BYTES / VALUE_BYTES;
        let mut held = Held::default();
        for write in 0..WRITES {
            // Every key in turn, in an order that is not theirs.
            space.put(key(write % self.keys), vec![write as u8; VALUE_BYTES as usize]).unwrap();
            pace.wrote(VALUE_BYTES);
            if table_writes > 0 && write % table_writes == table_writes - 1 {
                orders.send(write % self.keys).unwrap();
            }
            let tree = space.tree();
            let (runs, bytes) = (tree.disk_run_count() as u64, tree.disk_bytes());
            let bytes = bytes as f64 / MEMTABLE_BYTES as f64;
            held.runs_max = held.runs_max.max(runs);
            held.bytes_max = held.bytes_max.max(bytes);
        }
        held
    }
}

fn key(number: u64) -> [u8; 8] {
    (number * 7919 % 10_007).to_be_bytes()
}

/// Ingests a table of the keys from `number` on, of a memtable's bytes.
fn ingest(disk: &MemEnv, space: &Keyspace, number: u64) {
    let options =
        TableWriterOptions { env: Arc::new(disk.clone()), ..TableWriterOptions::default() };
    let mut keys: Vec<_> = (number..number + MEMTABLE_BYTES / VALUE_BYTES).map(key).collect();
    keys.sort_unstable();
    let mut writer = TableWriter::create_with("/table", &options).unwrap();
    for key in keys {
        writer.put(key, vec![7; VALUE_BYTES as usize]).unwrap();
    }
    writer.finish().unwrap();
    space.store().ingest(space, &["/table"], &IngestOptions::default()).unwrap();
    disk.remove_file(Path::new("/table")).unwrap();
}

/// Returns the most runs on storage while a user writes each key once.
fn runs_max(policy: &str, lockstep: bool) -> u64 {
    Job { policy, lockstep, keys: WRITES, memtables_per_table: 0 }.run().runs_max
}

/// Runs that wait to be merged into levels at which writers stop.
const WAITING_RUNS_MAX: u64 = 5;

/// Runs that a tiered tree may have at rest, and never had in lockstep: its levels are not all full
/// at the same time.
const FREE_RUNS: u64 = 2;

/// Asserts that runs stay near the bound of the policy that is called `name`.
fn assert_bounded(name: &str) {
    let policy = Registry::builtin().build(name).unwrap();
    let lockstep = || runs_max(name, true);
    let stop = match policy.shape() {
        Shape::Unmerged => return,
        Shape::Stack { runs_max } => 2 * runs_max + 5,
        Shape::Tiered { .. } => 2 * (lockstep() + FREE_RUNS) + 4,
        Shape::Leveled { .. } => 2 * lockstep().max(WAITING_RUNS_MAX),
    };
    // When writers stop, four memtables may wait in memory, and become runs yet.
    let bound = stop + 4;
    let most = runs_max(name, false);
    assert!(most <= bound, "{name}: {most} runs of {bound}");
}

#[test]
fn runs_stay_near_the_bound_of_the_policy() {
    // Side by side: writers and merges mostly wait for each other.
    ends(|| {
        let registry = Registry::builtin();
        thread::scope(|threads| {
            for info in registry.infos() {
                threads.spawn(|| assert_bounded(info.name));
            }
        });
    });
}

/// The test above can fail: without back-pressure, merges cannot keep up.
#[test]
fn without_pressure_runs_pile_up() {
    ends(|| {
        let careless = runs_max("careless", false);
        let leveled = runs_max("leveled", true);
        assert!(careless > 4 * leveled, "{careless} runs, in lockstep {leveled}");
    });
}

/// Overwrites each of so many keys about six times.
const FEW_KEYS: u64 = 320;

/// When writers stop, four memtables may wait in memory yet.
#[test]
fn triangles_keep_their_bounds_while_tables_are_ingested() {
    ends(|| {
        let held = |lockstep| {
            let policy = "triangular";
            Job { policy, lockstep, keys: FEW_KEYS, memtables_per_table: 3 }.run()
        };
        let [lockstep, free] = [true, false].map(held);
        let runs = 2 * lockstep.runs_max + 9;
        let bytes = 2.0 * lockstep.bytes_max + 4.0;
        assert!(free.runs_max <= runs, "{free:?}, in lockstep {lockstep:?}");
        assert!(free.bytes_max <= bytes, "{free:?}, in lockstep {lockstep:?}");
    });
}
