//! Logs that memory no longer needs, and that are kept for change feeds.
//!
//! Each log names the log before it. So the kept logs are followed back from the oldest one that is
//! needed, or from the newest of all. A log that an earlier opening left out is not among them.

use super::Opening;
use super::row::{LogBeginning, RowLog, read_beginning};
use crate::wal::Log;
use lsmith_storage::names::{FileKind, numbered};

impl Opening {
    /// Chooses older logs to keep beside the needed ones, as many as the options allow. `row` has
    /// the logs that were read, oldest first.
    pub(super) fn keep_for_changes(&mut self, row: &[RowLog]) {
        let options = &self.context.options;
        if options.read_only || options.changes_bytes == 0 {
            return;
        }
        let first = self.logs.first().map(|log| log.file_id);
        let needed = row.iter().find(|log| Some(log.file_id) == first);
        let last = row.iter().rfind(|log| !self.left_out.logs.contains(&log.file_id));
        let mut next = match (needed, last) {
            (Some(needed), _) => needed.start.before,
            (None, Some(last)) => last.file_id,
            (None, None) => self.left_out.unneeded.last().copied().unwrap_or(0),
        };
        let mut bytes = 0;
        while let Some(log) = self.unneeded_log(next) {
            bytes += log.1.bytes;
            if bytes > options.changes_bytes {
                break;
            }
            self.left_out.unneeded.retain(|file_id| *file_id != next);
            next = log.0;
            self.kept.push(log.1);
        }
        self.kept.reverse();
    }

    /// Returns log `file_id` with the file id of the log before it, if it is there, can be read,
    /// and memory does not need it.
    fn unneeded_log(&self, file_id: u64) -> Option<(u64, Log)> {
        if !self.left_out.unneeded.contains(&file_id) {
            return None;
        }
        let options = &self.context.options;
        let beginning = read_beginning(&*options.env, &options.dir, file_id, 0);
        let Ok(LogBeginning::Start(start)) = beginning else { return None };
        let path = numbered(&options.dir, FileKind::Wal, file_id);
        let bytes = options.env.file_bytes(&path).ok()?;
        Some((start.before, Log { file_id, first: start.first, bytes }))
    }
}
