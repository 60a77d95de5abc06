//! Collects what a file still has of keys whose nodes are lost.
//!
//! A node shows all keys of its range as they were when its batch was written. A data block shows
//! only keys that its batch wrote. So the file is read from its end to its start. The first block
//! that has a key decides. A readable leaf decides for all keys of its range. The keys that it does
//! not have were deleted.
//!
//! Data blocks have no deletions and no empty values. So if a batch deleted a key, and all leaves
//! written since are lost, the value from before comes back.

use super::blocks::{BlockKind, FoundBlock};
use super::node::{Node, read_block};
use super::open_keys::OpenKeys;
use super::walk::{AppendWalk, RemainsEntry};
use crate::table::remains::BlockWalk;
use crate::table::table_file::TableFile;
use bytes::Bytes;
use lsmith_tree::{Key, KeyRange, key_after};
use std::collections::BTreeMap;

/// The entries that were found so far, one for each key.
#[derive(Default)]
struct Salvage {
    entries: BTreeMap<Bytes, RemainsEntry>,
}

/// Returns the newest known entry of each key within `keys`, from `blocks`, which are all that can
/// be found.
pub(super) fn salvage(
    file: &TableFile,
    blocks: &[FoundBlock],
    keys: &KeyRange,
) -> Vec<RemainsEntry> {
    let mut open = OpenKeys::new(keys.clone());
    let mut salvage = Salvage::default();
    for found in blocks.iter().rev() {
        if open.is_empty() {
            break;
        }
        if !open.overlaps(&found.keys) {
            continue;
        }
        match &found.kind {
            BlockKind::Data(continued) => {
                salvage.add_data(file, found, continued.as_ref(), &open);
            }
            BlockKind::Node => open = salvage.add_below(file, found, open),
            BlockKind::Unknown => {}
        }
    }
    salvage.entries.into_values().collect()
}

impl Salvage {
    /// Adds the entry unless there is a newer one of its key.
    fn add(&mut self, entry: RemainsEntry) {
        let key = entry.key.clone();
        self.entries.entry(key).or_insert(RemainsEntry { is_older: true, ..entry });
    }

    /// Adds the newest entries of the data block `found`, except entries of the key `continued`.
    fn add_data(
        &mut self,
        file: &TableFile,
        found: &FoundBlock,
        continued: Option<&Key>,
        open: &OpenKeys,
    ) {
        let Ok(block) = read_block(file, found.span) else { return };
        let mut walk = BlockWalk::new(block);
        let mut last_key = continued.map(|key| key.to_vec()).unwrap_or_default();
        while let Ok(Some(slot)) = walk.next_slot() {
            if walk.key() == last_key {
                continue;
            }
            last_key = walk.key().to_vec();
            if open.contains(&last_key) {
                let entry = walk.entry(&slot);
                self.add(RemainsEntry {
                    key: Bytes::copy_from_slice(&last_key),
                    seq: entry.seq,
                    kind: entry.kind,
                    value: Some(Bytes::copy_from_slice(entry.value)),
                    is_older: true,
                });
            }
        }
    }

    /// Adds the entries below the node `found`. Returns the keys of `open` for which no leaf
    /// decides.
    fn add_below(&mut self, file: &TableFile, found: &FoundBlock, open: OpenKeys) -> OpenKeys {
        // The last key below an inner node is the last key of its last leaf.
        let keys = match Node::read(file, found.span) {
            Ok(node) => node.keys(),
            Err(_) => return open,
        };
        let mut walk = AppendWalk::new(Some((found.span, keys)), open);
        while let Some(part) = walk.next(file) {
            if part.is_lost() {
                continue;
            }
            let Some(last) = part.entries.last().map(|entry| key_after(&entry.key)) else {
                continue;
            };
            for entry in part.entries {
                if entry.value.is_some() && walk.open.contains(&entry.key) {
                    self.add(entry);
                }
            }
            let end = Some(part.keys.end.unwrap_or(last));
            walk.open.remove(&KeyRange { start: part.keys.start, end });
        }
        walk.open
    }
}
