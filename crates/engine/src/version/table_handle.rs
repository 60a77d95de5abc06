//! An open table that removes its file when it is obsolete and no longer read.

use crate::env::Env;
use crate::error::Result;
use crate::names::{FileKind, numbered};
use crate::table::{BlockCache, Table};
use lsmith_tree::TableId;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An open table. Dropping the last handle of an obsolete one removes the file.
#[derive(Debug)]
pub(crate) struct TableHandle {
    table: Arc<Table>,
    id: TableId,
    path: PathBuf,
    env: Arc<dyn Env>,
    cache: Arc<BlockCache>,
    obsolete: AtomicBool,
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
        Ok(Arc::new(TableHandle {
            table: Table::open(env, &path, id.0, Arc::clone(cache))?,
            id,
            path,
            env: Arc::clone(env),
            cache: Arc::clone(cache),
            obsolete: AtomicBool::new(false),
        }))
    }

    /// The table.
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The number of the table.
    pub(crate) fn number(&self) -> u64 {
        self.id.0
    }

    /// Bytes of the file.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.table.facts().file_bytes
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
        self.cache.remove_table(self.id.0);
        // A file that stays costs space only, and the next opening removes it.
        if let Err(error) = self.env.remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove an obsolete table");
        }
    }
}
