//! redb: a B+ tree in a file, copied on write.

use super::store::{Configs, Kind, Look, Settings, Store, Visit, Write};
use crate::data::Key;
use anyhow::Result;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;

pub(super) const KIND: Kind = Kind {
    name: "redb",
    version: "redb 4",
    differences: &[
        "redb has no log, write buffer or filters: its cache gets the bytes of buffer and cache",
        "redb without sync loses writes with the process; they are made durable when settling",
        "redb is filled in batches of 1000; single writes of other phases are transactions",
    ],
    configs: Configs::Named(&[]),
    open: |dir, settings| Ok(Box::new(Redb::open(dir, settings)?)),
};

const ENTRIES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("entries");

struct Redb {
    database: Database,
}

impl Redb {
    fn open(dir: &Path, settings: &Settings) -> Result<Redb> {
        let mut builder = Database::builder();
        builder.set_cache_size(settings.buffer_bytes + settings.cache_bytes);
        let redb = Redb { database: builder.create(dir.join("redb"))? };
        redb.commit(&[], Durability::Immediate)?;
        Ok(redb)
    }

    fn commit(&self, writes: &[Write<'_>], durability: Durability) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(durability)?;
        let mut entries = transaction.open_table(ENTRIES)?;
        for (key, value) in writes {
            match value {
                Some(value) => drop(entries.insert(&key[..], *value)?),
                None => drop(entries.remove(&key[..])?),
            }
        }
        drop(entries);
        Ok(transaction.commit()?)
    }
}

impl Store for Redb {
    fn put(&self, key: &Key, value: &[u8], sync: bool) -> Result<()> {
        let durability = if sync { Durability::Immediate } else { Durability::None };
        self.commit(&[(*key, Some(value))], durability)
    }

    fn delete(&self, key: &Key) -> Result<()> {
        self.commit(&[(*key, None)], Durability::None)
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        self.commit(writes, Durability::None)
    }

    fn get(&self, key: &Key, look: Look<'_>) -> Result<bool> {
        Ok(self.multi_get(&[*key], look)? == 1)
    }

    fn multi_get(&self, keys: &[Key], look: Look<'_>) -> Result<usize> {
        let entries = self.database.begin_read()?.open_table(ENTRIES)?;
        let mut found = 0;
        for key in keys {
            if let Some(value) = entries.get(&key[..])? {
                look(value.value());
                found += 1;
            }
        }
        Ok(found)
    }

    fn scan(&self, from: Option<&Key>, visit: Visit<'_>) -> Result<()> {
        let entries = self.database.begin_read()?.open_table(ENTRIES)?;
        let from: &[u8] = from.map_or(&[], |from| from);
        for entry in entries.range(from..)? {
            let (key, value) = entry?;
            if !visit(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }

    fn scan_reverse(&self, visit: Visit<'_>) -> Result<()> {
        let entries = self.database.begin_read()?.open_table(ENTRIES)?;
        for entry in entries.iter()?.rev() {
            let (key, value) = entry?;
            if !visit(key.value(), value.value()) {
                break;
            }
        }
        Ok(())
    }

    fn settle(&self) -> Result<bool> {
        self.commit(&[], Durability::Immediate)?;
        Ok(true)
    }

    fn gathers(&self) -> usize {
        1000
    }
}
