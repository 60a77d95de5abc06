//! A snapshot: a directory with a store that nobody writes.

use crate::state_machine::Applied;
use crate::state_machine::State;
use lsmith::Store;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A snapshot of the state machine. The directory goes when the last handle does, so a snapshot
/// that is being sent outlives the next one. Snapshots do not survive a restart: the state does,
/// and another snapshot of it costs little.
#[derive(Clone, Debug)]
pub struct SnapshotDir(Arc<TempDir>);

impl SnapshotDir {
    /// Makes an empty directory for a snapshot in `parent`.
    ///
    /// # Errors
    /// As making a directory.
    pub fn new(parent: &Path) -> io::Result<SnapshotDir> {
        Ok(SnapshotDir(Arc::new(tempfile::tempdir_in(parent)?)))
    }

    /// Returns where the store of the snapshot is.
    pub fn path(&self) -> PathBuf {
        self.0.path().join("store")
    }

    /// Returns the names of the files of the store and their lengths in bytes. Leaves out folders,
    /// which belong to readers of the store.
    ///
    /// # Errors
    /// As reading a directory.
    pub fn files(&self) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.path())? {
            let entry = entry?;
            let about = entry.metadata()?;
            let name = entry.file_name().into_string();
            let name = name.map_err(|name| io::Error::other(format!("strange name {name:?}")))?;
            if about.is_file() {
                files.push((name, about.len()));
            }
        }
        Ok(files)
    }

    /// Returns what the snapshot says is applied in it.
    ///
    /// # Errors
    /// As opening and reading a store: what was received may be damaged.
    pub fn applied(&self) -> io::Result<Applied> {
        let store = Store::builder(self.path()).read_only(true).open().map_err(io::Error::other)?;
        State::of(store)?.applied()
    }

    /// Copies the store to the directory `to`, which does not exist yet. The copy survives power
    /// loss. Should there be none for any reason, there is none in part.
    ///
    /// # Errors
    /// As copying files.
    pub fn copy_to(&self, to: &Path) -> io::Result<()> {
        let parent = to.parent().ok_or_else(|| io::Error::other("no parent"))?;
        let coming = SnapshotDir::new(parent)?;
        fs::create_dir(coming.path())?;
        for (name, _) in self.files()? {
            fs::copy(self.path().join(&name), coming.path().join(&name))?;
            File::open(coming.path().join(&name))?.sync_all()?;
        }
        File::open(coming.path())?.sync_all()?;
        fs::rename(coming.path(), to)?;
        File::open(parent)?.sync_all()
    }
}
