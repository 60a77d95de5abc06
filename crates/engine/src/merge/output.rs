//! The tables that a plan writes.

use super::values::{Separation, ValueSink, WrittenValues};
use crate::context::Context;
use crate::options::Options;
use crate::throttle::{PACE_BYTES, Throttle};
use crate::version::TableHandle;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::directory;
use lsmith_storage::error::Result;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::table::{TableFacts, TableOptions, TableWriter};
use lsmith_tree::{CutWalk, Key, Outcome, TableId, logical_bytes};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Writes the tables of a plan, one after the other.
pub(super) struct Output<'a> {
    context: &'a Context,
    throttle: &'a Throttle,
    table: TableOptions,
    cut_bytes: Option<u64>,
    /// The entries at which a table is cut, because of the limit on memory.
    cut_entries: u64,
    /// Keys at which tables are cut whatever their size.
    cuts: CutWalk<Key>,
    /// True if tables are cut between keyspaces of a group, where the first byte of keys changes.
    cuts_keyspaces: bool,
    /// The first byte of the last key.
    keyspace: Option<u8>,
    writer: Option<TableWriter>,
    /// The key after which a full table may be cut. Empty while the table is not full.
    last_key: Vec<u8>,
    /// The ids of all files created.
    created: Vec<u64>,
    /// Where long values go.
    values: ValueSink<'a>,
    /// Logical bytes written since the last call of the throttle. `None` without a limit.
    unpaced_bytes: Option<u64>,
    /// The finished tables.
    pub(super) facts: Vec<TableFacts>,
    /// The same tables, open, once [`open_tables`](Output::open_tables) has opened them.
    pub(super) handles: Vec<Arc<TableHandle>>,
}

/// Finished tables of an output that is gone; they are not open yet.
pub(super) struct Written {
    created: Vec<u64>,
    facts: Vec<TableFacts>,
    values: WrittenValues,
}

impl Written {
    /// Returns the bytes of the files.
    pub(super) fn file_bytes(&self) -> u64 {
        let tables: u64 = self.facts.iter().map(|facts| facts.file_bytes).sum();
        tables + self.values.file_bytes
    }
}

impl<'a> Output<'a> {
    /// Returns an output without tables. A table is cut once it has `cut_bytes` logical bytes.
    /// `table` has the options of the tables.
    pub(super) fn new(
        context: &'a Context,
        throttle: &'a Throttle,
        cut_bytes: Option<u64>,
        table: TableOptions,
    ) -> Output<'a> {
        Output {
            context,
            throttle,
            cut_entries: context
                .share
                .limit()
                .table_entries(context.share.merging_threads(), &table),
            table,
            cut_bytes,
            cuts: CutWalk::default(),
            cuts_keyspaces: false,
            keyspace: None,
            writer: None,
            last_key: Vec::new(),
            created: Vec::new(),
            values: ValueSink::new(context),
            unpaced_bytes: None,
            facts: Vec::new(),
            handles: Vec::new(),
        }
    }

    /// Applies the limit on bytes written per second, if `limited` is true.
    pub(super) fn limited(mut self, limited: bool) -> Output<'a> {
        self.unpaced_bytes = limited.then_some(0);
        self
    }

    /// Cuts tables where the first byte of keys changes, if `cuts` is true.
    pub(super) fn cutting_keyspaces(mut self, cuts: bool) -> Output<'a> {
        self.cuts_keyspaces = cuts;
        self
    }

    /// Puts values into value files as `separation` says.
    pub(super) fn separating(mut self, separation: Separation) -> Output<'a> {
        self.values.separate(separation);
        self
    }

    /// Cuts tables in front of `keys`, which ascend.
    pub(super) fn cutting_at(mut self, keys: &[Key]) -> Output<'a> {
        self.cuts = CutWalk::new(keys.to_vec());
        self
    }

    fn options(&self) -> &'a Options {
        &self.context.options
    }

    fn path(&self, file_id: u64) -> PathBuf {
        numbered(&self.options().dir, FileKind::Table, file_id)
    }

    /// Adds an entry. All versions of a key go to one table.
    pub(super) fn add(&mut self, entry: EntryRef<'_>) -> Result<()> {
        self.put(entry)?;
        self.mark_full(entry.key);
        Ok(())
    }

    /// Adds an entry of a block. Tables are cut only where a block [ends](Output::end_block).
    pub(super) fn put(&mut self, entry: EntryRef<'_>) -> Result<()> {
        if let Some(bytes) = &mut self.unpaced_bytes {
            *bytes += logical_bytes(entry.key.len(), entry.value.len());
            if *bytes >= PACE_BYTES {
                self.throttle.keep_pace(std::mem::take(bytes));
            }
        }
        let is_full = !self.last_key.is_empty() && entry.key != self.last_key;
        let is_cut = self.cuts.passes(|cut| **cut <= *entry.key);
        // Both take note of the key, whatever else cuts the table.
        let enters = self.cuts_keyspaces && self.enters_keyspace(entry.key[0]);
        if is_full || is_cut || enters {
            self.finish_table()?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let env = &self.options().env;
                let (file_id, writer) =
                    self.context.make_numbered(FileKind::Table, |path, file_id| {
                        TableWriter::create(env, path, file_id, &self.table)
                    })?;
                self.created.push(file_id);
                let writer = self.writer.insert(writer);
                writer.charge(&self.context.share.merging);
                writer
            }
        };
        let mut entry = entry;
        if !self.values.stays(&entry) {
            let (placed, value_bytes) = self.values.place(entry)?;
            if let Some(bytes) = &mut self.unpaced_bytes {
                *bytes += value_bytes;
            }
            entry = placed;
        }
        // The one call, so that it is inlined.
        writer.add(entry)
    }

    /// Notes the first byte of the next key. Returns true if the last key had another one.
    fn enters_keyspace(&mut self, first: u8) -> bool {
        self.keyspace.replace(first).is_some_and(|last| last != first)
    }

    /// Ends a data block. `last_key` is the key of its last entry.
    pub(super) fn end_block(&mut self, last_key: &[u8]) -> Result<()> {
        if let Some(writer) = &mut self.writer {
            writer.end_block()?;
        }
        self.mark_full(last_key);
        Ok(())
    }

    /// Allows a cut of the table after `key` if the table is large enough.
    fn mark_full(&mut self, key: &[u8]) {
        let full = |writer: &TableWriter| {
            writer.entries() >= self.cut_entries
                || self.cut_bytes.is_some_and(|bytes| writer.logical_bytes() >= bytes)
        };
        if self.writer.as_ref().is_some_and(full) {
            self.last_key.clear();
            self.last_key.extend_from_slice(key);
        }
    }

    /// Returns the index that the table under construction will have among the finished tables.
    pub(super) fn table_index(&self) -> usize {
        self.facts.len()
    }

    /// Finishes the table under construction, if there is one.
    pub(super) fn finish_table(&mut self) -> Result<()> {
        self.last_key.clear();
        self.values.finish_file()?;
        if let Some(writer) = self.writer.take() {
            self.facts.push(writer.finish()?);
        }
        Ok(())
    }

    /// Returns the tables, for another output to [append](Output::append). No table may be under
    /// construction.
    pub(super) fn into_written(self) -> Written {
        Written { created: self.created, facts: self.facts, values: self.values.into_written() }
    }

    /// Adds the tables of `written` behind the tables of this output.
    pub(super) fn append(&mut self, written: Written) {
        self.created.extend(written.created);
        self.facts.extend(written.facts);
        self.values.append(written.values);
    }

    /// Makes the names of the files survive power loss, and opens the tables.
    pub(super) fn open_tables(&mut self) -> Result<()> {
        debug_assert!(!self.created.is_empty() || !self.values.has_files(), "values have tables");
        if self.created.is_empty() {
            return Ok(());
        }
        let Options { env, dir, .. } = self.options();
        let dir: &Path = dir;
        directory::sync(&**env, dir)?;
        for facts in &self.facts {
            let id = TableId(facts.table);
            self.handles.push(TableHandle::open(&self.context.tables(), id)?);
        }
        Ok(())
    }

    /// Adds the tables, all of them open, to `outcome`.
    pub(super) fn add_to(&self, outcome: &mut Outcome) {
        for facts in &self.facts {
            outcome.written += facts.size;
            outcome.blocks.written += facts.data_blocks;
        }
        outcome.slices.extend(self.handles.iter().map(|handle| handle.whole()));
    }

    /// Returns the bytes of all finished files.
    pub(super) fn file_bytes(&self) -> u64 {
        let tables: u64 = self.facts.iter().map(|facts| facts.file_bytes).sum();
        tables + self.values.file_bytes()
    }

    /// Removes all files of the output.
    pub(super) fn remove(mut self) {
        drop(self.writer.take());
        self.handles.clear();
        for &file_id in &self.created {
            let path = self.path(file_id);
            directory::remove(&*self.options().env, &path, "a failed output");
        }
        for path in self.values.paths() {
            directory::remove(&*self.options().env, &path, "a failed output");
        }
    }
}
