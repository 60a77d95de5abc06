//! Hello: open a store, write, read, iterate in both directions, and open the store again.
//!
//! `put` returns when the write survives the death of the process. `put_with` takes a `PersistMode`
//! for writes that must also survive power loss. Keys and values are bytes, and keys are ordered
//! byte by byte.
//!
//! `cargo run -p lsmith --example hello`

use lsmith::{PersistMode, Store};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let store = Store::builder(dir).open()?;
    let users = store.keyspace("users")?;
    users.put("ada", "1815")?;
    users.put("grace", "1906")?;
    users.put_with("kurt", "1906", PersistMode::SyncData)?;

    let before = store.snapshot();
    users.delete("kurt")?;
    writeln!(out, "kurt is {:?}, and was {:?}", users.get("kurt")?, before.get(&users, "kurt")?)?;

    for entry in users.range("a".."z").rev() {
        let (name, year) = entry?;
        writeln!(out, "{}: {}", name.escape_ascii(), year.escape_ascii())?;
    }

    // A store closes with its last handle. A snapshot is a handle too.
    drop((store, users, before));
    let store = Store::builder(dir).create_if_missing(false).open()?;
    let users = store.existing_keyspace("users")?;
    writeln!(out, "opened again, there are {} users", users.iter().count())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
