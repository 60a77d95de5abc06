//! Few files open at a time.
//!
//! Promised: a mapped table keeps no file open. Where tables are not mapped, at most as many files
//! stay open as `max_open_files` says. A process that may open no more files gets an error which
//! names the limit and the way out. Nothing is lost then, the store goes on refusing nothing that
//! it can do, and all goes on once descriptors are there again.
//!
//! Each test runs in a process of its own, because the limit holds for the process.

use crate::frame::contents::get;
use lsmith::env::RealEnv;
use lsmith::{Batch, Error, Keyspace, KeyspaceOptions, PersistMode, Store};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// The environment variable of the child: its directory.
const DIR: &str = "LSMITH_DESCRIPTORS_DIR";

/// The usual limit.
const LIMIT: u64 = 1024;

/// Runs the test `child` of this program in a process of its own, which may have `limit` files
/// open. Returns in the child, with its directory.
fn alone(child: &str, limit: u64) -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os(DIR) {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum }).unwrap();
        return Some(PathBuf::from(dir));
    }
    // In memory, where a sync costs nothing.
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = format!("disk::descriptors::{child}");
    command.args(["--exact", &test, "--nocapture"]).env(DIR, dir.path());
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
    None
}

/// Returns the number of descriptors of this process, and how many of them belong to tables.
fn descriptors() -> (usize, usize) {
    let all: Vec<_> = fs::read_dir("/proc/self/fd").unwrap().map(|fd| fd.unwrap().path()).collect();
    let is_table = |fd: &&PathBuf| {
        fs::read_link(fd).is_ok_and(|path| path.to_string_lossy().contains(".table"))
    };
    (all.len(), all.iter().filter(is_table).count())
}

fn name(number: u32) -> String {
    format!("space{number}")
}

/// What broke: each table kept a descriptor for ever. With 1,200 keyspaces flushes failed from the
/// thousandth on, and the store did not open again.
#[test]
fn many_keyspaces_have_few_files_open() {
    let Some(dir) = alone("many_keyspaces_have_few_files_open", LIMIT) else { return };
    let builder = || Store::builder(dir.join("store")).log_bytes(64 << 10);
    let store = builder().open().unwrap();
    for number in 0..1200 {
        let options = KeyspaceOptions {
            group: (number % 4 == 0).then(|| format!("group{}", number / 200)),
            policy: Some("tiered(ratio=4)".into()),
            ..KeyspaceOptions::default()
        };
        let space = store.keyspace_with(&name(number), &options).unwrap();
        space.put("key", number.to_string()).unwrap();
    }
    store.flush().unwrap();
    let (all, tables) = descriptors();
    assert_eq!(tables, 0, "of {all}");
    assert!(all < 40, "{all}");
    drop(store);
    let store = builder().open().unwrap();
    for number in 0..1200 {
        let space = store.existing_keyspace(&name(number)).unwrap();
        assert_eq!(get(&space, "key"), Some(number.to_string()));
        space.put("more", "value").unwrap();
    }
    store.flush().unwrap();
    assert!(store.verify().unwrap().is_empty());
    store.checkpoint(dir.join("copy")).unwrap();
    let reader = builder().read_only(true).open().unwrap();
    reader.refresh().unwrap();
    drop((reader, store));
    let report =
        lsmith::repair(&lsmith::RepairOptions::default(), dir.join("copy"), dir.join("to"));
    assert!(report.unwrap().is_exact());
}

/// Logs that nobody syncs are kept, for a sync to come.
#[test]
fn full_logs_have_no_files_open() {
    let Some(dir) = alone("full_logs_have_no_files_open", 64) else { return };
    let store = Store::builder(dir.join("store")).memtable_bytes(1 << 20).open().unwrap();
    // Few writes keep the logs of many.
    store.keyspace("quiet").unwrap().put("key", "value").unwrap();
    let busy = store.keyspace("busy").unwrap();
    for number in 0..120 {
        busy.put(number.to_string(), [7; 40_000]).unwrap();
    }
    let logs = fs::read_dir(dir.join("store")).unwrap().map(|entry| entry.unwrap().path());
    assert!(logs.filter(|path| path.extension().is_some_and(|kind| kind == "wal")).count() > 30);
    assert!(descriptors().0 < 20, "{}", descriptors().0);
    store.persist(PersistMode::SyncAll).unwrap();
    assert!(descriptors().0 < 20, "{}", descriptors().0);
}

/// Makes `tables` tables of one keyspace, and reads all.
fn read_unmapped(dir: &Path, tables: u32, compression: &str, max: Option<usize>) -> usize {
    let env = if compression == "none" { RealEnv::new().unmapped() } else { RealEnv::new() };
    let builder = Store::builder(dir).env(Arc::new(env)).policy("constant(k=1)").cache_bytes(0);
    let builder = builder.compression(compression).log_bytes(64 << 10);
    let store = match max {
        Some(max) => builder.max_open_files(max).open().unwrap(),
        None => builder.open().unwrap(),
    };
    let spaces: Vec<Keyspace> =
        (0..tables).map(|number| store.keyspace(&name(number)).unwrap()).collect();
    for (number, space) in (0_u32..).zip(&spaces) {
        space.put("key", number.to_string().repeat(100)).unwrap();
        space.flush().unwrap();
    }
    store.settle().unwrap();
    let mut most = 0;
    for round in 0..3 {
        for (number, space) in (0_u32..).zip(&spaces) {
            assert_eq!(get(space, "key"), Some(number.to_string().repeat(100)), "{round}");
        }
        most = most.max(descriptors().1);
        assert!(store.verify().unwrap().is_empty());
        most = most.max(descriptors().1);
    }
    most
}

#[test]
fn unmapped_tables_keep_as_many_files_open_as_the_option_says() {
    let test = "unmapped_tables_keep_as_many_files_open_as_the_option_says";
    let Some(dir) = alone(test, 200) else { return };
    for (index, compression) in ["none", "lz4"].into_iter().enumerate() {
        for (max, expected) in [(Some(20), 18..=20), (Some(1), 1..=1), (None, 47..=50)] {
            let dir = dir.join(format!("{index}{max:?}"));
            let most = read_unmapped(&dir, 120, compression, max);
            assert!(expected.contains(&most), "{compression}, {max:?}: {most}");
        }
        // More than the process may have: the store makes room when it must.
        read_unmapped(&dir.join(format!("{index}all")), 250, compression, Some(usize::MAX));
    }
}

/// Opens files until no more can be opened, and then closes `free` of them.
fn use_up(free: usize) -> Vec<File> {
    let mut files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    files.truncate(files.len() - free);
    files
}

fn is_explained(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("(RLIMIT_NOFILE)") && text.contains("`max_open_files`")
}

/// Keys that make records of the manifest long, so that it rolls often.
fn long_key(number: u32) -> String {
    format!("{number:08}{}", "k".repeat(50_000))
}

/// Does everything that opens files, under any shortage. Returns the number of errors.
fn try_all(store: &Store, dir: &Path, round: u32) -> usize {
    let space = store.existing_keyspace("space").unwrap();
    let mut errors = 0;
    let mut note = |what: &str, done: lsmith::Result<()>| {
        if let Err(error) = done {
            assert!(is_explained(&error), "{what}: {error}");
            errors += 1;
        }
    };
    note("flush", space.flush());
    note("merge", space.merge());
    note("make", store.keyspace(&format!("new{round}")).map(drop));
    note(
        "policy",
        space.set_merge_policy(["tiered(ratio=2)", "constant(k=1)"][round as usize % 2]),
    );
    note("checkpoint", store.checkpoint(dir.join(format!("copy{round}"))).map(drop));
    note("verify", store.verify().map(drop));
    note(
        "rename",
        store.rename_keyspace(&format!("new{round}"), &format!("old{round}")).or(Ok(())),
    );
    errors
}

/// What broke: a manifest that had rolled could not sync its directory, and the store was poisoned.
#[test]
fn a_shortage_of_descriptors_loses_nothing_and_passes() {
    let Some(dir) = alone("a_shortage_of_descriptors_loses_nothing_and_passes", 100) else {
        return;
    };
    let open = || {
        let builder = Store::builder(dir.join("store")).policy("tiered(ratio=2)");
        builder.log_bytes(64 << 10).memtable_bytes(10 << 20).open().unwrap()
    };
    let store = open();
    let space = store.keyspace("space").unwrap();
    let mut next = 0;
    let mut put = |space: &Keyspace| {
        let mut batch = Batch::new();
        batch.put(space, long_key(next), next.to_string());
        let done = store.write(batch, PersistMode::Buffer);
        next += u32::from(done.is_ok());
        done
    };
    let mut errors = 0;
    for round in 0..24 {
        for _ in 0..3 {
            put(&space).unwrap();
        }
        let files = use_up(round as usize % 12);
        // Logs end, and none can be made: an error before the write, and never a poisoned store.
        for _ in 0..4 {
            if let Err(error) = put(&space) {
                assert!(is_explained(&error), "{error}");
            }
        }
        if round % 12 == 0 {
            store.persist(PersistMode::SyncAll).unwrap();
        }
        errors += try_all(&store, &dir, round);
        assert_eq!(get(&space, &long_key(0)).as_deref(), Some("0"), "mapped tables are read");
        drop(files);
        put(&space).unwrap();
        store.flush().unwrap();
    }
    assert!(errors > 10, "{errors}");
    store.settle().unwrap();
    assert!(store.verify().unwrap().is_empty());
    let written = next;
    let check = |store: &Store| {
        let space = store.existing_keyspace("space").unwrap();
        for number in 0..written {
            assert_eq!(get(&space, &long_key(number)), Some(number.to_string()));
        }
    };
    check(&store);
    drop((space, store));
    for free in 0..20 {
        let files = use_up(free);
        match Store::builder(dir.join("store")).open() {
            Ok(store) => check(&store),
            Err(error) => assert!(is_explained(&error), "{error}"),
        }
        drop(files);
    }
    check(&open());
}

/// What is tried again by itself: nobody calls `retry`.
#[test]
fn a_flush_that_found_no_descriptor_is_made_later() {
    let Some(dir) = alone("a_flush_that_found_no_descriptor_is_made_later", 64) else { return };
    let store = Store::builder(dir.join("store")).memtable_bytes(1 << 20).open().unwrap();
    let space = store.keyspace("space").unwrap();
    space.put("key", "value").unwrap();
    let files = use_up(0);
    let error = space.flush().unwrap_err();
    assert!(is_explained(&error), "{error}");
    drop(files);
    while store.settle().is_err() {
        std::thread::yield_now();
    }
    assert_eq!(space.stats().tables, 1);
}
