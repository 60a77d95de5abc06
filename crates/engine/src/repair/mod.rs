//! Saves the readable content of a damaged store into a new store.
//!
//! 1. [`known`] knows keyspaces, trees and tables from the manifest, which [`reading`] reads as far
//!    as it is readable. [`loose`] applies the records behind damage as well as possible.
//! 2. [`memory`] reads the spills and the logs ([`logs`] decides which batches count),
//!    and keeps the newest write of each key.
//! 3. [`sources`] reads runs of tables block by block, and skips damaged blocks.
//! 4. [`copy`] picks the newest entry of each key, and writes the entries to the new store by a
//!    bulk load.
//!
//! `docs/repair.md` has the rules.

mod copy;
mod damaged;
mod known;
mod logs;
mod loose;
mod memory;
mod options;
mod reading;
mod report;
mod sources;
mod values;

pub use options::RepairOptions;
pub use report::{Finding, FindingKind, RepairReport, RepairedKeyspace};

use crate::clock::Clock;
use crate::db::{Builder, Store};
use crate::identity::Identity;
use crate::manifest::{KeyspaceFacts, Record};
use crate::options::{DEFAULT_POLICY, KeyspaceOptions};
use damaged::DamagedStore;
use known::Known;
use lsmith_storage::directory;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::Slice;
use memory::Memories;
use reading::lost_member;
use std::path::Path;
use std::sync::Arc;

/// Saves the readable content of the store in `from` into a new store in `to`, and returns a report
/// of what was saved and what was lost. `to` must be empty or not exist.
///
/// The store in `from` is locked meanwhile and not changed. Where no lock can be had, on a medium
/// that is read-only or full or in a directory of others, it is read without one, and the repair
/// fails if somebody has written to it meanwhile. If it has no damage, the new store is a
/// copy: every keyspace has the same entries, policy, memtable size and codecs.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{RepairOptions, Store, repair};
///
/// let old = dir.path().join("old");
/// let new = dir.path().join("new");
/// Store::builder(&old).open()?.keyspace("fruit")?.put("apple", "red")?;
/// let report = repair(&RepairOptions::default(), &old, &new)?;
/// assert!(report.is_exact());
/// let saved = Store::builder(&new).open()?.existing_keyspace("fruit")?;
/// assert_eq!(saved.get("apple")?.as_deref(), Some(&b"red"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// * `NotFound` if `from` has no file of a store.
/// * `Locked` if the store in `from` is open for writing, or was written to meanwhile.
/// * `InvalidArgument` if `to` is not empty or lies in `from`.
/// * `Unsupported` if the manifest has another format, or a keyspace has a combine operator that is
///   not registered.
/// * `Full` or `Io` if the new store cannot be written, or a directory cannot be listed.
///
/// After an error, `to` may hold a part of the new store: remove it.
pub fn repair(
    options: &RepairOptions,
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
) -> Result<RepairReport> {
    let env = &options.env;
    let from = &*directory::absolute(&**env, from.as_ref())?;
    let to = &*directory::absolute(&**env, to.as_ref())?;
    check_target(&**env, from, to)?;
    let mut old = DamagedStore::open(options, from)?;
    let mut known = known::read(&mut old)?;
    let memories = memory::read(&mut old, &mut known);
    let builder = Store::builder(to).env(Arc::clone(env)).registry(options.registry.clone());
    // Nothing expires meanwhile. The new store knows the clock of the old one.
    let clock = Clock::stopped(known.clock.as_deref());
    let builder = builder.operators(options.operators.clone()).clock(clock);
    // The log will hold only the empty batches of bulk loads, so it may be small.
    let keyspaces = old.copy_into(&known, memories, builder.log_bytes(0))?;
    old.check_unchanged()?;
    Ok(RepairReport { keyspaces, findings: old.findings })
}

/// Fails if `to` is not an empty directory or lies in `from`.
fn check_target(env: &dyn Env, from: &Path, to: &Path) -> Result<()> {
    let refuse = |message| Err(Error::new(ErrorKind::InvalidArgument, message).at(to));
    // If `from` does not exist, that is told below.
    if env.is_within(to, from).is_ok_and(|is_within| is_within) {
        return refuse("the new store must not lie in the directory of the old one");
    }
    match env.list(to) {
        Ok(names) if names.is_empty() => Ok(()),
        Ok(_) => refuse("the directory for the new store is not empty"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("list", to, error)),
    }
}

impl DamagedStore {
    /// Writes the new store, which `builder` opens.
    fn copy_into(
        &mut self,
        known: &Known,
        mut memories: Memories,
        builder: Builder,
    ) -> Result<Vec<RepairedKeyspace>> {
        let new = builder.open()?;
        let identity = Record::Identity(Identity::new(&*self.env, known.id));
        new.engine().manifest.write(identity, |_| ())?;
        let mut saved = Vec::new();
        for (id, found) in &known.keyspaces {
            let KeyspaceFacts {
                name,
                memtable_bytes,
                members,
                keeps_seqs,
                operators,
                expiries,
                filters,
                ..
            } = &found.state;
            let policy = Some(self.policy_of(&found.state).into());
            let memtable_bytes = Some(*memtable_bytes);
            let mut options = KeyspaceOptions {
                policy,
                memtable_bytes,
                group: None,
                keep_numbers: keeps_seqs.then_some(true),
                operator: None,
                expiry: None,
                filter_bits: filters.bits,
                prefix_bytes: filters.prefix_bytes,
            };
            let with_operator = |member_id: usize, keyspace: &str, options: &KeyspaceOptions| {
                let member_id = u8::try_from(member_id).unwrap_or(u8::MAX);
                let operator = operators.get(&member_id);
                let expiry = expiries.get(&member_id).copied();
                if let Some(operator) = operator {
                    self.operators.of_keyspace(operator, keyspace, &self.dir)?;
                }
                Ok(KeyspaceOptions { operator: operator.cloned(), expiry, ..options.clone() })
            };
            // A made-up name may be the name of another keyspace.
            let free = |name: &String| match new.engine().keyspaces.find(name) {
                Some(_) => format!("{name}-{id}"),
                None => name.clone(),
            };
            let keyspace = match members {
                None => new.keyspace_with(&free(name), &with_operator(0, name, &options)?)?,
                Some(members) => {
                    options.group = Some(free(name));
                    let make = |(member_id, member): (usize, String)| {
                        let options = with_operator(member_id, &member, &options)?;
                        new.keyspace_with(&free(&member), &options)
                    };
                    let names = names_of_members(*id, members, &found.runs).into_iter();
                    let made: Vec<_> = names.enumerate().map(make).collect::<Result<_>>()?;
                    let Some(first) = made.first() else { continue };
                    first.of_group()
                }
            };
            self.set_compression(&keyspace, &found.state)?;
            let memory = memories.remove(id).unwrap_or_default();
            saved.push(self.copy_keyspace(found, memory, &keyspace)?);
        }
        Ok(saved)
    }

    /// Returns the policy of a keyspace, or the default policy if the registry cannot build it.
    fn policy_of(&mut self, state: &KeyspaceFacts) -> String {
        match self.registry.build(&state.policy) {
            Ok(_) => state.policy.clone(),
            Err(error) => {
                let KeyspaceFacts { name, policy, .. } = state;
                let message = format!("the policy `{policy}` of keyspace {name}: {error}");
                let dir = self.dir.clone();
                self.report(FindingKind::Guessed, &dir, None, message);
                DEFAULT_POLICY.to_string()
            }
        }
    }

    /// Sets the codecs of `keyspace` as in `state`, or leaves them if they are invalid.
    fn set_compression(&mut self, keyspace: &crate::Keyspace, state: &KeyspaceFacts) -> Result<()> {
        match keyspace.set_compression(&state.compression) {
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {
                let dir = self.dir.clone();
                let message = format!("keyspace {}: {}", state.name, error.message());
                self.report(FindingKind::Guessed, &dir, None, message);
                Ok(())
            }
            done => done,
        }
    }
}

/// Returns the names of the keyspaces of group `id`: `known`, and a made-up name for each keyspace
/// that has tables in `runs` but no known name.
fn names_of_members(id: u32, known: &[String], runs: &[Vec<Slice>]) -> Vec<String> {
    let member_ids = runs.iter().flatten().filter_map(|slice| slice.range().start.first());
    let count = member_ids.map(|member_id| usize::from(*member_id) + 1).max().unwrap_or(0);
    let made_up = (known.len()..count).map(|member_id| lost_member(id, member_id));
    known.iter().cloned().chain(made_up).collect()
}
