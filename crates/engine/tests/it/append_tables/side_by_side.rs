//! Appends to trees of one run, side by side.
//!
//! Promised: plans that append to different trees of a run are reserved and carried out at the same
//! time. Nothing here depends on how long they take: each waits within its append until another
//! one is there too.

use crate::frame::watchdog::Watchdog;
use lsmith::env::{Env, LogFile, MemEnv, ReadFile, WriteFile};
use lsmith::{DEFAULT_KEYSPACE, Keyspace, Store};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Longer than it takes to propose a plan.
const LONG: Duration = Duration::from_secs(2);

/// Which plans meet depends on threads.
const TRIES: u32 = 20;

/// A disk on which appends to tables wait for each other.
#[derive(Clone, Debug)]
struct Meeting {
    disk: MemEnv,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Debug, Default)]
struct State {
    /// True while appends must wait.
    is_closed: bool,
    /// The tables to which appends are under way.
    waiting: Vec<PathBuf>,
}

impl Meeting {
    fn new() -> Meeting {
        Meeting { disk: MemEnv::new(), state: Arc::default() }
    }

    fn close(&self) {
        self.state.0.lock().is_closed = true;
    }

    /// Waits until appends wait whose tables `are_right`. Returns false if no further one comes:
    /// there may be no plan for it as long as the others are under way.
    fn wait_for(&self, are_right: impl Fn(&[PathBuf]) -> bool) -> bool {
        let (state, changed) = &*self.state;
        let mut state = state.lock();
        while !are_right(&state.waiting) {
            if changed.wait_for(&mut state, LONG).timed_out() {
                return false;
            }
        }
        true
    }

    fn open(&self) {
        self.state.0.lock().is_closed = false;
        self.state.1.notify_all();
    }
}

impl Env for Meeting {
    left_to_the_disk!();

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.disk.open(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.disk.create(path)
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        self.disk.create_log(path, capacity)
    }

    fn now(&self) -> Duration {
        self.disk.now()
    }

    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        let (state, changed) = &*self.state;
        let mut state = state.lock();
        if state.is_closed {
            state.waiting.push(path.to_path_buf());
            changed.notify_all();
            while state.is_closed {
                changed.wait(&mut state);
            }
            state.waiting.retain(|other| other != path);
        }
        drop(state);
        self.disk.append(path, at)
    }
}

/// Returns the number of the run that has the table at `path`, on storage.
fn run_of(space: &Keyspace, path: &Path) -> Option<usize> {
    let name = path.file_stem()?.to_str()?;
    let number: u64 = name.parse().ok()?;
    let tree = space.tree();
    tree.disk_runs().position(|run| run.slices().iter().any(|s| s.table().id.0 == number))
}

/// Returns true if two appends to trees of one run were under way at the same time, in a store with
/// so many writes. How much is left in the upper run depends on their number and on the threads.
fn meet(writes: u32) -> bool {
    let env = Meeting::new();
    // One of the threads is kept for flushes. Each of the others may have come to another run.
    let store = Store::builder("/store").env(Arc::new(env.clone())).threads(6);
    let store = store.policy("jungle(c=10, ratio=8, table=4kB)").memtable_bytes(4000);
    let store = store.log_bytes(64 << 10).open().unwrap();
    let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
    let mut map = BTreeMap::new();
    for number in 0..writes {
        let key = format!("{:06}", number * 7919 % 1000).into_bytes();
        let value = vec![(number / 1000) as u8; 40];
        space.put(&key, &value).unwrap();
        map.insert(key, value);
    }
    store.settle().unwrap();
    // Levels now hold much more than they should, so there is work in many places.
    env.close();
    space.set_merge_policy("jungle(c=10, ratio=2, table=1kB)").unwrap();
    let met = env.wait_for(|tables| {
        let distinct: BTreeSet<&PathBuf> = tables.iter().collect();
        assert_eq!(distinct.len(), tables.len(), "two appends to one tree");
        let mut runs: Vec<usize> = tables.iter().filter_map(|path| run_of(&space, path)).collect();
        runs.sort_unstable();
        runs.windows(2).any(|pair| pair[0] == pair[1])
    });
    env.open();
    store.settle().unwrap();
    let read = space.iter().map(|entry| entry.unwrap());
    let read: BTreeMap<_, _> = read.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert_eq!(read, map);
    assert!(store.verify().unwrap().is_empty());
    let stats = store.stats();
    assert_eq!((stats.plans_failed, stats.plans_refused), (0, 0));
    met
}

#[test]
fn trees_of_one_run_take_entries_in_at_the_same_time() {
    let _watchdog = Watchdog::new("appends to trees of one run do not go on side by side");
    assert!((0..TRIES).any(|attempt| meet(5000 + 137 * attempt)), "in none of {TRIES} stores");
}
