//! Six lives of a store, each ended by an accident.
//!
//! Promised: whatever happens in a life, and however it ends, the next life finds an exact prefix
//! of the history. The prefix has all acknowledged steps if the process died, and all synced steps
//! if power was lost. The store finds no damage in itself. It writes, syncs, closes and opens again
//! with all of it there, and the next accident follows.

use crate::dice::{Dice, with_new_seeds};
use crate::frame::batches::{GROUP_POLICIES, POLICIES, any_mode, mapped_or_not, restless};
use crate::frame::history::{History, Maps, SPACES, check_snapshot};
use crate::frame::small::DIR;
use lsmith::env::{Env, Fault, FaultEnv, Lasting, Loss, MemEnv, OpClass};
use lsmith::{PersistMode, Snapshot, Store};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

const LIVES: usize = 6;
const SNAPSHOTS_MAX: usize = 3;

fn open_at(dir: &str, env: impl Env, dice: &mut Dice) -> lsmith::Result<Store> {
    let builder = Store::builder(dir).env(Arc::new(env)).lockstep(dice.chance(60));
    let builder = restless(builder, dice);
    // Memory that stays is copied, and tables are rewritten if little of them is needed.
    builder.log_bytes_max(*dice.pick(&[64 << 10, 1 << 20])).rewrite_below(0.5).open()
}

/// Snapshots that are held while a store lives.
#[derive(Default)]
struct Held(Vec<(Snapshot, Maps)>);

impl Held {
    fn look(&mut self, store: &Store, history: &History, dice: &mut Dice) -> lsmith::Result<()> {
        match dice.below(3) {
            0 if history.acknowledged > 0 && self.0.len() < SNAPSHOTS_MAX => {
                self.0.push((store.snapshot(), history.maps.clone()));
            }
            1 if !self.0.is_empty() => {
                let (snapshot, maps) = &self.0[dice.below(self.0.len())];
                check_snapshot(snapshot, maps)?;
            }
            2 if !self.0.is_empty() => drop(self.0.swap_remove(dice.below(self.0.len()))),
            _ => {}
        }
        Ok(())
    }
}

/// A reader in another process, on the same disk. Its leases outlive it if the machine dies.
#[derive(Default)]
struct Beside {
    held: Option<(Snapshot, Maps)>,
    store: Option<Store>,
}

impl Beside {
    /// Opens or refreshes the store, and checks what it shows: all acknowledged steps, whatever has
    /// failed in the writer, and what its snapshot showed before.
    fn look(&mut self, disk: &MemEnv, history: &mut History, dice: &mut Dice) {
        let refreshed = self.store.take().filter(|_| dice.chance(80));
        if let Some(store) = &refreshed {
            store.refresh().unwrap();
        } else {
            self.held = None;
        }
        let open = || {
            let env = Arc::new(mapped_or_not(disk, dice));
            Store::builder(DIR).env(env).read_only(true).open()
        };
        let store = match refreshed.map_or_else(open, Ok) {
            Ok(store) => store,
            Err(error) => {
                assert_eq!(history.acknowledged, 0, "{error}");
                return;
            }
        };
        if let Some((snapshot, maps)) = &self.held {
            check_snapshot(snapshot, maps).unwrap();
        }
        let found = history.check(&store);
        let acknowledged = history.acknowledged;
        assert!(found >= acknowledged, "step {acknowledged} was acknowledged, found {found}");
        if found == acknowledged && found > 0 && dice.chance(30) {
            self.held = Some((store.snapshot(), history.maps.clone()));
        }
        self.store = Some(store);
    }
}

/// Does something besides writes.
fn do_more(store: &Store, history: &mut History, dice: &mut Dice) -> lsmith::Result<()> {
    let space = store.existing_keyspace(SPACES[dice.below(SPACES.len())])?;
    match dice.below(8) {
        0 => store.flush()?,
        1 => space.flush()?,
        2 => space.merge()?,
        3 | 4 if history.in_group => space.set_merge_policy(*dice.pick::<&str>(&GROUP_POLICIES))?,
        3 | 4 => space.set_merge_policy(*dice.pick::<&str>(&POLICIES))?,
        5 => space.set_compression(dice.pick::<&str>(&["none", "lz4", "none,zstd"]))?,
        6 => store.settle()?,
        _ => store.persist(PersistMode::SyncData)?,
    }
    if dice.chance(50) {
        store.persist(*dice.pick(&[PersistMode::SyncData, PersistMode::SyncAll]))?;
        history.synced = history.acknowledged;
    }
    Ok(())
}

fn work(
    store: &Store,
    disk: &MemEnv,
    history: &mut History,
    beside: &mut Beside,
    dice: &mut Dice,
) -> lsmith::Result<()> {
    let has_reader = dice.chance(40);
    let mut held = Held::default();
    for _ in 0..dice.below(200) {
        history.go_on(store, any_mode(dice), dice)?;
        if history.has_dropped() {
            held.0.clear();
            beside.held = None;
        }
        if dice.chance(10) {
            held.look(store, history, dice)?;
        }
        if has_reader && dice.chance(8) {
            beside.look(disk, history, dice);
        }
        if dice.chance(3) {
            do_more(store, history, dice)?;
        }
    }
    held.0.iter().try_for_each(|(snapshot, maps)| check_snapshot(snapshot, maps))
}

/// Sets the faults of a life, if any.
fn set_faults(env: &FaultEnv, dice: &mut Dice) {
    let after = dice.below(*dice.clone().pick(&[30, 300, 3000])) as u64;
    let kind = *dice.pick(&[ErrorKind::Other, ErrorKind::StorageFull]);
    let class = *dice.pick(&OpClass::ALL);
    let effect = *dice.pick(class.effects());
    match dice.below(10) {
        0..4 => {
            let fault = Fault { class: None, after, lasting: Lasting::Forever, kind };
            env.set_with(fault, effect);
        }
        4..7 => {
            let lasting = *dice.pick(&[Lasting::Once, Lasting::Forever]);
            env.set_with(Fault { class: Some(class), after: after / 10, lasting, kind }, effect);
        }
        _ => {}
    }
}

/// Runs one life on `disk`, which may end with the store open. Returns what is left of the disk,
/// and the number of steps that must be there.
fn live(disk: &MemEnv, history: &mut History, dice: &mut Dice) -> (MemEnv, usize) {
    let env = FaultEnv::over(mapped_or_not(disk, dice));
    let early = dice.chance(30);
    if early {
        set_faults(&env, dice);
    }
    let store = open_at(DIR, env.clone(), dice);
    if !early {
        set_faults(&env, dice);
    }
    let mut closed = false;
    let mut beside = Beside::default();
    if let Ok(store) = &store {
        let result = work(store, disk, history, &mut beside, dice);
        closed = result.is_ok() && dice.chance(30);
    }
    if closed {
        env.clear();
        drop(store);
        // Closing syncs, unless a write of the log had failed: then its last write failed too.
        history.synced = history.acknowledged;
    }
    match dice.below(3) {
        0 => (disk.process_crash_clone(), history.acknowledged),
        _ => {
            let loss = *dice.pick(&Loss::ALL);
            (disk.power_loss(dice.number(), loss), history.synced)
        }
    }
}

/// Checkpoints of lives before, each with the history of the store that it has become.
#[derive(Default)]
struct Checkpoints(Vec<(String, History)>);

impl Checkpoints {
    /// Makes a checkpoint of `store`, which holds `history`.
    fn make(&mut self, store: &Store, history: &History) {
        let dir = format!("/checkpoint/{}", self.0.len());
        store.checkpoint(&dir).unwrap();
        self.0.push((dir, history.clone()));
    }

    /// Opens each checkpoint, checks it, and writes to it, so that files which it shares with the
    /// store get dead parts.
    fn live(&mut self, disk: &MemEnv, dice: &mut Dice) {
        for (dir, history) in &mut self.0 {
            let store = open_at(dir, mapped_or_not(disk, dice), dice).unwrap();
            assert_eq!(history.check(&store), history.acknowledged, "{dir}");
            assert_eq!(store.verify().unwrap().len(), 0, "{dir}");
            for _ in 0..dice.below(30) {
                history.go_on(&store, PersistMode::Buffer, dice).unwrap();
            }
            if dice.chance(50) {
                store.flush().unwrap();
            }
        }
    }
}

/// Opens what an accident has left, checks it, and asserts that it can go on.
fn examine(
    disk: &MemEnv,
    history: &mut History,
    floor: usize,
    checkpoints: &mut Checkpoints,
    dice: &mut Dice,
) {
    let store = open_at(DIR, mapped_or_not(disk, dice), dice).unwrap();
    let leases = disk.list(Path::new("/store/readers")).unwrap_or_default();
    assert!(leases.is_empty(), "readers that are gone keep {leases:?}");
    let found = history.check(&store);
    assert!(found >= floor, "step {floor} was promised, found {found}");
    let damage = store.verify().unwrap();
    assert!(damage.is_empty(), "{damage:?}");
    if let Ok(space) = store.existing_keyspace(SPACES[0]) {
        assert_eq!(space.group().is_some(), history.in_group);
    }
    history.go_back_to(found);
    for _ in 0..dice.below(4) {
        let mode = *dice.pick(&[PersistMode::SyncData, PersistMode::Buffer]);
        history.go_on(&store, mode, dice).unwrap();
    }
    if dice.chance(40) {
        checkpoints.make(&store, history);
    }
    drop(store);
    checkpoints.live(disk, dice);
    let store = open_at(DIR, mapped_or_not(disk, dice), dice).unwrap();
    assert_eq!(history.check(&store), history.acknowledged);
    history.synced = history.acknowledged;
}

#[test]
fn six_lives_each_find_what_the_ones_before_were_promised() {
    with_new_seeds(30, |seed| {
        let mut dice = Dice::new(seed);
        let mut disk = MemEnv::new();
        let mut history = History::default();
        history.in_group = dice.chance(40);
        let mut checkpoints = Checkpoints::default();
        for _ in 0..LIVES {
            let (left, floor) = live(&disk, &mut history, &mut dice);
            disk = left;
            examine(&disk, &mut history, floor, &mut checkpoints, &mut dice);
        }
    });
}
