//! Single keys are linearizable.
//!
//! Promised: for each key there is one order of all its reads and writes in which each read sees
//! the write before it. An operation that ended before another began comes first. Iterators read a
//! key as a get does.

use crate::dice::Dice;
use crate::runner::{builder, in_any_order};
use lsmith::env::MemEnv;
use lsmith::{Keyspace, PersistMode};
use shuttle::thread;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

const THREADS: usize = 3;
const OPS: usize = 5;
const KEYS: usize = 2;

#[derive(Clone, Copy, Debug)]
enum What {
    /// The value, or `None` for a delete.
    Write(Option<u64>),
    Read(Option<u64>),
}

/// An operation on a key, with its start and its end.
#[derive(Clone, Copy, Debug)]
struct Done {
    key: usize,
    what: What,
    begun: u64,
    ended: u64,
}

/// Returns true if some order of the operations explains their results. Tries all orders: the
/// remaining operations and the value determine what is left to try.
fn is_linearizable(ops: &[Done]) -> bool {
    fn search(
        ops: &[Done],
        left: u32,
        value: Option<u64>,
        tried: &mut BTreeSet<(u32, Option<u64>)>,
    ) -> bool {
        if left == 0 {
            return true;
        }
        if !tried.insert((left, value)) {
            return false;
        }
        let is_left = |index: &usize| left & (1 << index) != 0;
        let first_end = (0..ops.len()).filter(is_left).map(|index| ops[index].ended).min();
        (0..ops.len()).filter(is_left).any(|index| {
            let op = &ops[index];
            let next = match op.what {
                _ if Some(op.begun) > first_end => return false,
                What::Write(written) => written,
                What::Read(read) if read == value => value,
                What::Read(_) => return false,
            };
            search(ops, left & !(1 << index), next, tried)
        })
    }
    search(ops, (1 << ops.len()) - 1, None, &mut BTreeSet::new())
}

fn act(space: &Keyspace, key: usize, value: u64, dice: &mut Dice) -> What {
    let read = |bytes: &[u8]| u64::from_be_bytes(bytes[..8].try_into().unwrap());
    let name = format!("key{key}");
    match dice.below(8) {
        0..=2 => {
            let mut bytes = value.to_be_bytes().to_vec();
            bytes.resize(60, 0);
            space.put(&name, bytes).unwrap();
            What::Write(Some(value))
        }
        3 => {
            space.delete(&name).unwrap();
            What::Write(None)
        }
        4..=5 => What::Read(space.get(&name).unwrap().map(|bytes| read(&bytes))),
        6 => What::Read(space.store().snapshot().get(space, &name).unwrap().map(|b| read(&b))),
        _ => What::Read(space.prefix(&name).next().map(|entry| read(&entry.unwrap().1))),
    }
}

fn program(dice: &mut Dice) {
    let env = MemEnv::new();
    let store = builder(&env, dice).open().unwrap();
    let space = store.keyspace("default").unwrap();
    let clock = Arc::new(AtomicU64::new(0));
    let done = Arc::new(Mutex::new(Vec::new()));
    let mut threads = Vec::new();
    for thread in 0..THREADS {
        let space = space.clone();
        let clock = clock.clone();
        let done = done.clone();
        let mut dice = Dice::new(dice.number());
        threads.push(thread::spawn(move || {
            for op in 0..OPS {
                let key = dice.below(KEYS);
                let value = (thread * OPS + op + 1) as u64;
                let begun = clock.fetch_add(1, SeqCst);
                let what = act(&space, key, value, &mut dice);
                let ended = clock.fetch_add(1, SeqCst);
                done.lock().unwrap().push(Done { key, what, begun, ended });
            }
        }));
    }
    match dice.below(3) {
        0 => space.flush().unwrap(),
        1 => store.persist(PersistMode::SyncData).unwrap(),
        _ => thread::yield_now(),
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let done = done.lock().unwrap();
    for key in 0..KEYS {
        let ops: Vec<Done> = done.iter().filter(|op| op.key == key).copied().collect();
        assert!(is_linearizable(&ops), "{ops:#?}");
    }
}

#[test]
fn single_keys_are_linearizable_in_any_order_of_events() {
    in_any_order(150, program);
}

#[test]
fn the_checker_refuses_what_no_order_explains() {
    let op = |what, begun, ended| Done { key: 0, what, begun, ended };
    let write = |value| What::Write(Some(value));
    // Beside a write either value may be read, but not the old one after the new one.
    let beside = [op(write(1), 0, 1), op(write(2), 2, 9), op(What::Read(Some(2)), 3, 4)];
    let later = |value| [&beside[..], &[op(What::Read(Some(value)), 5, 6)]].concat();
    assert!(is_linearizable(&later(2)));
    assert!(!is_linearizable(&later(1)));
    // What ended before a read began is read.
    assert!(!is_linearizable(&[op(write(1), 0, 1), op(What::Read(None), 2, 3)]));
    assert!(is_linearizable(&[op(write(1), 0, 2), op(What::Read(None), 1, 3)]));
}
