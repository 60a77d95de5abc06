//! lsmith, as it is by default.

use super::store::{Configs, Kind, Look, Settings, Store, Visit, Write};
use crate::data::Key;
use anyhow::Result;
use lsmith::env::RealEnv;
use lsmith::{Batch, DEFAULT_KEYSPACE, Iter, Keyspace, PersistMode};
use std::path::Path;
use std::sync::Arc;

pub(super) const KIND: Kind = Kind {
    name: "lsmith",
    version: concat!("lsmith ", env!("CARGO_PKG_VERSION")),
    differences: &[],
    configs: Configs::Policy,
    open: |dir, settings| Ok(Box::new(Lsmith::open(dir, settings)?)),
};

/// The length from which on values lie in value files, as in the rivals' blob files.
const VALUES_FROM: u64 = 1024;

/// The bound on their space, if none is asked for: the default of lsmith.
const VALUE_SPACE: f64 = 2.0;

struct Lsmith {
    store: lsmith::Store,
    keyspace: Keyspace,
}

impl Lsmith {
    /// Nothing is set but what is asked for: the defaults are on trial. The other stores are given
    /// the same buffers, cache and filters.
    fn open(dir: &Path, settings: &Settings) -> Result<Lsmith> {
        let mut builder = lsmith::Store::builder(dir);
        let config = settings.config.as_deref().unwrap_or_default();
        for part in config.split('+').filter(|part| !part.is_empty()) {
            builder = match part.split_once('=').unwrap_or((part, "")) {
                ("direct", "") => {
                    let direct = builder.env(Arc::new(RealEnv::new().direct()));
                    match settings.memory {
                        // The process stays within it to a tenth.
                        Some(memory) => direct.memory_bytes(memory / 10 * 9),
                        None => direct,
                    }
                }
                ("values", space) => {
                    builder.large_values(VALUES_FROM).value_space(space_of(space)?)
                }
                ("filter", bits) => builder.filter_bits(bits.parse()?),
                _ => builder.policy(part),
            };
        }
        let store = builder.open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        Ok(Lsmith { store, keyspace })
    }
}

/// Returns the bound that `space` asks for, or the default one if it is empty.
fn space_of(space: &str) -> Result<f64> {
    if space.is_empty() { Ok(VALUE_SPACE) } else { Ok(space.parse()?) }
}

impl Store for Lsmith {
    fn put(&self, key: &Key, value: &[u8], sync: bool) -> Result<()> {
        if !sync {
            return Ok(self.keyspace.put(key, value)?);
        }
        let mut batch = Batch::new();
        batch.put(&self.keyspace, key, value);
        Ok(self.store.write(batch, PersistMode::SyncData)?)
    }

    fn delete(&self, key: &Key) -> Result<()> {
        Ok(self.keyspace.delete(key)?)
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        let mut batch = Batch::new();
        for (key, value) in writes {
            match value {
                Some(value) => batch.put(&self.keyspace, key, value),
                None => batch.delete(&self.keyspace, key),
            }
        }
        Ok(self.store.write(batch, PersistMode::Buffer)?)
    }

    fn get(&self, key: &Key, look: Look<'_>) -> Result<bool> {
        Ok(self.keyspace.get_with(key, look)?.is_some())
    }

    fn multi_get(&self, keys: &[Key], look: Look<'_>) -> Result<usize> {
        let values = self.keyspace.multi_get(keys)?;
        Ok(values.iter().flatten().inspect(|value| look(value)).count())
    }

    fn scan(&self, from: Option<&Key>, visit: Visit<'_>) -> Result<()> {
        let mut entries: Iter = match from {
            Some(from) => self.keyspace.range::<&Key>(from..),
            None => self.keyspace.iter(),
        };
        while let Some(entry) = entries.next_ref() {
            let (key, value) = entry?;
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn scan_reverse(&self, visit: Visit<'_>) -> Result<()> {
        let mut entries = self.keyspace.iter();
        while let Some(entry) = entries.next_back_ref() {
            let (key, value) = entry?;
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn settle(&self) -> Result<bool> {
        self.store.settle()?;
        Ok(true)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.store.flush()?)
    }
}
