//! A new master key takes the place of an old one.

use super::{check, fill, find_secrets, keys, master, small};
use lsmith::cipher::Keys;
use lsmith::env::{CipherEnv, Env, Fault, FaultEnv, Lasting, Loss, MemEnv};
use lsmith::{ErrorKind, Store};
use std::path::Path;
use std::sync::Arc;

fn both() -> Keys {
    Keys::new(master(2)).and_older(master(1))
}

fn new() -> Keys {
    Keys::new(master(2))
}

/// Returns a store with tables, append tables, value files and logs under the old key.
fn old(policy: &str) -> MemEnv {
    let env = MemEnv::new();
    let builder = small(&env, keys()).policy(policy).persist(lsmith::PersistMode::SyncData);
    let store = builder.large_values(60).changes_bytes(1 << 20).open().unwrap();
    (0..2).for_each(|life| fill(&store, life));
    let copy = env.process_crash_clone();
    drop(store);
    copy
}

#[test]
fn merges_write_with_the_newest_key_and_the_old_one_is_needed_for_the_rest() {
    let env = old("tiered(ratio=3)");
    let store = small(&env, both()).open().unwrap();
    check(&store, 1);
    fill(&store, 2);
    check(&store, 2);
    store.existing_keyspace("space").unwrap().merge().unwrap();
    drop(store);
    // Every table was merged, and every opening begins a manifest. So only logs may be left.
    let cipher = CipherEnv::new(Arc::new(env.clone()), both());
    for name in env.list(Path::new("/store")).unwrap() {
        let path = Path::new("/store").join(&name);
        let has_content = !name.ends_with("wal") && name != "LOCK" && env.open(&path).is_ok();
        assert!(!has_content || !cipher.is_stale(&path).unwrap(), "{name}");
    }
    check(&small(&env, both()).open().unwrap(), 2);
}

#[test]
fn after_a_renewal_the_old_key_is_not_needed() {
    for policy in ["tiered(ratio=3)", "jungle"] {
        let env = old(policy);
        assert!(small(&env, new()).open().is_err());
        let store = small(&env, both()).renew_keys(true).changes_bytes(1 << 20).open().unwrap();
        check(&store, 1);
        assert!(store.verify().unwrap().is_empty());
        drop(store);
        let store = small(&env, new()).changes_bytes(1 << 20).open().unwrap();
        check(&store, 1);
        assert!(store.verify().unwrap().is_empty());
        fill(&store, 2);
        drop(store);
        assert_eq!(find_secrets(&env), [""; 0]);
        let error = small(&env, keys()).open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn an_interrupted_renewal_goes_on() {
    let env = old("jungle");
    let mut failed = 0;
    for after in (0..).step_by(11) {
        let disk = env.process_crash_clone();
        let faulty = FaultEnv::over(disk.clone());
        let kind = std::io::ErrorKind::TimedOut;
        faulty.set(Fault { class: None, after, lasting: Lasting::Forever, kind });
        let builder = Store::builder("/store").env(Arc::new(faulty)).keys(both());
        if builder.renew_keys(true).open().is_ok() {
            break;
        }
        failed += 1;
        for loss in [Loss::Nothing, Loss::Everything, Loss::Later] {
            let disk = disk.power_loss(after, loss);
            check(&small(&disk, both()).open().unwrap(), 1);
            check(&small(&disk, both()).renew_keys(true).open().unwrap(), 1);
            check(&small(&disk, new()).open().unwrap(), 1);
            let names = disk.list(Path::new("/store")).unwrap();
            assert!(names.iter().all(|name| !name.ends_with(".renewed")), "{names:?}");
        }
    }
    assert!(failed > 5, "{failed}");
}

/// Behind a damaged record of a log there may be others, which a repair finds with the old key.
#[test]
fn a_damaged_log_keeps_its_key() {
    let env = MemEnv::new();
    let builder = || small(&env, keys()).memtable_bytes(1 << 20).log_bytes(1 << 20);
    let store = builder().persist(lsmith::PersistMode::SyncData).open().unwrap();
    fill(&store, 0);
    let env = env.process_crash_clone();
    drop(store);
    let files = |env: &MemEnv| super::files(env, Path::new("/store"));
    let is_log = |path: &Path| path.extension().is_some_and(|end| end == "wal");
    let (path, mut log) = files(&env).into_iter().find(|(path, _)| is_log(path)).unwrap();
    log[2000] ^= 1;
    env.remove_file(&path).unwrap();
    let mut file = env.create(&path).unwrap();
    file.write_all(&log).unwrap();
    file.sync().unwrap();
    let error = small(&env, both()).renew_keys(true).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let (_, after) = files(&env).into_iter().find(|(other, _)| *other == path).unwrap();
    assert!(after == log, "the log has another key now");
}
