//! Walks the leaves below a node, and goes on behind damage.

use super::node::{LeafEntry, Node, read_block, value_in};
use super::open_keys::OpenKeys;
use crate::error::{Error, Result};
use crate::format::{Block, Damage, Span};
use crate::table::table_file::TableFile;
use bytes::Bytes;
use lsmith_tree::{EntryKind, KeyRange, SeqNo, key_after};
use std::collections::BTreeSet;
use std::ops::Range;

/// The number of data blocks that a walk holds on to.
const RECENT_BLOCKS: usize = 16;

/// An entry of an append table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemainsEntry {
    /// The key.
    pub key: Bytes,
    /// The sequence number.
    pub seq: SeqNo,
    /// The kind.
    pub kind: EntryKind,
    /// The value; `None` if it is lost.
    pub value: Option<Bytes>,
    /// True if a newer entry of the key may be lost.
    pub is_older: bool,
}

/// Entries that cannot be read.
#[derive(Debug)]
pub struct RemainsLoss {
    /// A range with all their keys.
    pub keys: KeyRange,
    /// The keys, if they are known: only their values are lost.
    pub only: Option<BTreeSet<Bytes>>,
    /// The damage.
    pub error: Error,
}

/// A leaf, or a damaged node.
#[derive(Debug)]
pub struct AppendPart {
    /// The place of the node in the file.
    pub place: Range<u64>,
    /// The key range that the node decides.
    pub keys: KeyRange,
    /// The entries of a leaf in their order.
    pub entries: Vec<RemainsEntry>,
    /// What is lost: the node, or values.
    pub losses: Vec<RemainsLoss>,
}

impl AppendPart {
    /// Returns true if the node is damaged.
    pub fn is_lost(&self) -> bool {
        self.losses.iter().any(|loss| loss.only.is_none())
    }
}

/// The place of a walk over the leaves, from the first to the last.
#[derive(Debug)]
pub struct AppendWalk {
    /// The nodes that are still to be read, the next one last.
    nodes: Vec<(Span, KeyRange)>,
    pub(super) open: OpenKeys,
    recent: Vec<(u64, Block)>,
}

impl AppendWalk {
    /// Returns a walk over the leaves below the node at `top`, whose keys lie within `keys`, as far
    /// as they may have keys of `open`.
    pub(super) fn new(top: Option<(Span, KeyRange)>, open: OpenKeys) -> AppendWalk {
        AppendWalk { nodes: top.into_iter().collect(), open, recent: Vec::new() }
    }

    /// Returns the next leaf, or damaged node, that may have open keys.
    pub(super) fn next(&mut self, file: &TableFile) -> Option<AppendPart> {
        while let Some((span, keys)) = self.nodes.pop() {
            if !self.open.overlaps(&keys) {
                continue;
            }
            let place = span.offset..span.end();
            match Node::read(file, span) {
                Ok(Node::Inner(children)) => self.enter(&children, &keys),
                Ok(Node::Leaf(entries)) if entries.iter().all(|it| keys.contains(&it.key)) => {
                    let (entries, losses) = self.entries(file, entries);
                    return Some(AppendPart { place, keys, entries, losses });
                }
                other => {
                    let error = other.err().unwrap_or_else(|| {
                        let what = "a key does not lie between the separators of its leaf";
                        file.damaged(Damage::whole(what), span.offset)
                    });
                    let losses = vec![RemainsLoss { keys: keys.clone(), only: None, error }];
                    return Some(AppendPart { place, keys, entries: Vec::new(), losses });
                }
            }
        }
        None
    }

    /// Goes on with the children of a node with keys within `keys`.
    fn enter(&mut self, children: &[(Vec<u8>, crate::format::ChildRef)], keys: &KeyRange) {
        for (index, (separator, child)) in children.iter().enumerate().rev() {
            // The first range starts where the node itself starts.
            let start = if index == 0 { keys.start.clone() } else { separator[..].into() };
            let end = children.get(index + 1).map(|(next, _)| next[..].into());
            let range = KeyRange { start, end }.intersection(keys);
            if !range.is_empty() {
                self.nodes.push((child.node, range));
            }
        }
    }

    /// Reads the values of the entries of a leaf.
    fn entries(
        &mut self,
        file: &TableFile,
        entries: Vec<LeafEntry>,
    ) -> (Vec<RemainsEntry>, Vec<RemainsLoss>) {
        let mut found = Vec::new();
        let mut losses: Vec<(u64, RemainsLoss)> = Vec::new();
        let mut last_lost = Bytes::new();
        for entry in entries {
            let offset = entry.value.block.offset;
            let known = losses.iter_mut().find(|(damaged, _)| *damaged == offset);
            let is_older = last_lost == entry.key;
            let value = match (entry.value.value_bytes, known) {
                (0, _) => Some(Bytes::new()),
                (_, Some((_, loss))) => {
                    loss.add(entry.key.clone());
                    None
                }
                (_, None) => match self.value(file, &entry) {
                    Ok(value) => Some(value),
                    Err(error) => {
                        losses.push((offset, RemainsLoss::of_value(entry.key.clone(), error)));
                        None
                    }
                },
            };
            if value.is_none() {
                last_lost = entry.key.clone();
            }
            let LeafEntry { key, seq, kind, .. } = entry;
            found.push(RemainsEntry { key, seq, kind, value, is_older });
        }
        (found, losses.into_iter().map(|(_, loss)| loss).collect())
    }

    fn value(&mut self, file: &TableFile, entry: &LeafEntry) -> Result<Bytes> {
        let span = entry.value.block;
        let block = match self.recent.iter().find(|(at, _)| *at == span.offset) {
            Some((_, block)) => block.clone(),
            None => {
                let block = read_block(file, span)?;
                if self.recent.len() == RECENT_BLOCKS {
                    self.recent.remove(0);
                }
                self.recent.push((span.offset, block.clone()));
                block
            }
        };
        value_in(&block, entry).map_err(|damage| file.damaged(damage, span.offset))
    }
}

impl RemainsLoss {
    fn of_value(key: Bytes, error: Error) -> RemainsLoss {
        let keys = KeyRange::inclusive(&key, &key);
        RemainsLoss { keys, only: Some([key].into()), error }
    }

    /// Adds `key`, which comes behind the others.
    fn add(&mut self, key: Bytes) {
        self.keys.end = Some(key_after(&key));
        self.only.get_or_insert_default().insert(key);
    }
}
