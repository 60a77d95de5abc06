//! A store is the same on every machine.
//!
//! Promised: any machine reads to the last entry what another has written, and can write on. The
//! width of pointers and the order of bytes do not matter. The same writes in lockstep give the
//! same bytes in tables, value files and logs.
//!
//! A run writes its stores and reads them. With `LSMITH_MACHINES=DIR` it also leaves them in
//! `DIR/ARCHITECTURE`, and reads what other architectures have left in `DIR`.
//! `cargo xtask platforms` runs it so for several targets, each twice: then each has read the
//! stores of all.
#![cfg(feature = "encryption")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real files of other processes are what is tested"
)]
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

use lsmith::cipher::{Keys, MasterKey};
use lsmith::{
    Batch, Builder, Clock, Expiry, IngestOptions, Keyspace, KeyspaceOptions, PersistMode, Store,
    TableWriter,
};
use lsmith_fuzz::dice::Dice;
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The content of a keyspace.
type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The content of keyspaces, by name.
type Maps = BTreeMap<&'static str, Map>;

/// Entries that are written to each keyspace.
const WRITES: usize = 700;

/// Values from this length on are kept in value files.
const LARGE_BYTES: u64 = 300;

/// A table beside the store, with the entries of the second keyspace.
const EXPORTED: &str = "exported";

/// The time that the clock of the stores shows.
const NOW: u64 = 100;

/// Keyspaces whose names differ from each other in how their entries are kept, with their policies.
const SPACES: [(&str, &str); 8] = [
    ("runs", "tiered(ratio=3)"),
    ("levels", "leveled(ratio=2, l0=1, table=4kB)"),
    ("kept", "mixed(ratio=3, rate=0.3)"),
    ("appended", "jungle(c=1.5, ratio=2, table=4kB)"),
    ("timed", "universal(trigger=2)"),
    ("counted", "minlatency(k=2)"),
    ("left", "tiered(ratio=2)"),
    ("right", "tiered(ratio=2)"),
];

/// The kinds of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The writes decide every byte outside of the manifest.
    Plain,
    /// Compressed. A compressor may find other repetitions on another machine.
    Packed,
    /// Encrypted, with a salt in each file.
    Encrypted,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Packed, Kind::Encrypted];

impl Kind {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// Returns the builder of a store of this kind in `dir`.
    fn builder(self, dir: &Path) -> Builder {
        let builder = Store::builder(dir)
            .lockstep(true)
            .clock(Clock::new("steps", || NOW))
            .memtable_bytes(6000)
            .log_bytes(64 << 10)
            .block_bytes(500)
            .large_values(LARGE_BYTES);
        match self {
            Kind::Plain => builder.compression("none"),
            Kind::Packed if cfg!(feature = "zstd") => builder.compression("lz4,zstd(level=5)"),
            Kind::Packed => builder.compression("lz4"),
            Kind::Encrypted => {
                builder.compression("none").keys(Keys::new(MasterKey::aes_256_gcm([7; 32])))
            }
        }
    }
}

/// Returns keyspace `name` of `store`, and makes it if it is missing.
fn space(store: &Store, name: &str, policy: &str) -> Keyspace {
    let mut options = KeyspaceOptions { policy: Some(policy.into()), ..Default::default() };
    match name {
        "timed" => options.expiry = Some(Expiry::default()),
        "counted" => options.operator = Some("counter".to_string()),
        "left" | "right" => options.group = Some("both".to_string()),
        "levels" => options.prefix_bytes = Some(5),
        "runs" => options.keep_numbers = Some(true),
        _ => {}
    }
    store.keyspace_with(name, &options).unwrap()
}

fn key(dice: &mut Dice) -> Vec<u8> {
    format!("key/{:04}\u{ff}", dice.below(400)).into_bytes()
}

/// Returns a value of a length that is small, or large enough for a value file.
fn value(dice: &mut Dice) -> Vec<u8> {
    let length = if dice.chance(4) { 300 + dice.below(3000) } else { dice.below(120) };
    let word = dice.bytes(9);
    word.into_iter().cycle().take(length).collect()
}

/// Makes a write of any kind that `space` knows, in the store and in `map`.
fn write(space: &Keyspace, map: &mut Map, dice: &mut Dice) {
    let (key, value) = (key(dice), value(dice));
    match (space.name(), dice.below(12)) {
        (_, 0) => {
            space.delete(&key).unwrap();
            map.remove(&key);
        }
        (_, 1) if dice.chance(20) => {
            let end = [&key[..7], b"~"].concat();
            space.delete_range(&key[..]..&end[..]).unwrap();
            map.retain(|other, _| !(&key..&end).contains(&other));
        }
        ("counted", _) => {
            let operand = dice.number() as i64 >> 8;
            space.combine(&key, operand.to_le_bytes()).unwrap();
            let sum = map.entry(key).or_insert_with(|| vec![0; 8]);
            let before = i64::from_le_bytes(sum[..].try_into().unwrap());
            *sum = before.wrapping_add(operand).to_le_bytes().to_vec();
        }
        ("timed", 2 | 3) => {
            space.put_until(&key, &value, NOW - 1).unwrap();
            map.remove(&key);
        }
        ("timed", 4 | 5) => {
            space.put_until(&key, &value, 1 << 40).unwrap();
            map.insert(key, value);
        }
        _ => {
            space.put(&key, &value).unwrap();
            map.insert(key, value);
        }
    }
}

/// Writes a store of `kind` to `dir`, which is missing, with an exported table. Returns the content
/// of its keyspaces.
fn make(kind: Kind, dir: &Path) -> Maps {
    let store = kind.builder(&dir.join("store")).open().unwrap();
    let spaces = SPACES.map(|(name, policy)| space(&store, name, policy));
    let mut maps: Maps = SPACES.map(|(name, _)| (name, Map::new())).into();
    let mut dice = Dice::new(5);
    for _ in 0..WRITES {
        for space in &spaces {
            write(space, maps.get_mut(space.name()).unwrap(), &mut dice);
        }
    }
    if kind != Kind::Encrypted {
        let mut table = TableWriter::create(dir.join(EXPORTED)).unwrap();
        store.snapshot().export_newest::<&[u8]>(&spaces[1], .., &mut table).unwrap();
        table.finish().unwrap();
    }
    // Only the log has what comes last.
    let mut batch = Batch::new();
    for space in spaces.iter().filter(|space| space.name() != "counted") {
        batch.put(space, "last", space.name());
        maps.get_mut(space.name()).unwrap().insert(b"last".to_vec(), space.name().into());
    }
    store.write(batch, PersistMode::SyncData).unwrap();
    maps
}

/// Checks that `store` has `maps` in every way of reading, and no damage.
fn check(store: &Store, maps: &Maps, of: &str) {
    for (name, map) in maps {
        let space = store.existing_keyspace(name).unwrap();
        let pair = |(key, value): (bytes::Bytes, bytes::Bytes)| (key.to_vec(), value.to_vec());
        let found: Map = space.iter().map(|entry| pair(entry.unwrap())).collect();
        assert!(found == *map, "{of} {name}: {} entries of {}", found.len(), map.len());
        let backwards = space.iter().rev().map(|entry| pair(entry.unwrap()).0);
        assert!(backwards.eq(map.keys().rev().cloned()), "{of} {name} backwards");
        for (key, value) in map {
            let found = space.get(key).unwrap();
            assert_eq!(found.as_deref(), Some(&value[..]), "{of} {name} {key:?}");
        }
        assert_eq!(space.get("absent").unwrap(), None, "{of} {name}");
    }
    let damage = store.verify().unwrap();
    assert!(damage.is_empty(), "{of}: {damage:?}");
}

/// Reads the store of `kind` in `dir`, which must hold `maps`. Then writes more to it, and merges.
fn read(kind: Kind, dir: &Path, maps: &Maps, of: &str) {
    let builder = || kind.builder(&dir.join("store")).create_if_missing(false);
    check(&builder().read_only(true).open().unwrap(), maps, of);
    let store = builder().open().unwrap();
    check(&store, maps, of);
    let exported = maps[SPACES[1].0].len();
    let mut maps = maps.clone();
    for (name, map) in &mut maps {
        let space = store.existing_keyspace(name).unwrap();
        let mut dice = Dice::new(9);
        (0..60).for_each(|_| write(&space, map, &mut dice));
    }
    check(&store, &maps, of);
    drop(store);
    let store = builder().open().unwrap();
    check(&store, &maps, of);
    for (name, _) in SPACES {
        store.existing_keyspace(name).unwrap().merge().unwrap();
    }
    check(&store, &maps, of);
    if kind != Kind::Encrypted {
        let arrived = store.keyspace("arrived").unwrap();
        store.ingest(&arrived, &[dir.join(EXPORTED)], &IngestOptions::default()).unwrap();
        // All but what the last batch wrote.
        assert_eq!(arrived.iter().count() + 1, exported, "{of}: exported");
    }
    let damage = store.verify().unwrap();
    assert!(damage.is_empty(), "{of}: {damage:?}");
}

/// Copies the folder `from` to `to`, which is missing.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Returns the files in `dir` whose bytes the writes alone decide, by name.
fn decided(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let decided = names.filter(|path| {
        path.extension().is_some_and(|kind| ["table", "values", "wal"].iter().any(|it| kind == *it))
    });
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_string();
    decided.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

/// Checks that `theirs` has the same files as `ours`.
fn compare(ours: &Path, theirs: &Path, of: &str) {
    let [ours, theirs] = [ours, theirs].map(|dir| decided(&dir.join("store")));
    assert!(ours.keys().eq(theirs.keys()), "{of}: {:?}, here {:?}", theirs.keys(), ours.keys());
    for (name, bytes) in &ours {
        let other = &theirs[name];
        let at = bytes.iter().zip(other).position(|(one, two)| one != two);
        assert!(bytes == other, "{of}: {name} is another from byte {at:?} on");
    }
    for kind in [".table", ".values", ".wal"] {
        assert!(ours.keys().any(|name| name.ends_with(kind)), "there is no file {kind}");
    }
}

#[test]
fn stores_of_other_machines_are_read_to_the_last_entry() {
    let temporary = tempfile::tempdir().unwrap();
    let shared = env::var_os("LSMITH_MACHINES").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| temporary.path().join("shared"));
    for kind in KINDS {
        let made = temporary.path().join(kind.name());
        let maps = make(kind, &made);
        let left = shared.join(ARCH).join(kind.name());
        if !left.exists() {
            copy(&made, &left);
        }
        for entry in fs::read_dir(&shared).unwrap() {
            let machine = entry.unwrap().file_name().into_string().unwrap();
            let theirs = shared.join(&machine).join(kind.name());
            let of = format!("{} of {machine} on {ARCH}", kind.name());
            if kind == Kind::Plain {
                compare(&made, &theirs, &of);
            }
            // The other machines need it as it is.
            let ours = temporary.path().join("copy");
            copy(&theirs, &ours);
            read(kind, &ours, &maps, &of);
            fs::remove_dir_all(ours).unwrap();
            println!("read {of}");
        }
    }
}
