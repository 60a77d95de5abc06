//! The keyspaces of a store that is not opened.

use super::Builder;
use crate::manifest::{self, Account, KeyspaceFacts, read_current};
use crate::rules::Expiry;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::CURRENT;
use std::path::Path;

/// A keyspace as the manifest of a store describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyspaceInfo {
    /// The name.
    pub name: String,
    /// The id by which files of the store name the keyspace, or its group.
    pub id: u32,
    /// The group that the keyspace belongs to, if it does.
    pub group: Option<String>,
    /// The merge policy, such as `tiered(ratio=4)`.
    pub policy: String,
    /// The codecs of the levels, youngest first.
    pub compression: String,
    /// Logical bytes at which a memtable is sealed at the latest.
    pub memtable_bytes: u64,
    /// True if tables keep sequence numbers.
    pub keep_numbers: bool,
    /// Bits of filter per key. `None` means the bits that the store is opened with.
    pub filter_bits: Option<u8>,
    /// The length of the prefixes that filters hold, if they hold any.
    pub prefix_bytes: Option<u16>,
    /// The name of the combine operator, if there is one.
    pub operator: Option<String>,
    /// How entries expire, if they can.
    pub expiry: Option<Expiry>,
}

impl Builder {
    /// Returns the keyspaces of the store, sorted by name. Reads only its manifest: the store is
    /// not opened, nothing is locked or changed, and another process may have it open.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use lsmith::Store;
    ///
    /// let store = Store::builder(dir.path()).open()?;
    /// store.keyspace("users")?;
    /// let found = Store::builder(dir.path()).list_keyspaces()?;
    /// assert_eq!(found[0].name, "users");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no store; `Corruption` if the manifest is damaged; `Unsupported` if a
    /// newer version wrote it; `Io`.
    pub fn list_keyspaces(&self) -> Result<Vec<KeyspaceInfo>> {
        let account = read_account(&*self.options.env, &self.options.dir)?;
        let mut infos: Vec<KeyspaceInfo> =
            account.keyspaces.iter().flat_map(|(id, facts)| infos_of(*id, facts)).collect();
        infos.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        Ok(infos)
    }
}

/// Reads the manifest in `dir`, which another process may replace meanwhile.
fn read_account(env: &dyn Env, dir: &Path) -> Result<Account> {
    let current = || read_current(env, &dir.join(CURRENT));
    loop {
        let before = current()?;
        match manifest::read(env, dir) {
            Ok(Some((_, account))) => return Ok(account),
            Ok(None) => {
                return Err(Error::new(ErrorKind::NotFound, "there is no store").at(dir));
            }
            Err(error) if current()? == before => return Err(error),
            // It was replaced, and its file removed, while it was read.
            Err(_) => {}
        }
    }
}

fn infos_of(id: u32, facts: &KeyspaceFacts) -> Vec<KeyspaceInfo> {
    let info = |(member_id, name): (u8, &String)| KeyspaceInfo {
        name: name.clone(),
        id,
        group: facts.members.as_ref().map(|_| facts.name.clone()),
        policy: facts.policy.clone(),
        compression: facts.compression.clone(),
        memtable_bytes: facts.memtable_bytes,
        keep_numbers: facts.keeps_seqs,
        filter_bits: facts.filters.bits,
        prefix_bytes: facts.filters.prefix_bytes,
        operator: facts.operators.get(&member_id).cloned(),
        expiry: facts.expiries.get(&member_id).copied(),
    };
    match &facts.members {
        None => vec![info((0, &facts.name))],
        Some(members) => (0..=u8::MAX).zip(members).map(info).collect(),
    }
}
