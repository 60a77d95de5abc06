//! The directory of a store.
//!
//! Promised: with the store, every directory that was made for it survives power loss.

use crate::frame::small::{plain_at, small_at};
use lsmith::env::{Env, FaultEnv, MemEnv};
use lsmith::{PersistMode, Store};
use std::path::Path;
use std::sync::Arc;

fn check(dir: &str, env: &MemEnv) {
    let store = small_at(dir, &env.crash_clone(1, 0.0)).open().unwrap();
    let found = store.keyspace("default").unwrap().get("a").unwrap();
    assert_eq!(found.as_deref(), Some(&b"b"[..]), "in {dir}");
}

fn put_synced(store: &Store) {
    store.keyspace("default").unwrap().put("a", "b").unwrap();
    store.persist(PersistMode::SyncAll).unwrap();
}

const DIRS: [&str; 5] = ["store", "/store", "/a/store", "/a/b/store", "a/b/store"];

#[test]
fn a_store_made_in_new_directories_survives_power_loss() {
    for dir in DIRS {
        let env = MemEnv::new();
        put_synced(&small_at(dir, &env).open().unwrap());
        check(dir, &env);
    }
}

/// What broke: a process that made the directories died before it synced them.
#[test]
fn a_store_made_in_directories_that_were_just_made_survives_power_loss() {
    for dir in DIRS {
        let env = MemEnv::new();
        env.create_dir_all(Path::new(dir)).unwrap();
        put_synced(&small_at(dir, &env.process_crash_clone()).open().unwrap());
        put_synced(&small_at(dir, &env).open().unwrap());
        check(dir, &env);
    }
}

#[test]
fn a_store_that_is_there_needs_no_directory_made() {
    let env = MemEnv::new();
    put_synced(&small_at("/a/store", &env).open().unwrap());
    let counted = FaultEnv::new(Arc::new(env));
    let builder = plain_at("/a/store", &counted);
    let before = counted.count(lsmith::env::OpClass::Create);
    let store = builder.lockstep(true).open().unwrap();
    // What becomes `CURRENT`, and the log that is written anew.
    assert_eq!(counted.count(lsmith::env::OpClass::Create) - before, 2);
    drop(store);
}
