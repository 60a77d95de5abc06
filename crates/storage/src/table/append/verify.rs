//! Reads all nodes and values of a root and checks that they agree.

use super::parts::{RootFilter, RootParts, read_root};
use super::reader::{AppendTable, child};
use crate::error::Result;
use crate::expiry::{EXPIRY_BYTES, expires_at};
use crate::format::{
    Block, ChildRef, Damage, KEY_BYTES_MAX, NodeSum, Slot, Span, Trail, ValueRef,
    common_prefix_bytes, key_hash, prefix_hash_of,
};
use crate::table::read_table::ReadTable;
use lsmith_tree::{EntryKind, KeyRange, SeqNo, Size, logical_bytes};

/// The number of data blocks that the walk holds on to.
const RECENT_BLOCKS: usize = 16;

/// The state of a walk.
struct VerifyWalk<'a> {
    table: &'a AppendTable,
    filter: Option<RootFilter>,
    ranges: &'a [KeyRange],
    recent: Vec<(u64, Block)>,
    seq_bounds: (SeqNo, SeqNo),
}

/// The separators of a node and of the next one.
#[derive(Clone, Copy)]
struct Between<'k> {
    start: &'k [u8],
    end: Option<&'k [u8]>,
}

type Checked<T> = std::result::Result<T, Damage>;

impl AppendTable {
    /// Reads the nodes and values that lead to entries within `ranges`, which must be in key order
    /// and disjoint, and checks them: all checksums, the order of the entries, separators, sums,
    /// references, and that filter and root agree with the entries. Reads from the file, not from
    /// the cache or the parts loaded when the root was opened.
    ///
    /// # Errors
    ///
    /// Fails with the first damage found, with path and offset, or with `Io`.
    pub(super) fn check(&self, ranges: &[KeyRange]) -> Result<()> {
        let RootParts { root, footer } = read_root(&self.file, self.facts().file_bytes)?;
        let damaged = |what| Err(self.file.damaged(Damage::whole(what), footer.properties.start));
        if root != self.root {
            return damaged("the root has changed");
        }
        if root.levels == 0 {
            return Ok(());
        }
        let seq_bounds = (root.seq_min, root.seq_max);
        let filter = RootFilter::read(&self.file, &root)?;
        let mut walk = VerifyWalk { table: self, filter, ranges, recent: Vec::new(), seq_bounds };
        walk.node(root.top, root.levels, Between { start: &[], end: None })?;
        for (key, is_last) in [(&root.first_key, false), (&root.last_key, true)] {
            let edge = super::nodes::Edge::Kept(root.top.node, root.levels - 1);
            if self.edge_key(edge, is_last)? != **key {
                return damaged("the root has another first or last key than the table");
            }
        }
        Ok(())
    }
}

impl VerifyWalk<'_> {
    /// Returns true if entries between these separators are to be checked.
    fn is_wanted(&self, between: Between<'_>) -> bool {
        self.ranges.iter().any(|range| {
            let begins = between.end.is_none_or(|end| *range.start < *end);
            begins && range.end.as_ref().is_none_or(|end| *between.start < **end)
        })
    }

    /// Checks the node that `reference` leads to, which has as many `levels` with itself.
    fn node(&mut self, reference: ChildRef, levels: u64, between: Between<'_>) -> Result<()> {
        let span = reference.node;
        let damaged = |damage| self.table.file.damaged(damage, span.offset);
        let node = self.table.fresh_block(span)?;
        let entries = entries_of(&node).map_err(damaged)?;
        let sum = if levels == 1 {
            self.leaf(&node, &entries, span, between)?
        } else {
            self.inner(&node, &entries, span, levels, between)?
        };
        if sum != reference.sum {
            return Err(damaged(Damage::whole("a node has another sum than its reference")));
        }
        Ok(())
    }

    fn inner(
        &mut self,
        node: &Block,
        entries: &[(Vec<u8>, Slot)],
        span: Span,
        levels: u64,
        between: Between<'_>,
    ) -> Result<NodeSum> {
        let damaged = |what| self.table.file.damaged(Damage::whole(what), span.offset);
        let mut sum = NodeSum::default();
        // The first range starts where the node itself starts, which may have become less since.
        let first_fits = entries.first().is_some_and(|(key, _)| key[..] >= *between.start);
        let rest = entries.iter().skip(1).map(|(key, _)| &key[..]);
        let starts = std::iter::once(between.start).chain(rest);
        let ends = starts.clone().skip(1).map(Some).chain([between.end]);
        let mut last = None;
        for ((start, end), (_, slot)) in starts.zip(ends).zip(entries) {
            let fits = first_fits
                && last.is_none_or(|last| last < start)
                && end.is_none_or(|end| start < end);
            if !fits {
                return Err(damaged("the separators of a node are out of order"));
            }
            last = Some(start);
            let below = child(node, slot, span);
            let below = below.map_err(|damage| self.table.file.damaged(damage, span.offset))?;
            sum.add(below.sum);
            let between = Between { start, end };
            if self.is_wanted(between) {
                self.node(below, levels - 1, between)?;
            }
        }
        Ok(sum)
    }

    fn leaf(
        &mut self,
        node: &Block,
        entries: &[(Vec<u8>, Slot)],
        span: Span,
        between: Between<'_>,
    ) -> Result<NodeSum> {
        let mut sum = NodeSum::default();
        let mut last: Option<(&[u8], SeqNo)> = None;
        for (key, slot) in entries {
            let is_new = last.is_none_or(|(last, _)| last != key);
            let checked = self.entry(key, slot, last, between);
            checked.map_err(|damage| self.table.file.damaged(damage, span.offset))?;
            let value = self.table.value_ref(node, slot, span)?;
            if value.value_bytes > 0 {
                self.value(key, &value, slot.kind)?;
            }
            let checked = self.expiry(slot, &value);
            checked.map_err(|damage| self.table.file.damaged(damage, span.offset))?;
            let bytes = logical_bytes(key.len(), value.value_bytes as usize);
            let tombstones = u64::from(slot.kind.is_tombstone());
            sum.add(NodeSum {
                keys: u64::from(is_new),
                size: Size { bytes, entries: 1, tombstones },
            });
            last = Some((key, slot.seq));
        }
        Ok(sum)
    }

    /// Checks an entry of a leaf that comes behind `last`.
    fn entry(
        &self,
        key: &[u8],
        slot: &Slot,
        last: Option<(&[u8], SeqNo)>,
        between: Between<'_>,
    ) -> Checked<()> {
        let damage = |what| Err(Damage { what, at: slot.start() });
        if !(1..=KEY_BYTES_MAX).contains(&key.len()) {
            return damage("a key is empty or too long");
        }
        if *key < *between.start || between.end.is_some_and(|end| key >= end) {
            return damage("a key does not lie between the separators of its leaf");
        }
        if last.is_some_and(|(last, seq)| key < last || (key == last && slot.seq >= seq)) {
            return damage("entries are out of order");
        }
        let (seq_min, seq_max) = self.seq_bounds;
        if slot.seq < seq_min || slot.seq > seq_max {
            return damage("a sequence number is out of the bounds of the root");
        }
        let Some(filter) = &self.filter else { return Ok(()) };
        if !filter.may_hold(key_hash(key)) {
            return damage("the filter excludes a key of the table");
        }
        match prefix_hash_of(key, self.table.root.prefix_bytes) {
            Some(prefix) if !filter.may_hold(prefix) => {
                damage("the filter excludes the prefix of a key of the table")
            }
            _ => Ok(()),
        }
    }

    /// Checks that the entry `slot`, with this value, may be in a table that expires as the root
    /// says. Whether its time fits is checked with its value.
    fn expiry(&self, slot: &Slot, value: &ValueRef) -> Checked<()> {
        let damage = |what| Err(Damage { what, at: slot.start() });
        let expires = slot.kind == EntryKind::Expiring;
        if expires && value.value_bytes < EXPIRY_BYTES as u64 {
            return damage("an entry that expires has no time");
        }
        if self.table.root.expires > 0 && !expires && !slot.kind.is_tombstone() {
            return damage("an entry stays in a table that expires");
        }
        Ok(())
    }

    /// Checks that `value` leads to a value of `key` with an entry of this kind.
    fn value(&mut self, key: &[u8], value: &ValueRef, kind: EntryKind) -> Result<()> {
        let offset = value.block.offset;
        let block = match self.recent.iter().find(|(at, _)| *at == offset) {
            Some((_, block)) => block.clone(),
            None => {
                let block = self.table.fresh_block(value.block)?;
                if self.recent.len() == RECENT_BLOCKS {
                    self.recent.remove(0);
                }
                self.recent.push((offset, block.clone()));
                block
            }
        };
        let slot = self.table.value_slot(&block, value)?;
        let mut found = Vec::new();
        let stored = block.slot_ending(slot.end(), &mut found, &mut Trail::default());
        let damaged = |damage| self.table.file.damaged(damage, offset);
        let stored = stored.map_err(damaged)?;
        if stored.start() != slot.start() || found != key || kind.is_tombstone() {
            return Err(damaged(Damage::whole("a reference leads to the value of another key")));
        }
        let latest = self.table.root.expires;
        if latest > 0 && kind == EntryKind::Expiring && expires_at(block.value(&slot)) > latest {
            return Err(damaged(Damage::whole("an entry expires later than the root says")));
        }
        Ok(())
    }
}

/// Returns the entries of a node with their keys. Searches rely on what is checked here.
fn entries_of(node: &Block) -> Checked<Vec<(Vec<u8>, Slot)>> {
    let mut entries: Vec<(Vec<u8>, Slot)> = Vec::new();
    let mut key = Vec::new();
    let mut at = 0;
    let mut restarts = 0;
    while at < node.entries_end() {
        let slot = node.slot(at)?;
        let is_restart = restarts < node.restarts() && node.restart(restarts)? == at;
        restarts += usize::from(is_restart);
        node.step(&slot, &mut key)?;
        let last = entries.last().map_or(&[][..], |(last, _)| last);
        let shared = if is_restart { 0 } else { common_prefix_bytes(last, &key) };
        if slot.shared() != shared || (at == 0 && !is_restart) {
            return Err(Damage { what: "a key shares fewer bytes than it could", at });
        }
        entries.push((key.clone(), slot));
        at = slot.end();
    }
    if restarts != node.restarts() {
        return Err(Damage { what: "restart points are not where entries start", at });
    }
    Ok(entries)
}
