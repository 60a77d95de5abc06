//! Bulk loads: sorted entries that go straight into tables.

use super::Keyspace;
use super::loaded::{Loaded, check_entry};
use crate::context::Context;
use crate::stats::add;
use crate::version::TableHandle;
use crate::write::Load;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::directory;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::table::{ProfileGrain, TableFacts, TableOptions, TableWriter};
use lsmith_tree::{EntryKind, KeyRange, SeqNo, TableId};
use std::ops::RangeBounds;
use std::path::PathBuf;
use std::sync::Arc;

/// The sequence number of loaded entries in their files. No write has it: the tree stores the real
/// sequence number of a loaded table.
const UNDATED: SeqNo = SeqNo(0);

/// A bulk load under way: entries in ascending key order are written straight to tables, without
/// the log and the memtables. Made by [`Keyspace::bulk_load`].
///
/// [`finish`](BulkLoad::finish) makes all entries visible at once. A load that is dropped before
/// that removes its files.
#[doc(alias = "bulk load")]
#[derive(Debug)]
pub struct BulkLoad {
    keyspace: Keyspace,
    options: TableOptions,
    /// Logical bytes at which a table is full.
    table_bytes: u64,
    writer: Option<TableWriter>,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    /// The ids of all files that were created.
    created: Vec<u64>,
    facts: Vec<TableFacts>,
    /// What is deleted in the same step.
    replaced: Vec<KeyRange>,
    /// True after a failed write: the content of the table being written is then unknown.
    failed: bool,
    /// True once the table handles, and no longer the load, remove the files after a failure.
    finished: bool,
}

impl Keyspace {
    /// Begins a bulk load, which writes entries in ascending key order straight to tables. The
    /// tables become the newest run of level 0 at once.
    ///
    /// A load writes each entry once, without the log. It pays for many entries, because what
    /// memory holds in their key range is flushed first.
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
    /// `ReadOnly` if the store was opened for reading only; `Poisoned` if an earlier write of the
    /// log or the manifest failed.
    #[doc(alias = "bulk load")]
    pub fn bulk_load(&self) -> Result<BulkLoad> {
        BulkLoad::new(self)
    }
}

impl BulkLoad {
    fn new(keyspace: &Keyspace) -> Result<BulkLoad> {
        let context = keyspace.store().context();
        context.check_writable()?;
        let state = keyspace.shared().state.lock();
        let wants_blocks = state.policy.wants_blocks();
        let grain = if wants_blocks { ProfileGrain::Blocks } else { ProfileGrain::Steps };
        let codec = state.compression.of_level(0);
        Ok(BulkLoad {
            keyspace: keyspace.clone(),
            options: TableOptions {
                grain,
                codec,
                ..keyspace.shared().table_options(&context.options)
            },
            table_bytes: state.view.memtable_bytes,
            writer: None,
            first_key: Vec::new(),
            last_key: Vec::new(),
            created: Vec::new(),
            facts: Vec::new(),
            replaced: Vec::new(),
            failed: false,
            finished: false,
        })
    }

    fn context(&self) -> &Arc<Context> {
        self.keyspace.store().context()
    }

    fn path(&self, file_id: u64) -> PathBuf {
        numbered(&self.context().options.dir, FileKind::Table, file_id)
    }

    /// Adds an entry. Each key must be greater than the key before.
    ///
    /// # Errors
    /// * `InvalidArgument` if the key is not greater than the key before, if the key is empty, or
    ///   if the key or the value is too long. The entry is skipped, and the load can continue.
    /// * `Io` or `Full` if a table cannot be written. The load cannot continue.
    #[doc(alias("insert", "set"))]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        match self.keyspace.expiring(value.as_ref())? {
            Some(stored) => self.put_as(EntryKind::Expiring, key.as_ref(), &stored),
            None => self.put_as(EntryKind::Put, key.as_ref(), value.as_ref()),
        }
    }

    /// Adds an entry of `kind` with this value. Otherwise as [`put`](BulkLoad::put).
    pub(crate) fn put_as(&mut self, kind: EntryKind, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_not_failed()?;
        let keyspace = self.keyspace.clone();
        let key = keyspace.stored_key(key);
        check_entry(&key, value, &self.last_key)?;
        self.write(&key, kind, value).inspect_err(|_| self.failed = true)
    }

    /// Replaces `range`: what the keyspace has there when the load [ends](BulkLoad::finish) is
    /// deleted, in the same step as the entries of the load appear. These lie above, wherever they
    /// are. May be called several times.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// let store = lsmith::Store::builder(dir.path()).open()?;
    /// let index = store.keyspace("index")?;
    /// index.put("old", "1")?;
    /// let mut load = index.bulk_load()?;
    /// load.replace::<&str>(..)?;
    /// load.put("new", "2")?;
    /// load.finish()?;
    /// assert_eq!(index.iter().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the range ends before it begins, or an end of it is too long. An empty
    /// range replaces nothing.
    pub fn replace<K: AsRef<[u8]>>(&mut self, range: impl RangeBounds<K>) -> Result<()> {
        self.replaced.extend(self.keyspace.deletable(range)?);
        Ok(())
    }

    /// Fails if an earlier write failed, and in a child of the process that opened the store.
    fn check_not_failed(&self) -> Result<()> {
        self.context().check_here()?;
        if self.failed {
            return Err(Error::new(ErrorKind::Io, "a write of the bulk load failed earlier"));
        }
        Ok(())
    }

    fn write(&mut self, key: &[u8], kind: EntryKind, value: &[u8]) -> Result<()> {
        if self.writer.as_ref().is_some_and(|writer| writer.logical_bytes() >= self.table_bytes) {
            self.finish_table()?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let context = self.context();
                let (file_id, writer) =
                    context.make_numbered(FileKind::Table, |path, file_id| {
                        TableWriter::create(&context.options.env, path, file_id, &self.options)
                    })?;
                self.created.push(file_id);
                self.writer.insert(writer)
            }
        };
        writer.add(EntryRef { key, seq: UNDATED, kind, value })?;
        if self.first_key.is_empty() {
            self.first_key.extend_from_slice(key);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        Ok(())
    }

    fn finish_table(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            self.facts.push(writer.finish()?);
        }
        Ok(())
    }

    /// Makes all entries visible at once, newer than every earlier write and older than every later
    /// one. When the call returns, the entries survive power loss.
    ///
    /// Entries in memory between the first and the last key of the load, and in the ranges that it
    /// [replaces](BulkLoad::replace), are flushed first.
    ///
    /// # Errors
    /// `InvalidArgument` if other writers keep writing keys there.
    /// Otherwise as [`Keyspace::flush`], or `Io` or `Full` if a table cannot be written. Nothing is
    /// loaded then, unless the store is `Poisoned`.
    pub fn finish(mut self) -> Result<Loaded> {
        self.check_not_failed()?;
        self.finish_table()?;
        if self.facts.is_empty() && self.replaced.is_empty() {
            return Ok(Loaded::default());
        }
        let context = Arc::clone(self.context());
        let options = &context.options;
        directory::sync(&*options.env, &options.dir)?;
        let open = |facts: &TableFacts| TableHandle::open(&context.tables(), TableId(facts.table));
        let tables: Vec<Arc<TableHandle>> = self.facts.iter().map(open).collect::<Result<_>>()?;
        let hull = KeyRange::inclusive(&self.first_key, &self.last_key);
        let ranges = if tables.is_empty() { Vec::new() } else { vec![hull] };
        let replaced = std::mem::take(&mut self.replaced);
        // From here on the table handles decide whether their files are removed.
        self.finished = true;
        let keyspace = Arc::clone(self.keyspace.shared());
        let write_path = &self.keyspace.store().engine().write_path;
        write_path.load(vec![Load { keyspace, tables, ranges, replaced }])?;
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
        if self.finished || !self.context().is_here() {
            return;
        }
        drop(self.writer.take());
        for &file_id in &self.created {
            let path = self.path(file_id);
            directory::remove(&*self.context().options.env, &path, "a failed load");
        }
    }
}
