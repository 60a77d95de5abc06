//! A change feed (CDC) into another store.
//!
//! A feed returns the batches of a store in their order, from a sequence number on. The copy writes
//! each batch as one batch of its own, and in the same batch the number of the next one. So a
//! follower that dies applies each batch once, whenever it dies. `changes_bytes` says how much log
//! the store keeps for followers. One that falls further behind gets the error `Gone`, and begins
//! again with a snapshot.
//!
//! A `DetachedBatch` has bytes with a checksum, so it can also go over a network.
//!
//! `cargo run -p lsmith --example change_feed`

use lsmith::{Batch, DetachedBatch, PersistMode, SeqNo, Store};
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

/// Applies to `copy` all batches of `store` that it lacks, and returns their number.
fn follow(store: &Store, copy: &Store) -> Result<u32, Box<dyn Error>> {
    let state = copy.keyspace("follower")?;
    let next = match state.get("next")? {
        Some(next) => SeqNo(u64::from_be_bytes(next[..].try_into()?)),
        None => store.oldest_change()?,
    };
    let mut changes = store.changes(next)?;
    let mut applied = 0;
    while let Some(found) = changes.next_batch()? {
        let sent = DetachedBatch::from_iter(found.changes).to_bytes();
        // Here the bytes would go over the network.
        let received = DetachedBatch::from_bytes(&sent)?;
        let mut batch: Batch = copy.bind(&received)?;
        batch.put(&state, "next", changes.next_seq().0.to_be_bytes());
        copy.write(batch, PersistMode::Buffer)?;
        applied += 1;
    }
    Ok(applied)
}

pub(crate) fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let store = Store::builder(dir.join("store")).changes_bytes(64 << 20).open()?;
    let copy = Store::builder(dir.join("copy")).open()?;
    let (fruit, copied) = (store.keyspace("fruit")?, copy.keyspace("fruit")?);
    fruit.put("apple", "red")?;
    fruit.put("pear", "green")?;
    writeln!(out, "{} batches", follow(&store, &copy)?)?;
    store.flush()?; // The logs stay.
    fruit.delete_range("a".."b")?;
    writeln!(out, "{} batch more", follow(&store, &copy)?)?;
    writeln!(out, "copies are equal: {}", entries(&fruit)? == entries(&copied)?)?;
    Ok(())
}

fn entries(keyspace: &lsmith::Keyspace) -> lsmith::Result<Vec<impl PartialEq + use<>>> {
    keyspace.iter().collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    run(dir.path(), &mut io::stdout())
}
