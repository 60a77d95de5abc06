//! A store at work for a long time, on real files, with everything going on at once.
//!
//! Promised: answers stay right, and files, memory and open files do not grow beyond what the work
//! needs. `LSMITH_SOAK=3600 cargo test --release -p lsmith --test it soak -- --nocapture` runs for
//! an hour and prints its state every ten seconds. Without it a few thousand rounds are run.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{POLICIES, any_mode};
use crate::frame::history::{History, Maps, SPACES, check_snapshot};
use lsmith::{PersistMode, Snapshot, Store};
use std::env;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rounds between two measurements of the store.
const ROUNDS_PER_LOOK: usize = 500;
/// Steps after which a new store is begun with a new history: checking reads the whole history.
const STEPS_MAX: usize = 4000;

/// The resources that a store takes.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    files: usize,
    file_bytes: u64,
    /// The memory of this process; 0 if the system does not say.
    open_files: usize,
    resident_bytes: u64,
}

fn look(dir: &Path) -> Taken {
    let lengths = fs::read_dir(dir).unwrap().filter_map(|entry| entry.ok()?.metadata().ok());
    let lengths: Vec<u64> = lengths.map(|file| file.len()).collect();
    let pages = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    Taken {
        files: lengths.len(),
        file_bytes: lengths.iter().sum(),
        open_files: fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
        resident_bytes: pages.unwrap_or(0) * 4096,
    }
}

fn open(dir: &Path, dice: &mut Dice) -> Store {
    let builder = Store::builder(dir).policy(*dice.pick(&POLICIES)).threads(1 + dice.below(3));
    builder.log_bytes(64 << 10).log_bytes_max(1 << 20).cache_bytes(1 << 20).open().unwrap()
}

/// A run, and when it last printed its state.
struct Run {
    start: Instant,
    until: Option<Instant>,
    told: Instant,
    /// The number of stores that have ended, and the steps of all of them.
    stores: usize,
    steps: usize,
}

/// Runs one store from its creation to its end.
fn live(dir: &Path, dice: &mut Dice, run: &mut Run) {
    let mut history = History::default();
    let mut store = open(dir, dice);
    let mut held: Option<(Snapshot, Maps)> = None;
    for round in 1.. {
        let over = match run.until {
            Some(until) => Instant::now() >= until,
            None => round > 2000,
        };
        if over || history.acknowledged >= STEPS_MAX {
            break;
        }
        history.go_on(&store, any_mode(dice), dice).unwrap();
        if history.has_dropped() {
            held = None;
        }
        if dice.chance(2) {
            let space = store.existing_keyspace(SPACES[dice.below(3)]).unwrap();
            match dice.below(6) {
                0 => space.set_merge_policy(*dice.pick::<&str>(&POLICIES)).unwrap(),
                1 => space.merge().unwrap(),
                2 => store.flush().unwrap(),
                3 => store.persist(PersistMode::SyncData).unwrap(),
                4 => held = Some((store.snapshot(), history.maps.clone())),
                _ => {
                    held = None;
                    drop(space);
                    drop(store);
                    store = open(dir, dice);
                }
            }
        }
        if round % ROUNDS_PER_LOOK == 0 {
            assert_eq!(history.check(&store), history.acknowledged);
            if let Some((snapshot, maps)) = &held {
                check_snapshot(snapshot, maps).unwrap();
            }
            store.settle().unwrap();
            let taken = look(dir);
            // 3 x 60 keys with values below 1.5 kB: the rest is logs, manifests, and small tables.
            assert!(taken.files < 400 && taken.file_bytes < 64 << 20, "{taken:?}");
            if run.until.is_some() && run.told.elapsed() > Duration::from_secs(10) {
                let seconds = run.start.elapsed().as_secs();
                eprintln!("{seconds} s, store {}, step {round}: {taken:?}", run.stores + 1);
                run.told = Instant::now();
            }
        }
    }
    assert_eq!(history.check(&store), history.acknowledged);
    assert!(store.verify().unwrap().is_empty());
    run.stores += 1;
    run.steps += history.acknowledged;
}

#[test]
fn a_store_at_work_for_long_stays_right_and_small() {
    let seconds = env::var("LSMITH_SOAK").ok().map(|text| text.parse::<u64>().unwrap());
    let start = Instant::now();
    let until = seconds.map(|seconds| start + Duration::from_secs(seconds));
    with_seeds(1, |seed| {
        let mut dice = Dice::new(seed);
        let mut first: Option<Taken> = None;
        let mut run = Run { start, until, told: start, stores: 0, steps: 0 };
        loop {
            let dir = tempfile::tempdir().unwrap();
            live(dir.path(), &mut dice, &mut run);
            let now = look(dir.path());
            let first = *first.get_or_insert(now);
            // Handles balance: no store that is closed keeps a file open.
            assert!(now.open_files <= first.open_files + 8, "{first:?}, now {now:?}");
            assert!(now.resident_bytes <= first.resident_bytes * 2 + (64 << 20), "{now:?}");
            if until.is_none_or(|until| Instant::now() >= until) {
                break;
            }
        }
        let Run { stores, steps, .. } = run;
        eprintln!("{} s, {stores} stores, {steps} steps", start.elapsed().as_secs());
    });
}
