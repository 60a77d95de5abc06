//! The row of write-ahead logs: what was synced is read back from all of them, or an error says
//! which of them does not hold it any more.

use crate::dice::{Dice, with_seeds};
use crate::numbered::{Batches, Progress, any_mode};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, LogFile, MemEnv, ReadFile, WriteFile};
use lsmith::{Batch, Builder, DEFAULT_KEYSPACE, ErrorKind, Keyspace, PersistMode, Store};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const DIR: &str = "/store";

fn builder(env: impl Env) -> Builder {
    Store::builder(DIR).env(Arc::new(env)).log_bytes(64 << 10).memtable_bytes(4 << 20)
}

fn default_keyspace(store: &Store) -> Keyspace {
    store.keyspace(DEFAULT_KEYSPACE).unwrap()
}

fn files(env: &MemEnv, ending: &str) -> Vec<PathBuf> {
    let names = env.list(Path::new(DIR)).unwrap().into_iter();
    names.filter(|name| name.ends_with(ending)).map(|name| Path::new(DIR).join(name)).collect()
}

fn contents(env: &MemEnv, path: &Path) -> Vec<u8> {
    let mut bytes = vec![0; env.file_bytes(path).unwrap() as usize];
    env.open(path).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Bytes of a log from its start to its last one that is not zero.
fn used(env: &MemEnv, path: &Path) -> u64 {
    contents(env, path).iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
}

fn load(space: &Keyspace, count: u32) -> lsmith::Result<()> {
    let mut load = space.bulk_load()?;
    for number in 0..count {
        load.put(number.to_be_bytes(), [5; 30])?;
    }
    load.finish().map(drop)
}

/// Ten synced puts in a life of their own, then a look in the next life.
fn ten_synced_puts_stay(env: &MemEnv, told: &str) {
    let store = builder(env.clone()).open().unwrap();
    let space = default_keyspace(&store);
    for number in 0..10_u32 {
        space.put(format!("late {number}"), "v").unwrap();
        store.persist(PersistMode::SyncData).unwrap();
    }
    drop((space, store));
    let store = builder(env.clone()).open().unwrap();
    let space = default_keyspace(&store);
    let found = (0..10).filter(|n| space.get(format!("late {n}")).unwrap().is_some()).count();
    assert_eq!(found, 10, "{told}");
    assert_eq!(store.verify().unwrap().len(), 0, "{told}");
}

/// A bulk load takes a number in the log before the manifest knows of it. If it is cut short
/// between the two, and that log goes, the number is in no log and in no table: the logs that came
/// after it were taken for the far side of a gap, and removed.
#[test]
fn writes_after_a_bulk_load_that_was_cut_short_stay() {
    let mut stops = 0;
    loop {
        let disk = MemEnv::new();
        let store = builder(disk.clone()).lockstep(true).open().unwrap();
        default_keyspace(&store).put("early", "v").unwrap();
        store.flush().unwrap();
        drop(store);
        let env = FaultEnv::new(Arc::new(disk.clone()));
        let store = builder(env.clone()).lockstep(true).open().unwrap();
        let space = default_keyspace(&store);
        let (lasting, kind) = (Lasting::Forever, io::ErrorKind::Other);
        env.set(Fault { class: None, after: stops, lasting, kind });
        let result = load(&space, 50);
        for copy in [disk.process_crash_clone(), disk.crash_clone(stops, 0.5)] {
            ten_synced_puts_stay(&copy, &format!("stopped after {stops} operations"));
        }
        if result.is_ok() {
            assert!(stops > 5, "{stops}");
            return;
        }
        stops += 1;
    }
}

/// The same without an accident: the load fails because the device is full.
#[test]
fn writes_after_a_bulk_load_without_room_stay() {
    for after in 0.. {
        let disk = MemEnv::new();
        let env = FaultEnv::new(Arc::new(disk.clone()));
        let store = builder(env.clone()).lockstep(true).open().unwrap();
        let space = default_keyspace(&store);
        let (lasting, kind) = (Lasting::Once, io::ErrorKind::StorageFull);
        env.set(Fault { class: None, after, lasting, kind });
        let result = load(&space, 50);
        env.clear();
        drop((space, store));
        ten_synced_puts_stay(&disk, &format!("operation {after} without room"));
        if result.is_ok() {
            return;
        }
    }
}

/// So many entries of 1 kB take four logs. A fifth would have the memtable flushed.
const SYNCED: u32 = 240;

/// A store with several logs, all of which are needed and were synced.
fn several_synced_logs() -> MemEnv {
    let env = MemEnv::new();
    let store = builder(env.clone()).open().unwrap();
    let space = default_keyspace(&store);
    for number in 0..SYNCED {
        space.put(number.to_be_bytes(), [7; 1000]).unwrap();
        if number % 10 == 9 {
            store.persist(PersistMode::SyncData).unwrap();
        }
    }
    let env = env.process_crash_clone();
    assert!(files(&env, ".wal").iter().filter(|path| used(&env, path) > 100).count() >= 4);
    env
}

fn open_error(env: &MemEnv, told: &str) -> lsmith::Error {
    let before: Vec<_> = files(env, "").iter().map(|path| contents(env, path)).collect();
    let error = match builder(env.clone()).open() {
        Ok(store) => {
            let found = default_keyspace(&store).iter().count();
            panic!("{told}: opened with {found} entries of {SYNCED}");
        }
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Corruption, "{told}: {error}");
    assert!(error.offset().is_some(), "{told}: {error}");
    let after: Vec<_> = files(env, "").iter().map(|path| contents(env, path)).collect();
    assert!(before == after, "{told}: a file was changed");
    error
}

/// The end of a log that was damaged, or cut off, looked like the end that power loss leaves. All
/// later logs were dropped and removed without a word, although they had been synced.
#[test]
fn damage_at_the_end_of_an_older_log_is_no_power_loss() {
    let whole = several_synced_logs();
    let logs: Vec<_> =
        files(&whole, ".wal").into_iter().filter(|path| used(&whole, path) > 100).collect();
    for log in &logs[..logs.len() - 1] {
        let used = used(&whole, log);
        for cut in [8, 16, 600, 1100, used / 2, used - 40, used] {
            let env = whole.process_crash_clone();
            env.truncate(log, used - cut).unwrap();
            let told = format!("{} cut by {cut} bytes", log.display());
            assert_eq!(open_error(&env, &told).path(), Some(&**log), "{told}");
        }
        let env = whole.process_crash_clone();
        for offset in used - 600..used {
            let byte = contents(&whole, log)[offset as usize];
            env.flip(log, offset, byte).unwrap();
        }
        let told = format!("the end of {} overwritten with zeros", log.display());
        assert_eq!(open_error(&env, &told).path(), Some(&**log), "{told}");
        let env = whole.process_crash_clone();
        env.remove_file(log).unwrap();
        open_error(&env, &format!("{} removed", log.display()));
    }
    assert_eq!(default_keyspace(&builder(whole).open().unwrap()).iter().count(), SYNCED as usize);
}

/// A true power loss is no damage, whatever was synced of whatever logs: a prefix is found, with
/// all that was synced. What is left out is set aside.
#[test]
fn power_loss_over_several_logs_is_no_damage() {
    let mut aside = 0;
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let store = builder(env.clone()).open().unwrap();
        let space = default_keyspace(&store);
        let mut synced = 0;
        for number in 0..300_u32 {
            space.put(number.to_be_bytes(), dice.bytes(1000)).unwrap();
            if dice.chance(2) {
                store.persist(PersistMode::SyncData).unwrap();
                synced = number + 1;
            }
        }
        let env = env.crash_clone(dice.number(), *dice.pick(&[0.1, 0.5, 0.9, 0.99]));
        let before: u64 = files(&env, ".wal").iter().map(|path| used(&env, path)).sum();
        let store = builder(env.clone()).open().unwrap();
        let found: Vec<_> =
            default_keyspace(&store).iter().map(|entry| entry.unwrap().0.to_vec()).collect();
        assert!(found.iter().enumerate().all(|(n, key)| (n as u32).to_be_bytes()[..] == key[..]));
        assert!(found.len() as u32 >= synced, "seed {seed}: {} of {synced}", found.len());
        let lost = files(&env, ".lost");
        let kept = files(&env, ".wal").into_iter().chain(lost.iter().cloned());
        let kept: u64 = kept.map(|path| used(&env, &path)).sum();
        let flushed = !files(&env, ".table").is_empty();
        // A record ends in up to seven zeros, which are not counted.
        let whole = kept + 7 >= before;
        assert!(flushed || whole, "seed {seed}: {before} bytes of logs, {kept} after");
        aside += lost.len();
    }
    assert!(aside > 10, "{aside} files were set aside");
}

/// A disk on which no log that is there can be removed or renamed.
#[derive(Debug)]
struct Stuck {
    disk: MemEnv,
    refused: Arc<AtomicU64>,
}

impl Stuck {
    fn refuse(&self, path: &Path) -> io::Result<()> {
        if path.extension().is_some_and(|kind| kind == "wal") && self.disk.file_bytes(path).is_ok()
        {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }
}

impl Env for Stuck {
    left_to_the_disk!(but rename);

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.refuse(from)?;
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.refuse(path)?;
        self.disk.remove_file(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.disk.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.disk.open(path)
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        self.disk.create_log(path, capacity)
    }

    fn now(&self) -> Duration {
        self.disk.now()
    }
}

/// A log that was left out, and could not be removed while the store was opened, came back in front
/// of what was written from then on: that was left out in its place.
#[test]
fn a_log_that_cannot_be_removed_while_opening_stays_away() {
    let refused = Arc::new(AtomicU64::new(0));
    with_seeds(60, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches { value_bytes: 1500, ..Batches::new(seed) };
        let env = MemEnv::new();
        let store = builder(env.clone()).lockstep(true).open().unwrap();
        let mut progress = Progress::default();
        for _ in 0..60 {
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        }
        let mut env = env.crash_clone(dice.number(), 0.5);
        for _ in 0..3 {
            let stuck = Stuck { disk: env.clone(), refused: Arc::clone(&refused) };
            let store = builder(stuck).lockstep(true).open().unwrap();
            let found = batches.check(&store);
            let mut progress = Progress { tried: found, acknowledged: found, synced: found };
            for _ in 0..1 + dice.below(50) {
                batches.go_on(&store, &mut progress, any_mode(&mut dice)).unwrap();
            }
            batches.go_on(&store, &mut progress, PersistMode::SyncData).unwrap();
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
            env = env.crash_clone(dice.number(), *dice.pick(&[0.0, 0.5]));
            let store = builder(env.clone()).lockstep(true).open().unwrap();
            let found = batches.check(&store);
            assert!(found >= progress.synced, "{progress:?}, found {found}");
        }
    });
    let refused = refused.load(Ordering::SeqCst);
    assert!(refused > 60, "{refused} logs could not be removed");
}

/// Two keyspaces share a log. One of them is flushed, for which the log is synced; the other needs
/// the log. A cut in it tore the batches of both, and nothing told.
#[test]
fn a_cut_in_front_of_what_another_keyspace_has_flushed_is_damage() {
    let whole = MemEnv::new();
    let store = builder(whole.clone()).open().unwrap();
    let (a, b) = (store.keyspace("a").unwrap(), store.keyspace("b").unwrap());
    for number in 0..100_u32 {
        let mut batch = Batch::new();
        batch.put(&a, "last", number.to_string());
        batch.put(&b, "last", number.to_string());
        store.write(batch, PersistMode::Buffer).unwrap();
    }
    b.flush().unwrap();
    let whole = whole.process_crash_clone();
    let [log] = &files(&whole, ".wal")[..] else { panic!("one log") };
    let used = used(&whole, log);
    for cut in [8, used / 3, used / 2, used - 100] {
        let env = whole.process_crash_clone();
        env.truncate(log, used - cut).unwrap();
        open_error(&env, &format!("cut by {cut} bytes"));
    }
}

/// The same within one keyspace, of which a merge takes a part of memory.
#[test]
fn a_cut_in_front_of_a_part_of_memory_in_tables_is_damage() {
    let whole = MemEnv::new();
    let policy = "choose_best(ratio=2, rate=0.2)";
    let build = |env: &MemEnv| builder(env.clone()).memtable_bytes(8 << 10).policy(policy);
    let store = build(&whole).lockstep(true).open().unwrap();
    let space = default_keyspace(&store);
    for number in 0..2000_u32 {
        space.put((number * 7919 % 2000).to_be_bytes(), number.to_be_bytes()).unwrap();
    }
    let whole = whole.process_crash_clone();
    let log = files(&whole, ".wal").pop().unwrap();
    let (used, mut told) = (used(&whole, &log), 0);
    for cut in (8..used - 100).step_by(500) {
        let env = whole.process_crash_clone();
        env.truncate(&log, used - cut).unwrap();
        let Ok(store) = build(&env).open() else {
            told += 1;
            continue;
        };
        // What is there is what some number of writes have left, and no mixture.
        let space = default_keyspace(&store);
        let mut newest: Vec<u32> = space
            .iter()
            .map(|entry| u32::from_be_bytes(entry.unwrap().1[..].try_into().unwrap()))
            .collect();
        newest.sort_unstable();
        assert!(newest.iter().copied().eq(0..newest.len() as u32), "cut by {cut} bytes");
    }
    assert!(told > 0, "no cut went into what was needed");
}
