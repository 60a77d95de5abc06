//! Nothing of a key or a value lies on the device in clear.

use super::{COUNT, check, fill, find_secrets, key, keys, small, value};
use lsmith::cipher::Keys;
use lsmith::env::{CipherEnv, Env, Loss, MemEnv};
use lsmith::{
    Backups, ErrorKind, IngestOptions, KeyspaceOptions, RecordOptions, Store, TableWriter,
    TableWriterOptions,
};
use std::sync::Arc;

fn cipher(env: &MemEnv) -> Arc<dyn Env> {
    Arc::new(CipherEnv::new(Arc::new(env.clone()), keys()))
}

fn check_clean(env: &MemEnv) {
    assert_eq!(find_secrets(env), [""; 0]);
}

/// Writes, overwrites and deletes under `policy`, with long values in files of their own.
fn live(env: &MemEnv, policy: &str) -> Store {
    let builder = small(env, keys()).policy(policy).large_values(60);
    let builder = builder.compression(if policy == "leveled(ratio=3)" { "lz4" } else { "none" });
    let store = builder.open().unwrap();
    let snapshot = store.snapshot();
    for life in 0..3 {
        fill(&store, life);
    }
    let space = store.existing_keyspace("space").unwrap();
    (0..COUNT).step_by(7).for_each(|index| space.delete(key(index)).unwrap());
    space.delete_range(key(100)..key(120)).unwrap();
    drop(snapshot);
    fill(&store, 3);
    store.settle().unwrap();
    store
}

#[test]
fn no_table_log_or_value_file_holds_a_secret() {
    for policy in ["tiered(ratio=3)", "leveled(ratio=3)", "jungle", "minlatency(k=2)", "arce"] {
        let env = MemEnv::new();
        let store = live(&env, policy);
        check_clean(&env);
        check(&store, 3);
        assert!(store.verify().unwrap().is_empty());
        drop(store);
        check_clean(&env);
        check(&small(&env, keys()).open().unwrap(), 3);
    }
}

#[test]
fn the_search_finds_what_is_in_clear() {
    let env = MemEnv::new();
    let store = Store::builder("/store").env(Arc::new(env.clone())).open().unwrap();
    fill(&store, 0);
    assert_eq!(find_secrets(&env).len(), 2);
}

#[test]
fn no_copy_holds_a_secret() {
    let env = MemEnv::new();
    let store = live(&env, "jungle");
    store.checkpoint("/checkpoint").unwrap();
    let backups = Backups::with_env("/backups", cipher(&env));
    let backup = store.backup(&backups).unwrap();
    fill(&store, 4);
    store.backup(&backups).unwrap();
    let space = store.existing_keyspace("space").unwrap();
    let options = TableWriterOptions { env: cipher(&env), ..TableWriterOptions::default() };
    let mut writer = TableWriter::create_with("/exported.table", &options).unwrap();
    assert_eq!(store.snapshot().export_newest::<&str>(&space, .., &mut writer).unwrap(), 700);
    writer.finish().unwrap();
    check_clean(&env);
    backups.restore(backup.id, "/restored").unwrap();
    check_clean(&env);
    for dir in ["/checkpoint", "/restored"] {
        let copy = Store::builder(dir).env(Arc::new(env.clone())).keys(keys()).open().unwrap();
        check(&copy, 3);
        assert!(copy.verify().unwrap().is_empty());
    }
    check_clean(&env);
}

#[test]
fn an_encrypted_store_makes_no_copy_in_clear() {
    let env = MemEnv::new();
    let store = live(&env, "tiered(ratio=3)");
    let clear: Arc<dyn Env> = Arc::new(env.clone());
    let error = store.backup(&Backups::with_env("/backups", Arc::clone(&clear))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("`Backups::with_env`"), "{error}");
    let options = TableWriterOptions { env: clear, ..TableWriterOptions::default() };
    let mut writer = TableWriter::create_with("/exported.table", &options).unwrap();
    let space = store.existing_keyspace("space").unwrap();
    let error = store.snapshot().export_newest::<&str>(&space, .., &mut writer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("`TableWriterOptions::env`"), "{error}");
    drop(writer);
    check_clean(&env);
}

#[test]
fn tables_are_written_and_ingested_encrypted() {
    let env = MemEnv::new();
    let options = TableWriterOptions { env: cipher(&env), ..TableWriterOptions::default() };
    let mut writer = TableWriter::create_with("/new.table", &options).unwrap();
    (0..COUNT).for_each(|index| writer.put(key(index), value(index, 5)).unwrap());
    writer.finish().unwrap();
    let store = small(&env, keys()).open().unwrap();
    let space = store.keyspace("space").unwrap();
    store.ingest(&space, &["/new.table"], &IngestOptions::default()).unwrap();
    check(&store, 5);
    check_clean(&env);
}

#[test]
fn crashes_leave_no_secret_and_lose_nothing_that_was_synced() {
    let losses = [
        Loss::Nothing,
        Loss::Everything,
        Loss::Contents,
        Loss::Names,
        Loss::Earlier,
        Loss::Later,
        Loss::Torn { logs: false },
        Loss::Torn { logs: true },
    ];
    let env = MemEnv::new();
    let store = small(&env, keys()).policy("jungle").persist(lsmith::PersistMode::SyncData);
    let store = store.open().unwrap();
    let space = store.keyspace("space").unwrap();
    for index in 0..COUNT {
        space.put(key(index), value(index, 0)).unwrap();
        if index % 100 == 50 {
            for (at, loss) in losses.into_iter().enumerate() {
                let after = env.power_loss((index * 10 + at) as u64, loss);
                check_clean(&after);
                let store = small(&after, keys()).open().unwrap();
                let space = store.existing_keyspace("space").unwrap();
                for known in 0..=index {
                    let found = space.get(key(known)).unwrap();
                    assert_eq!(found.as_deref(), Some(value(known, 0).as_bytes()), "{loss:?}");
                }
                assert!(store.verify().unwrap().is_empty());
                check_clean(&after);
            }
        }
    }
}

#[test]
fn a_recording_holds_no_secret() {
    let env = MemEnv::new();
    env.create_dir_all(std::path::Path::new("/folder")).unwrap();
    let options = RecordOptions { one_in: 1, ..RecordOptions::default() };
    let store = small(&env, keys()).record("/folder", options).open().unwrap();
    store.keyspace_with("space", &KeyspaceOptions::default()).unwrap();
    fill(&store, 0);
    drop(store);
    assert_eq!(env.list(std::path::Path::new("/folder")).unwrap().len(), 1);
    check_clean(&env);
}

#[test]
fn both_ciphers_work_and_are_told_apart() {
    let env = MemEnv::new();
    let chacha = || Keys::new(lsmith::cipher::MasterKey::chacha20_poly1305([1; 32]));
    let store = small(&env, chacha()).open().unwrap();
    fill(&store, 0);
    drop(store);
    check_clean(&env);
    check(&small(&env, chacha()).open().unwrap(), 0);
    assert!(small(&env, keys()).open().is_err());
}
