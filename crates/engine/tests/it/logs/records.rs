//! What a new log is told of its records.

use crate::frame::scripted::{Call, Op, Scripted};
use crate::frame::small::plain;
use lsmith::env::MemEnv;
use lsmith::{Batch, DEFAULT_KEYSPACE, PersistMode};
use parking_lot::Mutex;
use std::sync::Arc;

const LOG_BYTES: u64 = 256 << 10;

/// Promised: a log is made for records of the length that they had before, and for none in
/// particular if they were synced often. Logs that are made ahead learn it later.
#[test]
fn a_new_log_is_told_how_long_records_are() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let env = Scripted::new(MemEnv::new(), {
        let told = Arc::clone(&told);
        move |call: &mut Call<'_>| {
            if call.is_done(Op::CreateLog) {
                told.lock().push(call.range.end);
            }
            Ok(())
        }
    });
    let store = plain(&env).log_bytes(LOG_BYTES).open().unwrap();
    let space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
    let write = |value_bytes: u64, mode| {
        let logs = told.lock().len();
        for key in 0..5 * LOG_BYTES / value_bytes {
            let mut batch = Batch::new();
            batch.put(&space, key.to_be_bytes(), vec![1; value_bytes as usize]);
            store.write(batch, mode).unwrap();
        }
        store.settle().unwrap();
        let told = told.lock();
        assert!(told.len() > logs + 3, "{told:?}");
        told[told.len() - 1]
    };
    for value_bytes in [6000, 100, 20_000] {
        let usual = write(value_bytes, PersistMode::Buffer);
        // Keys and heads make records longer, and there is a short record here and there.
        let about = value_bytes * 9 / 10..value_bytes + 100;
        assert!(about.contains(&usual), "{usual}, not {value_bytes}");
    }
    assert_eq!(write(6000, PersistMode::SyncData), 0);
}
