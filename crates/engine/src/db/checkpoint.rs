//! Makes a second store of what a store holds at one moment.

use super::Store;
use crate::checkpoint::{Capture, CapturedFile, NewStore};
use crate::manifest::Record;
use lsmith_storage::directory;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::names::numbered;
use lsmith_tree::SeqNo;
use std::io;
use std::path::Path;

/// What [`Store::checkpoint`] has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The sequence number of the last write that the checkpoint holds.
    pub seq: SeqNo,
    /// The number of files that both stores share.
    pub linked: usize,
    /// The bytes of files that both stores share.
    pub linked_bytes: u64,
    /// The bytes of files that were copied.
    pub copied_bytes: u64,
}

impl Store {
    /// Makes a store in `dir` that holds what this store holds at one moment during the call: all
    /// batches up to one of them, across all keyspaces. Other threads go on writing. They wait only
    /// while that moment is chosen, for as long as a sync of the manifest may take.
    ///
    /// Both stores live their own lives from then on. Files that do not change get a second name
    /// (a hard link), which takes no room and little time. The newest log and append tables are
    /// copied, and on another device everything is. A shared file takes its space until both
    /// stores have removed it. Neither store punches holes into it.
    ///
    /// `dir` must not exist, or be empty, or hold what a checkpoint or a restore that was cut short
    /// has left there. When the call returns, the new store survives power loss, with all writes
    /// made before the call. A checkpoint that fails, or that a crash cuts short, leaves no store
    /// in `dir`.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use lsmith::Store;
    ///
    /// let store = Store::builder(dir.path().join("store")).open()?;
    /// let fruit = store.keyspace("fruit")?;
    /// fruit.put("apple", "red")?;
    /// store.checkpoint(dir.path().join("then"))?;
    /// fruit.put("apple", "green")?;
    ///
    /// let then = Store::builder(dir.path().join("then")).open()?;
    /// let value = then.keyspace("fruit")?.get("apple")?;
    /// assert_eq!(value.as_deref(), Some(&b"red"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if `dir` holds anything else, is an empty path, or leads into the
    /// directory of this store; `Locked` if it is the directory of an open store; `Io` or `Full` if
    /// a file cannot be linked, copied or synced; `ReadOnly` if the store was opened for reading
    /// only; `Poisoned` if an earlier write of the log or the manifest failed.
    #[doc(alias = "hard link")]
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<Checkpoint> {
        let context = self.context();
        context.check_writable()?;
        let options = &context.options;
        let dir = dir.as_ref();
        let _span = tracing::info_span!("checkpoint", to = %dir.display()).entered();
        directory::check_outside(&*options.env, dir, "a checkpoint", &options.dir, "the store")?;
        let mut capture = Capture::take(self.engine())?;
        // The file id of the manifest is above the numbers of all files of the capture.
        let mut new = NewStore::begin(&options.env, dir, context.new_file_id())?;
        let mut done =
            Checkpoint { seq: capture.last, linked: 0, linked_bytes: 0, copied_bytes: 0 };
        for file in &capture.files {
            let from = numbered(&options.dir, file.kind, file.file_id);
            let linked =
                new.add(file.kind, file.file_id, |env, to| link_or_copy(env, file, &from, to))?;
            if linked {
                done.linked += 1;
                done.linked_bytes += file.bytes;
            } else {
                done.copied_bytes += file.bytes;
            }
        }
        if done.linked > 0 && !capture.account.linked {
            self.engine().manifest.write(Record::Linked, |_| ())?;
            capture.account.linked = true;
        }
        new.finish(&capture.account)?;
        let Checkpoint { seq, linked_bytes, copied_bytes, .. } = done;
        tracing::info!(%seq, linked_bytes, copied_bytes, "a checkpoint was made");
        Ok(done)
    }
}

/// Gives `file`, which is at `from`, a second name, or copies it if it may grow or that is
/// impossible. Returns true if it has a second name.
fn link_or_copy(env: &dyn Env, file: &CapturedFile, from: &Path, to: &Path) -> Result<bool> {
    if !file.grows {
        match env.link(from, to) {
            Ok(()) => return Ok(true),
            Err(error) if is_impossible(&error) => {}
            Err(error) => return Err(Error::io("link", from, error)),
        }
    }
    directory::copy((env, from), (env, to), file.bytes, |_| ())?;
    Ok(false)
}

/// Returns true if a file can have no second name there, but may be copied.
fn is_impossible(error: &io::Error) -> bool {
    use io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks, Unsupported};
    matches!(error.kind(), CrossesDevices | PermissionDenied | TooManyLinks | Unsupported)
}
