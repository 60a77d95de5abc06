//! The identity of a store.
//!
//! Promised: a store has a number from when it is made, and keeps it in each life. What is made of
//! it, by a checkpoint, a backup or a repair, is a store of its own, and names its original. A copy
//! of the directory is the same store.

use crate::frame::small::small_at;
use lsmith::env::{Env, Loss, MemEnv, RealEnv};
use lsmith::{Backups, ErrorKind, RepairOptions, Store, StoreId, repair};
use std::path::Path;
use std::sync::Arc;

/// Returns the numbers that the store in `dir` says, to readers and to writers.
fn read(env: &MemEnv, dir: &str) -> (StoreId, Option<StoreId>) {
    let reader = small_at(dir, env).read_only(true).open().unwrap();
    let read = (reader.id(), reader.origin());
    drop(reader);
    let writer = small_at(dir, env).create_if_missing(false).open().unwrap();
    assert_eq!((writer.id(), writer.origin()), read);
    (read.0.unwrap(), read.1)
}

#[test]
fn a_store_keeps_its_identity_in_each_life() {
    let env = MemEnv::new();
    let store = small_at("/a", &env).open().unwrap();
    let id = store.id().unwrap();
    assert_eq!(store.origin(), None);
    for loss in [Loss::Nothing, Loss::Everything] {
        assert_eq!(read(&env.power_loss(1, loss), "/a"), (id, None), "it was durable at once");
    }
    // More changes than a file of the manifest has room for.
    let space = store.keyspace("a").unwrap();
    let manifest = || env.list(Path::new("/a")).unwrap().into_iter().find(|n| n.contains(".man"));
    let first = manifest();
    for _ in 0..20_000 {
        space.set_merge_policy("tiered(ratio=3)").unwrap();
        space.set_merge_policy("tiered(ratio=4)").unwrap();
        if manifest() != first {
            break;
        }
    }
    assert_ne!(manifest(), first);
    assert_eq!(store.id(), Some(id));
    drop((space, store));
    for env in [&env, &env.crash_clone(1, 0.0), &env.process_crash_clone()] {
        assert_eq!(read(env, "/a"), (id, None));
        assert_eq!(read(env, "/a"), (id, None));
    }
    let other = small_at("/b", &env).open().unwrap();
    assert_ne!(other.id().unwrap(), id);
}

#[test]
fn copies_are_stores_of_their_own() {
    let env = MemEnv::new();
    let store = small_at("/a", &env).open().unwrap();
    let id = store.id().unwrap();
    store.keyspace("a").unwrap().put("k", "v").unwrap();
    store.checkpoint("/checkpoint").unwrap();
    let backups = Backups::with_env("/backups", Arc::new(env.clone()));
    let number = store.backup(&backups).unwrap().id;
    drop(store);
    for dir in ["/restored", "/again"] {
        backups.restore(number, dir).unwrap();
    }
    let options = RepairOptions { env: Arc::new(env.clone()), ..RepairOptions::default() };
    repair(&options, "/a", "/repaired").unwrap();
    let mut ids = vec![id];
    for dir in ["/checkpoint", "/restored", "/again", "/repaired"] {
        let (copy, origin) = read(&env, dir);
        assert_eq!(origin, Some(id), "{dir}");
        assert_eq!(read(&env, dir), (copy, origin), "{dir}");
        ids.push(copy);
    }
    assert_eq!(read(&env, "/a"), (id, None), "the original stays who it is");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 5);
    // A copy of a copy names the copy.
    let checkpoint = small_at("/checkpoint", &env).open().unwrap();
    checkpoint.checkpoint("/second").unwrap();
    let copy = checkpoint.id();
    drop(checkpoint);
    assert_eq!(read(&env, "/second").1, copy);
}

#[test]
fn ids_are_written_as_digits() {
    let id = StoreId(0x0123_4567_89ab_cdef_0000_0000_0000_0001);
    let text = "0123456789abcdef0000000000000001";
    assert_eq!(id.to_string(), text);
    assert_eq!(text.parse::<StoreId>().unwrap(), id);
    for text in ["", "1", "0123456789abcdef000000000000000g", "+123456789abcdef0000000000000001"] {
        assert_eq!(text.parse::<StoreId>().unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
}

#[test]
fn stores_on_a_real_disk_have_identities_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let open = |name: &str| Store::builder(dir.path().join(name)).open().unwrap();
    let [one, two] = ["one", "two"].map(open);
    assert!(one.id().is_some() && one.id() != two.id());
    let before = one.id();
    drop(one);
    assert_eq!(open("one").id(), before);
    assert_ne!(RealEnv::new().random(), RealEnv::new().random());
}
