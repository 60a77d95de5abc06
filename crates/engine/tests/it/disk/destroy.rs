//! Stores that are destroyed.
//!
//! Promised: the files of the store go, and no others. A store that is open is refused, and so is a
//! directory that is no store. A call that is stopped leaves the whole store, or remains that are
//! no store and that another call removes.

use crate::dice::{Dice, any_seed};
use crate::frame::batches::{Batches, Progress};
use crate::frame::faults::{any_fault, stops};
use crate::frame::small::{plain_at, small_at};
use lsmith::env::{Effect, Env, Fault, FaultEnv, Lasting, Loss, MemEnv, OpClass, RealEnv};
use lsmith::{Backups, ErrorKind, PersistMode, Store};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DIR: &str = "/stores/one";
const BATCHES: Batches =
    Batches { seed: 7, keys: 80, key_bytes: 8, value_bytes: 200, in_group: false, ranges: true };
const WRITTEN: u64 = 60;

/// The number of stop points in a short test.
const SAMPLE: usize = 40;

/// Returns a disk with a store that has tables, logs and perhaps a spill.
fn disk() -> MemEnv {
    let disk = MemEnv::new();
    let builder = small_at(DIR, &disk).policy("minlatency(k=2)").log_bytes_max(64 << 10);
    let store = builder.open().unwrap();
    let mut progress = Progress::default();
    for _ in 0..WRITTEN {
        BATCHES.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
    }
    store.persist(PersistMode::SyncAll).unwrap();
    drop(store);
    disk
}

fn add(env: &dyn Env, name: &str, content: &str) {
    let mut file = env.create(&Path::new(DIR).join(name)).unwrap();
    file.write_all(content.as_bytes()).unwrap();
    file.sync().unwrap();
}

/// Asserts that the store is gone with its directory, and that a new one can be made there.
fn check_gone(disk: &MemEnv) {
    assert_eq!(disk.list(Path::new("/stores")).unwrap(), Vec::<String>::new());
    let store = small_at(DIR, disk).open().unwrap();
    assert!(store.keyspaces().is_empty());
    store.keyspace("new").unwrap().put("k", "v").unwrap();
}

#[test]
fn all_files_of_a_store_go_and_no_others() {
    let disk = disk();
    drop(small_at(DIR, &disk).read_only(true).open().unwrap());
    let own = ["000009.wal.lost", "000009.wal.4096.lost", "000010.wal.new", "CURRENT.new"];
    for name in own.into_iter().chain(["readers/000001.32.0", "000077.spill", "000078.table"]) {
        add(&disk, name, "what the store has left");
    }
    let empty = disk.process_crash_clone();
    assert_eq!(small_at(DIR, &empty).destroy().unwrap(), Vec::<PathBuf>::new());
    check_gone(&empty);

    let strangers = ["12.table", "99999999999.wal", "notes.lost", "notes.txt", "readers/mine"];
    strangers.iter().for_each(|name| add(&disk, name, "somebody's"));
    disk.create_dir_all(&Path::new(DIR).join("000011.table")).unwrap();
    let left = small_at(DIR, &disk).destroy().unwrap();
    let names = ["000011.table", "12.table", "99999999999.wal", "notes.lost", "notes.txt"];
    let names: Vec<PathBuf> =
        names.into_iter().chain(["readers"]).map(|name| Path::new(DIR).join(name)).collect();
    assert_eq!(left, names);
    assert_eq!(disk.list(&Path::new(DIR).join("readers")).unwrap(), ["mine"]);
    let error = small_at(DIR, &disk).destroy().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "it is no store any more");
}

#[test]
fn an_open_store_is_not_destroyed() {
    let disk = disk();
    let locked = || {
        let error = small_at(DIR, &disk).destroy().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    };
    let writer = small_at(DIR, &disk).open().unwrap();
    locked();
    let reader = small_at(DIR, &disk).read_only(true).open().unwrap();
    locked();
    drop(writer);
    locked();
    assert_eq!(BATCHES.check(&reader), WRITTEN);
    drop(reader);
    let store = small_at(DIR, &disk).open().unwrap();
    assert_eq!(BATCHES.check(&store), WRITTEN);
    drop(store);
    small_at(DIR, &disk).destroy().unwrap();
    check_gone(&disk);
}

/// The directory of another program, of backups, or of a store that has lost `CURRENT`, which
/// repair can save, stays as it is.
#[test]
fn what_is_no_store_is_refused_and_stays() {
    let refused = |disk: &MemEnv, kind: ErrorKind| {
        let before = disk.list(Path::new(DIR)).unwrap_or_default();
        let error = small_at(DIR, disk).destroy().unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let mut after = disk.list(Path::new(DIR)).unwrap_or_default();
        after.retain(|name| name != "LOCK" || before.contains(name));
        assert_eq!(after, before);
    };
    let missing = MemEnv::new();
    refused(&missing, ErrorKind::NotFound);
    assert!(missing.list(Path::new("/stores")).is_err(), "nothing is made either");
    missing.create_dir_all(Path::new(DIR)).unwrap();
    refused(&missing, ErrorKind::NotFound);
    add(&missing, "000012.table", "");
    refused(&missing, ErrorKind::NotFound);
    assert_eq!(missing.list(Path::new(DIR)).unwrap(), ["000012.table"], "there is no lock");

    let other_program = MemEnv::new();
    other_program.create_dir_all(Path::new(DIR)).unwrap();
    for (name, content) in [("CURRENT", "MANIFEST-000005\n"), ("000006.wal", ""), ("LOCK", "")] {
        add(&other_program, name, content);
    }
    refused(&other_program, ErrorKind::Corruption);

    let lost = disk();
    lost.remove_file(&Path::new(DIR).join("CURRENT")).unwrap();
    refused(&lost, ErrorKind::NotFound);

    let copied = disk();
    let store = small_at(DIR, &copied).open().unwrap();
    store.backup(&Backups::with_env("/stores/copies", Arc::new(copied.clone()))).unwrap();
    drop(store);
    let backups = plain_at("/stores/copies", &copied);
    assert_eq!(backups.destroy().unwrap_err().kind(), ErrorKind::NotFound);
}

/// A store that no program can open any more can still be destroyed.
#[test]
fn a_damaged_store_is_destroyed() {
    let disk = disk();
    let names = disk.list(Path::new(DIR)).unwrap();
    for name in names.iter().filter(|name| name.ends_with(".manifest") || name.ends_with(".wal")) {
        disk.truncate(&Path::new(DIR).join(name), 10).unwrap();
    }
    small_at(DIR, &disk).open().unwrap_err();
    small_at(DIR, &disk).destroy().unwrap();
    check_gone(&disk);
}

/// Destroys the store on a copy of `start`, with a fault and its effect. Returns the disk, the
/// number of operations, and whether the call succeeded.
fn run(start: &MemEnv, fault: Option<(Fault, Effect)>) -> (MemEnv, u64, bool) {
    let disk = start.process_crash_clone();
    let env = FaultEnv::over(disk.clone());
    if let Some((fault, effect)) = fault {
        env.set_with(fault, effect);
    }
    let destroyed = small_at(DIR, &env).destroy();
    (disk, env.count_all(), destroyed.is_ok())
}

/// Asserts that `disk` has the whole store or none, and that another call destroys what is left.
fn examine(disk: &MemEnv, returned: bool) {
    match small_at(DIR, &disk.process_crash_clone()).create_if_missing(false).open() {
        Ok(store) => {
            assert!(!returned, "a store that was destroyed is there");
            assert_eq!(BATCHES.check(&store), WRITTEN);
            assert_eq!(store.verify().unwrap().len(), 0);
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::NotFound, "{error}"),
    }
    match small_at(DIR, disk).destroy() {
        Ok(left) => assert_eq!(left, Vec::<PathBuf>::new()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            let left = disk.list(Path::new(DIR)).unwrap_or_default();
            assert!(left.iter().all(|name| name == "LOCK"), "{left:?}");
        }
    }
    let store = small_at(DIR, disk).open().unwrap();
    assert!(store.keyspaces().is_empty());
}

#[test]
fn a_store_is_whole_or_gone_wherever_its_end_is_stopped() {
    let seed = any_seed();
    let mut dice = Dice::new(seed);
    // All of it is synced, so that power loss divides the changes of this call alone.
    let start = disk().power_loss(seed, Loss::Nothing);
    let (gone, operations, destroyed) = run(&start, None);
    assert!(destroyed && operations > 15, "{operations} operations");
    examine(&gone.power_loss(seed, Loss::Everything), true);
    check_gone(&run(&start, None).0);
    for after in stops(&mut dice, operations, SAMPLE) {
        let (fault, effect) = any_fault(&mut dice, after);
        let (left, _, destroyed) = run(&start, Some((fault, effect)));
        println!("seed {seed}, {fault:?}, {effect:?}");
        examine(&left.process_crash_clone(), destroyed);
        for loss in Loss::ALL {
            println!("{loss:?}");
            examine(&left.power_loss(seed + after, loss), destroyed);
        }
    }
}

/// What an interrupted checkpoint has left is destroyed too.
#[test]
fn remains_of_a_checkpoint_are_destroyed() {
    let disk = MemEnv::new();
    disk.create_dir_all(Path::new(DIR)).unwrap();
    for (name, content) in [("CURRENT.coming", ""), ("000003.table", "half"), ("LOCK", "")] {
        add(&disk, name, content);
    }
    small_at(DIR, &disk).destroy().unwrap();
    check_gone(&disk);
}

#[test]
fn a_store_on_a_real_disk_is_destroyed() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("store");
    for env in [RealEnv::new(), RealEnv::new().unmapped()] {
        let open = || Store::builder(&dir).env(Arc::new(env)).open().unwrap();
        let store = open();
        store.keyspace("a").unwrap().put("k", "v").unwrap();
        store.flush().unwrap();
        drop(store);
        let reader = Store::builder(&dir).read_only(true).open().unwrap();
        assert_eq!(Store::destroy(&dir).unwrap_err().kind(), ErrorKind::Locked);
        drop(reader);
        Store::destroy(&dir).unwrap();
        assert!(!dir.exists() && parent.path().exists());
        assert!(open().keyspaces().is_empty());
        Store::destroy(&dir).unwrap();
    }
}

/// A system may let nobody remove a file that somebody has locked or open.
#[test]
fn a_lock_file_that_is_busy_goes_when_it_is_released_or_stays() {
    let disk = disk();
    let probe = FaultEnv::over(disk.process_crash_clone());
    small_at(DIR, &probe).destroy().unwrap();
    // The lock file goes last, in front of the directory.
    let after = probe.count(OpClass::Remove) - 2;
    for lasting in [Lasting::Once, Lasting::Forever] {
        let disk = disk.process_crash_clone();
        let env = FaultEnv::over(disk.clone());
        let kind = io::ErrorKind::ResourceBusy;
        env.set(Fault { class: Some(OpClass::Remove), after, lasting, kind });
        let left = small_at(DIR, &env).destroy().unwrap();
        let lock = Path::new(DIR).join("LOCK");
        assert_eq!(env.first_failed(), Some((OpClass::Remove, lock.clone())));
        if lasting == Lasting::Forever {
            assert_eq!(left, [lock]);
            let error = small_at(DIR, &disk).destroy().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "it is no store any more");
            disk.remove_file(&left[0]).unwrap();
            disk.remove_dir(Path::new(DIR)).unwrap();
        }
        check_gone(&disk);
    }
}
