//! Walks the entries of a table in both directions.

use super::reader::{ReadCount, Table};
use super::table_file::{Loaded, ReadAhead};
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use crate::format::{Block, Damage, Slot};
use bytes::Bytes;
use std::sync::Arc;

/// Whether the blocks that a cursor reads go through the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheFill {
    /// Blocks are looked up in the cache and kept in it: for readers.
    Yes,
    /// The cache is neither asked nor changed, and many blocks are read at once: for merges,
    /// which read everything once.
    No,
}

/// A cursor over one table.
#[derive(Debug)]
pub(crate) struct TableCursor {
    table: Arc<Table>,
    /// Where blocks come from, if not through the cache.
    ahead: Option<ReadAhead>,
    place: Option<Place>,
    /// The key of the entry at `place`.
    key: Vec<u8>,
    reads: ReadCount,
}

/// An entry, and the block that it is in.
#[derive(Debug)]
struct Place {
    index: usize,
    block: Block,
    slot: Slot,
}

impl TableCursor {
    pub(super) fn new(table: Arc<Table>, fill: CacheFill) -> TableCursor {
        let ahead = (fill == CacheFill::No).then(ReadAhead::default);
        TableCursor { table, ahead, place: None, key: Vec::new(), reads: ReadCount::default() }
    }

    /// What the cursor has read so far.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the statistics of a store"))]
    pub(crate) fn reads(&self) -> ReadCount {
        self.reads
    }

    fn block(&mut self, index: usize) -> Result<Block> {
        let Some(ahead) = &mut self.ahead else {
            return self.table.block(index, &mut self.reads);
        };
        let Loaded { block, bytes_read } =
            ahead.block(&self.table.file, &self.table.fences, index)?;
        self.reads.blocks_read += 1;
        self.reads.bytes_read += bytes_read;
        Ok(block)
    }

    /// Stands on the first entry of block `index`, or past the end where there is no such block.
    fn enter_start(&mut self, index: usize) -> Result<()> {
        self.place = None;
        if index >= self.table.fences.len() {
            return Ok(());
        }
        let block = self.block(index)?;
        self.key.clear();
        let slot = block.slot(0);
        let stepped = slot.and_then(|slot| block.step(&slot, &mut self.key).map(|()| slot));
        self.stand(index, block, stepped)
    }

    /// Stands on the entry of `block`, the block at `index`, that ends at `end`; for 0 on the last
    /// entry of the block before, or before the start.
    fn enter_ending(&mut self, index: usize, block: Block, end: usize) -> Result<()> {
        self.place = None;
        if end > 0 {
            let slot = block.slot_ending(end, &mut self.key);
            return self.stand(index, block, slot);
        }
        let Some(index) = index.checked_sub(1) else {
            return Ok(());
        };
        let block = self.block(index)?;
        let slot = block.slot_ending(block.entries_end(), &mut self.key);
        self.stand(index, block, slot)
    }

    fn stand(
        &mut self,
        index: usize,
        block: Block,
        slot: std::result::Result<Slot, Damage>,
    ) -> Result<()> {
        let slot = slot.map_err(|damage| self.table.damaged(damage, index))?;
        self.place = Some(Place { index, block, slot });
        Ok(())
    }
}

/// Said where a caller moves a cursor that stands nowhere.
const STANDS: &str = "the cursor stands on an entry";

impl Cursor for TableCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.enter_start(0)
    }

    fn seek_last(&mut self) -> Result<()> {
        self.place = None;
        let index = self.table.fences.len() - 1;
        let block = self.block(index)?;
        let end = block.entries_end();
        self.enter_ending(index, block, end)
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.place = None;
        let index = self.table.fences.block_for(key);
        let block = self.block(index)?;
        let found = block.lower_bound(key).map_err(|damage| self.table.damaged(damage, index))?;
        let Some((slot, _)) = found else {
            return self.enter_start(index + 1);
        };
        // What the found entry shares with the one before, it shares with the key sought.
        self.key.clear();
        self.key.extend_from_slice(&key[..slot.shared()]);
        let stepped = block.step(&slot, &mut self.key).map(|()| slot);
        self.stand(index, block, stepped)
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.place = None;
        let Some(index) = self.table.fences.blocks_below(key).checked_sub(1) else {
            return Ok(());
        };
        let block = self.block(index)?;
        let found = block.lower_bound(key).map_err(|damage| self.table.damaged(damage, index))?;
        let end = found.map_or(block.entries_end(), |(slot, _)| slot.start());
        self.enter_ending(index, block, end)
    }

    fn next(&mut self) -> Result<()> {
        let place = self.place.as_mut().expect(STANDS);
        let end = place.slot.end();
        if end >= place.block.entries_end() {
            let following = place.index + 1;
            return self.enter_start(following);
        }
        let slot = place.block.slot(end);
        match slot.and_then(|slot| place.block.step(&slot, &mut self.key).map(|()| slot)) {
            Ok(slot) => place.slot = slot,
            Err(damage) => {
                let error = self.table.damaged(damage, place.index);
                self.place = None;
                return Err(error);
            }
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        let Place { index, block, slot } = self.place.take().expect(STANDS);
        self.enter_ending(index, block, slot.start())
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        let place = self.place.as_ref()?;
        let (seq, kind) = (place.slot.seq, place.slot.kind);
        Some(EntryRef { key: &self.key, seq, kind, value: place.block.value(&place.slot) })
    }

    fn value(&self) -> Bytes {
        let place = self.place.as_ref().expect(STANDS);
        place.block.shared_value(&place.slot)
    }
}
