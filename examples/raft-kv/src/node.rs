//! A process of the cluster: its stores, its part in consensus, and the door to it.

use crate::log_store::LogStore;
use crate::network::{Call, Connection, Peers, Refusal, Request, Status};
use crate::state_machine::StateMachine;
use crate::{Command, Raft, Snapshot, SnapshotMeta, Types, Vote};
use anyhow::{Context, Result};
use lsmith::Store;
use openraft::async_runtime::watch::WatchReceiver;
use openraft::errors::{ClientWriteError, LinearizableReadError, RaftError};
use openraft::raft::SnapshotResponse;
use openraft::{Config, RaftMetrics, ReadPolicy, SnapshotPolicy};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// How a node is started.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The number of the node, which no other node of the cluster has.
    pub id: u64,
    /// Where its files are.
    pub dir: PathBuf,
    /// The address that it listens at.
    pub listen: String,
    /// How to reach the others.
    pub peers: Peers,
    /// The time between signs of life of a leader. Without any for five to ten times as long, the
    /// others elect another one.
    pub heartbeat: Duration,
    /// The number of entries after which a snapshot is made and the log purged.
    pub snapshot_every: u64,
}

impl NodeOptions {
    fn config(&self) -> Result<Config> {
        let heartbeat = self.heartbeat.as_millis() as u64;
        let config = Config {
            cluster_name: self.peers.cluster.clone(),
            heartbeat_interval: heartbeat,
            election_timeout_min: 5 * heartbeat,
            election_timeout_max: 10 * heartbeat,
            // A node that was cut off does not disturb the others when it is back.
            enable_pre_vote: Some(true),
            install_snapshot_timeout: 60_000,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_every),
            replication_lag_threshold: self.snapshot_every,
            max_append_entries: Some(256),
            max_in_snapshot_log_to_keep: self.snapshot_every / 4,
            ..Config::default()
        };
        Ok(config.validate()?)
    }
}

/// The longest wait for a change.
const CHANGE_MAX: Duration = Duration::from_secs(1);

/// A running node.
#[derive(Clone)]
struct Node {
    cluster: String,
    id: u64,
    raft: Raft,
    machine: StateMachine,
    stop: Arc<Notify>,
}

/// Runs a node until it is asked to stop. Calls `listens` once others can ask it.
///
/// # Errors
/// As opening its stores and listening.
pub async fn run(options: &NodeOptions, listens: impl FnOnce()) -> Result<()> {
    fs::create_dir_all(&options.dir)?;
    let listener = TcpListener::bind(&options.listen)
        .await
        .with_context(|| format!("listening at {}", options.listen))?;
    let log = LogStore::open(&Store::builder(options.dir.join("log")))?;
    let machine = StateMachine::open(&options.dir)?;
    let config = Arc::new(options.config()?);
    let raft = Raft::new(options.id, config, options.peers.clone(), log, machine.clone()).await?;
    let node = Node {
        cluster: options.peers.cluster.clone(),
        id: options.id,
        raft,
        machine,
        stop: Arc::default(),
    };
    listens();
    let ended = tokio::select! {
        ended = node.accept(&listener) => ended,
        ended = node.failure() => ended,
        () = node.stop.notified() => Ok(()),
    };
    node.raft.shutdown().await?;
    ended
}

impl Node {
    /// Serves all who connect.
    async fn accept(&self, listener: &TcpListener) -> Result<()> {
        loop {
            let (stream, _) = listener.accept().await?;
            let (node, connection) = (self.clone(), Connection::of(stream)?);
            // An error ends the connection: the other side is gone, or says what is no request.
            tokio::spawn(async move { node.serve(connection).await });
        }
    }

    /// Returns when consensus has ended, as after an error of a store.
    async fn failure(&self) -> Result<()> {
        let has_failed = |metrics: &RaftMetrics<Types>| metrics.running_state.is_err();
        self.raft.wait(None).metrics(has_failed, "the end").await?.running_state?;
        Ok(())
    }

    /// Answers one request after the other.
    async fn serve(&self, mut connection: Connection) -> io::Result<()> {
        loop {
            let Call { cluster, to, request } = connection.receive().await?;
            if (&cluster, to) != (&self.cluster, self.id) {
                let message = format!("this is node {} of {}", self.id, self.cluster);
                connection.send(&Err::<(), _>(Refusal::Failed(message))).await?;
                return Ok(());
            }
            let reply = match request {
                Request::Append(rpc) => reply(self.raft.append_entries(rpc).await),
                Request::Vote(rpc) => reply(self.raft.vote(rpc).await),
                Request::PreVote(rpc) => reply(self.raft.pre_vote(rpc).await),
                Request::Snapshot { vote, meta, files } => {
                    reply(self.receive_snapshot(&mut connection, vote, meta, &files).await)
                }
                Request::Initialize(nodes) => reply(self.raft.initialize(nodes).await),
                Request::Write(command) => outcome(&self.write(command).await),
                Request::Read { key, stale } => outcome(&self.read(&key, stale).await),
                Request::Status => reply(io::Result::Ok(self.status())),
                Request::Change(known) => {
                    self.change(&known).await;
                    reply(io::Result::Ok(self.status()))
                }
                Request::Stop => {
                    connection.send(&Result::<(), Refusal>::Ok(())).await?;
                    self.stop.notify_one();
                    return Ok(());
                }
            };
            connection.send(&reply).await?;
        }
    }

    async fn receive_snapshot(
        &self,
        connection: &mut Connection,
        vote: Vote,
        meta: SnapshotMeta,
        files: &[(String, u64)],
    ) -> Result<SnapshotResponse<Types>> {
        let dir = self.machine.new_snapshot_dir()?;
        connection.receive_files(&dir.path(), files).await?;
        Ok(self.raft.install_full_snapshot(vote, Snapshot { meta, snapshot: dir }).await?)
    }

    /// Returns when the command is committed and applied.
    async fn write(&self, command: Command) -> Result<(), Refusal> {
        command.check().map_err(Refusal::Invalid)?;
        match self.raft.client_write(command).await {
            Ok(_) => Ok(()),
            Err(RaftError::APIError(ClientWriteError::ForwardToLeader(to))) => {
                Err(Refusal::NotLeader(to.leader_id))
            }
            // The entry may be in the log of a node that becomes leader.
            Err(error) => Err(Refusal::Unknown(error.to_string())),
        }
    }

    /// Reads what was last written, unless `stale`: a leader asks the others if it still is, and
    /// waits until all is applied that was committed when the request came.
    async fn read(&self, key: &str, stale: bool) -> Result<Option<String>, Refusal> {
        if !stale {
            match self.raft.ensure_linearizable(ReadPolicy::ReadIndex).await {
                Ok(_) => {}
                Err(RaftError::APIError(LinearizableReadError::ForwardToLeader(to))) => {
                    return Err(Refusal::NotLeader(to.leader_id));
                }
                Err(error) => return Err(Refusal::Failed(error.to_string())),
            }
        }
        self.machine.state().get(key).map_err(|error| Refusal::Failed(error.to_string()))
    }

    /// Returns when the node is not as `known` says, after [`CHANGE_MAX`] at the latest.
    async fn change(&self, known: &Status) {
        let differs = |metrics: &RaftMetrics<Types>| self.status_of(metrics) != *known;
        // Without a change, or at the end of the node, it is as it is.
        let _ = self.raft.wait(Some(CHANGE_MAX)).metrics(differs, "a change").await;
    }

    fn status(&self) -> Status {
        self.status_of(&self.raft.metrics().borrow_watched())
    }

    fn status_of(&self, metrics: &RaftMetrics<Types>) -> Status {
        Status {
            id: self.id,
            leader: metrics.current_leader,
            term: metrics.current_term,
            applied: metrics.last_applied.map(|entry| entry.index()),
            snapshot: metrics.snapshot.map(|entry| entry.index()),
            purged: metrics.purged.map(|entry| entry.index()),
        }
    }
}

/// Returns the reply to a request that was tried.
fn reply<T: Serialize, E: Display>(tried: Result<T, E>) -> Value {
    outcome(&tried.map_err(|error| Refusal::Failed(error.to_string())))
}

fn outcome<T: Serialize>(done: &Result<T, Refusal>) -> Value {
    json!(done)
}
