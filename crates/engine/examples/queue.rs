//! A queue: tasks with ascending numbers, taken from the front by a range delete.
//!
//! A queue in an LSM tree is slow if each task is deleted alone: every search for the front steps
//! over the tombstones of all tasks that are gone. A range delete (range tombstone) is one write
//! for all of them, and reads skip what it covers. One batch removes the tasks and notes their
//! result, so that a crash neither loses a task nor runs one twice.
//!
//! Under `leveled`, tables with ascending keys are moved down and not rewritten. Once a range
//! delete covers a table, the table is dropped unread.
//!
//! `cargo run -p lsmith --example queue`

use lsmith::{Batch, KeyspaceOptions, PersistMode, Store};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let store = Store::builder(dir).open()?;
    let leveled = KeyspaceOptions { policy: Some("leveled".into()), ..Default::default() };
    let tasks = store.keyspace_with("tasks", &leveled)?;
    let done = store.keyspace("done")?;

    // Numbers go on behind the last task; big-endian bytes have the order of the numbers.
    let next = match tasks.iter().next_back().transpose()? {
        Some((last, _)) => u64::from_be_bytes(last[..].try_into()?) + 1,
        None => 0,
    };
    for number in next..next + 1000 {
        tasks.put(number.to_be_bytes(), format!("task {number}"))?;
    }

    for _ in 0..3 {
        let front = tasks.iter().take(300).collect::<lsmith::Result<Vec<_>>>()?;
        let Some((last, _)) = front.last() else { break };
        let bytes: usize = front.iter().map(|(_, task)| task.len()).sum();
        let mut batch = Batch::new();
        batch.delete_range(&tasks, ..=last.clone());
        batch.put(&done, last, bytes.to_string());
        store.write(batch, PersistMode::SyncData)?;
    }
    let (first, _) = tasks.iter().next().ok_or("the queue is empty")??;
    let first = u64::from_be_bytes(first[..].try_into()?);
    writeln!(out, "{} tasks wait, the first is {first}", tasks.iter().count())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
