//! An observer that draws the tree (the LSM state) after each merge (compaction).
//!
//! An observer hears of every change: a memtable is sealed, a plan is reserved, a plan has taken
//! effect, the tree is at rest. Each plan says why it was made. The store calls the observer with
//! locks held, so it must be quick, and must not call the store. In lockstep the writer carries out
//! all merges itself, and the same writes always give the same drawing.
//!
//! `lsmith watch DIR` draws the trees of a store that another process has open.
//!
//! `cargo run -p lsmith --example draw_tree`

use lsmith::{Event, Observer, Store};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Default)]
struct Drawing(Mutex<String>);

impl Observer for Drawing {
    fn on_event(&self, _keyspace: &str, event: &Event<'_>) {
        let Event::Committed { plan, tree, bytes_written, .. } = event else { return };
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(text, "wrote {:>3} kB: {}", bytes_written / 1000, plan.reason);
        for (level, runs) in tree.levels().iter().enumerate().filter(|(_, level)| level.bytes() > 0)
        {
            // A letter is 4 kB; a bar is a run, the newest first.
            let bar = |bytes: u64| "=".repeat(bytes.div_ceil(4000) as usize);
            let bars: Vec<String> = runs.runs().iter().map(|run| bar(run.bytes())).collect();
            let _ = writeln!(text, "  level {level} |{}|", bars.join("|"));
        }
    }
}

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let drawing = Arc::new(Drawing::default());
    let store = Store::builder(dir).policy("leveled(ratio=3, l0=2)").memtable_bytes(16 << 10);
    let store = store.lockstep(true).observer(Arc::<Drawing>::clone(&drawing)).open()?;
    let keyspace = store.keyspace("default")?;
    for number in 0..2000_u64 {
        let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        keyspace.put(key, "a value of thirty-two characters")?;
    }
    write!(out, "{}", drawing.0.lock().unwrap_or_else(PoisonError::into_inner))?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
