//! Changed files with right checksums and any other content.
//!
//! Promised: such a store opens or is refused. Its answers are right or wrong, or there is an error
//! that names a file. There is never a panic or an endless loop, and memory is allocated in
//! proportion. Blocks of a table that were not changed, and other keyspaces, give right answers.

use crate::dice::{any_seed, full};
use crate::frame::all_files::Base;
use crate::frame::append_table_parts;
use crate::frame::batches::POLICIES;
use crate::frame::contents::write_file;
use crate::frame::file_parts::{Changed, LogParts, TableParts, current_mutant};
use crate::frame::watchdog::Watchdog;
use lsmith::env::MemEnv;
use lsmith::inspect::{self, FileType, LogFile, TableFile};
use lsmith::{Error, ErrorKind, Store};
use lsmith_fuzz::{Choices, fuzz, peak_bytes};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// More entries than any of the files can hold.
const ENTRIES_MAX: usize = 1 << 20;

/// Bytes that may be allocated besides a multiple of the file: a compressed block of a few bytes
/// may claim to hold megabytes.
const PEAK_BYTES: usize = 64 << 20;

/// A changed file, and the keys of one keyspace whose answers may change.
struct Mutant {
    path: PathBuf,
    bytes: Vec<u8>,
    block: Option<(Vec<u8>, Option<Vec<u8>>)>,
    is_table: bool,
}

fn mutant(base: &Base, dice: &mut Choices<'_>) -> Mutant {
    let kinds = ["table", "table", "table", "wal", "wal", "manifest", "manifest", "spill", ""];
    loop {
        let kind = dice.pick(&kinds);
        let is_kind = |path: &Path| match path.extension() {
            Some(found) => found == kind,
            None => kind.is_empty() && path.ends_with("CURRENT"),
        };
        let of_kind: Vec<_> = base.files.iter().filter(|(path, _)| is_kind(path)).collect();
        if of_kind.is_empty() {
            continue;
        }
        let (path, bytes) = dice.pick(&of_kind);
        let (bytes, block) = match kind {
            "table" if append_table_parts::is_append_table(bytes) => {
                (append_table_parts::mutant(bytes, dice), None)
            }
            "table" => match TableParts::new(bytes).mutant(dice) {
                (bytes, Changed::Block(start, end)) => (bytes, Some((start, end))),
                (bytes, Changed::Other) => (bytes, None),
            },
            "" => {
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                (current_mutant(&text, dice).into_bytes(), None)
            }
            _ => {
                let mut bytes = LogParts::new(bytes).mutant(dice, kind == "manifest");
                if kind == "manifest" && dice.chance(95) {
                    // No manifest that begins with this is longer.
                    bytes.resize(3 * bytes.len() + (256 << 10), 0);
                }
                (bytes, None)
            }
        };
        return Mutant { path: path.clone(), bytes, block, is_table: kind == "table" };
    }
}

fn check_told(error: &Error) {
    let fine = match error.kind() {
        ErrorKind::Corruption => error.path().is_some(),
        // A changed key of a group can be of a keyspace without an operator.
        ErrorKind::Io | ErrorKind::Unsupported | ErrorKind::Poisoned | ErrorKind::Callback => true,
        _ => false,
    };
    assert!(fine, "{:?}: {error}", error.kind());
}

fn told<T>(result: lsmith::Result<T>) -> Option<T> {
    result.inspect_err(check_told).ok()
}

/// Does everything that a store can do. Anything may fail, but in the right way.
fn use_all(base: &Base, mutant: &Mutant, dice: &mut Choices<'_>) {
    let env = base.env.process_crash_clone();
    let env = if dice.chance(50) { env } else { env.unmapped() };
    write_file(&env, &mutant.path, &mutant.bytes);
    let read_only = dice.chance(30);
    for round in 0..2 {
        let Some(store) = told(base.builder(&env).read_only(read_only).open()) else { return };
        if round == 0 && mutant.is_table {
            check_untouched(base, mutant, &store);
        }
        for name in store.keyspaces() {
            let Some(space) = told(store.existing_keyspace(&name)) else { continue };
            walk(space.iter());
            walk(space.iter().rev());
            walk(space.range("00000010"..).take(30));
            walk(space.range(.."alikealike\u{7f}").rev().take(30));
        }
        told(store.verify()).into_iter().flatten().for_each(|error| check_told(&error));
        if !read_only {
            write_more(base, &store);
        }
    }
}

fn walk(entries: impl Iterator<Item = lsmith::Result<(bytes::Bytes, bytes::Bytes)>>) {
    for (count, entry) in entries.enumerate() {
        assert!(count < ENTRIES_MAX, "a walk that does not end");
        if told(entry).is_none() {
            return;
        }
    }
}

fn write_more(base: &Base, store: &Store) {
    for name in store.keyspaces() {
        let Some(space) = told(store.existing_keyspace(&name)) else { continue };
        for key in base.maps.get(&name).into_iter().flatten().map(|(key, _)| key).step_by(3) {
            if told(space.put(key, "another value")).is_none() {
                break;
            }
        }
        told(space.flush());
        told(space.merge());
    }
    told(store.flush());
}

/// Asserts that everything is as it was except where the changed part of a table decides.
fn check_untouched(base: &Base, mutant: &Mutant, store: &Store) {
    let mut wrong = 0;
    for (name, map) in &base.maps {
        let space = store.existing_keyspace(name).unwrap();
        let touched = |key: &Vec<u8>| match &mutant.block {
            Some((start, end)) => key >= start && end.as_ref().is_none_or(|end| key <= end),
            None => true,
        };
        let mut differs = false;
        for (key, value) in map {
            let found = space.get(key);
            let same = matches!(&found, Ok(Some(found)) if found == value);
            differs |= !same;
            assert!(same || touched(key), "{key:?} of {name}: {found:?}");
            told(found);
        }
        wrong += usize::from(differs);
    }
    assert!(wrong <= 1, "a table is of one keyspace");
}

/// Uses the store with the changed file. Returns true if everything succeeded.
fn survives(base: &Base, dice: &mut Choices<'_>) -> bool {
    let start = dice.clone();
    let _watchdog = Watchdog::new("a store with a changed file");
    let mutant = mutant(base, dice);
    let used = catch_unwind(AssertUnwindSafe(|| {
        let ((), peak) = peak_bytes(|| use_all(base, &mutant, dice));
        let bytes = mutant.bytes.len();
        assert!(peak < PEAK_BYTES + 40 * bytes, "{peak} bytes for a file of {bytes}");
    }));
    if used.is_err() {
        let Base { seed, policy, codec, .. } = base;
        let path = mutant.path.display();
        eprintln!("base {seed} under {policy} and {codec}, with {start:?}: {path}");
    }
    used.is_ok()
}

#[test]
fn files_with_right_checksums_may_hold_anything() {
    let (bases, each) = if full() { (80, 500) } else { (6, 60) };
    let seed = any_seed();
    let mut dice = Choices::of_seed(seed);
    let mut failed = 0;
    for _ in 0..bases {
        let base = Base::new(dice.number() % 1000);
        failed += (0..each).filter(|_| !survives(&base, &mut dice)).count();
    }
    let told = format!("{} files, {failed} failed, LSMITH_SEED={seed}", bases * each);
    eprintln!("{told}");
    assert_eq!(failed, 0, "{told}");
}

/// The seeds of a base and of a change. They stand for something else when formats or policies
/// change.
#[test]
fn files_that_once_failed_are_read_or_told() {
    // Both blocks beside a gap that a merge left held nothing.
    assert!(survives(&Base::new(416), &mut Choices::of_seed(16_960_666_114_834_959_361)));
    // The only table that named a value file named none.
    assert!(survives(&Base::new(602), &mut Choices::of_seed(1_557_081_093_863_503_446)));
}

/// Inspects one file without the store.
fn look_into(env: &MemEnv, path: &Path) {
    let dir = path.parent().expect("the store is in a directory");
    told(inspect::damage(env, dir)).into_iter().flatten().for_each(|error| check_told(&error));
    match FileType::of(path) {
        Some((FileType::Table, _)) => {
            let Some(table) = told(TableFile::open(env, path)) else { return };
            for index in 0..table.block_count() {
                let place = table.block_place(index);
                assert!(place.end <= table.bytes(), "{place:?}");
                let _ = table.block_keys(index);
                told(table.block(index));
            }
            let _ = (table.footer(), table.properties(), table.filter());
        }
        Some((FileType::Current, _)) => drop(told(inspect::current(env, path))),
        _ => {
            let Some(log) = told(LogFile::open(env, path)) else { return };
            let mut end = 32;
            for record in log.records() {
                assert_eq!(record.offset, end + record.skipped);
                end = record.offset + record.bytes;
                told(record.content);
            }
            assert!(end <= log.bytes().max(32));
        }
    }
}

#[test]
fn fuzz_single_files() {
    static BASES: OnceLock<Vec<Base>> = OnceLock::new();
    fuzz!(300, |choices| {
        let bases = BASES.get_or_init(|| (0..6).map(|seed| Base::new(7 * seed)).collect());
        let base = &bases[choices.below(bases.len())];
        let mutant = mutant(base, choices);
        let env = base.env.process_crash_clone();
        write_file(&env, &mutant.path, &mutant.bytes);
        let ((), peak) = peak_bytes(|| look_into(&env, &mutant.path));
        // All other files of the store are looked at as well.
        assert!(peak < PEAK_BYTES + 40 * mutant.bytes.len(), "{peak}, {:?}", mutant.path);
    });
}

#[test]
fn append_tables_with_right_checksums_may_hold_anything() {
    let seed = any_seed();
    let mut dice = Choices::of_seed(seed);
    let at = POLICIES.iter().position(|policy| policy.starts_with("jungle")).unwrap() as u64;
    let (bases, each) = if full() { (20, 500) } else { (2, 40) };
    let mut failed = 0;
    for _ in 0..bases {
        let base = Base::new(at + POLICIES.len() as u64 * (dice.number() % 100));
        let trees =
            base.files.iter().filter(|(_, bytes)| append_table_parts::is_append_table(bytes));
        assert!(trees.count() > 3, "LSMITH_SEED={seed}");
        failed += (0..each).filter(|_| !survives(&base, &mut dice)).count();
    }
    assert_eq!(failed, 0, "LSMITH_SEED={seed}");
}
