//! Stores with four runs, ready to be merged into one.

use crate::keys::key;
use lsmith::env::{MemEnv, RealEnv};
use lsmith::{Builder, DEFAULT_KEYSPACE, Keyspace, Result, Store};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Runs of a store.
const RUNS: u64 = 4;

/// Logical bytes of all of them together.
const BYTES: u64 = 64 << 20;

/// Where the files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    Real,
    Memory,
}

impl Files {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Files::Real => "files",
            Files::Memory => "memory",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Files> {
        [Files::Real, Files::Memory].into_iter().find(|files| files.name() == name)
    }
}

fn builder(dir: &Path) -> Builder {
    let builder = Store::builder(dir).lockstep(true).policy("none");
    builder.memtable_bytes(BYTES).log_bytes(BYTES / 2)
}

/// The files of a store with [`RUNS`] runs. Every merge gets a copy of its own.
pub(crate) enum Runs {
    Real(TempDir, u64),
    Memory(MemEnv, u64),
}

impl Runs {
    /// Fills a store with values of `value_bytes`.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub(crate) fn new(files: Files, value_bytes: usize) -> Result<Runs> {
        let dir = tempfile::tempdir().expect("there is room");
        let memory = MemEnv::new().unmapped();
        let store = match files {
            Files::Real => builder(dir.path()).open()?,
            Files::Memory => builder(Path::new("/store")).env(Arc::new(memory.clone())).open()?,
        };
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let entries = BYTES / (16 + value_bytes as u64 + 8);
        for run in 0..RUNS {
            for number in (run..entries).step_by(RUNS as usize) {
                keyspace.put(key(number), vec![7; value_bytes])?;
            }
            keyspace.flush()?;
        }
        let bytes = store.stats().flush_bytes;
        Ok(match files {
            Files::Real => Runs::Real(dir, bytes),
            Files::Memory => Runs::Memory(memory, bytes),
        })
    }

    /// Bytes of the tables.
    pub(crate) fn bytes(&self) -> u64 {
        let (Runs::Real(_, bytes) | Runs::Memory(_, bytes)) = self;
        *bytes
    }

    /// Opens a copy.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub(crate) fn open(&self) -> Result<Open> {
        let copy = tempfile::tempdir().expect("there is room");
        let store = match self {
            Runs::Real(dir, _) => {
                copy_files(dir.path(), copy.path()).expect("there is room");
                builder(copy.path()).env(Arc::new(RealEnv::new())).open()?
            }
            Runs::Memory(disk, _) => {
                let disk = Arc::new(disk.process_crash_clone());
                builder(Path::new("/store")).env(disk).open()?
            }
        };
        Ok(Open { keyspace: store.keyspace(DEFAULT_KEYSPACE)?, _copy: copy })
    }
}

/// A store with [`RUNS`] runs.
pub(crate) struct Open {
    keyspace: Keyspace,
    _copy: TempDir,
}

impl Open {
    /// Merges all runs into one.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub(crate) fn merge(&self) -> Result<()> {
        self.keyspace.merge()
    }
}

fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(from)? {
        let name: PathBuf = entry?.file_name().into();
        std::fs::copy(from.join(&name), to.join(&name))?;
    }
    Ok(())
}
