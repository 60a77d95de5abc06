//! What a merge policy is told besides runs and their sizes: how often the tree is read, and how
//! old its deletes are.
//!
//! Promised: both survive reopening and a crash, as of the last flush. A value is in no file any
//! more once `deletes_within` bytes were flushed after its delete, in lockstep and with threads.

use crate::frame::contents::read_file;
use crate::frame::small::{DIR, fill, open, small, threaded};
use lsmith::env::{Env, MemEnv};
use lsmith::tree::Tree;
use lsmith::{Builder, Keyspace};
use std::path::Path;

const DELETES_WITHIN: u64 = 40_000;

/// The bytes of a memtable of [`small`].
const MEMTABLE_BYTES: u64 = 4000;

/// Returns the flushes that brought the oldest tombstones of each table that has any.
fn ages(tree: &Tree) -> Vec<u64> {
    let slices = tree.disk_runs().flat_map(|run| run.slices());
    let tables = slices.map(|slice| slice.table());
    tables.filter(|table| table.size.tombstones > 0).map(|table| table.oldest_tombstone).collect()
}

fn put_and_delete(space: &Keyspace, numbers: std::ops::Range<u32>) {
    for number in numbers {
        space.put(number.to_be_bytes(), [7; 60]).unwrap();
        space.delete((number / 2).to_be_bytes()).unwrap();
    }
}

#[test]
fn ages_of_deletes_survive_reopening_and_a_crash() {
    let policy = "auto(runs=20, price=0.01, deletes_within=1GB)";
    let env = MemEnv::new();
    let (store, space) = open(small(&env).policy(policy));
    put_and_delete(&space, 0..600);
    let tree = space.tree();
    let before = ages(&tree);
    assert!(before.len() > 3 && before.iter().all(|flush| *flush > 0), "{tree}");
    assert!(before.windows(2).all(|pair| pair[0] > pair[1]), "the newest first: {before:?}");
    let crashed = env.process_crash_clone();
    drop((store, space));
    for env in [env, crashed] {
        let (_store, space) = open(small(&env).policy(policy));
        let after = ages(&space.tree());
        assert!(after.ends_with(&before), "{before:?}, then {after:?}");
    }
}

#[test]
fn counts_of_reads_survive_reopening_and_a_crash() {
    let policy = "auto(runs=20, price=reads)";
    let env = MemEnv::new();
    let (store, space) = open(small(&env).policy(policy));
    for number in 0..300_u32 {
        space.put(number.to_be_bytes(), [7; 60]).unwrap();
        space.get(number.to_be_bytes()).unwrap();
        space.get((number + 1000).to_be_bytes()).unwrap();
        if number % 10 == 0 {
            assert_eq!(space.range(number.to_be_bytes()..).count(), 1);
        }
    }
    let before = space.tree().reads();
    let mean = before.per_memtable();
    assert!(mean.found > 20.0 && mean.found == mean.absent, "{mean:?}");
    assert!((mean.scans - mean.found / 10.0).abs() < 1.0, "{mean:?}");
    let crashed = env.process_crash_clone();
    drop((store, space));
    for env in [env, crashed] {
        let (_store, space) = open(small(&env).policy(policy));
        assert_eq!(space.tree().reads(), before);
    }
    // Nobody else pays for it.
    let (_store, space) = open(small(&MemEnv::new()));
    fill(&space, 0..300, [7; 60]);
    space.get(7_u32.to_be_bytes()).unwrap();
    assert_eq!(space.tree().reads(), lsmith::tree::Reads::default());
}

/// Returns true if a table in `env` has the value that was deleted.
fn is_held(env: &MemEnv) -> bool {
    let names = env.list(Path::new(DIR)).unwrap();
    let files = names.iter().map(|name| read_file(env, &Path::new(DIR).join(name)));
    files.into_iter().any(|file| file.windows(SECRET.len()).any(|bytes| bytes == SECRET))
}

const SECRET: &[u8] = b"what nobody may read any more";

/// Writes a value that everything is merged with, deletes it, and writes on until it is gone.
/// Returns the bytes that were written since the delete, 256 KiB if it is still there.
fn bytes_until_gone(builder: Builder, env: &MemEnv) -> u64 {
    let (store, space) = open(builder.log_bytes(8 << 10));
    space.put(b"secret", SECRET).unwrap();
    fill(&space, 0..1000, [7; 60]);
    store.settle().unwrap();
    space.delete(b"secret").unwrap();
    let mut written = 0;
    for number in 1000_u32.. {
        if number % 20 == 0 {
            store.settle().unwrap();
            if !is_held(env) || written > 1 << 18 {
                break;
            }
        }
        space.put(number.to_be_bytes(), [7; 60]).unwrap();
        written += 4 + 60 + 8;
    }
    written
}

#[test]
fn what_was_deleted_is_gone_within_the_bytes_that_were_said() {
    let auto = format!("auto(runs=40, price=0.001, deletes_within={DELETES_WITHIN}B)");
    let lethe = format!("lethe(l0=40, delete_within={})", DELETES_WITHIN / MEMTABLE_BYTES);
    let free = "lethe(l0=40, delete_within=1000)";
    for make in [small, threaded] as [fn(&MemEnv) -> Builder; 2] {
        for (policy, without) in [(&auto, "auto(runs=40, price=0.001)"), (&lethe, free)] {
            let env = MemEnv::new();
            let usual = bytes_until_gone(make(&env).policy(without), &env);
            let env = MemEnv::new();
            let bounded = bytes_until_gone(make(&env).policy(&policy[..]), &env);
            // The memtable of the delete may take some bytes before it, and a log stays for a
            // while.
            let most = DELETES_WITHIN + (16 << 10);
            let text = format!("{policy}: {bounded} bytes, {usual} without a limit");
            assert!(bounded <= most && usual > 2 * most, "{text}");
        }
    }
}
