//! fjall.

use super::store::{Configs, Kind, Look, Settings, Store, Visit, Write};
use crate::data::Key;
use anyhow::Result;
use fjall::config::{BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry};
use fjall::{
    CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, KvSeparationOptions,
    PersistMode,
};
use std::path::Path;

pub(super) const KIND: Kind = Kind {
    name: "fjall",
    version: "fjall 3.1",
    differences: &[
        "fjall cannot say when its merges have come to rest: settled when the process is quiet",
        "fjall does not limit its memtables together: each is sealed at 32 MiB",
    ],
    configs: Configs::Named(&[("blobs", "large values in files of their own")]),
    open: |dir, settings| Ok(Box::new(Fjall::open(dir, settings)?)),
};

struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

impl Fjall {
    fn open(dir: &Path, settings: &Settings) -> Result<Fjall> {
        let database = Database::builder(dir)
            .cache_size(settings.cache_bytes as u64)
            .journal_compression(CompressionType::None)
            .worker_threads(2)
            .open()?;
        let bits = BloomConstructionPolicy::BitsPerKey(f32::from(settings.filter_bits));
        let memtable_bytes = settings.buffer_bytes as u64 / 2;
        let blobs = settings.has("blobs").then(KvSeparationOptions::default);
        let keyspace = database.keyspace("default", || {
            KeyspaceCreateOptions::default()
                .with_kv_separation(blobs)
                .max_memtable_size(memtable_bytes)
                .data_block_compression_policy(CompressionPolicy::disabled())
                .index_block_compression_policy(CompressionPolicy::disabled())
                .filter_policy(FilterPolicy::all(FilterPolicyEntry::Bloom(bits)))
        })?;
        Ok(Fjall { database, keyspace })
    }
}

/// Visits what `entries` give.
fn walk(entries: impl Iterator<Item = Guard>, visit: Visit<'_>) -> Result<()> {
    for entry in entries {
        let (key, value) = entry.into_inner()?;
        if !visit(&key, &value) {
            break;
        }
    }
    Ok(())
}

impl Store for Fjall {
    fn put(&self, key: &Key, value: &[u8], sync: bool) -> Result<()> {
        self.keyspace.insert(key, value)?;
        match sync {
            true => Ok(self.database.persist(PersistMode::SyncData)?),
            false => Ok(()),
        }
    }

    fn delete(&self, key: &Key) -> Result<()> {
        Ok(self.keyspace.remove(key)?)
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(PersistMode::Buffer));
        for (key, value) in writes {
            match value {
                Some(value) => batch.insert(&self.keyspace, key, *value),
                None => batch.remove(&self.keyspace, key),
            }
        }
        Ok(batch.commit()?)
    }

    fn get(&self, key: &Key, look: Look<'_>) -> Result<bool> {
        let value = self.keyspace.get(key)?;
        if let Some(value) = &value {
            look(value);
        }
        Ok(value.is_some())
    }

    fn scan(&self, from: Option<&Key>, visit: Visit<'_>) -> Result<()> {
        match from {
            Some(from) => walk(self.keyspace.range::<&Key, _>(from..), visit),
            None => walk(self.keyspace.iter(), visit),
        }
    }

    fn scan_reverse(&self, visit: Visit<'_>) -> Result<()> {
        walk(self.keyspace.iter().rev(), visit)
    }

    fn settle(&self) -> Result<bool> {
        Ok(false)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.keyspace.rotate_memtable_and_wait()?)
    }
}
