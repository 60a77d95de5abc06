//! A reader process beside the writer.
//!
//! One process writes a store, and any number of others read it. A reader opens the store with
//! `read_only`. It sees all batches up to its opening, and after `refresh` all batches up to that
//! call, synced or not. Readers need no connection to the writer and cost its writes nothing.
//!
//! The program starts itself a second time. The second process reads until it sees the last entry.
//!
//! `cargo run -p lsmith --example readers`
#![allow(clippy::disallowed_methods, reason = "the reader looks again after a while")]

use lsmith::Store;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Writes to the store in `dir`, while `reader` runs. Then prints what the reader printed.
pub(crate) fn run(
    dir: &Path,
    reader: &mut Command,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let store = Store::builder(dir).open()?;
    let events = store.keyspace("events")?;
    let reader = reader.stdout(Stdio::piped()).spawn()?;
    for number in 0..10_000_u32 {
        events.put(number.to_be_bytes(), "an event")?;
    }
    events.put("the end", "")?;
    out.write_all(&reader.wait_with_output()?.stdout)?;
    Ok(())
}

/// Reads the store in `dir` until its last entry is there.
pub(crate) fn read(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let store = Store::builder(dir).read_only(true).open()?;
    let events = store.existing_keyspace("events")?;
    while !events.contains("the end")? {
        // What is there now has no gaps.
        for (number, entry) in (0_u32..).zip(events.iter()) {
            assert_eq!(&entry?.0[..], number.to_be_bytes());
        }
        sleep(Duration::from_millis(1));
        store.refresh()?;
    }
    writeln!(out, "the reader sees {} entries", events.iter().count())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(dir) = std::env::args_os().nth(1) {
        return read(Path::new(&dir), &mut io::stdout());
    }
    let dir = tempfile::tempdir()?;
    let mut reader = Command::new(std::env::current_exe()?);
    run(dir.path(), reader.arg(dir.path()), &mut io::stdout())
}
