//! Messages, their frames on TCP, and calls from node to node.
//!
//! A connection carries one request at a time, and its reply. A frame is its length and JSON. The
//! files of a snapshot follow their request as frames of bytes.

use crate::snapshot::SnapshotDir;
use crate::{Command, Snapshot, SnapshotMeta, Types, Vote, decode, encode};
use futures::{SinkExt, StreamExt};
use openraft::errors::{RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{RPCOption, RaftNetworkFactory, RaftNetworkV2};
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse};
use openraft::raft::{VoteRequest, VoteResponse};
use openraft::{BasicNode, OptionalSend};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::io;
use std::path::Path;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// The most bytes of a frame.
const FRAME_BYTES_MAX: usize = 64 << 20;

/// Files are sent in pieces of this many bytes.
const PIECE_BYTES: u64 = 256 << 10;

/// What a node can be asked for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// A leader sends entries of its log, or a sign of life.
    Append(AppendEntriesRequest<Types>),
    /// A candidate asks for a vote.
    Vote(VoteRequest<Types>),
    /// A node asks if it would get a vote.
    PreVote(VoteRequest<Types>),
    /// A leader sends a snapshot. The bytes of the files follow.
    Snapshot {
        /// The vote that made it the leader.
        vote: Vote,
        /// What the snapshot holds.
        meta: SnapshotMeta,
        /// The names of the files and their lengths.
        files: Vec<(String, u64)>,
    },
    /// Makes the nodes with these addresses a cluster.
    Initialize(BTreeMap<u64, BasicNode>),
    /// Writes. The reply comes when the write is committed.
    Write(Command),
    /// Reads the value of a key.
    Read {
        /// The key.
        key: String,
        /// True if the node may answer with what it has, however old that is.
        stale: bool,
    },
    /// Asks how the node is.
    Status,
    /// Asks how the node is once that differs from what is given, or after a second.
    Change(Status),
    /// Asks the node to end.
    Stop,
}

/// A request and whom it is for. A node may listen where another one was before, also one of
/// another cluster, so each looks whether it is meant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Call<R> {
    /// The name of the cluster.
    pub cluster: String,
    /// The number of the node.
    pub to: u64,
    /// What it is asked for.
    pub request: R,
}

/// A cluster and the addresses of its nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Directory {
    /// The name of the cluster, which no other one has.
    pub cluster: String,
    /// The addresses of the nodes.
    pub nodes: BTreeMap<u64, String>,
}

impl Directory {
    /// Returns the request that makes these nodes a cluster.
    pub fn initialize(&self) -> Request {
        let member = |(id, address): (&u64, &String)| (*id, BasicNode::new(address));
        Request::Initialize(self.nodes.iter().map(member).collect())
    }
}

/// Why a node did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Nothing was done: this node is not the leader. It believes that another one is.
    NotLeader(Option<u64>),
    /// Nothing was done: no node would do this.
    Invalid(String),
    /// Nothing was done.
    Failed(String),
    /// A write may have been done, or may still be.
    Unknown(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotLeader(leader) => write!(f, "not the leader, which is {leader:?}"),
            Refusal::Failed(why) | Refusal::Invalid(why) => f.write_str(why),
            Refusal::Unknown(why) => write!(f, "the outcome is unknown: {why}"),
        }
    }
}

/// How a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its number.
    pub id: u64,
    /// The node that it takes for the leader.
    pub leader: Option<u64>,
    /// The term that it has reached.
    pub term: u64,
    /// The index of the last entry that it has applied.
    pub applied: Option<u64>,
    /// The index of the last entry in its snapshot.
    pub snapshot: Option<u64>,
    /// The index of the last entry that is gone from its log.
    pub purged: Option<u64>,
}

/// A connection that carries frames.
#[derive(Debug)]
pub struct Connection(Framed<TcpStream, LengthDelimitedCodec>);

impl Connection {
    /// Connects to `address`.
    ///
    /// # Errors
    /// As connecting.
    pub async fn connect(address: &str) -> io::Result<Connection> {
        Connection::of(TcpStream::connect(address).await?)
    }

    /// Returns a connection over `stream`.
    ///
    /// # Errors
    /// As setting an option of a socket.
    pub fn of(stream: TcpStream) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        let codec = LengthDelimitedCodec::builder().max_frame_length(FRAME_BYTES_MAX).new_codec();
        Ok(Connection(Framed::new(stream, codec)))
    }

    /// Sends `message` in a frame.
    ///
    /// # Errors
    /// As writing to a socket.
    pub async fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.0.send(Bytes::from(encode(message)?)).await
    }

    /// Receives a message.
    ///
    /// # Errors
    /// As reading from a socket; `InvalidData` if the frame has something else;
    /// `UnexpectedEof` if the other side has closed the connection.
    pub async fn receive<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        match self.0.next().await {
            Some(frame) => decode(&frame?),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Sends the files of `dir`, one after the other.
    async fn send_files(&mut self, dir: &Path, files: &[(String, u64)]) -> io::Result<()> {
        for (name, bytes) in files {
            let mut file = File::open(dir.join(name)).await?;
            let mut left = *bytes;
            while left > 0 {
                let mut piece = vec![0; left.min(PIECE_BYTES) as usize];
                file.read_exact(&mut piece).await?;
                left -= piece.len() as u64;
                self.0.send(Bytes::from(piece)).await?;
            }
        }
        Ok(())
    }

    /// Receives files into `dir`, which it makes.
    pub(crate) async fn receive_files(
        &mut self,
        dir: &Path,
        files: &[(String, u64)],
    ) -> io::Result<()> {
        tokio::fs::create_dir(dir).await?;
        for (name, bytes) in files {
            if Path::new(name).file_name() != Some(name.as_ref()) {
                return Err(io::Error::other(format!("expected the name of a file, found {name}")));
            }
            let mut file = File::create(dir.join(name)).await?;
            let mut left = *bytes;
            while left > 0 {
                let Some(piece) = self.0.next().await.transpose()? else {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                };
                let is_too_long = || io::Error::other(format!("{name} is longer than {bytes}"));
                left = left.checked_sub(piece.len() as u64).ok_or_else(is_too_long)?;
                file.write_all(&piece).await?;
            }
            file.flush().await?;
        }
        Ok(())
    }
}

/// Makes calls to the other nodes.
#[derive(Clone, Debug)]
pub struct Peers {
    /// The name of the cluster.
    pub cluster: String,
    /// Addresses to use for some nodes in place of the cluster's addresses, as when there is a
    /// proxy.
    pub routes: BTreeMap<u64, String>,
}

impl RaftNetworkFactory<Types> for Peers {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Peer {
        let address = self.routes.get(&target).unwrap_or(&node.addr).clone();
        Peer { cluster: self.cluster.clone(), id: target, address, connection: None }
    }
}

/// Another node. Consensus makes several of these for one node, so that a snapshot does not delay
/// signs of life.
#[derive(Debug)]
pub struct Peer {
    cluster: String,
    id: u64,
    address: String,
    connection: Option<Connection>,
}

impl Peer {
    /// Sends a request and the files that follow it, and waits for the reply.
    async fn call<T: DeserializeOwned>(
        &mut self,
        request: Request,
        files: Option<&SnapshotDir>,
        option: RPCOption,
    ) -> Result<T, Unreachable<Types>> {
        // After an error the next call takes a new connection: a late reply must not be its reply.
        let connection = self.connection.take();
        let call = Call { cluster: self.cluster.clone(), to: self.id, request };
        let exchange = async {
            let mut connection = match connection {
                Some(connection) => connection,
                None => Connection::connect(&self.address).await?,
            };
            connection.send(&call).await?;
            if let (Some(dir), Request::Snapshot { files, .. }) = (files, &call.request) {
                connection.send_files(&dir.path(), files).await?;
            }
            let reply: Result<T, Refusal> = connection.receive().await?;
            io::Result::Ok((connection, reply))
        };
        let why = match timeout(option.soft_ttl(), exchange).await {
            Ok(Ok((connection, reply))) => {
                self.connection = Some(connection);
                match reply {
                    Ok(reply) => return Ok(reply),
                    Err(refusal) => refusal.to_string(),
                }
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no reply within {:?}", option.soft_ttl()),
        };
        Err(Unreachable::from_string(format!("{}: {why}", self.address)))
    }
}

impl RaftNetworkV2<Types> for Peer {
    type SnapshotData = SnapshotDir;

    async fn append_entries(
        &mut self,
        rpc: AppendEntriesRequest<Types>,
        option: RPCOption,
    ) -> Result<AppendEntriesResponse<Types>, RPCError<Types>> {
        Ok(self.call(Request::Append(rpc), None, option).await?)
    }

    async fn vote(
        &mut self,
        rpc: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        Ok(self.call(Request::Vote(rpc), None, option).await?)
    }

    async fn pre_vote(
        &mut self,
        rpc: VoteRequest<Types>,
        option: RPCOption,
    ) -> Result<VoteResponse<Types>, RPCError<Types>> {
        Ok(self.call(Request::PreVote(rpc), None, option).await?)
    }

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: Snapshot,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<Types>, StreamingError<Types>> {
        let Snapshot { meta, snapshot: dir } = snapshot;
        let files = dir.files().map_err(|error| Unreachable::new(&error))?;
        let request = Request::Snapshot { vote, meta, files };
        tokio::select! {
            reply = self.call(request, Some(&dir), option) => Ok(reply?),
            closed = cancel => Err(StreamingError::Closed(closed)),
        }
    }
}
