//! Recording what callers do.

use super::Store;
use crate::options::RecordOptions;
use crate::recorder::Recording;
use lsmith_storage::error::Result;
use std::path::{Path, PathBuf};

impl Store {
    /// Records the workload: from now on, operations on the keys that a hash picks are written to a
    /// new file in `folder`, whose path is returned. The workload `trace(FILE)` of the command line
    /// plays it again, under other merge policies: see `docs/recording.md`.
    ///
    /// The file has the picked keys, the lengths of values, and times, but no values. All handles
    /// are recorded, in all keyspaces. The file is written 64 KiB at a time; the death of the
    /// process loses what waits, at most some seconds. A recording that cannot go on
    /// ends, and no operation fails for it: [`Store::recording`] says why. Bulk loads, ingests and
    /// the clearing of a keyspace are not recorded.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use lsmith::{RecordOptions, Store};
    ///
    /// let store = Store::builder(dir.path().join("store")).open()?;
    /// let fruit = store.keyspace("fruit")?;
    /// let options = RecordOptions { one_in: 1, ..RecordOptions::default() };
    /// let file = store.record(dir.path().join("recordings"), &options)?;
    /// fruit.put("apple", "red")?;
    /// fruit.get("pear")?;
    /// let recording = store.stop_recording()?.expect("it was begun");
    /// assert_eq!((recording.ops, recording.path), (2, file));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if the store is being recorded, or if an option is out of range;
    /// `ReadOnly`, `Poisoned`; `Full`, `Io` if the file cannot be made.
    #[doc(alias("trace", "StartTrace"))]
    pub fn record(&self, folder: impl AsRef<Path>, options: &RecordOptions) -> Result<PathBuf> {
        self.context().check_here()?;
        self.engine().record.begin(folder.as_ref(), options)
    }

    /// Ends the recording, also one that has ended by itself, and tells of it. Returns `None` if
    /// there is none. Closing the store ends a recording too.
    ///
    /// # Errors
    /// `Full`, `Io` if the last part cannot be written. The file ends before it then.
    pub fn stop_recording(&self) -> Result<Option<Recording>> {
        self.context().check_here()?;
        self.engine().record.end()
    }

    /// Tells of the recording, if there is one.
    pub fn recording(&self) -> Option<Recording> {
        self.context().recorder.tell()
    }
}
