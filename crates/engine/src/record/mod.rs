//! Begins and ends recordings of what callers do, for a caller or for another process that asks.
//!
//! The [recorder](crate::recorder) picks operations and writes them down. A recording also needs
//! the picked keys that were there when it began: its [base](base). Threads that merge read it piece
//! by piece, between merges.
//!
//! Another process asks by the file `RECORD` in the directory of the store. While the file is
//! there, the store is recorded. `lsmith record` makes it and removes it.

mod base;
mod request;

use crate::context::{Context, read_only};
use crate::group::MEMBER_BYTES;
use crate::keyspace::KeyspaceShared;
use crate::keyspaces::Keyspaces;
use crate::recorder::{KeyspaceLine, Picked, RecordOptions, Recording};
use crate::wal::Wal;
use base::Base;
use lsmith_storage::directory;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::OpKind;
use lsmith_storage::sync::Mutex;
use lsmith_tree::EntryKind;
pub use request::RecordRequest;
use request::Requests;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The shares that [`RecordOptions::one_in`] may ask for.
const ONE_IN: RangeInclusive<u32> = 1..=1 << 20;

/// The most recordings in one folder.
const FILES_MAX: u32 = 1 << 20;

/// The bytes that stand behind the value of an entry that expires: when it does.
const TIME_BYTES: usize = 8;

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
            requests: Mutex::default(),
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

    /// Reads a piece of the base. Returns true if there was one.
    fn read_base(&self) -> bool {
        let Some(mut base) = self.base.try_lock() else { return false };
        let Some(reading) = base.as_mut().filter(|_| self.context.recorder.is_on()) else {
            *base = None;
            return false;
        };
        match reading.read_piece(&self.context) {
            Ok(true) => return true,
            Ok(false) => self.context.recorder.note_base(),
            Err(error) => {
                tracing::warn!(%error, "a recording lacks keys, because the store cannot be read");
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

/// Records the write of `key`, as the tree has it, if the hash picks the key.
#[inline]
pub(crate) fn note_write(
    context: &Context,
    keyspace: &Arc<KeyspaceShared>,
    kind: OpKind,
    key: &[u8],
    value: &[u8],
) {
    let user = user_key(keyspace, key);
    if kind == OpKind::DeleteRange || context.recorder.wants(user) {
        note_picked_write(context, keyspace, kind, key, value);
    }
}

#[cold]
fn note_picked_write(
    context: &Context,
    keyspace: &Arc<KeyspaceShared>,
    kind: OpKind,
    key: &[u8],
    value: &[u8],
) {
    let user = user_key(keyspace, key);
    let bytes = value.len();
    let picked = match kind {
        OpKind::Entry(EntryKind::Put | EntryKind::Insert) => Picked::Put(user, bytes),
        OpKind::Entry(EntryKind::Delete | EntryKind::Remove) => Picked::Delete(user),
        OpKind::Entry(EntryKind::Combine) => Picked::Combine(user, bytes),
        OpKind::Entry(EntryKind::Expiring) => {
            Picked::PutUntil(user, bytes.saturating_sub(TIME_BYTES))
        }
        // The end of all keys of a member is the id behind its own.
        OpKind::DeleteRange => Picked::DeleteRange(
            user,
            match keyspace.members {
                Some(_) if value.first() != key.first() => &[],
                Some(_) => &value[MEMBER_BYTES..],
                None => value,
            },
        ),
    };
    note(context, keyspace, key, &picked);
}

/// Records `picked` of the keyspace that `key`, as the tree has it, belongs to.
pub(crate) fn note(context: &Context, keyspace: &KeyspaceShared, key: &[u8], picked: &Picked<'_>) {
    let member = keyspace.members.as_ref().and_then(|_| key.first().copied());
    let describe = || {
        let policy = keyspace.state.lock().policy.spec().to_string();
        (keyspace.name_of(key), policy)
    };
    let line = KeyspaceLine {
        id: (keyspace.id, member),
        memtable_bytes: keyspace.memtable_bytes,
        describe: &describe,
    };
    context.recorder.note(&line, picked);
}

/// Returns `key`, as the tree has it, without the id of a member.
#[inline]
pub(crate) fn user_key<'a>(keyspace: &KeyspaceShared, key: &'a [u8]) -> &'a [u8] {
    let from = if keyspace.members.is_some() { MEMBER_BYTES } else { 0 };
    key.get(from..).unwrap_or_default()
}
