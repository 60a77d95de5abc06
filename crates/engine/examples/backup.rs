//! Backup and restore of an open store, and a checkpoint.
//!
//! Backups of one directory share the files that did not change, so each costs the room of what is
//! new. Each can be restored, whatever others are removed. A checkpoint is a second store that
//! shares files by hard links. It takes no time, but damage of the device harms both. Writers go on
//! during all of this.
//!
//! `cargo run -p lsmith --example backup`

use lsmith::{Backups, Store};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let store = Store::builder(dir.join("shop")).open()?;
    let prices = store.keyspace("prices")?;
    let backups = Backups::new(dir.join("backups"));

    prices.put("pear", "30")?;
    let monday = store.backup(&backups)?;
    prices.put("pear", "3000")?;
    let tuesday = store.backup(&backups)?;
    writeln!(out, "backups {} and {}", monday.id, tuesday.id)?;
    writeln!(out, "{} errors in the files of all backups", backups.verify()?.len())?;

    // The price of Tuesday was a mistake.
    backups.restore(monday.id, dir.join("restored"))?;
    let restored = Store::builder(dir.join("restored")).open()?;
    let price = restored.existing_keyspace("prices")?.get("pear")?.unwrap_or_default();
    writeln!(out, "restored: {}", price.escape_ascii())?;

    // Keeps the newest backup only.
    writeln!(out, "removed {:?}", backups.keep(1)?)?;

    store.checkpoint(dir.join("copy"))?;
    prices.delete("pear")?;
    let copy = Store::builder(dir.join("copy")).open()?;
    let price = copy.existing_keyspace("prices")?.get("pear")?.unwrap_or_default();
    writeln!(out, "checkpoint: {}", price.escape_ascii())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
