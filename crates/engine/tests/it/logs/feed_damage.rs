//! Change feeds over damaged logs.
//!
//! Promised: a feed returns the batches in front of the damage and then fails, again and again. It
//! leaves no batch out and makes none up. Its number stays at the first batch that it could not
//! read, so it goes on if the damage is undone. Kept logs are not needed: the store still opens and
//! goes on. After a read that failed a feed goes on where it was.

use crate::dice::{Dice, quick, with_seeds};
use crate::frame::batches::{Batches, Progress};
use crate::frame::small::{DIR, plain, small};
use crate::logs::feed::{ops, read, write};
use lsmith::env::{Effect, Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::inspect::LogFile;
use lsmith::{Changes, Error, ErrorKind, PersistMode, SeqNo, Store};
use std::io;
use std::path::{Path, PathBuf};

/// A log, the number of batches in the logs before it, and the ends of its records.
struct Log {
    path: PathBuf,
    before: u64,
    ends: Vec<u64>,
}

impl Log {
    /// Returns the number of batches that are whole in front of `offset`. The first record tells
    /// where the log begins.
    fn whole_before(&self, offset: u64) -> u64 {
        let records = self.ends.iter().filter(|end| **end <= offset).count() as u64;
        self.before + records.saturating_sub(1)
    }

    fn used(&self) -> u64 {
        *self.ends.last().unwrap()
    }
}

/// Returns the logs, oldest first.
fn logs(env: &MemEnv) -> Vec<Log> {
    let mut before = 0;
    let names = env.list(Path::new(DIR)).unwrap().into_iter();
    let of = |name: String| {
        let path = Path::new(DIR).join(name);
        let file = LogFile::open(env, &path).unwrap();
        let ends: Vec<u64> = file.records().map(|record| record.offset + record.bytes).collect();
        let log = Log { path, before, ends };
        before += log.ends.len() as u64 - 1;
        log
    };
    names.filter(|name| name.ends_with(".wal")).map(of).collect()
}

/// Reads on behind batch `last`, up to the end or an error. Returns the number of the last batch.
fn read_on(feed: &mut Changes, batches: &Batches, mut last: u64) -> (u64, Option<Error>) {
    loop {
        let next = feed.next_seq();
        match feed.next_batch() {
            Ok(Some(batch)) => {
                last += 1;
                assert_eq!(ops(&batch), (batches.range(last), batches.ops(last)), "batch {last}");
                assert_eq!(batch.first, next);
            }
            Ok(None) => return (last, None),
            Err(error) => {
                assert_eq!(feed.next_seq(), next);
                return (last, Some(error));
            }
        }
    }
}

fn check_told(error: &Error, log: &Log) {
    let is_told = match error.kind() {
        ErrorKind::Gone => true,
        ErrorKind::Corruption => error.path() == Some(&log.path) && error.offset().is_some(),
        _ => false,
    };
    assert!(is_told, "{error}");
}

/// Makes a store with 150 batches in its tables, and in its logs all the same.
fn kept_store(seed: u64) -> (MemEnv, Store, Batches) {
    let env = MemEnv::new();
    let batches = Batches { value_bytes: 1500, ..Batches::new(seed) };
    let store = small(&env).policy("tiered(ratio=2)").changes_bytes(64 << 20).open().unwrap();
    write(&store, &batches, &mut Progress::default(), 150);
    store.flush().unwrap();
    (env, store, batches)
}

/// Reads with a new feed, twice, up to `log`, which is damaged behind batch `whole`.
fn check_new_feed(store: &Store, batches: &Batches, log: &Log, whole: u64) {
    let mut feed = match store.changes(SeqNo(1)) {
        Ok(feed) => feed,
        Err(error) => {
            assert_eq!(whole, 0, "{error}");
            return check_told(&error, log);
        }
    };
    let mut last = 0;
    for _ in 0..2 {
        let (found, error) = read_on(&mut feed, batches, last);
        assert_eq!(found, whole, "{}", log.path.display());
        check_told(&error.expect("damage is reported"), log);
        last = found;
    }
}

#[test]
fn a_feed_stops_in_front_of_a_changed_byte() {
    with_seeds(2, |seed| {
        let mut dice = Dice::new(seed);
        let (env, store, batches) = kept_store(seed);
        let logs = logs(&env);
        assert!(logs.len() > 3, "{} logs", logs.len());
        let step = if quick() { 9000 } else { 2000 };
        for log in &logs {
            let sample = (50..log.used()).step_by(step).map(|at| at + dice.below(step) as u64);
            let places: Vec<u64> = [0, 9, 20, 31, 33, 37, 41].into_iter().chain(sample).collect();
            for at in places.into_iter().filter(|at| *at < log.used()) {
                let whole = log.whole_before(at);
                let mut under_way = store.changes(SeqNo(1)).unwrap();
                let begun = dice.below(100) as u64;
                (0..begun).for_each(|_| drop(under_way.next_batch().unwrap().unwrap()));
                let mask = 1 << dice.below(8);
                env.flip(&log.path, at, mask).unwrap();
                check_new_feed(&store, &batches, log, whole);
                // It may hold the damaged part as it was before.
                let (found, error) = read_on(&mut under_way, &batches, begun);
                assert!(found == 150 || found >= whole, "{found} of {whole}");
                assert_eq!(error.is_none(), found == 150, "byte {at}");
                env.flip(&log.path, at, mask).unwrap();
                assert_eq!(read(&mut under_way, &batches, found), 150);
            }
        }
    });
}

/// Cuts a log while the store is open, and goes on in this life and in the next one.
#[test]
fn a_feed_stops_where_a_log_is_cut() {
    with_seeds(6, |seed| {
        let mut dice = Dice::new(seed);
        let (env, store, batches) = kept_store(seed);
        let mut progress = Progress { tried: 150, acknowledged: 150, synced: 150 };
        let logs = logs(&env);
        let log = &logs[dice.below(logs.len() - 1)];
        let cut = match dice.below(4) {
            0 => 0,
            1 => *dice.pick(&log.ends[..log.ends.len() - 1]),
            _ => dice.below(log.used() as usize) as u64,
        };
        env.truncate(&log.path, cut).unwrap();
        let whole = log.whole_before(cut);
        check_new_feed(&store, &batches, log, whole);
        write(&store, &batches, &mut progress, 5);
        check_new_feed(&store, &batches, log, whole);
        store.persist(PersistMode::SyncData).unwrap();
        drop(store);
        // A store opens without its kept logs.
        let open = || small(&env).policy("tiered(ratio=2)").changes_bytes(64 << 20).open();
        for _ in 0..2 {
            let store = open().unwrap();
            assert_eq!(batches.check(&store), progress.acknowledged);
            if let Ok(mut feed) = store.changes(SeqNo(1)) {
                let (found, error) = read_on(&mut feed, &batches, 0);
                assert!(found == whole && error.is_some(), "{found} of {whole}");
            }
            write(&store, &batches, &mut progress, 20);
            // Behind the cut all is there.
            let oldest = store.oldest_change().unwrap();
            let mut feed = store.changes(oldest).unwrap();
            let Ok(first) = feed.next_batch() else {
                assert_eq!(
                    (oldest, whole),
                    (SeqNo(1), 0),
                    "the damage is reported when it is read"
                );
                continue;
            };
            let first = first.unwrap();
            let is_it =
                |number: &u64| ops(&first) == (batches.range(*number), batches.ops(*number));
            let number = (1..=progress.acknowledged).find(is_it).expect("a batch that was written");
            let (found, error) = read_on(&mut feed, &batches, number);
            match number > whole {
                true => assert_eq!((found, error.is_none()), (progress.acknowledged, true)),
                false => assert_eq!((found, error.is_none()), (whole, false)),
            }
            store.flush().unwrap();
            assert!(store.verify().unwrap().is_empty());
        }
    });
}

/// After a call that could not read, the feed goes on where it was.
#[test]
fn a_feed_goes_on_after_a_read_that_failed() {
    with_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let env = FaultEnv::over(MemEnv::new());
        let batches = Batches { value_bytes: 1500, ..Batches::new(seed) };
        let builder = plain(&env).lockstep(true);
        let builder = builder.memtable_bytes(8000).log_bytes(64 << 10).changes_bytes(64 << 20);
        let store = builder.open().unwrap();
        let mut progress = Progress::default();
        write(&store, &batches, &mut progress, 10);
        let mut feed = store.changes(SeqNo(1)).unwrap();
        let (mut last, mut failed) = (0, 0);
        for _ in 0..60 {
            let more = dice.below(6) as u64;
            write(&store, &batches, &mut progress, more);
            let class = Some(*dice.pick(&[OpClass::Read, OpClass::Open]));
            let lasting = *dice.pick(&[Lasting::Once, Lasting::Forever]);
            let (after, kind) = (dice.below(2) as u64, io::ErrorKind::Other);
            let effect = *dice.pick(&[Effect::Nothing, Effect::Partly]);
            env.set_with(Fault { class, after, lasting, kind }, effect);
            let (found, error) = read_on(&mut feed, &batches, last);
            env.clear();
            match error {
                None => assert_eq!(found, progress.acknowledged),
                Some(error) => {
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    failed += 1;
                }
            }
            last = found;
        }
        assert!(failed > 5, "{failed}");
        assert_eq!(read(&mut feed, &batches, last), progress.acknowledged);
    });
}
