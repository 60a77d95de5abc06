//! Walks the references of leaves in both directions, without keys.

use super::reader::{AppendTable, child};
use crate::format::{Block, Damage, Slot, Span, Trail, ValueRef};

/// An end of a part of the table. A walk forward comes to the first one of each part, and a walk
/// back to the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    First,
    Last,
}

impl Side {
    /// Returns the first or last entry of an inner node.
    pub(super) fn of(self, node: &Block) -> Result<Slot, Damage> {
        match self {
            Side::First => node.slot(0),
            Side::Last => slot_ending(node, node.entries_end()),
        }
    }

    /// Returns the entry of an inner node that a walk comes to behind `slot`. There is none at the
    /// end of the node.
    pub(super) fn behind(self, node: &Block, slot: &Slot) -> Option<Result<Slot, Damage>> {
        match self {
            Side::First if slot.end() < node.entries_end() => Some(node.slot(slot.end())),
            Side::Last if slot.start() > 0 => Some(slot_ending(node, slot.start())),
            _ => None,
        }
    }
}

/// Returns the entry of an inner node that ends at `end`.
fn slot_ending(node: &Block, end: usize) -> Result<Slot, Damage> {
    node.slot_ending(end, &mut Vec::new(), &mut Trail::default())
}

/// An entry of a node.
#[derive(Clone, Debug)]
pub(super) struct NodePlace {
    pub(super) span: Span,
    pub(super) node: Block,
    pub(super) slot: Slot,
}

/// A place next to an entry of a leaf, and a direction.
#[derive(Debug)]
pub(super) struct RefWalk {
    /// The inner nodes above the leaf, from the top, each with the child on the path.
    path: Vec<NodePlace>,
    side: Side,
    span: Span,
    leaf: Block,
    /// The offset of the next entry of a walk forward in the leaf.
    at: usize,
    /// The references to come of a walk back in the leaf, the next one last.
    before: Vec<ValueRef>,
}

impl RefWalk {
    /// Begins at the offset `at` of the leaf of `place`, which lies below `path`. `side` is the end
    /// at which the walk comes to leaves.
    pub(super) fn new(path: &[NodePlace], place: &NodePlace, at: usize, side: Side) -> RefWalk {
        let NodePlace { span, node, .. } = place;
        let (path, leaf, span) = (path.to_vec(), node.clone(), *span);
        let mut walk = RefWalk { path, side, span, leaf, at, before: Vec::new() };
        walk.look_back(at);
        walk
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
            if self.is_at_end() && self.enter_next_leaf(table, &mut load).is_none() {
                break;
            }
            let Some(value) = self.next_value() else { break };
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
        let Some(place) = self.path.last() else { return Vec::new() };
        let behind = self.side.behind(&place.node, &place.slot);
        let Some(Ok(slot)) = behind else { return Vec::new() };
        leaves_from(&NodePlace { slot, ..place.clone() }, self.side, bytes)
    }

    /// Returns the side at which the walk comes to leaves.
    pub(super) fn side(&self) -> Side {
        self.side
    }

    fn is_at_end(&self) -> bool {
        match self.side {
            Side::First => self.at >= self.leaf.entries_end(),
            Side::Last => self.before.is_empty(),
        }
    }

    /// Passes the next entry of the leaf. Returns `None` at damage.
    fn next_value(&mut self) -> Option<ValueRef> {
        if self.side == Side::Last {
            return self.before.pop();
        }
        let slot = self.leaf.slot(self.at).ok()?;
        let value = ValueRef::of(&self.leaf, &slot, self.span.offset).ok()?;
        self.at = slot.end();
        Some(value)
    }

    /// Decodes the references in front of offset `end` of the leaf for a walk back: entries have
    /// no ends to begin at. A damaged leaf has none.
    fn look_back(&mut self, end: usize) {
        self.before.clear();
        let mut at = 0;
        while self.side == Side::Last && at < end {
            let slot = self.leaf.slot(at);
            let value = slot.and_then(|slot| {
                at = slot.end();
                ValueRef::of(&self.leaf, &slot, self.span.offset)
            });
            match value {
                Ok(value) => self.before.push(value),
                Err(_) => return self.before.clear(),
            }
        }
    }

    /// Goes to the next leaf. Returns `None` if there is none, or if a node is damaged.
    fn enter_next_leaf(
        &mut self,
        table: &AppendTable,
        load: &mut impl FnMut(&[NodePlace], Span) -> Option<Block>,
    ) -> Option<()> {
        loop {
            let NodePlace { span, node, slot } = self.path.pop()?;
            if let Some(next) = self.side.behind(&node, &slot) {
                self.path.push(NodePlace { span, node, slot: next.ok()? });
                break;
            }
        }
        loop {
            let NodePlace { span, node, slot } = self.path.last()?;
            let below = child(node, slot, *span).ok()?.node;
            if self.path.len() as u64 + 1 == table.root.levels {
                self.leaf = load(&self.path, below)?;
                (self.span, self.at) = (below, 0);
                self.look_back(self.leaf.entries_end());
                return Some(());
            }
            let node = table.passing_block(below).ok()?;
            let slot = self.side.of(&node).ok()?;
            self.path.push(NodePlace { span: below, node, slot });
        }
    }
}

/// Returns the places of leaves that a walk comes to at their `side`, from the child at `place` on,
/// until they have `bytes` bytes of entries or more. They have one parent. Ends early at damage.
pub(super) fn leaves_from(place: &NodePlace, side: Side, bytes: u64) -> Vec<Span> {
    let NodePlace { span, node, slot } = place;
    let mut spans = Vec::new();
    let mut left = bytes;
    let mut next = Some(Ok(*slot));
    while left > 0
        && let Some(Ok(slot)) = next
    {
        let Ok(below) = child(node, &slot, *span) else { break };
        left = left.saturating_sub(below.sum.size.bytes.max(1));
        spans.push(below.node);
        next = side.behind(node, &slot);
    }
    spans
}
