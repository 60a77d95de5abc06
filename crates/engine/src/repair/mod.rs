//! Saving what can be read of a damaged store into a new one.
//!
//! 1. [`known`]: what the manifest says of keyspaces, trees and tables, as far as it can be read;
//!    [`loose`] has what is said behind damage take effect as well as it can.
//! 2. [`memory`]: logs (on the way that [`logs`] goes) and copies of memory, down to the newest
//!    write of each key.
//! 3. [`sources`]: runs of tables, block by block, past those that are damaged.
//! 4. [`copy`]: of all that is said of a key, what is the newest; sorted, it is loaded in bulk.
//!
//! `docs/repair.md` has the rules.

mod copy;
mod known;
mod logs;
mod loose;
mod memory;
mod report;
mod sources;

pub use report::{Finding, FindingKind, RepairReport, RepairedKeyspace};

use crate::db::{Builder, Store};
use crate::manifest::KeyspaceFacts;
use crate::opening::take_lock;
use crate::options::{DEFAULT_POLICY, KeyspaceOptions};
use known::Known;
use lsmith_policy::Registry;
use lsmith_storage::env::{Env, RealEnv};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{self, FileKind};
use memory::Memories;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a store is repaired.
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// Where files are. Default: the operating system's.
    pub env: Arc<dyn Env>,
    /// The policies that the keyspaces may have. Default: the built-in ones.
    pub registry: Registry,
}

impl Default for RepairOptions {
    fn default() -> RepairOptions {
        RepairOptions { env: Arc::new(RealEnv::new()), registry: Registry::builtin() }
    }
}

/// Saves what can be read of the store in `from` into a new store in `to`, a directory that is
/// empty or does not exist, and tells what could not be saved. Nothing in `from` is changed but its
/// lock, which is held meanwhile. A store without damage is copied: every keyspace has the keys,
/// the policy, the memtable size and the codecs that it had.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{RepairOptions, Store, repair};
///
/// let (old, new) = (dir.path().join("old"), dir.path().join("new"));
/// Store::builder(&old).open()?.keyspace("fruit")?.put("apple", "red")?;
/// let report = repair(&RepairOptions::default(), &old, &new)?;
/// assert!(report.is_exact());
/// let saved = Store::builder(&new).open()?.existing_keyspace("fruit")?;
/// assert_eq!(saved.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `NotFound` where `from` has no file of a store; `Locked` where somebody has it open;
/// `InvalidArgument` where `to` is not empty or lies in `from`; `Unsupported` where the manifest
/// has another format; `Full`, `Io`. Part of the new store may be there after an error: remove it.
pub fn repair(
    options: &RepairOptions,
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
) -> Result<RepairReport> {
    let (env, from, to) = (&options.env, from.as_ref(), to.as_ref());
    check_target(&**env, from, to)?;
    let mut old = Old::open(options, from)?;
    let mut known = known::read(&mut old)?;
    let memories = memory::read(&mut old, &mut known);
    let new = Store::builder(to).env(Arc::clone(env)).registry(options.registry.clone());
    // Only bulk loads are noted in its log.
    let new = new.log_bytes(0);
    let keyspaces = old.copy(&known, memories, new)?;
    Ok(RepairReport { keyspaces, findings: old.findings })
}

fn check_target(env: &dyn Env, from: &Path, to: &Path) -> Result<()> {
    let refuse = |told| Err(Error::new(ErrorKind::InvalidArgument, told).at(to));
    if to.starts_with(from) {
        return refuse("the new store must not lie in the directory of the old one");
    }
    match env.list(to) {
        Ok(names) if names.is_empty() => Ok(()),
        Ok(_) => refuse("the directory for the new store is not empty"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("list", to, error)),
    }
}

/// The store that is repaired.
struct Old {
    env: Arc<dyn Env>,
    dir: PathBuf,
    registry: Registry,
    /// All numbered files, by number.
    files: Vec<(FileKind, u64)>,
    findings: Vec<Finding>,
    _lock: Box<dyn std::fmt::Debug + Send + Sync>,
}

impl Old {
    fn open(options: &RepairOptions, dir: &Path) -> Result<Old> {
        let env = Arc::clone(&options.env);
        let listed = env.list(dir);
        let names = match listed {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            listed => listed.map_err(|error| Error::io("list", dir, error))?,
        };
        let parsed = names.iter().filter_map(|name| names::parse(name));
        let mut files: Vec<(FileKind, u64)> = parsed.collect();
        files.sort_by_key(|(_, number)| *number);
        if files.is_empty() {
            return Err(Error::new(ErrorKind::NotFound, "there is no file of a store").at(dir));
        }
        let lock = take_lock(&*env, dir)?;
        let mut old = Old {
            env,
            dir: dir.to_path_buf(),
            registry: options.registry.clone(),
            files,
            findings: Vec::new(),
            _lock: lock,
        };
        old.tell_set_aside(&names);
        Ok(old)
    }

    /// Tells of what earlier openings have set aside.
    fn tell_set_aside(&mut self, names: &[String]) {
        for name in names.iter().filter(|name| name.ends_with(names::LOST)) {
            let path = self.dir.join(name);
            let bytes = self.env.file_bytes(&path).unwrap_or(0);
            let told = "it was set aside by an earlier opening and is not read";
            self.find(FindingKind::LeftOut { bytes }, &path, None, told);
        }
    }

    /// The numbers of all files of `kind`, ascending.
    fn numbers(&self, kind: FileKind) -> Vec<u64> {
        self.files.iter().filter(|(found, _)| *found == kind).map(|(_, number)| *number).collect()
    }

    fn find(
        &mut self,
        kind: FindingKind,
        path: &Path,
        offset: Option<u64>,
        message: impl Into<String>,
    ) {
        let (path, message) = (path.to_path_buf(), message.into());
        self.findings.push(Finding { kind, path, offset, keyspace: None, message });
    }

    /// Notes what `error`, met in a file, means.
    fn find_error(&mut self, kind: FindingKind, error: &Error) {
        let path = error.path().unwrap_or(&self.dir).to_path_buf();
        self.find(kind, &path, error.offset(), error.message());
    }

    /// Writes the new store.
    fn copy(
        &mut self,
        known: &Known,
        mut memories: Memories,
        new: Builder,
    ) -> Result<Vec<RepairedKeyspace>> {
        let new = new.open()?;
        let mut saved = Vec::new();
        for (id, found) in &known.keyspaces {
            let KeyspaceFacts { name, memtable_bytes, .. } = &found.state;
            let policy = Some(self.policy_of(&found.state));
            let options = KeyspaceOptions { policy, memtable_bytes: Some(*memtable_bytes) };
            // A name that was made up may be that of another.
            let keyspace = match new.existing_keyspace(name) {
                Ok(_) => new.keyspace_with(&format!("{name}-{id}"), &options)?,
                Err(_) => new.keyspace_with(name, &options)?,
            };
            self.set_compression(&keyspace, &found.state)?;
            let memory = memories.remove(id).unwrap_or_default();
            saved.push(self.copy_keyspace(found, memory, &keyspace)?);
        }
        Ok(saved)
    }

    /// The policy of a keyspace, or the default one where it cannot be built.
    fn policy_of(&mut self, state: &KeyspaceFacts) -> String {
        match self.registry.build(&state.policy) {
            Ok(_) => state.policy.clone(),
            Err(error) => {
                let KeyspaceFacts { name, policy, .. } = state;
                let told = format!("the policy `{policy}` of keyspace {name}: {error}");
                let dir = self.dir.clone();
                self.find(FindingKind::Guessed, &dir, None, told);
                DEFAULT_POLICY.to_string()
            }
        }
    }

    fn set_compression(&mut self, keyspace: &crate::Keyspace, state: &KeyspaceFacts) -> Result<()> {
        match keyspace.set_compression(&state.compression) {
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                let dir = self.dir.clone();
                let told = format!("keyspace {}: {}", state.name, error.message());
                self.find(FindingKind::Guessed, &dir, None, told);
                Ok(())
            }
            done => done,
        }
    }
}
