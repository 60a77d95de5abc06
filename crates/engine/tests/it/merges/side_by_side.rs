//! Merges side by side.
//!
//! Promised: triangles of level 0 that share no keys are merged at the same time, by as many
//! threads as there are.

use crate::frame::scripted::{Call, Op, Script, Scripted};
use crate::frame::small::{open, plain};
use crate::frame::watchdog::ends;
use lsmith::Keyspace;
use lsmith::env::MemEnv;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::thread;

const MEMTABLE_BYTES: u64 = 64 << 10;

/// Each merge waits, before it creates its first table, until as many others are about to.
#[derive(Debug, Default)]
struct Meeting {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Merges that a merge waits for, itself included. 0 if none waits.
    expected: usize,
    present: usize,
    /// The most merges that were about to create a table at the same time.
    most: usize,
}

impl Meeting {
    fn meet(&self) {
        let is_merge =
            thread::current().name().is_some_and(|name| name.starts_with("lsmith-merge"));
        let mut state = self.state.lock();
        if !is_merge || state.expected == 0 {
            return;
        }
        state.present += 1;
        state.most = state.most.max(state.present);
        self.changed.notify_all();
        // Where no other merge ever comes, `ends` fails the test.
        self.changed.wait_while(&mut state, |state| state.most < state.expected);
        state.present -= 1;
    }
}

impl Script for Meeting {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        if call.is_before(Op::Create) {
            self.meet();
        }
        Ok(())
    }
}

/// Loads two runs for each of four key ranges: eight runs of level 0, in four groups.
fn load_groups(space: &Keyspace) {
    for group in ["a", "b", "c", "d", "a", "b", "c", "d"] {
        let mut load = space.bulk_load().unwrap();
        for number in 0..40 {
            load.put(format!("{group}{number:02}"), [b'v'; 1000]).unwrap();
        }
        load.finish().unwrap();
    }
}

/// Returns the most triangles that `threads` threads merged at the same time.
fn most_side_by_side(threads: usize) -> usize {
    let env = Scripted::new(MemEnv::new(), Meeting::default());
    let builder = plain(&env).threads(threads);
    let policy = "triangular(score=ratio)";
    let (store, space) = open(builder.memtable_bytes(MEMTABLE_BYTES).policy(policy));
    // The first triangle makes the run that takes in all others.
    load_groups(&space);
    store.settle().unwrap();
    env.state.lock().expected = threads;
    load_groups(&space);
    store.settle().unwrap();
    assert_eq!(store.verify().unwrap().len(), 0);
    let state = env.state.lock();
    state.most
}

#[test]
fn triangles_that_share_no_keys_are_merged_at_the_same_time() {
    ends(|| {
        for threads in [1, 2, 4] {
            assert_eq!(most_side_by_side(threads), threads);
        }
    });
}
