//! The stores: which there are, one file for each.

#[cfg(feature = "bftree")]
mod bftree;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "lmdb")]
mod lmdb;
mod lsmith;
#[cfg(feature = "mdbx")]
mod mdbx;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod store;
#[cfg(test)]
mod tests;

pub(crate) use store::{Configs, Contender, Kind, Lacks, Levels, Settings, Store};

use anyhow::{Result, bail, ensure};
use std::fmt::Write;

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
    #[cfg(feature = "mdbx")]
    mdbx::KIND,
    #[cfg(feature = "bftree")]
    bftree::KIND,
];

/// The names of all stores that were built in.
pub(crate) fn names() -> String {
    let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    names.join(", ")
}

/// All stores that were built in, each with its configurations, one a line.
pub(crate) fn list() -> String {
    let mut told = String::new();
    for kind in KINDS {
        let name = kind.name;
        // Writing to a string cannot fail.
        let _ = writeln!(told, "{name:<18} {}", kind.version);
        match kind.configs {
            Configs::Policy => {
                let _ = writeln!(told, "{name}:POLICY      with this merge policy");
                let values = "values of 1 KiB and more in value files, also as values+POLICY";
                let _ = writeln!(told, "{name}:values      {values}");
                let space = "the same within 1.5 times the space of the values";
                let _ = writeln!(told, "{name}:values=1.5  {space}");
                let _ = writeln!(told, "{name}:filter=12   with so many bits of filter per key");
                let direct = "tables are read past the system's cache";
                let _ = writeln!(told, "{name}:direct      {direct}");
            }
            Configs::Named(configs) => {
                for (config, meaning) in configs {
                    let label = format!("{name}:{config}");
                    let _ = writeln!(told, "{label:<18} {meaning}");
                }
            }
        }
    }
    told
}

/// The store and the configuration that `label` names: `rocksdb`, `rocksdb:mapped+universal` or
/// `lsmith:auto(runs=5)`.
pub(crate) fn find(label: &str) -> Result<Contender> {
    let Some((name, config)) = label.split_once(':') else {
        return Ok(Contender { kind: kind(label)?, config: None });
    };
    let kind = kind(name)?;
    if let Configs::Named(known) = kind.configs {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        for asked in config.split('+') {
            let names = names.join(", ");
            ensure!(
                known.iter().any(|(name, _)| *name == asked),
                "{name} has no configuration `{asked}`; it has: {names}"
            );
        }
    }
    Ok(Contender { kind, config: Some(config.to_string()) })
}

/// The store called `name`.
fn kind(name: &str) -> Result<Kind> {
    if let Some(kind) = KINDS.iter().find(|kind| kind.name == name) {
        return Ok(*kind);
    }
    let known = ["rocksdb", "fjall", "leveldb", "lmdb", "redb", "mdbx", "bftree"].contains(&name);
    let built = names();
    match known {
        true => bail!("{name} was not built in: build with `--features {name}` (now: {built})"),
        false => bail!("there is no store called `{name}`; there are: {built}"),
    }
}
