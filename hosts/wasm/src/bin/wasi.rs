//! A store in files of WASI: writes it, and reads it in another process.
//!
//! `wasi write DIR` and `wasi read DIR`. `cargo xtask wasm` runs both.

use anyhow::{Context, bail, ensure};
use lsmith::Store;
use lsmith::env::{Env, RealEnv};
use std::path::Path;

const KEYS: u32 = 20_000;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [task, dir] = &arguments[..] else { bail!("expected `write DIR` or `read DIR`") };
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
            // No two directories are taken for the same one.
            let is_within = |path: &str| RealEnv::new().is_within(Path::new(path), Path::new(dir));
            ensure!(is_within(&format!("{dir}/inside"))? && !is_within("/dir/beside")?);
            let damage = store.verify()?;
            ensure!(damage.is_empty(), "{damage:?}");
            println!("read {} keys", space.iter().count());
        }
        other => bail!("unknown task {other}: expected `write` or `read`"),
    }
    Ok(())
}
