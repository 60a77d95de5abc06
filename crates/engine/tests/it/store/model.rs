//! Random operations on the store, compared with a `BTreeMap`.
//!
//! Promised: for any operations in any order, under every merge policy and across switches of
//! policies, flushes, manual merges and reopenings, in lockstep and with threads, every read and
//! every scan (forward, reverse, from both ends, of ranges and prefixes, of now and of snapshots,
//! with iterators held meanwhile) returns what the same operations on sorted maps return. At the
//! end the store finds no damage in itself, and its trees are legal.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::mapped_or_not;
use crate::frame::contents::{Map, pair};
use crate::frame::operators::Append;
use lsmith::env::{Env, MemEnv};
use lsmith::{
    Batch, IngestOptions, Iter, Keyspace, KeyspaceOptions, PersistMode, Snapshot, Store,
    TableWriter, TableWriterOptions,
};
use lsmith_policy::Registry;
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

const SPACES: [&str; 2] = ["left", "right"];

/// Policies that runs switch to, besides each policy with its defaults.
const POLICIES: [&str; 29] = [
    "auto(runs=3)",
    "auto(price=0.1, largest=3KiB)",
    "constant(k=2)",
    "bigtable(k=2)",
    "exploring(k=2, min=2)",
    "minlatency(k=2)",
    "binomial(k=2)",
    "tiered(ratio=2)",
    "sweep(k=3, young=0.2, least=1)",
    "sweep(k=7, young=0.01, least=3)",
    "leveled(ratio=2, l0=1, pick=round_robin, table=600B)",
    "leveled(ratio=2, l0=2, pick=min_overlap, table=300B)",
    "leveled(ratio=2, l0=1, pick=narrowest, table=600B)",
    "leveled(ratio=3, l0=3, pick=best_ratio, table=900B)",
    "leveled(ratio=2, l0=1, pick=oldest, table=600B)",
    "leveled(ratio=2, l0=1, pick=whole_level, table=600B)",
    "leveled(ratio=4, l0=1, pick=min_overlap, table=150B)",
    "full(ratio=2)",
    "rr(ratio=2, rate=0.3)",
    "rr(ratio=3, rate=0.1, reuse=false)",
    "choose_best(ratio=2, rate=0.3)",
    "choose_best(ratio=3, rate=0.1)",
    "choose_best(ratio=2, rate=0.2, reuse=false)",
    "test_mixed(ratio=2, rate=0.2)",
    "mixed(ratio=2, rate=0.2)",
    "mixed(ratio=3, rate=0.3, piece=300B, slices_max=8)",
    "jungle(c=1.5, ratio=2, table=400B)",
    "jungle(c=1, ratio=3, table=150B)",
    "jungle(c=10, ratio=2, table=900B)",
];

/// Returns every policy that a run begins with.
pub(crate) fn policies() -> Vec<String> {
    let registry = Registry::builtin();
    let bare = registry.infos().iter().map(|info| info.name.to_string());
    bare.chain(POLICIES.map(String::from)).collect()
}

/// A snapshot, and its expected content.
struct Held {
    snapshot: Snapshot,
    maps: [Map; 2],
}

/// An iterator under way, and the entries that it must still return.
struct Walk {
    iter: Iter,
    left: std::collections::VecDeque<(Vec<u8>, Vec<u8>)>,
}

struct Run {
    dice: Dice,
    env: MemEnv,
    lockstep: bool,
    policy: String,
    keys: Vec<Vec<u8>>,
    /// How many of 100 writes delete a range.
    ranges: usize,
    /// The length of the prefixes in filters.
    prefix_bytes: Option<u16>,
    store: Option<Store>,
    maps: [Map; 2],
    /// Keys that were inserted when absent and not written since: those may be removed.
    inserted: [BTreeMap<Vec<u8>, ()>; 2],
    held: Vec<Held>,
    walks: Vec<Walk>,
}

impl Run {
    fn new(seed: u64, policy: &str, lockstep: bool) -> Run {
        let mut dice = Dice::new(seed);
        let mut run = Run {
            keys: keys(&mut dice),
            ranges: [0, 2, 8, 25][dice.below(4)],
            prefix_bytes: [None, Some(1), Some(3), Some(14)][dice.below(4)],
            dice,
            env: match seed % 2 {
                0 => MemEnv::new(),
                _ => MemEnv::new().without_punching(),
            },
            lockstep,
            policy: policy.to_string(),
            store: None,
            maps: Default::default(),
            inserted: Default::default(),
            held: Vec::new(),
            walks: Vec::new(),
        };
        run.open();
        run
    }

    fn open(&mut self) {
        let memtable_bytes = [200, 600, 1500][self.dice.below(3)];
        let builder = Store::builder("/store")
            .env(Arc::new(mapped_or_not(&self.env, &mut self.dice)))
            .policy(&self.policy)
            .memtable_bytes(memtable_bytes)
            .block_bytes([40, 80, 200][self.dice.below(3)])
            .cache_bytes([0, 2000, 1 << 20][self.dice.below(3)])
            .filter_bits([0, 4, 10][self.dice.below(3)])
            .log_bytes(64 << 10)
            .rewrite_below([0.0, 0.25, 0.8][self.dice.below(3)])
            .threads(1 + self.dice.below(3))
            .operator(Append)
            .lockstep(self.lockstep);
        let store = builder.open().unwrap();
        let options = KeyspaceOptions {
            operator: Some("append".into()),
            prefix_bytes: self.prefix_bytes,
            ..Default::default()
        };
        for name in SPACES {
            store.keyspace_with(name, &options).unwrap();
        }
        self.store = Some(store);
    }

    fn store(&self) -> &Store {
        self.store.as_ref().expect("open but while it is reopened")
    }

    fn space(&self, which: usize) -> Keyspace {
        self.store().existing_keyspace(SPACES[which]).unwrap()
    }

    fn key(&mut self) -> Vec<u8> {
        self.dice.pick(&self.keys).clone()
    }

    fn step(&mut self) {
        match self.dice.below(100) {
            0..=39 => self.write_one(),
            40..=49 => self.write_batch(),
            50..=64 => self.read(),
            65..=74 => self.scan(),
            75..=78 => self.hold_snapshot(),
            79..=81 => self.drop_snapshot(),
            82..=85 => self.begin_walk(),
            86..=92 => self.go_on_walking(),
            93 => self.arrive(),
            94..=95 => self.flush(),
            96 if self.dice.chance(20) => self.clear(),
            96 => self.merge(),
            97..=98 => self.switch_policy(),
            _ => self.reopen(),
        }
    }

    /// Chooses a write that keeps the promises of inserts and removes, and applies it to the maps.
    fn choose(&mut self, batch: &mut Batch) {
        let which = self.dice.below(2);
        let space = self.space(which);
        if self.dice.chance(self.ranges) {
            let bounds = self.bounds();
            batch.delete_range(&space, bounds.clone());
            self.maps[which].retain(|key, _| !bounds.contains(key));
            self.inserted[which].retain(|key, ()| !bounds.contains(key));
            return;
        }
        let key = self.key();
        let value = match self.dice.below(60) {
            0 => self.dice.bytes(3000),
            length => self.dice.bytes(length / 2),
        };
        let present = self.maps[which].contains_key(&key);
        let removable = self.inserted[which].remove(&key).is_some();
        match self.dice.below(14) {
            10.. => {
                let operand = &value[..value.len().min(12)];
                batch.combine(&space, &key, operand);
                self.maps[which].entry(key).or_default().extend_from_slice(operand);
                return;
            }
            0..=2 if present && removable => batch.delete_single_unchecked(&space, &key),
            0..=3 => batch.delete(&space, &key),
            4..=6 if !present => {
                batch.put_new_unchecked(&space, &key, &value);
                self.inserted[which].insert(key.clone(), ());
                self.maps[which].insert(key, value);
                return;
            }
            _ => {
                batch.put(&space, &key, &value);
                self.maps[which].insert(key, value);
                return;
            }
        }
        self.maps[which].remove(&key);
    }

    fn write_one(&mut self) {
        let mut batch = Batch::new();
        self.choose(&mut batch);
        self.store().write(batch, PersistMode::Buffer).unwrap();
    }

    fn write_batch(&mut self) {
        let mut batch = Batch::new();
        for _ in 0..self.dice.below(12) {
            self.choose(&mut batch);
        }
        let mode = *self.dice.pick(&[PersistMode::Buffer, PersistMode::SyncData]);
        self.store().write(batch, mode).unwrap();
    }

    fn clear(&mut self) {
        let which = self.dice.below(2);
        self.space(which).clear().unwrap();
        self.maps[which].clear();
        self.inserted[which].clear();
    }

    /// Brings some entries in as a table, from outside or by a bulk load.
    fn arrive(&mut self) {
        let which = self.dice.below(2);
        let space = self.space(which);
        let mut entries = BTreeMap::new();
        for _ in 0..1 + self.dice.below(5) {
            let (key, length) = (self.key(), self.dice.below(30));
            entries.insert(key, self.dice.bytes(length));
        }
        if self.dice.chance(50) {
            let mut load = space.bulk_load().unwrap();
            entries.iter().for_each(|(key, value)| load.put(key, value).unwrap());
            load.finish().unwrap();
        } else {
            let env: Arc<dyn Env> = Arc::new(self.env.clone());
            let options = TableWriterOptions { env, ..TableWriterOptions::default() };
            let mut writer = TableWriter::create_with("/outside", &options).unwrap();
            entries.iter().for_each(|(key, value)| writer.put(key, value).unwrap());
            writer.finish().unwrap();
            self.store().ingest(&space, &["/outside"], &IngestOptions::default()).unwrap();
            // It was linked or copied.
            let _gone = self.env.remove_file(Path::new("/outside"));
        }
        self.inserted[which].retain(|key, ()| !entries.contains_key(key));
        self.maps[which].extend(entries);
    }

    fn read(&mut self) {
        let which = self.dice.below(2);
        let key = self.key();
        let space = self.space(which);
        if !self.held.is_empty() && self.dice.chance(50) {
            let held = self.dice.pick(&self.held);
            let found = held.snapshot.get(&space, &key).unwrap();
            assert_eq!(found.as_deref(), held.maps[which].get(&key).map(Vec::as_slice));
        } else {
            let expected = self.maps[which].get(&key);
            let found = space.get(&key).unwrap();
            assert_eq!(found.as_deref(), expected.map(Vec::as_slice));
            assert_eq!(space.contains(&key).unwrap(), expected.is_some());
        }
    }

    /// Returns bounds in ascending order, as a `BTreeMap` requires.
    fn bounds(&mut self) -> Bounds {
        let mut ends = [self.key(), self.key()];
        ends.sort();
        let mut bound = |key: &Vec<u8>| match self.dice.below(4) {
            0 => Bound::Unbounded,
            1 => Bound::Excluded(key.clone()),
            _ => Bound::Included(key.clone()),
        };
        let bounds = (bound(&ends[0]), bound(&ends[1]));
        match &bounds {
            (Bound::Excluded(low), Bound::Excluded(high)) if low == high => {
                (Bound::Included(low.clone()), Bound::Excluded(high.clone()))
            }
            _ => bounds,
        }
    }

    /// Returns a scan of now or of a snapshot, and its expected entries.
    fn walk(&mut self) -> Walk {
        let which = self.dice.below(2);
        let space = self.space(which);
        if self.dice.chance(20) {
            let mut prefix = self.key();
            // Long common starts too.
            let length = *self.dice.pick(&[0, 1, 2, 3, 14, 15]);
            prefix.truncate(length);
            let left = self.maps[which].iter().filter(|(key, _)| key.starts_with(&prefix));
            let left = left.map(|(key, value)| (key.clone(), value.clone())).collect();
            return Walk { iter: space.prefix(&prefix), left };
        }
        let bounds = self.bounds();
        let held = if self.held.is_empty() || self.dice.chance(50) {
            None
        } else {
            Some(self.dice.pick(&self.held))
        };
        let (iter, map) = match held {
            Some(held) => (held.snapshot.range(&space, bounds.clone()), &held.maps[which]),
            None => (space.range(bounds.clone()), &self.maps[which]),
        };
        let left = map.range(bounds).map(|(key, value)| (key.clone(), value.clone()));
        Walk { iter, left: left.collect() }
    }

    fn scan(&mut self) {
        let mut walk = self.walk();
        let back = *self.dice.pick(&[0, 50, 100]);
        while walk.step(&mut self.dice, back) {}
        assert!(walk.iter.next().is_none() && walk.iter.next_back().is_none(), "an end is an end");
    }

    fn begin_walk(&mut self) {
        if self.walks.len() < 4 {
            let walk = self.walk();
            self.walks.push(walk);
        }
    }

    fn go_on_walking(&mut self) {
        if self.walks.is_empty() {
            return;
        }
        let index = self.dice.below(self.walks.len());
        for _ in 0..self.dice.below(10) {
            if !self.walks[index].step(&mut self.dice, 50) {
                self.walks.swap_remove(index);
                return;
            }
        }
    }

    fn hold_snapshot(&mut self) {
        let snapshot = self.store().snapshot();
        self.held.push(Held { snapshot, maps: self.maps.clone() });
        if self.held.len() > 4 {
            self.drop_snapshot();
        }
    }

    fn drop_snapshot(&mut self) {
        if !self.held.is_empty() {
            let index = self.dice.below(self.held.len());
            self.held.swap_remove(index);
        }
    }

    fn flush(&mut self) {
        match self.dice.below(3) {
            0 => self.store().flush().unwrap(),
            1 => self.store().settle().unwrap(),
            _ => {
                let which = self.dice.below(2);
                self.space(which).flush().unwrap();
            }
        }
    }

    fn merge(&mut self) {
        let which = self.dice.below(2);
        let space = self.space(which);
        space.merge().unwrap();
        if self.lockstep {
            assert!(space.tree().memory().runs().is_empty());
        }
    }

    fn switch_policy(&mut self) {
        let which = self.dice.below(2);
        let policies = policies();
        let policy = self.dice.pick(&policies);
        self.space(which).set_merge_policy(policy).unwrap();
    }

    fn reopen(&mut self) {
        self.held.clear();
        // Iterators keep the store open too.
        self.walks.clear();
        self.store = None;
        self.open();
        self.check_all();
    }

    /// Reads everything, in both directions.
    fn check_all(&self) {
        for which in 0..2 {
            let space = self.space(which);
            let forward: Map = space.iter().map(pair).collect();
            let expected = &self.maps[which];
            let differs = |key: &&Vec<u8>| forward.get(*key) != expected.get(*key);
            let wrong = expected.keys().chain(forward.keys()).find(differs);
            let what = wrong.map(|key| (key, forward.get(key), expected.get(key)));
            assert_eq!(what, None, "{}: key, found, expected", self.policy);
            let backward: Vec<_> = space.iter().rev().map(pair).collect();
            assert!(backward.into_iter().eq(self.maps[which].clone().into_iter().rev()));
        }
        assert_eq!(self.store().stats().plans_refused, 0);
    }

    fn finish(mut self) {
        self.check_all();
        for walk in &mut self.walks {
            while walk.step(&mut self.dice, 30) {}
        }
        self.store().flush().unwrap();
        self.check_all();
        let damage = self.store().verify().unwrap();
        assert!(damage.is_empty(), "{damage:?}");
        for which in 0..2 {
            let tree = self.space(which).tree();
            lsmith_tree::check_tree(&tree).unwrap();
            assert_eq!(tree.to_string().parse::<lsmith_tree::Tree>().unwrap(), tree);
        }
    }
}

impl Walk {
    /// Takes one entry, in `back` of 100 cases from the back. Returns false at the end.
    fn step(&mut self, dice: &mut Dice, back: usize) -> bool {
        let (found, expected) = if dice.chance(back) {
            (self.iter.next_back(), self.left.pop_back())
        } else {
            (self.iter.next(), self.left.pop_front())
        };
        assert_eq!(found.map(pair), expected);
        expected.is_some()
    }
}

/// Returns keys of all lengths, many with long common prefixes, with the least and the greatest
/// bytes.
fn keys(dice: &mut Dice) -> Vec<Vec<u8>> {
    let starts: [&[u8]; 5] = [b"", b"a", b"common/start/", b"\xff\xff", b"\0"];
    let count = [20, 80, 300][dice.below(3)];
    let mut keys: Vec<Vec<u8>> = (0..count)
        .map(|_| {
            let tail: Vec<u8> = (0..dice.below(4)).map(|_| *dice.pick(b"\0ab\xff/")).collect();
            [*dice.pick(&starts), &[b'0' + dice.below(10) as u8], &tail].concat()
        })
        .collect();
    keys.push(vec![b'k'; 400]);
    keys
}

fn run_all(lockstep: bool) {
    with_seeds(4, |seed| {
        for (index, policy) in policies().iter().enumerate() {
            let mut run = Run::new(seed * 1000 + index as u64, policy, lockstep);
            for _ in 0..800 {
                run.step();
            }
            run.finish();
        }
    });
}

#[test]
fn random_operations_in_lockstep_give_what_sorted_maps_give() {
    run_all(true);
}

#[test]
fn random_operations_with_threads_give_what_sorted_maps_give() {
    run_all(false);
}
