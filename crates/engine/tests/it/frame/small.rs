//! The stores that most tests open, and what most of them write.

use super::contents::default_keyspace;
use lsmith::env::{Env, RealEnv};
use lsmith::{Builder, Keyspace, Store};
use std::path::Path;
use std::sync::Arc;

/// The directory of the store.
pub(crate) const DIR: &str = "/store";

/// Returns the builder of a store in `env` with the options of a program that sets none.
pub(crate) fn plain(env: &(impl Env + Clone)) -> Builder {
    plain_at(DIR, env)
}

/// Returns the same for another directory.
pub(crate) fn plain_at(dir: impl AsRef<Path>, env: &(impl Env + Clone)) -> Builder {
    Store::builder(dir).env(Arc::new(env.clone()))
}

/// Returns the builder of a store in `env` that reads only.
pub(crate) fn reader(env: &(impl Env + Clone)) -> Builder {
    plain(env).read_only(true)
}

/// Returns the builder of a store in `env` that does everything after few writes: memtables, blocks
/// and logs are small. Threads merge beside the writer.
pub(crate) fn threaded(env: &(impl Env + Clone)) -> Builder {
    small(env).lockstep(false)
}

/// Returns the same in lockstep. A test that needs something else says so:
/// `small(&env).memtable_bytes(300)`.
pub(crate) fn small(env: &(impl Env + Clone)) -> Builder {
    small_at(DIR, env)
}

/// Returns the same for another directory.
pub(crate) fn small_at(dir: impl AsRef<Path>, env: &(impl Env + Clone)) -> Builder {
    let builder = plain_at(dir, env).lockstep(true);
    builder.memtable_bytes(4000).block_bytes(200).log_bytes(64 << 10)
}

/// Returns the same for a directory of this machine.
pub(crate) fn small_on_disk(dir: impl AsRef<Path>) -> Builder {
    small_at(dir, &RealEnv::new())
}

/// Opens the store, and its default keyspace.
pub(crate) fn open(builder: Builder) -> (Store, Keyspace) {
    let store = builder.open().unwrap();
    let space = default_keyspace(&store);
    (store, space)
}

/// Puts `value` for each of `numbers`.
pub(crate) fn fill(
    space: &Keyspace,
    numbers: impl IntoIterator<Item = u32>,
    value: impl AsRef<[u8]>,
) {
    for number in numbers {
        space.put(number.to_be_bytes(), &value).unwrap();
    }
}
