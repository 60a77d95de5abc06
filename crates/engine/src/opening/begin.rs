//! Prepares the directory of a store for writing.

use super::Opening;
use crate::identity::Identity;
use crate::keyspace::KeyspaceShared;
use crate::manifest::{Account, LogRow, Manifest, Record, check_room};
use crate::memory::seal;
use crate::wal::{Log, Wal};
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::names::{FileKind, lost, numbered};
use lsmith_storage::sync::atomic::Ordering;
use lsmith_tree::{SeqNo, TableId};
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The bytes of a log that are copied at a time.
const COPY_BYTES: u64 = 1 << 20;

/// The number of old logs beyond which memory is flushed or copied, so that they can go. Each
/// opening adds a log, however little is written to it.
const LOGS_MAX: usize = 8;

impl Opening {
    /// Rewrites the logs that are needed, begins a new manifest and a new log, and removes files
    /// that nothing names.
    pub(super) fn begin_writing(&self, manifest: &Manifest, wal: &Wal) -> Result<()> {
        let context = &*self.context;
        let next = context.next_file.load(Ordering::Relaxed);
        check_room(next.max(self.last_seq), &context.options.dir)?;
        self.set_aside();
        let mut are_synced = true;
        for log in &self.logs {
            are_synced &= self.secure(log)?;
        }
        let first = SeqNo(self.last_seq + 1);
        // The manifest gets file id `next`, and logs made from now on have higher ids.
        let row = LogRow {
            from: self.logs.first().map_or(next, |log| log.file_id),
            first: self.logs.first().map_or(first, |log| log.first),
            newest: self.logs.last().map_or(0, |log| log.file_id),
        };
        // All that was read is synced now: what this life and later ones lack of it is damage.
        let known = self.account.synced_seq;
        let synced_seq = if are_synced { known.max(SeqNo(self.last_seq)) } else { known };
        // Stores of earlier versions have no identity yet.
        let identity = self.account.identity;
        let identity = identity.unwrap_or_else(|| Identity::new(&*context.options.env, None));
        let clock = self.account.clock.clone().or_else(|| self.named_clock());
        let (logs, identity) = (Some(row), Some(identity));
        manifest.begin(Account { logs, synced_seq, identity, clock, ..self.account.clone() })?;
        self.remove_unnamed();
        let writer = wal.begin(&self.kept, &self.logs, first, are_synced)?;
        manifest.write(Record::Logs(LogRow { newest: writer.file_id, ..row }), |_| ())?;
        for keyspace in self.keyspaces.values() {
            let mut state = keyspace.state.lock();
            if state.active.is_full(state.policy.seal_bytes(&state.view)) {
                seal(context, keyspace, &mut state);
            }
            // Punches holes, so only after a manifest is synced that does not need the space.
            state.reclaim(&keyspace.version.load());
        }
        if self.logs.len() > LOGS_MAX {
            wal.seal_up_to(u64::MAX);
            wal.spill_up_to(u64::MAX);
        }
        wal.bound_logs(&writer);
        wal.open(writer);
        Ok(())
    }

    /// Returns the name of the clock that the caller chose, if entries can expire. A store of an
    /// earlier version, which does not know the name, then takes it. The default clock is used by
    /// such a store, but not noted.
    fn named_clock(&self) -> Option<String> {
        let options = &self.context.options;
        let expires = self.account.keyspaces.values().any(|known| !known.expiries.is_empty());
        let is_chosen = expires && options.names_clock;
        options.clock.name().filter(|_| is_chosen).map(str::to_string)
    }

    /// Renames logs that were left out, and copies ends of logs that were, to `*.lost` files, which
    /// the store never reads. A log that cannot be set aside stays where it is, and the next
    /// opening leaves it out again.
    fn set_aside(&self) {
        let env = &*self.context.options.env;
        for file_id in &self.left_out.logs {
            let path = self.path_of_log(*file_id);
            if let Err(error) = env.rename(&path, &lost(&path, None)) {
                tracing::warn!(path = %path.display(), %error, "cannot set aside a log");
            }
        }
        for tail in self.left_out.tails.iter().filter(|tail| !self.needs_log(tail.log)) {
            let path = self.path_of_log(tail.log);
            let aside = lost(&path, Some(tail.offset));
            let copied = copy_range(env, &path, &aside, tail.range());
            // Without room for a copy, the whole log is set aside.
            if let Err(error) = copied.or_else(|_| env.rename(&path, &aside)) {
                tracing::warn!(path = %path.display(), %error, "cannot set aside the end of a log");
            }
        }
    }

    /// Replaces `log`, which is still needed, by a synced copy without its unused space and its
    /// torn end. The torn end is set aside. Returns true if the log is certainly synced.
    ///
    /// Syncing the old file is not enough: after a failed sync, the system may take its pages for
    /// clean although the device never got them.
    fn secure(&self, log: &Log) -> Result<bool> {
        let env = &*self.context.options.env;
        let path = self.path_of_log(log.file_id);
        let new = numbered(&self.context.options.dir, FileKind::NewWal, log.file_id);
        let tail = self.left_out.tails.iter().find(|tail| tail.log == log.file_id);
        let saved = tail.map_or(Ok(()), |tail| {
            copy_range(env, &path, &lost(&path, Some(tail.offset)), tail.range())
        });
        let copied = saved.and_then(|()| copy_range(env, &path, &new, 0..log.bytes));
        match copied.and_then(|()| env.rename(&new, &path)) {
            Ok(()) => Ok(true),
            // Without room for the copy, the old file is kept. So it is where a system replaces no
            // file that a reader has open.
            Err(error)
                if [io::ErrorKind::StorageFull, io::ErrorKind::ResourceBusy]
                    .contains(&error.kind()) =>
            {
                let synced = env.sync_file(&path);
                synced.map_err(|error| Error::io("sync the log", &path, error)).map(|()| false)
            }
            Err(error) => Err(Error::io("rewrite the log", &path, error)),
        }
    }

    fn path_of_log(&self, file_id: u64) -> PathBuf {
        numbered(&self.context.options.dir, FileKind::Wal, file_id)
    }

    /// Removes numbered files that nothing names.
    fn remove_unnamed(&self) {
        let dir = &self.context.options.dir;
        let files = |keyspace: &Arc<KeyspaceShared>| keyspace.state.lock().value_files();
        let values: BTreeSet<u64> =
            self.keyspaces.values().flat_map(|keyspace| files(keyspace).into_keys()).collect();
        let named = |kind, file_id| match kind {
            FileKind::Wal => !self.left_out.unneeded.contains(&file_id),
            FileKind::Manifest | FileKind::NewWal => false,
            FileKind::Spill => {
                let mut spills = self.account.keyspaces.values().filter_map(|state| state.spill);
                spills.any(|spill| spill.file == file_id)
            }
            FileKind::Table => self
                .keyspaces
                .values()
                .any(|keyspace| keyspace.state.lock().tables.contains_key(&TableId(file_id))),
            FileKind::Values => values.contains(&file_id),
        };
        for &(kind, file_id) in &self.files {
            if named(kind, file_id) {
                continue;
            }
            self.context.leases.remove(file_id, numbered(dir, kind, file_id), "an old file");
        }
    }
}

/// Copies the bytes in `range` of the file at `from` to a new file at `to`, and syncs it. Replaces
/// a file that is there.
fn copy_range(env: &dyn Env, from: &Path, to: &Path, range: Range<u64>) -> io::Result<()> {
    let source = env.open(from)?;
    match env.remove_file(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut target = env.create(to)?;
    let mut at = range.start;
    let mut buffer = Vec::new();
    while at < range.end {
        buffer.resize((range.end - at).min(COPY_BYTES) as usize, 0);
        source.read_exact_at(&mut buffer, at)?;
        target.write_all(&buffer)?;
        at += buffer.len() as u64;
    }
    target.sync()
}
