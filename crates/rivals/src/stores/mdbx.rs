//! MDBX: LMDB's descendant, a B+ tree in a mapped file.

use super::store::{Configs, Kind, Look, Settings, Store, Visit, Write};
use crate::data::Key;
use anyhow::Result;
use signet_libmdbx::sys::EnvironmentKind;
use signet_libmdbx::{
    Database, DatabaseFlags, Environment, Geometry, Mode, Ro, SyncMode, TxUnsync, WriteFlags,
};
use std::borrow::Cow;
use std::path::Path;

pub(super) const KIND: Kind = Kind {
    name: "mdbx",
    version: "libmdbx (crate signet-libmdbx 0.8)",
    differences: &[
        "MDBX has no log, write buffer, block cache or filters: it reads mapped pages",
        "MDBX is filled in batches of 1000; single writes of other phases are transactions",
    ],
    configs: Configs::Named(&[
        ("single", "filled by single writes, each a transaction"),
        ("mapped", "writes into the mapped file"),
    ]),
    open: |dir, settings| Ok(Box::new(Mdbx::open(dir, settings)?)),
};

/// The greatest size of the file.
const FILE_BYTES_MAX: usize = 1 << 38;

/// Bytes by which the file grows.
const GROWTH_BYTES: isize = 64 << 20;

/// A key and its value.
type Entry<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

struct Mdbx {
    env: Environment,
    entries: Database,
    gathers: usize,
}

impl Mdbx {
    fn open(dir: &Path, settings: &Settings) -> Result<Mdbx> {
        let mut builder = Environment::builder();
        builder.set_geometry(Geometry {
            size: Some(0..FILE_BYTES_MAX),
            growth_step: Some(GROWTH_BYTES),
            ..Geometry::default()
        });
        builder.set_flags(Mode::ReadWrite { sync_mode: SyncMode::UtterlyNoSync }.into());
        if settings.has("mapped") {
            builder.set_kind(EnvironmentKind::WriteMap);
        }
        let env = builder.open(dir)?;
        let transaction = env.begin_rw_unsync()?;
        let entries = transaction.create_db(None, DatabaseFlags::empty())?;
        transaction.commit()?;
        let gathers = if settings.has("single") { 1 } else { 1000 };
        Ok(Mdbx { env, entries, gathers })
    }

    fn read(&self, transaction: &TxUnsync<Ro>, key: &Key, look: Look<'_>) -> Result<bool> {
        let value: Option<Cow<'_, [u8]>> = transaction.get(self.entries.dbi(), key)?;
        if let Some(value) = &value {
            look(value);
        }
        Ok(value.is_some())
    }
}

impl Store for Mdbx {
    fn put(&self, key: &Key, value: &[u8], sync: bool) -> Result<()> {
        self.write(&[(*key, Some(value))])?;
        if sync {
            self.env.sync(true)?;
        }
        Ok(())
    }

    fn delete(&self, key: &Key) -> Result<()> {
        self.write(&[(*key, None)])
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        let transaction = self.env.begin_rw_unsync()?;
        for (key, value) in writes {
            match value {
                Some(value) => transaction.put(self.entries, key, value, WriteFlags::UPSERT)?,
                None => {
                    transaction.del(self.entries, key, None)?;
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, key: &Key, look: Look<'_>) -> Result<bool> {
        self.read(&self.env.begin_ro_unsync()?, key, look)
    }

    fn multi_get(&self, keys: &[Key], look: Look<'_>) -> Result<usize> {
        let transaction = self.env.begin_ro_unsync()?;
        let mut found = 0;
        for key in keys {
            found += usize::from(self.read(&transaction, key, &mut *look)?);
        }
        Ok(found)
    }

    fn scan(&self, from: Option<&Key>, visit: Visit<'_>) -> Result<()> {
        let transaction = self.env.begin_ro_unsync()?;
        let mut cursor = transaction.cursor(self.entries)?;
        let mut entry: Option<Entry<'_>> = match from {
            Some(from) => cursor.set_range(from)?,
            None => cursor.first()?,
        };
        while let Some((key, value)) = &entry {
            if !visit(key, value) {
                break;
            }
            entry = cursor.next()?;
        }
        Ok(())
    }

    fn scan_reverse(&self, visit: Visit<'_>) -> Result<()> {
        let transaction = self.env.begin_ro_unsync()?;
        let mut cursor = transaction.cursor(self.entries)?;
        let mut entry: Option<Entry<'_>> = cursor.last()?;
        while let Some((key, value)) = &entry {
            if !visit(key, value) {
                break;
            }
            entry = cursor.prev()?;
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
