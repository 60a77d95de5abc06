//! Files crafted by an attacker: checksums are right, numbers are not.
//!
//! Promised: such a store opens and answers, or fails with an error of kind `Corruption` with path
//! and offset (or `Unsupported`). It never panics.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{Batches, POLICIES, Progress};
use crate::frame::contents::read_file;
use crate::frame::small::{DIR, small};
use lsmith::env::{Env, MemEnv};
use lsmith::{Error, ErrorKind, PersistMode, Store};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const WAL: u32 = 1;
const MANIFEST: u32 = 2;
const SPILL: u32 = 3;

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn write(env: &MemEnv, name: &str, bytes: &[u8]) {
    let mut file = env.create(&path(name)).unwrap();
    file.write_all(bytes).unwrap();
    file.sync().unwrap();
}

/// Returns a log file of `kind` with these records.
fn log_file(kind: u32, number: u64, records: &[Vec<u8>]) -> Vec<u8> {
    let mut file = b"lsmithlg".to_vec();
    file.extend_from_slice(&1_u32.to_le_bytes());
    file.extend_from_slice(&kind.to_le_bytes());
    file.extend_from_slice(&number.to_le_bytes());
    let checksum = xxh3_64(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    for payload in records {
        let mut padded = payload.clone();
        padded.resize(payload.len().next_multiple_of(8), 0);
        let length = (payload.len() as u32).to_le_bytes();
        let place =
            [&number.to_le_bytes()[..], &(file.len() as u64).to_le_bytes(), &length].concat();
        let seed = xxh3_64(&place);
        let tag = (seed >> 32) as u32 | 1 << 24 | 1;
        file.extend_from_slice(&length);
        file.extend_from_slice(&tag.to_le_bytes());
        file.extend_from_slice(&xxh3_64_with_seed(&padded, seed).to_le_bytes());
        file.extend_from_slice(&padded);
    }
    // No manifest that begins with this is longer.
    let room = if kind == MANIFEST { 2 * file.len() + (256 << 10) } else { 0 };
    file.resize(file.len() + 64 + room, 0);
    file
}

/// Returns the records of a log file that was closed properly.
fn records(file: &[u8]) -> Vec<Vec<u8>> {
    let mut at = 32;
    let mut found = Vec::new();
    while let Some(head) = file.get(at..at + 16).filter(|head| head[..8] != [0; 8]) {
        let length = u32::from_le_bytes(*head.first_chunk().unwrap()) & !(1 << 31);
        found.push(file[at + 16..][..length as usize].to_vec());
        at += 16 + length.next_multiple_of(8) as usize;
    }
    found
}

fn current(manifest: u64) -> String {
    let text = format!("lsmith store, format 3\nmanifest {manifest}\n");
    let checksum = xxh3_64(text.as_bytes());
    format!("{text}checksum {checksum:016x}\n")
}

/// Returns a disk with a store whose manifest has these records.
fn store(manifest: &[&str]) -> MemEnv {
    let env = MemEnv::new();
    env.create_dir_all(Path::new(DIR)).unwrap();
    write(&env, "CURRENT", current(7).as_bytes());
    let records: Vec<_> = manifest.iter().map(|record| record.as_bytes().to_vec()).collect();
    write(&env, "000007.manifest", &log_file(MANIFEST, 7, &records));
    env
}

const NEXT: &str = "next_file 20\n";
const SPACE: &str = "keyspace 0 default memtable 1MB policy none\n";
const TREE: &str = "short_tree 0 flushed 0\ntree\n";

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Asserts that opening `env` reports damage in `file`, with an offset.
fn check_damaged(env: &MemEnv, file: &str, told: &str) {
    for read_only in [true, false] {
        let error = small(env).read_only(read_only).open().map(drop).expect_err(told);
        assert_eq!(error.kind(), ErrorKind::Corruption, "{told}: {error}");
        assert_eq!(error.path(), Some(&*path(file)), "{told}: {error}");
        assert!(error.offset().is_some(), "{told}: {error}");
    }
}

#[test]
fn an_absurd_number_in_a_manifest_is_damage() {
    let most = u64::MAX;
    let trees = [
        format!("tree runs {most}"),
        format!("tree tables {most}"),
        format!("tree flushes {most}"),
        format!("tree flushed {most}B"),
        format!("tree flushed 1B {most}e"),
        format!("tree dropped_below {most}"),
        format!("tree\ncount L1 merges {most}"),
        format!("tree\ncount L1 slack {most}"),
        format!("tree\nL0 r1[t1:a..b {most}B s1..2]"),
        format!("tree\nL0 r1[t1:a..b {most}B s1..2, t2:c..d {most}B s1..2]"),
        format!("tree\nL0 r1[t1:a..b 1MB {most}e s1..2] r0[t2:c..d 1MB 1e s1..2]"),
        format!("tree\nL0 r1[t{most}:a..b 1MB s1..2]"),
        format!("tree\nL0 r{most}[t1:a..b 1MB s1..2]"),
        format!("tree\nL0 r1[t1:a..b 1MB s1..{most}]"),
        format!("tree\nL0 r1[t1:a..b 1MB s1..2 root {most}]"),
    ];
    let trees = trees.map(|tree| format!("short_tree 0 flushed 0\n{tree}\n"));
    let edits = [
        format!("edit flushes {most}"),
        format!("edit flushed {most}B"),
        format!("edit dropped_below {most}"),
        format!("edit\ncount L1 bytes_in {most}"),
        format!("edit\nadd r1 at L0 [t1:a..b {most}B s1..2]"),
        format!("edit\nadd r1 at L0 [t1:a..b {most}B 1e s1..2, t2:c..d {most}B 1e s1..2]"),
        format!("edit\nadd r{most} at L0 [t1:a..b 1MB s1..2]"),
        format!("edit\nadd r1 at L0 [t{most}:a..b 1MB s1..2]"),
        format!("edit\nadd r1 at L0 [t1:a..b 1MB s1..{most}]"),
        "edit\nadd r1 at L0 [t1:a..m of a..z 1MB s1..2, t1:b..n of .. 0B]".into(),
        "edit\nadd r1 at L0 [t1:a..z 1MB s1..2]\nadd r2 at L0 [t1:b..c of .. 0B]".into(),
    ];
    let edits = edits.map(|edit| format!("short_edit 0 flushed 0\n{edit}\n"));
    let others = [
        format!("next_file {most}\n"),
        format!("keyspace {} other memtable 1MB policy none\n", u32::MAX),
        format!("keyspace 1 other memtable {most}B policy none\n"),
        "keyspace 1 other memtable 0B policy none\n".into(),
        "keyspace 1 default memtable 1MB policy none\n".into(),
        "keyspace 1 ../default memtable 1MB policy none\n".into(),
        format!("short_tree 0 flushed {most}\ntree\n"),
        format!("short_tree 0 flushed 0\ntaken {most} a..b\ntree\n"),
        format!("short_edit 0 flushed {most}\nedit\n"),
        format!("short_edit 0 flushed 0\ntaken {most} a..b\nedit\n"),
        format!("spill 0 file {most} upto 3 entries 1\n"),
        format!("spill 0 file 9 upto {most} entries 1\n"),
        format!("logs from 8 first {most} newest 8\n"),
        format!("logs from 8 first 1 newest {most}\n"),
    ];
    for record in trees.iter().chain(&edits).chain(&others) {
        check_damaged(&store(&[NEXT, SPACE, TREE, record]), "000007.manifest", record);
    }
    // Counters that grow from edit to edit.
    let half = 1_u64 << 55;
    let edit = format!("short_edit 0 flushed 0\nedit flushes {half}\ncount L1 merges {half}\n");
    let many = [&[NEXT, SPACE, TREE][..], &[&*edit; 600]].concat();
    check_damaged(&store(&many), "000007.manifest", "many edits");
    let env = store(&[NEXT, SPACE, TREE]);
    env.remove_file(&path("CURRENT")).unwrap();
    write(&env, "CURRENT", current(u64::MAX).as_bytes());
    check_damaged(&env, "CURRENT", "the number of the manifest");
}

/// The greatest numbers that a manifest may have leave room to write, or are refused before
/// anything is written. They can be read.
#[test]
fn a_store_whose_numbers_run_out_can_be_read() {
    for shift in [60, 61, 62] {
        let next = format!("next_file {}\n", 1_u64 << shift);
        let env = store(&[&next, SPACE, TREE]);
        let store = small(&env).read_only(true).open().unwrap();
        assert_eq!(store.keyspaces(), ["default"]);
        drop(store);
        let before = env.list(Path::new(DIR)).unwrap();
        match small(&env).open() {
            Ok(store) => {
                let keyspace = store.keyspace("default").unwrap();
                keyspace.put("key", "value").unwrap();
                keyspace.flush().unwrap();
                drop((store, keyspace));
                let store = small(&env).read_only(true).open().unwrap();
                assert_eq!(store.keyspace("default").unwrap().iter().count(), 1);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
                let after = env.list(Path::new(DIR)).unwrap();
                assert!(after.iter().all(|name| name == "LOCK" || before.contains(name)));
            }
        }
    }
}

#[test]
fn a_store_whose_writes_run_out_can_be_read() {
    let last = (1_u64 << 61) - 1;
    let tree = format!("short_tree 0 flushed {last}\ntree\n");
    let env = store(&[NEXT, SPACE, &tree]);
    write(&env, "000008.wal", &log_file(WAL, 8, &[batch(last + 1, 2, &[b"a", b"b"])]));
    let before = env.list(Path::new(DIR)).unwrap();
    let error = small(&env).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let after = env.list(Path::new(DIR)).unwrap();
    assert!(after.iter().all(|name| name == "LOCK" || before.contains(name)), "{after:?}");
    let store = small(&env).read_only(true).open().unwrap();
    assert_eq!(store.keyspace("default").unwrap().iter().count(), 2);
}

/// Returns a batch of puts with numbers from `first` on.
fn batch(first: u64, count: u64, keys: &[&[u8]]) -> Vec<u8> {
    let mut payload = Vec::new();
    varint(&mut payload, first);
    varint(&mut payload, count);
    for key in keys {
        payload.push(0);
        varint(&mut payload, 0);
        varint(&mut payload, key.len() as u64);
        payload.extend_from_slice(key);
        varint(&mut payload, 1);
        payload.push(b'v');
    }
    payload
}

/// Returns the start record of a log that follows log `before`, and whose first write has number
/// `first`.
fn start(before: u64, first: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    [0, before, first, 0].into_iter().for_each(|number| varint(&mut payload, number));
    payload
}

#[test]
fn an_absurd_number_in_a_log_is_damage() {
    let long = [7; 65_536];
    for (told, payload) in [
        ("number 0", batch(0, 1, &[b"a"])),
        ("number 0 of several", batch(0, 2, &[b"a", b"b"])),
        ("number 0 of a load", batch(0, 0, &[])),
        ("the last number", batch(u64::MAX, 1, &[b"a"])),
        ("the last number of a load", batch(u64::MAX, 0, &[])),
        ("numbers that end", batch(u64::MAX - 1, 3, &[b"a", b"b", b"c"])),
        ("a count without writes", batch(1, u64::MAX, &[b"a"])),
        ("an empty key", batch(1, 1, &[b""])),
        ("a long key", batch(1, 1, &[&long])),
        ("a start with number 0", start(0, 0)),
        ("a start with the last number", start(0, u64::MAX)),
        ("a start behind itself", start(8, 1)),
    ] {
        let env = store(&[NEXT, SPACE, TREE]);
        write(&env, "000008.wal", &log_file(WAL, 8, &[payload]));
        check_damaged(&env, "000008.wal", told);
    }
    let env = store(&[NEXT, SPACE, TREE]);
    write(&env, "000008.wal", &log_file(WAL, 8, &[batch(1, 2, &[b"a", b"b"])]));
    let store = small(&env).open().unwrap();
    assert_eq!(store.keyspace("default").unwrap().iter().count(), 2);
}

/// Returns a spill with these numbers and keys.
fn spill(entries: &[(u64, &[u8])]) -> Vec<u8> {
    let mut payload = Vec::new();
    varint(&mut payload, 0);
    varint(&mut payload, entries.len() as u64);
    for (seq, key) in entries {
        payload.push(0);
        varint(&mut payload, *seq);
        varint(&mut payload, key.len() as u64);
        payload.extend_from_slice(key);
        varint(&mut payload, 1);
        payload.push(b'v');
    }
    payload
}

#[test]
fn an_absurd_number_in_a_spill_is_damage() {
    let record = "spill 0 file 9 upto 5 entries 2\n";
    let make = |entries: &[(u64, &[u8])]| {
        let env = store(&[NEXT, SPACE, TREE, record]);
        write(&env, "000009.spill", &log_file(SPILL, 9, &[spill(entries)]));
        env
    };
    let long = [7; 65_536];
    for (told, entries) in [
        ("number 0", [(0, &b"a"[..]), (2, b"b")]),
        ("the last number", [(1, b"a"), (u64::MAX, b"b")]),
        ("a number above all", [(1, b"a"), (6, b"b")]),
        ("a number twice", [(3, b"a"), (3, b"b")]),
        ("an empty key", [(1, b""), (2, b"b")]),
        ("a long key", [(1, b"a"), (2, &long)]),
    ] {
        check_damaged(&make(&entries), "000009.spill", told);
    }
    let store = small(&make(&[(1, b"a"), (5, b"b")])).open().unwrap();
    assert_eq!(store.keyspace("default").unwrap().iter().count(), 2);
}

/// Reads everything and goes on writing. Any content is accepted.
fn use_all(store: &Store) -> lsmith::Result<()> {
    for name in store.keyspaces() {
        let keyspace = store.existing_keyspace(&name)?;
        let _found = keyspace.iter().take(10_000).map(|entry| entry.is_ok()).collect::<Vec<_>>();
        keyspace.get("0")?;
        keyspace.put("0", "value")?;
        keyspace.flush()?;
    }
    store.verify().map(drop)
}

fn check_told(opened: lsmith::Result<()>, told: &str) {
    let fine = |error: &Error| match error.kind() {
        // A merge that came out wrong names no file.
        ErrorKind::Corruption => error.path().is_some() || error.to_string().contains("a merge"),
        // A table that is not there; a policy that does not exist.
        ErrorKind::Io | ErrorKind::Unsupported | ErrorKind::Poisoned => true,
        _ => false,
    };
    if let Err(error) = opened {
        assert!(fine(&error), "{error} after {told}");
    }
}

/// Replaces every number in the manifests of real stores by any other.
#[test]
fn any_number_in_a_manifest_may_be_any_other() {
    let numbers = [0, 1, 2, 1 << 31, 1 << 32, 1 << 55, 1 << 61, 1 << 62, 1 << 63, u64::MAX];
    with_seeds(POLICIES.len() as u64, |seed| {
        let env = MemEnv::new();
        let policy = POLICIES[seed as usize % POLICIES.len()];
        let batches = Batches { keys: 40, ..Batches::new(0) };
        let store = small(&env).policy(policy).memtable_bytes(1500).open().unwrap();
        let mut progress = Progress::default();
        for _ in 0..60 {
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        }
        drop(store);
        let name = env.list(Path::new(DIR)).unwrap().into_iter();
        let name = name.into_iter().find(|name| name.ends_with(".manifest")).unwrap();
        let number = name.split_once('.').unwrap().0.parse().unwrap();
        let records = records(&read_file(&env, &path(&name)));
        let mut dice = Dice::new(seed);
        for _ in 0..120 {
            let mut changed = records.clone();
            let index = dice.below(changed.len());
            let text = String::from_utf8(changed[index].clone()).unwrap();
            let new = change_number(&text, *dice.pick(&numbers), &mut dice);
            changed[index] = new.clone().into_bytes();
            let env = env.process_crash_clone();
            env.remove_file(&path(&name)).unwrap();
            write(&env, &name, &log_file(MANIFEST, number, &changed));
            let opened = small(&env).open().and_then(|store| use_all(&store));
            check_told(opened, &format!("{new}\nunder {policy}"));
        }
    });
}

/// Returns `text` with one of its numbers replaced.
fn change_number(text: &str, number: u64, dice: &mut Dice) -> String {
    let digit = |at: usize| text.as_bytes()[at].is_ascii_digit();
    let starts = (0..text.len()).filter(|&at| digit(at) && (at == 0 || !digit(at - 1)));
    let starts: Vec<usize> = starts.collect();
    let Some(&start) = starts.get(dice.below(starts.len())) else { return text.to_string() };
    let end = (start..text.len()).find(|&at| !digit(at)).unwrap_or(text.len());
    format!("{}{number}{}", &text[..start], &text[end..])
}

/// Removes a varint from the front of `bytes`.
fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    let mut shift = 0;
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    number
}

/// Returns where the parts of a table file are: data blocks, and all that follows them.
fn table_parts(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    let footer = &file[file.len() - 80..];
    let word = |at: usize| u64::from_le_bytes(*footer[at..].first_chunk().unwrap()) as usize;
    let [filter, index, properties] = [16, 32, 48].map(|at| word(at)..word(at + 8));
    let mut fences = &file[index.start..index.end - 9];
    let mut parts = Vec::new();
    let mut start = 0;
    while !fences.is_empty() {
        let end = start + (take_varint(&mut fences) >> 1) as usize;
        parts.push(start..end);
        start = end;
        let _shared = take_varint(&mut fences);
        let suffix = take_varint(&mut fences) as usize;
        fences = &fences[suffix..];
    }
    assert_eq!(start, filter.start);
    parts.extend([filter, index, properties].into_iter().filter(|part| !part.is_empty()));
    parts
}

/// Blocks, indexes, filters and properties with right checksums and any content.
#[test]
fn any_bytes_in_a_table_are_read_or_told() {
    with_seeds(4, |seed| {
        let env = MemEnv::new();
        let codecs = ["none", "lz4", "zstd", "none"][seed as usize % 4];
        let policy = ["leveled(ratio=2, l0=1)", "choose_best(ratio=2)"][seed as usize / 2 % 2];
        let open = |env: &MemEnv| small(env).policy(policy).compression(codecs);
        let batches = Batches { keys: 200, ..Batches::new(0) };
        let store = open(&env).open().unwrap();
        let mut progress = Progress::default();
        for _ in 0..150 {
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        }
        store.flush().unwrap();
        drop(store);
        let names = env.list(Path::new(DIR)).unwrap();
        let tables: Vec<_> = names.iter().filter(|name| name.ends_with(".table")).collect();
        let mut dice = Dice::new(seed);
        for _ in 0..250 {
            let name = *dice.pick(&tables);
            let number: u64 = name.split_once('.').unwrap().0.parse().unwrap();
            let mut file = read_file(&env, &path(name));
            let parts = table_parts(&file);
            // Every other time a part that is no block.
            let from = if dice.chance(50) { parts.len() - 3 } else { 0 };
            let part = dice.pick(&parts[from..]).clone();
            for _ in 0..1 + dice.below(3) {
                let at = part.start + dice.below(part.len() - 9);
                file[at] = if dice.chance(50) { dice.number() as u8 } else { 0xff };
            }
            let place = [number.to_le_bytes(), (part.start as u64).to_le_bytes()].concat();
            let checked = &file[part.start..part.end - 8];
            let checksum = xxh3_64_with_seed(checked, xxh3_64(&place));
            file[part.end - 8..part.end].copy_from_slice(&checksum.to_le_bytes());
            let env = env.process_crash_clone();
            env.remove_file(&path(name)).unwrap();
            write(&env, name, &file);
            let opened = open(&env).open().and_then(|store| {
                use_all(&store)?;
                store.keyspace("left")?.merge()
            });
            check_told(opened, &format!("a change of {name} at {part:?}, seed {seed}"));
        }
    });
}

/// Records with right checksums and any content.
#[test]
fn any_bytes_in_a_log_are_read_or_told() {
    with_seeds(3, |seed| {
        let mut dice = Dice::new(seed);
        for _ in 0..300 {
            let mut payload = match dice.below(3) {
                0 => batch(1 + dice.number() % 3, 2, &[b"a", b"b"]),
                1 => spill(&[(1, b"a"), (4, b"b")]),
                _ => start(dice.number() % 3, 1 + dice.number() % 3),
            };
            for _ in 0..1 + dice.below(3) {
                let at = dice.below(payload.len());
                payload[at] = dice.number() as u8;
            }
            if dice.chance(20) {
                let length = dice.below(40);
                payload = dice.bytes(length);
            }
            for (kind, name) in [(WAL, "000009.wal"), (SPILL, "000009.spill")] {
                let last = if kind == WAL { NEXT } else { "spill 0 file 9 upto 5 entries 2\n" };
                let env = store(&[NEXT, SPACE, TREE, last]);
                write(&env, name, &log_file(kind, 9, &[payload.clone(), payload.clone()]));
                let opened = small(&env).open().and_then(|store| use_all(&store));
                check_told(opened, &format!("{payload:?}"));
            }
        }
    });
}
