//! What goes on when a part of a store fails.
//!
//! Promised: code of the application that fails for a key costs that key alone. Whatever keeps the
//! memory of a keyspace from being flushed costs the writes to that keyspace alone. All others are
//! written, and the logs that they share stay bounded. The error names the way out, which is one
//! call.

use crate::frame::operators::{Append, Mood, Moody};
use crate::frame::small::{DIR, fill, plain_at, small};
use crate::frame::watchdog::{ends, wait_until};
use lsmith::env::{Env, MemEnv};
use lsmith::{
    Batch, Builder, Clock, Error, ErrorKind, Event, Expiry, Isolation, Keyspace, KeyspaceOptions,
    Observer, PersistMode, Store, TableWriter, TableWriterOptions, Verdict,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

const LOG_BYTES: u64 = 64 << 10;

/// The bytes of log that old entries may keep.
const LOG_BYTES_MAX: u64 = 256 << 10;

fn builder(env: &MemEnv, lockstep: bool) -> Builder {
    let builder = small(env).lockstep(lockstep).memtable_bytes(16 << 10).policy("tiered(ratio=3)");
    builder.log_bytes(LOG_BYTES).log_bytes_max(LOG_BYTES_MAX)
}

fn with(operator: &str) -> KeyspaceOptions {
    KeyspaceOptions { operator: Some(operator.into()), ..KeyspaceOptions::default() }
}

fn files(env: &MemEnv, kind: &str) -> Vec<String> {
    let names = env.list(Path::new(DIR)).unwrap().into_iter();
    names.filter(|name| name.contains(kind)).collect()
}

/// Returns the bytes of all logs.
fn log_bytes(env: &MemEnv) -> u64 {
    let bytes = |name: &String| env.file_bytes(&Path::new(DIR).join(name)).unwrap_or(0);
    files(env, ".wal").iter().map(bytes).sum()
}

/// Writes two megabytes to another keyspace. All writes must succeed, and the logs stay bounded.
fn others_go_on(env: &MemEnv, store: &Store, lockstep: bool) {
    let others = store.keyspace("others").unwrap();
    // One log is not counted, and one is being written.
    let most = LOG_BYTES_MAX + 2 * LOG_BYTES;
    for number in 0..2000_u32 {
        others.put((number % 100).to_be_bytes(), [7; 1000]).unwrap();
        if lockstep && number % 50 == 0 {
            assert!(log_bytes(env) <= most, "{} bytes of logs", log_bytes(env));
        }
    }
    assert_eq!(others.iter().map(Result::unwrap).count(), 100);
    others.flush().unwrap();
    // Threads may still be at it.
    wait_until(|| log_bytes(env) <= most);
}

fn callback(error: &Error) -> (ErrorKind, Option<&[u8]>) {
    (error.kind(), error.key())
}

/// What broke: an operand that the operator cannot take was accepted. Every later flush failed,
/// then all writes to the keyspace, and the logs of all others grew without bound.
#[test]
fn operand_that_the_operator_cannot_take_is_refused_at_the_call() {
    let env = MemEnv::new();
    let store = builder(&env, true).open().unwrap();
    let visits = store.keyspace_with("visits", &with("counter")).unwrap();
    let wrong = 1_u32.to_le_bytes();
    let refused = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let told = "the operator `counter` refuses an operand: expected a number of 8 bytes, found \
                    4, at key `/index`";
        assert!(error.to_string().contains(told), "{error}");
    };
    refused(visits.combine("/index", wrong).unwrap_err());
    let mut batch = Batch::new();
    batch.combine(&visits, "/other", 1_i64.to_le_bytes());
    batch.combine(&visits, "/index", wrong);
    let error = store.write(batch, PersistMode::Buffer).unwrap_err();
    assert!(error.message().starts_with("write 2 of the batch, a combine"), "{error}");
    refused(error);
    let mut transaction = store.transaction(Isolation::Snapshot);
    refused(transaction.combine(&visits, "/index", wrong).unwrap_err());
    assert_eq!(transaction.commit(PersistMode::Buffer).unwrap(), store.snapshot().seq());
    let operator = Some("counter".to_string());
    let options = TableWriterOptions { env: Arc::new(env.clone()), operator, ..Default::default() };
    let mut writer = TableWriter::create_with("/visits", &options).unwrap();
    refused(writer.combine("/index", wrong).unwrap_err());
    writer.combine("/index", 1_i64.to_le_bytes()).unwrap();
    drop(writer);
    // A batch that was made for a keyspace of the same name with another operator.
    let elsewhere = Store::builder("/elsewhere").env(Arc::new(env)).operator(Append);
    let elsewhere = elsewhere.open().unwrap();
    let other = elsewhere.keyspace_with("visits", &with("append")).unwrap();
    let mut batch = Batch::new();
    batch.combine(&other, "/index", wrong);
    let bound = store.bind(&batch.detach().unwrap()).unwrap();
    refused(store.write(bound, PersistMode::Buffer).unwrap_err());
    assert!(visits.is_empty().unwrap());
    // An operator that panics is refused in the same way.
    struct Prude;
    impl lsmith::Combine for Prude {
        fn name(&self) -> &str {
            "prude"
        }

        fn combine(
            &self,
            _: &[u8],
            _: Option<&[u8]>,
            _: &[&[u8]],
        ) -> Result<Vec<u8>, lsmith::CombineError> {
            Ok(Vec::new())
        }

        fn check_operand(&self, _: &[u8], _: &[u8]) -> Result<(), lsmith::CombineError> {
            panic!("never");
        }
    }
    let store = plain_at("/prude", &MemEnv::new()).operator(Prude);
    let store = store.open().unwrap();
    let prude = store.keyspace_with("prude", &with("prude")).unwrap();
    let error = prude.combine("key", "a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback, "{error}");
    assert!(prude.is_empty().unwrap());
}

/// Asserts that scans, from either end and by a cursor, go on behind the key `bad`, which lies
/// between others.
fn check_scans(notes: &Keyspace) {
    let good = notes.iter().filter_map(Result::ok).map(|(key, _)| key);
    let good: Vec<_> = good.collect();
    assert_eq!(good[0], "a");
    assert_eq!(good.last().unwrap(), "z");
    let bad = |entry: Result<_, Error>| entry.err().map(|error| error.key().unwrap().to_vec());
    assert_eq!(notes.iter().filter_map(bad).collect::<Vec<_>>(), [b"bad"]);
    assert_eq!(notes.iter().rev().filter_map(bad).collect::<Vec<_>>(), [b"bad"]);
    let back: Vec<_> = notes.iter().rev().filter_map(Result::ok).map(|(key, _)| key).collect();
    assert!(back.iter().rev().eq(&good));
    let mut cursor = notes.cursor();
    assert_eq!(cursor.first().unwrap().unwrap().0, b"a");
    assert_eq!(callback(&cursor.next().unwrap_err()), (ErrorKind::Callback, Some(&b"bad"[..])));
    let next = cursor.next().unwrap().unwrap().0.to_vec();
    assert_eq!(next, good[1]);
    assert_eq!(cursor.prev().unwrap_err().key(), Some(&b"bad"[..]));
    assert_eq!(cursor.prev().unwrap().unwrap().0, b"a");
    let mut transaction = notes.store().transaction(Isolation::Serializable);
    let entries = transaction.range::<&[u8]>(notes, ..);
    assert_eq!(entries.filter(Result::is_ok).count(), good.len());
}

/// Asserts that nothing but the key `bad` is affected by its operator.
fn check_bad_key(notes: &Keyspace) {
    for error in [notes.get("bad").unwrap_err(), notes.contains("bad").unwrap_err()] {
        assert_eq!(callback(&error), (ErrorKind::Callback, Some(&b"bad"[..])));
        let told = error.to_string();
        assert!(told.contains("operator of keyspace `notes`"), "{told}");
        assert!(told.ends_with("at key `bad`: put or delete the key"), "{told}");
    }
    assert_eq!(notes.get("a").unwrap().as_deref(), Some(&b"v"[..]));
    check_scans(notes);
}

/// What broke: a merge failed because the operator failed for one key. No later one was made, and
/// all writes to the keyspace were refused.
#[test]
fn operator_that_fails_costs_its_key_alone() {
    for (policy, mood) in [
        ("tiered(ratio=3)", Mood::Panics),
        ("tiered(ratio=3)", Mood::Exaggerates),
        ("choose_best(ratio=2, rate=0.2)", Mood::Fails),
        ("jungle(c=2, ratio=2)", Mood::Fails),
    ] {
        for lockstep in [true, false] {
            ends(move || {
                let env = MemEnv::new();
                let moody = Moody::new(Mood::Good);
                let open = || builder(&env, lockstep).operator(moody.clone()).policy(policy).open();
                let store = open().unwrap();
                let notes = store.keyspace_with("notes", &with("moody")).unwrap();
                for key in ["a", "bad", "z"] {
                    notes.put(key, "v").unwrap();
                }
                store.flush().unwrap();
                moody.set(mood);
                for round in 0..4_u32 {
                    notes.combine("bad", [b'0' + round as u8]).unwrap();
                    for number in 0..200_u32 {
                        notes.put([b"c", &number.to_be_bytes()[..]].concat(), [1; 100]).unwrap();
                    }
                    notes.delete_range("d".."e").unwrap();
                    store.flush().unwrap();
                    check_bad_key(&notes);
                }
                notes.merge().unwrap();
                check_bad_key(&notes);
                assert!(notes.stats().failures.is_empty());
                others_go_on(&env, &store, lockstep);
                drop((notes, store));
                let store = open().unwrap();
                let notes = store.keyspace("notes").unwrap();
                check_bad_key(&notes);
                // Nothing is lost.
                moody.set(Mood::Good);
                assert_eq!(notes.get("bad").unwrap().as_deref(), Some(&b"v0123"[..]));
                moody.set(mood);
                // Either way out.
                for deletes in [true, false] {
                    notes.combine("bad", "x").unwrap();
                    notes.get("bad").unwrap_err();
                    let healed = if deletes { notes.delete("bad") } else { notes.put("bad", "w") };
                    healed.unwrap();
                    notes.get("bad").unwrap();
                    assert!(notes.iter().all(|entry| entry.is_ok()));
                }
                notes.merge().unwrap();
                assert_eq!(notes.get("bad").unwrap().as_deref(), Some(&b"w"[..]));
            });
        }
    }
}

/// A call that reads and writes fails as a read does, and leaves the key as it is. A range delete
/// of a transaction is a way out, as a delete is.
#[test]
fn operator_that_fails_costs_updates_of_its_key_alone() {
    for mood in [Mood::Panics, Mood::Fails, Mood::Exaggerates] {
        let moody = Moody::new(Mood::Good);
        let store = builder(&MemEnv::new(), true).operator(moody.clone()).open().unwrap();
        let notes = store.keyspace_with("notes", &with("moody")).unwrap();
        for key in ["a", "bad", "z"] {
            notes.put(key, "v").unwrap();
        }
        notes.combine("bad", "+").unwrap();
        moody.set(mood);
        let failed = |error: Error| {
            assert_eq!(callback(&error), (ErrorKind::Callback, Some(&b"bad"[..])), "{error}");
        };
        failed(notes.compare_and_swap("bad", Some(b"v"), Some(b"w")).unwrap_err());
        failed(notes.compare_and_swap("bad", None, None).unwrap_err());
        notes.compare_and_swap("z", Some(b"v"), Some(b"w")).unwrap().unwrap();
        assert_eq!(notes.pop_first().unwrap().unwrap().0, "a");
        assert_eq!(notes.pop_last().unwrap().unwrap().0, "z");
        failed(notes.pop_first().unwrap_err());
        failed(notes.pop_last().unwrap_err());
        let mut one = store.transaction(Isolation::Serializable);
        failed(one.pop_first(&notes).unwrap_err());
        assert!(one.is_empty());
        // Nothing was written.
        moody.set(Mood::Good);
        assert_eq!(notes.get("bad").unwrap().as_deref(), Some(&b"v+"[..]));
        moody.set(mood);
        one.delete_range(&notes, "b".."c").unwrap();
        assert_eq!(one.pop_first(&notes).unwrap(), None);
        one.commit(PersistMode::Buffer).unwrap();
        assert!(notes.is_empty().unwrap());
        notes.compare_and_swap("bad", None, Some(b"w")).unwrap().unwrap();
        assert_eq!(notes.pop_first().unwrap().unwrap().0, "bad");
    }
}

/// Asserts that calls that read and write are refused, and commits of range deletes, because of
/// `cause`.
fn check_updates_are_refused(sick: &Keyspace, cause: &str) {
    let cut = || {
        let mut one = sick.store().transaction(Isolation::Snapshot);
        one.delete_range(sick, [0]..[255])?;
        one.commit(PersistMode::Buffer)
    };
    let refused = [
        sick.compare_and_swap("new", None, Some(b"value")).map(drop),
        sick.pop_first().map(drop),
        sick.pop_last().map(drop),
        cut().map(drop),
    ];
    for error in refused.map(Result::unwrap_err) {
        assert!(error.to_string().contains(cause), "{error}");
    }
}

/// One failure, and the call that ends it.
struct Failure {
    store: Store,
    sick: Keyspace,
    /// A part of the message that writers get.
    cause: &'static str,
    /// The call that the message names.
    way_out: &'static str,
}

/// Writes to the sick keyspace until that is refused. Then the others go on, and after `heal` so
/// does the sick one.
fn check_failure(env: &MemEnv, lockstep: bool, failure: Failure, heal: impl FnOnce(&Failure)) {
    let Failure { store, sick, cause, way_out } = &failure;
    let put = |number: u32| sick.put(number.to_be_bytes(), [3; 1000]);
    let refused = (0..100_000).find_map(|number| Some((number, put(number).err()?)));
    let (acknowledged, error) = refused.unwrap();
    let told = error.to_string();
    assert!(told.contains(cause) && told.contains(way_out), "{told}");
    check_updates_are_refused(sick, cause);
    others_go_on(env, store, lockstep);
    assert!(!sick.stats().failures.is_empty());
    let crashed = env.process_crash_clone();
    heal(&failure);
    for number in 0..100 {
        put(number).unwrap();
    }
    sick.flush().unwrap();
    store.settle().unwrap();
    assert_eq!(files(env, "spill"), [""; 0], "a spill is not needed any more");
    // All that was acknowledged has survived the process.
    let store = builder(&crashed, lockstep).open().unwrap();
    let sick = store.keyspace("sick").unwrap();
    for number in 0..acknowledged {
        assert_eq!(sick.get(number.to_be_bytes()).unwrap().unwrap(), [3; 1000].as_slice());
    }
}

#[test]
fn filter_that_fails_costs_writes_to_its_keyspace_alone() {
    for (lockstep, is_long) in [(true, false), (false, false), (true, true)] {
        ends(move || {
            let env = MemEnv::new();
            let fails = Arc::new(AtomicBool::new(true));
            let asked = Arc::clone(&fails);
            let filter = move |_: &[u8], _: &[u8]| match asked.load(SeqCst) {
                true if is_long => Verdict::Change(vec![0; lsmith::VALUE_BYTES_MAX]),
                true => panic!("a filter"),
                false => Verdict::Keep,
            };
            let store = builder(&env, lockstep).merge_filter("sick", filter).open().unwrap();
            let sick = store.keyspace("sick").unwrap();
            let cause = "the filter of keyspace `sick`";
            let failure = Failure { store, sick, cause, way_out: "until `Store::retry`" };
            check_failure(&env, lockstep, failure, |failure| {
                fails.store(false, SeqCst);
                failure.store.retry();
            });
        });
    }
}

/// The policy takes memory and the damaged table in one plan, so that memory cannot be flushed.
#[test]
fn damaged_table_costs_writes_to_its_keyspace_alone() {
    for lockstep in [true, false] {
        ends(move || {
            let env = MemEnv::new();
            let store = builder(&env, lockstep).open().unwrap();
            let policy = Some("constant(k=1)".into());
            let options = KeyspaceOptions { policy, ..KeyspaceOptions::default() };
            let sick = store.keyspace_with("sick", &options).unwrap();
            fill(&sick, 0..20, [1; 1000]);
            store.flush().unwrap();
            let tables = files(&env, ".table");
            env.flip(&Path::new(DIR).join(&tables[0]), 700, 1).unwrap();
            let way_out = "`Keyspace::clear` or a repair";
            let failure = Failure { store, sick, cause: ".table at offset", way_out };
            check_failure(&env, lockstep, failure, |failure| failure.sick.clear().unwrap());
        });
    }
}

/// Each flush needs more room than there is. The others need less.
#[test]
fn merge_without_room_costs_writes_to_its_keyspace_alone() {
    for lockstep in [true, false] {
        ends(move || {
            let env = MemEnv::with_capacity(8 << 20);
            let store = builder(&env, lockstep).open().unwrap();
            let policy = Some("constant(k=1)".into());
            let options = KeyspaceOptions { policy, ..KeyspaceOptions::default() };
            let sick = store.keyspace_with("sick", &options).unwrap();
            let mut load = sick.bulk_load().unwrap();
            (0..3000_u32).for_each(|number| load.put(number.to_be_bytes(), [1; 1000]).unwrap());
            load.finish().unwrap();
            store.settle().unwrap();
            let mut ballast = env.create(Path::new("/ballast")).unwrap();
            let free = env.free_bytes(Path::new("/")).unwrap() - (3 << 19);
            ballast.write_all(&vec![0; free as usize]).unwrap();
            drop(ballast);
            let cause = "cannot write";
            let failure = Failure { store, sick, cause, way_out: "until there is room" };
            let disk = env.clone();
            check_failure(&env, lockstep, failure, move |_| {
                disk.remove_file(Path::new("/ballast")).unwrap();
            });
        });
    }
}

/// Reads and writes that need the time fail. Merges drop nothing, so memory is flushed.
#[test]
fn clock_that_panics_costs_what_needs_the_time() {
    for lockstep in [true, false] {
        ends(move || {
            let env = MemEnv::new();
            let fails = Arc::new(AtomicBool::new(false));
            let asked = Arc::clone(&fails);
            let clock = Clock::new("shy", move || match asked.load(SeqCst) {
                true => panic!("a clock"),
                false => 7,
            });
            let store = builder(&env, lockstep).clock(clock).open().unwrap();
            let expiry = Some(Expiry::after(10));
            let options = KeyspaceOptions { expiry, ..KeyspaceOptions::default() };
            let sick = store.keyspace_with("sick", &options).unwrap();
            sick.put("key", "value").unwrap();
            fails.store(true, SeqCst);
            for error in [sick.put("other", "value").unwrap_err(), sick.get("key").unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::Callback);
                assert!(error.to_string().contains("the clock of the store panicked"), "{error}");
            }
            sick.delete("third").unwrap();
            store.flush().unwrap();
            sick.merge().unwrap();
            others_go_on(&env, &store, lockstep);
            fails.store(false, SeqCst);
            assert_eq!(sick.get("key").unwrap().as_deref(), Some(&b"value"[..]));
        });
    }
}

/// An observer that panics on merging threads, at everything that it receives.
#[derive(Debug)]
struct Shy;

impl Observer for Shy {
    fn on_event(&self, _: &str, _: &Event<'_>) {
        let name = std::thread::current().name().unwrap_or_default().to_string();
        assert!(!name.starts_with("lsmith-merge"), "an observer");
    }
}

#[test]
fn observer_that_panics_costs_nobody_a_write() {
    ends(|| {
        let env = MemEnv::new();
        let store = builder(&env, false).observer(Arc::new(Shy)).open().unwrap();
        let others = store.keyspace("others").unwrap();
        for number in 0..4000_u32 {
            others.put((number % 100).to_be_bytes(), [7; 1000]).unwrap();
        }
        let error = store.settle().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Panicked);
        assert!(error.to_string().contains("`Store::retry`"), "{error}");
        wait_until(|| log_bytes(&env) <= LOG_BYTES_MAX + 2 * LOG_BYTES);
        assert_eq!(others.iter().map(Result::unwrap).count(), 100);
    });
}
