//! Operations that fail.
//!
//! Promised: whichever operation of the system fails, once or from then on, while a store is made,
//! opened, written, flushed, merged or closed, nothing panics and nothing hangs. The error has the
//! right kind, and an open store can still be read. The failed operation may have had no effect, a
//! partial effect, or all of its effect. After a failed write of log or manifest whose outcome is
//! unknown, writes are refused until the store is reopened. After any other failure they go on once
//! the cause is gone. Either way, everything acknowledged is there afterwards. A store is created
//! completely or not at all.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{
    Batches, POLICIES, Progress, any_mode, mapped_or_not, now_and_then, restless,
};
use crate::frame::contents::names;
use crate::frame::small::{DIR, plain};
use crate::frame::watchdog::ends;
use lsmith::env::{Effect, Env, Fault, FaultEnv, Lasting, Loss, MemEnv, OpClass};
use lsmith::{Error, ErrorKind, PersistMode, Store};
use std::io;
use std::path::Path;
use std::sync::Arc;

fn fault(class: impl Into<Option<OpClass>>, after: u64, lasting: Lasting) -> Fault {
    Fault { class: class.into(), after, lasting, kind: io::ErrorKind::Other }
}

/// Runs one life of a store, up to the first error. Returns the store if it opened, and the error.
fn live(
    env: &FaultEnv,
    batches: Batches,
    progress: &mut Progress,
    lockstep: bool,
    dice: &mut Dice,
) -> (Option<Store>, lsmith::Result<()>) {
    let builder = plain(env).lockstep(lockstep);
    let store = match restless(builder, dice).open() {
        Ok(store) => store,
        Err(error) => return (None, Err(error)),
    };
    let mut work = || {
        for _ in 0..60 {
            batches.go_on(&store, progress, any_mode(dice))?;
            now_and_then(&store, dice)?;
        }
        store.flush()?;
        store.keyspace("left")?.set_merge_policy(*dice.pick::<&str>(&POLICIES))?;
        store.keyspace("left")?.merge()?;
        store.persist(PersistMode::SyncAll)?;
        progress.synced = progress.acknowledged;
        Ok(())
    };
    let result = work();
    (Some(store), result)
}

/// Makes one operation fail, or all from then on, and checks what is left. The first one that fails
/// has the effect `effect` nevertheless.
fn live_with(rule: Fault, effect: Effect, lockstep: bool, seed: u64) {
    let mut dice = Dice::new(seed);
    let batches = Batches::new(seed);
    let disk = MemEnv::new();
    let env = FaultEnv::over(mapped_or_not(&disk, &mut dice));
    let mut progress = Progress::default();
    // A first life, so that the second one has something to recover.
    let (store, result) = live(&env, batches, &mut progress, lockstep, &mut dice);
    result.unwrap();
    drop(store);
    env.set_with(rule, effect);
    let (store, result) = live(&env, batches, &mut progress, lockstep, &mut dice);
    let full = rule.kind == io::ErrorKind::StorageFull;
    if let Err(error) = &result {
        let expected = match error.kind() {
            ErrorKind::Io | ErrorKind::Full => full == (error.kind() == ErrorKind::Full),
            ErrorKind::Poisoned => true,
            _ => false,
        };
        // A file that has failed once says so with another kind.
        assert!(expected || full && error.kind() == ErrorKind::Io, "{rule:?}: {error}");
    }
    env.clear();
    if let Some(store) = store {
        // Reads go on. A batch whose sync failed may be seen, though it is not acknowledged.
        assert!(batches.check(&store) >= progress.acknowledged);
        store.retry();
        match batches.go_on(&store, &mut progress, PersistMode::SyncData) {
            Ok(()) => {
                // A merge that met the fault before it was taken back may be given up only now.
                while store.flush().is_err() {
                    store.retry();
                }
            }
            Err(error) => {
                let fine = [ErrorKind::Poisoned, ErrorKind::Full].contains(&error.kind());
                assert!(fine, "{rule:?}: {error}");
            }
        }
        let progress = progress;
        let loss = *dice.pick(&Loss::ALL);
        examine(&disk.power_loss(dice.number(), loss), batches, progress.synced, progress);
        drop(store);
    }
    examine(&disk.process_crash_clone(), batches, progress.acknowledged, progress);
    examine(&disk, batches, progress.acknowledged, progress);
}

fn examine(disk: &MemEnv, batches: Batches, floor: u64, progress: Progress) {
    let store = plain(disk).lockstep(true).open().unwrap();
    let found = batches.check(&store);
    assert!((floor..=progress.tried).contains(&found), "{floor}.. promised, {found} found");
    let damage = store.verify().unwrap();
    assert!(damage.is_empty(), "{damage:?}");
}

/// Tries every class of operations, at points spread over two lives of a store.
fn fail_everywhere(lockstep: bool) {
    with_seeds(1, |seed| {
        let mut dice = Dice::new(seed);
        for class in OpClass::ALL {
            // Where the operations of a life are, one without faults tells, about.
            let env = FaultEnv::new(Arc::new(MemEnv::new()));
            let mut progress = Progress::default();
            let mut other = Dice::new(seed);
            let (store, result) =
                live(&env, Batches::new(seed), &mut progress, lockstep, &mut other);
            drop(store);
            result.unwrap();
            for _ in 0..15 {
                let after = dice.below(env.count(class) as usize) as u64;
                let lasting = *dice.pick(&[Lasting::Once, Lasting::Forever]);
                let kind = *dice.pick(&[io::ErrorKind::Other, io::ErrorKind::StorageFull]);
                let effect = *dice.pick(class.effects());
                live_with(Fault { kind, ..fault(class, after, lasting) }, effect, lockstep, seed);
            }
        }
    });
}

#[test]
fn any_operation_may_fail_in_lockstep() {
    fail_everywhere(true);
}

#[test]
fn any_operation_may_fail_with_threads() {
    fail_everywhere(false);
}

/// Makes a store in memory with a batch in it. The next operation of a class can be made to fail.
fn small_store() -> (MemEnv, FaultEnv, Store, Batches, Progress) {
    let disk = MemEnv::new();
    let env = FaultEnv::new(Arc::new(disk.clone()));
    let store = plain(&env).lockstep(true);
    let store = store.log_bytes(64 << 10).open().unwrap();
    let batches = Batches::new(0);
    let mut progress = Progress::default();
    batches.go_on(&store, &mut progress, PersistMode::SyncData).unwrap();
    (disk, env, store, batches, progress)
}

/// Asserts that writes are refused, reads go on, and reopening helps.
fn check_poisoned(first: Error, small: (MemEnv, FaultEnv, Store, Batches, Progress)) {
    let (disk, _, store, batches, mut progress) = small;
    assert_eq!(first.kind(), ErrorKind::Io, "{first}");
    assert!(first.path().is_some(), "{first}");
    for refused in [
        batches.go_on(&store, &mut progress, PersistMode::Buffer),
        store.persist(PersistMode::SyncAll),
        store.flush(),
        store.keyspace("another").map(drop),
        store.keyspace("left").unwrap().set_merge_policy("none"),
        store.keyspace("left").unwrap().merge(),
    ] {
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Poisoned);
    }
    assert!(batches.check(&store) >= 1);
    assert_eq!(store.verify().unwrap().len(), 0);
    drop(store);
    examine(&disk, batches, progress.acknowledged, progress);
}

#[test]
fn a_failed_append_to_the_log_refuses_writes() {
    let mut small = small_store();
    small.1.set(fault(OpClass::Append, 0, Lasting::Once));
    let error = small.3.go_on(&small.2, &mut small.4, PersistMode::Buffer).unwrap_err();
    check_poisoned(error, small);
}

#[test]
fn a_failed_sync_of_the_log_refuses_writes() {
    let mut small = small_store();
    small.1.set(fault(OpClass::LogSync, 0, Lasting::Once));
    let error = small.3.go_on(&small.2, &mut small.4, PersistMode::SyncData).unwrap_err();
    check_poisoned(error, small);
}

#[test]
fn a_failed_record_of_the_manifest_refuses_writes() {
    for class in [OpClass::Append, OpClass::LogSync] {
        let small = small_store();
        small.1.set(fault(class, 0, Lasting::Once));
        let error = small.2.keyspace("left").unwrap().set_merge_policy("none").unwrap_err();
        check_poisoned(error, small);
    }
}

/// A merge that fails for a reason of its own is reported to callers who wait for rest, and to
/// writers only when memory is full. It is tried again on request.
#[test]
fn a_failed_merge_can_be_tried_again() {
    // One that is kept under way is waited for without end.
    ends(|| {
        let (_, env, store, batches, mut progress) = small_store();
        env.set(fault(OpClass::Write, 0, Lasting::Forever));
        let error = store.flush().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().contains(".table"), "{error}");
        batches.go_on(&store, &mut progress, PersistMode::SyncData).unwrap();
        store.flush().unwrap_err();
        assert_eq!(names(&env, DIR, ".table").len(), 0, "what was given up is removed");
        assert_eq!(store.stats().plans_failed, 2);
        env.clear();
        assert!(!store.keyspace("left").unwrap().stats().failures.is_empty());
        store.retry();
        store.flush().unwrap();
        assert!(store.keyspace("left").unwrap().stats().failures.is_empty());
        assert_eq!(batches.check(&store), 2);
        assert_eq!(names(&env, DIR, ".table").len(), 4, "two memtables of each keyspace");
    });
}

/// If creation is cut short at any step, the directory is either no store, and one can be created
/// in it, or a complete one. Leftovers are removed.
#[test]
fn a_store_is_made_as_a_whole_or_not_at_all() {
    let open =
        |env: Arc<dyn Env>| Store::builder(DIR).env(env).lockstep(true).log_bytes(64 << 10).open();
    let mut made = 0;
    let mut left = 0;
    for after in 0.. {
        let disk = MemEnv::new();
        let env = FaultEnv::new(Arc::new(disk.clone()));
        env.set(fault(None, after, Lasting::Forever));
        let whole = open(Arc::new(env)).is_ok();
        let cuts = (0..20).map(|seed| disk.crash_clone(seed, 0.5));
        for disk in cuts.chain([disk.process_crash_clone(), disk.clone()]) {
            let reader = plain(&disk).read_only(true);
            match reader.open() {
                Ok(store) => assert!(store.verify().unwrap().is_empty()),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
                    assert!(!whole, "what was made is there");
                }
            }
            let store = open(Arc::new(disk.clone())).unwrap();
            store.keyspace("default").unwrap().put("a", "b").unwrap();
            let mut names = disk.list(Path::new(DIR)).unwrap();
            names.retain(|name| !["CURRENT", "LOCK", "readers"].contains(&&**name));
            names.sort_by_key(|name| name.ends_with(".wal"));
            assert_eq!(names.len(), 2, "{names:?}");
            assert!(names[0].ends_with(".manifest") && names[1].ends_with(".wal"), "{names:?}");
        }
        if whole {
            break;
        }
        made = after;
        // An error alone, without a crash, leaves nothing lying about.
        let disk = MemEnv::new();
        let env = FaultEnv::new(Arc::new(disk.clone()));
        env.set(fault(None, after, Lasting::Once));
        let opened = open(Arc::new(env));
        let names = disk.list(Path::new(DIR)).unwrap_or_default();
        let is_store = names.iter().any(|name| name == "CURRENT");
        assert!(is_store || opened.is_err());
        // But for the one step that may have put the new store in force.
        left += u32::from(!is_store && names.len() > 1);
        assert!(left <= 1, "{names:?}");
    }
    assert!(made > 10, "made in {made} steps");
}
