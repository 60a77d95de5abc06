//! An open table that removes its file when it is obsolete and no longer read.

use lsmith_storage::env::{Env, PAGE_BYTES};
use lsmith_storage::error::Result;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::panics;
use lsmith_storage::spans::Spans;
use lsmith_storage::sync::Mutex;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lsmith_storage::table::{BlockCache, Table};
use lsmith_tree::{KeyRange, SeqNo, Slice, TableId};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pages without use are left where they are while they are less than this part of the data blocks.
const FEW: u64 = 16;

/// An open table. Dropping the last handle of an obsolete one removes the file.
#[derive(Debug)]
pub(crate) struct TableHandle {
    table: Arc<Table>,
    id: TableId,
    path: PathBuf,
    env: Arc<dyn Env>,
    obsolete: AtomicBool,
    file_bytes: u64,
    /// Bytes given back.
    punched_bytes: AtomicU64,
    space: Mutex<FileSpace>,
}

/// What of the file of a table is of no use.
#[derive(Debug, Default)]
struct FileSpace {
    /// Bytes of blocks that no slice needs.
    dead_bytes: u64,
    /// Pages that were given back, or are to be.
    asked: Spans,
}

impl TableHandle {
    /// Opens table `id` in `dir`.
    pub(crate) fn open(
        env: &Arc<dyn Env>,
        dir: &Path,
        id: TableId,
        cache: &Arc<BlockCache>,
    ) -> Result<Arc<TableHandle>> {
        let path = numbered(dir, FileKind::Table, id.0);
        let table = Table::open(env, &path, id.0, Arc::clone(cache))?;
        Ok(Arc::new(TableHandle {
            file_bytes: table.facts().file_bytes,
            punched_bytes: AtomicU64::new(0),
            table,
            id,
            path,
            env: Arc::clone(env),
            obsolete: AtomicBool::new(false),
            space: Mutex::default(),
        }))
    }

    /// Whether the entries have no number yet, see [`date`](TableHandle::date).
    pub(crate) fn is_undated(&self) -> bool {
        self.table.facts().seq_max == SeqNo(0)
    }

    /// Gives all entries the number `seq`: those of a bulk load have none in their file.
    pub(crate) fn date(&mut self, seq: SeqNo) {
        Arc::get_mut(&mut self.table).expect("cursors come later").set_seq(seq);
    }

    /// Returns a slice that shows all of the table.
    pub(crate) fn whole(&self) -> Slice {
        Slice::whole(Arc::clone(self.table.tree_table()))
    }

    /// The table.
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The number of the table.
    pub(crate) fn number(&self) -> u64 {
        self.id.0
    }

    /// Bytes that the file takes on its device.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.file_bytes - self.punched_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that no slice needs and that were not given back yet, and bytes that were.
    pub(crate) fn dead_and_punched_bytes(&self) -> (u64, u64) {
        let punched_bytes = self.punched_bytes.load(Ordering::Relaxed);
        (self.space.lock().dead_bytes.saturating_sub(punched_bytes), punched_bytes)
    }

    /// The part of the data blocks that slices need.
    pub(crate) fn live_share(&self) -> f64 {
        let data_bytes = self.table.facts().data_bytes;
        (data_bytes - self.space.lock().dead_bytes) as f64 / data_bytes as f64
    }

    /// Notes that slices show `ranges` of the table, in key order and disjoint. Whole pages without
    /// any use that nobody has asked for before, to be given back; none while they are few, since
    /// each hole costs a call of the system: neighbours of them may follow, or all of the table.
    pub(crate) fn show_only(&self, ranges: &[KeyRange]) -> Vec<Range<u64>> {
        let dead = self.table.dead_places(ranges);
        let mut space = self.space.lock();
        space.dead_bytes = dead.iter().map(|place| place.end - place.start).sum();
        let page = |place: &Range<u64>| {
            let end = place.end / PAGE_BYTES * PAGE_BYTES;
            place.start.next_multiple_of(PAGE_BYTES)..end
        };
        let pages = dead.iter().map(page).filter(|pages| !pages.is_empty());
        let new: Vec<_> = pages.flat_map(|pages| space.asked.gaps_in(pages)).collect();
        let bytes: u64 = new.iter().map(|pages| pages.end - pages.start).sum();
        if bytes * FEW < self.table.facts().data_bytes {
            return Vec::new();
        }
        new.iter().for_each(|pages| space.asked.add(pages.clone()));
        new
    }

    /// Gives `places` of the file back to its device.
    ///
    /// # Errors
    /// Those of [`Env::punch`]; some of the places may have been given back.
    pub(crate) fn punch(&self, places: &[Range<u64>]) -> io::Result<()> {
        if !self.obsolete.load(Ordering::Acquire) {
            self.env.punch_all(&self.path, places)?;
            let bytes: u64 = places.iter().map(|place| place.end - place.start).sum();
            self.punched_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Looks how much of the file was given back by those who had the store open before.
    pub(crate) fn look_for_holes(&self) {
        let held = self.env.held_bytes(&self.path).unwrap_or(u64::MAX);
        // A file system that compresses holds less too.
        let punched_bytes = self.file_bytes.saturating_sub(held).min(self.space.lock().dead_bytes);
        self.punched_bytes.store(punched_bytes, Ordering::Relaxed);
    }

    /// Says that no tree names the table any more.
    pub(crate) fn retire(&self) {
        self.obsolete.store(true, Ordering::Release);
    }
}

impl Drop for TableHandle {
    fn drop(&mut self) {
        if !self.obsolete.load(Ordering::Acquire) {
            return;
        }
        self.table.forget_blocks();
        // A file that stays costs space only, and the next opening removes it. Tables go in rows,
        // and because of panics too: of two panics at a time the process would end.
        panics::logged("the environment", || {
            if let Err(error) = self.env.remove_file(&self.path) {
                let path = self.path.display();
                tracing::warn!(%path, %error, "cannot remove an obsolete table");
            }
        });
    }
}
