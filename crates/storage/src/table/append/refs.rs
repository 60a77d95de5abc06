//! Walks the references of leaves forward, without keys.

use super::reader::{AppendTable, child};
use crate::format::{Block, Slot, Span, ValueRef};

/// An entry of a node.
#[derive(Clone, Debug)]
pub(super) struct NodePlace {
    pub(super) span: Span,
    pub(super) node: Block,
    pub(super) slot: Slot,
}

/// A place in front of an entry of a leaf.
#[derive(Debug)]
pub(super) struct RefWalk {
    /// The inner nodes above the leaf, from the top, each with the child on the path.
    path: Vec<NodePlace>,
    span: Span,
    leaf: Block,
    /// The offset of the next entry in the leaf.
    at: usize,
}

impl RefWalk {
    /// Begins in front of the entry at `at` of the leaf of `place`, which lies below `path`.
    pub(super) fn new(path: &[NodePlace], place: &NodePlace, at: usize) -> RefWalk {
        RefWalk { path: path.to_vec(), span: place.span, leaf: place.node.clone(), at }
    }

    /// Passes entries with values of `bytes` bytes, or more if the last one is longer, and adds the
    /// places of their blocks to `spans`. `load` returns the leaf that a path leads to. Returns the
    /// number of entries. Ends early at damage: the cursor will get there, and return the error.
    pub(super) fn collect(
        &mut self,
        table: &AppendTable,
        bytes: u64,
        spans: &mut Vec<Span>,
        mut load: impl FnMut(&[NodePlace], Span) -> Option<Block>,
    ) -> u64 {
        let mut passed = 0;
        let mut left = bytes;
        while left > 0 {
            let is_end = self.at >= self.leaf.entries_end();
            if is_end && self.enter_next_leaf(table, &mut load).is_none() {
                break;
            }
            let Ok(slot) = self.leaf.slot(self.at) else { break };
            let Ok(value) = ValueRef::of(&self.leaf, &slot, self.span.offset) else { break };
            self.at = slot.end();
            passed += 1;
            left = left.saturating_sub(value.value_bytes.max(1));
            if value.value_bytes > 0 && spans.last() != Some(&value.block) {
                spans.push(value.block);
            }
        }
        passed
    }

    /// Returns the places of the leaves behind this one.
    pub(super) fn next_leaves(&self, bytes: u64) -> Vec<Span> {
        let Some(NodePlace { span, node, slot }) = self.path.last() else { return Vec::new() };
        leaves_from(*span, node, slot.end(), bytes)
    }

    /// Goes to the next leaf. Returns `None` if there is none, or if a node is damaged.
    fn enter_next_leaf(
        &mut self,
        table: &AppendTable,
        load: &mut impl FnMut(&[NodePlace], Span) -> Option<Block>,
    ) -> Option<()> {
        loop {
            let NodePlace { span, node, slot } = self.path.pop()?;
            if slot.end() < node.entries_end() {
                let slot = node.slot(slot.end()).ok()?;
                self.path.push(NodePlace { span, node, slot });
                break;
            }
        }
        loop {
            let NodePlace { span, node, slot } = self.path.last()?;
            let below = child(node, slot, *span).ok()?.node;
            if self.path.len() as u64 + 1 == table.root.levels {
                self.leaf = load(&self.path, below)?;
                (self.span, self.at) = (below, 0);
                return Some(());
            }
            let node = table.passing_block(below).ok()?;
            let slot = node.slot(0).ok()?;
            self.path.push(NodePlace { span: below, node, slot });
        }
    }
}

/// Returns the places of the leaves below the node at `span`, from its entry at `at` on, until they
/// have `bytes` bytes of entries or more. Ends early at damage.
pub(super) fn leaves_from(span: Span, node: &Block, mut at: usize, bytes: u64) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut left = bytes;
    while left > 0 && at < node.entries_end() {
        let Ok(slot) = node.slot(at) else { break };
        let Ok(below) = child(node, &slot, span) else { break };
        at = slot.end();
        left = left.saturating_sub(below.sum.size.bytes.max(1));
        spans.push(below.node);
    }
    spans
}
