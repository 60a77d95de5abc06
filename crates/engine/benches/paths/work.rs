//! The hot paths of the store, on files in memory and without threads, so that the same work always
//! takes the same steps.

use crate::keys::key;
use lsmith::env::MemEnv;
use lsmith::{DEFAULT_KEYSPACE, Keyspace, RecordOptions, Result, Store};
use std::sync::Arc;

/// The names of the paths.
pub(crate) const PATHS: [&str; 12] = [
    "put", "recorded", "batch", "get", "look", "absent", "seek", "next", "back", "merge", "mapped",
    "apart",
];

/// Keys in a store that is read.
pub(crate) const KEYS: u64 = 10_000;

/// Bytes of long values.
const LONG: usize = 2000;

/// Runs of such a store.
const RUNS: u64 = 4;

/// A store, and what is done to it.
pub(crate) struct Work {
    path: String,
    keyspace: Keyspace,
}

impl Work {
    /// Makes ready what `path` needs.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub(crate) fn new(path: &str) -> Result<Work> {
        // Long values in mapped tables, or in mapped value files.
        let is_long = matches!(path, "mapped" | "apart");
        let env = if is_long { MemEnv::new() } else { MemEnv::new().unmapped() };
        let builder = Store::builder("/store").env(Arc::new(env)).lockstep(true).policy("none");
        let builder = builder.large_values((path == "apart").then_some(LONG as u64));
        let store = builder.memtable_bytes(64 << 20).log_bytes(16 << 20).open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let work = Work { path: path.to_string(), keyspace };
        if path == "recorded" {
            work.keyspace.store().record("/recordings", &RecordOptions::default())?;
        }
        if !matches!(path, "put" | "recorded" | "batch") {
            work.fill(if is_long { LONG } else { 100 })?;
        }
        Ok(work)
    }

    fn fill(&self, value_bytes: usize) -> Result<()> {
        let value = vec![7; value_bytes];
        for run in 0..RUNS {
            for number in (run..KEYS).step_by(RUNS as usize) {
                self.keyspace.put(key(number), &value)?;
            }
            self.keyspace.flush()?;
        }
        // So that blocks are in the cache.
        for number in 0..KEYS {
            self.keyspace.get(key(number))?;
        }
        Ok(())
    }

    /// Takes the path `ops` times, at most [`KEYS`]; a merge takes as many entries as there are.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub(crate) fn run(&self, ops: u64) -> Result<u64> {
        let Work { path, keyspace } = self;
        match path.as_str() {
            "put" | "recorded" => {
                (0..ops).try_for_each(|number| keyspace.put(key(number), [7; 100]))?
            }
            "batch" => {
                for first in (0..ops).step_by(100) {
                    let mut batch = lsmith::Batch::new();
                    for number in first..ops.min(first + 100) {
                        batch.put(keyspace, key(number), [7; 100]);
                    }
                    keyspace.store().write(batch, lsmith::PersistMode::Buffer)?;
                }
            }
            "get" => {
                for number in 0..ops {
                    assert!(keyspace.get(key(number))?.is_some());
                }
            }
            "look" | "mapped" | "apart" => {
                for number in 0..ops {
                    assert_eq!(keyspace.get_with(key(number), |value| value[0])?, Some(7));
                }
            }
            "absent" => {
                for number in KEYS..KEYS + ops {
                    assert!(keyspace.get(key(number))?.is_none());
                }
            }
            // A range read of ten entries.
            "seek" => {
                for number in 0..ops {
                    let mut entries = keyspace.range(key(number)..);
                    for _ in 0..10 {
                        entries.next_ref().transpose()?;
                    }
                }
            }
            "next" => {
                let mut entries = keyspace.iter();
                for _ in 0..ops {
                    entries.next_ref().expect("so many keys")?;
                }
            }
            "back" => {
                let mut entries = keyspace.iter();
                for _ in 0..ops {
                    entries.next_back_ref().expect("so many keys")?;
                }
            }
            _ => {
                keyspace.merge()?;
                return Ok(KEYS);
            }
        }
        Ok(ops)
    }
}
