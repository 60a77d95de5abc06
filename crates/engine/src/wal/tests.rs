//! Tests of the row of logs.

use super::ahead::AHEAD_LOGS;
use crate::{DEFAULT_KEYSPACE, Store};
use lsmith_storage::env::{Env, MemEnv};
use std::path::Path;
use std::sync::Arc;

#[test]
fn log_made_ahead_is_used_next() {
    let env = MemEnv::new();
    let open = || {
        let builder = Store::builder("/store").env(Arc::new(env.clone())).lockstep(true);
        builder.log_bytes(1 << 20).memtable_bytes(64 << 20).open().unwrap()
    };
    let logs = || {
        let names = env.list(Path::new("/store")).unwrap();
        names.into_iter().filter(|name| name.ends_with(".wal")).collect::<Vec<_>>()
    };
    let store = open();
    let keyspace = store.keyspace(DEFAULT_KEYSPACE).unwrap();
    let put = |numbers: std::ops::Range<u32>| {
        for index in numbers {
            keyspace.put(index.to_be_bytes(), [7; 1000]).unwrap();
        }
    };
    put(0..100);
    store.engine().wal.make_log_ahead();
    assert_eq!(logs().len(), 1, "the log is nearly empty");
    put(100..700);
    (0..5).for_each(|_| store.engine().wal.make_log_ahead());
    let ahead = logs();
    assert_eq!(ahead.len(), 1 + AHEAD_LOGS);
    put(700..2500);
    assert_eq!(logs(), ahead, "no writer had to make a log");
    store.engine().wal.make_log_ahead();
    assert_eq!(logs().len(), 2 + AHEAD_LOGS, "the first log is still needed");
    store.engine().wal.make_log_ahead();
    drop((keyspace, store));
    let keyspace = open().keyspace(DEFAULT_KEYSPACE).unwrap();
    assert_eq!(keyspace.iter().count(), 2500);
}
