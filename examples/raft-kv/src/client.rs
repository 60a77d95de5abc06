//! How others talk to a cluster: find the leader, try again where that is safe.

use crate::Command;
use crate::network::{Call, Connection, Directory, Refusal, Request};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// The time between attempts if no node leads.
const PAUSE: Duration = Duration::from_millis(50);

/// Why a request did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientError {
    /// Nothing was done. The request can be tried again.
    NotDone(String),
    /// A write may have been done, or may still be. To try it again may do it twice.
    Unknown(String),
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::NotDone(why) => write!(f, "not done: {why}"),
            ClientError::Unknown(why) => write!(f, "the outcome is unknown: {why}"),
        }
    }
}

impl std::error::Error for ClientError {}

/// A client of a cluster. It makes one request at a time.
#[derive(Debug)]
pub struct Client {
    directory: Directory,
    /// The node to ask next.
    next: u64,
    connections: BTreeMap<u64, Connection>,
    patience: Duration,
}

impl Client {
    /// Returns a client of a cluster. Each request ends after `patience`.
    pub fn new(directory: Directory, patience: Duration) -> Client {
        let next = directory.nodes.keys().next().copied().unwrap_or(0);
        Client { directory, next, connections: BTreeMap::new(), patience }
    }

    /// Writes, and returns when the write is committed.
    ///
    /// # Errors
    /// `NotDone` if no node took the write; `Unknown` if one took it and did not confirm it.
    pub async fn write(&mut self, command: Command) -> Result<(), ClientError> {
        let deadline = Instant::now() + self.patience;
        self.ask_leader(&Request::Write(command), deadline, true).await
    }

    /// Returns the value of `key` from the last write, or from one that ends during the call.
    ///
    /// # Errors
    /// `NotDone` if no node could answer.
    pub async fn read(&mut self, key: &str) -> Result<Option<String>, ClientError> {
        let request = Request::Read { key: key.to_string(), stale: false };
        self.ask_leader(&request, Instant::now() + self.patience, false).await
    }

    /// Asks one node, whatever it is.
    ///
    /// # Errors
    /// `NotDone` if it cannot be reached or refuses; `Unknown` if it does not answer.
    pub async fn ask<T: DeserializeOwned>(
        &mut self,
        id: u64,
        request: &Request,
    ) -> Result<T, ClientError> {
        match self.exchange(id, request, Instant::now() + self.patience).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(refusal)) => Err(ClientError::NotDone(refusal.to_string())),
            Err((false, error)) => Err(ClientError::NotDone(error.to_string())),
            Err((true, error)) => Err(ClientError::Unknown(error.to_string())),
        }
    }

    /// Asks the nodes in turn until one that leads answers.
    async fn ask_leader<T: DeserializeOwned>(
        &mut self,
        request: &Request,
        deadline: Instant,
        is_write: bool,
    ) -> Result<T, ClientError> {
        let mut last = String::new();
        while Instant::now() < deadline {
            let id = self.next;
            // A read can be asked of another node when one does not answer.
            let until = if is_write { deadline } else { Instant::now() + self.patience / 3 };
            let hint = match self.exchange(id, request, until.min(deadline)).await {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(Refusal::NotLeader(leader))) => leader,
                Ok(Err(Refusal::Invalid(why))) => return Err(ClientError::NotDone(why)),
                Ok(Err(Refusal::Unknown(why))) if is_write => {
                    return Err(ClientError::Unknown(why));
                }
                Err((true, error)) if is_write => {
                    self.next = self.after(id);
                    return Err(ClientError::Unknown(format!("node {id}: {error}")));
                }
                Ok(Err(refusal)) => {
                    last = format!("node {id}: {refusal}");
                    None
                }
                Err((_, error)) => {
                    last = format!("node {id}: {error}");
                    None
                }
            };
            self.next = hint.filter(|hint| *hint != id).unwrap_or_else(|| self.after(id));
            if hint.is_none() {
                sleep(PAUSE).await;
            }
        }
        Err(ClientError::NotDone(format!("no node that leads was found in time; {last}")))
    }

    fn after(&self, id: u64) -> u64 {
        let nodes = &self.directory.nodes;
        let mut later = nodes.range(id + 1..).chain(nodes.range(..));
        later.next().map_or(id, |(id, _)| *id)
    }

    /// Sends a request to one node and returns the reply. An error says if the node may have got
    /// the request.
    async fn exchange<T: DeserializeOwned>(
        &mut self,
        id: u64,
        request: &Request,
        until: Instant,
    ) -> Result<Result<T, Refusal>, (bool, io::Error)> {
        let no_time = |_| io::Error::from(io::ErrorKind::TimedOut);
        let mut connection = match self.connections.remove(&id) {
            Some(connection) => connection,
            None => {
                let address = self.directory.nodes.get(&id).map_or("", String::as_str);
                let connected = timeout_at(until, Connection::connect(address)).await;
                connected.map_err(no_time).flatten().map_err(|error| (false, error))?
            }
        };
        let exchange = async {
            let cluster = self.directory.cluster.clone();
            connection.send(&Call { cluster, to: id, request }).await?;
            connection.receive().await
        };
        let reply = timeout_at(until, exchange).await.map_err(no_time).flatten();
        let reply = reply.map_err(|error| (true, error))?;
        self.connections.insert(id, connection);
        Ok(reply)
    }
}
