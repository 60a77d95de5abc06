//! Large merges that are committed part by part.
//!
//! Promised: a merge of all runs needs room for a few of its parts, not for all of its output. A
//! crash after any part loses nothing. A reader sees the store as it was when the reader began. A
//! part that fails leaves the parts before it in place, and no files of its own.

use crate::dice::Dice;
use crate::frame::small::{DIR, open, plain};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{Builder, Event, Keyspace, Observer};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// About the bytes of a part.
const PART_BYTES: u64 = 100_000;

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn builder(env: &(impl Env + Clone)) -> Builder {
    let builder = plain(env).policy("none").threads(2).split_bytes(PART_BYTES);
    builder.memtable_bytes(800_000)
}

/// Makes four runs of 300 kB each. Some of their keys overwrite or delete others.
fn write_four_runs(keyspace: &Keyspace) {
    let mut dice = Dice::new(11);
    for _ in 0..4 {
        for _ in 0..3000 {
            let key = (dice.below(20_000) as u64).to_be_bytes();
            if dice.chance(20) {
                keyspace.delete(key).unwrap();
            } else {
                keyspace.put(key, dice.bytes(100)).unwrap();
            }
        }
        keyspace.flush().unwrap();
    }
}

fn entries(keyspace: &Keyspace) -> Entries {
    let owned = |entry: lsmith::Result<(_, _)>| {
        let (key, value): (bytes::Bytes, bytes::Bytes) = entry.unwrap();
        (key.to_vec(), value.to_vec())
    };
    keyspace.iter().map(owned).collect()
}

/// Returns the numbers of the tables on the device, and of the tables that the tree names.
fn tables(env: &MemEnv, keyspace: &Keyspace) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let names = env.list(Path::new(DIR)).unwrap();
    let files = names.iter().filter_map(|name| name.strip_suffix(".table")?.parse().ok());
    let tree = keyspace.tree();
    let slices = tree.disk_runs().flat_map(|run| run.slices().iter());
    (files.collect(), slices.map(|slice| slice.table().id.0).collect())
}

#[test]
fn room_for_a_few_parts_is_enough() {
    // A megabyte in tables, and some small logs: as much again would not fit.
    let env = MemEnv::with_capacity(1_900_000);
    let (_store, keyspace) = open(builder(&env).log_bytes(100_000));
    write_four_runs(&keyspace);
    let before = entries(&keyspace);
    let table_bytes = keyspace.stats().table_bytes;
    assert!(table_bytes > 900_000, "{table_bytes}");
    keyspace.merge().unwrap();
    assert_eq!(keyspace.tree().disk_run_count(), 1);
    assert_eq!(entries(&keyspace), before);
    let (files, named) = tables(&env, &keyspace);
    assert_eq!(files, named);
}

/// An observer that keeps the disk as a crash would leave it before each commit, with the number of
/// runs.
#[derive(Debug)]
struct Crashes {
    env: MemEnv,
    left: Mutex<Vec<(MemEnv, usize)>>,
}

impl Observer for Crashes {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if let Event::Committed { tree, .. } = event {
            let mut left = self.left.lock();
            let seed = left.len() as u64;
            left.push((self.env.crash_clone(seed, 0.5), tree.disk_run_count()));
        }
    }
}

#[test]
fn a_crash_between_parts_loses_nothing() {
    let env = MemEnv::new();
    let crashes = Arc::new(Crashes { env: env.clone(), left: Mutex::default() });
    let (_store, keyspace) =
        open(builder(&env).observer(Arc::clone(&crashes) as Arc<dyn Observer>));
    write_four_runs(&keyspace);
    let before = entries(&keyspace);
    crashes.left.lock().clear();
    keyspace.merge().unwrap();
    let left = std::mem::take(&mut *crashes.left.lock());
    assert!(left.len() > 4, "{} commits", left.len());
    assert!(left[..left.len() - 1].iter().all(|(_, runs)| *runs > 1));
    for (env, runs) in left {
        let (store, keyspace) = open(builder(&env));
        assert_eq!(keyspace.tree().disk_run_count(), runs);
        assert_eq!(entries(&keyspace), before);
        // What was begun can be ended.
        keyspace.merge().unwrap();
        assert_eq!(keyspace.tree().disk_run_count(), 1);
        assert_eq!(entries(&keyspace), before);
        assert_eq!(store.verify().unwrap().len(), 0);
        let (files, named) = tables(&env, &keyspace);
        assert_eq!(files, named);
    }
}

#[test]
fn who_reads_meanwhile_sees_what_was_there() {
    let (store, keyspace) = open(builder(&MemEnv::new()));
    write_four_runs(&keyspace);
    let before = entries(&keyspace);
    let snapshot = store.snapshot();
    let mut walk = keyspace.iter();
    let begun: Vec<_> = walk.by_ref().take(before.len() / 2).map(Result::unwrap).collect();
    for (key, _) in before.iter().step_by(3) {
        keyspace.put(key, b"new").unwrap();
    }
    keyspace.merge().unwrap();
    let walked = begun.into_iter().chain(walk.map(Result::unwrap));
    let walked: Entries = walked.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert_eq!(walked, before);
    for (key, value) in &before {
        let seen = snapshot.get(&keyspace, key).unwrap();
        assert_eq!(seen.as_deref(), Some(&value[..]));
    }
}

#[test]
fn a_part_that_fails_leaves_those_before_it() {
    let disk = MemEnv::new();
    let env = FaultEnv::new(Arc::new(disk.clone()));
    let (store, keyspace) = open(builder(&env));
    write_four_runs(&keyspace);
    let before = entries(&keyspace);
    let (whole, _) = tables(&disk, &keyspace);
    assert_eq!(whole.len(), 4);
    let class = Some(OpClass::Create);
    let lasting = Lasting::Once;
    env.set(Fault { class, after: 6, lasting, kind: std::io::ErrorKind::Other });
    keyspace.merge().unwrap_err();
    let (files, named) = tables(&disk, &keyspace);
    assert_eq!(files, named);
    let kept = files.difference(&whole).count();
    assert!(kept > 0, "parts that were over stay");
    assert_eq!(entries(&keyspace), before);
    store.retry();
    keyspace.merge().unwrap();
    assert_eq!(keyspace.tree().disk_run_count(), 1);
    assert_eq!(entries(&keyspace), before);
    let (files, named) = tables(&disk, &keyspace);
    assert_eq!(files, named);
}
