//! Stores that older code has written.
//!
//! Promised: a store of a supported old format opens with every later version of the code, for
//! reading without a changed byte and for writing. It holds what it held, and has no damage.
//!
//! `tests/format/vN` holds such stores, made by the first code with format N, or as early as
//! possible. They are never made again: their age is their purpose. A file `NAME.txt` beside the
//! directory `NAME` has the length of each file, and a checksum of the content of each keyspace.
//! Logs and manifests are stored without trailing zeros.
//!
//! A change of the format adds stores of the new one, and keeps the others:
//!
//! 1. Let `make.rs` make stores in which there is everything new, under new names.
//! 2. `LSMITH_WRITE_FIXTURES=DIR cargo test -p lsmith --test it opening::formats`, with `DIR` as a
//!    whole path, writes all of them to `DIR/NAME` and `DIR/NAME.txt`.
//! 3. Copy what is new into `tests/format/vN`, with the format's number for N. All of
//!    `tests/format` should stay below half a megabyte.

mod make;

use crate::frame::contents::{Map, contents};
use crate::frame::small::plain_at;
use lsmith::Store;
use lsmith::env::{Env, MemEnv};
use make::{DIR, Made};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// Names and contents of the files of a store.
type Files = BTreeMap<String, Vec<u8>>;

/// A store that was checked in.
struct Fixture {
    name: String,
    files: Files,
    /// The expected content of each keyspace, by name.
    spaces: BTreeMap<String, Held>,
}

/// The expected content of a keyspace.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    policy: String,
    entries: usize,
    checksum: u64,
}

impl Held {
    fn of(policy: &str, map: &Map) -> Held {
        let mut all = Vec::new();
        for bytes in map.iter().flat_map(|(key, value)| [key, value]) {
            all.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            all.extend_from_slice(bytes);
        }
        Held { policy: policy.to_string(), entries: map.len(), checksum: xxh3_64(&all) }
    }
}

impl Fixture {
    /// Reads fixture `name` from `dir`.
    fn read(dir: &Path, name: &str) -> Fixture {
        let mut files = Files::new();
        let mut spaces = BTreeMap::new();
        let text = fs::read_to_string(dir.join(format!("{name}.txt"))).unwrap();
        for line in text.lines() {
            let words: Vec<&str> = line.splitn(7, ' ').collect();
            match words[..] {
                ["file", file, bytes] => {
                    let mut contents = fs::read(dir.join(name).join(file)).unwrap();
                    contents.resize(bytes.parse().unwrap(), 0);
                    files.insert(file.to_string(), contents);
                }
                ["keyspace", space, "entries", entries, "checksum", checksum, policy] => {
                    let held = Held {
                        policy: policy.to_string(),
                        entries: entries.parse().unwrap(),
                        checksum: u64::from_str_radix(checksum, 16).unwrap(),
                    };
                    spaces.insert(space.to_string(), held);
                }
                _ => panic!("{name}.txt: {line}"),
            }
        }
        Fixture { name: name.to_string(), files, spaces }
    }

    /// All fixtures in `dir`.
    fn all(dir: &Path) -> Vec<Fixture> {
        let mut names: Vec<String> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".txt").map(str::to_string))
            .collect();
        names.sort();
        names.iter().map(|name| Fixture::read(dir, name)).collect()
    }

    /// Copies the store to a directory of its own.
    fn copy(&self) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, contents) in &self.files {
            fs::write(dir.path().join(name), contents).unwrap();
        }
        dir
    }

    /// Checks the content of `store` in every way of reading, and returns it.
    fn check(&self, store: &Store) -> BTreeMap<String, Map> {
        assert!(store.keyspaces().iter().eq(self.spaces.keys()), "{}", self.name);
        let maps = self.spaces.iter().map(|(name, held)| {
            let space = store.existing_keyspace(name).unwrap();
            let map = contents(&space);
            assert_eq!(Held::of(&space.merge_policy(), &map), *held, "{} {name}", self.name);
            for (key, value) in &map {
                assert_eq!(space.get(key).unwrap().as_deref(), Some(&value[..]));
            }
            assert_eq!(space.get("absent").unwrap(), None);
            let backwards = space.iter().rev().map(Result::unwrap);
            assert!(backwards.map(|(key, _)| key).eq(map.keys().rev()), "{} {name}", self.name);
            (name.clone(), map)
        });
        let maps = maps.collect();
        let damage = store.verify().unwrap();
        assert!(damage.is_empty(), "{}: {damage:?}", self.name);
        maps
    }
}

/// Where the fixtures are: a directory for each format.
fn checked_in() -> Vec<Fixture> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format");
    let mut formats: Vec<PathBuf> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    formats.retain(|path| path.is_dir());
    formats.sort();
    let fixtures: Vec<_> = formats.iter().flat_map(|path| Fixture::all(path)).collect();
    assert!(fixtures.len() >= 4, "the fixtures are missing");
    fixtures
}

/// Copies every fixture to a directory of its own. Returns the directories by name.
pub(crate) fn copies() -> BTreeMap<String, tempfile::TempDir> {
    checked_in().iter().map(|fixture| (fixture.name.clone(), fixture.copy())).collect()
}

/// Returns names and contents of the files in `dir` except the lock and the folder of readers,
/// which opening makes.
fn files_in(dir: &Path) -> Files {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    let files = entries
        .filter(|entry| entry.file_name() != "readers")
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()));
    files.filter(|(name, _)| name != "LOCK").collect()
}

#[test]
fn old_stores_open_for_reading_and_stay_as_they_are() {
    for fixture in checked_in() {
        let dir = fixture.copy();
        let store = Store::builder(dir.path()).read_only(true).open().unwrap();
        fixture.check(&store);
        assert_eq!(store.id(), None, "no store of this age has an identity");
        drop(store);
        assert!(files_in(dir.path()) == fixture.files, "{} has changed", fixture.name);
    }
}

#[test]
fn old_stores_open_for_writing_and_go_on() {
    for fixture in checked_in() {
        let dir = fixture.copy();
        let store = Store::builder(dir.path()).create_if_missing(false).open().unwrap();
        let mut maps = fixture.check(&store);
        let id = store.id();
        assert!(id.is_some(), "{}", fixture.name);
        for (name, map) in &mut maps {
            let space = store.existing_keyspace(name).unwrap();
            let first = map.keys().next().expect("none is empty").clone();
            space.delete(&first).unwrap();
            map.remove(&first);
            space.put("written later", "value").unwrap();
            map.insert(b"written later".to_vec(), b"value".to_vec());
        }
        let check = |store: &Store| {
            for (name, map) in &maps {
                let found = contents(&store.existing_keyspace(name).unwrap());
                assert!(found == *map, "{} {name}", fixture.name);
            }
            let damage = store.verify().unwrap();
            assert!(damage.is_empty(), "{}: {damage:?}", fixture.name);
        };
        check(&store);
        drop(store);
        // The writes are in the log alone, then in tables, then in one run.
        let open = || Store::builder(dir.path()).create_if_missing(false).open().unwrap();
        let store = open();
        check(&store);
        store.flush().unwrap();
        check(&store);
        for name in maps.keys() {
            store.existing_keyspace(name).unwrap().merge().unwrap();
        }
        check(&store);
        drop(store);
        let store = open();
        check(&store);
        assert_eq!(store.id(), id, "{}", fixture.name);
    }
}

#[test]
fn old_stores_have_files_of_all_kinds() {
    let fixtures = checked_in();
    let all = || fixtures.iter().flat_map(|fixture| &fixture.files);
    for kind in ["CURRENT", ".manifest", ".wal", ".table", ".spill"] {
        assert!(all().any(|(name, _)| name.ends_with(kind)), "no file {kind}");
    }
    let tables = || all().filter(|(name, _)| name.ends_with(".table")).map(|(_, bytes)| bytes);
    // Bits of the footer: compressed, without dates.
    for feature in [0, 1, 2] {
        assert!(tables().any(|bytes| bytes[bytes.len() - 76] == feature), "no table {feature}");
    }
    // Those from outside: with prefixes and some entries that expire, only such entries, operands.
    for feature in [2 | 4 | 16 | 64, 2 | 4 | 32 | 64, 2 | 4 | 128] {
        assert!(tables().any(|bytes| bytes[bytes.len() - 76] == feature), "no table {feature}");
    }
    // Roots of append tables, whose files are compressed or not, and have several.
    for feature in [8, 9] {
        let batches = |bytes: &&Vec<u8>| {
            let ends = bytes.windows(8).filter(|window| *window == b"lsmtable").count();
            bytes[bytes.len() - 76] == feature && ends > 1
        };
        assert!(tables().filter(batches).count() > 0, "no append table {feature}");
    }
    let hole = |bytes: &&Vec<u8>| bytes.chunks_exact(4096).any(|page| page == [0; 4096]);
    assert!(tables().filter(hole).count() > 0, "no table has a hole");
    let manifests = all().filter(|(name, _)| name.ends_with(".manifest"));
    let text: Vec<u8> = manifests.flat_map(|(_, bytes)| bytes).copied().collect();
    for record in [
        "next_file ",
        "keyspace 0 ",
        "compressed_keyspace none,zstd(level=9) ",
        "policy 2 leveled(",
        "compression 2 lz4",
        "short_tree ",
        "short_edit ",
        "taken ",
        " root ",
        " of .. 0B",
        "spill ",
        "synced ",
        "expiry none filters store 6 ",
        "operator counter ",
    ] {
        let found = text.windows(record.len()).any(|window| window == record.as_bytes());
        assert!(found, "no record has `{record}`");
    }
    let logs =
        |fixture: &Fixture| fixture.files.keys().filter(|name| name.ends_with(".wal")).count();
    assert!(fixtures.iter().map(logs).max() > Some(1), "no store has several logs");
}

/// Writes `made` to `dir`.
fn write(made: &Made, dir: &Path) {
    let Made { name, disk, maps } = made;
    fs::create_dir_all(dir.join(name)).unwrap();
    let mut text = String::new();
    for file in disk.list(Path::new(DIR)).unwrap().into_iter().filter(|file| file != "LOCK") {
        let mut bytes = read(disk, &file);
        text.push_str(&format!("file {file} {}\n", bytes.len()));
        if !file.ends_with(".table") {
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            bytes.truncate(used);
        }
        fs::write(dir.join(name).join(file), bytes).unwrap();
    }
    let store = plain_at(DIR, &disk.process_crash_clone());
    let store = store.read_only(true).open().unwrap();
    for (space, map) in maps {
        let policy = store.existing_keyspace(space).unwrap().merge_policy();
        let Held { policy, entries, checksum } = Held::of(&policy, map);
        let line = format!("keyspace {space} entries {entries} checksum {checksum:016x} {policy}");
        text.push_str(&line);
        text.push('\n');
    }
    fs::write(dir.join(format!("{name}.txt")), text).unwrap();
}

fn read(disk: &MemEnv, name: &str) -> Vec<u8> {
    let file = disk.open(&Path::new(DIR).join(name)).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn fixtures_are_made_and_read_back() {
    let temporary = tempfile::tempdir().unwrap();
    let asked = std::env::var_os("LSMITH_WRITE_FIXTURES").map(PathBuf::from);
    let dir = asked.unwrap_or_else(|| temporary.path().to_path_buf());
    let made = make::all();
    made.iter().for_each(|made| write(made, &dir));
    for made in made {
        let fixture = Fixture::read(&dir, made.name);
        let copy = fixture.copy();
        let store = Store::builder(copy.path()).read_only(true).open().unwrap();
        assert!(fixture.check(&store) == made.maps, "{}", made.name);
    }
}
