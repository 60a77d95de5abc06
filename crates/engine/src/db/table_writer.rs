//! Writes tables outside of a store, for a store to ingest.

use super::change::range_ends;
use super::loaded::{Loaded, check_entry};
use crate::options::{FilterChoice, check_block, check_operator_name};
use crate::rules::CombineOperators;
use crate::write::{ARRIVING_SEQ_MAX, broken_range_rule};
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::env::{Env, RealEnv};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::expiry::expiring_value;
use lsmith_storage::format::deleted_range;
use lsmith_storage::sync::Process;
use lsmith_storage::table::{self, OUTSIDE, TableOptions};
use lsmith_storage::{directory, panics};
use lsmith_tree::{EntryKind, KeyRange, SeqNo};
use std::fmt;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The sequence number of entries that get theirs when a store ingests them.
const UNDATED: SeqNo = SeqNo(0);

/// Writes one table without a store: sorted entries, in a file of the caller's choice. Another
/// process may do that, at any time. [`Store::ingest`](crate::Store::ingest) brings the file into a
/// store.
///
/// A writer that is dropped before [`finish`](TableWriter::finish) removes its file.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # use lsmith::{IngestOptions, Store, TableWriter};
/// let file = dir.path().join("prices.table");
/// let mut writer = TableWriter::create(&file)?;
/// writer.put("apple", "3")?;
/// writer.delete("banana")?;
/// writer.finish()?;
///
/// let store = Store::builder(dir.path().join("store")).open()?;
/// let prices = store.keyspace("prices")?;
/// prices.put("banana", "4")?;
/// let ingested = store.ingest(&prices, &[file], &IngestOptions::default())?;
/// assert_eq!(ingested.entries, 2);
/// assert_eq!(prices.get("apple")?.as_deref(), Some(&b"3"[..]));
/// assert_eq!(prices.get("banana")?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("sst file writer", "sstable"))]
#[derive(Debug)]
pub struct TableWriter {
    /// `None` after a failed write, when the content of the file is unknown.
    writer: Option<table::TableWriter>,
    env: Arc<dyn Env>,
    path: PathBuf,
    last_key: Vec<u8>,
    /// The name of the operator that operands are for.
    operator: Option<String>,
    operators: CombineOperators,
    has_operands: bool,
    /// The range deletes, with their sequence numbers.
    range_deletes: Vec<(KeyRange, SeqNo)>,
    /// True if entries have sequence numbers, false if they have none; `None` if there is none yet.
    numbered: Option<bool>,
    /// True once the file is complete and stays.
    finished: bool,
    report: Option<Report>,
    /// The process that made the file.
    process: Process,
}

/// The number of entries between two reports of progress.
const ENTRIES_PER_REPORT: u64 = 4096;

/// Receives the number of entries so far.
struct Report(Box<dyn Fn(u64) + Send + Sync>);

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}

/// How a [`TableWriter`] writes its file.
#[derive(Clone, Debug)]
pub struct TableWriterOptions {
    /// The door to files; the operating system's by default.
    pub env: Arc<dyn Env>,
    /// Logical bytes (key + value + 8 per entry) of a data block, 1 to 2^28; 4096 by default.
    pub block_bytes: usize,
    /// Bits of the filter per key; 10 by default, 0 for no filter.
    pub filter_bits: u8,
    /// The length of a prefix in bytes, 1 to 1024. The filter then also holds the prefix of each
    /// key that is as long, as with
    /// [`KeyspaceOptions::prefix_bytes`](crate::KeyspaceOptions::prefix_bytes). Any keyspace can
    /// ingest the table. `None`, the default, means no prefixes.
    pub prefix_bytes: Option<u16>,
    /// The compression of data blocks: `none`, the default, `lz4` or `zstd`.
    pub compression: String,
    /// The name of the operator that [operands](TableWriter::combine) are for. Only a keyspace with
    /// this operator ingests a table with operands. `None`, the default, means no operands.
    pub operator: Option<String>,
    /// The operators that this process knows. If `operator` is among them, it
    /// [checks](crate::Combine::check_operand) each operand.
    pub operators: CombineOperators,
}

impl Default for TableWriterOptions {
    fn default() -> TableWriterOptions {
        let table = TableOptions::default();
        TableWriterOptions {
            env: Arc::new(RealEnv::new()),
            block_bytes: table.block_bytes,
            filter_bits: table.filter_bits_per_key,
            prefix_bytes: None,
            compression: "none".into(),
            operator: None,
            operators: CombineOperators::default(),
        }
    }
}

impl TableWriter {
    /// Creates the file at `path`, which must not exist.
    ///
    /// # Errors
    /// `Io` or `Full`.
    pub fn create(path: impl AsRef<Path>) -> Result<TableWriter> {
        TableWriter::create_with(path, &TableWriterOptions::default())
    }

    /// Like [`create`](TableWriter::create), with options.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown compression, a size that no block can have, a length that
    /// no prefix can have, prefixes without a filter, or a name that no operator can have; `Io` or
    /// `Full`.
    pub fn create_with(
        path: impl AsRef<Path>,
        options: &TableWriterOptions,
    ) -> Result<TableWriter> {
        check_block(options.block_bytes)?;
        let codec = crate::compression::Compression::parse(&options.compression)?.of_level(0);
        let filters =
            FilterChoice { bits: Some(options.filter_bits), prefix_bytes: options.prefix_bytes };
        filters.check()?;
        options.operator.as_deref().map_or(Ok(()), check_operator_name)?;
        let (block_bytes, no_id) = (options.block_bytes, 0);
        let table = TableOptions { block_bytes, codec, ..TableOptions::default() };
        let table = filters.table_options(&table, no_id);
        let env = Arc::clone(&options.env);
        let path = directory::absolute(&*env, path.as_ref())?;
        let writer = table::TableWriter::create(&env, &path, OUTSIDE, &table)?;
        Ok(TableWriter {
            writer: Some(writer),
            env,
            path,
            last_key: Vec::new(),
            operator: options.operator.clone(),
            operators: options.operators.clone(),
            has_operands: false,
            range_deletes: Vec::new(),
            numbered: None,
            finished: false,
            report: None,
            process: Process::here(),
        })
    }

    pub(super) fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Calls `report` with the number of entries so far, whenever 4096 more were added. So a long
    /// [export](crate::Snapshot::export) can show how far it is.
    pub fn on_progress(&mut self, report: impl Fn(u64) + Send + Sync + 'static) {
        self.report = Some(Report(Box::new(report)));
    }

    /// Adds an entry without a sequence number. Each key must be greater than the key before.
    ///
    /// # Errors
    /// * `InvalidArgument` if the key is not greater than the key before, if the key is empty, if
    ///   the key or the value is too long, or if an entry before has a sequence number. The entry
    ///   is skipped, and the writer can continue.
    /// * `Io` or `Full` if the file cannot be written. The writer cannot continue.
    #[doc(alias("insert", "set"))]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), EntryKind::Put, value.as_ref(), UNDATED)
    }

    /// Adds the deletion of a key: the store that ingests the table no longer has the key.
    ///
    /// # Errors
    /// As [`put`](TableWriter::put).
    #[doc(alias("remove", "erase"))]
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.add(key.as_ref(), EntryKind::Delete, &[], UNDATED)
    }

    /// Adds an entry that is there until the [clock](crate::Builder::clock) of the store that
    /// ingests it shows `time`. Only keyspaces whose entries can
    /// [expire](crate::KeyspaceOptions::expiry) ingest a table with such entries.
    ///
    /// # Errors
    /// As [`put`](TableWriter::put). `InvalidArgument` also if the table is for an
    /// [operator](TableWriterOptions::operator), because no keyspace has both.
    pub fn put_until(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: u64,
    ) -> Result<()> {
        self.add_until(key.as_ref(), value.as_ref(), time, UNDATED)
    }

    /// Adds an operand: `key` gets what the operator of the keyspace makes of it and of the value
    /// that the keyspace has beneath. See [`Combine`](crate::Combine).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # use lsmith::{IngestOptions, KeyspaceOptions, Store, TableWriter, TableWriterOptions};
    /// let file = dir.path().join("visits.table");
    /// let operator = Some("counter".to_string());
    /// let options = TableWriterOptions { operator: operator.clone(), ..Default::default() };
    /// let mut writer = TableWriter::create_with(&file, &options)?;
    /// writer.combine("/index", 5_i64.to_le_bytes())?;
    /// writer.finish()?;
    ///
    /// let store = Store::builder(dir.path().join("store")).open()?;
    /// let options = KeyspaceOptions { operator, ..Default::default() };
    /// let visits = store.keyspace_with("visits", &options)?;
    /// visits.combine("/index", 2_i64.to_le_bytes())?;
    /// store.ingest(&visits, &[file], &IngestOptions::default())?;
    /// assert_eq!(visits.get("/index")?.as_deref(), Some(&7_i64.to_le_bytes()[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](TableWriter::put). `InvalidArgument` also if the options name no
    /// [operator](TableWriterOptions::operator), or if it refuses the operand.
    pub fn combine(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.add_operand(key.as_ref(), operand.as_ref(), UNDATED)
    }

    /// Adds an entry with sequence number `seq`, from 1 to 2^61. In a store that ingests the table,
    /// the entry is older than entries of its key with greater sequence numbers, and newer than
    /// entries with smaller ones. Either all entries of a table have sequence numbers, or none has.
    ///
    /// # Errors
    /// As [`put`](TableWriter::put). `InvalidArgument` also if the sequence number is out of range,
    /// or if an entry before has none.
    pub fn put_at(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        seq: SeqNo,
    ) -> Result<()> {
        check_seq(seq)?;
        self.add(key.as_ref(), EntryKind::Put, value.as_ref(), seq)
    }

    /// Adds the deletion of a key with sequence number `seq`, from 1 to 2^61. It hides entries of
    /// the key with smaller sequence numbers.
    ///
    /// # Errors
    /// As [`put_at`](TableWriter::put_at).
    pub fn delete_at(&mut self, key: impl AsRef<[u8]>, seq: SeqNo) -> Result<()> {
        check_seq(seq)?;
        self.add(key.as_ref(), EntryKind::Delete, &[], seq)
    }

    /// Adds an entry as [`put_until`](TableWriter::put_until) does, with sequence number `seq`,
    /// from 1 to 2^61.
    ///
    /// # Errors
    /// As [`put_until`](TableWriter::put_until) and [`put_at`](TableWriter::put_at).
    pub fn put_until_at(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: u64,
        seq: SeqNo,
    ) -> Result<()> {
        check_seq(seq)?;
        self.add_until(key.as_ref(), value.as_ref(), time, seq)
    }

    /// Adds an operand as [`combine`](TableWriter::combine) does, with sequence number `seq`,
    /// from 1 to 2^61. It applies to entries of the key with smaller sequence numbers.
    ///
    /// # Errors
    /// As [`combine`](TableWriter::combine) and [`put_at`](TableWriter::put_at).
    pub fn combine_at(
        &mut self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        seq: SeqNo,
    ) -> Result<()> {
        check_seq(seq)?;
        self.add_operand(key.as_ref(), operand.as_ref(), seq)
    }

    /// Adds a range delete. When the keyspace ingests the table, everything that it has in `range`
    /// is deleted in the same step, at the cost of one write. All entries that are ingested in the
    /// same call lie above it. Range deletes may come in any order.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # use lsmith::{IngestOptions, Store, TableWriter};
    /// let file = dir.path().join("day.table");
    /// let mut writer = TableWriter::create(&file)?;
    /// writer.delete_range(.."2026-11-25")?;
    /// writer.put("2026-11-25/1", "new")?;
    /// writer.finish()?;
    ///
    /// let store = Store::builder(dir.path().join("store")).open()?;
    /// let days = store.keyspace("days")?;
    /// days.put("2026-11-24/7", "old")?;
    /// store.ingest(&days, &[file], &IngestOptions::default())?;
    /// assert_eq!(days.iter().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the range ends before it begins, if an end of it is too long, or if an
    /// entry or a range delete before has a sequence number. An empty range deletes nothing.
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, range: impl RangeBounds<K>) -> Result<()> {
        self.delete_within(range, UNDATED)
    }

    /// Adds a range delete with sequence number `seq`, from 1 to 2^61. It hides entries in `range`
    /// with smaller sequence numbers. A keyspace with a combine operator does not ingest the table.
    ///
    /// # Errors
    /// As [`delete_range`](TableWriter::delete_range) and [`put_at`](TableWriter::put_at).
    pub fn delete_range_at<K: AsRef<[u8]>>(
        &mut self,
        range: impl RangeBounds<K>,
        seq: SeqNo,
    ) -> Result<()> {
        check_seq(seq)?;
        self.delete_within(range, seq)
    }

    fn delete_within<K: AsRef<[u8]>>(
        &mut self,
        range: impl RangeBounds<K>,
        seq: SeqNo,
    ) -> Result<()> {
        let Some((start, end)) = range_ends(range) else { return Ok(()) };
        let end = end.unwrap_or_default();
        if let Some(message) = broken_range_rule(&start, &end) {
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        self.check_numbered(seq, || {
            let shown = start.escape_ascii();
            format!("the range delete from `{shown}` on")
        })?;
        self.numbered = Some(seq != UNDATED);
        self.range_deletes.push((deleted_range(&start, &end), seq));
        Ok(())
    }

    /// Fails with `InvalidArgument` if `what`, which has the sequence number `seq`, has one and
    /// what was added before has none, or the other way round.
    fn check_numbered(&self, seq: SeqNo, what: impl FnOnce() -> String) -> Result<()> {
        let numbered = seq != UNDATED;
        if self.numbered.is_none_or(|others| others == numbered) {
            return Ok(());
        }
        let [this, others] = if numbered { ["a", "none"] } else { ["no", "one"] };
        let message = format!(
            "{} has {this} sequence number, and the entries before have {others}: expected all or \
             none to have one",
            what()
        );
        Err(Error::new(ErrorKind::InvalidArgument, message))
    }

    fn add_until(&mut self, key: &[u8], value: &[u8], time: u64, seq: SeqNo) -> Result<()> {
        if let Some(operator) = &self.operator {
            let message = format!(
                "expected no entry that expires in a table for the operator `{operator}`, found \
                 one at key `{}`",
                key.escape_ascii()
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        self.add(key, EntryKind::Expiring, &expiring_value(time, value), seq)
    }

    fn add_operand(&mut self, key: &[u8], operand: &[u8], seq: SeqNo) -> Result<()> {
        let Some(operator) = &self.operator else {
            let message = format!(
                "expected `TableWriterOptions::operator` to name the operator of operands, found \
                 none at key `{}`",
                key.escape_ascii()
            );
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        };
        self.operators.check_operand(operator, key, operand)?;
        self.add(key, EntryKind::Combine, operand, seq)?;
        self.has_operands = true;
        Ok(())
    }

    fn add(&mut self, key: &[u8], kind: EntryKind, value: &[u8], seq: SeqNo) -> Result<()> {
        self.check_here()?;
        check_entry(key, value, &self.last_key)?;
        self.check_numbered(seq, || format!("key `{}`", key.escape_ascii()))?;
        let Some(writer) = &mut self.writer else { return Err(self.broken()) };
        let added = writer.add(EntryRef { key, seq, kind, value });
        let entries = writer.entries();
        added.inspect_err(|_| self.writer = None)?;
        self.numbered = Some(seq != UNDATED);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        // Last, because a report that panics must leave the writer as it is after the entry.
        if let Some(Report(report)) = &self.report
            && entries.is_multiple_of(ENTRIES_PER_REPORT)
        {
            report(entries);
        }
        Ok(())
    }

    /// Writes the rest of the file. When the call returns, the file and its name survive power
    /// loss.
    ///
    /// # Errors
    /// `InvalidArgument` if no entry was added; `Io` or `Full`. The file is removed then.
    pub fn finish(mut self) -> Result<Loaded> {
        self.check_here()?;
        if self.last_key.is_empty() {
            let message = "a table has at least one entry, found none: `IngestOptions::replace` \
                           deletes a range without entries";
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(&self.path));
        }
        let Some(mut writer) = self.writer.take() else { return Err(self.broken()) };
        if let Some(operator) = self.operator.as_ref().filter(|_| self.has_operands) {
            writer.set_operator(operator);
        }
        writer.set_range_deletes(std::mem::take(&mut self.range_deletes));
        let facts = writer.finish()?;
        directory::sync(&*self.env, self.path.parent().unwrap_or(Path::new("")))?;
        self.finished = true;
        Ok(Loaded {
            entries: facts.size.entries,
            logical_bytes: facts.size.bytes,
            tables: 1,
            table_bytes: facts.file_bytes,
        })
    }

    /// Fails in a child of the process that made the file.
    fn check_here(&self) -> Result<()> {
        if self.process.is_here() {
            return Ok(());
        }
        let message = "the table was begun by the parent of this process: begin it after the fork";
        Err(Error::new(ErrorKind::InvalidArgument, message).at(&self.path))
    }

    fn broken(&self) -> Error {
        Error::new(ErrorKind::Io, "a write of the table failed earlier").at(&self.path)
    }
}

/// Fails with `InvalidArgument` if an entry from outside cannot have the sequence number `seq`.
fn check_seq(seq: SeqNo) -> Result<()> {
    if (SeqNo(1)..=ARRIVING_SEQ_MAX).contains(&seq) {
        return Ok(());
    }
    let message = format!("expected a sequence number from 1 to {ARRIVING_SEQ_MAX}, found {seq}");
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        drop(self.writer.take());
        if !self.finished && self.process.is_here() {
            panics::logged("the environment", || {
                directory::remove(&*self.env, &self.path, "a table that was not finished");
            });
        }
    }
}
