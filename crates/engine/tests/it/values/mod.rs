//! Values in value files.
//!
//! Promised: wherever values lie, the store has the same contents, for readers of now and of
//! earlier moments, also after accidents and with the option changed. Value files take no more
//! space than the option says, whatever is overwritten. A damaged value is the only one that cannot
//! be read.

mod cold;
mod damage;
mod keeping;
mod model;
mod packed;
mod space;

use crate::frame::contents::names;
use crate::frame::small::DIR;
use lsmith::Keyspace;
use lsmith::env::{Env, MemEnv};
use std::path::Path;

/// Returns the value that `key` has after `round`. It is long enough for a value file.
fn value(key: u32, round: u32) -> Vec<u8> {
    let head = [key.to_be_bytes(), round.to_be_bytes()].concat();
    let rest = (0..1000).map(|at| (key as usize * 7 + round as usize * 31 + at) as u8);
    head.into_iter().chain(rest).collect()
}

/// Puts the values of `round` for `keys`.
fn put(space: &Keyspace, keys: impl IntoIterator<Item = u32>, round: u32) {
    for key in keys {
        space.put(key.to_be_bytes(), value(key, round)).unwrap();
    }
}

/// Asserts that `keys` have their values of `round`.
fn check(space: &Keyspace, keys: impl IntoIterator<Item = u32>, round: u32) {
    for key in keys {
        let found = space.get(key.to_be_bytes()).unwrap();
        assert!(found.as_deref() == Some(&value(key, round)[..]), "key {key} in round {round}");
    }
}

/// Returns the bytes of all value files of the store.
fn bytes_on_disk(env: &MemEnv) -> u64 {
    let files = names(env, DIR, ".values");
    files.iter().map(|name| env.file_bytes(&Path::new(DIR).join(name)).unwrap()).sum()
}
