//! The bytes of sorted tables, where slices show only a part.

use super::sizes::FileSizes;
use lsmith_tree::{Run, TableId};
use std::collections::BTreeMap;

/// A file system frees whole pages.
const PAGE_BYTES: f64 = 4096.0;

/// The store frees parts of a table that together have at least this share of its blocks.
const FREED_SHARE: f64 = 1.0 / 16.0;

/// The tables that slices show parts of, and what has been freed of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Parts {
    /// Bytes that are freed, by table. Kept while the table has slices.
    freed: BTreeMap<TableId, f64>,
    /// What the slices of one tree show. In order, so that equal trees have equal sums.
    shown: BTreeMap<TableId, Shown>,
}

/// What slices show of a table.
#[derive(Clone, Copy, Debug)]
struct Shown {
    /// Logical bytes of the table, and of its slices.
    whole: f64,
    slices: f64,
    count: f64,
    /// Bytes of the file per logical byte.
    ratio: f64,
}

impl Parts {
    /// Begins to look at a tree.
    pub(super) fn begin(&mut self) {
        self.shown.clear();
    }

    /// Returns the bytes of the files of the whole sorted tables of a run. Notes the others.
    pub(super) fn whole(&mut self, run: &Run, ratio: f64) -> f64 {
        let mut whole = 0.0;
        for slice in run.slices().iter().filter(|slice| slice.table().root == 0) {
            let bytes = slice.size().bytes as f64;
            if slice.is_whole() {
                whole += bytes * ratio;
                continue;
            }
            let table = slice.table();
            let new = Shown { whole: table.size.bytes as f64, slices: 0.0, count: 0.0, ratio };
            let shown = self.shown.entry(table.id).or_insert(new);
            shown.slices += bytes;
            shown.count += 1.0;
        }
        whole
    }

    /// Returns the bytes of the files of all tables that slices show parts of, once the parts are
    /// freed that the store frees.
    pub(super) fn held(&mut self, sizes: &FileSizes) -> f64 {
        self.freed.retain(|id, _| self.shown.contains_key(id));
        let mut held = 0.0;
        for (id, shown) in &self.shown {
            let file = shown.whole * shown.ratio;
            let blocks = shown.whole * (shown.ratio - sizes.beside);
            let hidden = (1.0 - shown.slices / shown.whole.max(1.0)).max(0.0) * blocks;
            // A slice begins and ends within a page.
            let pages = (hidden - shown.count * PAGE_BYTES * sizes.share).max(0.0);
            let freed = self.freed.entry(*id).or_default();
            if pages - *freed >= blocks * FREED_SHARE {
                *freed = pages;
            }
            held += file - *freed;
        }
        held
    }
}
