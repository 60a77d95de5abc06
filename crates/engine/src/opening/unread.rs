//! What of the logs and of memory an opening leaves out.

use crate::left_out::{LeftOut, LeftOutReason};
use crate::manifest::Account;
use lsmith_storage::env::Env;
use lsmith_storage::format::LoggedBatch;
use lsmith_storage::memtable::KeepFrom;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::SeqNo;
use std::ops::Range;
use std::path::Path;

/// The logs, and parts of logs, that opening does not read.
#[derive(Clone, Debug, Default)]
pub(super) struct UnreadLogs {
    /// Whole logs that are left out.
    pub(super) logs: Vec<u64>,
    /// Ends of logs that are left out.
    pub(super) tails: Vec<TornTail>,
    /// Logs that hold nothing, or nothing that is needed.
    pub(super) unneeded: Vec<u64>,
}

/// The torn end of log `log`.
#[derive(Clone, Copy, Debug)]
pub(super) struct TornTail {
    pub(super) log: u64,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

impl TornTail {
    /// Returns its bytes as a range of offsets in the log.
    pub(super) fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.bytes
    }
}

impl UnreadLogs {
    /// Returns the ends and logs that were left out, as [`Store::left_out`] reports them.
    ///
    /// [`Store::left_out`]: crate::Store::left_out
    pub(super) fn to_public(&self, env: &dyn Env, dir: &Path) -> Vec<LeftOut> {
        let logs = self.logs.iter().map(|&file_id| {
            let path = numbered(dir, FileKind::Wal, file_id);
            let bytes = env.file_bytes(&path).unwrap_or(0);
            LeftOut { path, offset: 0, bytes, reason: LeftOutReason::BehindGap }
        });
        let tails = self.tails.iter().map(|&TornTail { log, offset, bytes }| {
            let path = numbered(dir, FileKind::Wal, log);
            LeftOut { path, offset, bytes, reason: LeftOutReason::TornEnd }
        });
        tails.chain(logs).collect()
    }
}

/// How far a reader reads the logs if it may have a writer beside it.
///
/// The manifest was read before the logs. The logs have most of what the manifest lacks. They lack
/// two things: tables that came from outside, for which the log has an empty batch, and new
/// keyspaces, also in groups. The reader stops before these, so that it sees a prefix of what was
/// written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogLimit {
    /// The manifest that was read has everything that belongs to writes up to this sequence number.
    pub(super) settled: u64,
    /// The last write that is read, if it is not the last in the logs.
    pub(super) stop: Option<u64>,
    /// A sequence number up to which any manifest that is read from now on has everything.
    pub(super) newest: u64,
}

impl LogLimit {
    /// Returns true if `batch` is read. `account` is what the manifest says.
    pub(super) fn admits(&mut self, batch: &LoggedBatch<'_>, account: &Account) -> bool {
        let is_whole = !batch.ops.is_empty();
        // The manifest is written between an empty batch and the next one.
        self.newest = if is_whole { batch.last().0 } else { batch.first.0 - 1 };
        let is_known = batch.ops.iter().all(|op| account.knows(op.keyspace, op.key));
        if !(is_whole && is_known) && batch.last().0 > self.settled {
            self.stop.get_or_insert(batch.first.0 - 1);
        }
        self.stop.is_none()
    }
}

/// Returns what a memtable must keep when the entry with sequence number `seq` is inserted during
/// opening: there are no readers yet, so only the newest of the older versions of its key.
pub(super) fn keep_newest(seq: SeqNo) -> KeepFrom {
    KeepFrom(SeqNo(seq.0.saturating_sub(1)))
}
