//! Counters: updates without a read, by a merge operator.
//!
//! What other stores call a merge operator is a combine operator here, because a merge is what they
//! call compaction. `combine` writes an operand and reads nothing. Reads and merges apply the
//! operator later. So a counter costs what a put costs, and two threads that count cannot lose an
//! update. `counter` is built in. `Greatest` is an operator of this program: every opening of the
//! store must register it.
//!
//! `cargo run -p lsmith --example counters`

use lsmith::{Batch, Combine, CombineError, KeyspaceOptions, PersistMode, Store};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

/// Keeps the greatest value, byte by byte.
struct Greatest;

impl Combine for Greatest {
    fn name(&self) -> &str {
        "greatest"
    }

    fn combine(
        &self,
        _key: &[u8],
        value: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>, CombineError> {
        Ok(operands.iter().copied().chain(value).max().unwrap_or_default().to_vec())
    }

    /// Lets merges join operands before they meet the value.
    fn combine_operands(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(older.max(newer).to_vec())
    }
}

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let store = Store::builder(dir).operator(Greatest).open()?;
    let with = |name: &str| KeyspaceOptions { operator: Some(name.into()), ..Default::default() };
    let views = store.keyspace_with("views", &with("counter"))?;
    let latest = store.keyspace_with("latest", &with("greatest"))?;
    for (page, date) in [("home", "2026-03-01"), ("help", "2026-01-09"), ("home", "2026-02-11")] {
        let mut batch = Batch::new();
        batch.combine(&views, page, 1_i64.to_le_bytes());
        batch.combine(&latest, page, date);
        store.write(batch, PersistMode::Buffer)?;
    }
    for entry in views.iter() {
        let (page, count) = entry?;
        let count = i64::from_le_bytes(count[..].try_into()?);
        let date = latest.get(&page)?.unwrap_or_default();
        writeln!(out, "{}: {count}, last on {}", page.escape_ascii(), date.escape_ascii())?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
