//! The end of stores: handles that are dropped anywhere.
//!
//! Promised: a store closes with its last handle, whichever thread drops it, also if an observer
//! drops it on a merging thread. No thread waits for ever. The directory can be opened again, also
//! if the threads are shared with another store. Nothing is lost.

use crate::dice::Dice;
use crate::runner::{builder, in_any_order, opened_when_closed};
use lsmith::env::MemEnv;
use lsmith::{Event, Observer, Store, Threads};
use shuttle::thread;
use std::sync::{Arc, Mutex};

/// Holds a handle until the first event.
#[derive(Debug, Default)]
struct Holder(Mutex<Option<Store>>);

impl Observer for Holder {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if matches!(event, Event::Committed { .. }) {
            // Dropped when the lock of the mutex is given back.
            let held = self.0.lock().unwrap().take();
            drop(held);
        }
    }
}

fn program(dice: &mut Dice) {
    let threads = Threads::new(1 + dice.below(2)).unwrap();
    let mut users = Vec::new();
    let mut again = Vec::new();
    for _ in 0..2 {
        let env = MemEnv::new();
        let holder = Arc::new(Holder::default());
        let builder = builder(&env, dice).memtable_bytes(120);
        let builder = if dice.chance(70) { builder.shared_threads(&threads) } else { builder };
        let observed = builder.clone().observer(Arc::<Holder>::clone(&holder));
        let store = observed.open().unwrap();
        store.keyspace("default").unwrap();
        let is_held = dice.chance(60);
        if is_held {
            *holder.0.lock().unwrap() = Some(store.clone());
        }
        for user in 0..2 {
            let store = store.clone();
            users.push(thread::spawn(move || {
                let space = store.existing_keyspace("default").unwrap();
                drop(store);
                for put in 0..3 {
                    space.put(format!("{user}/{put}"), [put; 60]).unwrap();
                }
                let snapshot = space.store().snapshot();
                let iter = space.iter();
                drop(space);
                drop(iter);
                drop(snapshot);
            }));
        }
        drop(store);
        again.push((builder, holder, is_held));
    }
    if dice.chance(50) {
        users.drain(..).for_each(|user| user.join().unwrap());
    }
    drop(threads);
    users.into_iter().for_each(|user| user.join().unwrap());
    for (builder, holder, is_held) in again {
        // Where nothing was committed, it still has its handle.
        let held = holder.0.lock().unwrap().take();
        drop(held);
        // Only a store that a merging thread has dropped closes a little later.
        let store = if is_held { opened_when_closed(&builder) } else { builder.open().unwrap() };
        assert_eq!(store.existing_keyspace("default").unwrap().iter().count(), 6);
    }
}

#[test]
fn stores_close_in_any_order_of_events() {
    in_any_order(150, program);
}
