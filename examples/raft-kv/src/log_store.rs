//! The log of Raft, in a store with two keyspaces.
//!
//! * `log` has the entries. The keys are indexes, most significant byte first, so that they have
//!   the order of the log.
//! * `facts` has the vote, the last entry known to be committed, and the last one purged.
//!
//! What must survive power loss before anybody hears of it is synced: votes, appended entries, and
//! the removal of entries that another leader replaces. The store replays its writes in their
//! order, so what is not synced is lost from the end only, and never leaves a hole.

use crate::{Entry, LogId, Types, Vote, blocking, decode, encode, open_store};
use lsmith::{Batch, Builder, Keyspace, PersistMode, Store};
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use openraft::{OptionalSend, entry::RaftEntry};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// Entries are sent to other nodes in pieces of about this many bytes.
const PAYLOAD_BYTES: usize = 4 << 20;

const VOTE: &str = "vote";
const COMMITTED: &str = "committed";
const PURGED: &str = "purged";

/// The log of a node. Clones are handles to the same log.
#[derive(Clone, Debug)]
pub struct LogStore {
    store: Store,
    log: Keyspace,
    facts: Keyspace,
    /// Appends that wait for their sync.
    appended: Sender<IOFlushed<Types>>,
}

impl LogStore {
    /// Opens the log that `builder` names, or makes an empty one.
    ///
    /// # Errors
    /// As opening a store, or a thread cannot be started.
    pub fn open(builder: &Builder) -> io::Result<LogStore> {
        let store = open_store(builder)?;
        let log = store.keyspace("log").map_err(io::Error::other)?;
        let facts = store.keyspace("facts").map_err(io::Error::other)?;
        let (appended, waiting) = channel();
        let synced = store.clone();
        thread::Builder::new()
            .name("raft-kv-sync".to_string())
            .spawn(move || sync_appends(&synced, &waiting))?;
        Ok(LogStore { store, log, facts, appended })
    }

    fn write(&self, batch: Batch, mode: PersistMode) -> io::Result<()> {
        self.store.write(batch, mode).map_err(io::Error::other)
    }

    /// Writes `batch` and waits until it survives power loss.
    async fn write_synced(&self, batch: Batch) -> io::Result<()> {
        let store = self.store.clone();
        blocking(move || store.write(batch, PersistMode::SyncData).map_err(io::Error::other)).await
    }

    fn fact<T: DeserializeOwned>(&self, name: &str) -> io::Result<Option<T>> {
        let bytes = self.facts.get(name).map_err(io::Error::other)?;
        bytes.map(|bytes| decode(&bytes)).transpose()
    }

    fn put_fact(&self, batch: &mut Batch, name: &str, fact: &impl Serialize) -> io::Result<()> {
        batch.put(&self.facts, name, encode(fact)?);
        Ok(())
    }

    /// Returns the entries whose indexes are in `range`, or the first of them, if they have more
    /// than `bytes_max` bytes.
    fn read(&self, range: impl RangeBounds<u64>, bytes_max: usize) -> io::Result<Vec<Entry>> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut bytes = 0;
        for found in self.log.range(keys(range)) {
            let (_, value) = found.map_err(io::Error::other)?;
            let entry: Entry = decode(&value)?;
            let before = entries.last().map(RaftEntry::index);
            if before.is_some_and(|before| before + 1 != entry.index()) {
                let message = format!("expected entry {before:?} + 1, found {}", entry.index());
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            entries.push(entry);
            bytes += value.len();
            if bytes > bytes_max {
                break;
            }
        }
        Ok(entries)
    }
}

/// Syncs the log until it is closed, and reports each sync to the threads that appended. Appends
/// that come during a sync share the next one.
fn sync_appends(store: &Store, waiting: &Receiver<IOFlushed<Types>>) {
    while let Ok(first) = waiting.recv() {
        // All that wait have been written, so one sync is enough for them.
        let appends: Vec<_> = std::iter::once(first).chain(waiting.try_iter()).collect();
        let synced = store.persist(PersistMode::SyncData);
        for append in appends {
            append.io_completed(match &synced {
                Ok(()) => Ok(()),
                Err(error) => Err(io::Error::other(error.to_string())),
            });
        }
    }
}

/// Returns the keys of the entries whose indexes are in `range`.
fn keys(range: impl RangeBounds<u64>) -> (Bound<[u8; 8]>, Bound<[u8; 8]>) {
    let key = |bound: Bound<&u64>| bound.map(|index| index.to_be_bytes());
    (key(range.start_bound()), key(range.end_bound()))
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> io::Result<Vec<Entry>> {
        self.read(range, usize::MAX)
    }

    /// What is sent to another node at once.
    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        self.read(start..end, PAYLOAD_BYTES)
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        self.fact(VOTE)
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let last_purged_log_id: Option<LogId> = self.fact(PURGED)?;
        let last_log_id = match self.log.iter().next_back() {
            Some(last) => {
                let (_, value) = last.map_err(io::Error::other)?;
                Some(decode::<Entry>(&value)?.log_id())
            }
            None => last_purged_log_id,
        };
        Ok(LogState { last_purged_log_id, last_log_id })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    /// A node that forgot its vote could vote twice in one term. So the vote is synced first.
    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let mut batch = Batch::new();
        self.put_fact(&mut batch, VOTE, vote)?;
        self.write_synced(batch).await
    }

    /// Only saves work after a restart, so it waits for no sync.
    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        let mut batch = Batch::new();
        self.put_fact(&mut batch, COMMITTED, &committed)?;
        self.write(batch, PersistMode::Buffer)
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.fact::<Option<LogId>>(COMMITTED)?.flatten())
    }

    /// Entries can be read when this returns. Who appended them hears so after their sync.
    async fn append<I>(&mut self, entries: I, done: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut batch = Batch::new();
        for entry in entries {
            batch.put(&self.log, entry.index().to_be_bytes(), encode(&entry)?);
        }
        self.write(batch, PersistMode::Buffer)?;
        let is_closed = |_| io::Error::other("the thread that syncs the log has ended");
        self.appended.send(done).map_err(is_closed)
    }

    /// Synced: what takes the place of these entries may be applied, and they must not come back.
    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        let first = last.map_or(0, |last| last.index() + 1);
        let mut batch = Batch::new();
        batch.delete_range(&self.log, keys(first..));
        self.write_synced(batch).await
    }

    /// If power loss brings these entries back, they are purged once more.
    async fn purge(&mut self, last: LogId) -> io::Result<()> {
        let mut batch = Batch::new();
        self.put_fact(&mut batch, PURGED, &Some(last))?;
        batch.delete_range(&self.log, keys(..=last.index()));
        self.write(batch, PersistMode::Buffer)
    }
}
