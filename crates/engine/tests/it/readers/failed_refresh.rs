//! Readers beside a writer whose refreshes fail.
//!
//! Promised: a refresh that fails says why, and changes nothing. The reader still sees what it saw,
//! also after the writer has merged. When the cause is gone, the next refresh shows everything that
//! was acknowledged before it. Refreshes leave no file open that the reader does not need.
//!
//! What broke: a refresh took new batches from the log and then failed. The next one went on behind
//! them, and showed none of them.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{Batches, POLICIES, Progress, last, mapped_or_not, now_and_then};
use crate::frame::scripted::{Call, Op, Script, Scripted};
use crate::frame::small::{DIR, reader, small};
use crate::readers::contents::{files, leases};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{ErrorKind, PersistMode, Store};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A writer, and how far it got.
struct Writer {
    store: Store,
    batches: Batches,
    progress: Progress,
}

impl Writer {
    fn new(disk: &MemEnv, seed: u64) -> Writer {
        let batches = Batches { keys: 30, value_bytes: 60, ..Batches::new(seed) };
        let policy = POLICIES[seed as usize % POLICIES.len()];
        let store = small(disk).policy(policy).open().unwrap();
        let mut writer = Writer { store, batches, progress: Progress::default() };
        writer.go_on(1);
        writer
    }

    fn go_on(&mut self, count: usize) {
        for _ in 0..count {
            self.batches.go_on(&self.store, &mut self.progress, PersistMode::Buffer).unwrap();
        }
    }

    fn work(&mut self, dice: &mut Dice) {
        for _ in 0..dice.below(12) {
            self.go_on(1);
            now_and_then(&self.store, dice).unwrap();
        }
    }

    /// Leaves no table of before.
    fn rewrite(&mut self) {
        self.go_on(5);
        for name in self.store.keyspaces() {
            let space = self.store.existing_keyspace(&name).unwrap();
            space.flush().unwrap();
            space.merge().unwrap();
        }
    }
}

const READING: [OpClass; 6] =
    [OpClass::List, OpClass::Open, OpClass::Read, OpClass::Measure, OpClass::Lock, OpClass::Create];

#[test]
fn a_refresh_that_fails_changes_nothing_and_the_next_one_shows_all() {
    with_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let disk = MemEnv::new();
        let mut writer = Writer::new(&disk, seed);
        let env = FaultEnv::over(mapped_or_not(&disk, &mut dice));
        let follower = reader(&env).open().unwrap();
        let (mut seen, mut failed) = (1, 0);
        for _ in 0..30 {
            writer.work(&mut dice);
            let class = *dice.pick(&READING);
            let (after, kind) = (dice.below(8) as u64, io::ErrorKind::Other);
            let lasting = *dice.pick(&[Lasting::Once, Lasting::Forever]);
            env.set(Fault { class: Some(class), after, lasting, kind });
            for _ in 0..1 + dice.below(2) {
                let refreshed = follower.refresh();
                match refreshed {
                    // An error that the refresh got over, or none.
                    Ok(_) => seen = writer.progress.acknowledged,
                    Err(error) => {
                        assert!(matches!(error.kind(), ErrorKind::Io), "{class:?}: {error}");
                        failed += 1;
                    }
                }
            }
            env.clear();
            if dice.chance(20) {
                writer.rewrite();
            }
            assert_eq!(writer.batches.check(&follower), seen, "{class:?} after {after}");
            if dice.chance(60) {
                follower.refresh().unwrap();
                seen = writer.progress.acknowledged;
                assert_eq!(last(&follower), seen, "{class:?} after {after}");
            }
        }
        assert!(failed > 5, "{failed}");
        follower.refresh().unwrap();
        assert_eq!(writer.batches.check(&follower), writer.progress.acknowledged);
        drop(follower);
        assert_eq!(leases(&disk), [""; 0]);
    });
}

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

/// Damages a file that a refresh may look at. Returns what undoes it.
fn damage(disk: &MemEnv, dice: &mut Dice) -> Option<(String, Box<dyn Fn()>)> {
    let names: Vec<String> =
        files(disk).into_iter().filter(|name| name.contains('.') || name == "CURRENT").collect();
    // New files are the last of their kind.
    let newest = ["CURRENT", ".manifest", ".wal", ".table"]
        .map(|kind| names.iter().rfind(|name| name.ends_with(kind)).cloned());
    let name = dice.pick(&newest).clone()?;
    let (disk, at) = (disk.clone(), path(&name));
    if dice.chance(20) {
        let aside = path("aside");
        disk.rename(&at, &aside).unwrap();
        return Some((name, Box::new(move || disk.rename(&aside, &at).unwrap())));
    }
    let file = disk.open(&at).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0)? + 1;
    // The end is what is new.
    let offset = used.saturating_sub(1 + dice.below(used.min(600))) as u64;
    let mask = 1 << dice.below(8);
    disk.flip(&at, offset, mask).unwrap();
    Some((name, Box::new(move || disk.flip(&at, offset, mask).unwrap())))
}

/// Damage may also look like the end of a log that was not synced.
#[test]
fn a_reader_survives_damage_that_is_undone() {
    with_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let disk = MemEnv::new();
        let mut writer = Writer::new(&disk, seed);
        // A map is as the file was when it was mapped.
        let follower = reader(&disk.clone().unmapped()).open().unwrap();
        let (mut seen, mut failed) = (1, 0);
        for _ in 0..40 {
            writer.work(&mut dice);
            let Some((name, undo)) = damage(&disk, &mut dice) else { continue };
            let refreshed = follower.refresh();
            if let Err(error) = &refreshed {
                failed += 1;
                let is_told = error.path() == Some(&path(&name)) || name == "CURRENT";
                assert!(is_told, "{name} is damaged: {error}");
            }
            undo();
            let found = writer.batches.check(&follower);
            match refreshed {
                Ok(_) => assert!((seen..=writer.progress.acknowledged).contains(&found), "{name}"),
                Err(error) => assert_eq!(found, seen, "{error}"),
            }
            if dice.chance(20) {
                writer.rewrite();
                assert_eq!(writer.batches.check(&follower), found, "{name}");
            }
            seen = found;
            if dice.chance(70) {
                follower.refresh().unwrap();
                seen = last(&follower);
                assert_eq!(seen, writer.progress.acknowledged, "{name} was damaged");
            }
        }
        assert!(failed > 5, "{failed}");
        follower.refresh().unwrap();
        assert_eq!(writer.batches.check(&follower), writer.progress.acknowledged);
        assert!(follower.verify().unwrap().is_empty());
        drop(follower);
        assert_eq!(leases(&disk), [""; 0]);
    });
}

/// Counts how often each file is open for reading.
#[derive(Debug, Default)]
struct Counted {
    open: Mutex<BTreeMap<PathBuf, usize>>,
}

impl Counted {
    /// Returns the number of open files with this ending.
    fn open_of(&self, kind: &str) -> usize {
        let open = self.open.lock();
        let of_kind = open.iter().filter(|(path, _)| path.to_string_lossy().ends_with(kind));
        of_kind.map(|(_, count)| count).sum()
    }
}

impl Script for Counted {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        if call.is_done(Op::Open) {
            *self.open.lock().entry(call.path.to_path_buf()).or_default() += 1;
        } else if call.is_done(Op::Close) {
            *self.open.lock().get_mut(call.path).unwrap() -= 1;
        }
        Ok(())
    }
}

fn tables(store: &Store) -> usize {
    let of = |name: &String| store.existing_keyspace(name).unwrap().stats().tables as usize;
    store.keyspaces().iter().map(of).sum()
}

/// The tables that it shows, and one log, in which it reads on.
#[test]
fn a_reader_keeps_only_the_files_open_that_it_needs() {
    with_seeds(10, |seed| {
        let mut dice = Dice::new(seed);
        let disk = MemEnv::new();
        let mut writer = Writer::new(&disk, seed);
        let env = Scripted::new(disk.clone().unmapped(), Counted::default());
        let follower = reader(&FaultEnv::new(Arc::new(env.clone()))).open().unwrap();
        let mut held = None;
        for round in 0..40 {
            writer.work(&mut dice);
            if dice.chance(20) {
                writer.rewrite();
            }
            follower.refresh().unwrap();
            let shown = tables(&follower);
            assert_eq!(shown, tables(&writer.store), "a reader has the tables of the writer");
            let open = env.open_of(".table");
            match held {
                None => assert_eq!(open, shown, "round {round}"),
                Some(_) => assert!(open >= shown, "round {round}"),
            }
            assert!(env.open_of("wal") <= 1, "round {round}");
            assert_eq!(env.open_of(".manifest") + env.open_of("CURRENT"), 0, "round {round}");
            if dice.chance(30) {
                held = dice.chance(50).then(|| follower.snapshot());
            }
        }
        drop((held, follower));
        assert_eq!(env.open_of(""), 0, "{env:?}");
    });
}
