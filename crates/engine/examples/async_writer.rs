//! Async: a store behind a tokio runtime.
//!
//! Calls of lsmith block: a sync waits for the device, and while merges are behind a write waits up
//! to 12 ms (back-pressure, a write stall). A worker of an async runtime must not wait. So one
//! blocking thread owns the writes. Tasks send it requests over a bounded channel. When writers are
//! held back the channel fills up, and the tasks wait without a thread. The thread takes all
//! requests that have come meanwhile into one batch, so that they share one sync.
//!
//! Reads of cached data take about a microsecond and may stay on the worker. Scans, and reads of
//! data larger than memory, go through `spawn_blocking` as well.
//!
//! `cargo run -p lsmith --example async_writer`

use lsmith::{Batch, Keyspace, PersistMode, Store};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

/// A key, a value, and where the answer goes once the write survives power loss.
type Request = (String, String, oneshot::Sender<Result<(), String>>);

/// Writes requests until all senders are gone. Returns the number of batches.
fn write_all(keyspace: &Keyspace, mut requests: mpsc::Receiver<Request>) -> usize {
    let mut waiting = Vec::new();
    let mut batches = 0;
    while requests.blocking_recv_many(&mut waiting, 100) > 0 {
        let mut batch = Batch::new();
        for (key, value, _) in &waiting {
            batch.put(keyspace, key, value);
        }
        let written = keyspace.store().write(batch, PersistMode::SyncData);
        let written = written.map_err(|error| error.to_string());
        for (_, _, answer) in waiting.drain(..) {
            // A task that was cancelled does not wait for its answer.
            let _ = answer.send(written.clone());
        }
        batches += 1;
    }
    batches
}

async fn put(sender: mpsc::Sender<Request>, number: u32) -> Result<(), String> {
    let (answer, written) = oneshot::channel();
    let request = (format!("key {number}"), "a value".to_string(), answer);
    sender.send(request).await.map_err(|_| "the writer has ended")?;
    written.await.map_err(|_| "the writer has ended")?
}

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let keyspace = Store::builder(dir).open()?.keyspace("default")?;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async {
        let (sender, requests) = mpsc::channel(64);
        let written = keyspace.clone();
        let writer = spawn_blocking(move || write_all(&written, requests));
        let puts = (0..500).map(|number| tokio::spawn(put(sender.clone(), number)));
        for put in puts.collect::<Vec<_>>() {
            put.await??;
        }
        drop(sender); // The writer ends.
        writeln!(out, "batches were shared: {}", writer.await? < 500)?;
        let count = spawn_blocking(move || keyspace.iter().count()).await?;
        writeln!(out, "{count} entries")?;
        Ok(())
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
