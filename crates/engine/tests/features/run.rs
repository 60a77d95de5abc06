//! One run: a store, the oracle beside it, and random steps.

use crate::Feature::{self, *};
use crate::beside::Beside;
use crate::operator::{Append, verdict};
use crate::oracle::{Fed, Key, Oracle, RangeDeletes, Space, What, range_of};
use crate::reads::Held;
use crate::recorded::{self, OnTape, Recorded, Tape};
use crate::scripted::Scripted;
use lsmith::cipher::{Keys, MasterKey};
use lsmith::env::{CipherEnv, Env, MemEnv};
use lsmith::{
    Batch, Builder, Changes, Expiry, Keyspace, KeyspaceOptions, Life, PersistMode, SeqNo, Store,
};
use lsmith_fuzz::dice::Dice;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

const POLICIES: [&str; 12] = [
    "minlatency(k=2)",
    "tiered(ratio=2)",
    "leveled(ratio=2, l0=1, table=600B)",
    "leveled(ratio=3, l0=2, pick=min_overlap, table=300B)",
    "constant(k=1)",
    "full(ratio=2)",
    "choose_best(ratio=2, rate=0.3)",
    "rr(ratio=3, rate=0.1, reuse=false)",
    "mixed(ratio=2, rate=0.3)",
    "jungle(c=1.5, ratio=2, table=400B)",
    "jungle(c=1, ratio=3, table=150B)",
    "universal(trigger=2)",
];

const GROUP_POLICIES: [&str; 5] = [
    "minlatency(k=2)",
    "binomial(k=3)",
    "tiered(ratio=2)",
    "universal(trigger=2)",
    "constant(k=1)",
];

const STEPS: usize = 160;

/// More than any run needs.
const SPACE_BYTES: u64 = 2 << 20;

/// Where a filter stops, so that others act while a merge runs: it tells that it is there, and
/// waits for the word to go on.
pub(crate) type Stop = Arc<Mutex<Option<(SyncSender<()>, mpsc::Receiver<()>)>>>;

pub(crate) struct Run {
    pub(crate) dice: Dice,
    pub(crate) features: Vec<Feature>,
    pub(crate) env: MemEnv,
    pub(crate) dir: String,
    pub(crate) store: Option<Store>,
    pub(crate) oracle: Oracle,
    pub(crate) keys: Vec<Key>,
    pub(crate) clock: Arc<AtomicU64>,
    pub(crate) stop: Stop,
    pub(crate) held: Vec<Held>,
    pub(crate) feed: Option<Changes>,
    pub(crate) beside: Beside,
    /// Copies, and what they hold.
    pub(crate) checkpoints: Vec<(String, Oracle)>,
    pub(crate) tape: Arc<Tape>,
    pub(crate) recorded: Option<Recorded>,
    /// True if all files are encrypted.
    encrypted: bool,
    after: Option<u64>,
    lockstep: bool,
    pub(crate) ids: u64,
    values: u64,
}

fn keys() -> Keys {
    Keys::new(MasterKey::aes_256_gcm([5; 32]))
}

impl Run {
    pub(crate) fn new(mut dice: Dice, features: Vec<Feature>) -> Run {
        let count = [6, 20, 60][dice.below(3)];
        let mut keys: Vec<Key> = (0..count)
            .map(|at| {
                format!("{}{at:03}", ["a", "b/", "common/start/"][dice.below(3)]).into_bytes()
            })
            .collect();
        keys.sort();
        let mut run = Run {
            env: if dice.chance(50) { MemEnv::new() } else { MemEnv::new().without_punching() },
            after: dice.chance(50).then_some(40),
            lockstep: dice.chance(60),
            // What was recorded is read as it lies on the disk.
            encrypted: dice.chance(40) && !features.contains(&Record),
            dice,
            features,
            dir: "/store".into(),
            store: None,
            oracle: Oracle::default(),
            keys,
            clock: Arc::new(AtomicU64::new(1000)),
            stop: Stop::default(),
            held: vec![],
            feed: None,
            beside: Beside::default(),
            checkpoints: vec![],
            tape: Arc::default(),
            recorded: None,
            ids: 0,
            values: 0,
        };
        run.open();
        run.make("left");
        run.make("right");
        run
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    pub(crate) fn go(mut self) {
        for _ in 0..STEPS {
            self.step();
            self.probe();
        }
        self.look_beside();
        self.check_all();
        self.store().flush().unwrap();
        self.store().settle().unwrap();
        self.check_all();
        self.check_feed();
        self.check_checkpoints();
        self.stop_recording();
        self.check_health();
        self.check_secrets();
    }

    /// Returns the files of the store in clear.
    pub(crate) fn files(&self) -> Arc<dyn Env> {
        match self.encrypted {
            true => Arc::new(CipherEnv::new(Arc::new(self.env.clone()), keys())),
            false => Arc::new(self.env.clone()),
        }
    }

    /// No file of an encrypted store holds a part of a key in clear.
    fn check_secrets(&self) {
        let secret = b"common/start/";
        let mut dirs = vec![PathBuf::from("/")];
        while let Some(dir) = dirs.pop().filter(|_| self.encrypted) {
            for name in self.env.list(&dir).unwrap() {
                let path = dir.join(name);
                let Ok(file) = self.env.open(&path) else {
                    dirs.push(path);
                    continue;
                };
                let mut bytes = vec![0; file.bytes().unwrap() as usize];
                file.read_exact_at(&mut bytes, 0).unwrap();
                let found = bytes.windows(secret.len()).any(|window| window == secret);
                assert!(!found, "{} holds a key in clear", path.display());
            }
        }
    }

    pub(crate) fn check_health(&self) {
        if self.has(SpaceLimit) {
            self.check_space();
        }
        let damage = self.store().verify().unwrap();
        assert!(damage.is_empty(), "{damage:?}");
        assert_eq!(self.store().stats().plans_refused, 0);
    }

    /// What the store counts is what its files take, once its threads have nothing to do.
    fn check_space(&self) {
        self.store().settle().unwrap();
        let dir = Path::new(&self.dir);
        // Directories have no bytes of their own. Others ask for recordings by a file.
        let bytes = |name: &String| self.env.held_bytes(&dir.join(name)).unwrap_or(0);
        let held = || -> u64 {
            let files = self.env.list(dir).unwrap();
            files.iter().filter(|name| *name != "RECORD").map(bytes).sum()
        };
        let start = Instant::now();
        loop {
            let (space, held) = (self.store().space().unwrap(), held());
            if (space.used, space.limit) == (held, SPACE_BYTES) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "{space:?}, files take {held}");
            thread::yield_now();
        }
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.load(Ordering::SeqCst)
    }

    /// Returns the number of the last write in the store.
    pub(crate) fn last(&self) -> u64 {
        self.store().snapshot().seq().0
    }

    pub(crate) fn space(&self, id: u64) -> Keyspace {
        let space = self.oracle.spaces.iter().find(|space| space.id == id).unwrap();
        self.store().existing_keyspace(&space.name).unwrap()
    }

    pub(crate) fn any_space(&mut self) -> u64 {
        self.dice.pick(&self.oracle.spaces).id
    }

    pub(crate) fn key(&mut self) -> Key {
        self.dice.pick(&self.keys).clone()
    }

    /// Returns a new value. A filter drops those with `d`, and changes those with `c`.
    pub(crate) fn value(&mut self) -> Vec<u8> {
        self.values += 1;
        let kind = ["v", "v", "d", "c"][self.dice.below(4)];
        let length = self.dice.below(30);
        format!("{kind}{}{}", self.values, "x".repeat(length)).into_bytes()
    }

    pub(crate) fn policy(&mut self) -> &'static str {
        if self.has(Group) {
            self.dice.pick::<&str>(&GROUP_POLICIES)
        } else {
            self.dice.pick::<&str>(&POLICIES)
        }
    }

    pub(crate) fn builder(&mut self, dir: &str) -> Builder {
        let (clock, stop) = (Arc::clone(&self.clock), Arc::clone(&self.stop));
        let env = if self.dice.chance(50) { self.env.clone() } else { self.env.clone().unmapped() };
        let env: Arc<dyn Env> = if self.has(Record) {
            Arc::new(Scripted::new(env, OnTape(Arc::clone(&self.tape))))
        } else {
            Arc::new(env)
        };
        let from_bytes: Option<u64> = *self.dice.pick(&[None, None, Some(1), Some(8)]);
        let mut builder = Store::builder(dir)
            .env(env)
            .large_values(from_bytes)
            .value_space([1.05, 1.5, 3.0][self.dice.below(3)])
            .compression(["none", "lz4", "none,zstd"][self.dice.below(3)])
            .policy(self.policy())
            .memtable_bytes([200, 600, 1500][self.dice.below(3)])
            .block_bytes([40, 80, 200][self.dice.below(3)])
            .cache_bytes([0, 2000, 1 << 20][self.dice.below(3)])
            .filter_bits([0, 4, 10][self.dice.below(3)])
            .log_bytes([4 << 10, 64 << 10][self.dice.below(2)])
            .rewrite_below([0.0, 0.25, 0.8][self.dice.below(3)])
            .threads(1 + self.dice.below(2))
            .changes_bytes(if self.has(Feed) { 1 << 30 } else { 0 })
            .operator(Append)
            .lockstep(self.lockstep);
        if self.has(SpaceLimit) {
            builder = builder.space_bytes(SPACE_BYTES);
        }
        if self.encrypted {
            builder = builder.keys(keys());
        }
        if self.has(Expiry) {
            let now = move || clock.load(Ordering::SeqCst);
            builder = builder.clock(lsmith::Clock::new("steps", now));
        }
        if self.has(Filter) {
            for name in ["left", "right", "third", "moved"] {
                let stop = Arc::clone(&stop);
                builder = builder.merge_filter(name, move |_: &[u8], value: &[u8]| {
                    if let Some((there, go_on)) = stop.lock().unwrap().take() {
                        let _ = there.send(());
                        let _ = go_on.recv();
                    }
                    verdict(value)
                });
            }
        }
        builder
    }

    pub(crate) fn open(&mut self) {
        let dir = self.dir.clone();
        let builder = self.builder(&dir);
        if !self.has(Record) || self.dice.chance(50) {
            self.store = Some(builder.open().unwrap());
            return;
        }
        // The oracle does not know yet what is there.
        let options = self.record_options();
        let store = builder.record(recorded::FOLDER, options).open().unwrap();
        let path = store.recording().expect("the builder asked for it").path;
        self.store = Some(store);
        self.note_recording(path, None);
    }

    pub(crate) fn space_options(&self) -> KeyspaceOptions {
        KeyspaceOptions {
            group: self.has(Group).then(|| "both".into()),
            keep_numbers: (self.has(Arrivals)).then_some(true),
            operator: self.has(Operator).then(|| "append".into()),
            expiry: self
                .has(Feature::Expiry)
                .then_some(Expiry { after: self.after.map(Life::Ticks) }),
            ..KeyspaceOptions::default()
        }
    }

    /// Makes a keyspace.
    pub(crate) fn make(&mut self, name: &str) {
        self.store().keyspace_with(name, &self.space_options()).unwrap();
        self.ids += 1;
        self.oracle.spaces.push(Space::new(self.ids, name));
        self.oracle.synced = self.oracle.last;
    }

    fn step(&mut self) {
        let special = self.dice.chance(35);
        match self.dice.below(100) {
            _ if special => {
                let features = self.features.clone();
                let feature = *self.dice.pick(&features);
                self.use_feature(feature);
            }
            0..=69 => self.write(),
            70..=79 => self.scan(),
            80..=86 => {
                eprintln!("behind {}: flush", self.oracle.last);
                self.store().flush().unwrap();
            }
            87..=93 => {
                eprintln!("behind {}: merge", self.oracle.last);
                let id = self.any_space();
                self.space(id).merge().unwrap();
            }
            94..=96 => {
                self.store().persist(PersistMode::SyncData).unwrap();
                self.oracle.synced = self.oracle.last;
            }
            _ => self.check_all(),
        }
    }

    fn use_feature(&mut self, feature: Feature) {
        // Shown if the run fails.
        eprintln!("behind {}: {feature:?}", self.oracle.last);
        match feature {
            Ranges => self.delete_range(),
            Operator => self.write(),
            Feature::Expiry => {
                self.clock.fetch_add(self.dice.below(30) as u64, Ordering::SeqCst);
            }
            Filter => self.merge_while_others_act(),
            Transactions => self.transact(),
            Arrivals => self.arrive(),
            Checkpoints => self.make_checkpoint(),
            Feed => self.check_feed(),
            Group => self.write(),
            Names => self.change_names(),
            Snapshots => self.hold_or_release(),
            Reader => self.look_beside(),
            Policies => self.switch_policy(),
            Power => self.lose_power(),
            Reopen => self.reopen(),
            Repair => self.repair(),
            Record => self.record(),
            SpaceLimit => self.check_space(),
        }
    }

    /// Returns a random write, and puts it into `batch`.
    fn choose(&mut self, batch: &mut Batch) -> Fed {
        let (id, key) = (self.any_space(), self.key());
        let space = self.space(id);
        let choice = self.dice.below(10);
        if choice < 3 && self.has(Operator) {
            let operand = format!("+{}", self.values).into_bytes();
            self.values += 1;
            batch.combine(&space, &key, &operand);
            return Fed::Key(id, key, What::Combine(operand));
        }
        if choice < 4 {
            batch.delete(&space, &key);
            return Fed::Key(id, key, What::Delete);
        }
        if choice == 4 && self.has(Ranges) {
            let (bounds, start, end) = self.bounds();
            batch.delete_range(&space, bounds);
            return Fed::Range(id, start, end);
        }
        let value = self.value();
        if choice == 5 && self.has(Feature::Expiry) {
            let time = self.now() + 1 + self.dice.below(60) as u64;
            batch.put_until(&space, &key, &value, time);
            return Fed::Key(id, key, What::Put(value, Some(time)));
        }
        batch.put(&space, &key, &value);
        let time = self.put_time().filter(|_| self.has(Feature::Expiry));
        Fed::Key(id, key, What::Put(value, time))
    }

    /// Returns the time at which a value that is put now expires, in a keyspace with `after`.
    pub(crate) fn put_time(&self) -> Option<u64> {
        self.after.map(|after| self.now() + after)
    }

    /// Returns bounds that are not empty.
    pub(crate) fn bounds(&mut self) -> ((Bound<Key>, Bound<Key>), Key, Option<Key>) {
        loop {
            let mut ends = [self.key(), self.key()];
            ends.sort();
            let mut bound = |key: &Key| match self.dice.below(4) {
                0 => Bound::Unbounded,
                1 => Bound::Excluded(key.clone()),
                _ => Bound::Included(key.clone()),
            };
            let bounds = (bound(&ends[0]), bound(&ends[1]));
            let (start, end) = range_of(&bounds);
            if end.as_ref().is_none_or(|end| start < *end) {
                return (bounds, start, end);
            }
        }
    }

    pub(crate) fn write(&mut self) {
        let mut batch = Batch::new();
        let count = if self.dice.chance(60) { 1 } else { 1 + self.dice.below(12) };
        let changes: Vec<Fed> = (0..count).map(|_| self.choose(&mut batch)).collect();
        let mode = if self.dice.chance(15) { PersistMode::SyncData } else { PersistMode::Buffer };
        self.store().write(batch, mode).unwrap();
        let last = self.last();
        self.oracle.apply(changes, last);
        if mode == PersistMode::SyncData {
            self.oracle.synced = last;
        }
    }

    fn delete_range(&mut self) {
        let id = self.any_space();
        let (bounds, start, end) = self.bounds();
        self.space(id).delete_range(bounds).unwrap();
        let last = self.last();
        self.oracle.apply(vec![Fed::Range(id, start, end)], last);
    }

    fn switch_policy(&mut self) {
        let (id, policy) = (self.any_space(), self.policy());
        let space = self.space(id);
        if self.dice.chance(70) {
            let old = space.merge_policy();
            space.set_merge_policy(policy).unwrap();
            if old == space.merge_policy() {
                return;
            }
        } else {
            let codecs = *self.dice.pick(&["none", "lz4", "none,zstd"]);
            if space.compression() == codecs {
                return;
            }
            space.set_compression(codecs).unwrap();
        }
        self.oracle.synced = self.oracle.last;
    }

    /// Clears, renames, drops and makes keyspaces.
    fn change_names(&mut self) {
        let id = self.any_space();
        let name = self.oracle.space(id).name.clone();
        let missing = ["left", "right", "third", "moved"]
            .into_iter()
            .find(|name| self.oracle.spaces.iter().all(|space| space.name != *name));
        match (self.dice.below(4), missing) {
            (0, Some(new)) => {
                self.store().rename_keyspace(&name, new).unwrap();
                self.oracle.space(id).name = new.to_string();
            }
            (1, _) => {
                self.space(id).clear().unwrap();
                let last = self.last();
                self.oracle.note_load(last);
                let space = self.oracle.space(id);
                space.range_deletes.push(RangeDeletes { number: last, start: vec![], end: None });
                space.upheavals.push(last);
                self.oracle.synced = last;
            }
            (2, Some(new)) if self.oracle.spaces.len() < 4 => self.make(new),
            (3, _) if self.oracle.spaces.len() > 1 && !self.has(Group) => {
                self.store().drop_keyspace(&name).unwrap();
                self.oracle.spaces.retain(|space| space.id != id);
                self.held.iter_mut().for_each(|held| held.forget(id));
                self.oracle.synced = self.oracle.last;
                if self.dice.chance(70) {
                    // The name is free for another one.
                    self.make(&name);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn check_feed(&mut self) {
        if !self.has(Feed) {
            return;
        }
        let from = self.feed.as_ref().map_or(self.oracle.last + 1, |feed| feed.next_seq().0);
        let store = self.store().clone();
        let mut feed = self.feed.take().unwrap_or_else(|| store.changes(SeqNo(from)).unwrap());
        for expected in self.oracle.fed(from) {
            let mut found = feed.next_batch().unwrap().expect("a batch that was written");
            assert_eq!(found.first.0, expected.first);
            while found.is_load && found.last.0 < expected.last {
                // An ingest takes a number for each of its steps.
                found = feed.next_batch().unwrap().expect("the rest of a load");
            }
            assert_eq!(found.last.0, expected.last);
            let found: Vec<Fed> = found.changes.iter().map(|change| self.fed(change)).collect();
            if let Some(expected) = expected.changes {
                assert_eq!(found, expected, "the feed differs");
            }
        }
        assert!(feed.next_batch().unwrap().is_none(), "the feed has more than was written");
        self.feed = Some(feed);
    }

    /// Returns a change of a feed in the words of the oracle.
    fn fed(&self, change: &lsmith::Change) -> Fed {
        use lsmith::Change::{Combine, Delete, DeleteRange, Put, PutUntil};
        let id = |name: &str| {
            let space = self.oracle.spaces.iter().find(|space| space.name == name);
            space.unwrap_or_else(|| panic!("the feed names {name}, which does not exist")).id
        };
        match change {
            Put { keyspace, key, value } => {
                Fed::Key(id(keyspace), key.to_vec(), What::Put(value.to_vec(), None))
            }
            PutUntil { keyspace, key, value, time } => {
                Fed::Key(id(keyspace), key.to_vec(), What::Put(value.to_vec(), Some(*time)))
            }
            Combine { keyspace, key, operand } => {
                Fed::Key(id(keyspace), key.to_vec(), What::Combine(operand.to_vec()))
            }
            Delete { keyspace, key } => Fed::Key(id(keyspace), key.to_vec(), What::Delete),
            DeleteRange { keyspace, start, end } => {
                Fed::Range(id(keyspace), start.to_vec(), end.as_ref().map(|end| end.to_vec()))
            }
            other => panic!("{other:?}"),
        }
    }
}
