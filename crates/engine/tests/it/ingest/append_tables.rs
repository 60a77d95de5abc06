//! Append tables of stores, ingested and exported.
//!
//! Promised: an append table is refused, sound or damaged, with an error that names its file. What
//! a store of append tables exports is a table as any other.

use crate::frame::contents::{Map, contents};
use crate::frame::small::plain_at;
use crate::ingest::files::{
    assert_refused, bytes, ingest, key, numbered, small_store, tables, write_file,
};
use lsmith::env::{Env, MemEnv};
use lsmith::{ErrorKind, Keyspace, TableWriter, TableWriterOptions};
use std::path::PathBuf;
use std::sync::Arc;

/// Makes a store with append tables. Returns the path of one of several batches.
fn store_of_trees(env: &MemEnv, dir: &str) -> (Keyspace, PathBuf) {
    let store = plain_at(dir, env).memtable_bytes(2000);
    let store = store.policy("jungle").lockstep(true).log_bytes(64 << 10).open().unwrap();
    let space = numbered(&store);
    for number in (0..200).chain(100..300) {
        space.put(key(number), "in a tree").unwrap();
    }
    store.flush().unwrap();
    let tree = space.tree();
    let slices = tree.disk_runs().flat_map(|run| run.slices().iter()).collect::<Vec<_>>();
    let most = slices.into_iter().max_by_key(|slice| slice.dead_bytes()).unwrap();
    assert!(most.is_append() && most.dead_bytes() > 0, "{tree}");
    (space, PathBuf::from(format!("{dir}/{:06}.table", most.table().id.0)))
}

/// Which root of an append table counts is known to its store alone. An append table with the
/// number that the file was to get was called unsupported, and others damaged.
#[test]
fn append_tables_of_a_store_are_refused() {
    let env = MemEnv::new();
    let (store, space) = small_store(&env);
    let (_trees, file) = store_of_trees(&env, "/other");
    let number: u64 = file.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let says = format!("expected a table written outside of a store, found append table {number}");
    // Each refusal uses a number, and one of them equals the number of the table.
    for _ in 0..=number {
        let error = assert_refused(&env, &space, std::slice::from_ref(&file), &says);
        assert_eq!(error, ErrorKind::Corruption);
    }
    let error = ingest(&space, std::slice::from_ref(&file), false).unwrap_err();
    assert_eq!(error.path(), Some(&*file), "{error}");
    assert!(store.verify().unwrap().is_empty());
}

/// However an append table is damaged, it is refused, and the error names the file.
#[test]
fn damaged_append_tables_are_refused() {
    let env = MemEnv::new();
    let (store, space) = small_store(&env);
    let (_trees, file) = store_of_trees(&env, "/other");
    let whole = bytes(&env, &file);
    let bad = PathBuf::from("/bad");
    let refused = |damaged: &[u8], what: &str| {
        write_file(&env, &bad, damaged);
        let before = tables(&env);
        let error = ingest(&space, std::slice::from_ref(&bad), false).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*bad)), "{what}");
        assert_eq!(tables(&env), before, "{what}: {error}");
        env.remove_file(&bad).unwrap();
    };
    for end in 0..whole.len() {
        refused(&whole[..end], &format!("cut at {end}"));
    }
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        refused(&damaged, &format!("byte {at}"));
    }
    // Bytes behind the last root, as an append leaves them that was cut off.
    refused(&[&whole[..], &whole[..100]].concat(), "a tail");
    assert_eq!(contents(&space), Map::from([(key(3), b"kept".to_vec())]));
    assert!(store.verify().unwrap().is_empty());
}

/// What a store of append tables exports is a table as any other, for stores of both kinds.
#[test]
fn an_export_of_append_tables_is_taken() {
    let env = MemEnv::new();
    let (trees, _) = store_of_trees(&env, "/other");
    let options =
        TableWriterOptions { env: Arc::new(env.clone()), ..TableWriterOptions::default() };
    let mut writer = TableWriter::create_with("/exported", &options).unwrap();
    trees.store().snapshot().export::<&[u8]>(&trees, .., &mut writer).unwrap();
    writer.finish().unwrap();
    for (dir, policy) in [("/sorted", "leveled"), ("/again", "jungle")] {
        let store = plain_at(dir, &env).policy(policy).lockstep(true);
        let store = store.memtable_bytes(2000).log_bytes(64 << 10).open().unwrap();
        let space = numbered(&store);
        space.put(key(7), "older").unwrap();
        ingest(&space, &[PathBuf::from("/exported")], false).unwrap();
        let mut expected = contents(&trees);
        assert_eq!((expected.len(), contents(&space)), (300, expected.clone()), "{policy}");
        // Merges take it as any other table.
        for number in 250..500 {
            space.put(key(number), "newer").unwrap();
            expected.insert(key(number), b"newer".to_vec());
        }
        store.flush().unwrap();
        assert_eq!(contents(&space), expected, "{policy}");
        assert!(store.verify().unwrap().is_empty());
    }
}
