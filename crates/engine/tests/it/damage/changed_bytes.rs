//! Damaged files.
//!
//! Promised: a changed byte in any file of a store never causes a wrong answer or a panic. Either
//! the answer is right, or there is an error of kind `Corruption` with path and offset (or
//! `Unsupported`, if the byte looks like a newer version), which `verify` finds too. A log that is
//! cut off anywhere opens on a prefix of the batches. A missing file is named. Files of a newer
//! format are distinguished from damaged ones, with both versions in the message.

use crate::dice::{Dice, quick, with_seeds};
use crate::frame::batches::{Batches, Maps, Progress};
use crate::frame::contents::read_file;
use crate::frame::small::{DIR, small};
use lsmith::env::{Env, MemEnv};
use lsmith::{Error, ErrorKind, PersistMode, Store};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Policies that keep both kinds of tables.
const SORTED: &str = "leveled(ratio=2, l0=1, table=1kB)";
const TREES: &str = "jungle(c=3, ratio=2, table=2kB)";

/// Makes a closed store with tables, and with batches that are only in the log.
fn store(policy: &str, batches: Batches, count: u64, memtable_bytes: u64) -> MemEnv {
    open_store(policy, batches, count, memtable_bytes).0
}

/// The same, still open.
fn open_store(policy: &str, batches: Batches, count: u64, memtable_bytes: u64) -> (MemEnv, Store) {
    let env = MemEnv::new();
    let store = small(&env).policy(policy).memtable_bytes(memtable_bytes).open().unwrap();
    let mut progress = Progress::default();
    for number in 1..=count {
        let mode = if number % 5 == 0 { PersistMode::SyncData } else { PersistMode::Buffer };
        batches.go_on(&store, &mut progress, mode).unwrap();
    }
    (env, store)
}

fn paths(env: &MemEnv, kind: &str) -> Vec<PathBuf> {
    let names = env.list(Path::new(DIR)).unwrap();
    let of_kind = names.into_iter().filter(|name| name.ends_with(kind));
    of_kind.map(|name| Path::new(DIR).join(name)).collect()
}

/// Reads everything in all ways. Returns the first error; panics at a wrong answer.
fn read_all(store: &Store, expected: &Maps) -> lsmith::Result<()> {
    let mut first = Ok(());
    let mut note = |error: Error| {
        if first.is_ok() {
            first = Err(error);
        }
    };
    for (name, map) in ["left", "right"].iter().zip(expected) {
        let space = store.existing_keyspace(name).unwrap();
        for (key, value) in map {
            match space.get(key) {
                Ok(found) => assert_eq!(found.as_deref(), Some(&value[..])),
                Err(error) => note(error),
            }
        }
        for absent in ["0", "00000000\0", "k", "zzz"] {
            match space.get(absent) {
                Ok(found) => assert_eq!(found, None),
                Err(error) => note(error),
            }
        }
        let mut iter = space.iter();
        let ended = scan(|| iter.next(), &mut map.iter());
        ended.unwrap_or_else(&mut note);
        let mut iter = space.iter();
        let ended = scan(|| iter.next_back(), &mut map.iter().rev());
        ended.unwrap_or_else(&mut note);
    }
    first
}

type Pair<'a> = (&'a Vec<u8>, &'a Vec<u8>);

/// Compares the entries of `next`, up to the end or the first error.
fn scan<'a>(
    mut next: impl FnMut() -> Option<lsmith::Result<(bytes::Bytes, bytes::Bytes)>>,
    expected: &mut dyn Iterator<Item = Pair<'a>>,
) -> lsmith::Result<()> {
    while let Some(found) = next() {
        let found = found?;
        assert_eq!(Some((&found.0.to_vec(), &found.1.to_vec())), expected.next());
    }
    assert_eq!(expected.next(), None);
    Ok(())
}

/// Asserts that the error names `path` and an offset.
fn check_told(error: &Error, path: &Path) {
    let fine = match error.kind() {
        ErrorKind::Corruption => error.offset().is_some(),
        ErrorKind::Unsupported => true,
        _ => false,
    };
    assert!(fine && error.path() == Some(path), "{error}, damaged was {}", path.display());
}

#[test]
fn a_changed_byte_is_found_or_does_no_harm() {
    for policy in [SORTED, TREES] {
        with_seeds(1, |seed| change_bytes(policy, seed));
    }
}

/// Changes one byte after the other of a store under `policy`.
fn change_bytes(policy: &str, seed: u64) {
    let mut dice = Dice::new(seed);
    let batches = Batches { keys: 30, ..Batches::new(0) };
    let env = store(policy, batches, 90, 600);
    let expected = batches.after(90);
    assert!(paths(&env, ".table").len() > 2 && paths(&env, ".wal").len() == 1);
    let step = if quick() { 21 } else { 7 };
    for path in paths(&env, "") {
        let bytes = read_file(&env, &path);
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let tail = (used..bytes.len()).step_by(3001);
        let mut found = 0;
        for offset in (dice.below(step)..used).step_by(step).chain(tail) {
            let env = env.process_crash_clone();
            env.flip(&path, offset as u64, 1 << dice.below(8)).unwrap();
            let env = if dice.chance(50) { env } else { env.unmapped() };
            let read_only = dice.chance(80);
            let store = match small(&env).policy(policy).read_only(read_only).open() {
                Ok(store) => store,
                Err(error) => {
                    check_told(&error, &path);
                    found += 1;
                    continue;
                }
            };
            let read = read_all(&store, &expected);
            if let Err(error) = &read {
                check_told(error, &path);
            }
            let told = store.verify().unwrap();
            told.iter().for_each(|error| check_told(error, &path));
            found += usize::from(!told.is_empty());
            // All of a table is under checksums. Nobody reads what batches left behind in a tree.
            let is_whole = policy == SORTED && path.extension().is_some_and(|kind| kind == "table");
            assert!(!told.is_empty() || read.is_ok() && !is_whole, "byte {offset}");
        }
        assert!(used == 0 || found > used * 7 / step / 10 || policy == TREES, "{found} of {used}");
        assert!(used == 0 || found > 0, "none of {used}");
    }
}

/// Wherever the newest log of a process that was killed is cut off, the store opens on a prefix of
/// the batches, which grows with the length of the log, and goes on. Closing would have noted that
/// all is synced.
#[test]
fn a_log_may_be_cut_off_anywhere() {
    let batches = Batches { keys: 30, ..Batches::new(0) };
    let (env, _killed) = open_store(SORTED, batches, 50, 20_000);
    let env = env.process_crash_clone();
    let [path] = &paths(&env, ".wal")[..] else { panic!("one log") };
    let bytes = read_file(&env, path);
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut before = 0;
    for length in (0..used).step_by(5).chain([used.next_multiple_of(8), bytes.len()]) {
        let env = env.process_crash_clone();
        env.truncate(path, length as u64).unwrap();
        let store = small(&env).policy(SORTED).open().unwrap();
        let found = batches.check(&store);
        assert!((before..=50).contains(&found), "{found} batches of {length} bytes");
        before = found;
        assert_eq!(store.verify().unwrap().len(), 0);
        let mut progress = Progress { tried: found, acknowledged: found, synced: found };
        batches.go_on(&store, &mut progress, PersistMode::SyncData).unwrap();
        drop(store);
        assert_eq!(batches.check(&small(&env).policy(SORTED).open().unwrap()), found + 1);
    }
    assert_eq!(before, 50);
}

#[test]
fn a_file_that_is_missing_or_another_is_named() {
    [SORTED, TREES].into_iter().for_each(swap_files);
}

/// Removes and renames the files of a store under `policy`.
fn swap_files(policy: &str) {
    let env = store(policy, Batches::new(0), 50, 1000);
    let tables = paths(&env, ".table");
    for path in tables.iter().chain(&paths(&env, ".manifest")) {
        let env = env.process_crash_clone();
        env.remove_file(path).unwrap();
        for read_only in [true, false] {
            let error = small(&env).policy(policy).read_only(read_only).open().unwrap_err();
            assert_eq!(error.path(), Some(path.as_path()), "{error}");
        }
    }
    for pair in tables.windows(2) {
        let env = env.process_crash_clone();
        env.remove_file(&pair[0]).unwrap();
        env.rename(&pair[1], &pair[0]).unwrap();
        let error = small(&env).policy(policy).read_only(true).open().unwrap_err();
        assert!(pair.iter().any(|path| error.path() == Some(path)), "{error}");
    }
    // Without the file that says what the others are, none of them is touched.
    let env = env.process_crash_clone();
    env.remove_file(&Path::new(DIR).join("CURRENT")).unwrap();
    let before = env.list(Path::new(DIR)).unwrap();
    let error = small(&env).policy(policy).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(env.list(Path::new(DIR)).unwrap(), before);
}

/// Writes `bytes` to the file at `offset`.
fn patch(env: &MemEnv, path: &Path, offset: usize, bytes: &[u8]) {
    let old = read_file(env, path);
    for (index, byte) in bytes.iter().enumerate() {
        let at = offset + index;
        env.flip(path, at as u64, old[at] ^ byte).unwrap();
    }
}

#[test]
fn files_of_another_format_are_told_with_both_versions() {
    [SORTED, TREES].into_iter().for_each(change_versions);
}

/// Changes the versions in the files of a store under `policy`.
fn change_versions(policy: &str) {
    let env = store(policy, Batches::new(0), 50, 1000);
    // The version found is 7 everywhere but in a store of the format before this one.
    let check = |env: &MemEnv, path: &Path, versions: [char; 2]| {
        for read_only in [true, false] {
            let error = small(env).policy(policy).read_only(read_only).open().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            assert_eq!(error.path(), Some(path));
            let told = error.to_string();
            assert!(versions.iter().all(|version| told.contains(*version)), "{told}");
        }
    };
    for kind in [".wal", ".manifest"] {
        let env = env.process_crash_clone();
        let path = &paths(&env, kind)[0];
        patch(&env, path, 8, &7_u32.to_le_bytes());
        let checksum = xxh3_64(&read_file(&env, path)[..24]);
        patch(&env, path, 24, &checksum.to_le_bytes());
        check(&env, path, ['7', '1']);
    }
    for path in paths(&env, ".table") {
        let env = env.process_crash_clone();
        let start = read_file(&env, &path).len() - 80;
        patch(&env, &path, start, &7_u32.to_le_bytes());
        let mut place = [0; 16];
        place[8..].copy_from_slice(&(start as u64).to_le_bytes());
        let checked = &read_file(&env, &path)[start..][..64];
        let checksum = xxh3_64_with_seed(checked, xxh3_64(&place));
        patch(&env, &path, start + 64, &checksum.to_le_bytes());
        check(&env, &path, ['7', '3']);
    }
    for version in ['7', '2'] {
        let env = env.process_crash_clone();
        let path = Path::new(DIR).join("CURRENT");
        let text = String::from_utf8(read_file(&env, &path)).unwrap();
        patch(&env, &path, text.find("format 3").unwrap() + 7, &[version as u8]);
        check(&env, &path, [version, '3']);
    }
}
