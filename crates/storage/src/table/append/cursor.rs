//! Walks the entries of a root in both directions.

use super::reader::{AppendTable, child};
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use crate::format::{Block, Damage, Slot, Span, Trail};
use crate::table::cursor::CacheFill;
use crate::table::reader::{ReadCount, ReadTally};
use bytes::Bytes;
use lsmith_tree::KeyRange;
use std::sync::Arc;

/// The number of data blocks that a cursor holds on to. In the order of keys the values of a tree
/// come from as many places of the file as there were batches, and from each in order.
const RECENT_BLOCKS: usize = 16;

/// The number of places of the file from which a cursor past the cache reads ahead.
const STREAMS: usize = 16;

/// Bytes of the first read at a place, and of those that continue it.
const STREAM_BYTES: [u64; 2] = [8 * 1024, 64 * 1024];

/// A cursor over one root of an append table.
///
/// The cursor can be [limited](AppendCursor::keep_within) to a range of keys. Then callers must ask
/// only for keys within it.
#[derive(Debug)]
pub struct AppendCursor {
    table: Arc<AppendTable>,
    fill: CacheFill,
    range: KeyRange,
    /// The inner nodes above the leaf, from the top, each with the child on the path.
    path: Vec<NodePlace>,
    leaf: Option<NodePlace>,
    /// The key of the entry under the cursor.
    key: Vec<u8>,
    /// The entries in front of it in the leaf, or the last of these, if they are known.
    trail: Trail,
    /// The data block with the value, and its entry; `None` for an empty value.
    value: Option<(Block, Slot)>,
    recent: Vec<(u64, Block)>,
    streams: Vec<Stream>,
    reads: ReadCount,
    tally: Option<Arc<ReadTally>>,
}

/// An entry of a node.
#[derive(Debug)]
struct NodePlace {
    span: Span,
    node: Block,
    slot: Slot,
}

/// Bytes of the file that were read ahead.
#[derive(Debug)]
struct Stream {
    start: u64,
    bytes: Bytes,
}

/// An end of a part of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    First,
    Last,
}

impl Drop for AppendCursor {
    fn drop(&mut self) {
        if let Some(tally) = &self.tally {
            tally.add(self.reads);
        }
    }
}

impl AppendTable {
    /// Returns a cursor over the entries of this root. `fill` says whether it reads blocks through
    /// the cache.
    pub fn cursor(self: &Arc<Self>, fill: CacheFill) -> AppendCursor {
        AppendCursor {
            table: Arc::clone(self),
            fill,
            range: KeyRange::ALL,
            path: Vec::new(),
            leaf: None,
            key: Vec::new(),
            trail: Trail::default(),
            value: None,
            recent: Vec::new(),
            streams: Vec::new(),
            reads: ReadCount::default(),
            tally: None,
        }
    }
}

impl AppendCursor {
    /// Makes the cursor add its reads to `tally` when it is dropped.
    #[must_use]
    pub fn tallied(mut self, tally: &Arc<ReadTally>) -> AppendCursor {
        self.tally = Some(Arc::clone(tally));
        self
    }

    /// Limits the cursor to `range`. The cursor is on no entry after this.
    pub fn keep_within(&mut self, range: KeyRange) {
        self.range = range;
        self.leaf = None;
    }

    /// Returns the node at `span`.
    fn node(&mut self, span: Span) -> Result<Block> {
        if self.fill == CacheFill::Yes {
            return self.table.block(span, &mut self.reads);
        }
        self.reads.blocks_read += 1;
        self.reads.bytes_read += span.bytes;
        self.table.fresh_block(span)
    }

    /// Goes down from the node at `span`, on the level of the path's end, to a leaf. `choose` finds
    /// the child to go to. Returns the leaf.
    fn descend(
        &mut self,
        mut span: Span,
        mut choose: impl FnMut(&Block) -> std::result::Result<Slot, Damage>,
    ) -> Result<(Span, Block)> {
        while (self.path.len() as u64) + 1 < self.table.root.levels {
            let node = self.node(span)?;
            let slot = choose(&node).map_err(|damage| self.damaged(damage, span))?;
            let below = child(&node, &slot, span).map_err(|damage| self.damaged(damage, span))?;
            self.path.push(NodePlace { span, node, slot });
            span = below.node;
        }
        Ok((span, self.node(span)?))
    }

    #[cold]
    fn damaged(&self, damage: Damage, span: Span) -> crate::error::Error {
        self.table.file.damaged(damage, span.offset)
    }

    /// Goes to the leaf that holds `key`, if any does. Returns `None` for an empty tree.
    fn leaf_for(&mut self, key: &[u8]) -> Result<Option<(Span, Block)>> {
        self.reset();
        if self.table.root.levels == 0 {
            return Ok(None);
        }
        let top = self.table.root.top.node;
        self.descend(top, |node| node.floor(key)).map(Some)
    }

    /// Goes to the first or last entry of the leaf below the path and `top`.
    fn enter_side(&mut self, span: Span, side: Side) -> Result<()> {
        let (span, leaf) = self.descend(span, |node| slot_at(node, side))?;
        self.key.clear();
        self.trail.clear();
        let slot = match side {
            Side::First => {
                leaf.slot(0).and_then(|slot| leaf.step(&slot, &mut self.key).map(|()| slot))
            }
            Side::Last => leaf.slot_ending(leaf.entries_end(), &mut self.key, &mut self.trail),
        };
        let slot = slot.map_err(|damage| self.damaged(damage, span))?;
        self.enter(NodePlace { span, node: leaf, slot })
    }

    /// Goes to the leaf next to the path, on the side away from `side`, and to its entry on `side`.
    fn enter_next_leaf(&mut self, side: Side) -> Result<()> {
        self.leaf = None;
        while let Some(NodePlace { span, node, slot }) = self.path.pop() {
            let next = match side {
                Side::First if slot.end() < node.entries_end() => node.slot(slot.end()),
                Side::Last if slot.start() > 0 => {
                    node.slot_ending(slot.start(), &mut self.key, &mut self.trail)
                }
                _ => continue,
            };
            let slot = next.map_err(|damage| self.damaged(damage, span))?;
            let below = child(&node, &slot, span).map_err(|damage| self.damaged(damage, span))?;
            self.path.push(NodePlace { span, node, slot });
            return self.enter_side(below.node, side);
        }
        Ok(())
    }

    /// Goes to the entry of the leaf that ends at `end`, or to the last one before this leaf.
    fn enter_ending(&mut self, span: Span, leaf: Block, end: usize) -> Result<()> {
        if end == 0 {
            return self.enter_next_leaf(Side::Last);
        }
        let slot = leaf.slot_ending(end, &mut self.key, &mut self.trail);
        let slot = slot.map_err(|damage| self.damaged(damage, span))?;
        self.enter(NodePlace { span, node: leaf, slot })
    }

    /// Goes to an entry whose key is known.
    fn enter(&mut self, place: NodePlace) -> Result<()> {
        self.value = None;
        let value = self.table.value_ref(&place.node, &place.slot, place.span)?;
        if value.value_bytes > 0 {
            let block = self.value_block(value.block)?;
            let slot = self.table.value_slot(&block, &value)?;
            self.value = Some((block, slot));
        }
        self.leaf = Some(place);
        Ok(())
    }

    fn reset(&mut self) {
        self.path.clear();
        self.leaf = None;
        self.trail.clear();
    }

    fn value_block(&mut self, span: Span) -> Result<Block> {
        let through = self.fill == CacheFill::Yes;
        if through && self.table.is_mapped() {
            return self.table.block(span, &mut self.reads);
        }
        if let Some(at) = self.recent.iter().position(|(offset, _)| *offset == span.offset) {
            return Ok(self.recent[at].1.clone());
        }
        let block = if through {
            self.table.block(span, &mut self.reads)?
        } else {
            self.streamed_block(span)?
        };
        if self.recent.len() == RECENT_BLOCKS {
            self.recent.remove(0);
        }
        self.recent.push((span.offset, block.clone()));
        Ok(block)
    }

    /// Reads the block at `span` past the cache, with bytes behind it if earlier reads came close.
    fn streamed_block(&mut self, span: Span) -> Result<Block> {
        let holds = |stream: &Stream| {
            let end = stream.start + stream.bytes.len() as u64;
            stream.start <= span.offset && span.end() <= end
        };
        if !self.streams.iter().any(holds) {
            self.read_stream(span)?;
        }
        let at = self.streams.iter().position(holds).unwrap_or_default();
        let stream = &self.streams[at];
        let from = (span.offset - stream.start) as usize;
        let sealed = stream.bytes.slice(from..from + span.bytes as usize);
        self.reads.blocks_read += 1;
        self.table.file.unsealed_block(sealed, span.offset)
    }

    fn read_stream(&mut self, span: Span) -> Result<()> {
        let continued = |stream: &Stream| {
            let end = stream.start + stream.bytes.len() as u64;
            stream.start <= span.offset && span.offset <= end + STREAM_BYTES[1]
        };
        let before = self.streams.iter().position(continued);
        let ahead = STREAM_BYTES[usize::from(before.is_some())];
        let limit = self.table.facts().file_bytes;
        let end = (span.offset + ahead).min(limit).max(span.end());
        let wanted = Span { offset: span.offset, bytes: end - span.offset };
        let read = self.table.file.read(span.offset..end)?;
        self.reads.bytes_read += wanted.bytes;
        if let Some(at) = before {
            self.streams.remove(at);
        }
        self.streams.truncate(STREAMS - 1);
        self.streams.insert(0, Stream { start: span.offset, bytes: read });
        Ok(())
    }
}

/// Returns the first or last entry of an inner node.
fn slot_at(node: &Block, side: Side) -> std::result::Result<Slot, Damage> {
    match side {
        Side::First => node.slot(0),
        Side::Last => node.slot_ending(node.entries_end(), &mut Vec::new(), &mut Trail::default()),
    }
}

/// The panic message for a caller that moves a cursor without an entry.
const ON_ENTRY: &str = "the cursor is on an entry";

impl Cursor for AppendCursor {
    fn seek_first(&mut self) -> Result<()> {
        if !self.range.start.is_empty() {
            let start = self.range.start.clone();
            return self.seek(&start);
        }
        self.reset();
        match self.table.root.levels {
            0 => Ok(()),
            _ => self.enter_side(self.table.root.top.node, Side::First),
        }
    }

    fn seek_last(&mut self) -> Result<()> {
        if let Some(end) = self.range.end.clone() {
            return self.seek_before(&end);
        }
        self.reset();
        match self.table.root.levels {
            0 => Ok(()),
            _ => self.enter_side(self.table.root.top.node, Side::Last),
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        let Some((span, leaf)) = self.leaf_for(key)? else { return Ok(()) };
        let found = leaf.lower_bound(key).map_err(|damage| self.damaged(damage, span))?;
        let Some((slot, _)) = found else {
            return self.enter_next_leaf(Side::First);
        };
        // The bytes that the found entry shares with the previous one are bytes of the searched
        // key.
        self.key.clear();
        self.key.extend_from_slice(key.get(..slot.shared()).unwrap_or_default());
        leaf.step(&slot, &mut self.key).map_err(|damage| self.damaged(damage, span))?;
        self.enter(NodePlace { span, node: leaf, slot })
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        let Some((span, leaf)) = self.leaf_for(key)? else { return Ok(()) };
        let found = leaf.lower_bound(key).map_err(|damage| self.damaged(damage, span))?;
        let end = found.map_or(leaf.entries_end(), |(slot, _)| slot.start());
        self.enter_ending(span, leaf, end)
    }

    fn next(&mut self) -> Result<()> {
        let NodePlace { span, node, slot } = self.leaf.take().expect(ON_ENTRY);
        self.trail.clear();
        if slot.end() >= node.entries_end() {
            return self.enter_next_leaf(Side::First);
        }
        let next = node.slot(slot.end());
        let slot = next.and_then(|slot| node.step(&slot, &mut self.key).map(|()| slot));
        let slot = slot.map_err(|damage| self.damaged(damage, span))?;
        self.enter(NodePlace { span, node, slot })
    }

    fn prev(&mut self) -> Result<()> {
        let NodePlace { span, node, slot } = self.leaf.take().expect(ON_ENTRY);
        match self.trail.pop(&mut self.key) {
            Some(slot) => self.enter(NodePlace { span, node, slot }),
            None => self.enter_ending(span, node, slot.start()),
        }
    }

    #[inline]
    fn entry(&self) -> Option<EntryRef<'_>> {
        let NodePlace { slot, .. } = self.leaf.as_ref()?;
        let value = self.value.as_ref().map_or(&[][..], |(block, slot)| block.value(slot));
        Some(EntryRef { key: &self.key, seq: slot.seq, kind: slot.kind, value })
    }

    fn value(&self) -> Bytes {
        assert!(self.leaf.is_some(), "{ON_ENTRY}");
        self.value.as_ref().map_or_else(Bytes::new, |(block, slot)| block.shared_value(slot))
    }
}
