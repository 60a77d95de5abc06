//! Walks the leaves of the table that a batch changes.

use super::group::OldVersion;
use super::leaves::LeafEntry;
use super::reader::AppendTable;
use crate::error::Result;
use crate::format::{Block, Slot, Span};

/// Takes the entries of an old leaf in order.
pub(super) struct OldLeaf<'a> {
    table: &'a AppendTable,
    span: Span,
    leaf: Block,
    slot: Option<Slot>,
    key: Vec<u8>,
}

impl<'a> OldLeaf<'a> {
    pub(super) fn open(table: &'a AppendTable, span: Span) -> Result<OldLeaf<'a>> {
        let leaf = table.fresh_block(span)?;
        let mut opened = OldLeaf { table, span, leaf, slot: None, key: Vec::new() };
        opened.go_to(0)?;
        Ok(opened)
    }

    fn go_to(&mut self, at: usize) -> Result<()> {
        self.slot = None;
        if at < self.leaf.entries_end() {
            let slot = self.leaf.slot(at);
            let stepped = slot.and_then(|slot| self.leaf.step(&slot, &mut self.key).map(|()| slot));
            let damaged = |damage| self.table.file.damaged(damage, self.span.offset);
            self.slot = Some(stepped.map_err(damaged)?);
        }
        Ok(())
    }

    /// Returns the key of the next entry.
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.slot.as_ref().map(|_| &self.key[..])
    }

    /// Takes the next entry.
    pub(super) fn take(&mut self) -> Result<LeafEntry> {
        let slot = self.slot.expect("there is an entry");
        let value = self.table.value_ref(&self.leaf, &slot, self.span)?;
        let entry = LeafEntry { key: self.key.clone(), seq: slot.seq, kind: slot.kind, value };
        self.go_to(slot.end())?;
        Ok(entry)
    }

    /// Takes the next entry as a version of its key.
    pub(super) fn take_version(&mut self) -> Result<OldVersion> {
        let slot = self.slot.expect("there is an entry");
        self.table.value_ref(&self.leaf, &slot, self.span)?;
        let reference = self.leaf.value(&slot).to_vec();
        self.go_to(slot.end())?;
        Ok(OldVersion { seq: slot.seq, kind: slot.kind, reference })
    }

    /// Steps over the next entry.
    pub(super) fn skip(&mut self) -> Result<()> {
        self.go_to(self.slot.map_or(usize::MAX, |slot| slot.end()))
    }
}

impl AppendTable {
    /// Calls `each` for each key, in order.
    pub(super) fn each_key(&self, each: &mut impl FnMut(&[u8])) -> Result<()> {
        let mut last = Vec::new();
        self.each_leaf(self.root.top.node, self.root.levels, &mut |leaf| {
            while let Some(key) = leaf.key() {
                if key != last {
                    last.clear();
                    last.extend_from_slice(key);
                    each(key);
                }
                leaf.skip()?;
            }
            Ok(())
        })
    }

    /// Calls `each` for each leaf below the node at `span`, which has as many `levels` with itself.
    fn each_leaf(
        &self,
        span: Span,
        levels: u64,
        each: &mut impl FnMut(&mut OldLeaf<'_>) -> Result<()>,
    ) -> Result<()> {
        match levels {
            0 => Ok(()),
            1 => each(&mut OldLeaf::open(self, span)?),
            _ => {
                let children = self.children(span)?;
                children
                    .iter()
                    .try_for_each(|(_, child)| self.each_leaf(child.node, levels - 1, each))
            }
        }
    }
}
