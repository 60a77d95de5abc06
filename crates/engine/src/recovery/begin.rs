//! What opening a store for writing changes on the device.

use super::Recovery;
use crate::db::Options;
use crate::manifest::{Account, LogRow, Manifest, Record, check_room};
use crate::shared::{Log, Shared, Writer};
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::log::LogStart;
use lsmith_storage::names::{FileKind, lost, numbered};
use lsmith_storage::sync::atomic::Ordering;
use lsmith_tree::{SeqNo, TableId};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a log that are copied at a time.
const COPY_BYTES: u64 = 1 << 20;

/// More logs than this are not carried from one opening to the next: each opening adds one, however
/// little is written to it.
const LOGS_MAX: usize = 8;

impl Recovery {
    /// Begins a new log and a new manifest, and removes what is not needed any more.
    pub(super) fn begin_writing(&self, shared: &Shared) -> Result<()> {
        let next = shared.files.load(Ordering::Relaxed);
        check_room(next.max(self.last_seq), &self.options.dir)?;
        self.set_aside();
        self.logs.iter().try_for_each(|log| self.secure(log))?;
        let first = SeqNo(self.last_seq + 1);
        let Options { env, dir, .. } = &self.options;
        // Logs that are made from now on have higher numbers than the manifest, which has `next`.
        let row = LogRow {
            from: self.logs.first().map_or(next, |log| log.number),
            first: self.logs.first().map_or(first, |log| log.first),
            newest: self.logs.last().map_or(0, |log| log.number),
        };
        let account = Account { logs: Some(row), ..self.account.clone() };
        let manifest = Manifest::create(env, dir, &shared.counts, &shared.files, account)?;
        *shared.manifest.lock() = Some(manifest);
        self.remove_unnamed();
        // The new log names the one before it. So a log that was left out stays away also where it
        // could not be set aside.
        let before = self.logs.last().map_or(0, |log| log.number);
        let (wal_number, wal) = shared.create_log(0)?;
        wal.append(&[&LogStart { before, first, synced: 0 }.encode()])?;
        shared.write_record(Record::Logs(LogRow { newest: wal_number, ..row }), |_| ())?;
        let mut logs = self.logs.clone();
        logs.push(Log { number: wal_number, first, bytes: wal.capacity() });
        let writer = Writer {
            wal: Arc::new(wal),
            wal_number,
            spares: VecDeque::new(),
            unsynced: Vec::new(),
            logs,
            next_seq: self.last_seq + 1,
            buffer: Vec::new(),
            log_began: false,
        };
        for space in shared.all_spaces() {
            let mut core = space.core.lock();
            if core.active.is_full(core.policy.seal_bytes(&core.view)) {
                shared.seal(&space, &mut core);
            }
            // Not before there is a manifest that is synced and does not need the space.
            core.reclaim(&space.version.load());
        }
        if self.logs.len() > LOGS_MAX {
            shared.seal_up_to(u64::MAX);
            shared.spill_up_to(u64::MAX);
        }
        shared.bound_logs(&writer);
        *shared.writer.lock() = Some(writer);
        Ok(())
    }

    /// Keeps what was left out under names of which the store takes no notice. A log that cannot be
    /// set aside stays where it is, and is left out again.
    fn set_aside(&self) {
        let env = &*self.options.env;
        for number in &self.left_out.logs {
            let path = self.path_of_log(*number);
            if let Err(error) = env.rename(&path, &lost(&path, None)) {
                tracing::warn!(path = %path.display(), %error, "cannot set aside a log");
            }
        }
        for tail in self.left_out.tails.iter().filter(|tail| !self.needs_log(tail.log)) {
            let path = self.path_of_log(tail.log);
            let aside = lost(&path, Some(tail.offset));
            let copied = copy(env, &path, &aside, tail.range());
            // Without room for a copy the whole log is set aside.
            if let Err(error) = copied.or_else(|_| env.rename(&path, &aside)) {
                tracing::warn!(path = %path.display(), %error, "cannot set aside the end of a log");
            }
        }
    }

    /// Writes `log`, which is still needed, anew: without its unused room and its torn end, which
    /// is set aside, and synced.
    ///
    /// Syncing the old file is not enough. If a sync of it failed before, the system may hold it to
    /// be clean although the device never got it.
    fn secure(&self, log: &Log) -> Result<()> {
        let env = &*self.options.env;
        let path = self.path_of_log(log.number);
        let new = numbered(&self.options.dir, FileKind::NewWal, log.number);
        let tail = self.left_out.tails.iter().find(|tail| tail.log == log.number);
        let saved = tail
            .map_or(Ok(()), |tail| copy(env, &path, &lost(&path, Some(tail.offset)), tail.range()));
        let copied = saved.and_then(|()| copy(env, &path, &new, 0..log.bytes));
        match copied.and_then(|()| env.rename(&new, &path)) {
            Ok(()) => Ok(()),
            // Without room for the copy the old file must do.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                let synced = env.sync_file(&path);
                synced.map_err(|error| Error::io("sync the log", &path, error))
            }
            Err(error) => Err(Error::io("write the log anew", &path, error)),
        }
    }

    fn path_of_log(&self, number: u64) -> PathBuf {
        numbered(&self.options.dir, FileKind::Wal, number)
    }

    /// Removes numbered files that nothing names.
    fn remove_unnamed(&self) {
        let Options { env, dir, .. } = &self.options;
        let named = |kind, number| match kind {
            FileKind::Wal => !self.left_out.unneeded.contains(&number),
            FileKind::Manifest | FileKind::NewWal => false,
            FileKind::Spill => {
                let mut spills = self.account.spaces.values().filter_map(|state| state.spill);
                spills.any(|spill| spill.file == number)
            }
            FileKind::Table => self
                .spaces
                .values()
                .any(|space| space.core.lock().tables.contains_key(&TableId(number))),
        };
        for &(kind, number) in &self.files {
            if named(kind, number) {
                continue;
            }
            let path = numbered(dir, kind, number);
            if let Err(error) = env.remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove an old file");
            }
        }
    }
}

/// Copies the bytes in `range` of the file at `from` to a new file at `to`, in the place of any
/// that is there, and syncs it.
fn copy(env: &dyn Env, from: &Path, to: &Path, range: Range<u64>) -> io::Result<()> {
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
