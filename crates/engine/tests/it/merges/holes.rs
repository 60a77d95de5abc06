//! The space of blocks that no slice needs.
//!
//! Promised: that space is freed as holes in the files, but not before its last reader is gone. If
//! the device cannot punch holes, the rest of a table is rewritten once its live share is below the
//! chosen one. Statistics distinguish live, dead and punched bytes, also in the next opening, and
//! none of this is taken for damage.

use crate::frame::contents::{self, Map};
use crate::frame::small::{DIR, open, plain};
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, Event, Keyspace, KeyspaceStats, Observer, Store};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const POLICIES: [&str; 2] = ["choose_best(ratio=3, rate=0.2)", "mixed(ratio=3, rate=0.2)"];

/// Counts plans that the store itself proposes.
#[derive(Debug, Default)]
struct Rewrites(AtomicU64);

impl Observer for Rewrites {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if let Event::Committed { plan, .. } = event {
            let own = plan.reason.to_string().starts_with("little of table");
            self.0.fetch_add(u64::from(own), Relaxed);
        }
    }
}

fn builder(env: &MemEnv, policy: &str, rewrites: &Arc<Rewrites>) -> Builder {
    let builder = plain(env).lockstep(true).memtable_bytes(64 << 10).policy(policy);
    builder.rewrite_below(0.5).observer(Arc::clone(rewrites) as Arc<dyn Observer>)
}

/// Makes writes whose windows meet few blocks below: most blocks are kept, of ever older tables.
fn write(space: &Keyspace, map: &mut Map) {
    for number in 0..12_000_u64 {
        let key = format!("{:08}", number.wrapping_mul(2_654_435_761) % 8_000).into_bytes();
        let value = vec![number as u8 | 1; 100];
        contents::write(space, map, key, Some(value));
    }
}

fn check(store: &Store, space: &Keyspace, map: &Map) {
    let found: Map =
        space.iter().map(Result::unwrap).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    assert!(found == *map);
    let damage = store.verify().unwrap();
    assert!(damage.is_empty(), "{damage:?}");
}

/// Compares the statistics of space with the disk, and asserts that there are holes.
fn check_holes(env: &MemEnv, space: &Keyspace) {
    let KeyspaceStats { table_bytes, live_bytes, dead_bytes, punched_bytes, .. } = space.stats();
    assert_eq!(on_disk(env), (table_bytes, table_bytes + punched_bytes));
    assert_eq!(table_bytes, live_bytes + dead_bytes);
    assert!(punched_bytes > 50_000, "{punched_bytes} bytes beside {table_bytes}");
}

/// Returns the bytes that tables take on the disk, and the lengths of their files.
fn on_disk(env: &MemEnv) -> (u64, u64) {
    let dir = Path::new(DIR);
    let names = env.list(dir).unwrap().into_iter().filter(|name| name.ends_with(".table"));
    let paths: Vec<_> = names.map(|name| dir.join(name)).collect();
    let held = paths.iter().map(|path| env.held_bytes(path).unwrap()).sum();
    (held, paths.iter().map(|path| env.file_bytes(path).unwrap()).sum())
}

#[test]
fn dead_blocks_become_holes_and_are_told() {
    for policy in POLICIES {
        let env = MemEnv::new();
        let rewrites = Arc::new(Rewrites::default());
        let (store, space) = open(builder(&env, policy, &rewrites));
        let mut map = Map::new();
        write(&space, &mut map);
        check(&store, &space, &map);
        check_holes(&env, &space);
        assert_eq!(rewrites.0.load(Relaxed), 0, "{policy}: holes are enough");
        drop((store, space));

        let (store, space) = open(builder(&env, policy, &rewrites));
        check(&store, &space, &map);
        check_holes(&env, &space);
    }
}

/// Blocks that an iterator may still read stay as long as the iterator, and go with it.
#[test]
fn holes_wait_for_readers() {
    let env = MemEnv::new();
    let rewrites = Arc::new(Rewrites::default());
    let (store, space) = open(builder(&env, POLICIES[0], &rewrites));
    let mut map = Map::new();
    write(&space, &mut map);
    let before = space.stats();
    let iter = space.iter();
    let expected = map.clone();
    write(&space, &mut map);
    let meanwhile = space.stats();
    assert!(meanwhile.dead_bytes > before.dead_bytes + 50_000, "{before:?} {meanwhile:?}");
    let found: Map = iter.map(Result::unwrap).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
    assert!(found == expected);
    let after = space.stats();
    assert!(after.dead_bytes + 50_000 < meanwhile.dead_bytes, "{meanwhile:?} {after:?}");
    check(&store, &space, &map);
}

#[test]
fn without_holes_what_is_left_of_a_table_is_written_anew() {
    for policy in POLICIES {
        let env = MemEnv::new().without_punching();
        let rewrites = Arc::new(Rewrites::default());
        let (store, space) = open(builder(&env, policy, &rewrites));
        let mut map = Map::new();
        write(&space, &mut map);
        check(&store, &space, &map);
        let stats = space.stats();
        assert!(rewrites.0.load(Relaxed) > 0, "{policy}: nothing was written anew");
        assert_eq!(stats.punched_bytes, 0);
        assert_eq!(on_disk(&env), (stats.table_bytes, stats.table_bytes));
        assert!(stats.live_bytes * 2 > stats.table_bytes, "{policy}: {stats:?}");
        drop((store, space));
        let (store, space) = open(builder(&env, policy, &rewrites));
        check(&store, &space, &map);
    }
}
