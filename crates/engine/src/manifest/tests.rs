use super::file::{ManifestFile, ROOM_BYTES};
use super::*;
use lsmith_storage::env::{Env, MemEnv};
use lsmith_storage::error::ErrorKind;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::sync::atomic::AtomicU64;
use std::path::Path;
use std::sync::Arc;

const DIR: &str = "/store";

/// Returns the account of one keyspace with `tables` tables.
fn account(tables: u64) -> Account {
    let slice = |table| format!("t{table}:#{table}..#{} 1MB", table + 1);
    let slices: Vec<String> = (1..=tables).map(slice).collect();
    let mut account = Account::default();
    let keyspace = "keyspace 0 default memtable 4MiB policy none\n".to_string();
    let tree = format!("short_tree 0 flushed 1\ntree\nL0 r1[{}]\n", slices.join(", "));
    for record in [keyspace, tree] {
        account.take(Record::decode(record.as_bytes()).unwrap()).unwrap();
    }
    account
}

/// A manifest whose first account is longer than [`ROOM_BYTES`] passed for whole when it was cut
/// just behind a record: its end was clean, and it was long enough. The records behind the cut were
/// lost silently.
#[test]
fn long_manifest_cut_behind_a_record_is_damage() {
    let env = MemEnv::new();
    let dir = Path::new(DIR);
    env.create_dir_all(dir).unwrap();
    let shared: Arc<dyn Env> = Arc::new(env.clone());
    let counts = Arc::default();
    let files = Arc::new(AtomicU64::new(30_000));
    let mut manifest =
        ManifestFile::create(&shared, dir, &counts, &files, account(20_000)).unwrap();
    let mut borders = vec![manifest.log.bytes()];
    for policy in ["tiered(ratio=2)", "tiered(ratio=3)", "tiered(ratio=4)"] {
        manifest.write(Record::Policy { keyspace: 0, policy: policy.into() }).unwrap();
        borders.push(manifest.log.bytes());
    }
    assert!(borders[0] > ROOM_BYTES as u64, "{borders:?}");
    let (at, found) = read(&env, dir).unwrap().unwrap();
    assert_eq!(found.keyspaces, manifest.account().keyspaces);
    let path = numbered(dir, FileKind::Manifest, at.manifest);
    let length = env.file_bytes(&path).unwrap();
    for border in borders.into_iter().chain([length - 8]) {
        let cut = env.process_crash_clone();
        cut.truncate(&path, border).unwrap();
        let error = read(&cut, dir).unwrap_err();
        let found = (error.kind(), error.path(), error.offset());
        assert_eq!(found, (ErrorKind::Corruption, Some(&*path), Some(border)), "{error}");
    }
}
