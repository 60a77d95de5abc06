//! LMDB: a B+ tree in a mapped file.

use super::store::{Configs, Kind, Look, Settings, Store, Visit, Write};
use crate::data::Key;
use anyhow::Result;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use std::ops::Bound;
use std::path::Path;

pub(super) const KIND: Kind = Kind {
    name: "lmdb",
    version: "LMDB (crate heed 0.22)",
    differences: &[
        "LMDB has no log, write buffer, block cache or filters: it reads mapped pages",
        "LMDB is filled in batches of 1000; single writes of other phases are transactions",
    ],
    configs: Configs::Named(&[("single", "filled by single writes, each a transaction")]),
    open: |dir, settings| Ok(Box::new(Lmdb::open(dir, settings)?)),
};

/// Address space for the file.
const MAP_BYTES: usize = 1 << 38;

struct Lmdb {
    env: Env<WithoutTls>,
    entries: Database<Bytes, Bytes>,
    gathers: usize,
}

impl Lmdb {
    #[allow(unsafe_code, reason = "mapping a file that others could change is unsafe")]
    fn open(dir: &Path, settings: &Settings) -> Result<Lmdb> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.map_size(MAP_BYTES);
        // SAFETY: the folder is fresh and ours alone; without syncs a crash of the system may
        // leave a damaged file, which nobody opens again.
        let env = unsafe { options.flags(EnvFlags::NO_SYNC).open(dir)? };
        let mut transaction = env.write_txn()?;
        let entries = env.create_database(&mut transaction, None)?;
        transaction.commit()?;
        let gathers = if settings.has("single") { 1 } else { 1000 };
        Ok(Lmdb { env, entries, gathers })
    }
}

impl Store for Lmdb {
    fn put(&self, key: &Key, value: &[u8], sync: bool) -> Result<()> {
        self.write(&[(*key, Some(value))])?;
        match sync {
            true => Ok(self.env.force_sync()?),
            false => Ok(()),
        }
    }

    fn delete(&self, key: &Key) -> Result<()> {
        self.write(&[(*key, None)])
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        let mut transaction = self.env.write_txn()?;
        for (key, value) in writes {
            match value {
                Some(value) => self.entries.put(&mut transaction, key, value)?,
                None => {
                    self.entries.delete(&mut transaction, key)?;
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &Key, look: Look<'_>) -> Result<bool> {
        let transaction = self.env.read_txn()?;
        let value = self.entries.get(&transaction, key)?;
        if let Some(value) = value {
            look(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(&self, keys: &[Key], look: Look<'_>) -> Result<usize> {
        let transaction = self.env.read_txn()?;
        let mut found = 0;
        for key in keys {
            if let Some(value) = self.entries.get(&transaction, key)? {
                look(value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn scan(&self, from: Option<&Key>, visit: Visit<'_>) -> Result<()> {
        let transaction = self.env.read_txn()?;
        let from = from.map_or(Bound::Unbounded, |from| Bound::Included(&from[..]));
        for entry in self.entries.range(&transaction, &(from, Bound::Unbounded))? {
            let (key, value) = entry?;
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn scan_reverse(&self, visit: Visit<'_>) -> Result<()> {
        let transaction = self.env.read_txn()?;
        for entry in self.entries.rev_iter(&transaction)? {
            let (key, value) = entry?;
            if !visit(key, value) {
                break;
            }
        }
        Ok(())
    }

    fn settle(&self) -> Result<bool> {
        Ok(true)
    }

    fn gathers(&self) -> usize {
        self.gathers
    }
}
