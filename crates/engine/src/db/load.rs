//! Bulk loads: sorted entries straight into tables.

use super::Keyspace;
use crate::context::Context;
use crate::stats::add;
use crate::version::TableHandle;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::directory;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::table::{ProfileGrain, TableFacts, TableOptions, TableWriter};
use lsmith_tree::{EntryKind, KeyRange, SeqNo, TableId};
use std::path::PathBuf;
use std::sync::Arc;

/// The number that loaded entries have in their files. It is none of a write: the tree says what
/// their number is.
const UNDATED: SeqNo = SeqNo(0);

/// Sorted entries on their way into tables, past log and memtables: made by
/// [`Keyspace::bulk_load`]. Nobody sees anything of them before [`finish`](BulkLoad::finish), then
/// all at once. Dropped before that, it leaves nothing behind.
#[derive(Debug)]
pub struct BulkLoad {
    keyspace: Keyspace,
    options: TableOptions,
    /// Logical bytes at which a table is full.
    table_bytes: u64,
    writer: Option<TableWriter>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    /// Numbers of all files that were created.
    created: Vec<u64>,
    facts: Vec<TableFacts>,
    /// Whether nobody knows what the table under construction holds.
    failed: bool,
    finished: bool,
}

/// What a bulk load has brought in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// Entries.
    pub entries: u64,
    /// Their logical bytes.
    pub logical_bytes: u64,
    /// Tables written.
    pub tables: u64,
    /// Bytes of their files.
    pub table_bytes: u64,
}

impl Keyspace {
    /// Begins a bulk load: entries in ascending order of keys go straight into tables, past log
    /// and memtables, and become the newest run on storage at once.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// let store = lsmith::Store::builder(dir.path()).open()?;
    /// let keyspace = store.keyspace("default")?;
    /// let mut load = keyspace.bulk_load()?;
    /// for number in 0..1000u32 {
    ///     load.put(number.to_be_bytes(), "value")?;
    /// }
    /// assert_eq!(load.finish()?.entries, 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `ReadOnly`, `Poisoned`.
    pub fn bulk_load(&self) -> Result<BulkLoad> {
        BulkLoad::new(self)
    }
}

impl BulkLoad {
    fn new(keyspace: &Keyspace) -> Result<BulkLoad> {
        let context = keyspace.store().context();
        context.check_writable()?;
        let state = keyspace.shared().state.lock();
        let grain = match state.policy.wants_blocks() {
            true => ProfileGrain::Blocks,
            false => ProfileGrain::Steps,
        };
        let codec = state.compression.of_level(0);
        Ok(BulkLoad {
            keyspace: keyspace.clone(),
            options: TableOptions { grain, codec, ..context.options.table.clone() },
            table_bytes: state.view.memtable_bytes,
            writer: None,
            first_key: Vec::new(),
            last_key: Vec::new(),
            created: Vec::new(),
            facts: Vec::new(),
            failed: false,
            finished: false,
        })
    }

    fn context(&self) -> &Arc<Context> {
        self.keyspace.store().context()
    }

    fn path(&self, number: u64) -> PathBuf {
        numbered(&self.context().options.dir, FileKind::Table, number)
    }

    /// Adds an entry. Keys ascend.
    ///
    /// # Errors
    /// `InvalidArgument` where the key is not above the one before, or key or value are too long or
    /// the key is empty: the entry is left out, and the load can go on. `Io`, `Full`: it cannot.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.check_whole()?;
        self.check(key, value)?;
        self.write(key, value).inspect_err(|_| self.failed = true)
    }

    /// An error if an earlier one has left a table of which nobody knows what it holds.
    fn check_whole(&self) -> Result<()> {
        match self.failed {
            true => Err(Error::new(ErrorKind::Io, "a write of the bulk load failed earlier")),
            false => Ok(()),
        }
    }

    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.writer.as_ref().is_some_and(|writer| writer.logical_bytes() >= self.table_bytes) {
            self.finish_table()?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let number = self.context().new_number();
                self.created.push(number);
                let (path, env) = (self.path(number), &self.context().options.env);
                let writer = TableWriter::create(env, &path, number, &self.options)?;
                self.writer.insert(writer)
            }
        };
        writer.add(EntryRef { key, seq: UNDATED, kind: EntryKind::Put, value })?;
        if self.first_key.is_empty() {
            self.first_key.extend_from_slice(key);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let refused = |told: String| Err(Error::new(ErrorKind::InvalidArgument, told));
        if key.is_empty() || key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
            return refused(format!(
                "a key of {} bytes with a value of {}: keys have 1 to {KEY_BYTES_MAX}, values at \
                 most {VALUE_BYTES_MAX}",
                key.len(),
                value.len()
            ));
        }
        if *key <= *self.last_key {
            let (key, last) = (key.escape_ascii(), self.last_key.escape_ascii());
            return refused(format!(
                "a bulk load takes keys in ascending order, found `{key}` after `{last}`"
            ));
        }
        Ok(())
    }

    fn finish_table(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.facts.push(writer.finish()?);
        }
        Ok(())
    }

    /// Makes all entries part of the keyspace, at once: newer than all that was written before,
    /// older than all that will be. When it returns they survive power loss. What memory holds of
    /// the keys between the first and the last is flushed first.
    ///
    /// # Errors
    /// `InvalidArgument` where others write keys between the first and the last all the time; those
    /// of a [flush](Keyspace::flush). Nothing has been loaded then.
    pub fn finish(mut self) -> Result<Loaded> {
        self.check_whole()?;
        self.finish_table()?;
        if self.facts.is_empty() {
            return Ok(Loaded::default());
        }
        let context = Arc::clone(self.context());
        let options = &context.options;
        directory::sync(&*options.env, &options.dir)?;
        let open = |facts: &TableFacts| {
            TableHandle::open(&options.env, &options.dir, TableId(facts.table), &context.cache)
        };
        let tables: Vec<Arc<TableHandle>> = self.facts.iter().map(open).collect::<Result<_>>()?;
        let hull = KeyRange::inclusive(&self.first_key, &self.last_key);
        // From here on the tables themselves know whether their files must go.
        self.finished = true;
        let engine = self.keyspace.store().engine();
        engine.write_path.load(self.keyspace.shared(), tables, &hull)?;
        let mut loaded = Loaded { tables: self.facts.len() as u64, ..Loaded::default() };
        for facts in &self.facts {
            loaded.entries += facts.size.entries;
            loaded.logical_bytes += facts.size.bytes;
            loaded.table_bytes += facts.file_bytes;
        }
        add(&context.counts.load_bytes, loaded.table_bytes);
        Ok(loaded)
    }
}

impl Drop for BulkLoad {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        drop(self.writer.take());
        for &number in &self.created {
            let path = self.path(number);
            directory::remove(&*self.context().options.env, &path, "a failed load");
        }
    }
}
