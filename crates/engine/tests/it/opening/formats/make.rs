//! Makes the fixtures: small stores on a disk in memory, by writes from a seed.

use crate::dice::Dice;
use crate::frame::contents::Map;
use crate::frame::small::small;
use lsmith::env::{Env, MemEnv};
use lsmith::{
    Batch, Builder, Expiry, IngestOptions, Keyspace, KeyspaceOptions, PersistMode, Store,
    TableWriter, TableWriterOptions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The directory of each store on its disk.
pub(super) const DIR: &str = "/store";

/// A store that was made.
pub(super) struct Made {
    pub(super) name: &'static str,
    pub(super) disk: MemEnv,
    /// The content of the keyspaces.
    pub(super) maps: BTreeMap<String, Map>,
}

/// Makes all fixtures again.
pub(super) fn all() -> Vec<Made> {
    vec![closed(), killed(), reused(), power_lost(), trees(), arrived(), lives()]
}

/// A store under way, and its expected content.
struct Run {
    store: Store,
    disk: MemEnv,
    dice: Dice,
    maps: BTreeMap<String, Map>,
    /// Keys that were inserted when absent and not written since: those may be removed.
    inserted: BTreeMap<String, BTreeSet<Vec<u8>>>,
    fresh: u32,
}

fn key(number: usize) -> Vec<u8> {
    format!("key-{number:05}").into_bytes()
}

fn builder(disk: &MemEnv) -> Builder {
    small(disk).memtable_bytes(3000).block_bytes(400)
}

impl Run {
    fn begin(seed: u64, change: impl FnOnce(Builder) -> Builder) -> Run {
        let disk = MemEnv::new();
        let store = change(builder(&disk)).open().unwrap();
        let maps = BTreeMap::new();
        let inserted = BTreeMap::new();
        Run { store, disk, dice: Dice::new(seed), maps, inserted, fresh: 0 }
    }

    fn space(&mut self, name: &str, policy: &str) -> Keyspace {
        self.maps.entry(name.to_string()).or_default();
        let policy = Some(policy.into());
        self.store
            .keyspace_with(
                name,
                &KeyspaceOptions {
                    policy,
                    memtable_bytes: None,
                    group: None,
                    ..KeyspaceOptions::default()
                },
            )
            .unwrap()
    }

    /// Returns a value of 10 to `most` bytes that compresses well.
    fn value(&mut self, most: usize) -> Vec<u8> {
        let word = format!("{:04}-", self.dice.below(10_000));
        let length = 10 + self.dice.below(most - 9);
        word.bytes().cycle().take(length).collect()
    }

    /// Makes writes of all kinds to `space`, most of them to about `keys` keys.
    fn write(&mut self, space: &Keyspace, count: usize, keys: usize) {
        for _ in 0..count {
            let key = key(self.dice.below(keys));
            let value = self.value(60);
            let map = self.maps.get_mut(space.name()).expect("the keyspace was made");
            let inserted = self.inserted.entry(space.name().to_string()).or_default();
            match self.dice.below(10) {
                0 => {
                    space.delete(&key).unwrap();
                    map.remove(&key);
                }
                1 | 2 => {
                    self.fresh += 1;
                    let key = format!("once/{:05}\0\u{ff}", self.fresh * 7919 % 100_000);
                    let key = key.into_bytes();
                    space.put_new_unchecked(&key, &value).unwrap();
                    map.insert(key.clone(), value);
                    inserted.insert(key);
                }
                3 if inserted.len() > 5 => {
                    let nth = self.dice.below(inserted.len());
                    let key = inserted.iter().nth(nth).expect("so many there are").clone();
                    space.delete_single_unchecked(&key).unwrap();
                    inserted.remove(&key);
                    map.remove(&key);
                }
                _ => {
                    space.put(&key, &value).unwrap();
                    map.insert(key, value);
                }
            }
        }
    }

    /// Loads every third key of `keys` in bulk.
    fn load(&mut self, space: &Keyspace, keys: usize) {
        let mut load = space.bulk_load().unwrap();
        for number in (0..keys).step_by(3) {
            let key = key(number);
            let value = self.value(60);
            load.put(&key, &value).unwrap();
            self.maps.get_mut(space.name()).expect("it was made").insert(key, value);
        }
        load.finish().unwrap();
    }

    /// Puts `keys`, one after the other.
    fn sweep(&mut self, space: &Keyspace, keys: std::ops::Range<usize>) {
        for number in keys {
            let key = key(number);
            let value = self.value(120);
            space.put(&key, &value).unwrap();
            self.maps.get_mut(space.name()).expect("it was made").insert(key, value);
        }
    }

    /// Writes one batch to several keyspaces.
    fn batch(&mut self, spaces: &[&Keyspace], mode: PersistMode) {
        let mut batch = Batch::new();
        for space in spaces {
            let key = b"in a batch".to_vec();
            let value = self.value(40);
            batch.put(space, &key, &value);
            self.maps.get_mut(space.name()).expect("it was made").insert(key, value);
        }
        self.store.write(batch, mode).unwrap();
    }

    /// Begins a table from outside.
    fn writer(&self, prefix_bytes: Option<u16>, operator: Option<&str>) -> TableWriter {
        let env = self.store.env().clone();
        let operator = operator.map(str::to_string);
        let options = TableWriterOptions { env, prefix_bytes, operator, ..Default::default() };
        TableWriter::create_with("/made", &options).unwrap()
    }

    /// Ends the table, and ingests it.
    fn ingest(&self, space: &Keyspace, writer: TableWriter) {
        writer.finish().unwrap();
        self.store.ingest(space, &["/made"], &IngestOptions::default()).unwrap();
        self.disk.remove_file(Path::new("/made")).unwrap();
    }

    /// Returns the store as a process that is killed now leaves it.
    fn kill(self, name: &'static str) -> Made {
        Made { name, disk: self.disk.process_crash_clone(), maps: self.maps }
    }
}

/// Closed properly twice: all codecs, tables of bulk loads, a change of policy and of codec after
/// the manifest was begun, and writes that are only in the log.
fn closed() -> Made {
    let change = |builder: Builder| builder.compression("none,zstd(level=9)");
    let mut run = Run::begin(1, change);
    for (name, policy) in [
        ("zstd", "leveled(ratio=2, l0=1, table=4kB)"),
        ("plain", "minlatency(k=2)"),
        ("lz4", "tiered(ratio=3)"),
        ("loaded", "none"),
    ] {
        let space = run.space(name, policy);
        run.write(&space, 120, 120);
    }
    run.disk = run.disk.process_crash_clone();
    run.store = change(builder(&run.disk)).open().unwrap();
    let [zstd, plain, lz4, loaded] =
        ["zstd", "plain", "lz4", "loaded"].map(|name| run.store.existing_keyspace(name).unwrap());
    plain.set_compression("none").unwrap();
    lz4.set_compression("lz4").unwrap();
    run.write(&lz4, 100, 120);
    lz4.set_merge_policy("leveled(ratio=3, l0=2, pick=round_robin, table=3kB)").unwrap();
    run.write(&lz4, 60, 120);
    run.write(&zstd, 100, 120);
    run.load(&loaded, 200);
    run.write(&loaded, 30, 120);
    run.batch(&[&zstd, &plain, &lz4, &loaded], PersistMode::SyncData);
    run.write(&plain, 5, 120);
    let Run { store, disk, maps, .. } = run;
    drop((store, zstd, plain, lz4, loaded));
    Made { name: "closed", disk, maps }
}

/// Killed: a spill replaces the start of the log, batches are only in several logs, and
/// the manifest has edits behind its beginning.
fn killed() -> Made {
    let mut run = Run::begin(2, |builder| builder.memtable_bytes(8000).log_bytes_max(80 << 10));
    let lazy = run.space("lazy", "choose_best(ratio=3, rate=0.1)");
    let busy = run.space("busy", "constant(k=2)");
    for _ in 0..110 {
        run.write(&lazy, 9, 60);
        run.write(&busy, 9, 60);
        run.batch(&[&lazy, &busy], PersistMode::Buffer);
    }
    let quiet = run.space("quiet", "bigtable(k=3)");
    run.write(&quiet, 3, 9);
    run.kill("killed")
}

/// Killed while merges keep blocks: tables whose slices show parts, with holes in their files.
fn reused() -> Made {
    let mut run = Run::begin(3, |builder| builder.memtable_bytes(20 << 10));
    let mixed = run.space("mixed", "mixed(ratio=8, rate=1.0)");
    run.sweep(&mixed, 0..500);
    for round in 0..2 {
        run.sweep(&mixed, 60 + 30 * round..190);
        run.sweep(&mixed, 310..440 - 30 * round);
    }
    run.kill("reused")
}

/// After power loss: the end of the log was not synced, and only parts of it are there. The rest is
/// a prefix of the batches. Each batch notes its number.
fn power_lost() -> Made {
    let mut run = Run::begin(4, |builder| builder.memtable_bytes(8000));
    let space = run.space("space", "minlatency(k=2)");
    let mut after = vec![run.maps.clone()];
    for number in 1..=150_usize {
        let mut batch = Batch::new();
        for key in [b"last".to_vec(), key(run.dice.below(70))] {
            let value = match &key[..] {
                b"last" => number.to_string().into_bytes(),
                _ => run.value(300),
            };
            batch.put(&space, &key, &value);
            run.maps.get_mut("space").expect("it was made").insert(key, value);
        }
        let mode = if number == 110 { PersistMode::SyncData } else { PersistMode::Buffer };
        run.store.write(batch, mode).unwrap();
        after.push(run.maps.clone());
    }
    let disk = run.disk.crash_clone(7, 0.8);
    let store = builder(&disk.process_crash_clone()).open().unwrap();
    let last = store.existing_keyspace("space").unwrap().get("last").unwrap().unwrap();
    let last: usize = std::str::from_utf8(&last).unwrap().parse().unwrap();
    assert!((110..150).contains(&last), "{last} of 150 batches are left");
    Made { name: "power_lost", disk, maps: after.swap_remove(last) }
}

/// Killed while trees grow: several batches in a file, compressed and not, and roots that the
/// manifest names in edits.
fn trees() -> Made {
    let mut run = Run::begin(5, |builder| builder.memtable_bytes(2000));
    let plain = run.space("plain", "jungle(c=10, ratio=2, table=20kB)");
    let packed = run.space("packed", "jungle(c=3, ratio=2, table=3kB)");
    packed.set_compression("lz4").unwrap();
    for _ in 0..12 {
        run.write(&plain, 25, 150);
        run.write(&packed, 25, 150);
    }
    run.batch(&[&plain, &packed], PersistMode::Buffer);
    run.kill("trees")
}

/// Closed properly after each of three lives with one batch: the manifest says what was synced.
fn lives() -> Made {
    let mut run = Run::begin(7, |builder| builder);
    let space = run.space("space", "tiered(ratio=3)");
    run.batch(&[&space], PersistMode::SyncData);
    drop(space);
    for _ in 0..2 {
        run.store = builder(&MemEnv::new()).open().unwrap();
        run.store = builder(&run.disk).open().unwrap();
        let space = run.store.existing_keyspace("space").unwrap();
        run.write(&space, 1, 20);
    }
    let Run { store, disk, maps, .. } = run;
    drop(store);
    Made { name: "lives", disk, maps }
}

/// A time that no clock shows while the fixture is in use.
const FAR: u64 = 1 << 60;

/// Killed: tables from outside with prefixes, entries that expire, and operands.
fn arrived() -> Made {
    let mut run = Run::begin(6, |builder| builder.policy("none"));
    let expiry = Some(Expiry::default());
    let timed = KeyspaceOptions { expiry, prefix_bytes: Some(6), ..KeyspaceOptions::default() };
    let timed = run.store.keyspace_with("timed", &timed).unwrap();
    let operator = Some("counter".to_string());
    let counted = KeyspaceOptions { operator, ..KeyspaceOptions::default() };
    let counted = run.store.keyspace_with("counted", &counted).unwrap();
    let mut counts = counted.bulk_load().unwrap();
    for number in 0..20 {
        timed.put_until(key(number), "hidden", FAR).unwrap();
        counts.put(key(number), 7_i64.to_le_bytes()).unwrap();
    }
    counts.finish().unwrap();
    run.store.flush().unwrap();
    let mut some = run.writer(Some(4), None);
    for number in 0..40 {
        match number % 4 {
            0 => some.put(key(number), "stays").unwrap(),
            1 => some.put_until(key(number), "late", FAR).unwrap(),
            2 => some.put_until(key(number), "later", FAR + 1).unwrap(),
            _ => some.delete(key(number)).unwrap(),
        }
    }
    run.ingest(&timed, some);
    let mut all = run.writer(None, None);
    (40..50).for_each(|number| all.put_until(key(number), "late", FAR).unwrap());
    run.ingest(&timed, all);
    let mut operands = run.writer(None, Some("counter"));
    (10..30).for_each(|number| operands.combine(key(number), 5_i64.to_le_bytes()).unwrap());
    run.ingest(&counted, operands);
    let map = |space: &Keyspace| {
        let pair = |(key, value): (bytes::Bytes, bytes::Bytes)| (key.to_vec(), value.to_vec());
        space.iter().map(|entry| pair(entry.unwrap())).collect::<Map>()
    };
    for space in [&timed, &counted] {
        run.maps.insert(space.name().to_string(), map(space));
    }
    assert_eq!(run.maps.values().map(Map::len).collect::<Vec<_>>(), [30, 40]);
    assert_eq!(run.maps["counted"][&key(15)], 12_i64.to_le_bytes());
    assert_eq!(run.maps["timed"][&key(1)], b"late");
    run.kill("arrived")
}
