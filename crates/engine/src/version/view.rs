//! A tree with everything open that is needed to read it.

use super::TableHandle;
use crate::cursor::Cursor;
use crate::error::Result;
use crate::memtable::Memtable;
use crate::read::{ConcatCursor, MergingCursor, Parts};
use crate::table::{CacheFill, ReadCount};
use bytes::Bytes;
use lsmith_tree::{EntryKind, KeyRange, Run, RunId, SeqNo, Slice, Tree};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A run whose tables are open.
#[derive(Debug)]
pub(crate) struct OpenRun {
    run: Arc<Run>,
    /// The table of each slice.
    tables: Vec<Arc<TableHandle>>,
}

impl OpenRun {
    /// Opens `run`, whose tables `find` knows.
    pub(crate) fn new(run: &Arc<Run>, find: impl Fn(&Slice) -> Arc<TableHandle>) -> OpenRun {
        OpenRun { run: Arc::clone(run), tables: run.slices().iter().map(find).collect() }
    }

    /// The run.
    pub(crate) fn run(&self) -> &Arc<Run> {
        &self.run
    }

    /// The table through which `key` is visible, if there is one.
    fn table_of(&self, key: &[u8]) -> Option<&Arc<TableHandle>> {
        let slices = self.run.slices();
        let after = slices.partition_point(|slice| *slice.range().start <= *key);
        let index = after.checked_sub(1)?;
        slices[index].range().contains(key).then(|| &self.tables[index])
    }

    /// Bytes of the files that hold the part of the run within `range`, in proportion.
    pub(crate) fn file_bytes_within(&self, range: &KeyRange) -> u64 {
        let tables = self.run.slices().iter().zip(&self.tables);
        let bytes = tables.filter_map(|(slice, table)| {
            let taken = slice.clip(range)?.size().bytes;
            let all = slice.table().size.bytes.max(1);
            Some((u128::from(table.file_bytes()) * u128::from(taken) / u128::from(all)) as u64)
        });
        bytes.sum()
    }

    /// The parts of the run within `range`.
    pub(crate) fn parts(&self, range: &KeyRange, fill: CacheFill) -> RunParts {
        let tables = self.run.slices().iter().zip(&self.tables);
        let parts = tables.filter_map(|(slice, table)| {
            let clipped = slice.clip(range)?;
            Some((clipped.range().clone(), Arc::clone(table)))
        });
        RunParts { parts: parts.collect(), fill }
    }
}

/// Slices of a run with their tables, to be walked one after the other.
pub(crate) struct RunParts {
    parts: Vec<(KeyRange, Arc<TableHandle>)>,
    fill: CacheFill,
}

impl RunParts {
    /// A cursor over all parts.
    pub(crate) fn cursor(self) -> Box<dyn Cursor> {
        Box::new(ConcatCursor::new(self))
    }
}

impl Parts for RunParts {
    fn count(&self) -> usize {
        self.parts.len()
    }

    fn start(&self, index: usize) -> &[u8] {
        &self.parts[index].0.start
    }

    fn end(&self, index: usize) -> Option<&[u8]> {
        self.parts[index].0.end.as_deref()
    }

    fn open(&self, index: usize) -> Result<Box<dyn Cursor>> {
        Ok(Box::new(self.parts[index].1.table().cursor(self.fill)))
    }
}

/// What a reader needs, as of one moment. Newest first.
#[derive(Debug)]
pub(crate) struct Version {
    pub(crate) active: Arc<Memtable>,
    pub(crate) sealed: Vec<(RunId, Arc<Memtable>)>,
    pub(crate) runs: Vec<Arc<OpenRun>>,
    pub(crate) tree: Tree,
}

/// The moment that a read asks about.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment<'a> {
    /// The newest that is visible, by this number.
    Latest(&'a AtomicU64),
    /// A live snapshot.
    Snapshot(SeqNo),
}

impl Version {
    /// The value of `key` at `moment`; `None` where it is absent.
    pub(crate) fn get(
        &self,
        key: &[u8],
        moment: Moment<'_>,
        reads: &mut ReadCount,
    ) -> Result<Option<Bytes>> {
        let sealed = self.sealed.iter().map(|(_, memtable)| memtable);
        for memtable in std::iter::once(&self.active).chain(sealed) {
            let found = match moment {
                Moment::Latest(visible) => memtable.get_latest(key, visible),
                Moment::Snapshot(seq) => memtable.get(key, seq),
            };
            if let Some(version) = found {
                return Ok(present(version.kind, version.value));
            }
        }
        // What is in a table was visible when its memtable was sealed.
        let seq = match moment {
            Moment::Latest(_) => SeqNo::MAX,
            Moment::Snapshot(seq) => seq,
        };
        for run in &self.runs {
            if let Some(handle) = run.table_of(key)
                && let Some(found) = handle.table().get(key, seq, reads)?
            {
                return Ok(present(found.kind, found.value));
            }
        }
        Ok(None)
    }

    /// A cursor over all entries, newest source first.
    pub(crate) fn cursor(&self) -> MergingCursor {
        let sealed = self.sealed.iter().map(|(_, memtable)| memtable);
        let memtables = std::iter::once(&self.active).chain(sealed);
        let mut sources: Vec<Box<dyn Cursor>> =
            memtables.map(|memtable| Box::new(memtable.cursor()) as Box<dyn Cursor>).collect();
        let runs = self.runs.iter();
        sources.extend(runs.map(|run| run.parts(&KeyRange::ALL, CacheFill::Yes).cursor()));
        MergingCursor::new(sources)
    }

    /// Bytes of the files of all tables that the tree names.
    pub(crate) fn table_bytes(&self) -> u64 {
        let mut tables: Vec<_> = self.runs.iter().flat_map(|run| &run.tables).collect();
        tables.sort_unstable_by_key(|table| Arc::as_ptr(table) as usize);
        tables.dedup_by_key(|table| Arc::as_ptr(table) as usize);
        tables.iter().map(|table| table.file_bytes()).sum()
    }

    /// All open tables, some of them perhaps twice.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Arc<TableHandle>> {
        self.runs.iter().flat_map(|run| &run.tables)
    }
}

fn present(kind: EntryKind, value: Bytes) -> Option<Bytes> {
    (!kind.is_tombstone()).then_some(value)
}
