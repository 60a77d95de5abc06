//! Power loss at any moment beside writers that sync.
//!
//! Promised: the store then holds a prefix of the history: each batch whole, no batch without all
//! batches acknowledged before it began, and every batch whose sync was acknowledged before power
//! was lost. The same holds after a second loss, whether syncs failed or not.

use crate::dice::Dice;
use crate::runner::{builder, in_any_order};
use lsmith::env::{Effect, Fault, FaultEnv, Lasting, Loss, MemEnv, OpClass};
use lsmith::{Batch, Builder, PersistMode, Store};
use shuttle::thread;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

const WRITERS: usize = 3;
const BATCHES: u64 = 4;

/// A batch that was tried.
#[derive(Clone, Copy, Debug)]
struct Tried {
    writer: usize,
    number: u64,
    begun: u64,
    /// `None` if it failed, or is not acknowledged yet.
    ended: Option<u64>,
    is_synced: bool,
}

/// Returns the last batch of each writer in `store`. Asserts that all are whole.
fn found_in(store: &Store) -> [u64; WRITERS] {
    let spaces = ["left", "right"].map(|name| store.existing_keyspace(name).unwrap());
    std::array::from_fn(|writer| {
        let last = spaces.each_ref().map(|space| {
            let found = space.get(format!("last{writer}")).unwrap();
            found.map_or(0, |value| u64::from(value[0]))
        });
        assert_eq!(last[0], last[1], "a batch is torn");
        for space in &spaces {
            for number in 1..=BATCHES {
                let found = space.get(format!("{writer}/{number}")).unwrap();
                assert_eq!(found.is_some(), number <= last[0], "not a prefix");
            }
        }
        last[0]
    })
}

fn check(found: [u64; WRITERS], tried: &[Tried]) {
    let is_there = |tried: &Tried| tried.number <= found[tried.writer];
    for later in tried.iter().filter(|tried| is_there(tried)) {
        for earlier in tried {
            let before = earlier.ended.is_some_and(|ended| ended < later.begun);
            assert!(!before || is_there(earlier), "{later:?} is there without {earlier:?}");
        }
    }
    for synced in tried.iter().filter(|tried| tried.is_synced && tried.ended.is_some()) {
        assert!(is_there(synced), "{synced:?} was synced and is lost");
    }
}

/// Writers, merges, and a fault now and then.
fn program(dice: &mut Dice) {
    let builder = builder(&MemEnv::new(), dice);
    let fails = dice.chance(30);
    let class = Some(*dice.pick(&[OpClass::LogSync, OpClass::Sync, OpClass::Create]));
    run(builder, fails.then_some(class), dice);
}

/// Writers alone, and a sync of the log that fails.
fn failing_sync(dice: &mut Dice) {
    let builder = builder(&MemEnv::new(), dice).memtable_bytes(1 << 20).threads(1);
    run(builder, Some(Some(OpClass::LogSync)), dice);
}

/// Makes one operation of class `fails` fail.
fn run(builder: Builder, fails: Option<Option<OpClass>>, dice: &mut Dice) {
    let disk = MemEnv::new();
    let env = FaultEnv::over(disk.clone());
    let store = builder.env(Arc::new(env.clone())).open().unwrap();
    let _ = ["left", "right"].map(|name| store.keyspace(name).unwrap());
    if let Some(class) = fails {
        let kind = std::io::ErrorKind::Other;
        let fault = Fault { class, after: dice.below(3) as u64, lasting: Lasting::Once, kind };
        let effects =
            [Effect::Nothing, Effect::Partly, Effect::Wholly, Effect::Dropped, Effect::Dropped];
        env.set_with(fault, *dice.pick(&effects));
    }
    let clock = Arc::new(AtomicU64::new(0));
    let tried: Arc<Mutex<Vec<Tried>>> = Arc::default();
    let losses: Arc<Mutex<Vec<(Vec<Tried>, MemEnv)>>> = Arc::default();
    let mut threads = Vec::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        let clock = clock.clone();
        let tried = tried.clone();
        let disk = disk.clone();
        let losses = losses.clone();
        let mut dice = Dice::new(dice.number());
        threads.push(thread::spawn(move || {
            let spaces = ["left", "right"].map(|name| store.existing_keyspace(name).unwrap());
            for number in 1..=BATCHES {
                let mut batch = Batch::new();
                for space in &spaces {
                    batch.put(space, format!("last{writer}"), [number as u8]);
                    batch.put(space, format!("{writer}/{number}"), [0; 40]);
                }
                let modes = [PersistMode::Buffer, PersistMode::SyncData, PersistMode::SyncAll];
                let mode = *dice.pick(&modes);
                let is_synced = mode != PersistMode::Buffer;
                let begun = clock.fetch_add(1, SeqCst);
                let new = Tried { writer, number, begun, ended: None, is_synced };
                let at = {
                    let mut tried = tried.lock().unwrap();
                    tried.push(new);
                    tried.len() - 1
                };
                if store.write(batch, mode).is_err() {
                    return;
                }
                tried.lock().unwrap()[at].ended = Some(clock.fetch_add(1, SeqCst));
                if is_synced {
                    let known = tried.lock().unwrap().clone();
                    let lost = disk.power_loss(0, Loss::Everything);
                    losses.lock().unwrap().push((known, lost));
                }
            }
        }));
    }
    (0..dice.below(40)).for_each(|_| thread::yield_now());
    // Looked at before power goes: what is acknowledged later does not count.
    let known = tried.lock().unwrap().clone();
    let lost = disk.power_loss(dice.number(), *dice.pick(&Loss::ALL));
    let all = tried.lock().unwrap().clone();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(store);
    // What was begun between the two looks may be there.
    let mut then = known.clone();
    then.extend(all[known.len()..].iter().map(|tried| Tried { ended: None, ..*tried }));
    for (known, lost) in losses.lock().unwrap().drain(..) {
        let store = Store::builder(crate::runner::DIR).env(Arc::new(lost)).open().unwrap();
        check(found_in(&store), &known);
    }
    second_life(&lost, &then, dice);
    second_life(&disk, &tried.lock().unwrap(), dice);
}

/// Opens what is on `disk`, checks it, writes with sync, and checks it again after another loss.
fn second_life(disk: &MemEnv, tried: &[Tried], dice: &mut Dice) {
    let builder = builder(disk, dice);
    let store = builder.open().unwrap();
    let found = found_in(&store);
    check(found, tried);
    let space = store.existing_keyspace("left").unwrap();
    let mut batch = Batch::new();
    batch.put(&space, "again", "x");
    store.write(batch, PersistMode::SyncData).unwrap();
    if dice.chance(50) {
        store.flush().unwrap();
    }
    let disk = disk.power_loss(dice.number(), *dice.pick(&Loss::ALL));
    drop((space, store));
    let store = Store::builder(crate::runner::DIR).env(Arc::new(disk)).open().unwrap();
    assert_eq!(found_in(&store), found);
    assert!(store.existing_keyspace("left").unwrap().contains("again").unwrap());
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn no_sync_after_a_failed_one_is_believed_in_any_order_of_events() {
    in_any_order(300, failing_sync);
}

#[test]
fn what_was_synced_survives_power_loss_in_any_order_of_events() {
    in_any_order(150, program);
}
