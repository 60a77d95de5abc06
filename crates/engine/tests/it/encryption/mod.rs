//! Encrypted stores.

mod keys;
mod planted;
mod rotation;
mod tampering;
mod witness;

use lsmith::Store;
use lsmith::cipher::{Keys, MasterKey};
use lsmith::env::{Env, MemEnv};
use std::path::Path;
use std::sync::Arc;

/// Returns the master key that is made of `byte`.
fn master(byte: u8) -> MasterKey {
    MasterKey::aes_256_gcm([byte; 32])
}

fn keys() -> Keys {
    Keys::new(master(1))
}

/// What no file may hold.
const SECRETS: [&[u8]; 2] = [b"SecretKey", b"SecretValue"];

fn key(index: usize) -> String {
    format!("SecretKey/{index:05}")
}

fn value(index: usize, life: usize) -> String {
    format!("SecretValue/{index}/{life}/{}", "x".repeat(index % 90))
}

/// Returns the paths and all bytes of the files in `dir` and below.
fn files(env: &MemEnv, dir: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for name in env.list(dir).unwrap() {
        let path = dir.join(name);
        match env.open(&path) {
            Ok(file) => {
                let mut bytes = vec![0; file.bytes().unwrap() as usize];
                file.read_exact_at(&mut bytes, 0).unwrap();
                found.push((path, bytes));
            }
            Err(_) => found.extend(files(env, &path)),
        }
    }
    found
}

/// Looks for the planted keys and values in every file of the environment.
fn find_secrets(env: &MemEnv) -> Vec<String> {
    let mut found = Vec::new();
    for (path, bytes) in files(env, Path::new("/")) {
        for secret in SECRETS {
            // A prefix shared by neighbours may be cut off a key.
            let part = &secret[..8];
            if let Some(at) = bytes.windows(part.len()).position(|window| window == part) {
                found.push(format!(
                    "{} at {at} of {}",
                    String::from_utf8_lossy(part),
                    path.display()
                ));
            }
        }
    }
    found
}

/// Returns a store of one keyspace with some entries in tables and some in the log.
fn filled(env: &MemEnv, keys: Keys) -> Store {
    let store = small(env, keys).open().unwrap();
    fill(&store, 0);
    store
}

fn small(env: &MemEnv, keys: Keys) -> lsmith::Builder {
    Store::builder("/store")
        .env(Arc::new(env.clone()))
        .keys(keys)
        .memtable_bytes(8 << 10)
        .policy("tiered(ratio=3)")
        .lockstep(true)
}

const COUNT: usize = 700;

fn fill(store: &Store, life: usize) {
    let space = store.keyspace("space").unwrap();
    for index in 0..COUNT {
        space.put(key(index), value(index, life)).unwrap();
    }
}

fn check(store: &Store, life: usize) {
    let space = store.existing_keyspace("space").unwrap();
    for index in 0..COUNT {
        let found = space.get(key(index)).unwrap();
        assert_eq!(found.as_deref(), Some(value(index, life).as_bytes()), "{index}");
    }
    assert_eq!(space.iter().count(), COUNT);
}
