//! Workers that write and read, and note when they did.

use crate::cluster::Cluster;
use crate::history::{Op, What};
use raft_kv::Command;
use raft_kv::client::{Client, ClientError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::sync::watch;
use tokio::task::{JoinHandle, yield_now};

/// The keys that are written and read.
pub(crate) const KEYS: u64 = 6;

/// What all workers have done.
#[derive(Clone)]
pub(crate) struct History {
    begin: Instant,
    ops: Arc<Mutex<Vec<Op>>>,
    /// The operations that have ended, whether or not anything was done.
    ended: Arc<watch::Sender<u64>>,
}

impl History {
    pub(crate) fn new() -> History {
        History { begin: Instant::now(), ops: Arc::default(), ended: Arc::default() }
    }

    /// Returns once `count` more operations have ended.
    pub(crate) async fn more(&self, count: u64) {
        let mut ended = self.ended.subscribe();
        let goal = *ended.borrow() + count;
        ended.wait_for(|ended| *ended >= goal).await.unwrap();
    }

    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    pub(crate) fn ops(&self) -> Vec<Op> {
        self.ops.lock().unwrap().clone()
    }

    fn note(&self, key: &str, what: What, start: u64, end: u64) {
        self.ops.lock().unwrap().push(Op { key: key.to_string(), what, start, end });
    }

    /// Writes, and notes it unless nothing was done. Returns true if the write is confirmed.
    pub(crate) async fn write(&self, client: &mut Client, key: &str, value: &str) -> bool {
        let start = self.now();
        let command = Command::Put { key: key.to_string(), value: value.to_string() };
        let written = client.write(command).await;
        self.ended.send_modify(|ended| *ended += 1);
        let end = match &written {
            Ok(()) => self.now(),
            Err(ClientError::Unknown(_)) => u64::MAX,
            Err(ClientError::NotDone(_)) => return false,
        };
        self.note(key, What::Write(value.to_string()), start, end);
        written.is_ok()
    }

    /// Reads, and notes what was read. Returns true if there was an answer.
    pub(crate) async fn read(&self, client: &mut Client, key: &str) -> bool {
        let start = self.now();
        let read = client.read(key).await;
        self.ended.send_modify(|ended| *ended += 1);
        match read {
            Ok(value) => {
                self.note(key, What::Read(value), start, self.now());
                true
            }
            Err(_) => false,
        }
    }

    /// Notes a read that was made otherwise, from `start` until now.
    pub(crate) fn note_read(&self, key: &str, value: Option<String>, start: Instant) {
        let start = (start - self.begin).as_nanos() as u64;
        self.note(key, What::Read(value), start, self.now());
    }
}

/// Workers that go on until they are stopped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    workers: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(cluster: &Cluster, history: &History, seed: u64) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let work = |worker: u64| {
            let (mut client, history, stop) = (cluster.client(), history.clone(), stop.clone());
            let mut random = fastrand::Rng::with_seed(seed * 100 + worker);
            tokio::spawn(async move {
                let mut count = 0;
                while !stop.load(Ordering::Relaxed) {
                    let key = random.u64(..KEYS).to_string();
                    if random.bool() {
                        count += 1;
                        history.write(&mut client, &key, &format!("{worker}-{count}")).await;
                    } else {
                        history.read(&mut client, &key).await;
                    }
                    yield_now().await;
                }
            })
        };
        let workers = (1..=5).map(work).collect();
        Load { stop, workers }
    }

    /// Stops the workers and waits for their last operations.
    pub(crate) async fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        for worker in self.workers {
            worker.await.unwrap();
        }
    }
}
