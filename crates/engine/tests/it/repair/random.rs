//! Stores with any history and any damage.

use super::check_rest;
use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{Batches, Progress, any_mode, now_and_then, restless};
use crate::frame::contents::maps;
use crate::frame::small::plain_at;
use lsmith::env::{Env, MemEnv};
use lsmith::{RepairOptions, RepairReport, Store, repair};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

const OLD: &str = "/old";
const NEW: &str = "/new";
const BATCHES: u64 = 250;

/// Returns the disk of a process that was killed after this many batches.
fn killed(batches: Batches, dice: &mut Dice) -> MemEnv {
    let disk = MemEnv::new();
    let builder = plain_at(OLD, &disk);
    let store = restless(builder, dice).open().unwrap();
    let mut progress = Progress::default();
    for _ in 0..BATCHES {
        batches.go_on(&store, &mut progress, any_mode(dice)).unwrap();
        now_and_then(&store, dice).unwrap();
    }
    disk.process_crash_clone()
}

fn repaired(disk: &MemEnv) -> (RepairReport, Store) {
    let options = RepairOptions { env: Arc::new(disk.clone()), ..RepairOptions::default() };
    let report = repair(&options, OLD, NEW).unwrap();
    let store = plain_at(NEW, disk).open().unwrap();
    assert_eq!(store.verify().unwrap().len(), 0);
    (report, store)
}

#[test]
fn a_whole_store_is_copied_whatever_has_become_of_it() {
    with_seeds(12, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches::new(seed);
        let disk = killed(batches, &mut dice);
        let (report, store) = repaired(&disk);
        assert!(report.is_exact() && report.findings.is_empty(), "{report:#?}");
        assert_eq!(batches.check(&store), BATCHES);
    });
}

#[test]
fn after_power_loss_what_opening_shows_is_copied() {
    with_seeds(12, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches::new(seed);
        let builder = |disk: &MemEnv| plain_at(OLD, disk);
        let disk = killed(batches, &mut dice).crash_clone(seed, 0.7);
        let expected = batches.check(&builder(&disk.process_crash_clone()).open().unwrap());
        let (report, store) = repaired(&disk);
        // Where a whole log is missing, what is behind it is saved: a prefix it is not.
        if report.is_exact() {
            assert_eq!(batches.check(&store), expected);
        }
    });
}

#[test]
fn a_damaged_table_costs_keys_that_are_told_whatever_its_history() {
    with_seeds(12, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches::new(seed);
        let disk = killed(batches, &mut dice);
        let [left, right] = batches.after(BATCHES);
        let expected = [("left".to_string(), left), ("right".to_string(), right)].into();
        let names = disk.list(Path::new(OLD)).unwrap();
        let tables = names.iter().filter(|name| name.ends_with(".table"));
        for name in tables.take(20) {
            let disk = disk.process_crash_clone();
            let path = Path::new(OLD).join(name);
            let bytes = disk.file_bytes(&path).unwrap();
            // One that was just being written when the process died.
            if bytes == 0 {
                continue;
            }
            let at = dice.below(bytes as usize);
            disk.flip(&path, at as u64, 1 << dice.below(8)).unwrap();
            let (report, store) = repaired(&disk);
            assert!(report.findings.iter().all(|finding| finding.path == path), "{report:#?}");
            check_rest(&report, &maps(&store), &expected);
        }
    });
}

/// Returns all values of a key in any batch, in any keyspace.
fn history(batches: Batches) -> BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>> {
    let mut history = BTreeMap::<_, BTreeSet<_>>::new();
    for (_, key, value) in (1..=BATCHES).flat_map(|number| batches.ops(number)) {
        history.entry(key).or_default().extend(value);
    }
    history
}

/// Whatever is damaged, a repair ends, its store has no damage, and no value in it is made up.
#[test]
fn no_damage_keeps_a_repair_from_ending() {
    with_seeds(6, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches::new(seed);
        let disk = killed(batches, &mut dice);
        let history = history(batches);
        let names = disk.list(Path::new(OLD)).unwrap();
        for _ in 0..20 {
            let disk = disk.process_crash_clone();
            for _ in 0..1 + dice.below(6) {
                let path = Path::new(OLD).join(dice.pick::<String>(&names));
                harm(&disk, &path, &mut dice);
            }
            let (report, store) = repaired(&disk);
            for saved in &report.keyspaces {
                let space = store.existing_keyspace(&saved.name).unwrap();
                let mut count = 0;
                for (key, value) in space.iter().map(Result::unwrap) {
                    let values = history.get(&key[..]).expect("the key was written");
                    assert!(values.contains(&value[..]), "{}", key.escape_ascii());
                    count += 1;
                }
                assert_eq!(saved.entries, count);
            }
        }
    });
}

/// Damages the file at `path`, if it is still there.
fn harm(disk: &MemEnv, path: &Path, dice: &mut Dice) {
    let Ok(bytes) = disk.file_bytes(path) else { return };
    let at = dice.below(bytes as usize) as u64;
    let mask = 1 << dice.below(8);
    match dice.below(8) {
        // At least one numbered file stays: else there is nothing of a store.
        0 if !path.ends_with("000001.manifest") => disk.remove_file(path).unwrap(),
        1 => disk.truncate(path, at).unwrap(),
        // Most of a log is zeros at its end.
        _ => drop(disk.flip(path, if dice.chance(50) { at } else { at % 3000 }, mask)),
    }
}
