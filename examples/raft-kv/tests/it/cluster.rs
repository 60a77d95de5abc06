//! Three nodes in processes of their own, which a test starts, kills and cuts off.

use crate::proxy::{Link, Mode};
use raft_kv::client::Client;
use raft_kv::network::{Directory, Request, Status};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// Returns a free port, with two free ones behind it, which no other test gets. They lie below the
/// ports that the system gives to whoever asks for any.
pub(crate) fn free_ports() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = 20_000 + (std::process::id() % 1000 * 10) as u16;
    loop {
        let port = begin + NEXT.fetch_add(3, Ordering::Relaxed);
        if (port..port + 3).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return port;
        }
    }
}

/// The time that anything may take which must happen at last. Machines are busy.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Cluster {
    dir: TempDir,
    pub(crate) directory: Directory,
    /// The links, by the node that asks and the node that answers.
    links: BTreeMap<(u64, u64), Link>,
    processes: BTreeMap<u64, Child>,
    snapshot_every: u64,
}

impl Cluster {
    /// Starts three nodes and makes them a cluster that has a leader.
    pub(crate) async fn start(snapshot_every: u64) -> Cluster {
        let first = free_ports();
        let address = |id: u16| (u64::from(id), format!("127.0.0.1:{}", first + id - 1));
        let nodes: BTreeMap<u64, String> = (1..=3).map(address).collect();
        let mut links = BTreeMap::new();
        for from in 1..=3 {
            for (to, address) in nodes.iter().filter(|(to, _)| **to != from) {
                links.insert((from, *to), Link::to(address).await);
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory { cluster: dir.path().display().to_string(), nodes };
        let processes = BTreeMap::new();
        let mut cluster = Cluster { dir, directory, links, processes, snapshot_every };
        (1..=3).for_each(|id| cluster.spawn(id));
        cluster.status(1).await;
        cluster.client().ask::<()>(1, &cluster.directory.initialize()).await.unwrap();
        cluster.leader().await;
        cluster
    }

    /// Starts the process of a node, and waits until it listens or has ended.
    pub(crate) fn spawn(&mut self, id: u64) {
        let output = self.dir.path().join(format!("{id}.output"));
        let mut output = File::options().append(true).create(true).open(output).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_raft-kv"));
        command.args(["node", "--heartbeat-ms", "50", "--id", &id.to_string()]);
        command.args(["--cluster", &self.directory.cluster]);
        command.args(["--listen", &self.directory.nodes[&id]]);
        command.args(["--snapshot-every", &self.snapshot_every.to_string()]);
        for ((from, to), link) in &self.links {
            if *from == id {
                command.args(["--route", &format!("{to}={}", link.address)]);
            }
        }
        command.arg("--dir").arg(self.dir.path().join(id.to_string()));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(output.try_clone().unwrap());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        lines.read_line(&mut String::new()).unwrap();
        // The pipe is read until the process ends: it may print.
        std::thread::spawn(move || io::copy(&mut lines, &mut output));
        self.processes.insert(id, process);
    }

    /// Kills the process of a node, if it runs: `kill -9`.
    pub(crate) fn kill(&mut self, id: u64) {
        if let Some(mut process) = self.processes.remove(&id) {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Starts all nodes that do not run. One that has ended by itself is a failure.
    pub(crate) fn spawn_missing(&mut self) {
        for id in 1..=3 {
            match self.processes.get_mut(&id).map(|process| process.try_wait().unwrap()) {
                Some(None) => {}
                Some(Some(status)) => panic!("node {id} ended: {status}; {}", self.output(id)),
                None => self.spawn(id),
            }
        }
    }

    fn output(&self, id: u64) -> String {
        std::fs::read_to_string(self.dir.path().join(format!("{id}.output"))).unwrap()
    }

    /// Sets the links from and to `id`.
    pub(crate) fn set_links(&self, id: u64, mode: Mode) {
        for ((from, to), link) in &self.links {
            if *from == id || *to == id {
                link.set(mode);
            }
        }
    }

    /// Sets the link on which `from` asks `to`.
    pub(crate) fn set_link(&self, from: u64, to: u64, mode: Mode) {
        self.links[&(from, to)].set(mode);
    }

    pub(crate) fn heal(&self) {
        self.links.values().for_each(|link| link.set(Mode::Open));
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.directory.clone(), Duration::from_secs(3))
    }

    /// Waits until node `id` says how it is.
    pub(crate) async fn status(&self, id: u64) -> Status {
        let what = format!("an answer of node {id}");
        self.wait(&what, async |client| client.ask::<Status>(id, &Request::Status).await.ok()).await
    }

    /// Waits until a node says that it leads, and returns it.
    pub(crate) async fn leader(&self) -> u64 {
        self.leader_among(&[1, 2, 3]).await
    }

    /// Waits until a node among `ids` says that it leads, and returns it.
    pub(crate) async fn leader_among(&self, ids: &[u64]) -> u64 {
        self.wait("a leader", async |client| {
            for id in ids {
                if let Ok(status) = client.ask::<Status>(*id, &Request::Status).await
                    && status.leader == Some(*id)
                {
                    return Some(*id);
                }
            }
            None
        })
        .await
    }

    /// Returns what node `id` has for `key`, however old it is.
    pub(crate) async fn stale(&self, id: u64, key: &str) -> Option<String> {
        let request = Request::Read { key: key.to_string(), stale: true };
        self.client().ask(id, &request).await.unwrap()
    }

    /// Waits until `look` finds something. Panics if it takes too long.
    pub(crate) async fn wait<T>(
        &self,
        what: &str,
        mut look: impl AsyncFnMut(&mut Client) -> Option<T>,
    ) -> T {
        let start = Instant::now();
        let mut client = self.client();
        while start.elapsed() < PATIENCE {
            let mut known = Vec::new();
            for id in self.processes.keys() {
                known.extend(client.ask::<Status>(*id, &Request::Status).await);
            }
            if let Some(found) = look(&mut client).await {
                return found;
            }
            self.change(known).await;
        }
        let outputs: Vec<String> = (1..=3).map(|id| self.output(id)).collect();
        panic!("no {what} after {PATIENCE:?}; the nodes printed {outputs:?}");
    }
}

impl Cluster {
    /// Waits until a node is not as `known` says, a second at most. A node that does not answer
    /// counts as one that has changed: it may end.
    async fn change(&self, known: Vec<Status>) {
        let mut waits = JoinSet::new();
        for status in known {
            let mut client = self.client();
            let id = status.id;
            waits.spawn(async move {
                client.ask::<Status>(id, &Request::Change(status)).await.ok();
            });
        }
        waits.join_next().await;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        (1..=3).for_each(|id| self.kill(id));
    }
}
