//! Sessions that expire: a time to live (TTL) for each entry.
//!
//! The values of the keyspace live for an hour unless a write says otherwise. An expired entry is
//! gone from every read at once. Merges free its space, and tables in which all entries have
//! expired are dropped unread. The program has a clock of its own, so that it need not wait.
//! Without `Builder::clock` the clock shows seconds since 1970.
//!
//! `cargo run -p lsmith --example sessions`

use lsmith::{Clock, Expiry, KeyspaceOptions, Store};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let now = Arc::new(AtomicU64::new(0));
    let shown = Arc::clone(&now);
    // The store remembers the name, and refuses a clock with another one.
    let clock = Clock::new("program_seconds", move || shown.load(Ordering::Relaxed));
    let clock = clock.with_tick(Duration::from_secs(1));
    let store = Store::builder(dir).clock(clock).open()?;

    let hour = Expiry::after(Duration::from_secs(3600));
    let hour = KeyspaceOptions { expiry: Some(hour), ..Default::default() };
    let sessions = store.keyspace_with("sessions", &hour)?;
    sessions.put("7f3a", "ada")?;
    sessions.put_with_ttl("91c0", "grace", Duration::from_secs(60))?;
    sessions.put_until("b2d4", "kurt", 7200)?;

    for second in [59, 60, 3599, 3600, 7200] {
        now.store(second, Ordering::Relaxed);
        let names =
            sessions.iter().map(|entry| Ok(entry?.1)).collect::<lsmith::Result<Vec<_>>>()?;
        writeln!(out, "after {second} s: {}", names.join(&b' ').escape_ascii())?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
