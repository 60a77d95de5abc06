//! A store in files of WASI: writes it, and reads it in another process.
//!
//! `wasi write DIR`, `wasi read DIR`, and `wasi repair FROM TO`. `cargo xtask wasm` runs them.

use anyhow::{Context, bail, ensure};
use lsmith::{RepairOptions, Store, repair};

const KEYS: u32 = 20_000;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let expected = "expected `write DIR`, `read DIR` or `repair FROM TO`";
    let (task, dir) = match &arguments[..] {
        [task, from, to] if task == "repair" => {
            let report = repair(&RepairOptions::default(), from, to)?;
            ensure!(report.findings.is_empty(), "{:?}", report.findings);
            println!("repaired {} keyspaces", report.keyspaces.len());
            return Ok(());
        }
        [task, dir] => (task, dir),
        _ => bail!(expected),
    };
    let builder = Store::builder(dir).lockstep(true).policy("leveled(ratio=4)");
    let store = builder.memtable_bytes(64 << 10).open().context("the store cannot be opened")?;
    let space = store.keyspace("default")?;
    match task.as_str() {
        "write" => {
            for number in 0..KEYS {
                space.put(number.to_be_bytes(), format!("value {number}"))?;
            }
            // The last memtable stays in the log.
            println!("wrote {KEYS} keys, {} runs", space.tree().disk_run_count());
        }
        "read" => {
            for number in 0..KEYS {
                let found = space.get(number.to_be_bytes())?;
                let expected = format!("value {number}");
                ensure!(found.as_deref() == Some(expected.as_bytes()), "key {number} is wrong");
            }
            let damage = store.verify()?;
            ensure!(damage.is_empty(), "{damage:?}");
            println!("read {} keys", space.iter().count());
        }
        other => bail!("unknown task {other}: {expected}"),
    }
    Ok(())
}
