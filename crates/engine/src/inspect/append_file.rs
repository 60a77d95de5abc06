//! Reads an append table leaf by leaf.

use super::entry::Entry;
use super::file_type::FileType;
use super::table::{Footer, footer_of};
use bytes::Bytes;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::table::{
    AppendPart, AppendRemains, FoundRoot, OUTSIDE, OpenFiles, RemainsEntry,
};
use lsmith_tree::{KeyRange, SeqNo, Size};
use std::ops::Range;
use std::path::Path;

/// The file of an append table, whole or damaged.
#[derive(Debug)]
pub struct AppendFile {
    file_id: u64,
    remains: AppendRemains,
    roots: Vec<Root>,
}

/// A root of an append table, whose footer is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// The name of the root: the length of the file up to its end.
    pub end: u64,
    /// The footer. Its index are the nodes of the batch, and its properties the root block. The
    /// data blocks of the batch end where its filter starts.
    pub footer: Footer,
    /// The root block, unless it is damaged.
    pub properties: Option<RootProperties>,
}

/// What a root says of its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RootProperties {
    /// The number of batches.
    pub batches: u64,
    /// Logical bytes of all entries that batches wrote.
    pub appended_bytes: u64,
    /// The number of levels of nodes.
    pub levels: u64,
    /// The number of different keys.
    pub keys: u64,
    /// The size of the entries.
    pub size: Size,
    /// A bound of the sequence numbers of all entries.
    pub seq_min: SeqNo,
    /// A bound of the sequence numbers of all entries.
    pub seq_max: SeqNo,
    /// The first key.
    pub first_key: Bytes,
    /// The last key.
    pub last_key: Bytes,
    /// The number of parts of the filter.
    pub filter_parts: usize,
}

/// A leaf, or a damaged node.
#[derive(Debug)]
#[non_exhaustive]
pub struct AppendLeaf {
    /// The place of the node in the file.
    pub place: Range<u64>,
    /// A range that holds all keys of the node.
    pub keys: KeyRange,
    /// The entries of a leaf whose values can be read, in their order.
    pub entries: Vec<Entry>,
    /// True if the node itself is damaged.
    pub is_lost: bool,
    /// The damage of the node, or of data blocks with values of the leaf.
    pub damage: Vec<Error>,
}

impl AppendFile {
    /// Returns true if the table at `path` is an append table. If all its footers are damaged, its
    /// nodes tell.
    ///
    /// # Errors
    /// `Io` if the file cannot be read.
    pub fn is_append(env: &dyn Env, path: &Path) -> Result<bool> {
        AppendRemains::is_append(env, path, number_of(path))
    }

    /// Opens the append table at `path`. The root with which the file ends counts. If there is
    /// none, the newest root whose footer is whole counts. The manifest may name an older one.
    ///
    /// # Errors
    /// `Unsupported` if the table has a newer format; `Io` if the file cannot be read. Damage is
    /// not an error here: see [`damage`](AppendFile::damage).
    pub fn open(env: &dyn Env, path: &Path) -> Result<AppendFile> {
        let file_id = number_of(path);
        let all = AppendRemains::open(env, path, file_id, None, &OpenFiles::few())?;
        let roots: Vec<Root> = all.roots()?.into_iter().map(root_of).collect();
        let last = roots.last().filter(|_| all.lost_top().is_some());
        let remains = match last {
            Some(root) => {
                AppendRemains::open(env, path, file_id, Some(root.end), &OpenFiles::few())?
            }
            None => all,
        };
        Ok(AppendFile { file_id, remains, roots })
    }

    /// Returns the id in the name of the file.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// Returns the length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.remains.file_bytes()
    }

    /// Returns all roots whose footers are whole, oldest first.
    pub fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Returns the damage of footer, root block and filter of the root that counts.
    pub fn damage(&self) -> &[Error] {
        &self.remains.damage
    }

    pub(super) fn into_damage(self) -> Vec<Error> {
        self.remains.damage
    }

    /// Returns the leaves of the root that counts, in the order of their keys, and damaged nodes
    /// where they should be.
    pub fn parts(&self) -> impl Iterator<Item = AppendLeaf> {
        let mut walk = self.remains.walk(&KeyRange::ALL);
        std::iter::from_fn(move || self.remains.next_part(&mut walk).map(part_of))
    }

    /// Returns true if no root leads to any entry, because of damage.
    pub fn is_rootless(&self) -> bool {
        self.remains.lost_top().is_some()
    }

    /// Returns what can be found of keys within `keys` without the nodes that are damaged, one
    /// entry for each key. Newer entries, or deletions, may be lost.
    pub fn salvage(&self, keys: &KeyRange) -> Vec<Entry> {
        self.remains.salvage(keys).into_iter().filter_map(entry_of).collect()
    }
}

fn number_of(path: &Path) -> u64 {
    FileType::of(path).map_or(OUTSIDE, |(_, file_id)| file_id)
}

fn root_of(found: FoundRoot) -> Root {
    let properties = found.root.map(|root| RootProperties {
        batches: root.batches,
        appended_bytes: root.appended_bytes,
        levels: root.levels,
        keys: root.top.sum.keys,
        size: root.top.sum.size,
        seq_min: root.seq_min,
        seq_max: root.seq_max,
        first_key: Bytes::copy_from_slice(&root.first_key),
        last_key: Bytes::copy_from_slice(&root.last_key),
        filter_parts: root.filter.len(),
    });
    Root { end: found.end, footer: footer_of(&found.footer), properties }
}

fn part_of(part: AppendPart) -> AppendLeaf {
    let is_lost = part.is_lost();
    let AppendPart { place, keys, entries, losses } = part;
    let entries = entries.into_iter().filter_map(entry_of).collect();
    let damage = losses.into_iter().map(|loss| loss.error).collect();
    AppendLeaf { place, keys, entries, is_lost, damage }
}

/// Returns `entry`, unless its value is lost.
fn entry_of(entry: RemainsEntry) -> Option<Entry> {
    let RemainsEntry { key, seq, kind, value, .. } = entry;
    Some(Entry { key, seq, kind, value: value? })
}
