//! Power loss, and the death of the process, at any moment.
//!
//! Promised: after power loss the store opens, and holds a prefix of the batches, in their order.
//! The prefix includes every batch whose write asked for a sync and returned, and all batches
//! before it. No batch is torn, also not across keyspaces. After the death of the process the store
//! holds every acknowledged batch. Whatever a reopened store has shown stays. Either way the store
//! finds no damage in itself, and goes on working until the next accident.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{Batches, Progress, any_mode, mapped_or_not, now_and_then, restless};
use crate::frame::small::plain;
use lsmith::env::{Env, Fault, FaultEnv, Lasting, Loss, MemEnv};
use lsmith::{Keyspace, KeyspaceOptions, PersistMode, Store};
use std::io::ErrorKind;
use std::sync::Arc;

fn open(env: &(impl Env + Clone), lockstep: bool, dice: &mut Dice) -> lsmith::Result<Store> {
    restless(plain(env).lockstep(lockstep), dice).open()
}

/// Opens the store after an accident, and checks it against what was written before.
fn examine(env: &MemEnv, batches: Batches, floor: u64, before: Progress, dice: &mut Dice) -> u64 {
    let lockstep = dice.chance(50);
    let store = open(&mapped_or_not(env, dice), lockstep, dice).unwrap();
    let found = batches.check(&store);
    assert!(found >= floor, "batch {floor} was promised, found {found}; {before:?}");
    assert!(found <= before.tried, "batch {found} was never tried; {before:?}");
    assert_eq!(store.verify().unwrap().iter().map(|e| e.to_string()).collect::<Vec<_>>(), [""; 0]);
    found
}

/// Writes until power is lost after `operations` operations on the disk.
fn work_until_cut(
    env: &MemEnv,
    batches: Batches,
    progress: &mut Progress,
    operations: u64,
    dice: &mut Dice,
) -> lsmith::Result<()> {
    let cut = FaultEnv::over(mapped_or_not(env, dice));
    let kind = ErrorKind::Other;
    cut.set(Fault { class: None, after: operations, lasting: Lasting::Forever, kind });
    let store = open(&cut, dice.chance(70), dice)?;
    for _ in 0..400 {
        batches.go_on(&store, progress, any_mode(dice))?;
        now_and_then(&store, dice)?;
        if dice.chance(3) {
            store.persist(PersistMode::SyncData)?;
            progress.synced = progress.acknowledged;
        }
    }
    Ok(())
}

#[test]
fn cut_at_any_operation_and_again_after_that() {
    with_seeds(100, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches::new(seed);
        let mut env = MemEnv::new();
        let mut progress = Progress::default();
        for _ in 0..5 {
            let limit = *dice.pick(&[20, 300, 3000]);
            let operations = dice.below(limit) as u64;
            // How it ends does not matter: the disk is as it was at the cut.
            let _ = work_until_cut(&env, batches, &mut progress, operations, &mut dice);
            let floor;
            (env, floor) = match dice.below(4) {
                0 => (env.process_crash_clone(), progress.acknowledged),
                _ => (env.power_loss(dice.number(), *dice.pick(&Loss::ALL)), progress.synced),
            };
            let found = examine(&env, batches, floor, progress, &mut dice);
            progress = Progress { tried: found, acknowledged: found, synced: found };
            if dice.chance(30) {
                env = env.process_crash_clone();
            }
        }
    });
}

#[test]
fn copies_of_the_disk_taken_while_threads_merge() {
    with_seeds(8, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches::new(seed);
        let env = MemEnv::new();
        let store = open(&env, false, &mut dice).unwrap();
        let mut progress = Progress::default();
        for _ in 0..400 {
            batches.go_on(&store, &mut progress, any_mode(&mut dice)).unwrap();
            now_and_then(&store, &mut dice).unwrap();
            if dice.chance(8) {
                let copy = env.power_loss(dice.number(), *dice.pick(&Loss::ALL));
                examine(&copy, batches, progress.synced, progress, &mut dice);
                let copy = env.process_crash_clone();
                examine(&copy, batches, progress.acknowledged, progress, &mut dice);
            }
        }
    });
}

/// Batches that were left out when the store was opened must not reappear from below later writes.
#[test]
fn a_log_that_was_left_out_stays_away() {
    with_seeds(40, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches { value_bytes: 1500, ..Batches::new(seed) };
        let open = |env: &MemEnv| {
            let builder = plain(env).log_bytes(64 << 10);
            builder.memtable_bytes(4 << 20).lockstep(true).open().unwrap()
        };
        let env = MemEnv::new();
        let store = open(&env);
        let mut progress = Progress::default();
        for _ in 0..60 {
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        }
        // Two logs. A half of each is lost.
        let env = env.crash_clone(dice.number(), 0.5);
        let store = open(&env);
        let found = batches.check(&store);
        let mut progress = Progress { tried: found, acknowledged: found, synced: found };
        batches.go_on(&store, &mut progress, PersistMode::SyncData).unwrap();
        let env = env.crash_clone(dice.number(), 0.0);
        assert_eq!(batches.check(&open(&env)), progress.synced);
    });
}

/// The log format relies on devices that store a sector completely or not at all. On a device that
/// does not, the store may refuse to open, but it reads nothing that was not written, and loses
/// nothing that was synced.
#[test]
fn a_torn_sector_of_a_log_is_told_or_left_out() {
    with_seeds(300, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches::new(2 * seed);
        let open = |env: &MemEnv| {
            let builder = plain(env).lockstep(true);
            builder.log_bytes(64 << 10).open()
        };
        let env = MemEnv::new();
        let store = open(&env).unwrap();
        let mut progress = Progress::default();
        batches.go_on(&store, &mut progress, PersistMode::SyncData).unwrap();
        for _ in 0..1 + dice.below(5) {
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        }
        match open(&env.power_loss(seed, Loss::Torn { logs: true })) {
            Ok(store) => assert!(batches.check(&store) >= progress.synced),
            Err(error) => {
                assert_eq!(error.kind(), lsmith::ErrorKind::Corruption, "{error}");
                let path = error.path().unwrap().to_string_lossy();
                assert!(path.ends_with(".wal") && error.offset() > Some(32), "{error}");
            }
        }
    });
}

/// A change of the store, with what to call it, and what it looks for after power loss.
type StoreChange = (&'static str, fn(&Store), fn(&Store) -> bool);

fn space(store: &Store) -> Keyspace {
    store.existing_keyspace("first").unwrap()
}

fn member() -> KeyspaceOptions {
    KeyspaceOptions { group: Some("group".into()), ..KeyspaceOptions::default() }
}

fn changes() -> [StoreChange; 10] {
    [
        (
            "a policy",
            |store| space(store).set_merge_policy("tiered(ratio=7)").unwrap(),
            |store| space(store).merge_policy() == "tiered(ratio=7)",
        ),
        (
            "a compression",
            |store| space(store).set_compression("lz4").unwrap(),
            |store| space(store).compression() == "lz4",
        ),
        (
            "a keyspace",
            |store| drop(store.keyspace("second").unwrap()),
            |store| store.existing_keyspace("second").is_ok(),
        ),
        (
            "a group",
            |store| drop(store.keyspace_with("second", &member()).unwrap()),
            |store| store.existing_keyspace("second").is_ok(),
        ),
        (
            "a keyspace of a group",
            |store| drop(store.keyspace_with("grouped-2", &member()).unwrap()),
            |store| store.existing_keyspace("grouped-2").is_ok(),
        ),
        (
            "a policy of a group",
            |store| {
                let space = store.existing_keyspace("grouped").unwrap();
                space.set_merge_policy("tiered(ratio=7)").unwrap();
            },
            |store| {
                let space = store.existing_keyspace("grouped").unwrap();
                space.merge_policy() == "tiered(ratio=7)"
            },
        ),
        (
            "a name",
            |store| store.rename_keyspace("other", "renamed").unwrap(),
            |store| store.existing_keyspace("renamed").is_ok(),
        ),
        (
            "a name in a group",
            |store| store.rename_keyspace("grouped", "renamed").unwrap(),
            |store| store.existing_keyspace("renamed").is_ok(),
        ),
        (
            "a drop",
            |store| store.drop_keyspace("other").unwrap(),
            |store| store.existing_keyspace("other").is_err(),
        ),
        (
            "a clearing",
            |store| store.existing_keyspace("other").unwrap().clear().unwrap(),
            |store| store.existing_keyspace("other").unwrap().is_empty().unwrap(),
        ),
    ]
}

/// What broke: a changed policy or compression, a new name, and a new keyspace of a group survived
/// power loss, while a write that had returned before the change did not.
#[test]
fn a_write_that_returned_before_a_change_survives_with_it() {
    for (name, change, is_there) in changes() {
        let env = MemEnv::new();
        let store = plain(&env).lockstep(true);
        let store = store.open().unwrap();
        let first = store.keyspace("first").unwrap();
        let other = store.keyspace("other").unwrap();
        let grouped = store.keyspace_with("grouped", &member()).unwrap();
        other.put("key", "value").unwrap();
        store.persist(PersistMode::SyncAll).unwrap();
        first.put("key", "value").unwrap();
        grouped.put("key", "value").unwrap();
        change(&store);
        let store = Store::builder("/store").env(Arc::new(env.crash_clone(1, 0.0)));
        let store = store.open().unwrap();
        assert!(is_there(&store), "{name} is lost");
        assert!(space(&store).get("key").unwrap().is_some(), "{name} outlives an earlier write");
    }
}
