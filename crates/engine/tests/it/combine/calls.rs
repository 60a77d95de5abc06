//! How often operators are asked, and for what.
//!
//! Promised: operands without a value beneath are joined two by two, once for each that goes. Where
//! the value is there, the operator makes the new value in one call, and joins nothing. A read asks
//! for one value. What an operator looks at stays, whatever becomes of memtables and blocks
//! meanwhile.

use crate::frame::operators::Append;
use crate::frame::small::{small, threaded};
use crate::frame::watchdog::ends;
use lsmith::env::MemEnv;
use lsmith::{Combine, CombineError, Keyspace, KeyspaceOptions, Store};
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

/// Counts what it is asked for, and can stop in a call. Otherwise as [`Append`], except that all
/// operands can be joined.
#[derive(Clone, Debug, Default)]
struct Counted {
    values: Arc<AtomicU64>,
    joins: Arc<AtomicU64>,
    stop: Arc<(Mutex<Stop>, Condvar)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stop {
    #[default]
    No,
    Next,
    Here,
}

impl Counted {
    /// Returns how often values were made and operands were joined since the last call.
    fn calls(&self) -> (u64, u64) {
        (self.values.swap(0, SeqCst), self.joins.swap(0, SeqCst))
    }

    fn set(&self, stop: Stop) {
        *self.stop.0.lock() = stop;
        self.stop.1.notify_all();
    }

    fn wait_until_here(&self) {
        self.stop.1.wait_while(&mut self.stop.0.lock(), |stop| *stop != Stop::Here);
    }

    fn pass(&self) {
        let mut stop = self.stop.0.lock();
        if *stop == Stop::Next {
            *stop = Stop::Here;
            self.stop.1.notify_all();
            self.stop.1.wait_while(&mut stop, |stop| *stop == Stop::Here);
        }
    }
}

impl Combine for Counted {
    fn name(&self) -> &str {
        "counted"
    }

    fn combine(
        &self,
        key: &[u8],
        value: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>, CombineError> {
        self.values.fetch_add(1, SeqCst);
        self.pass();
        Append.combine(key, value, operands)
    }

    fn combine_operands(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        self.joins.fetch_add(1, SeqCst);
        Some([older, newer].concat())
    }
}

fn space(store: &Store) -> Keyspace {
    let operator = Some("counted".to_string());
    store.keyspace_with("k", &KeyspaceOptions { operator, ..KeyspaceOptions::default() }).unwrap()
}

fn combine(space: &Keyspace, count: u64) {
    (0..count).for_each(|_| space.combine("key", "x").unwrap());
}

#[test]
fn operands_are_joined_only_where_their_value_is_elsewhere() {
    let (env, counted) = (MemEnv::new(), Counted::default());
    let store = small(&env)
        .policy("none")
        .memtable_bytes(1 << 20)
        .operator(counted.clone())
        .open()
        .unwrap();
    let space = space(&store);
    // The value is in the same memtable.
    space.put("key", "v").unwrap();
    combine(&space, 9);
    assert_eq!(counted.calls(), (0, 0), "writes ask for nothing");
    space.flush().unwrap();
    assert_eq!(counted.calls(), (1, 0));
    assert_eq!(space.get("key").unwrap().unwrap(), "vxxxxxxxxx");
    assert_eq!(counted.calls(), (0, 0), "a value is read as it is");
    // It is in a table beneath.
    combine(&space, 6);
    space.flush().unwrap();
    assert_eq!(counted.calls(), (0, 5));
    combine(&space, 4);
    let snapshot = store.snapshot();
    combine(&space, 3);
    space.flush().unwrap();
    assert_eq!(counted.calls(), (0, 3 + 2), "a snapshot sees the first of them alone");
    assert_eq!(space.get("key").unwrap().unwrap().len(), 10 + 6 + 4 + 3);
    assert_eq!(snapshot.get(&space, "key").unwrap().unwrap().len(), 10 + 6 + 4);
    assert_eq!(space.iter().count(), 1);
    assert_eq!(counted.calls(), (3, 0), "each read makes one value");
    space.merge().unwrap();
    let (values, joins) = counted.calls();
    assert!((1..=2).contains(&values) && joins == 0, "{values} values, {joins} joins");
    drop(snapshot);
    space.merge().unwrap();
    counted.calls();
    assert_eq!(space.get("key").unwrap().unwrap().len(), 23);
    assert_eq!(counted.calls(), (0, 0));
    // A delete is beneath, or nothing at all.
    space.delete("key").unwrap();
    combine(&space, 5);
    (0..5).for_each(|_| space.combine("new", "y").unwrap());
    space.flush().unwrap();
    space.merge().unwrap();
    let (values, joins) = counted.calls();
    assert!(values == 2 && joins <= 4, "{values} values, {joins} joins");
    assert_eq!(space.get("key").unwrap().unwrap(), "xxxxx");
    assert_eq!(space.get("new").unwrap().unwrap(), "yyyyy");
}

/// Asks for a value in one of the ways of reading.
type Ask = fn(&Keyspace) -> Vec<u8>;

/// A reader is stopped within the operator. Then its memtable is flushed, its table merged away,
/// and its keyspace overwritten; every block leaves the cache.
#[test]
fn what_an_operator_looks_at_stays() {
    let asks: [Ask; 4] = [
        |space| space.get("key").unwrap().unwrap().to_vec(),
        |space| space.iter().next().unwrap().unwrap().1.to_vec(),
        |space| space.iter().next_back().unwrap().unwrap().1.to_vec(),
        |space| space.multi_get(["key"]).unwrap()[0].clone().unwrap().to_vec(),
    ];
    ends(move || {
        for (ask, in_table, maps) in
            asks.iter().flat_map(|ask| [(ask, false, true), (ask, true, true), (ask, true, false)])
        {
            let (env, counted) = (MemEnv::new(), Counted::default());
            let env = if maps { env } else { env.unmapped() };
            let store = threaded(&env)
                .policy("none")
                .memtable_bytes(1 << 20)
                .operator(counted.clone())
                .cache_bytes(1000)
                .open()
                .unwrap();
            let space = space(&store);
            space.put("key", vec![b'v'; 500]).unwrap();
            space.flush().unwrap();
            (0..3).for_each(|_| space.combine("key", vec![b'x'; 300]).unwrap());
            if in_table {
                space.flush().unwrap();
            }
            let expected = [vec![b'v'; 500], vec![b'x'; 900]].concat();
            counted.set(Stop::Next);
            thread::scope(|scope| {
                let reading = scope.spawn(|| ask(&space));
                counted.wait_until_here();
                space.flush().unwrap();
                space.merge().unwrap();
                assert_eq!(space.get("key").unwrap().unwrap(), expected);
                space.put("key", vec![b'n'; 700]).unwrap();
                (0..50_u8).for_each(|byte| space.put([b'l', byte], vec![byte; 300]).unwrap());
                space.flush().unwrap();
                space.merge().unwrap();
                assert_eq!(space.iter().count(), 51);
                space.clear().unwrap();
                store.settle().unwrap();
                counted.set(Stop::No);
                assert!(reading.join().unwrap() == expected, "in_table {in_table}, maps {maps}");
            });
            assert_eq!(space.get("key").unwrap(), None);
        }
    });
}
