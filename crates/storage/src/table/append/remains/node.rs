//! Decodes nodes when only their place is known.

use crate::error::Result;
use crate::format::{Block, ChildRef, Damage, KEY_BYTES_MAX, Span, Trail, ValueRef};
use crate::table::remains::BlockWalk;
use crate::table::table_file::TableFile;
use bytes::Bytes;
use lsmith_tree::{EntryKind, KeyRange, SeqNo, key_after};

/// A node. Its references say whether it is a leaf: in leaves they have another number of varints
/// than in inner nodes.
#[derive(Debug)]
pub(super) enum Node {
    /// Children with their keys.
    Inner(Vec<(Vec<u8>, ChildRef)>),
    Leaf(Vec<LeafEntry>),
}

#[derive(Debug)]
pub(super) struct LeafEntry {
    pub(super) key: Bytes,
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    pub(super) value: ValueRef,
}

impl Node {
    /// Reads the node at `span`.
    pub(super) fn read(file: &TableFile, span: Span) -> Result<Node> {
        let block = read_block(file, span)?;
        Node::parse(&block, span.offset).map_err(|damage| file.damaged(damage, span.offset))
    }

    /// Decodes the node at `offset`.
    pub(super) fn parse(block: &Block, offset: u64) -> std::result::Result<Node, Damage> {
        let mut leaf = Vec::new();
        let mut children = Vec::new();
        let mut walk = BlockWalk::new(block.clone());
        while let Some(slot) = walk.next_slot()? {
            let reference = block.value(&slot);
            if let Some(value) = value_ref(reference, offset) {
                let key = Bytes::copy_from_slice(walk.key());
                leaf.push(LeafEntry { key, seq: slot.seq, kind: slot.kind, value });
            } else if let Ok(child) = ChildRef::parse(reference, offset) {
                children.push((walk.key().to_vec(), child));
            } else {
                return Err(Damage { what: "a node has a value that is no reference", at: 0 });
            }
        }
        if leaf.is_empty() {
            let in_order = children.is_sorted_by(|(left, _), (right, _)| left < right);
            return if in_order { Ok(Node::Inner(children)) } else { Err(OUT_OF_ORDER) };
        }
        let is_newer = |left: &LeafEntry, right: &LeafEntry| {
            left.key < right.key || left.key == right.key && left.seq > right.seq
        };
        let has_keys = leaf.iter().all(|entry| (1..=KEY_BYTES_MAX).contains(&entry.key.len()));
        if children.is_empty() && has_keys && leaf.is_sorted_by(is_newer) {
            Ok(Node::Leaf(leaf))
        } else {
            Err(OUT_OF_ORDER)
        }
    }

    /// Returns a range with the keys of all entries below the node, as far as the node says.
    pub(super) fn keys(&self) -> KeyRange {
        match self {
            Node::Inner(children) => {
                let start = children.first().map(|(key, _)| &key[..]).unwrap_or_default();
                KeyRange { start: start.into(), end: None }
            }
            Node::Leaf(entries) => {
                let first = entries.first().map(|entry| &entry.key[..]).unwrap_or_default();
                let end = entries.last().map(|entry| key_after(&entry.key));
                KeyRange { start: first.into(), end }
            }
        }
    }

    /// Returns true if a reference leads where it must. One that is a value and looks like a
    /// reference by chance does not.
    pub(super) fn is_proven(&self, file: &TableFile) -> bool {
        match self {
            Node::Inner(children) => {
                children.iter().any(|(_, child)| read_block(file, child.node).is_ok())
            }
            Node::Leaf(entries) => entries.iter().any(|entry| leads_to_key(file, entry)),
        }
    }

    /// Returns true if a value is empty. So the block is no data block of an append table.
    pub(super) fn has_empty_value(&self) -> bool {
        match self {
            Node::Inner(_) => false,
            Node::Leaf(entries) => entries.iter().any(|entry| entry.value.value_bytes == 0),
        }
    }
}

const OUT_OF_ORDER: Damage = Damage { what: "the entries of a node are out of order", at: 0 };

/// Decodes a reference of a leaf at `offset`.
fn value_ref(bytes: &[u8], offset: u64) -> Option<ValueRef> {
    let value = ValueRef::parse(bytes, offset).ok()?;
    (bytes.is_empty() || value.value_bytes > 0).then_some(value)
}

/// Reads the block at `span`.
pub(super) fn read_block(file: &TableFile, span: Span) -> Result<Block> {
    file.unsealed_block(file.read(span.offset..span.end())?, span.offset)
}

/// Returns the value of `entry` in `block`, to which its reference leads.
pub(super) fn value_in(block: &Block, entry: &LeafEntry) -> std::result::Result<Bytes, Damage> {
    let slot = block.slot(entry.value.start as usize)?;
    let mut key = Vec::new();
    let found = block.slot_ending(slot.end(), &mut key, &mut Trail::default())?;
    let value = block.value(&slot);
    let is_it = found.start() == slot.start() && entry.key == key;
    if !is_it || value.len() as u64 != entry.value.value_bytes || entry.kind.is_tombstone() {
        return Err(Damage::whole("a reference leads to the value of another key"));
    }
    Ok(Bytes::copy_from_slice(value))
}

fn leads_to_key(file: &TableFile, entry: &LeafEntry) -> bool {
    if entry.value.value_bytes == 0 {
        return false;
    }
    let block = read_block(file, entry.value.block);
    block.is_ok_and(|block| value_in(&block, entry).is_ok())
}
