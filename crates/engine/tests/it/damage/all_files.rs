//! Any damage in any file of a store that has files of all kinds.
//!
//! Promised: opening, reading or `verify` reports the damage with a path, or all answers are right.
//! Only writes without any record left may be lost silently: the last writes in the newest log.
//! Then the store holds a prefix of the writes.

use crate::dice::{Dice, any_seed, full};
use crate::frame::all_files::{Base, state};
use crate::frame::contents::{Map, maps, write_file};
use crate::frame::watchdog::Watchdog;
use lsmith::env::{Env, MemEnv};
use lsmith::{Error, ErrorKind, Store};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Damage to the files.
#[derive(Debug)]
enum Damage {
    /// A byte of this file changed.
    Flip(PathBuf, usize, u8),
    /// This file was cut to a length.
    Cut(PathBuf, usize),
    /// These files have swapped names.
    Swap(PathBuf, PathBuf),
    /// This file is missing.
    Missing(PathBuf),
}

impl Damage {
    fn path(&self) -> &Path {
        match self {
            Damage::Flip(path, ..) | Damage::Cut(path, _) => path,
            Damage::Swap(path, _) | Damage::Missing(path) => path,
        }
    }

    fn happen(&self, base: &Base, env: &MemEnv) {
        let bytes_of = |path: &Path| {
            let found = base.files.iter().find(|(other, _)| other == path);
            found.unwrap().1.clone()
        };
        match self {
            Damage::Flip(path, at, mask) => env.flip(path, *at as u64, *mask).unwrap(),
            Damage::Cut(path, length) => env.truncate(path, *length as u64).unwrap(),
            Damage::Missing(path) => env.remove_file(path).unwrap(),
            Damage::Swap(left, right) => {
                write_file(env, left, &bytes_of(right));
                write_file(env, right, &bytes_of(left));
            }
        }
    }
}

/// Returns all damage to try on the file `path` with these `bytes`.
fn damages(base: &Base, path: &Path, bytes: &[u8], dice: &mut Dice) -> Vec<Damage> {
    let mut all = vec![Damage::Missing(path.to_path_buf())];
    // Behind its last byte that is not zero, all is alike.
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mask = |dice: &mut Dice| 1 + dice.below(255) as u8;
    let flip = |at, dice: &mut Dice| Damage::Flip(path.to_path_buf(), at, mask(dice));
    let cut = |length| Damage::Cut(path.to_path_buf(), length);
    if full() {
        all.extend((0..used).map(|at| flip(at, dice)));
        all.extend((dice.below(5)..used).step_by(5).map(cut));
    } else if used > 0 {
        all.extend((0..15).map(|_| flip(dice.below(used), dice)));
        all.extend((0..5).map(|_| cut(dice.below(used))));
    }
    if used < bytes.len() {
        all.push(flip(used + dice.below(bytes.len() - used), dice));
        all.push(cut(used + dice.below(bytes.len() - used)));
    }
    let others = base.files.iter().filter(|(other, found)| {
        other != path && other.extension() == path.extension() && found != bytes
    });
    let others: Vec<_> = others.collect();
    if !others.is_empty() && path.extension().is_some() {
        all.push(Damage::Swap(path.to_path_buf(), dice.pick(&others).0.clone()));
    }
    all
}

fn check_told(error: &Error, told: &Damage) {
    let fine = match error.kind() {
        ErrorKind::Corruption | ErrorKind::Unsupported | ErrorKind::Io => error.path().is_some(),
        // A directory without `CURRENT` is no store.
        ErrorKind::InvalidArgument | ErrorKind::NotFound => told.path().ends_with("CURRENT"),
        _ => false,
    };
    assert!(fine, "{:?} {error} after {told:?}", error.kind());
}

/// Returns true if the damage is reported. Panics if it is not and an answer is wrong.
fn is_told(base: &Base, damage: &Damage, env: &MemEnv, read_only: bool) -> bool {
    let store = match base.builder(env).read_only(read_only).open() {
        Ok(store) => store,
        Err(error) => {
            check_told(&error, damage);
            return true;
        }
    };
    let newest = base.files.iter().map(|(path, _)| path);
    let newest = newest.filter(|path| path.extension() == Some(OsStr::new("wal"))).max();
    let errors: Vec<Error> = if newest.is_some_and(|path| path == damage.path()) {
        let found = state(&maps(&store));
        assert!(base.states.contains(&found), "no prefix of the writes after {damage:?}");
        Vec::new()
    } else {
        base.maps.iter().flat_map(|(name, map)| read(&store, name, map, damage)).collect()
    };
    let mut told: Vec<Error> = errors;
    told.extend(store.verify().unwrap());
    told.iter().for_each(|error| check_told(error, damage));
    !told.is_empty()
}

/// Reads all of a keyspace. Returns the errors; panics at a wrong answer.
fn read(store: &Store, name: &str, map: &Map, damage: &Damage) -> Vec<Error> {
    let found = store.existing_keyspace(name);
    let space = found.unwrap_or_else(|error| panic!("{error} after {damage:?}"));
    let mut errors = Vec::new();
    for (key, value) in map {
        match space.get(key) {
            Ok(found) => assert_eq!(found.as_deref(), Some(&value[..]), "{key:?} after {damage:?}"),
            Err(error) => errors.push(error),
        }
    }
    let mut expected = map.iter();
    for entry in space.iter() {
        let Ok((key, value)) = entry.map_err(|error| errors.push(error)) else { return errors };
        let next = expected.next().map(|(key, value)| (&key[..], &value[..]));
        assert_eq!(next, Some((&key[..], &value[..])), "{name} after {damage:?}");
    }
    assert_eq!(expected.next(), None, "{name} after {damage:?}");
    errors
}

#[test]
fn damage_in_any_file_is_told_or_does_no_harm() {
    let seed = any_seed();
    let mut dice = Dice::new(seed);
    let mut count = 0;
    let mut told = 0;
    eprintln!("LSMITH_SEED={seed}");
    // One after the other, so that all policies and codecs have their turn.
    let first = dice.below(18) as u64;
    for base in (0..if full() { 1 } else { 2 }).map(|turn| Base::with_states(first + 5 * turn)) {
        for (path, bytes) in base.files.iter().filter(|(path, _)| !path.ends_with("LOCK")) {
            for damage in damages(&base, path, bytes, &mut dice) {
                let _watchdog = Watchdog::new("a store with a damaged file");
                let env = base.env.process_crash_clone();
                damage.happen(&base, &env);
                told += usize::from(is_told(&base, &damage, &env, dice.chance(70)));
                count += 1;
            }
        }
    }
    eprintln!("{count} damages, {told} told of");
    assert!(told > count / 2, "{told} of {count}");
}
