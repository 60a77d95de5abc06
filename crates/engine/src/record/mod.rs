//! Begins and ends recordings of what callers do, for a caller or for another process that asks.
//!
//! The [recorder](crate::recorder) picks operations and writes them down. A recording also needs
//! the picked keys that were there when it began: its [base](base). Threads that merge read it
//! piece by piece, between merges.
//!
//! Another process asks by the file `RECORD` in the directory of the store. While the file is
//! there, the store is recorded. `lsmith record` makes it and removes it.

mod base;
mod note;
mod request;

pub(crate) use note::{note, note_write, user_key};

use crate::context::{Context, read_only};
use crate::keyspaces::Keyspaces;
use crate::options::RecordOptions;
use crate::recorder::Recording;
use crate::wal::Wal;
use base::Base;
use lsmith_storage::directory;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::panics;
use lsmith_storage::sync::Mutex;
pub use request::RecordRequest;
use request::Requests;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The shares that [`RecordOptions::one_in`] may ask for.
const ONE_IN: RangeInclusive<u32> = 1..=1 << 20;

/// The most recordings in one folder.
const FILES_MAX: u32 = 1 << 20;

/// Begins and ends recordings.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) context: Arc<Context>,
    keyspaces: Arc<Keyspaces>,
    wal: Arc<Wal>,
    /// What is left of the base. Held by a thread that reads a piece of it.
    base: Mutex<Option<Base>>,
    /// What other processes ask for.
    requests: Mutex<Requests>,
}

impl Record {
    pub(crate) fn new(
        context: &Arc<Context>,
        keyspaces: &Arc<Keyspaces>,
        wal: &Arc<Wal>,
    ) -> Record {
        Record {
            context: Arc::clone(context),
            keyspaces: Arc::clone(keyspaces),
            wal: Arc::clone(wal),
            base: Mutex::new(None),
            requests: Mutex::new(Requests::new(context.options.env.now())),
        }
    }

    /// Begins a recording in a new file of `folder`, and returns its path. In lockstep the base is
    /// read before this returns.
    ///
    /// # Errors
    /// As [`Store::record`](crate::Store::record).
    pub(crate) fn begin(&self, folder: &Path, options: &RecordOptions) -> Result<PathBuf> {
        let context = &*self.context;
        context.check_writable()?;
        let refuse = |message| Err(Error::new(ErrorKind::InvalidArgument, message));
        if !ONE_IN.contains(&options.one_in) {
            let [least, most] = [ONE_IN.start(), ONE_IN.end()];
            return refuse(format!("one key in {}: expected {least} to {most}", options.one_in));
        }
        // Held to the end, so that two callers do not begin at once.
        let mut base = self.base.lock();
        if let Some(Recording { path, ended: None, .. }) = context.recorder.tell() {
            return refuse(format!("the store is being recorded in `{}`", path.display()));
        }
        let env = &*context.outer_env;
        let folder = directory::absolute(env, folder)?;
        let made = env.create_dir_all(&folder);
        made.map_err(|error| Error::io("create", &folder, error))?;
        let path = free_path(env, &folder)?;
        // No write comes between the moment of the snapshot and the beginning.
        let guard = self.wal.lock();
        if guard.is_none() {
            return Err(read_only());
        }
        *base = options.base.then(|| Base::new(context, &self.keyspaces));
        let begun = context.recorder.begin(&path, options);
        drop(guard);
        if let Err(error) = begun {
            *base = None;
            return Err(error);
        }
        drop(base);
        tracing::info!(path = %path.display(), one_in = options.one_in, "a recording has begun");
        if context.options.lockstep {
            while self.read_base() {}
        }
        Ok(path)
    }

    /// Ends the recording, and tells of it.
    ///
    /// # Errors
    /// As [`Store::stop_recording`](crate::Store::stop_recording).
    pub(crate) fn end(&self) -> Result<Option<Recording>> {
        *self.base.lock() = None;
        self.context.recorder.end()
    }

    /// Does a piece of work for a recording, and looks now and then for what another process asks.
    /// Returns true if there was work.
    pub(crate) fn work_once(&self) -> bool {
        self.obey();
        self.read_base()
    }

    /// Begins or ends a recording, if another process asks for it.
    fn obey(&self) {
        let Some(mut requests) = self.requests.try_lock() else { return };
        let Some(asked) = requests.look(&*self.context.options.env, &self.context.options.dir)
        else {
            return;
        };
        // A panic of the environment must not take the store with it.
        if asked.end
            && let Err(error) = panics::as_error("ending a recording", || self.end())
        {
            tracing::warn!(%error, "a recording lacks its last part");
        }
        if let Some(RecordRequest { folder, options }) = asked.begin
            && let Err(error) =
                panics::as_error("beginning a recording", || self.begin(&folder, &options))
        {
            tracing::warn!(%error, "the store cannot be recorded as another process asks");
        }
    }

    /// Reads a piece of the base. Returns true if there was one.
    fn read_base(&self) -> bool {
        let Some(mut base) = self.base.try_lock() else { return false };
        let Some(reading) = base.as_mut().filter(|_| self.context.recorder.is_on()) else {
            *base = None;
            return false;
        };
        let read = || reading.read_piece(&self.context);
        match panics::as_error("reading the base of a recording", read) {
            Ok(true) => return true,
            Ok(false) => self.context.recorder.note_base(),
            Err(error) => {
                tracing::warn!(
                    error = %format_args!("{error:#}"),
                    "a recording lacks keys, because the store cannot be read"
                );
            }
        }
        *base = None;
        true
    }
}

/// Returns the path of a recording that is not in `folder`.
fn free_path(env: &dyn lsmith_storage::env::Env, folder: &Path) -> Result<PathBuf> {
    let names = env.list(folder).map_err(|error| Error::io("list", folder, error))?;
    let name = |number| format!("{number:04}.recording");
    let free = (1..FILES_MAX).map(name).find(|name| !names.contains(name));
    let full = || {
        let message = format!("expected fewer than {FILES_MAX} recordings in the folder");
        Error::new(ErrorKind::InvalidArgument, message).at(folder)
    };
    free.map(|name| folder.join(name)).ok_or_else(full)
}
