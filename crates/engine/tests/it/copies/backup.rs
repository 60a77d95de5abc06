//! Backups: incremental, verified, restored.
//!
//! Promised: a backup that was returned can be restored, after power loss and whatever other
//! backups are removed. It holds what the store held. Backups share files only if they are the
//! same, also in several stores that were restored from one backup. Damage is found.

use crate::dice::{Dice, with_new_seeds};
use crate::frame::batches::{Batches, POLICIES, Progress, restless};
use crate::frame::history::History;
use crate::frame::small::{DIR, plain_at, small, small_at};
use lsmith::env::{Env, Loss, MemEnv};
use lsmith::{Backup, BackupOptions, Backups, ErrorKind, PersistMode, Store};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEPT: &str = "/kept/backups";

fn backups(env: &MemEnv) -> Backups {
    Backups::with_env(KEPT, Arc::new(env.clone()))
}

fn write(store: &Store, batches: &Batches, progress: &mut Progress, count: u64) {
    for _ in 0..count {
        batches.go_on(store, progress, PersistMode::Buffer).unwrap();
    }
}

/// Asserts that backup `number` restores to the batches up to `last`, and that the store goes on.
fn check(env: &MemEnv, number: u64, batches: &Batches, last: u64) {
    // On a copy of the disk, which leaves no directory there.
    let env = env.process_crash_clone();
    backups(&env).restore(number, "/restored").unwrap();
    let store = small_at("/restored", &env).open().unwrap();
    assert_eq!(batches.check(&store), last);
    assert_eq!(store.verify().unwrap().len(), 0);
    let mut progress = Progress { tried: last, acknowledged: last, synced: last };
    write(&store, batches, &mut progress, 20);
    drop(store);
    assert_eq!(batches.check(&small_at("/restored", &env).open().unwrap()), last + 20);
}

fn files(env: &MemEnv) -> Vec<PathBuf> {
    let names = env.list(Path::new(KEPT)).unwrap().into_iter();
    names.filter(|name| name != "LOCK").map(|name| Path::new(KEPT).join(name)).collect()
}

#[test]
fn a_later_backup_copies_what_is_new() {
    for policy in POLICIES {
        let env = MemEnv::new();
        let batches = Batches { keys: 5000, value_bytes: 300, ranges: false, ..Batches::new(2) };
        let store = small(&env).policy(policy).open().unwrap();
        let mut progress = Progress::default();
        write(&store, &batches, &mut progress, 200);
        let first = store.backup(&backups(&env)).unwrap();
        assert_eq!((first.id, first.copied_bytes), (1, first.bytes), "{policy}");
        let again = store.backup(&backups(&env)).unwrap();
        assert!(again.copied_bytes < 300_000, "{policy}: only a manifest is new: {again:?}");
        assert_eq!((again.id, again.seq, again.files), (2, first.seq, first.files));
        // The stamp of the last backup is in the manifest.
        drop(store);
        let store = small(&env).policy(policy).open().unwrap();
        let third = store.backup(&backups(&env)).unwrap();
        // An opening cuts the unused ends off full logs, so these are copied again.
        assert!(third.copied_bytes < third.bytes, "{policy}: {third:?}");
        write(&store, &batches, &mut progress, 30);
        let fourth = store.backup(&backups(&env)).unwrap();
        assert!(fourth.seq > third.seq);
        assert_eq!(backups(&env).list().unwrap(), [first, again, third, fourth]);
        assert!(backups(&env).verify().unwrap().is_empty());
        for (number, last) in [(1, 200), (2, 200), (3, 200), (4, 230)] {
            check(&env, number, &batches, last);
        }
    }
}

#[test]
fn removing_an_old_backup_keeps_the_files_of_newer_ones() {
    let env = MemEnv::new();
    let batches = Batches { keys: 500, ..Batches::new(2) };
    let store = small(&env).policy("tiered(ratio=3)").open().unwrap();
    let mut progress = Progress::default();
    for _ in 0..5 {
        write(&store, &batches, &mut progress, 40);
        store.backup(&backups(&env)).unwrap();
    }
    let before = files(&env).len();
    backups(&env).remove(3).unwrap();
    assert_eq!(backups(&env).keep(3).unwrap(), [1]);
    assert_eq!(backups(&env).remove(1).unwrap_err().kind(), ErrorKind::NotFound);
    let numbers: Vec<u64> = backups(&env).list().unwrap().iter().map(|it| it.id).collect();
    assert_eq!(numbers, [2, 4, 5]);
    for number in numbers {
        check(&env, number, &batches, 40 * number);
    }
    assert_eq!(backups(&env).keep(1).unwrap(), [2, 4]);
    check(&env, 5, &batches, 200);
    let list = backups(&env).list().unwrap();
    assert!(files(&env).len() < before);
    // The list of the backup, and the file that says what the directory is.
    assert_eq!(files(&env).len(), list[0].files + 2, "no file is left that no backup needs");
    write(&store, &batches, &mut progress, 1);
    assert_eq!(store.backup(&backups(&env)).unwrap().id, 6, "no number is used twice");
}

#[test]
fn a_backup_that_was_returned_survives_power_loss() {
    for (seed, loss) in (0..).zip(Loss::ALL) {
        let env = MemEnv::new();
        let batches = Batches::new(seed);
        let store = small(&env).open().unwrap();
        let mut progress = Progress::default();
        write(&store, &batches, &mut progress, 50);
        store.backup(&backups(&env)).unwrap();
        write(&store, &batches, &mut progress, 20);
        store.backup(&backups(&env)).unwrap();
        write(&store, &batches, &mut progress, 20);
        let after = env.power_loss(seed, loss);
        assert!(backups(&after).verify().unwrap().is_empty());
        check(&after, 1, &batches, 50);
        check(&after, 2, &batches, 70);
        let store = small(&after).open().unwrap();
        let last = batches.check(&store);
        let third = store.backup(&backups(&after)).unwrap();
        check(&after, third.id, &batches, last);
    }
}

#[test]
fn every_damaged_file_of_a_backup_is_found_and_copied_anew_on_request() {
    let env = MemEnv::new();
    let batches = Batches::new(2);
    let store = small(&env).open().unwrap();
    let mut progress = Progress::default();
    write(&store, &batches, &mut progress, 50);
    store.backup(&backups(&env)).unwrap();
    let mut dice = Dice::new(1);
    for path in files(&env) {
        let bytes = env.file_bytes(&path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        for how in 0..3 {
            let bad = env.process_crash_clone();
            match how {
                0 => {
                    bad.flip(&path, dice.below(bytes as usize) as u64, 1 << dice.below(8)).unwrap()
                }
                1 => bad.truncate(&path, bytes - 1).unwrap(),
                _ => bad.remove_file(&path).unwrap(),
            }
            if name == "BACKUPS" {
                continue;
            }
            // A list that is missing is no damage: without it there is no backup.
            let is_gone = name.ends_with(".backup") && how == 2;
            let found = backups(&bad).verify().unwrap();
            assert_eq!(found.len(), usize::from(!is_gone), "{name}, {how}: {found:?}");
            assert!(found.iter().all(|error| error.path() == Some(&*path)), "{name}: {found:?}");
            let restored = backups(&bad).restore(1, "/restored").unwrap_err().kind();
            let expected = if is_gone { ErrorKind::NotFound } else { ErrorKind::Corruption };
            assert!([expected, ErrorKind::Unsupported].contains(&restored), "{name}, {how}");
            let opened = small_at("/restored", &bad).create_if_missing(false).open();
            assert_eq!(opened.unwrap_err().kind(), ErrorKind::NotFound);
        }
    }
    for path in files(&env).iter().filter(|path| path.extension().is_some_and(|it| it == "table")) {
        env.flip(path, 100, 1).unwrap();
    }
    let checked = store.backup_with(&backups(&env), &BackupOptions::default().check(true)).unwrap();
    check(&env, checked.id, &batches, 50);
    backups(&env).remove(1).unwrap();
    assert!(backups(&env).verify().unwrap().is_empty());
}

#[test]
fn backups_go_to_a_directory_of_their_own() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let other = |dir: &str| Backups::with_env(dir, Arc::new(env.clone()));
    assert_eq!(other("/none").list().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(other("/none").verify().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(other("/none").restore(1, "/to").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.backup(&other(DIR)).unwrap_err().kind(), ErrorKind::InvalidArgument);
    env.create_dir_all(Path::new("/other")).unwrap();
    env.create(Path::new("/other/letter.txt")).unwrap();
    assert_eq!(store.backup(&other("/other")).unwrap_err().kind(), ErrorKind::InvalidArgument);
    store.backup(&backups(&env)).unwrap();
    let lock = env.lock(Path::new(KEPT)).unwrap();
    assert_eq!(store.backup(&backups(&env)).unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(backups(&env).remove(1).unwrap_err().kind(), ErrorKind::Locked);
    drop(lock);
    assert_eq!(backups(&env).restore(1, DIR).unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(backups(&env).restore(1, "/other").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(backups(&env).restore(2, "/to").unwrap_err().kind(), ErrorKind::NotFound);
    drop(store);
    let reader = small(&env).read_only(true).open().unwrap();
    assert_eq!(reader.backup(&backups(&env)).unwrap_err().kind(), ErrorKind::ReadOnly);
}

/// Several stores that come from one another by restores and checkpoints, and whose files have the
/// same numbers and often the same lengths, are backed up in one directory.
struct Family {
    env: MemEnv,
    /// Each store with its directory and its history.
    stores: Vec<(String, History)>,
    /// What each backup holds.
    made: BTreeMap<u64, History>,
}

impl Family {
    fn open(&self, dir: &str, dice: &mut Dice) -> Store {
        let builder = plain_at(dir, &self.env).lockstep(true);
        restless(builder, dice).open().unwrap()
    }

    fn step(&mut self, dice: &mut Dice) {
        let at = dice.below(self.stores.len());
        let (dir, mut history) = self.stores[at].clone();
        let store = self.open(&dir, dice);
        assert_eq!(history.check(&store), history.acknowledged, "{dir}");
        for _ in 0..dice.below(40) {
            history.go_on(&store, PersistMode::Buffer, dice).unwrap();
        }
        let new = format!("/stores/{}", self.stores.len());
        match dice.below(6) {
            0..3 => {
                let options = BackupOptions::default().check(dice.chance(30));
                let Backup { id, .. } = store.backup_with(&backups(&self.env), &options).unwrap();
                self.made.insert(id, history.clone());
            }
            3 if self.stores.len() < 6 => {
                store.checkpoint(&new).unwrap();
                self.stores.push((new, history.clone()));
            }
            4 if !self.made.is_empty() => {
                let (&number, history) = self.made.iter().nth(dice.below(self.made.len())).unwrap();
                backups(&self.env).restore(number, &new).unwrap();
                self.stores.push((new, history.clone()));
            }
            5 if self.made.len() > 2 => {
                let number = *self.made.keys().nth(dice.below(self.made.len())).unwrap();
                backups(&self.env).remove(number).unwrap();
                self.made.remove(&number);
            }
            _ => {}
        }
        drop(store);
        self.stores[at].1 = history;
    }
}

#[test]
fn stores_of_one_family_share_files_only_if_they_are_the_same() {
    with_new_seeds(12, |seed| {
        let mut dice = Dice::new(seed);
        let stores = vec![("/stores/0".to_string(), History::default())];
        let mut family = Family { env: MemEnv::new(), stores, made: BTreeMap::new() };
        for _ in 0..25 {
            family.step(&mut dice);
            if dice.chance(10) {
                family.env = family.env.power_loss(dice.number(), *dice.pick(&Loss::ALL));
            }
        }
        let Family { env, made, .. } = &family;
        if made.is_empty() {
            return;
        }
        assert!(backups(env).verify().unwrap().is_empty());
        for (number, history) in made {
            let dir = format!("/restored/{number}");
            backups(env).restore(*number, &dir).unwrap();
            let store = family.open(&dir, &mut dice);
            assert_eq!(history.clone().check(&store), history.acknowledged, "backup {number}");
            assert!(store.verify().unwrap().is_empty());
        }
    });
}
