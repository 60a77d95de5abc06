//! Walks the entries of a root in both directions.

use super::fetch::{Fetch, ValuePlace, Way};
use super::reader::{AppendTable, child};
use super::refs::{NodePlace, RefWalk, Side};
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use crate::format::{Block, Damage, Slot, Span, Trail, ValueRef};
use crate::table::counts::ReadTally;
use crate::table::cursor::CacheFill;
use crate::table::read_table::ReadCursor;
use bytes::Bytes;
use lsmith_tree::KeyRange;
use std::hint::black_box;
use std::sync::Arc;

/// Bytes that a new cursor reserves for the key under it.
const KEY_USUAL: usize = 64;

/// The most entries that are decoded together, first and later. A reader may want few, so the count
/// grows as the cursor goes on.
const GROUPS: [usize; 2] = [10, 16];

/// The value bytes of a small group. A processor waits for about twelve lines of memory at once.
/// These bytes are four times as many lines, so a larger group gains little.
const GROUP_BYTES_MIN: u64 = 3000;

/// A cursor over one root of an append table.
///
/// The cursor can be [limited](AppendCursor::keep_within) to a range of keys. Then callers must ask
/// only for keys within it.
#[derive(Debug)]
pub struct AppendCursor {
    table: Arc<AppendTable>,
    range: KeyRange,
    /// The inner nodes above the leaf, from the top, each with the child on the path.
    path: Vec<NodePlace>,
    leaf: Option<NodePlace>,
    /// The progress of a search, and the leaf that it has come to.
    aim: Aim,
    near: Option<(Span, Block)>,
    /// True if the cursor is on the entry of `leaf`.
    live: bool,
    /// Decoded entries of the leaf from somewhere on, and how many of them the cursor has reached.
    coming: Vec<Coming>,
    reached: usize,
    /// The number of entries that are decoded together next, at most.
    group: usize,
    /// The bytes of the values that were decoded since the last search.
    decoded_bytes: u64,
    /// The key of the entry under the cursor.
    key: Vec<u8>,
    /// The entries in front of it in the leaf, or the last of these, if they are known.
    trail: Trail,
    /// The value; `None` for an empty one.
    value: Option<ValuePlace>,
    fetch: Fetch,
    tally: Option<Arc<ReadTally>>,
}

/// An entry of a leaf.
#[derive(Debug)]
struct Coming {
    slot: Slot,
    value: ValueRef,
}

impl Coming {
    /// Decodes the entry at `at` of `leaf`, which is at `offset` of the file.
    ///
    /// `always`: otherwise the fields are spilled and reloaded at other widths, which defeats store
    /// forwarding.
    #[inline(always)]
    fn decode(leaf: &Block, at: usize, offset: u64) -> std::result::Result<Coming, Damage> {
        let slot = leaf.slot(at)?;
        Ok(Coming { slot, value: ValueRef::of(leaf, &slot, offset)? })
    }
}

/// The progress of a search.
#[derive(Clone, Copy, Debug)]
enum Aim {
    /// The search has not begun.
    Nowhere,
    /// The search has failed. The seek begins anew, and returns the error.
    Astray,
    /// The place of the next node is known. The path leads to it.
    Node(Span),
    /// The leaf is near.
    Leaf,
    /// The restart point of the leaf from which to search is known.
    Restart(usize),
    /// The entry is in `leaf`. The value may have to be touched.
    Found { value: ValueRef, must_touch: bool },
    /// The key is greater than all keys of the leaf below the path, or the table is empty.
    Behind,
}

impl Aim {
    /// Returns true if a search for an entry has no further step.
    fn ends_at_entry(self) -> bool {
        matches!(self, Aim::Found { .. } | Aim::Behind | Aim::Astray)
    }

    /// Returns true if a search for a restart point has no further step.
    fn ends_at_restart(self) -> bool {
        matches!(self, Aim::Restart(_) | Aim::Behind | Aim::Astray)
    }
}

impl Drop for AppendCursor {
    fn drop(&mut self) {
        if let Some(tally) = &self.tally {
            tally.add(self.fetch.reads);
        }
    }
}

impl AppendTable {
    /// Returns a cursor over the entries of this root. `fill` says whether it reads blocks through
    /// the cache.
    pub fn cursor(self: &Arc<Self>, fill: CacheFill) -> AppendCursor {
        AppendCursor {
            table: Arc::clone(self),
            range: KeyRange::ALL,
            path: Vec::new(),
            leaf: None,
            aim: Aim::Nowhere,
            near: None,
            live: false,
            coming: Vec::new(),
            reached: 0,
            group: GROUPS[0],
            decoded_bytes: 0,
            key: Vec::with_capacity(KEY_USUAL),
            trail: Trail::default(),
            value: None,
            fetch: Fetch::new(Arc::clone(self), fill),
            tally: None,
        }
    }
}

impl AppendCursor {
    /// Goes down from the node at `span`, on the level of the path's end, to a leaf. `choose` finds
    /// the child to go to. Returns the leaf.
    fn descend(
        &mut self,
        mut span: Span,
        mut choose: impl FnMut(&Block) -> std::result::Result<Slot, Damage>,
    ) -> Result<(Span, Block)> {
        while self.is_above_leaves() {
            let node = self.fetch.node(span)?;
            span = self.go_below(span, node, &mut choose)?;
        }
        Ok((span, self.fetch.node(span)?))
    }

    /// Returns true if the path leads to an inner node.
    fn is_above_leaves(&self) -> bool {
        (self.path.len() as u64) + 1 < self.table.root.levels
    }

    /// Adds the inner node at `span` to the path. Returns the place of the child that `choose`
    /// finds.
    fn go_below(
        &mut self,
        span: Span,
        node: Block,
        choose: impl FnOnce(&Block) -> std::result::Result<Slot, Damage>,
    ) -> Result<Span> {
        let slot = choose(&node).map_err(|damage| self.damaged(damage, span))?;
        let below = child(&node, &slot, span).map_err(|damage| self.damaged(damage, span))?;
        self.path.push(NodePlace { span, node, slot });
        Ok(below.node)
    }

    #[cold]
    fn damaged(&self, damage: Damage, span: Span) -> crate::error::Error {
        self.table.file.damaged(damage, span.offset)
    }

    /// Takes the next step of a search for `key` to a restart point of a leaf.
    fn step_to_restart(&mut self, key: &[u8]) -> Result<()> {
        // An error leaves the search astray.
        self.aim = match std::mem::replace(&mut self.aim, Aim::Astray) {
            Aim::Nowhere => {
                self.reset();
                match self.table.root.levels {
                    0 => Aim::Behind,
                    _ => self.aim_at(self.table.root.top.node),
                }
            }
            Aim::Node(span) => {
                let node = self.fetch.ready_node(span)?;
                if self.is_above_leaves() {
                    let below = self.go_below(span, node, |node| node.floor(key))?;
                    self.aim_at(below)
                } else {
                    self.near = Some((span, node));
                    Aim::Leaf
                }
            }
            Aim::Leaf => {
                let (span, leaf) = self.near.as_ref().expect(AT_LEAF);
                let start = leaf.restart_below(key);
                Aim::Restart(start.map_err(|damage| self.damaged(damage, *span))?)
            }
            last => last,
        };
        Ok(())
    }

    /// Takes the next step of a search for `key` to an entry.
    fn step_to_entry(&mut self, key: &[u8]) -> Result<()> {
        let Aim::Restart(start) = self.aim else { return self.step_to_restart(key) };
        self.aim = Aim::Astray;
        let (span, node) = self.near.take().expect(AT_LEAF);
        let found = node.lower_bound_from(start, key);
        let Some((slot, _)) = found.map_err(|damage| self.damaged(damage, span))? else {
            self.aim = Aim::Behind;
            return Ok(());
        };
        let value = self.table.value_ref(&node, &slot, span)?;
        self.leaf = Some(NodePlace { span, node, slot });
        self.aim = Aim::Found { value, must_touch: self.fetch.request_value(&value) };
        Ok(())
    }

    /// Begins a seek, which goes on from the approach. After an error it begins anew.
    fn begin_seek(&mut self) {
        self.live = false;
        if matches!(self.aim, Aim::Astray) {
            self.aim = Aim::Nowhere;
        }
    }

    /// Returns the aim of a search that goes to the node at `span`, and requests it. So cursors
    /// that approach together have all requested their nodes before one of them reads.
    fn aim_at(&self, span: Span) -> Aim {
        self.fetch.request_node(span);
        Aim::Node(span)
    }

    /// Goes to the first or last entry of the leaf below the path and `top`.
    fn enter_side(&mut self, span: Span, side: Side, way: Way) -> Result<()> {
        let (span, leaf) = self.descend(span, |node| side.of(node))?;
        self.key.clear();
        self.trail.clear();
        let slot = match side {
            Side::First => {
                leaf.slot(0).and_then(|slot| leaf.step(&slot, &mut self.key).map(|()| slot))
            }
            Side::Last => leaf.slot_ending(leaf.entries_end(), &mut self.key, &mut self.trail),
        };
        let slot = slot.map_err(|damage| self.damaged(damage, span))?;
        self.enter(NodePlace { span, node: leaf, slot }, way)
    }

    /// Goes to the leaf next to the path, on the side away from `side`, and to its entry on `side`.
    fn enter_next_leaf(&mut self, side: Side) -> Result<()> {
        self.leaf = None;
        self.live = false;
        while let Some(NodePlace { span, node, slot }) = self.path.pop() {
            let Some(next) = side.behind(&node, &slot) else { continue };
            let slot = next.map_err(|damage| self.damaged(damage, span))?;
            let below = child(&node, &slot, span).map_err(|damage| self.damaged(damage, span))?;
            self.path.push(NodePlace { span, node, slot });
            let way = if side == Side::First { Way::Forward } else { Way::Back };
            return self.enter_side(below.node, side, way);
        }
        Ok(())
    }

    /// Goes to the entry of the leaf that ends at `end`, or to the last one before this leaf.
    fn enter_ending(&mut self, span: Span, leaf: Block, end: usize, way: Way) -> Result<()> {
        if end == 0 {
            return self.enter_next_leaf(Side::Last);
        }
        let slot = leaf.slot_ending(end, &mut self.key, &mut self.trail);
        let slot = slot.map_err(|damage| self.damaged(damage, span))?;
        self.enter(NodePlace { span, node: leaf, slot }, way)
    }

    /// Goes to an entry whose key is known.
    fn enter(&mut self, place: NodePlace, way: Way) -> Result<()> {
        self.fetch.go(way);
        let value = self.table.value_ref(&place.node, &place.slot, place.span)?;
        let here = || RefWalk::new(&self.path, &place, place.slot.end(), Side::Last);
        self.fetch.prepare_one(&value, way, here);
        self.leaf = Some(place);
        self.enter_ready(value, way)
    }

    /// Goes to the entry of `leaf`, whose key is known and whose `value` is ready.
    fn enter_ready(&mut self, value: ValueRef, way: Way) -> Result<()> {
        self.live = false;
        self.coming.clear();
        self.reached = 0;
        if way == Way::Forward {
            // The next step tries the same again, and returns the error.
            drop(self.decode());
        }
        let place = self.leaf.as_ref().expect(ON_ENTRY);
        let here = || match way {
            Way::Back => RefWalk::new(&self.path, place, place.slot.end(), Side::Last),
            _ => RefWalk::new(&self.path, place, place.slot.start(), Side::First),
        };
        self.value = self.fetch.enter(&value, self.key.len(), way, here)?;
        self.live = true;
        Ok(())
    }

    /// Decodes the next entries of the leaf. There are none at its end. What the reader does not
    /// want of them is loaded in vain. So they end once their values have [`GROUP_BYTES_MIN`]
    /// bytes, or half of the bytes that were decoded before if that is more.
    fn decode(&mut self) -> Result<()> {
        self.fetch.go(Way::Forward);
        self.coming.clear();
        self.coming.reserve(self.group);
        self.reached = 0;
        let NodePlace { span, node, slot } = self.leaf.as_ref().expect(ON_ENTRY);
        let mut at = slot.end();
        let end = node.entries_end();
        let bytes_max = self.decoded_bytes + (self.decoded_bytes / 2).max(GROUP_BYTES_MIN);
        while self.coming.len() < self.group && at < end && self.decoded_bytes < bytes_max {
            match Coming::decode(node, at, span.offset) {
                Ok(coming) => {
                    at = coming.slot.end();
                    self.decoded_bytes += coming.value.value_bytes;
                    self.coming.push(coming);
                }
                Err(damage) if self.coming.is_empty() => return Err(self.damaged(damage, *span)),
                // It is returned when the cursor gets there.
                Err(_) => break,
            }
        }
        self.group = (2 * self.group).min(GROUPS[1]);
        if let (Some(first), Some(leaf)) = (self.coming.first(), &self.leaf) {
            let path = &self.path;
            let here = || RefWalk::new(path, leaf, first.slot.start(), Side::First);
            self.fetch.prepare(self.coming.iter().map(|coming| coming.value), here);
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.path.clear();
        self.leaf = None;
        self.aim = Aim::Nowhere;
        self.near = None;
        self.live = false;
        self.group = GROUPS[0];
        self.decoded_bytes = 0;
        self.trail.clear();
        self.fetch.end();
    }
}

/// The panic message for a search that has lost its leaf.
const AT_LEAF: &str = "the search has come to a leaf";

/// The panic message for a caller that moves a cursor without an entry.
const ON_ENTRY: &str = "the cursor is on an entry";

impl ReadCursor for AppendCursor {
    fn count_in(&mut self, tally: &Arc<ReadTally>) {
        self.tally = Some(Arc::clone(tally));
    }

    fn keep_within(&mut self, range: KeyRange) {
        self.range = range;
        self.reset();
    }
}

impl Cursor for AppendCursor {
    fn seek_first(&mut self) -> Result<()> {
        if !self.range.start.is_empty() {
            let start = self.range.start.clone();
            return self.seek(&start);
        }
        self.reset();
        match self.table.root.levels {
            0 => Ok(()),
            _ => self.enter_side(self.table.root.top.node, Side::First, Way::Alone),
        }
    }

    fn seek_last(&mut self) -> Result<()> {
        if let Some(end) = self.range.end.clone() {
            return self.seek_before(&end);
        }
        self.reset();
        match self.table.root.levels {
            0 => Ok(()),
            _ => self.enter_side(self.table.root.top.node, Side::Last, Way::Alone),
        }
    }

    fn approach(&mut self, key: &[u8]) -> bool {
        self.step_to_entry(key).is_ok() && !self.aim.ends_at_entry()
    }

    fn approach_before(&mut self, key: &[u8]) -> bool {
        self.step_to_restart(key).is_ok() && !self.aim.ends_at_restart()
    }

    #[inline]
    fn touch(&self) -> u64 {
        match (self.aim, &self.near) {
            (Aim::Node(span), _) => self.fetch.touch_node(span),
            (Aim::Leaf, Some((_, leaf))) => leaf.touch_restarts(),
            (Aim::Restart(start), Some((_, leaf))) => leaf.touch_behind(start),
            (Aim::Found { value, must_touch: true }, _) => self.fetch.touch_value(&value),
            _ => 0,
        }
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.begin_seek();
        while !self.aim.ends_at_entry() {
            self.step_to_entry(key)?;
            black_box(self.touch());
        }
        let Aim::Found { value, .. } = std::mem::replace(&mut self.aim, Aim::Nowhere) else {
            return self.enter_next_leaf(Side::First);
        };
        // The bytes that the found entry shares with the previous one are bytes of the searched
        // key.
        let NodePlace { span, node, slot } = self.leaf.as_ref().expect(ON_ENTRY);
        self.key.clear();
        self.key.extend_from_slice(key.get(..slot.shared()).unwrap_or_default());
        let stepped = node.step(slot, &mut self.key);
        stepped.map_err(|damage| self.damaged(damage, *span))?;
        self.enter_ready(value, Way::Alone)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.begin_seek();
        while !self.aim.ends_at_restart() {
            self.step_to_restart(key)?;
            black_box(self.touch());
        }
        let Aim::Restart(start) = std::mem::replace(&mut self.aim, Aim::Nowhere) else {
            return Ok(());
        };
        let (span, leaf) = self.near.take().expect(AT_LEAF);
        let found = leaf.lower_bound_from(start, key);
        let found = found.map_err(|damage| self.damaged(damage, span))?;
        let end = found.map_or(leaf.entries_end(), |(slot, _)| slot.start());
        self.enter_ending(span, leaf, end, Way::Alone)
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        assert!(std::mem::take(&mut self.live), "{ON_ENTRY}");
        if self.reached == self.coming.len() {
            self.decode()?;
            if self.coming.is_empty() {
                self.trail.clear();
                return self.enter_next_leaf(Side::First);
            }
        }
        self.trail.clear();
        let Coming { slot, value } = &self.coming[self.reached];
        self.reached += 1;
        let leaf = self.leaf.as_mut().expect(ON_ENTRY);
        let stepped = leaf.node.step(slot, &mut self.key);
        leaf.slot = *slot;
        stepped.map_err(|damage| self.table.file.damaged(damage, leaf.span.offset))?;
        let path = &self.path;
        let here = || RefWalk::new(path, leaf, leaf.slot.start(), Side::First);
        self.value = self.fetch.enter(value, self.key.len(), Way::Forward, here)?;
        self.live = true;
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        assert!(std::mem::take(&mut self.live), "{ON_ENTRY}");
        let NodePlace { span, node, slot } = self.leaf.take().expect(ON_ENTRY);
        match self.trail.pop(&mut self.key) {
            Some(slot) => self.enter(NodePlace { span, node, slot }, Way::Back),
            None => self.enter_ending(span, node, slot.start(), Way::Back),
        }
    }

    #[inline]
    fn entry(&self) -> Option<EntryRef<'_>> {
        let NodePlace { slot, .. } = self.leaf.as_ref().filter(|_| self.live)?;
        let value = self.value.map_or(&[][..], |place| self.fetch.value(place));
        Some(EntryRef { key: &self.key, seq: slot.seq, kind: slot.kind, value })
    }

    fn value(&self) -> Bytes {
        assert!(self.live, "{ON_ENTRY}");
        self.value.map_or_else(Bytes::new, |place| self.fetch.shared_value(place))
    }
}
