//! The row of write-ahead logs: synced writes are read back from all of them, or an error names the
//! log that has lost them.

use crate::dice::Dice;
use crate::frame::contents::{default_keyspace, read_file};
use crate::frame::small::{DIR, open, threaded};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv};
use lsmith::{Batch, Builder, ErrorKind, Keyspace, PersistMode, Store};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn builder(env: &(impl Env + Clone)) -> Builder {
    threaded(env).memtable_bytes(4 << 20)
}

fn files(env: &MemEnv, ending: &str) -> Vec<PathBuf> {
    let names = env.list(Path::new(DIR)).unwrap().into_iter();
    names.filter(|name| name.ends_with(ending)).map(|name| Path::new(DIR).join(name)).collect()
}

/// Returns the bytes of a log up to the last one that is not zero.
fn used(env: &MemEnv, path: &Path) -> u64 {
    read_file(env, path).iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
}

fn load(space: &Keyspace, count: u32) -> lsmith::Result<()> {
    let mut load = space.bulk_load()?;
    for number in 0..count {
        load.put(number.to_be_bytes(), [5; 30])?;
    }
    load.finish().map(drop)
}

/// Makes ten synced puts in a life of their own, then reads in the next life.
fn ten_synced_puts_stay(env: &MemEnv, told: &str) {
    let (store, space) = open(builder(env));
    for number in 0..10_u32 {
        space.put(format!("late {number}"), "v").unwrap();
        store.persist(PersistMode::SyncData).unwrap();
    }
    drop((space, store));
    let (store, space) = open(builder(env));
    let found = (0..10).filter(|n| space.get(format!("late {n}")).unwrap().is_some()).count();
    assert_eq!(found, 10, "{told}");
    assert_eq!(store.verify().unwrap().len(), 0, "{told}");
}

/// A bulk load takes a number in the log before the manifest has it. If it is cut short between the
/// two, and that log is removed, the number is in no log and in no table. What broke: the logs
/// behind it were taken for logs behind a gap, and removed.
#[test]
fn writes_after_a_bulk_load_that_was_cut_short_stay() {
    let mut stops = 0;
    loop {
        let disk = MemEnv::new();
        let store = builder(&disk).lockstep(true).open().unwrap();
        default_keyspace(&store).put("early", "v").unwrap();
        store.flush().unwrap();
        drop(store);
        let env = FaultEnv::new(Arc::new(disk.clone()));
        let (_store, space) = open(builder(&env).lockstep(true));
        let lasting = Lasting::Forever;
        let kind = io::ErrorKind::Other;
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
        let (store, space) = open(builder(&env).lockstep(true));
        let lasting = Lasting::Once;
        let kind = io::ErrorKind::StorageFull;
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

/// The number of entries of 1 kB that fill four logs. A fifth log would have the memtable flushed.
const SYNCED: u32 = 240;

/// Makes a store with several logs that are all needed and were all synced.
fn several_synced_logs() -> MemEnv {
    let env = MemEnv::new();
    let (store, space) = open(builder(&env));
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
    let before: Vec<_> = files(env, "").iter().map(|path| read_file(env, path)).collect();
    let error = match builder(env).open() {
        Ok(store) => {
            let found = default_keyspace(&store).iter().count();
            panic!("{told}: opened with {found} entries of {SYNCED}");
        }
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::Corruption, "{told}: {error}");
    assert!(error.offset().is_some(), "{told}: {error}");
    let after: Vec<_> = files(env, "").iter().map(|path| read_file(env, path)).collect();
    assert!(before == after, "{told}: a file was changed");
    error
}

/// What broke: the damaged or cut end of a log looked like the end that power loss leaves. All
/// later logs were removed silently, although they had been synced.
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
            let byte = read_file(&whole, log)[offset as usize];
            env.flip(log, offset, byte).unwrap();
        }
        let told = format!("the end of {} overwritten with zeros", log.display());
        assert_eq!(open_error(&env, &told).path(), Some(&**log), "{told}");
        let env = whole.process_crash_clone();
        env.remove_file(log).unwrap();
        open_error(&env, &format!("{} removed", log.display()));
    }
    assert_eq!(default_keyspace(&builder(&whole).open().unwrap()).iter().count(), SYNCED as usize);
}

/// True power loss is not damage, whichever logs were synced: the store has a prefix, with
/// everything that was synced. The rest is set aside.
#[test]
fn power_loss_over_several_logs_is_no_damage() {
    let mut aside = 0;
    for seed in 0..60 {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let (store, space) = open(builder(&env));
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
        // In lockstep: or files would go while they are looked at.
        let store = builder(&env).lockstep(true).open().unwrap();
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

/// Two keyspaces share a log. One of them is flushed, for which the log is synced; the other needs
/// the log. What broke: a cut in the log tore the batches of both silently.
#[test]
fn a_cut_in_front_of_what_another_keyspace_has_flushed_is_damage() {
    let whole = MemEnv::new();
    let store = builder(&whole).open().unwrap();
    let a = store.keyspace("a").unwrap();
    let b = store.keyspace("b").unwrap();
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

/// Makes a store whose merges take parts of memory.
fn by_part(env: &MemEnv) -> Builder {
    let policy = "choose_best(ratio=2, rate=0.2)";
    builder(env).memtable_bytes(8 << 10).policy(policy).lockstep(true)
}

/// Each write has its own key and has its number for a value. The keys are not in order.
fn put_scattered(space: &Keyspace, numbers: Range<u32>) {
    for number in numbers {
        space.put((number * 7919 % 2000).to_be_bytes(), number.to_be_bytes()).unwrap();
    }
}

/// Returns the number of writes that are there: a prefix of all.
fn scattered(store: &Store, told: &str) -> u32 {
    let number = |value: &[u8]| u32::from_be_bytes(value.try_into().unwrap());
    let entries = default_keyspace(store).iter();
    let mut numbers: Vec<u32> = entries.map(|entry| number(&entry.unwrap().1)).collect();
    numbers.sort_unstable();
    let count = numbers.len() as u32;
    assert!(numbers.into_iter().eq(0..count), "{told}: a mixture of {count} writes");
    count
}

/// The same within one keyspace, where a merge takes a part of memory.
#[test]
fn a_cut_in_front_of_a_part_of_memory_in_tables_is_damage() {
    let whole = MemEnv::new();
    let store = by_part(&whole).open().unwrap();
    put_scattered(&default_keyspace(&store), 0..2000);
    let whole = whole.process_crash_clone();
    let log = files(&whole, ".wal").pop().unwrap();
    let used = used(&whole, &log);
    let mut told = 0;
    for cut in (8..used - 100).step_by(500) {
        let env = whole.process_crash_clone();
        env.truncate(&log, used - cut).unwrap();
        match by_part(&env).open() {
            Ok(store) => drop(scattered(&store, &format!("cut by {cut} bytes"))),
            Err(_) => told += 1,
        }
    }
    assert!(told > 0, "no cut went into what was needed");
}

/// There the log is synced first, although no caller asked for it. Otherwise power loss would leave
/// later writes, in tables, without earlier ones.
#[test]
fn power_loss_behind_a_part_of_memory_in_tables_is_no_damage() {
    let whole = MemEnv::new();
    let store = by_part(&whole).open().unwrap();
    let mut parts = 0;
    for turn in 0..200 {
        put_scattered(&default_keyspace(&store), 10 * turn..10 * (turn + 1));
        let env = whole.crash_clone(u64::from(turn), 0.0);
        let told = format!("after {} writes", 10 * (turn + 1));
        let store = by_part(&env).open().unwrap_or_else(|error| panic!("{told}: {error}"));
        parts += u32::from(scattered(&store, &told) > 0 && !files(&env, ".table").is_empty());
    }
    assert!(parts > 100, "{parts} times there were tables");
}

/// While there is one keyspace, its tables do not need the log before them, and the log is not
/// synced for them. A keyspace that is made later needs all of it.
#[test]
fn power_loss_behind_the_making_of_a_keyspace_is_no_damage() {
    let env = MemEnv::new();
    let store = builder(&env).lockstep(true).open().unwrap();
    let first = store.keyspace("first").unwrap();
    for number in 0..10_u32 {
        first.put(number.to_be_bytes(), "in a table").unwrap();
    }
    first.flush().unwrap();
    first.put("one more", "in the log").unwrap();
    let second = store.keyspace("second").unwrap();
    second.put("key", "lost").unwrap();
    let cut = env.crash_clone(1, 0.0);
    let store = builder(&cut).open().unwrap();
    assert_eq!(store.keyspace("first").unwrap().iter().count(), 11);
    assert_eq!(store.keyspace("second").unwrap().iter().count(), 0);
}
