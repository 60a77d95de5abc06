//! Reads the trees of a store beside the process that has it open.

use crate::manifest::{self, Account};
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::Tree;
use std::path::Path;

/// How often a manifest is read that changes while it is read. A reading takes milliseconds, and
/// a manifest is replaced after hundreds of merges, so the second reading nearly always succeeds.
const READINGS_MAX: usize = 10;

/// What the manifest says of a keyspace or a group.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct KeyspaceTree {
    /// The id of the keyspace.
    pub id: u32,
    /// The name of the keyspace.
    pub name: String,
    /// The names of the keyspaces that share the tree, if it belongs to a group.
    pub members: Option<Vec<String>>,
    /// The full spec of its policy.
    pub policy: String,
    /// The codecs of its tables, level by level.
    pub compression: String,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// The tree on storage, without memory and without profiles.
    pub tree: Tree,
}

/// Returns what the manifest in force in `dir` says of each keyspace and group, in the order of
/// their ids. Takes no lock: another process may have the store open, and go on writing.
///
/// # Errors
/// `NotFound` if there is no store; `Corruption` or `Unsupported` as opening the store; `Io` if a
/// file cannot be read.
pub fn trees(env: &dyn Env, dir: &Path) -> Result<Vec<KeyspaceTree>> {
    let mut readings = 1;
    loop {
        match manifest::read(env, dir) {
            Ok(Some((_, account))) => return Ok(keyspaces(account)),
            Ok(None) => {
                return Err(Error::new(ErrorKind::NotFound, "there is no store").at(dir));
            }
            // The manifest was replaced, and is gone; or a record was half written.
            Err(error) if readings == READINGS_MAX || error.kind() == ErrorKind::Unsupported => {
                return Err(error);
            }
            Err(_) => readings += 1,
        }
    }
}

fn keyspaces(account: Account) -> Vec<KeyspaceTree> {
    let keyspace = |(id, facts): (u32, manifest::KeyspaceFacts)| KeyspaceTree {
        id,
        name: facts.name,
        members: facts.members,
        policy: facts.policy,
        compression: facts.compression,
        memtable_bytes: facts.memtable_bytes,
        tree: facts.tree,
    };
    account.keyspaces.into_iter().map(keyspace).collect()
}
