//! Media that cannot do everything.
//!
//! Promised: a store lives on a file system that can neither allocate space ahead nor punch holes,
//! as on any other. So does one that asks only for what every system has. What can only be read is
//! read: a store on a medium that is read-only or full, or in a directory of others. A reader there
//! has no lease. If a writer beside it frees what it reads, that is an error, and never a wrong
//! answer. Repair goes on without a lock there, and fails if somebody writes meanwhile.
//!
//! Tests with mounts of their own run where a process may mount something. Each has a twin with an
//! environment that refuses, which runs everywhere.

use crate::dice::Dice;
use crate::frame::batches::{Batches, Progress, now_and_then, restless};
use crate::frame::mounts::{mount, mounted, with_mount};
use crate::frame::scripted::{Call, Op, Scripted, When};
use crate::frame::small::plain_at;
use lsmith::env::{Env, MemEnv, RealEnv};
use lsmith::{Builder, Keyspace, PersistMode, RepairOptions, Store, repair};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Writes batches in several lives of the store in `dir` of `env`.
fn live(dir: &Path, seed: u64, env: RealEnv) {
    let mut dice = Dice::new(seed);
    let batches = Batches::new(seed);
    let mut progress = Progress::default();
    for _ in 0..3 {
        let builder = Store::builder(dir).env(Arc::new(env));
        let store = restless(builder, &mut dice).open().unwrap();
        assert_eq!(batches.check(&store), progress.acknowledged);
        for number in 0..150 {
            let mode = match number % 50 {
                0 => PersistMode::SyncAll,
                1..9 => PersistMode::SyncData,
                _ => PersistMode::Buffer,
            };
            batches.go_on(&store, &mut progress, mode).unwrap();
            now_and_then(&store, &mut dice).unwrap();
        }
        store.settle().unwrap();
        assert!(store.verify().unwrap().is_empty());
        store.checkpoint(dir.join(format!("../copy{}", progress.acknowledged))).unwrap();
    }
}

#[test]
fn child_without_fallocate() {
    let Some(dir) = mounted() else { return };
    for seed in 0..3 {
        live(&dir.join(format!("{seed}/store")), seed, RealEnv::new());
    }
    // A hole that cannot be punched is no error of the device.
    let file = dir.join("file");
    std::fs::write(&file, [1; 8192]).unwrap();
    let punched = RealEnv::new().punch(&file, 0..4096).unwrap_err();
    assert_eq!(punched.kind(), ErrorKind::Unsupported);
}

/// What broke: no store could be made on a file system that cannot allocate space ahead. The twin
/// is `zeros_are_written_where_space_cannot_be_allocated`.
#[test]
fn a_store_lives_where_no_space_can_be_allocated_ahead() {
    with_mount("disk::file_systems::child_without_fallocate", "mount -t ramfs none \"$D\"");
}

#[test]
fn child_in_memory() {
    let Some(dir) = mounted() else { return };
    live(&dir.join("store"), 1, RealEnv::new());
}

#[test]
fn a_store_lives_on_a_mount_in_memory() {
    with_mount("disk::file_systems::child_in_memory", "mount -t tmpfs none \"$D\"");
}

/// Windows has no maps of files that lose their names, no holes and no syncs of directories.
#[test]
fn a_store_lives_where_only_what_every_system_has_is_asked_for() {
    for seed in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        live(&dir.path().join("store"), seed, RealEnv::new().plain());
    }
}

/// Returns `disk`, where every change in `/ro` fails with `kind`. `at_open` is called with each
/// file that is opened.
fn refusing(disk: &MemEnv, kind: ErrorKind, at_open: fn(&MemEnv, &Path)) -> Arc<dyn Env> {
    let beneath = disk.clone();
    Arc::new(Scripted::new(disk.clone(), move |call: &mut Call<'_>| match call.op {
        Op::CreateDir
        | Op::Remove
        | Op::RemoveDir
        | Op::Rename
        | Op::Link
        | Op::Punch
        | Op::Create
        | Op::WriteOn
        | Op::CreateLog
        | Op::Lock
        | Op::LockFile
            if call.path.starts_with("/ro") =>
        {
            Err(kind.into())
        }
        Op::Open if call.when == When::Before => {
            at_open(&beneath, call.path);
            Ok(())
        }
        _ => Ok(()),
    }))
}

const KINDS: [ErrorKind; 4] = [
    ErrorKind::ReadOnlyFilesystem,
    ErrorKind::PermissionDenied,
    ErrorKind::StorageFull,
    ErrorKind::QuotaExceeded,
];

/// Makes a store with tables, and with entries that are only in its log.
fn fill(store: &Store) {
    let space = store.keyspace("space").unwrap();
    for number in 0..200 {
        space.put(format!("key{number:03}"), number.to_string()).unwrap();
        if number == 150 {
            space.flush().unwrap();
        }
    }
}

fn check_filled(store: &Store) {
    let space = store.existing_keyspace("space").unwrap();
    for number in 0..200 {
        let found = space.get(format!("key{number:03}")).unwrap();
        assert_eq!(found.as_deref(), Some(number.to_string().as_bytes()));
    }
    assert_eq!(space.iter().map(Result::unwrap).count(), 200);
    assert_eq!(space.iter().rev().map(Result::unwrap).count(), 200);
}

/// Reads the store that `builder` opens in every way, without changing it.
fn check_readable(builder: &Builder) {
    let store = builder.clone().read_only(true).open().unwrap();
    check_filled(&store);
    store.refresh().unwrap();
    check_filled(&store);
    assert!(store.verify().unwrap().is_empty());
    assert_eq!(store.left_out().unwrap(), []);
    assert_eq!(builder.list_keyspaces().unwrap().len(), 1);
    assert!(!store.existing_keyspace("space").unwrap().tree().to_string().is_empty());
}

/// What broke: `get`, `scan`, `verify` and `repair` were refused where no lease and no lock can be
/// made, as after a file system has become read-only, when they are needed most.
#[test]
fn what_can_only_be_read_is_read() {
    for kind in KINDS {
        let disk = MemEnv::new();
        fill(&plain_at("/ro", &disk).open().unwrap());
        let env = refusing(&disk, kind, |_, _| {});
        let builder = Store::builder("/ro").env(Arc::clone(&env));
        check_readable(&builder);
        let options = RepairOptions { env: Arc::clone(&env), ..RepairOptions::default() };
        assert!(repair(&options, "/ro", "/saved").unwrap().is_exact(), "{kind:?}");
        check_filled(&Store::builder("/saved").env(Arc::clone(&env)).open().unwrap());
        let error = builder.open().unwrap_err();
        assert!(!error.to_string().contains("in in"), "{error}");
    }
}

/// Opens the writer of a store whose merges keep blocks, so that holes are punched.
fn punching(disk: &MemEnv) -> (Store, Keyspace) {
    let builder = plain_at("/ro", disk).lockstep(true);
    let builder = builder.policy("choose_best(ratio=3, rate=0.2)").memtable_bytes(16 << 10);
    let store = builder.block_bytes(200).open().unwrap();
    let space = store.keyspace("space").unwrap();
    (store, space)
}

fn write(space: &Keyspace, round: u64) {
    for number in 0..800_u64 {
        let key = format!("{:04}", number.wrapping_mul(2_654_435_761 + round) % 2000);
        space.put(key, round.to_string().repeat(20)).unwrap();
    }
}

/// A reader without a lease, and a writer beside it that frees what it reads. In maps the disk
/// shows garbage where a hole was punched.
#[test]
fn a_reader_without_a_lease_never_gets_a_wrong_answer() {
    let disk = MemEnv::new();
    let (store, space) = punching(&disk);
    let reader = Store::builder("/ro").read_only(true).cache_bytes(0);
    let reader = reader.env(refusing(&disk, ErrorKind::PermissionDenied, |_, _| {}));
    let mut errors = 0;
    for round in 0..5 {
        write(&space, round);
        let reader = reader.clone().open().unwrap();
        let seen = reader.existing_keyspace("space").unwrap();
        let expected: Vec<_> = space.iter().map(Result::unwrap).collect();
        let check = |errors: &mut u32| {
            for (key, value) in &expected {
                match seen.get(key) {
                    Ok(found) => assert_eq!(found.as_ref(), Some(value)),
                    Err(_) => *errors += 1,
                }
            }
        };
        check(&mut errors);
        assert_eq!(errors, 0, "nothing was freed yet in round {round}");
        for more in 0..3 {
            write(&space, 100 * (round + 1) + more);
        }
        check(&mut errors);
        errors = 0;
        reader.refresh().unwrap();
        let now: Vec<_> = space.iter().map(Result::unwrap).collect();
        assert_eq!(seen.iter().map(Result::unwrap).collect::<Vec<_>>(), now);
    }
    assert!(space.stats().punched_bytes > 0, "{:?}", space.stats());
    drop(store);
}

/// Without a lock a writer may come while the store is repaired. It is then not the store that was
/// read from the beginning.
#[test]
fn a_repair_without_a_lock_fails_if_somebody_writes_meanwhile() {
    let disk = MemEnv::new();
    fill(&plain_at("/ro", &disk).open().unwrap());
    let at_open = |disk: &MemEnv, path: &Path| {
        if path.extension().is_some_and(|kind| kind == "table") {
            let store = plain_at("/ro", disk).open().unwrap();
            store.keyspace("space").unwrap().put("key", "new").unwrap();
        }
    };
    let env = refusing(&disk, ErrorKind::ReadOnlyFilesystem, at_open);
    let options = RepairOptions { env, ..RepairOptions::default() };
    let error = repair(&options, "/ro", "/saved").unwrap_err();
    assert_eq!(error.kind(), lsmith::ErrorKind::Locked);
}

fn check_repaired(from: &Path, to: &Path) {
    assert!(repair(&RepairOptions::default(), from, to).unwrap().is_exact());
    check_filled(&Store::builder(to).open().unwrap());
}

#[test]
fn child_read_only() {
    let Some(dir) = mounted() else { return };
    let aside = tempfile::tempdir().unwrap();
    let builder = Store::builder(dir.join("store"));
    let store = builder.clone().open().unwrap();
    fill(&store);
    // A read-only view of a medium that somebody writes to.
    let view = aside.path().join("view");
    fs::create_dir(&view).unwrap();
    mount(&["--bind", dir.to_str().unwrap()], &view);
    mount(&["-o", "remount,bind,ro"], &view);
    check_readable(&Store::builder(view.join("store")));
    let reader = Store::builder(view.join("store")).read_only(true).open().unwrap();
    store.keyspace("space").unwrap().put("key000", "new").unwrap();
    store.flush().unwrap();
    reader.refresh().unwrap();
    let found = reader.existing_keyspace("space").unwrap().get("key000").unwrap();
    assert_eq!(found.as_deref(), Some(&b"new"[..]));
    store.keyspace("space").unwrap().put("key000", "0").unwrap();
    drop((reader, store));
    // The whole medium.
    mount(&["-o", "remount,ro"], &dir);
    check_readable(&builder);
    check_repaired(&dir.join("store"), &aside.path().join("saved"));
    let error = builder.open().unwrap_err().to_string();
    assert!(error.contains("Read-only file system"), "{error}");
}

#[test]
fn a_read_only_mount_is_read() {
    with_mount("disk::file_systems::child_read_only", "mount -t tmpfs none \"$D\"");
}

/// The environment variable of a child that may only read the directory.
#[cfg(unix)]
const OTHERS: &str = "LSMITH_OTHERS_DIR";

#[cfg(unix)]
#[test]
fn child_of_others() {
    let Some(dir) = std::env::var_os(OTHERS).map(std::path::PathBuf::from) else { return };
    let refused = fs::File::create(dir.join("store/file")).map(drop);
    assert_eq!(refused.map_err(|error| error.kind()), Err(ErrorKind::PermissionDenied));
    check_readable(&Store::builder(dir.join("store")));
    let to = tempfile::tempdir().unwrap();
    check_repaired(&dir.join("store"), &to.path().join("saved"));
}

/// Somebody who may read the files of another, and not write in their directory. Windows has no
/// modes of files.
#[cfg(unix)]
#[test]
fn a_directory_of_others_is_read() {
    use std::os::unix::{fs::PermissionsExt, process::CommandExt};
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    fill(&Store::builder(dir.path().join("store")).open().unwrap());
    let store = dir.path().join("store");
    for entry in fs::read_dir(&store).unwrap() {
        fs::set_permissions(entry.unwrap().path(), fs::Permissions::from_mode(0o444)).unwrap();
    }
    fs::set_permissions(&store, fs::Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "disk::file_systems::child_of_others", "--nocapture"])
        .env(OTHERS, dir.path());
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    match command.output() {
        // Nobody else may run this program.
        Err(error) => eprintln!("a directory of others is not tried: {error}"),
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && told.contains("1 passed"), "{told}{errors}");
        }
    }
    fs::set_permissions(&store, fs::Permissions::from_mode(0o755)).unwrap();
}
