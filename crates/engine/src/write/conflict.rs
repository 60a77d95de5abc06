//! Commits of transactions: a write that is made only if nothing that the transaction has used has
//! changed since it began.

use super::{Ops, WritePath};
use crate::context::Context;
use crate::group::MEMBER_BYTES;
use crate::keyspace::KeyspaceShared;
use crate::options::PersistMode;
use crate::snapshots::SnapshotGuard;
use crate::version::{Version, dropped};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::sync::atomic::Ordering;
use lsmith_tree::{Key, KeyRange, SeqNo};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a transaction has used of a keyspace, or of its group.
#[derive(Debug)]
pub(crate) struct Footprint {
    pub(crate) keyspace: Arc<KeyspaceShared>,
    /// The keys that it writes.
    pub(crate) written: BTreeSet<Key>,
    /// The key ranges that it deletes.
    pub(crate) range_deletes: Vec<KeyRange>,
    /// True if others may not have written these keys.
    pub(crate) first_wins: bool,
    /// The keys and key ranges that it has read, and that must be as it has read them.
    pub(crate) read: BTreeSet<Key>,
    pub(crate) ranges: Vec<KeyRange>,
}

impl Footprint {
    /// Returns true if the transaction needs the keyspace when it commits.
    fn is_needed(&self) -> bool {
        let keys = self.written.len() + self.read.len();
        keys + self.range_deletes.len() + self.ranges.len() > 0
    }
}

impl WritePath {
    /// Writes `ops` if nothing in `used` has changed since `began`. Returns the sequence number of
    /// the last of them, or 0 if there is none, when they are as durable as `mode` says.
    ///
    /// # Errors
    /// `Conflict` if something has changed. Otherwise as [`write`](WritePath::write).
    pub(crate) fn write_unchanged(
        &self,
        ops: Ops<'_>,
        mode: PersistMode,
        used: &[Footprint],
        began: &SnapshotGuard,
    ) -> Result<SeqNo> {
        let context = &*self.context;
        context.check_writable()?;
        // Most of the work is done before other writers are kept out.
        let looked = SeqNo(context.visible.load(Ordering::SeqCst));
        check(context, used, began, began.seq())?;
        self.write_if(ops, mode, || check(context, used, began, looked))
    }
}

/// Fails with `Conflict` if something in `used` has changed since `since`, which is `began` or
/// later, and with `NotFound` if its keyspace was dropped.
fn check(context: &Context, used: &[Footprint], began: &SnapshotGuard, since: SeqNo) -> Result<()> {
    for used in used {
        let Footprint { keyspace, written, range_deletes, first_wins, read, ranges } = used;
        // The version first: if no pinned one is found below, this version has no arrival, or the
        // transaction began after it.
        let version = keyspace.version.load_full();
        if version.is_dropped && used.is_needed() {
            return Err(dropped());
        }
        if context.snapshots.is_replaced(keyspace.id, began) {
            let name = &keyspace.name;
            let message = format!(
                "`{name}` was cleared, or tables with sequence numbers of their own came into it, \
                 since the transaction began"
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let written = written.iter().filter(|_| *first_wins);
        for key in written.chain(read) {
            if let Some(seq) = version.newer_entry(key, since)? {
                return Err(conflict(keyspace, key, seq, began.seq()));
            }
        }
        let range_deletes = range_deletes.iter().filter(|_| *first_wins);
        for range in range_deletes.chain(ranges) {
            if let Some((key, seq)) = version.newer_within(range, since)? {
                return Err(conflict(keyspace, &key, seq, began.seq()));
            }
        }
        if let Some(seen) = context.snapshots.pinned(keyspace.id, began) {
            check_filtered(used, &seen, &version, began.seq())?;
        }
    }
    Ok(())
}

/// Fails with `Conflict` if a filter of merges has changed what was read in `used`. The transaction
/// has read `seen`, the version from before, at sequence number `began`. What a filter makes of a
/// value has no sequence number of its own.
fn check_filtered(used: &Footprint, seen: &Version, now: &Version, began: SeqNo) -> Result<()> {
    let Footprint { keyspace, read, ranges, .. } = used;
    let keys = read.iter().map(|key| KeyRange::inclusive(key, key));
    for range in keys.chain(ranges.iter().cloned()) {
        if let Some(key) = seen.first_other(now, &range, began)? {
            let what = "was dropped or changed by the filter of merges";
            return Err(conflict_at(keyspace, &key, what, began));
        }
    }
    Ok(())
}

fn conflict(keyspace: &KeyspaceShared, key: &Key, seq: SeqNo, began: SeqNo) -> Error {
    conflict_at(keyspace, key, &format!("was written as number {seq}"), began)
}

fn conflict_at(keyspace: &KeyspaceShared, key: &Key, what: &str, began: SeqNo) -> Error {
    let member_bytes = if keyspace.members.is_some() { MEMBER_BYTES } else { 0 };
    let shown = key[member_bytes..].escape_ascii();
    let name = keyspace.name_of(key);
    let message = format!(
        "key `{shown}` of keyspace `{name}` {what}, after the transaction began at number {began}"
    );
    Error::new(ErrorKind::Conflict, message)
}
