//! Stores with one run each, of the same entries.

use crate::keys::key;
use lsmith::env::RealEnv;
use lsmith::{Builder, DEFAULT_KEYSPACE, Keyspace, PersistMode, Result, Store};
use rustix::fs::{Advice, fadvise, fdatasync};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// Batches of a tree.
pub(crate) const BATCHES: u64 = 10;

/// How a run came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A sorted table.
    Sorted,
    /// A tree to which each batch added a tenth of the keys.
    Grown,
    /// A tree with all keys, after ten batches that each updated a tenth.
    Updated,
}

impl Shape {
    pub(crate) const ALL: [Shape; 3] = [Shape::Sorted, Shape::Grown, Shape::Updated];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Shape::Sorted => "sorted",
            Shape::Grown => "tree of 10 batches",
            Shape::Updated => "tree with 10 batches of updates",
        }
    }
}

/// A closed store.
pub(crate) struct Made {
    dir: TempDir,
}

/// One tree takes everything in.
pub(crate) const TREE: &str = "jungle(c=1000, ratio=10, table=1GiB)";

fn builder(dir: &Path) -> Builder {
    Store::builder(dir).lockstep(true).memtable_bytes(1 << 30).log_bytes(1 << 30)
}

impl Made {
    /// Makes a store with `entries` entries.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub(crate) fn new(shape: Shape, entries: u64, value_bytes: usize) -> Result<Made> {
        let dir = tempfile::tempdir().expect("there is room");
        let policy = if shape == Shape::Sorted { "none" } else { TREE };
        let store = builder(dir.path()).policy(policy).open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let all = || 0..entries;
        match shape {
            Shape::Sorted => put(&keyspace, all(), value_bytes)?,
            Shape::Grown => {}
            Shape::Updated => put(&keyspace, all(), value_bytes)?,
        }
        if shape != Shape::Sorted {
            for batch in 0..BATCHES {
                put(&keyspace, all().skip(batch as usize).step_by(BATCHES as usize), value_bytes)?;
            }
        }
        store.persist(PersistMode::SyncAll)?;
        let tree = keyspace.tree();
        let slices = tree.disk_runs().map(|run| run.slices().len()).sum::<usize>();
        let is_tree =
            tree.disk_runs().any(|run| run.slices().iter().any(|slice| slice.is_append()));
        assert!(slices == 1 && is_tree == (shape != Shape::Sorted), "{tree}");
        drop((keyspace, store));
        Ok(Made { dir })
    }

    /// Opens the store for reading.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub(crate) fn open(&self, is_mapped: bool) -> Result<(Store, Keyspace)> {
        let env = if is_mapped { RealEnv::new() } else { RealEnv::new().unmapped() };
        let store = builder(self.dir.path()).env(Arc::new(env)).read_only(true).open()?;
        let keyspace = store.existing_keyspace(DEFAULT_KEYSPACE)?;
        Ok((store, keyspace))
    }

    /// Drops the tables from the page cache. The store must be closed.
    pub(crate) fn drop_pages(&self) {
        for entry in std::fs::read_dir(self.dir.path()).expect("the folder is there") {
            let path = entry.expect("the folder is there").path();
            if path.extension().is_some_and(|extension| extension == "table") {
                let file = std::fs::File::open(path).expect("the file is there");
                fdatasync(&file).expect("the device works");
                fadvise(&file, 0, None, Advice::DontNeed).expect("the system takes advice");
            }
        }
    }
}

/// Puts entries into the keyspace, and flushes them.
fn put(keyspace: &Keyspace, numbers: impl Iterator<Item = u64>, value_bytes: usize) -> Result<()> {
    for number in numbers {
        keyspace.put(key(number), vec![number as u8; value_bytes])?;
    }
    keyspace.flush()
}
