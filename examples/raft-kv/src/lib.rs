//! A replicated key-value service: consensus by openraft, everything on disk by lsmith.
//!
//! * [`log_store`]: the log of Raft and its vote, in one store.
//! * [`state_machine`]: the keys and values, in another store. [`snapshot`]: copies of it.
//! * [`network`]: messages, their frames, and calls from node to node.
//! * [`node`]: a process of the cluster. [`client`]: how others talk to it.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a service has files, clocks and threads"
)]

pub mod client;
pub mod log_store;
pub mod network;
pub mod node;
pub mod snapshot;
pub mod state_machine;

use lsmith::{Builder, ErrorKind, Store};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// What is written: a command of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Gives `key` a value.
    Put {
        /// The key.
        key: String,
        /// Its value from now on.
        value: String,
    },
    /// Removes `key` and its value, if it has one.
    Delete {
        /// The key.
        key: String,
    },
}

/// The most bytes of a key.
pub const KEY_BYTES_MAX: usize = 1 << 10;

/// The most bytes of a value.
pub const VALUE_BYTES_MAX: usize = 256 << 10;

impl Command {
    /// Checks that every node can apply the command. Once it is in the log, all of them must.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let (key, value) = match self {
            Command::Put { key, value } => (key, value.as_str()),
            Command::Delete { key } => (key, ""),
        };
        if key.is_empty() || key.len() > KEY_BYTES_MAX {
            return Err(format!("expected a key of 1 to {KEY_BYTES_MAX} bytes, has {}", key.len()));
        }
        if value.len() > VALUE_BYTES_MAX {
            let found = value.len();
            return Err(format!(
                "expected a value of at most {VALUE_BYTES_MAX} bytes, has {found}"
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Command::Put { key, value } => write!(f, "put {key} {value}"),
            Command::Delete { key } => write!(f, "delete {key}"),
        }
    }
}

openraft::declare_raft_types!(
    /// The types of this service.
    pub Types:
        D = Command,
        R = (),
);

/// A node of the cluster as consensus sees it.
pub type Raft = openraft::Raft<Types, state_machine::StateMachine>;
/// An entry of the log.
pub type Entry = openraft::alias::EntryOf<Types>;
/// The leader and the index of an entry.
pub type LogId = openraft::alias::LogIdOf<Types>;
/// A vote.
pub type Vote = openraft::alias::VoteOf<Types>;
/// The members of the cluster, and the entry that says so.
pub type StoredMembership = openraft::alias::StoredMembershipOf<Types>;
/// What a snapshot holds.
pub type SnapshotMeta = openraft::alias::SnapshotMetaOf<Types>;
/// A snapshot.
pub type Snapshot = openraft::alias::SnapshotOf<Types, snapshot::SnapshotDir>;

/// Returns `value` as bytes, for a store or the network.
pub(crate) fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(io::Error::other)
}

/// Returns what [`encode`] made bytes of.
pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> io::Result<T> {
    serde_json::from_slice(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Runs what blocks, such as a sync, on a thread that may wait.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

/// Opens a store. A process that is about to end may still hold it for a moment.
pub(crate) fn open_store(builder: &Builder) -> io::Result<Store> {
    let start = Instant::now();
    loop {
        match builder.clone().open() {
            Err(error)
                if error.kind() == ErrorKind::Locked
                    && start.elapsed() < Duration::from_secs(5) =>
            {
                thread::sleep(Duration::from_millis(50));
            }
            opened => return opened.map_err(io::Error::other),
        }
    }
}
