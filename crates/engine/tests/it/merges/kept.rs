//! Tables that merges keep as they are, because no other input has keys there.
//!
//! Promised: keys that come in order are written once. Nothing is lost and nothing comes back,
//! whatever happens beside or behind such merges: crashes, snapshots, iterators, range deletes,
//! copies, merges in parts.

use crate::dice::Dice;
use crate::frame::small::{DIR, open, plain, plain_at, small};
use lsmith::env::{Env, MemEnv};
use lsmith::{Event, Keyspace, KeyspaceOptions, Observer, Snapshot, Store};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

const COPY: &str = "/copy";

/// Policies that merge whole runs, and some that merge key ranges.
const POLICIES: &[&str] = &[
    "minlatency(k=3)",
    "tiered(ratio=3)",
    "auto",
    "binomial(k=2, eager=always)",
    "universal(trigger=3, incremental=true)",
    "cola(ratio=2)",
    "leveled(ratio=3)",
    "ucs",
];

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(writer: usize, number: usize) -> Vec<u8> {
    format!("w{writer}/{number:07}").into_bytes()
}

fn entries(keyspace: &Keyspace) -> Model {
    keyspace.iter().map(|entry| entry.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

fn seen(snapshot: &Snapshot, keyspace: &Keyspace) -> Model {
    let entries = snapshot.range::<&[u8]>(keyspace, ..).map(|entry| entry.unwrap());
    entries.map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
}

fn reused_bytes(keyspace: &Keyspace) -> u64 {
    keyspace.tree().levels().iter().map(|level| level.counters().bytes_reused).sum()
}

/// Returns the numbers of the tables on the device, and of the tables that the tree names.
fn tables(env: &MemEnv, keyspace: &Keyspace) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let names = env.list(Path::new(DIR)).unwrap();
    let files = names.iter().filter_map(|name| name.strip_suffix(".table")?.parse().ok());
    let tree = keyspace.tree();
    let slices = tree.disk_runs().flat_map(|run| run.slices().iter());
    (files.collect(), slices.map(|slice| slice.table().id.0).collect())
}

/// Returns the bytes that flushes and merges have written.
fn written(store: &Store) -> u64 {
    let stats = store.stats();
    stats.flush_bytes + stats.merge_bytes_written
}

#[test]
fn keys_in_order_are_written_once() {
    let load = |policy: &str, keep: bool| {
        let env = MemEnv::new();
        let (store, keyspace) = open(small(&env).policy(policy).keep_tables(keep));
        for number in 0..3000 {
            keyspace.put(key(0, number), [7; 100]).unwrap();
        }
        keyspace.flush().unwrap();
        assert_eq!(entries(&keyspace).len(), 3000, "{policy}");
        assert!(store.verify().unwrap().is_empty(), "{policy}");
        let (files, named) = tables(&env, &keyspace);
        assert_eq!(files, named, "{policy}");
        written(&store)
    };
    let once = load("none", true);
    for policy in POLICIES {
        // Small runs have more bits of filter per key.
        let kept = load(policy, true);
        assert!(kept <= once + once / 50, "{policy}: {kept} bytes, {once} if nothing is merged");
        let rewritten = load(policy, false);
        assert!(rewritten > 2 * once || policy.starts_with("leveled"), "{policy}: {rewritten}");
    }
}

/// A merge that a caller asks for rewrites everything, and so do merges of keyspaces in which a
/// merge may change what it writes.
#[test]
fn merges_by_hand_and_by_rules_rewrite_everything() {
    let env = MemEnv::new();
    let store = small(&env).policy("tiered(ratio=3)").open().unwrap();
    let counting = KeyspaceOptions { operator: Some("counter".into()), ..Default::default() };
    let numbered = KeyspaceOptions { keep_numbers: Some(true), ..Default::default() };
    let all = [
        store.keyspace("plain").unwrap(),
        store.keyspace_with("counting", &counting).unwrap(),
        store.keyspace_with("numbered", &numbered).unwrap(),
    ];
    for keyspace in &all {
        for number in 0..1000 {
            keyspace.put(key(0, number), [7; 100]).unwrap();
        }
    }
    assert_eq!(all.each_ref().map(|keyspace| reused_bytes(keyspace) > 0), [true, false, false]);
    let reused = reused_bytes(&all[0]);
    all[0].merge().unwrap();
    assert_eq!(reused_bytes(&all[0]), reused);
    assert_eq!(all[0].tree().disk_runs().map(|run| run.slices().len()).sum::<usize>(), 1);
}

/// What a snapshot still sees is in tables with sequence numbers. They are rewritten once nobody
/// needs these, so old versions do not stay in tables for ever.
#[test]
fn old_versions_go_when_no_snapshot_sees_them() {
    let env = MemEnv::new();
    let (store, keyspace) = open(small(&env).memtable_bytes(20_000).policy("tiered(ratio=3)"));
    let snapshot = store.snapshot();
    let mut snapshots = Vec::new();
    for number in 0..60 {
        keyspace.put(key(0, number), [1; 100]).unwrap();
        snapshots.push(store.snapshot());
        keyspace.put(key(0, number), [2; 100]).unwrap();
    }
    keyspace.flush().unwrap();
    let entries = || {
        let tree = keyspace.tree();
        tree.disk_runs().map(|run| run.size().entries).sum::<u64>()
    };
    assert_eq!(entries(), 120);
    drop((snapshot, snapshots));
    for number in 60..2000 {
        keyspace.put(key(0, number), [3; 100]).unwrap();
    }
    keyspace.flush().unwrap();
    assert!(reused_bytes(&keyspace) > 0);
    assert_eq!(entries(), 2000);
}

/// Writes a stretch of the keys of one writer: mostly the next ones, sometimes older ones.
fn write(dice: &mut Dice, keyspace: &Keyspace, next: &mut [usize; 3], model: &mut Model) {
    let writer = if dice.chance(70) { 0 } else { dice.below(next.len()) };
    let stretch = match dice.below(12) {
        0 | 1 if next[writer] > 0 => {
            let from = dice.below(next[writer]);
            from..(from + 60).min(next[writer])
        }
        _ => next[writer]..next[writer] + 20 + dice.below(100),
    };
    next[writer] = next[writer].max(stretch.end);
    let deletes = dice.chance(10);
    for number in stretch.clone() {
        let key = key(writer, number);
        if deletes && number % 3 == 0 {
            keyspace.delete(&key).unwrap();
            model.remove(&key);
        } else {
            let value = dice.bytes(40);
            keyspace.put(&key, &value).unwrap();
            model.insert(key, value);
        }
    }
    if dice.chance(8) {
        let range = key(writer, stretch.start / 2)..key(writer, stretch.start / 2 + 90);
        keyspace.delete_range(&range.start[..]..&range.end[..]).unwrap();
        model.retain(|key, _| !range.contains(key));
    }
}

/// Plays one seed: writers that each write ascending keys, and sometimes write a stretch again,
/// delete some of it, or delete a range. Looks at snapshots, iterators, copies, and at what crashes
/// leave.
fn play(seed: u64, policy: &str) -> u64 {
    let mut dice = Dice::new(seed);
    let env = MemEnv::new();
    let builder = |env: &MemEnv, dir: &str| {
        plain_at(dir, env).lockstep(true).memtable_bytes(4000).block_bytes(200).policy(policy)
    };
    let (mut store, mut keyspace) = open(builder(&env, DIR));
    let mut model = Model::new();
    let mut next = [0; 3];
    let mut snapshots: Vec<(Snapshot, Model)> = Vec::new();
    let mut reused = 0;
    for round in 0..60 {
        write(&mut dice, &keyspace, &mut next, &mut model);
        match dice.below(10) {
            0 => snapshots.push((store.snapshot(), model.clone())),
            1 if !snapshots.is_empty() => {
                let (snapshot, expected) = snapshots.swap_remove(dice.below(snapshots.len()));
                assert_eq!(seen(&snapshot, &keyspace), expected, "{policy}, seed {seed}");
            }
            2 => {
                keyspace.flush().unwrap();
                let (left, spaces) = open(builder(&env.crash_clone(seed, 0.5), DIR));
                assert_eq!(entries(&spaces), model, "{policy}, seed {seed}: after power loss");
                assert!(left.verify().unwrap().is_empty(), "{policy}, seed {seed}");
            }
            3 => {
                snapshots.clear();
                reused += reused_bytes(&keyspace);
                drop((store, keyspace));
                (store, keyspace) = open(builder(&env, DIR));
                reused -= reused_bytes(&keyspace);
            }
            4 => {
                let dir = format!("{COPY}{round}");
                store.checkpoint(&dir).unwrap();
                let (_copy, spaces) = open(builder(&env, &dir));
                assert_eq!(entries(&spaces), model, "{policy}, seed {seed}: a checkpoint");
            }
            _ => {}
        }
        let mut iter = keyspace.iter();
        let begun: Vec<_> = iter.by_ref().take(model.len() / 2).map(|e| e.unwrap()).collect();
        keyspace.flush().unwrap();
        let rest = iter.map(|entry| entry.unwrap());
        let found: Model =
            begun.into_iter().chain(rest).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
        assert_eq!(found, model, "{policy}, seed {seed}, round {round}");
    }
    drop(snapshots);
    assert_eq!(entries(&keyspace), model, "{policy}, seed {seed}");
    assert!(store.verify().unwrap().is_empty(), "{policy}, seed {seed}");
    let (files, named) = tables(&env, &keyspace);
    assert_eq!(files, named, "{policy}, seed {seed}");
    reused + reused_bytes(&keyspace)
}

#[test]
fn writers_of_ascending_keys_lose_nothing() {
    for policy in POLICIES {
        let reused: u64 = (0..3).map(|seed| play(seed, policy)).sum();
        assert!(reused > 0 || policy.starts_with("leveled"), "{policy}: nothing was kept");
    }
}

/// An observer that keeps the disk as a crash would leave it before and after each commit.
#[derive(Debug)]
struct Crashes {
    env: MemEnv,
    left: Mutex<Vec<MemEnv>>,
}

impl Observer for Crashes {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if let Event::Planned { .. } | Event::Committed { .. } = event {
            let mut left = self.left.lock();
            let seed = left.len() as u64;
            left.push(self.env.crash_clone(seed, 0.5));
        }
    }
}

/// Large merges are split into parts, which commit one by one. Kept tables lie in the parts.
#[test]
fn merges_in_parts_keep_tables() {
    let env = MemEnv::new();
    let crashes = Arc::new(Crashes { env: env.clone(), left: Mutex::default() });
    let observer = Arc::clone(&crashes) as Arc<dyn Observer>;
    let build = |env: &MemEnv, policy: &str| {
        let builder = plain(env).threads(2).split_bytes(50_000).memtable_bytes(120_000);
        builder.policy(policy)
    };
    let (store, keyspace) = open(build(&env, "none").observer(observer));
    let mut dice = Dice::new(3);
    let mut model = Model::new();
    // Only keys of writer 1 interleave.
    for run in 0..4 {
        let random = (0..900).map(|_| key(1, dice.below(5000)));
        let random: Vec<_> = random.collect();
        let lists = [
            (0..900).map(|number| key(0, run * 900 + number)).collect::<Vec<_>>(),
            random,
            (0..900).map(|number| key(2, run * 900 + number)).collect(),
        ];
        for list in lists {
            for key in list {
                let value = dice.bytes(100);
                keyspace.put(&key, &value).unwrap();
                model.insert(key, value);
            }
            keyspace.flush().unwrap();
        }
    }
    store.settle().unwrap();
    let snapshot = store.snapshot();
    crashes.left.lock().clear();
    assert_eq!(keyspace.tree().disk_run_count(), 12);
    keyspace.set_merge_policy("constant(k=1)").unwrap();
    store.settle().unwrap();
    assert_eq!(keyspace.tree().disk_run_count(), 1);
    let counters = *keyspace.tree().levels()[0].counters();
    assert!(counters.bytes_reused > 700_000 && counters.merges > 3, "{counters:?}");
    assert_eq!((entries(&keyspace), seen(&snapshot, &keyspace)), (model.clone(), model.clone()));
    let left = std::mem::take(&mut *crashes.left.lock());
    assert!(left.len() > 4, "{} moments", left.len());
    for env in left {
        let (store, keyspace) = open(build(&env, "none"));
        assert_eq!(entries(&keyspace), model);
        assert!(store.verify().unwrap().is_empty());
    }
    let (files, named) = tables(&env, &keyspace);
    assert_eq!(files, named);
}
