use super::*;
use lsmith_storage::env::MemEnv;

const DIR: &str = "/store";

/// An account of one keyspace with so many tables.
fn account(tables: u64) -> Account {
    let slices = (1..=tables).map(|table| format!("t{table}:#{table}..#{} 1MB", table + 1));
    let slices: Vec<String> = slices.collect();
    let mut account = Account::default();
    let keyspace = "keyspace 0 default memtable 4MiB policy none\n".to_string();
    let tree = format!("short_tree 0 flushed 1\ntree\nL0 r1[{}]\n", slices.join(", "));
    for record in [keyspace, tree] {
        account.take(Record::decode(record.as_bytes()).unwrap()).unwrap();
    }
    account
}

/// A manifest that begins with more than all manifests have was taken for a whole one where it was
/// cut just behind a record: its end is clean, and it was long enough. What was written after that
/// record was lost without a word.
#[test]
fn a_long_manifest_that_was_cut_behind_a_record_is_damage() {
    let (env, dir) = (MemEnv::new(), Path::new(DIR));
    env.create_dir_all(dir).unwrap();
    let shared: Arc<dyn Env> = Arc::new(env.clone());
    let (counts, files) = (Arc::default(), Arc::new(AtomicU64::new(30_000)));
    let mut manifest =
        ManifestFile::create(&shared, dir, &counts, &files, account(20_000)).unwrap();
    let mut borders = vec![manifest.log.bytes()];
    for policy in ["tiered(ratio=2)", "tiered(ratio=3)", "tiered(ratio=4)"] {
        manifest.write(Record::Policy { keyspace: 0, policy: policy.into() }).unwrap();
        borders.push(manifest.log.bytes());
    }
    assert!(borders[0] > ROOM_BYTES as u64, "{borders:?}");
    let (number, found) = read(&env, dir).unwrap().unwrap();
    assert_eq!(found.keyspaces, manifest.account().keyspaces);
    let path = numbered(dir, FileKind::Manifest, number);
    let length = env.file_bytes(&path).unwrap();
    for border in borders.into_iter().chain([length - 8]) {
        let cut = env.process_crash_clone();
        cut.truncate(&path, border).unwrap();
        let error = read(&cut, dir).unwrap_err();
        let told = (error.kind(), error.path(), error.offset());
        assert_eq!(told, (ErrorKind::Corruption, Some(&*path), Some(border)), "{error}");
    }
}
