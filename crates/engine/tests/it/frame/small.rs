//! The store that most tests open, and what most of them write.

use lsmith::env::Env;
use lsmith::{Builder, Keyspace, Store};
use std::sync::Arc;

/// The directory of the store.
pub(crate) const DIR: &str = "/store";

/// Returns the builder of a store in `env` that does everything after few writes, in lockstep:
/// memtables, blocks and logs are small. A test that needs something else says so:
/// `small(&env).memtable_bytes(300)`.
pub(crate) fn small(env: &(impl Env + Clone)) -> Builder {
    small_at(DIR, env)
}

/// Returns the same for another directory.
pub(crate) fn small_at(dir: &str, env: &(impl Env + Clone)) -> Builder {
    let builder = Store::builder(dir).env(Arc::new(env.clone())).lockstep(true);
    builder.memtable_bytes(4000).block_bytes(200).log_bytes(64 << 10)
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
