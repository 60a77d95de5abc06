//! A merge policy (compaction strategy) of one's own, in a store.
//!
//! A policy is a pure function from what is known of a tree to a merge plan. It does no I/O and
//! keeps no state. The store checks every plan, and no policy decides which entries a merge drops.
//! So a wrong policy costs bytes and never an answer, unless it says that it drops data.
//! `laws::check` runs the suite that every policy must pass.
//!
//! The same code runs in simulations: see `docs/policies.md`, and the example `own_policy` of
//! `lsmith-policy`.
//!
//! `cargo run -p lsmith --example custom_policy`

use lsmith::Store;
use lsmith::policy::{Eager, MergePolicy, Shape, Spec, Stack, laws};
use lsmith::tree::{MergePlan, Reason, TreeView};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

/// Merges two neighbouring runs as soon as the newer has at least `1/ratio` of the older's bytes.
#[derive(Debug)]
struct Geometric {
    ratio: u64,
}

impl MergePolicy for Geometric {
    fn spec(&self) -> Spec {
        Spec::bare("geometric").with("ratio", self.ratio)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let stack = Stack::of(view); // newest run first
        let mut pairs = stack.runs().windows(2);
        let newer = pairs.position(|pair| pair[0].bytes * self.ratio >= pair[1].bytes)?;
        let reason = Reason::new("run {} is too large for the next", [newer as u64, 0, 0]);
        stack.merge(newer, newer + 2, Eager::Auto, reason)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: 65 } // sizes at least double, and are 64-bit numbers
    }
}

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let policy = Geometric { ratio: 3 };
    laws::check(&policy)?;

    let store = Store::builder(dir).policy(policy).memtable_bytes(64 << 10).open()?;
    let keyspace = store.keyspace("default")?;
    for number in 0..20_000_u64 {
        keyspace.put(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes(), "a value")?;
    }
    store.flush()?;
    let sizes: Vec<u64> = keyspace.tree().disk_runs().map(|run| run.bytes()).collect();
    let falls = sizes.windows(2).all(|pair| pair[0] * 3 < pair[1]);
    writeln!(out, "policy {}, sizes grow by 3 and more: {falls}", keyspace.merge_policy())?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
