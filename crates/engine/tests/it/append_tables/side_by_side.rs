//! Appends to trees of one run, side by side.
//!
//! Promised: plans that append to different trees of a run are reserved and carried out at the same
//! time. Nothing here depends on how long they take: each waits within its append until another
//! one is there too.

use crate::frame::scripted::{Call, Op, Script, Scripted};
use crate::frame::small::{open, plain};
use crate::frame::watchdog::Watchdog;
use lsmith::Keyspace;
use lsmith::env::MemEnv;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longer than it takes to propose a plan.
const LONG: Duration = Duration::from_secs(2);

/// Which plans meet depends on threads.
const TRIES: u32 = 20;

/// Appends to tables wait for each other.
#[derive(Debug, Default)]
struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// True while appends must wait.
    is_closed: bool,
    /// The tables to which appends are under way.
    waiting: Vec<PathBuf>,
}

impl Meeting {
    fn hold(&self) {
        self.state.lock().is_closed = true;
    }

    /// Waits until appends wait whose tables `are_right`. Returns false if no further one comes:
    /// there may be no plan for it as long as the others are under way.
    fn wait_for(&self, are_right: impl Fn(&[PathBuf]) -> bool) -> bool {
        let mut state = self.state.lock();
        while !are_right(&state.waiting) {
            if self.changed.wait_for(&mut state, LONG).timed_out() {
                return false;
            }
        }
        true
    }

    fn release(&self) {
        self.state.lock().is_closed = false;
        self.changed.notify_all();
    }
}

impl Script for Meeting {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        let mut state = self.state.lock();
        if call.is_before(Op::WriteOn) && state.is_closed {
            state.waiting.push(call.path.to_path_buf());
            self.changed.notify_all();
            while state.is_closed {
                self.changed.wait(&mut state);
            }
            state.waiting.retain(|other| other != call.path);
        }
        Ok(())
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
    let env = Scripted::new(MemEnv::new(), Meeting::default());
    // One of the threads is kept for flushes. Each of the others may have come to another run.
    let store = plain(&env).threads(6);
    let store = store.policy("jungle(c=10, ratio=8, table=4kB)").memtable_bytes(4000);
    let (store, space) = open(store.log_bytes(64 << 10));
    let mut map = BTreeMap::new();
    for number in 0..writes {
        let key = format!("{:06}", number * 7919 % 1000).into_bytes();
        let value = vec![(number / 1000) as u8; 40];
        space.put(&key, &value).unwrap();
        map.insert(key, value);
    }
    store.settle().unwrap();
    // Levels now hold much more than they should, so there is work in many places.
    env.hold();
    space.set_merge_policy("jungle(c=10, ratio=2, table=1kB)").unwrap();
    let met = env.wait_for(|tables| {
        let distinct: BTreeSet<&PathBuf> = tables.iter().collect();
        assert_eq!(distinct.len(), tables.len(), "two appends to one tree");
        let mut runs: Vec<usize> = tables.iter().filter_map(|path| run_of(&space, path)).collect();
        runs.sort_unstable();
        runs.windows(2).any(|pair| pair[0] == pair[1])
    });
    env.release();
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
