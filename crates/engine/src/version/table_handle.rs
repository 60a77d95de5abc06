//! An open table, which removes its file when it is obsolete and no longer read.

use crate::leases::Leases;
use crate::values::{TableValues, ValueFiles, ValueHandle};
use lsmith_storage::env::{Env, PAGE_BYTES};
use lsmith_storage::error::Result;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::panics;
use lsmith_storage::spans::Spans;
use lsmith_storage::sync::Mutex;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lsmith_storage::table::{AppendTable, BlockCache, OpenTable, ReadTable};
use lsmith_tree::{KeyRange, SeqNo, Slice, TableId};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Unused pages are not freed while they make up less than this part (1 of 16) of the data blocks.
const UNUSED_PARTS: u64 = 16;

/// Where the tables of a store are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TablePlace<'a> {
    pub(crate) env: &'a Arc<dyn Env>,
    pub(crate) dir: &'a Path,
    pub(crate) cache: &'a Arc<BlockCache>,
    pub(crate) leases: &'a Arc<Leases>,
    pub(crate) values: &'a Arc<ValueFiles>,
}

/// An open table: a sorted one, or one root of an append table. Dropping the last handle of an
/// obsolete file removes it.
#[derive(Debug)]
pub(crate) struct TableHandle {
    table: OpenTable,
    file: Arc<HeldFile>,
    /// The value files that the table refers to.
    values: Vec<TableValues>,
    /// True if the file had a root before this one.
    is_next_root: bool,
    file_bytes: u64,
    /// Bytes of the file that were freed.
    punched_bytes: AtomicU64,
    space: Mutex<FileSpace>,
}

/// The file of a table. The handles of all roots of an append table share it. The last one to be
/// dropped removes the file if it is obsolete.
#[derive(Debug)]
struct HeldFile {
    id: TableId,
    path: PathBuf,
    env: Arc<dyn Env>,
    leases: Arc<Leases>,
    obsolete: AtomicBool,
}

impl HeldFile {
    fn is_obsolete(&self) -> bool {
        self.obsolete.load(Ordering::Acquire)
    }

    /// Returns true if no other name leads to the file. Only a checkpoint of this store can give it
    /// one, and that holds the version whose blocks it needs.
    fn has_one_name(&self) -> bool {
        self.env.link_count(&self.path).is_ok_and(|names| names == 1)
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        if !self.is_obsolete() {
            return;
        }
        // A panic may be dropping this handle and others. A second panic would end the process.
        panics::logged("the environment", || {
            self.leases.remove(self.id.0, std::mem::take(&mut self.path), "an obsolete table");
        });
    }
}

/// The unused parts of a table's file.
#[derive(Debug, Default)]
struct FileSpace {
    /// Bytes of blocks that no slice needs.
    dead_bytes: u64,
    /// Pages that were freed, or are queued to be.
    asked: Spans,
}

impl TableHandle {
    /// Returns a sequence number that no entry exceeds.
    #[inline]
    pub(crate) fn newest(&self) -> SeqNo {
        self.table.tree_table().seq_max
    }

    /// Opens the sorted table `id` in `place`.
    pub(crate) fn open(place: &TablePlace<'_>, id: TableId) -> Result<Arc<TableHandle>> {
        TableHandle::open_root(place, id, 0)
    }

    /// Opens table `id` in `place`: the root with this name, or a sorted table if `root` is 0.
    pub(crate) fn open_root(
        place: &TablePlace<'_>,
        id: TableId,
        root: u64,
    ) -> Result<Arc<TableHandle>> {
        let path = numbered(place.dir, FileKind::Table, id.0);
        let table = OpenTable::open(place.env, &path, id.0, root, Arc::clone(place.cache))?;
        let uses = &table.facts().value_files;
        let files: Result<Vec<_>> = uses.iter().map(|used| place.values.open(used.file)).collect();
        let values = files?.into_iter().zip(uses);
        let values = values.map(|(file, used)| TableValues::new(file, used.bytes)).collect();
        let (env, leases) = (Arc::clone(place.env), Arc::clone(place.leases));
        let file = HeldFile { id, path, env, leases, obsolete: AtomicBool::new(false) };
        Ok(TableHandle::new(table, Arc::new(file), values, false))
    }

    fn new(
        table: OpenTable,
        file: Arc<HeldFile>,
        values: Vec<TableValues>,
        is_next_root: bool,
    ) -> Arc<TableHandle> {
        Arc::new(TableHandle {
            values,
            file_bytes: table.facts().file_bytes,
            punched_bytes: AtomicU64::new(0),
            table,
            file,
            is_next_root,
            space: Mutex::default(),
        })
    }

    /// Opens the root with this name, which a batch has appended to `base`, the root of this
    /// handle.
    pub(crate) fn open_next(&self, base: &AppendTable, root: u64) -> Result<Arc<TableHandle>> {
        let table = OpenTable::Append(base.open_next(root)?);
        Ok(TableHandle::new(table, Arc::clone(&self.file), Vec::new(), true))
    }

    /// Returns true if the entries have no sequence number yet; see [`date`](TableHandle::date).
    pub(crate) fn is_undated(&self) -> bool {
        self.table.as_sorted().is_some_and(|table| table.facts().seq_max == SeqNo(0))
    }

    /// Gives all entries the sequence number `seq`. Files of a bulk load hold no sequence numbers.
    pub(crate) fn date(&mut self, seq: SeqNo) {
        self.table.set_seq(seq);
    }

    /// Returns a slice that shows all of the table.
    pub(crate) fn whole(&self) -> Slice {
        Slice::whole(Arc::clone(self.table.tree_table()))
    }

    /// Returns the table.
    pub(crate) fn table(&self) -> &OpenTable {
        &self.table
    }

    /// Returns the id of the table; its file has the same id.
    pub(crate) fn file_id(&self) -> u64 {
        self.file.id.0
    }

    /// Returns the bytes that the file takes on its device, without the freed ones.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.file_bytes - self.punched_bytes.load(Ordering::Relaxed)
    }

    /// Returns two numbers of bytes: unneeded and not yet freed, and freed.
    pub(crate) fn dead_and_punched_bytes(&self) -> (u64, u64) {
        let punched_bytes = self.punched_bytes.load(Ordering::Relaxed);
        (self.space.lock().dead_bytes.saturating_sub(punched_bytes), punched_bytes)
    }

    /// Returns the share of the bytes of data blocks that slices need, from 0 to 1.
    pub(crate) fn live_share(&self) -> f64 {
        let data_bytes = self.table.facts().data_bytes;
        (data_bytes - self.space.lock().dead_bytes) as f64 / data_bytes as f64
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.file.path
    }

    /// Records that slices show `ranges` of the table, which are disjoint and in key order. Returns
    /// byte ranges of unused pages that the caller must free. No two calls return the same page.
    /// Returns nothing while they are few: each hole costs a system call, and their neighbours, or
    /// the whole table, may become unused soon. Returns nothing for tables that were written
    /// outside of the store.
    pub(crate) fn show_only(&self, ranges: &[KeyRange]) -> Vec<Range<u64>> {
        let dead = self.table.dead_places(ranges);
        let mut space = self.space.lock();
        space.dead_bytes = dead.iter().map(|place| place.end - place.start).sum();
        if !self.values.is_empty() && !self.file.is_obsolete() {
            let data_bytes = self.table.facts().data_bytes;
            let share = (data_bytes - space.dead_bytes) as f64 / data_bytes as f64;
            self.values.iter().for_each(|values| values.show(share));
        }
        // Its file may have other names, even in another store, where these blocks are needed.
        if self.table.is_from_outside() {
            return Vec::new();
        }
        let page = |place: &Range<u64>| {
            let end = place.end / PAGE_BYTES * PAGE_BYTES;
            place.start.next_multiple_of(PAGE_BYTES)..end
        };
        let pages = dead.iter().map(page).filter(|pages| !pages.is_empty());
        let new: Vec<_> = pages.flat_map(|pages| space.asked.gaps_in(pages)).collect();
        let bytes: u64 = new.iter().map(|pages| pages.end - pages.start).sum();
        if bytes * UNUSED_PARTS < self.table.facts().data_bytes {
            return Vec::new();
        }
        new.iter().for_each(|pages| space.asked.add(pages.clone()));
        new
    }

    /// Frees `places`, byte ranges of the file, on its device. Does nothing for an obsolete table,
    /// and for a file that has, or may have, a name in another store: a checkpoint shows blocks
    /// that this store no longer needs.
    ///
    /// # Errors
    /// Fails as [`Env::punch`] does. Some of the places may then have been freed.
    pub(crate) fn punch(&self, places: &[Range<u64>]) -> io::Result<()> {
        if !self.file.is_obsolete() && self.file.has_one_name() {
            self.file.env.punch_all(&self.file.path, places)?;
            let bytes: u64 = places.iter().map(|place| place.end - place.start).sum();
            self.punched_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Finds out how much of the file was freed while the store was open earlier.
    pub(crate) fn look_for_holes(&self) {
        let held = self.file.env.held_bytes(&self.file.path).unwrap_or(u64::MAX);
        // A file on a compressing file system takes less space too.
        let punched_bytes = self.file_bytes.saturating_sub(held).min(self.space.lock().dead_bytes);
        self.punched_bytes.store(punched_bytes, Ordering::Relaxed);
    }

    /// Marks the file as obsolete: no tree names it any more.
    pub(crate) fn retire(&self) {
        if !self.file.obsolete.swap(true, Ordering::AcqRel) {
            self.values.iter().for_each(TableValues::let_go);
        }
    }

    /// Returns the value files that the table refers to.
    pub(crate) fn value_files(&self) -> impl Iterator<Item = &Arc<ValueHandle>> {
        self.values.iter().map(TableValues::file)
    }

    /// Gives up a new table that no tree names. Its file is obsolete, unless it has an older root.
    /// The next batch is then written over this one.
    pub(crate) fn discard(&self) {
        if !self.is_next_root {
            self.retire();
        }
    }
}

impl Drop for TableHandle {
    fn drop(&mut self) {
        if self.file.is_obsolete() {
            self.table.forget_blocks();
        }
    }
}
