//! Number and length of log files.

use crate::frame::small::{DIR, fill, open, plain};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, Loss, MemEnv, OpClass};
use lsmith::{DEFAULT_KEYSPACE, PersistMode, Store};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Returns the number of logs, and all their bytes.
fn logs(env: &MemEnv) -> (usize, u64) {
    let names = env.list(Path::new(DIR)).unwrap().into_iter();
    let logs = names.filter(|name| name.contains(".wal"));
    let bytes = logs.map(|name| env.file_bytes(&Path::new(DIR).join(name)).unwrap());
    bytes.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes))
}

/// Something that is done in each of many lives of a store.
type Deed = fn(&Store, u32);

/// What broke: each opening added a log of full length that was never removed: 100 openings left
/// 104 files.
#[test]
fn many_openings_leave_few_logs() {
    let deeds: [(&str, Deed); 5] = [
        ("nothing", |_, _| {}),
        ("one put", |store, life| {
            let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
            space.put(life.to_be_bytes(), "value").unwrap();
        }),
        ("a sync of all", |store, _| store.persist(PersistMode::SyncAll).unwrap()),
        ("settling", |store, _| store.settle().unwrap()),
        ("a put that is synced", |store, life| {
            let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
            space.put(life.to_be_bytes(), "value").unwrap();
            store.persist(PersistMode::SyncData).unwrap();
        }),
    ];
    for (name, deed) in deeds {
        for policy in ["minlatency(k=5)", "choose_best"] {
            for killed in [false, true] {
                let mut env = MemEnv::new();
                for life in 0..60 {
                    let store = plain(&env).policy(policy).open().unwrap();
                    deed(&store, life);
                    if killed {
                        env = env.process_crash_clone();
                    }
                    drop(store);
                }
                let told = format!("{name}, {policy}, killed {killed}");
                let before = logs(&env);
                assert!(killed || before.1 < 100_000, "{told}: {before:?} after closing");
                let store = plain(&env).policy(policy).open().unwrap();
                store.settle().unwrap();
                let (count, bytes) = logs(&env);
                assert!(count <= 12, "{told}: {count} logs of {bytes} bytes");
                assert!(bytes < 40 << 20, "{told}: {count} logs of {bytes} bytes");
                if name.contains("put") {
                    let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
                    assert_eq!(space.iter().count(), 60, "{told}");
                }
            }
        }
    }
}

/// If inserts and removes cancel in memory, nothing is left to be flushed, and their log is not
/// needed.
#[test]
fn logs_are_bounded_where_all_writes_cancel() {
    let policies = ["full", "rr", "choose_best", "mixed", "minlatency(k=3)", "leveled(ratio=4)"];
    for policy in policies {
        for lockstep in [true, false] {
            let env = MemEnv::new();
            let builder = plain(&env).policy(policy).lockstep(lockstep).log_bytes(64 << 10);
            let (store, space) = open(builder.memtable_bytes(64 << 10).log_bytes_max(256 << 10));
            space.put("stays", "here").unwrap();
            let mut most = 0;
            for number in 0..30_000_u32 {
                let key = number.to_be_bytes();
                space.put_new_unchecked(key, [7; 100]).unwrap();
                space.delete_single_unchecked(key).unwrap();
                if number % 1000 == 999 {
                    if !lockstep {
                        store.settle().unwrap();
                    }
                    most = most.max(logs(&env).0);
                }
            }
            assert!(most <= 12, "{policy}, lockstep {lockstep}: {most} logs");
            let env = env.process_crash_clone();
            let (_store, space) = open(Store::builder(DIR).env(Arc::new(env)));
            assert_eq!(space.iter().count(), 1, "{policy}");
        }
    }
}

/// Logs may hold more than one memtable: reading them back fills as many as needed.
#[test]
fn logs_that_hold_several_memtables_are_read_back_into_several() {
    for policy in ["minlatency(k=3)", "choose_best"] {
        let env = MemEnv::new();
        let open = |memtable_bytes| {
            let builder = plain(&env).policy(policy).memtable_bytes(memtable_bytes);
            builder.log_bytes(1 << 20).log_bytes_max(8 << 20).open().unwrap()
        };
        let store = open(64 << 10);
        let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
        fill(&space, 0..3000, [7; 100]);
        let copy = env.process_crash_clone();
        drop((space, store));
        let store = plain(&copy).memtable_bytes(64 << 10).policy(policy).open().unwrap();
        let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
        assert_eq!(space.iter().count(), 3000);
        store.flush().unwrap();
        assert_eq!(space.iter().count(), 3000);
        assert!(store.verify().unwrap().is_empty());
    }
}

/// An opening replaces the logs of a process that has died by synced copies. Without room for a
/// copy, or where a system replaces no file that a reader has open, it keeps the log.
#[test]
fn a_log_that_cannot_be_replaced_is_kept() {
    use io::ErrorKind::{Other, ResourceBusy, StorageFull};
    for kind in [StorageFull, ResourceBusy, Other] {
        let disk = MemEnv::new();
        let (_died, space) = open(plain(&disk));
        space.put("first", "life").unwrap();
        let disk = disk.process_crash_clone();

        let env = FaultEnv::over(disk.clone());
        env.set(Fault { class: Some(OpClass::Rename), after: 0, lasting: Lasting::Once, kind });
        let opened = plain(&env).open();
        let (_, path) = env.first_failed().expect("a log is replaced");
        assert!(path.to_string_lossy().ends_with(".wal.new"), "{}", path.display());
        assert_eq!(opened.is_ok(), kind != Other);
        if let Ok(store) = opened {
            let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
            space.put("second", "life").unwrap();
            store.persist(PersistMode::SyncData).unwrap();
        }
        // What is kept is synced: the device lost all that was not.
        let (copies, found) = match kind {
            Other => (vec![disk.process_crash_clone()], 1),
            _ => (vec![disk.process_crash_clone(), disk.power_loss(1, Loss::Everything)], 2),
        };
        for copy in copies {
            let (_store, space) = open(plain(&copy));
            assert_eq!(space.get("first").unwrap().as_deref(), Some(&b"life"[..]), "{kind}");
            assert_eq!(space.iter().count(), found, "{kind}");
        }
    }
}
