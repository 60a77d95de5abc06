//! Brings tables that were written outside of the store into a keyspace.

use super::{Keyspace, Loaded, Store};
use crate::context::Context;
use crate::stats::add;
use crate::version::TableHandle;
use crate::write::{ARRIVING_SEQ_MAX, Arriving, Load};
use lsmith_storage::directory;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::TableFacts;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::panics;
use lsmith_storage::table::{ReadTable, StoreTable};
use lsmith_tree::{KeyRange, SeqNo, TableId};
use std::ops::{Bound, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The two bounds of a range of keys.
type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// How [`Store::ingest`] brings files into a store.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct IngestOptions {
    /// If true, the store takes each file over by a second name (a hard link) and copies only where
    /// that is impossible, as on another device. Then nobody may change the file any more. The
    /// store does not change it either, so one file may be linked into several stores. False by
    /// default: each file is copied.
    pub link: bool,
    /// If true, tables with sequence numbers of their own may bring entries back that deletions had
    /// hidden: a merge has dropped the deletions, and the entries are older than one of them. So
    /// may tables with entries older than operands that a merge has combined, which then apply to
    /// other entries than their sequence numbers say. False by default: such a table is refused.
    pub allow_resurrect: bool,
    /// The ranges that are replaced, as bounds of their keys.
    replaced: Vec<KeyBounds>,
}

impl IngestOptions {
    /// Replaces `range`: what the keyspace has there is deleted, in the same step as the tables
    /// come in. Their entries lie above, wherever they are. May be called several times. Without
    /// any file, the call only deletes.
    ///
    /// Tables with sequence numbers of their own say by these what they lie above, so they cannot
    /// be ingested with this option.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # use lsmith::{IngestOptions, Store, TableWriter};
    /// # let file = dir.path().join("prices.table");
    /// let mut writer = TableWriter::create(&file)?;
    /// writer.put("fruit/apple", "3")?;
    /// writer.finish()?;
    ///
    /// let store = Store::builder(dir.path().join("store")).open()?;
    /// let prices = store.keyspace("prices")?;
    /// prices.put("fruit/banana", "4")?;
    /// prices.put("tea/green", "5")?;
    /// let options = IngestOptions::default().replace("fruit/".."fruit0");
    /// store.ingest(&prices, &[file], &options)?;
    /// assert_eq!(prices.get("fruit/banana")?, None);
    /// assert_eq!(prices.iter().count(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn replace<K: AsRef<[u8]>>(mut self, range: impl RangeBounds<K>) -> IngestOptions {
        let bound = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        self.replaced.push((bound(range.start_bound()), bound(range.end_bound())));
        self
    }

    /// Sets [`link`](IngestOptions::link).
    #[must_use]
    pub fn link(mut self, link: bool) -> IngestOptions {
        self.link = link;
        self
    }

    /// Sets [`allow_resurrect`](IngestOptions::allow_resurrect).
    #[must_use]
    pub fn allow_resurrect(mut self, allow: bool) -> IngestOptions {
        self.allow_resurrect = allow;
        self
    }
}

/// The files that [`Store::ingest_together`] brings into one of the keyspaces.
#[derive(Debug)]
pub struct Ingest<'a> {
    keyspace: &'a Keyspace,
    files: Vec<PathBuf>,
    options: IngestOptions,
}

impl<'a> Ingest<'a> {
    /// Brings `files`, in any order, into `keyspace`, with the default options.
    pub fn new<P: AsRef<Path>>(keyspace: &'a Keyspace, files: &[P]) -> Ingest<'a> {
        let files = files.iter().map(|file| file.as_ref().to_path_buf()).collect();
        Ingest { keyspace, files, options: IngestOptions::default() }
    }

    /// Sets how the files are brought in, and what is replaced in the keyspace. Default:
    /// [`IngestOptions::default`].
    #[must_use]
    pub fn options(mut self, options: IngestOptions) -> Ingest<'a> {
        self.options = options;
        self
    }
}

impl Store {
    /// Makes the entries of `files` part of `keyspace`, all at once. The files are tables of a
    /// [`TableWriter`](crate::TableWriter), in any order. When the call returns, their entries
    /// survive power loss. Each file is read and checked as a whole first.
    ///
    /// If the tables have no sequence numbers, their entries are newer than every earlier write and
    /// older than every later one. Entries in memory within the key range of a file are flushed
    /// first. The tables become the newest run of level 0.
    ///
    /// If the tables have sequence numbers of their own, these say what is newer. The keyspace must
    /// [keep sequence numbers](crate::KeyspaceOptions::keep_numbers). The store's counter rises
    /// above the greatest sequence number, so later writes are newer. The sequence numbers of a
    /// table decide its place. If they interleave with sequence numbers that the keyspace has in
    /// the range, the call merges the two. Snapshots from before the call do not see the tables,
    /// however old the entries are.
    ///
    /// # Errors
    /// Nothing is ingested then, unless the store is `Poisoned`:
    ///
    /// * `Corruption` if a file is damaged, is no table, or holds the table of a store;
    ///   `Unsupported` if it has another format version. The error names the file.
    /// * `InvalidArgument` if two files share a part of their key ranges, if only some have
    ///   sequence numbers, if the keyspace belongs to another store or to a group, or if other
    ///   writers keep writing keys within the ranges.
    /// * `InvalidArgument` if a range that is [replaced](IngestOptions::replace) ends before it
    ///   begins, or if an end of it is too long.
    /// * `InvalidArgument` if a table has entries that expire and the keyspace has no expiry, or if
    ///   it has operands and the keyspace has no operator for them. The error names the file.
    /// * `InvalidArgument` for tables with sequence numbers of their own, if the keyspace forgets
    ///   sequence numbers; if an entry differs from one with its key and sequence number in the
    ///   keyspace; or if a deletion that was dropped could have hidden an entry, or an operand that
    ///   was combined could have applied to it, unless
    ///   [`allow_resurrect`](IngestOptions::allow_resurrect) is set.
    /// * `ReadOnly` if the store was opened for reading only; `Poisoned` if an earlier write of the
    ///   log or the manifest failed.
    /// * `Io` or `Full` if a file cannot be read, copied or merged. Otherwise as
    ///   [`Keyspace::flush`].
    pub fn ingest<P: AsRef<Path>>(
        &self,
        keyspace: &Keyspace,
        files: &[P],
        options: &IngestOptions,
    ) -> Result<Loaded> {
        self.ingest_together(&[Ingest::new(keyspace, files).options(options.clone())])
    }

    /// Makes the entries of tables part of several keyspaces, all at once: what each of `ingests`
    /// does alone by [`ingest`](Store::ingest) takes effect in one step, for snapshots, for readers
    /// in other processes and after power loss. Returns the sums.
    ///
    /// Two reads without a snapshot are two moments: the first may find the tables in its keyspace
    /// just before they appear in the keyspace of the second.
    ///
    /// Tables with sequence numbers of their own can only be ingested into one keyspace at a time.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # use lsmith::{Ingest, Store, TableWriter};
    /// # let (rows, index) = (dir.path().join("rows.table"), dir.path().join("index.table"));
    /// let mut writer = TableWriter::create(&rows)?;
    /// writer.put("7", "pear, green")?;
    /// writer.finish()?;
    /// let mut writer = TableWriter::create(&index)?;
    /// writer.put("green/7", "")?;
    /// writer.finish()?;
    ///
    /// let store = Store::builder(dir.path().join("store")).open()?;
    /// let (fruit, colours) = (store.keyspace("fruit")?, store.keyspace("colours")?);
    /// store.ingest_together(&[Ingest::new(&fruit, &[rows]), Ingest::new(&colours, &[index])])?;
    /// assert!(fruit.get("7")?.is_some() && colours.get("green/7")?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`ingest`](Store::ingest); then nothing is ingested, into any keyspace. `InvalidArgument`
    /// also if two of `ingests` have the same keyspace, or if there are several and a table has
    /// sequence numbers.
    pub fn ingest_together(&self, ingests: &[Ingest<'_>]) -> Result<Loaded> {
        let context = self.context();
        let files: usize = ingests.iter().map(|ingest| ingest.files.len()).sum();
        let name = ingests.first().map(|ingest| ingest.keyspace.name());
        let _span = tracing::info_span!("ingest", keyspace = name, files).entered();
        context.check_writable()?;
        self.check_may_ingest(ingests)?;
        let brought = ingests.iter().map(|ingest| self.bring(ingest, ingests.len() > 1));
        let mut brought: Vec<Brought<'_>> = brought.collect::<Result<_>>()?;
        brought.retain(|part| !part.arrivals.tables.is_empty() || !part.replaced.is_empty());
        if brought.is_empty() {
            return Ok(Loaded::default());
        }
        directory::sync(&*context.options.env, &context.options.dir)?;
        let mut loaded = Loaded::default();
        let all = brought.iter().flat_map(|part| &part.arrivals.tables);
        for facts in all.map(|(_, table)| table.table().facts()) {
            loaded.tables += 1;
            loaded.entries += facts.size.entries;
            loaded.logical_bytes += facts.size.bytes;
            loaded.table_bytes += facts.file_bytes;
        }
        let write_path = &self.engine().write_path;
        if brought[0].is_numbered {
            let Brought { keyspace, arrivals, resurrects, .. } = brought.remove(0);
            let tables = arrivals.hand_over().into_iter();
            let arriving = tables.map(|(file, table)| Arriving::new(file, table)).collect();
            write_path.ingest(keyspace.shared(), arriving, resurrects)?;
        } else {
            write_path.load(brought.into_iter().map(Brought::into_load).collect())?;
        }
        add(&context.counts.load_bytes, loaded.table_bytes);
        Ok(loaded)
    }

    /// Brings the files of `ingest` into the directory of the store, and checks them. `has_company`
    /// says that files for other keyspaces come with them.
    fn bring<'a>(&'a self, ingest: &Ingest<'a>, has_company: bool) -> Result<Brought<'a>> {
        let context = self.context();
        let Ingest { keyspace, ref files, ref options } = *ingest;
        let replaced = options.replaced.iter().map(|range| keyspace.deletable(range.clone()));
        let replaced: Vec<Option<KeyRange>> = replaced.collect::<Result<_>>()?;
        let replaced: Vec<KeyRange> = replaced.into_iter().flatten().collect();
        let mut arrivals = Arrivals { context, tables: Vec::new(), created: Vec::new() };
        for file in files {
            arrivals.bring(&directory::absolute(&*context.options.env, file)?, options)?;
        }
        arrivals.check_kinds(keyspace)?;
        let is_numbered = arrivals.are_numbered(keyspace)?;
        let reason = match () {
            () if has_company => {
                Some("several keyspaces ingest: ingest these in a call of their own")
            }
            () if replaced.is_empty() => None,
            () => Some("a range is replaced: those of these tables say what they lie above"),
        };
        if let (true, Some(reason)) = (is_numbered, reason) {
            let message = format!("expected tables without sequence numbers, because {reason}");
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(&arrivals.tables[0].0));
        }
        let ranges = arrivals.sorted_ranges()?;
        let resurrects = options.allow_resurrect;
        Ok(Brought { keyspace, arrivals, ranges, replaced, is_numbered, resurrects })
    }

    fn check_may_ingest(&self, ingests: &[Ingest<'_>]) -> Result<()> {
        let refuse = |message: String| Err(Error::new(ErrorKind::InvalidArgument, message));
        for (index, Ingest { keyspace, .. }) in ingests.iter().enumerate() {
            let name = keyspace.name();
            if !Arc::ptr_eq(self.context(), keyspace.store().context()) {
                return refuse(format!("keyspace {name} is of another store"));
            }
            // Keys of a group have an id in front, which the files lack.
            if let Some(group) = keyspace.group() {
                return refuse(format!(
                    "keyspace {name} is in group {group}, which cannot ingest; use a bulk load"
                ));
            }
            let is_same = |other: &Ingest<'_>| other.keyspace.shared().id == keyspace.shared().id;
            if ingests[..index].iter().any(is_same) {
                return refuse(format!(
                    "expected different keyspaces, found {name} twice: name all its files at once"
                ));
            }
        }
        Ok(())
    }
}

/// What [`bring`](Store::bring) has brought and checked.
struct Brought<'a> {
    keyspace: &'a Keyspace,
    arrivals: Arrivals<'a>,
    /// The key range of each table, in order.
    ranges: Vec<KeyRange>,
    replaced: Vec<KeyRange>,
    is_numbered: bool,
    resurrects: bool,
}

impl Brought<'_> {
    /// Returns the load of the tables, which have no sequence numbers. What they delete is
    /// replaced.
    fn into_load(self) -> Load {
        let Brought { keyspace, arrivals, ranges, mut replaced, .. } = self;
        let tables = arrivals.hand_over().into_iter().map(|(_, table)| table);
        let tables: Vec<Arc<TableHandle>> = tables.collect();
        let range_deletes = tables.iter().flat_map(|table| &table.table().facts().range_deletes);
        replaced.extend(range_deletes.map(|(range, _)| range.clone()));
        Load { keyspace: Arc::clone(keyspace.shared()), tables, ranges, replaced }
    }
}

/// Files that are in the directory of the store, and not yet in its tree. Dropping it removes them.
struct Arrivals<'a> {
    context: &'a Arc<Context>,
    /// The path of each file that was brought, and its table in the store.
    tables: Vec<(PathBuf, Arc<TableHandle>)>,
    /// The ids of all files that were made.
    created: Vec<u64>,
}

impl Arrivals<'_> {
    /// Links or copies `file`, and checks it.
    fn bring(&mut self, file: &Path, options: &IngestOptions) -> Result<()> {
        let context = self.context;
        let env = &context.options.env;
        let (file_id, linked) = context.make_numbered(FileKind::Table, |path, _| {
            if options.link && env.link(file, path).is_ok() {
                return Ok(true);
            }
            let bytes = env.file_bytes(file).map_err(|error| Error::io("measure", file, error))?;
            directory::copy((&**env, file), (&**env, path), bytes, |_| ())?;
            Ok(false)
        })?;
        self.created.push(file_id);
        let path = numbered(&context.options.dir, FileKind::Table, file_id);
        if linked {
            // The process that wrote the file need not have synced it.
            env.sync_file(&path).map_err(|error| Error::io("sync", file, error))?;
        }
        let table = self.checked(file_id);
        // The user knows the file under the other name.
        let table = table.map_err(|error| match error.path() {
            Some(found) if found == path => error.said_again("").at(file),
            _ => error,
        })?;
        self.tables.push((file.to_path_buf(), table));
        Ok(())
    }

    /// Opens table `file_id` and reads all of it.
    fn checked(&self, file_id: u64) -> Result<Arc<TableHandle>> {
        let path = numbered(&self.context.options.dir, FileKind::Table, file_id);
        if let Some(own) = StoreTable::of(&*self.context.options.env, &path)? {
            let kind = if own.is_append { "append table" } else { "table" };
            let message = format!(
                "expected a table written outside of a store, found {kind} {} of a store: export \
                 its entries, and ingest that",
                own.table_id
            );
            return Err(Error::corruption(&path, 0, message));
        }
        let handle = TableHandle::open(&self.context.tables(), TableId(file_id))?;
        let table = handle.table();
        table.verify(&[KeyRange::ALL])?;
        let TableFacts { seq_min, seq_max, range_deletes, .. } = table.facts();
        let is_mixed = *seq_min == SeqNo(0) && *seq_max > SeqNo(0);
        let is_dated = |seq: SeqNo| (SeqNo(1)..=ARRIVING_SEQ_MAX).contains(&seq);
        let fits = |seq: SeqNo| if *seq_max > SeqNo(0) { is_dated(seq) } else { seq == SeqNo(0) };
        if is_mixed
            || *seq_max > ARRIVING_SEQ_MAX
            || !range_deletes.iter().all(|(_, seq)| fits(*seq))
        {
            let message = format!(
                "expected no sequence numbers, or numbers from 1 to {ARRIVING_SEQ_MAX}, found \
                 {seq_min} to {seq_max}"
            );
            return Err(Error::corruption(&path, 0, message));
        }
        Ok(handle)
    }

    /// Fails with `InvalidArgument` if a table has entries that expire, or operands, which no entry
    /// of `keyspace` can be.
    fn check_kinds(&self, keyspace: &Keyspace) -> Result<()> {
        let refuse = |message: String, file: &Path| {
            Err(Error::new(ErrorKind::InvalidArgument, message).at(file))
        };
        let name = keyspace.name();
        for (file, table) in &self.tables {
            let TableFacts { has_expiring, operator, .. } = table.table().facts();
            if *has_expiring && keyspace.expiry().is_none() {
                let message = format!(
                    "expected no entries that expire, because those of the keyspace `{name}` \
                     cannot, found some: make one with `expiry`"
                );
                return refuse(message, file);
            }
            let Some(found) = operator else { continue };
            let expected = match keyspace.operator() {
                Some(own) if own == *found => continue,
                Some(own) => format!("operands for the operator `{own}` of"),
                None => "no operands for".to_string(),
            };
            let message =
                format!("expected {expected} the keyspace `{name}`, found some for `{found}`");
            return refuse(message, file);
        }
        Ok(())
    }

    /// Returns true if the tables have sequence numbers, false if none has.
    ///
    /// # Errors
    /// `InvalidArgument` if only some have, or if `keyspace` cannot take them.
    fn are_numbered(&self, keyspace: &Keyspace) -> Result<bool> {
        let refuse = |message: String, file: &Path| {
            Err(Error::new(ErrorKind::InvalidArgument, message).at(file))
        };
        let Some(first) = self.tables.first() else { return Ok(false) };
        let numbered = !first.1.is_undated();
        if let Some(other) = self.tables.iter().find(|(_, table)| table.is_undated() == numbered) {
            let [with, without] = if numbered { [first, other] } else { [other, first] };
            let message = format!(
                "the entries have sequence numbers, and those of {} have none: ingest the two in \
                 calls of their own",
                without.0.display()
            );
            return refuse(message, &with.0);
        }
        if numbered && !keyspace.shared().keeps_seqs {
            let message = format!(
                "the entries have sequence numbers, which the keyspace {} forgets: make one with \
                 `keep_numbers`, or a table without numbers",
                keyspace.name()
            );
            return refuse(message, &first.0);
        }
        let hides = |table: &Arc<TableHandle>| !table.table().facts().range_deletes.is_empty();
        let hiding = self.tables.iter().find(|(_, table)| numbered && hides(table));
        if let (Some((file, _)), Some(operator)) = (hiding, keyspace.operator()) {
            let message = format!(
                "expected no range deletes with sequence numbers, because merges of the keyspace \
                 `{}` join operands for `{operator}`, older and newer ones",
                keyspace.name()
            );
            return refuse(message, file);
        }
        Ok(numbered)
    }

    /// Brings the tables into key order. Returns the key range of each.
    ///
    /// # Errors
    /// `InvalidArgument` if two ranges overlap.
    fn sorted_ranges(&mut self) -> Result<Vec<KeyRange>> {
        let range = |(_, table): &(PathBuf, Arc<TableHandle>)| {
            let range = &table.table().tree_table().range;
            range.clone()
        };
        self.tables.sort_by_cached_key(|table| range(table).start);
        let ranges: Vec<KeyRange> = self.tables.iter().map(range).collect();
        let clash = ranges.windows(2).position(|pair| pair[0].overlaps(&pair[1]));
        let Some(index) = clash else { return Ok(ranges) };
        let message = format!(
            "files {} and {} share keys from `{}` on: which is newer is unknown; ingest them one \
             after the other",
            self.tables[index].0.display(),
            self.tables[index + 1].0.display(),
            ranges[index + 1].start.escape_ascii()
        );
        Err(Error::new(ErrorKind::InvalidArgument, message))
    }

    /// Returns the tables. From here on their handles decide whether the files are removed.
    fn hand_over(mut self) -> Vec<(PathBuf, Arc<TableHandle>)> {
        self.created.clear();
        std::mem::take(&mut self.tables)
    }
}

impl Drop for Arrivals<'_> {
    fn drop(&mut self) {
        self.tables.clear();
        let options = &self.context.options;
        for &file_id in &self.created {
            let path = numbered(&options.dir, FileKind::Table, file_id);
            panics::logged("the environment", || {
                directory::remove(&*options.env, &path, "a table that was not ingested");
            });
        }
    }
}
