//! What another process asks for: a file in the directory of the store.

use crate::options::RecordOptions;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{CURRENT, RECORD, RECORD_NEW};
use lsmith_storage::panics;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two looks for the file.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// The longest request: a long path, and the rest.
const REQUEST_BYTES_MAX: u64 = 16 << 10;

/// The first line of a request, with the version of its format.
const HEADER: &str = "lsmith record 1";

/// What is known of requests.
#[derive(Debug)]
pub(super) struct Requests {
    /// When the file was last looked for, or the store was opened.
    looked: Duration,
    /// The request that was met, whether it could be done or not.
    met: Option<Vec<u8>>,
}

/// What another process asks for.
pub(super) struct Asked {
    /// End what an earlier request has begun.
    pub(super) end: bool,
    /// Then begin this.
    pub(super) begin: Option<RecordRequest>,
}

/// A request to record a store that another process has open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRequest {
    /// The folder of the recording: an absolute path.
    pub folder: PathBuf,
    /// How to record.
    pub options: RecordOptions,
}

impl RecordRequest {
    /// Asks the process that has the store in `dir` open to record it. It begins within a second,
    /// or when it next opens the store, and ends when the request is [withdrawn](Self::withdraw).
    ///
    /// # Errors
    /// `InvalidArgument` if there is a request already, or if the path of the folder is no text;
    /// `NotFound` if `dir` has no store; `Io`.
    pub fn put(&self, env: &dyn Env, dir: &Path) -> Result<()> {
        let path = dir.join(RECORD);
        let refuse = |message: &str| Err(Error::new(ErrorKind::InvalidArgument, message).at(&path));
        let Some(folder) = self.folder.to_str().filter(|folder| !folder.contains('\n')) else {
            return refuse("expected a folder whose path is text in one line");
        };
        if env.file_bytes(&dir.join(CURRENT)).is_err() {
            let message = "expected a store, found none";
            return Err(Error::new(ErrorKind::NotFound, message).at(dir));
        }
        if env.file_bytes(&path).is_ok() {
            return refuse(
                "the store is asked to record already: `lsmith record DIR --stop` ends it",
            );
        }
        let RecordOptions { one_in, bytes_max, time_max, base } = self.options;
        let micros = time_max.map_or(0, |time| time.as_micros());
        let text = format!("{HEADER}\n{folder}\n{one_in}\n{bytes_max}\n{micros}\n{base}\n");
        let new = dir.join(RECORD_NEW);
        let failed = |error| Error::io("write", &new, error);
        // What an earlier caller left behind.
        let _ = env.remove_file(&new);
        let mut file = env.create(&new).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(failed)?;
        env.rename(&new, &path).map_err(|error| Error::io("rename", &new, error))
    }

    /// Withdraws the request at the store in `dir`. Returns false if there was none.
    ///
    /// # Errors
    /// `Io`.
    pub fn withdraw(env: &dyn Env, dir: &Path) -> Result<bool> {
        let path = dir.join(RECORD);
        match env.remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io("remove", &path, error)),
        }
    }

    fn parse(text: &[u8]) -> Option<RecordRequest> {
        let mut lines = std::str::from_utf8(text).ok()?.lines();
        if lines.next()? != HEADER {
            return None;
        }
        let folder = PathBuf::from(lines.next()?);
        let one_in = lines.next()?.parse().ok()?;
        let bytes_max = lines.next()?.parse().ok()?;
        let micros: u64 = lines.next()?.parse().ok()?;
        let time_max = (micros > 0).then(|| Duration::from_micros(micros));
        let base = lines.next()?.parse().ok()?;
        let options = RecordOptions { one_in, bytes_max, time_max, base };
        Some(RecordRequest { folder, options })
    }
}

impl Requests {
    /// Knows of no request. The file is first looked for some time after `now`.
    pub(super) fn new(now: Duration) -> Requests {
        Requests { looked: now, met: None }
    }

    /// Looks for the file in `dir` now and then. Returns what to do if it is not as it was before.
    pub(super) fn look(&mut self, env: &dyn Env, dir: &Path) -> Option<Asked> {
        let now = env.now();
        if now.saturating_sub(self.looked) < LOOK_AGAIN {
            return None;
        }
        self.looked = now;
        let found = panics::catch(|| read(env, &dir.join(RECORD))).unwrap_or_default();
        if found == self.met {
            return None;
        }
        let asked = Asked {
            end: self.met.is_some(),
            begin: found.as_deref().and_then(RecordRequest::parse),
        };
        self.met = found;
        Some(asked)
    }
}

/// Returns what the file at `path` holds; `None` if it is not there, or cannot be read.
fn read(env: &dyn Env, path: &Path) -> Option<Vec<u8>> {
    let file = env.open(path).ok()?;
    let bytes = file.bytes().ok()?.min(REQUEST_BYTES_MAX);
    let mut text = vec![0; usize::try_from(bytes).ok()?];
    file.read_exact_at(&mut text, 0).ok()?;
    Some(text)
}
