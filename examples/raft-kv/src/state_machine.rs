//! The keys and values, in a store of their own.
//!
//! Each command is one batch: the change, and the log entry that asked for it. So after any crash
//! the store knows which entries it holds, and none is applied twice or left out. Batches are not
//! synced: the log has the entries until a snapshot holds them, and a snapshot is synced.
//!
//! A store of its own, because a snapshot that comes from the leader replaces it as a whole. Stores
//! are named by numbers, and the highest one counts.

use crate::snapshot::SnapshotDir;
use crate::{Command, LogId, Snapshot, SnapshotMeta, StoredMembership, Types, blocking};
use crate::{decode, encode, open_store};
use futures::{Stream, StreamExt};
use lsmith::{Batch, Keyspace, PersistMode, Store};
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

/// The last log entry that is applied, and the members as of then.
pub type Applied = (Option<LogId>, StoredMembership);

const APPLIED: &str = "applied";

/// The state machine of a node. Clones are handles to the same one.
#[derive(Clone, Debug)]
pub struct StateMachine(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Has the directories `state` and `snapshots`.
    dir: PathBuf,
    state: RwLock<State>,
    snapshot: Mutex<Option<Snapshot>>,
}

/// An open store with the state.
#[derive(Debug)]
pub struct State {
    store: Store,
    data: Keyspace,
    facts: Keyspace,
}

impl State {
    /// Returns the state that is in `store`.
    ///
    /// # Errors
    /// As opening a keyspace.
    pub fn of(store: Store) -> io::Result<State> {
        let data = store.keyspace("data").map_err(io::Error::other)?;
        let facts = store.keyspace("facts").map_err(io::Error::other)?;
        Ok(State { store, data, facts })
    }

    fn open(dir: &Path) -> io::Result<State> {
        State::of(open_store(&Store::builder(dir))?)
    }

    /// Returns what is applied.
    ///
    /// # Errors
    /// As reading a store.
    pub fn applied(&self) -> io::Result<Applied> {
        let bytes = self.facts.get(APPLIED).map_err(io::Error::other)?;
        Ok(bytes.map(|bytes| decode(&bytes)).transpose()?.unwrap_or_default())
    }

    /// Applies one entry of the log: the change and the entry, or neither.
    ///
    /// # Errors
    /// As writing to a store.
    pub fn apply(&self, command: Option<&Command>, applied: &Applied) -> io::Result<()> {
        let mut batch = Batch::new();
        match command {
            Some(Command::Put { key, value }) => batch.put(&self.data, key, value),
            Some(Command::Delete { key }) => batch.delete(&self.data, key),
            None => {}
        }
        batch.put(&self.facts, APPLIED, encode(applied)?);
        self.store.write(batch, PersistMode::Buffer).map_err(io::Error::other)
    }

    /// Returns the value of `key`.
    ///
    /// # Errors
    /// As reading a store.
    pub fn get(&self, key: &str) -> io::Result<Option<String>> {
        let value = self.data.get(key).map_err(io::Error::other)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(value.map(|bytes| text(&bytes)))
    }
}

/// Returns the numbers of the stores in `states`.
fn numbers(states: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(states)? {
        numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

impl StateMachine {
    /// Opens the state machine in `dir`, or makes an empty one. What a crash has left half done is
    /// removed.
    ///
    /// # Errors
    /// As opening a store and removing files.
    pub fn open(dir: &Path) -> io::Result<StateMachine> {
        let (states, snapshots) = (dir.join("state"), dir.join("snapshots"));
        fs::create_dir_all(&states)?;
        let last = numbers(&states)?.pop().unwrap_or(0);
        for entry in fs::read_dir(&states)? {
            let entry = entry?;
            if entry.file_name() != *last.to_string() {
                fs::remove_dir_all(entry.path())?;
            }
        }
        if snapshots.exists() {
            fs::remove_dir_all(&snapshots)?;
        }
        fs::create_dir(&snapshots)?;
        let state = RwLock::new(State::open(&states.join(last.to_string()))?);
        let shared = Shared { dir: dir.to_path_buf(), state, snapshot: Mutex::new(None) };
        Ok(StateMachine(Arc::new(shared)))
    }

    /// Returns the state, which cannot be replaced while it is looked at.
    pub fn state(&self) -> RwLockReadGuard<'_, State> {
        self.0.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an empty directory for a snapshot.
    ///
    /// # Errors
    /// As making a directory.
    pub fn new_snapshot_dir(&self) -> io::Result<SnapshotDir> {
        SnapshotDir::new(&self.0.dir.join("snapshots"))
    }

    fn snapshot(&self) -> MutexGuard<'_, Option<Snapshot>> {
        self.0.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a snapshot while commands go on being applied: a checkpoint of the store.
    fn build(&self) -> io::Result<Snapshot> {
        let dir = self.new_snapshot_dir()?;
        let state = self.state();
        state.store.checkpoint(dir.path()).map_err(io::Error::other)?;
        // Entries that the snapshot holds leave the log. So they must be safe in the state too.
        state.store.persist(PersistMode::SyncData).map_err(io::Error::other)?;
        let (last_log_id, last_membership) = dir.applied()?;
        let meta = SnapshotMeta { last_log_id, last_membership };
        let snapshot = Snapshot { meta, snapshot: dir };
        *self.snapshot() = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// Replaces the state by a copy of `dir`.
    fn install(&self, meta: SnapshotMeta, dir: SnapshotDir) -> io::Result<()> {
        let applied = (meta.last_log_id, meta.last_membership.clone());
        if dir.applied()? != applied {
            let message = format!("expected a snapshot of {applied:?}, found {:?}", dir.applied()?);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let states = self.0.dir.join("state");
        let last = numbers(&states)?.pop().unwrap_or(0);
        let next = states.join((last + 1).to_string());
        dir.copy_to(&next)?;
        let new = State::open(&next)?;
        let mut state = self.0.state.write().unwrap_or_else(PoisonError::into_inner);
        *state = new;
        *self.snapshot() = Some(Snapshot { meta, snapshot: dir });
        fs::remove_dir_all(states.join(last.to_string()))
    }
}

impl RaftStateMachine<Types> for StateMachine {
    type SnapshotData = SnapshotDir;
    type SnapshotBuilder = StateMachine;

    async fn applied_state(&mut self) -> io::Result<Applied> {
        self.state().applied()
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<Types>>> + Unpin + OptionalSend,
    {
        let mut applied = self.state().applied()?;
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            applied.0 = Some(entry.log_id);
            let command = match &entry.payload {
                EntryPayload::Normal(command) => Some(command),
                EntryPayload::Membership(members) => {
                    applied.1 = StoredMembership::new(applied.0, members.clone());
                    None
                }
                EntryPayload::Blank => None,
            };
            self.state().apply(command, &applied)?;
            if let Some(responder) = responder {
                responder.send(());
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> StateMachine {
        self.clone()
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, dir: SnapshotDir) -> io::Result<()> {
        let (machine, meta) = (self.clone(), meta.clone());
        blocking(move || machine.install(meta, dir)).await
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<Snapshot>> {
        Ok(self.snapshot().clone())
    }
}

impl RaftSnapshotBuilder<Types> for StateMachine {
    type SnapshotData = SnapshotDir;

    async fn build_snapshot(&mut self) -> io::Result<Snapshot> {
        let machine = self.clone();
        blocking(move || machine.build()).await
    }
}
