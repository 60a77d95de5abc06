//! The change feed: the batches of a store in their order, from a sequence number on.

use super::{Change, Store};
use crate::context::read_only;
use crate::keyspace::KeyspaceShared;
use crate::leases::Hold;
use crate::wal::LogsNow;
use bytes::Bytes;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::{Damage, LoggedBatch, LoggedOp, OpKind, decode_batch};
use lsmith_storage::log::{LogFollower, LogId, LogKind, LogStart};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::{EntryKind, SeqNo};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// The batches of a store in their order, from a sequence number on; returned by
/// [`Store::changes`]. It goes on as long as the store is written. It keeps the store open.
///
/// A feed reads the write-ahead logs, and holds only the log that it is reading. A reader that
/// falls behind by more than [`Builder::changes_bytes`](crate::Builder::changes_bytes) gets an
/// error of kind [`Gone`](ErrorKind::Gone). It then takes a snapshot, reads what it needs, and
/// begins a new feed behind the snapshot.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{Change, SeqNo, Store};
///
/// let store = Store::builder(dir.path()).open()?;
/// let fruit = store.keyspace("fruit")?;
/// let mut changes = store.changes(store.next_seq())?;
/// fruit.put("apple", "red")?;
/// let batch = changes.next_batch()?.expect("there was a write");
/// let [Change::Put { keyspace, key, value }] = &batch.changes[..] else { panic!() };
/// assert_eq!((&**keyspace, &key[..], &value[..]), ("fruit", &b"apple"[..], &b"red"[..]));
/// assert!(changes.next_batch()?.is_none(), "there is no more yet");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "cdc")]
#[derive(Debug)]
pub struct Changes {
    store: Store,
    /// The sequence number of the next write to return.
    next: u64,
    /// The logs as of the last look.
    logs: LogsNow,
    /// The log that is being read.
    log: Option<(u64, LogFollower)>,
    /// The trees by their ids.
    trees: FxHashMap<u32, Arc<KeyspaceShared>>,
}

/// A batch of a [feed](Changes): writes that took effect together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeBatch {
    /// The sequence number of its first write. Each later write has the next sequence number.
    pub first: SeqNo,
    /// The sequence number of its last write. The feed goes on with the next sequence number.
    pub last: SeqNo,
    /// The writes in their order. Those to keyspaces that do not exist any more are left out.
    pub changes: Vec<Change>,
    /// True if a bulk load, an ingest or the clearing of a keyspace took the sequence numbers.
    /// Loaded entries are in tables, and not in the feed. The call may also have failed then.
    pub is_load: bool,
}

impl Store {
    /// Returns all batches from write `from` on: first the batches that the logs still hold, then
    /// each new batch when it is written.
    ///
    /// The logs hold what memory needs. [`Builder::changes_bytes`](crate::Builder::changes_bytes)
    /// says how many bytes of older logs they keep.
    ///
    /// A feed returns a batch as soon as readers see it. Power loss may take it away unless it was
    /// [synced](Store::persist), and then other writes get its sequence numbers. So a reader that
    /// must never be ahead of the store calls `persist` before it acts on a batch.
    ///
    /// # Errors
    /// `Gone` if the logs do not hold write `from` any more; `InvalidArgument` if it is beyond the
    /// [next write](Store::next_seq); `ReadOnly` if the store was opened for reading only;
    /// `Corruption` if the header of a log is damaged; `Io`.
    pub fn changes(&self, from: SeqNo) -> Result<Changes> {
        let logs = self.look_at_logs()?.0;
        let next = from.0.max(1);
        if next > logs.next {
            let message =
                format!("expected a number up to {}, the next write, found {from}", logs.next);
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let trees = FxHashMap::default();
        let mut changes = Changes { store: self.clone(), next, logs, log: None, trees };
        changes.go_to_next_log()?;
        Ok(changes)
    }

    /// Returns the sequence number from which on the logs hold all writes. A feed can begin there.
    /// The logs are not read: only a feed finds that one is damaged.
    ///
    /// # Errors
    /// `ReadOnly` if the store was opened for reading only.
    pub fn oldest_change(&self) -> Result<SeqNo> {
        let logs = self.look_at_logs()?.0;
        Ok(logs.logs.first().map_or(SeqNo(logs.next), |log| log.first))
    }

    /// Returns the sequence number that the next write will get.
    pub fn next_seq(&self) -> SeqNo {
        SeqNo(self.snapshot().seq().0 + 1)
    }

    /// Returns the logs now. As long as the hold lives, none is removed.
    fn look_at_logs(&self) -> Result<(LogsNow, Hold)> {
        let context = self.context();
        context.check_here()?;
        let hold = context.leases.hold();
        let guard = self.engine().wal.lock();
        let writer = guard.as_ref().ok_or_else(read_only)?;
        Ok((writer.logs_now(), hold))
    }
}

impl Changes {
    /// Returns the sequence number of the next write that the feed returns. A new feed from this
    /// sequence number on continues this one.
    pub fn next_seq(&self) -> SeqNo {
        SeqNo(self.next)
    }

    /// Returns the next batch, or `None` if there is none yet. If the feed began in the middle of a
    /// batch, the first one is returned as a whole.
    ///
    /// # Errors
    /// `Gone` if the logs do not hold the batch any more, or not undamaged: also every later call
    /// fails then. `Corruption` if the header of a log is damaged, or a record of the newest log.
    /// `Io`.
    pub fn next_batch(&mut self) -> Result<Option<ChangeBatch>> {
        self.store.context().check_here()?;
        loop {
            let Some((file_id, follower)) = &mut self.log else {
                self.go_to_next_log()?;
                continue;
            };
            let file_id = *file_id;
            let end = (file_id == self.logs.newest).then_some(self.logs.written);
            let found = follower.next_record(end)?;
            let found = found.map(|(offset, payload)| (offset, Bytes::copy_from_slice(payload)));
            match found {
                Some((offset, payload)) => {
                    let store = self.store.clone();
                    let damaged = |damage: Damage| {
                        let path = numbered(&store.context().options.dir, FileKind::Wal, file_id);
                        Error::corruption(&path, offset, damage.what)
                    };
                    if let Some(batch) = self.take(&payload, damaged)? {
                        return Ok(Some(batch));
                    }
                }
                None if self.look_again()? => {}
                None => return Ok(None),
            }
        }
    }

    /// Returns the batch of a record of the log, unless the feed begins behind it, or the record is
    /// none.
    fn take(
        &mut self,
        payload: &Bytes,
        damaged: impl Fn(Damage) -> Error,
    ) -> Result<Option<ChangeBatch>> {
        if LogStart::decode(payload).map_err(&damaged)?.is_some() {
            return Ok(None);
        }
        let batch = decode_batch(payload).map_err(&damaged)?;
        let (first, last) = (batch.first, batch.last());
        if last.0 < self.next {
            return Ok(None);
        }
        if first.0 > self.next {
            return Err(gone(self.next, first.0));
        }
        let changes = changes_of(&self.store, &mut self.trees, payload, &batch);
        self.next = last.0 + 1;
        Ok(Some(ChangeBatch { first, last, changes, is_load: batch.ops.is_empty() }))
    }

    /// Returns the next batch. If there is none yet, waits for one, for at most `longest`. Returns
    /// `None` if there is none then.
    ///
    /// # Errors
    /// As [`next_batch`](Changes::next_batch).
    pub fn wait(&mut self, longest: Duration) -> Result<Option<ChangeBatch>> {
        let store = self.store.clone();
        let context = store.context();
        context.check_here()?;
        let waiting = context.followers.announce();
        let start = context.options.env.now();
        loop {
            let turn = waiting.turn();
            if let Some(batch) = self.next_batch()? {
                return Ok(Some(batch));
            }
            let passed = context.options.env.now().saturating_sub(start);
            let Some(left) = longest.checked_sub(passed).filter(|left| !left.is_zero()) else {
                return Ok(None);
            };
            waiting.wait_beyond(turn, left);
        }
    }

    /// Looks at the logs again, behind the last record that can be read so far. Returns true if
    /// there may be more.
    fn look_again(&mut self) -> Result<bool> {
        let Some((file_id, follower)) = &self.log else { return Ok(true) };
        let (file_id, read) = (*file_id, follower.next_offset());
        if file_id != self.logs.newest {
            // The log was full when its last record was read.
            self.go_to_next_log()?;
            return Ok(true);
        }
        self.logs = self.store.look_at_logs()?.0;
        Ok(file_id != self.logs.newest || read < self.logs.written)
    }

    /// Opens the log with the next write, if the one before has ended.
    fn go_to_next_log(&mut self) -> Result<()> {
        let (logs, _hold) = self.store.look_at_logs()?;
        let after = self.log.as_ref().map_or(0, |(file_id, _)| *file_id);
        let later = logs.logs.iter().filter(|log| log.file_id > after);
        let begun = later.clone().take_while(|log| log.first.0 <= self.next);
        // Behind a log the next one follows. A feed begins in the last one that may have its write.
        let found = if after == 0 { begun.last() } else { begun.min_by_key(|log| log.file_id) };
        let Some(log) = found else {
            let held = later.map(|log| log.first.0).next().unwrap_or(logs.next);
            return Err(gone(self.next, held));
        };
        let options = &self.store.context().options;
        let path = numbered(&options.dir, FileKind::Wal, log.file_id);
        let id = LogId { kind: LogKind::Wal, file_id: log.file_id };
        self.log = Some((log.file_id, LogFollower::open(&*options.env, &path, id)?));
        self.logs = logs;
        Ok(())
    }
}

/// Returns the error that the logs hold writes from `held` on, and not write `next`.
fn gone(next: u64, held: u64) -> Error {
    let message = format!(
        "expected the logs to hold write {next}, found that they hold writes from {held} on: read \
         what is needed from a snapshot, and begin a feed behind it"
    );
    Error::new(ErrorKind::Gone, message)
}

/// Returns the writes of `batch`, which was decoded from `payload`.
fn changes_of(
    store: &Store,
    trees: &mut FxHashMap<u32, Arc<KeyspaceShared>>,
    payload: &Bytes,
    batch: &LoggedBatch<'_>,
) -> Vec<Change> {
    let is_there = |tree: &Arc<KeyspaceShared>| !tree.version.load().is_dropped;
    let mut changes = Vec::with_capacity(batch.ops.len());
    let mut has_looked = false;
    for op in &batch.ops {
        if !has_looked && !trees.get(&op.keyspace).is_some_and(is_there) {
            let all = store.engine().keyspaces.all();
            *trees = all.into_iter().map(|tree| (tree.id, tree)).collect();
            has_looked = true;
        }
        if let Some(tree) = trees.get(&op.keyspace).filter(|tree| is_there(tree)) {
            changes.push(change(tree, payload, op));
        }
    }
    changes
}

/// Returns the write `op`, which was decoded from `payload`. Promises were for its writer, so an
/// insert is a put, and a remove is a delete.
fn change(tree: &KeyspaceShared, payload: &Bytes, op: &LoggedOp<'_>) -> Change {
    let kind = match op.kind {
        OpKind::Entry(EntryKind::Insert) => OpKind::Entry(EntryKind::Put),
        OpKind::Entry(EntryKind::Remove) => OpKind::Entry(EntryKind::Delete),
        kind => kind,
    };
    Change::of_op(tree, kind, (op.key, op.value), |part| payload.slice_ref(part))
}
