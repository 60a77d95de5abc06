//! The stores: which there are, one file for each.

#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "lmdb")]
mod lmdb;
mod lsmith;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use store::{Kind, Levels, Settings, Store};

use anyhow::{Result, bail};

/// All stores that were built in.
pub(crate) const KINDS: &[Kind] = &[
    lsmith::KIND,
    #[cfg(feature = "rocksdb")]
    rocksdb::KIND,
    #[cfg(feature = "fjall")]
    fjall::KIND,
    #[cfg(feature = "leveldb")]
    leveldb::KIND,
    #[cfg(feature = "lmdb")]
    lmdb::KIND,
    #[cfg(feature = "redb")]
    redb::KIND,
];

/// The names of all stores that were built in.
pub(crate) fn names() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.join(", ")
}

/// The store called `name`.
pub(crate) fn find(name: &str) -> Result<Kind> {
    if let Some(kind) = KINDS.iter().find(|kind| kind.name == name) {
        return Ok(*kind);
    }
    let known = ["rocksdb", "fjall", "leveldb", "lmdb", "redb"].contains(&name);
    let built = names();
    match known {
        true => bail!("{name} was not built in: build with `--features {name}` (now: {built})"),
        false => bail!("there is no store called `{name}`; there are: {built}"),
    }
}
