//! Memtables that become full while the state of their keyspace is locked.
//!
//! Promised: a full memtable is flushed, even if the write that filled it could not check it
//! because a merging thread held the lock, and no write follows.
//!
//! What broke: the writer left the memtable to the next writer. Without one, it stayed in memory
//! and kept its log alive, whatever [`Store::settle`] waited for.

use crate::frame::small::{open, plain};
use crate::frame::watchdog::Watchdog;
use lsmith::env::MemEnv;
use lsmith::{Event, Keyspace, Observer, Store};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

const MEMTABLE_BYTES: u64 = 4000;

/// Blocks the first thread that takes up a plan, with the state locked, and counts commits.
#[derive(Debug, Default)]
struct Holder {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    held: bool,
    released: bool,
    commits: usize,
}

impl Observer for Holder {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        let mut state = self.state.lock();
        match event {
            Event::Planned { .. } => {
                state.held = true;
                self.changed.notify_all();
                self.changed.wait_while(&mut state, |state| !state.released);
            }
            Event::Committed { .. } => {
                state.commits += 1;
                self.changed.notify_all();
            }
            _ => {}
        }
    }
}

impl Holder {
    fn wait_for(&self, holds: impl Fn(&State) -> bool) {
        self.changed.wait_while(&mut self.state.lock(), |state| !holds(state));
    }

    fn release(&self) {
        self.state.lock().released = true;
        self.changed.notify_all();
    }
}

/// Writes 100 logical bytes.
fn put(space: &Keyspace, number: u32) {
    space.put(format!("{number:08}"), [7; 84]).unwrap();
}

/// Makes a store with a memtable that is being flushed, and a next one that is full and not sealed.
fn store_with_a_full_memtable() -> (Store, Keyspace, Arc<Holder>) {
    let holder = Arc::new(Holder::default());
    let (store, space) = open(
        plain(&MemEnv::new())
            .memtable_bytes(MEMTABLE_BYTES)
            .policy("none")
            .threads(1)
            .observer(Arc::clone(&holder) as Arc<dyn Observer>),
    );
    (0..40).for_each(|number| put(&space, number));
    holder.wait_for(|state| state.held);
    // All that it is sealed at, and less than what a writer would wait for the lock with.
    (40..90).for_each(|number| put(&space, number));
    holder.release();
    (store, space, holder)
}

#[test]
fn a_full_memtable_is_flushed_though_no_write_follows() {
    let _watchdog = Watchdog::new("a full memtable stays where it is");
    let (_store, space, holder) = store_with_a_full_memtable();
    holder.wait_for(|state| state.commits == 2);
    assert_eq!(space.stats().memory_bytes, 0);
}

#[test]
fn rest_is_waited_for_with_no_full_memtable_left() {
    let _watchdog = Watchdog::new("a store does not come to rest");
    let (store, space, _) = store_with_a_full_memtable();
    store.settle().unwrap();
    assert_eq!(space.stats().memory_bytes, 0);
    assert_eq!(space.iter().count(), 90);
}
