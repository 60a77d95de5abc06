//! Small files that ask for much memory: keys that share bytes take few bytes in a file and many in
//! memory.
//!
//! Promised: memory is allocated in proportion to the file.

use crate::frame::contents::{read_file, write_file};
use crate::frame::file_parts::{LogParts, TableParts, put_bytes};
use crate::frame::small::{DIR, open, plain};
use crate::frame::watchdog::Watchdog;
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, ErrorKind};
use lsmith_fuzz::peak_bytes;
use lsmith_fuzz::put_varint;
use std::path::{Path, PathBuf};

/// The bytes of the long key, and the number of other keys that share all of them.
const LONG: usize = 60_000;
const SHARING: usize = 4000;

fn builder(env: &MemEnv) -> Builder {
    plain(env).lockstep(true).policy("none")
}

fn path_of(env: &MemEnv, kind: &str) -> PathBuf {
    let names = env.list(Path::new(DIR)).unwrap();
    Path::new(DIR).join(names.iter().find(|name| name.ends_with(kind)).unwrap())
}

/// Makes a store with one table of two blocks. The first block holds the long key.
fn store() -> (MemEnv, PathBuf, TableParts) {
    let env = MemEnv::new();
    let (store, space) = open(builder(&env));
    space.put("k".repeat(LONG), "").unwrap();
    space.put("l", "").unwrap();
    space.flush().unwrap();
    drop((space, store));
    let path = path_of(&env, ".table");
    let parts = TableParts::new(&read_file(&env, &path));
    (env, path, parts)
}

fn check_peak(peak: usize, file: &[u8]) {
    assert!(peak < (64 << 20) + 40 * file.len(), "{peak} bytes for a file of {}", file.len());
}

#[test]
fn a_profile_allocates_in_proportion_to_the_table() {
    let (env, path, mut parts) = store();
    let key = "k".repeat(LONG);
    let mut properties = Vec::new();
    // Blocks, entries, tombstones, logical bytes, sequence numbers.
    for number in [2, 2, 0, LONG as u64 + 1 + 16, 1, 1] {
        put_varint(&mut properties, number);
    }
    put_bytes(&mut properties, key.as_bytes());
    put_bytes(&mut properties, b"l");
    put_varint(&mut properties, 0);
    put_varint(&mut properties, SHARING as u64);
    for point in 0..SHARING {
        put_varint(&mut properties, (LONG + point) as u64);
        put_bytes(&mut properties, b"x");
        properties.extend_from_slice(&[0; 3]);
    }
    parts.properties = properties;
    let file = parts.whole();
    write_file(&env, &path, &file);
    let (opened, peak) = peak_bytes(|| builder(&env).open());
    let error = opened.unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path)), "{error}");
    check_peak(peak, &file);
}

#[test]
fn a_walk_back_allocates_in_proportion_to_the_block() {
    let (env, path, mut parts) = store();
    let mut block = Vec::new();
    for entry in 0..=SHARING {
        let (shared, suffix) = match entry {
            0 => (0, vec![b'k'; LONG]),
            _ => (LONG + entry - 1, vec![b'x']),
        };
        // Sizes are there; the sequence number is the usual one.
        put_varint(&mut block, (shared as u64) << 2 | 1);
        put_varint(&mut block, suffix.len() as u64);
        put_varint(&mut block, 0);
        block.extend_from_slice(&suffix);
    }
    // One restart point, nothing usual, the first number, one restart, not compressed.
    block.extend_from_slice(&[0; 4 + 6]);
    block.extend_from_slice(&1_u64.to_le_bytes());
    block.extend_from_slice(&1_u32.to_le_bytes());
    block.push(0);
    parts.blocks[0] = block;
    let file = parts.whole();
    write_file(&env, &path, &file);
    let store = builder(&env).open().unwrap();
    let space = store.existing_keyspace("default").unwrap();
    let (error, peak) = peak_bytes(|| space.iter().rev().find_map(|entry| entry.err()));
    let error = error.unwrap();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path)), "{error}");
    check_peak(peak, &file);
}

/// What broke: batches that were written after such a log could not be read back.
#[test]
fn a_log_that_starts_with_an_impossible_number_is_damage() {
    for first in [(1 << 62) + 1, u64::MAX - 1, u64::MAX] {
        let env = MemEnv::new();
        drop(builder(&env).open().unwrap().keyspace("default").unwrap());
        let path = path_of(&env, ".manifest");
        // As stores of earlier versions, which did not say where the oldest log begins.
        let mut manifest = LogParts::new(&read_file(&env, &path));
        manifest.records.retain(|(_, record)| !record.starts_with(b"logs"));
        let mut bytes = manifest.build();
        // No manifest that begins with this is longer.
        bytes.resize(3 * bytes.len() + (256 << 10), 0);
        write_file(&env, &path, &bytes);
        let path = path_of(&env, ".wal");
        let mut log = LogParts::new(&read_file(&env, &path));
        let mut start = vec![0, 0];
        put_varint(&mut start, first);
        put_varint(&mut start, 0);
        log.records = vec![(false, start)];
        write_file(&env, &path, &log.build());
        let _watchdog = Watchdog::new("a log that starts with an impossible number");
        let error = builder(&env).open().map(drop).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path)), "{error}");
    }
}
