//! Directories that move: the process goes elsewhere, or the directory of the store does.
//!
//! Promised: a path that was given once means one directory for ever. What is no longer at its
//! path is an error that says so. Nothing is ever written to, or removed from, what lies there in
//! its place.
//!
//! The children that change their directory are this test binary, with their orders in environment
//! variables.

use crate::frame::small::small_on_disk;
use lsmith::{Backups, ErrorKind, Keyspace, PersistMode, Store, TableWriter};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable of a child: what it does.
const ROLE: &str = "LSMITH_PLACES_ROLE";

/// The directory that a child moves to.
const ELSEWHERE: &str = "../second";

const KEYS: u32 = 4500;

fn space(store: &Store) -> Keyspace {
    store.keyspace("default").unwrap()
}

fn put(store: &Store, numbers: std::ops::Range<u32>) -> lsmith::Result<()> {
    let space = space(store);
    numbers.into_iter().try_for_each(|number| space.put(number.to_be_bytes(), [7; 200]))
}

/// Returns the keys in the store in `dir`.
fn keys(dir: impl AsRef<Path>) -> Vec<u32> {
    let store = small_on_disk(dir).open().unwrap();
    assert!(store.verify().unwrap().is_empty());
    let number = |key: &[u8]| u32::from_be_bytes(key.try_into().unwrap());
    space(&store).iter().map(|entry| number(&entry.unwrap().0)).collect()
}

/// Returns the files in `dir` by name, with their contents.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap_or_default())
    };
    fs::read_dir(dir).unwrap().map(read).collect()
}

/// Makes two directories, and runs the child with `role` in the first. It goes to the second.
fn two_places(role: &str, prepare: impl FnOnce(&Path, &Path)) -> (tempfile::TempDir, PathBuf) {
    let root = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| root.path().join(name));
    fs::create_dir(&first).unwrap();
    fs::create_dir(&second).unwrap();
    prepare(&first, &second);
    let mut child = Command::new(env::current_exe().unwrap());
    child
        .args(["--exact", "disk::moved::child", "--nocapture"])
        .env(ROLE, role)
        .current_dir(&first);
    let done = child.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    (root, first)
}

#[test]
fn child() {
    match env::var(ROLE).as_deref() {
        Ok("writer") => write_elsewhere(),
        Ok("reader") => read_elsewhere(),
        Ok("copies") => copy_elsewhere(),
        _ => {}
    }
}

fn write_elsewhere() {
    let store = small_on_disk("data").open().unwrap();
    env::set_current_dir(ELSEWHERE).unwrap();
    put(&store, 0..KEYS).unwrap();
    store.flush().unwrap();
    put(&store, KEYS..KEYS + 10).unwrap();
    store.persist(PersistMode::SyncAll).unwrap();
}

/// What broke: each file was made under the path as it was given, so the store went on in whatever
/// lay at that path from the new directory of the process. Neither place had a store afterwards.
#[test]
fn a_store_stays_where_it_was_opened() {
    let make = |_: &Path, second: &Path| fs::create_dir(second.join("data")).unwrap();
    let (root, first) = two_places("writer", make);
    assert_eq!(files(&root.path().join("second/data")), BTreeMap::new());
    assert_eq!(keys(first.join("data")).len() as u32, KEYS + 10);
}

#[test]
fn a_store_at_the_same_path_elsewhere_is_left_alone() {
    let mut before = BTreeMap::new();
    let make = |_: &Path, second: &Path| {
        put(&small_on_disk(second.join("data")).open().unwrap(), 0..6).unwrap();
        before = files(&second.join("data"));
    };
    let (root, first) = two_places("writer", make);
    let second = root.path().join("second/data");
    assert!(files(&second) == before, "{:?}", files(&second).keys());
    assert_eq!(keys(second), [0, 1, 2, 3, 4, 5]);
    assert_eq!(keys(first.join("data")).len() as u32, KEYS + 10);
}

fn read_elsewhere() {
    let store = Store::builder("data").read_only(true).open().unwrap();
    env::set_current_dir(ELSEWHERE).unwrap();
    put(&small_on_disk("../first/data").open().unwrap(), 100..103).unwrap();
    store.refresh().unwrap();
    let space = store.existing_keyspace("default").unwrap();
    assert_eq!(space.iter().count(), 6);
}

#[test]
fn a_reader_stays_where_it_was_opened() {
    let (root, _) = two_places("reader", |first, second| {
        put(&small_on_disk(first.join("data")).open().unwrap(), 0..3).unwrap();
        put(&small_on_disk(second.join("data")).open().unwrap(), 0..30).unwrap();
    });
    assert!(!root.path().join("second/data/readers").exists());
}

fn copy_elsewhere() {
    let store = small_on_disk("data").open().unwrap();
    put(&store, 0..10).unwrap();
    let backups = Backups::new("backups");
    let mut whole = TableWriter::create("whole").unwrap();
    whole.put("key", "value").unwrap();
    let part = TableWriter::create("part").unwrap();
    env::set_current_dir(ELSEWHERE).unwrap();
    let number = store.backup(&backups).unwrap().id;
    whole.finish().unwrap();
    drop(part);
    assert_eq!(backups.list().unwrap().len(), 1);
    backups.restore(number, "restored").unwrap();
    store.checkpoint("then").unwrap();
}

/// What broke: a table writer that was dropped removed whatever had its path by then.
#[test]
fn copies_and_tables_stay_where_they_were_begun() {
    let (root, first) = two_places("copies", |_, second| {
        fs::write(second.join("part"), "a letter").unwrap();
    });
    let second = root.path().join("second");
    assert_eq!(files(&second).keys().collect::<Vec<_>>(), ["part", "restored", "then"]);
    assert_eq!(files(&second)["part"], b"a letter");
    assert_eq!(files(&first).keys().collect::<Vec<_>>(), ["backups", "data", "whole"]);
    assert_eq!(keys(second.join("restored")).len(), 10);
    assert_eq!(keys(second.join("then")).len(), 10);
}

/// A store that is open, in a directory that has moved.
struct Moved {
    _root: tempfile::TempDir,
    store: Store,
    /// Where it was opened.
    old: PathBuf,
    /// Where it is now.
    now: PathBuf,
}

/// Moves the directory of a store. Returns nothing if the system refuses: Windows moves no
/// directory with open files.
fn moved() -> Option<Moved> {
    let root = tempfile::tempdir().unwrap();
    let [old, now] = ["data", "moved"].map(|name| root.path().join(name));
    // Nothing is flushed yet.
    let store = small_on_disk(&old).memtable_bytes(64 << 10).open().unwrap();
    put(&store, 0..100).unwrap();
    store.persist(PersistMode::SyncAll).unwrap();
    let done = fs::rename(&old, &now);
    assert!(done.is_ok() || cfg!(windows), "{done:?}");
    done.is_ok().then_some(Moved { _root: root, store, old, now })
}

/// Writes until the store refuses. Returns the number of keys that it took, and the error.
fn put_until_refused(store: &Store) -> (u32, lsmith::Error) {
    let refused = |number| Some((number, put(store, number..number + 1).err()?));
    (100..50_000).find_map(refused).expect("the store refuses writes at the next log")
}

/// What broke: the store went on in the directory that took the place of its own. Puts, flushes
/// and syncs returned `Ok`, and afterwards neither directory had a store.
#[test]
fn a_directory_that_takes_the_place_of_the_store_is_left_alone() {
    let Some(Moved { store, old, now, _root }) = moved() else { return };
    put(&small_on_disk(&old).open().unwrap(), 0..6).unwrap();
    let before = files(&old);
    let synced = store.persist(PersistMode::SyncAll).unwrap_err();
    let (message, place) = (synced.to_string(), old.display().to_string());
    assert!(message.contains(&place) && message.contains("open it where it is now"), "{message}");
    let (taken, refused) = put_until_refused(&store);
    assert_eq!((taken, refused.kind()), (100, ErrorKind::Poisoned));
    store.flush().unwrap_err();
    drop(store);
    assert!(files(&old) == before, "{:?}", files(&old).keys());
    assert_eq!(keys(old), [0, 1, 2, 3, 4, 5]);
    assert_eq!(keys(now), (0..100).collect::<Vec<_>>());
}

#[test]
fn writes_without_sync_go_on_until_a_log_must_begin() {
    let Some(Moved { store, old, now, _root }) = moved() else { return };
    fs::create_dir(&old).unwrap();
    let (taken, refused) = put_until_refused(&store);
    assert!(refused.to_string().contains(&old.display().to_string()), "{refused}");
    drop(store);
    assert_eq!(files(&old), BTreeMap::new());
    assert_eq!(keys(now), (0..taken).collect::<Vec<_>>());
}

#[test]
fn what_waited_for_a_directory_goes_on_when_it_is_back() {
    let Some(Moved { store, old, now, _root }) = moved() else { return };
    store.flush().unwrap_err();
    assert_eq!(files(&now).keys().filter(|name| name.ends_with(".table")).count(), 0);
    fs::rename(&now, &old).unwrap();
    store.retry();
    store.flush().unwrap();
    put(&store, 100..KEYS).unwrap();
    store.persist(PersistMode::SyncAll).unwrap();
    drop(store);
    assert_eq!(keys(old).len() as u32, KEYS);
}

/// What broke: `refresh` returned `Ok` with the number of the last write of the other store.
#[test]
fn a_reader_whose_directory_was_replaced_says_so() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    put(&small_on_disk(&dir).open().unwrap(), 0..3).unwrap();
    let reader = Store::builder(&dir).read_only(true).open().unwrap();
    let space = reader.existing_keyspace("default").unwrap();
    let done = fs::rename(&dir, root.path().join("moved"));
    if cfg!(windows) && done.is_err() {
        return; // As in `moved`.
    }
    done.unwrap();
    let missing = reader.refresh().unwrap_err().to_string();
    assert!(missing.contains("open it where it is now"), "{missing}");
    put(&small_on_disk(&dir).open().unwrap(), 0..30).unwrap();
    let other = reader.refresh().unwrap_err().to_string();
    assert!(other.contains("open it where it is now"), "{other}");
    assert_eq!(space.iter().count(), 3, "it reads on");
    drop((space, reader));
    assert_eq!(keys(dir).len(), 30);
}

/// What broke: whoever removed `LOCK` let a second writer in. The first went on, and its synced
/// writes were lost.
#[test]
fn a_store_whose_lock_file_is_gone_is_still_locked() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    let store = small_on_disk(&dir).open().unwrap();
    put(&store, 0..100).unwrap();
    store.persist(PersistMode::SyncAll).unwrap();
    let removed = fs::remove_file(dir.join("LOCK"));
    assert_eq!(removed.is_ok(), cfg!(not(windows)), "{removed:?}");
    let second = Store::builder(&dir).open().unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Locked, "{second}");
    if removed.is_err() {
        return store.persist(PersistMode::SyncAll).unwrap();
    }
    let lost = store.persist(PersistMode::SyncAll).unwrap_err().to_string();
    assert!(lost.contains("LOCK") && lost.contains("open it again"), "{lost}");
    let (taken, refused) = put_until_refused(&store);
    assert_eq!((taken, refused.kind()), (100, ErrorKind::Poisoned));
    drop(store);
    assert_eq!(keys(dir), (0..100).collect::<Vec<_>>());
}

/// Earlier versions lock `LOCK` alone. Windows lets nobody remove it.
#[cfg(unix)]
#[test]
fn a_writer_of_an_earlier_version_with_another_lock_file_stops_this_one() {
    use rustix::fs::{FlockOperation, flock};
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("data");
    let store = small_on_disk(&dir).open().unwrap();
    put(&store, 0..100).unwrap();
    fs::remove_file(dir.join("LOCK")).unwrap();
    let earlier = fs::File::create(dir.join("LOCK")).unwrap();
    flock(&earlier, FlockOperation::NonBlockingLockExclusive).unwrap();
    let before = files(&dir);
    store.flush().unwrap_err();
    let mode = PersistMode::SyncAll;
    let lost = store.persist(mode);
    assert!(lost.unwrap_err().to_string().contains("LOCK"));
    assert!(files(&dir) == before, "{:?}", files(&dir).keys());
    drop(store);
    let locked = Store::builder(&dir).open().unwrap_err();
    assert_eq!(locked.kind(), ErrorKind::Locked, "{locked}");
    drop(earlier);
    assert_eq!(keys(dir), (0..100).collect::<Vec<_>>());
}
