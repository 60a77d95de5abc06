//! Reads of blocks through caches: by lookups, range reads and merges.

use super::content::{KeyedContent, inputs};
use super::entry::KeyedEntry;
use super::rank::rank_key;
use super::scan::SeenBlock;
use super::table::{KeyedTable, Part};
use crate::cache::{BlockCaches, BlockName, Reader};
use lsmith_tree::{Input, Key, KeyRange, LevelId, MergePlan, Outcome, Run, Slice, TableId, Tree};

/// A block that a merge reads or writes.
#[derive(Clone, Copy, Debug)]
struct Touched {
    /// Where in key order it happens: at the first rank of a block that is read, and at the last
    /// rank of one that is written.
    rank: u64,
    is_written: bool,
    name: BlockName,
}

impl<E: KeyedEntry> KeyedContent<E> {
    /// Sets the caches. The content must be empty.
    pub(crate) fn set_caches(&mut self, caches: BlockCaches) {
        self.caches = caches;
    }

    /// Returns the caches.
    pub(crate) fn caches(&self) -> &BlockCaches {
        &self.caches
    }

    /// Looks `rank` up in `tree`, run by run from the newest on, as in a store whose filters never
    /// err: a block is read of the run that has the key.
    pub(super) fn lookup(&mut self, tree: &Tree, rank: u32) {
        let range =
            KeyRange { start: rank_key(rank.into()), end: Some(Key::after_number(rank.into())) };
        let found = tree.runs().find_map(|(level, run)| {
            let slice = run.overlapping(&range).first()?;
            let table = self.tables.of(slice);
            let part = table.part(&slice.range().intersection(&range));
            (!part.is_empty()).then(|| {
                let block = table.block_of(part.from, self.layout.block_bytes);
                (level, BlockName { table: table.table.id, block })
            })
        });
        if let Some((LevelId::Disk(_), name)) = found {
            self.read(Reader::Lookup, name, true);
        }
    }

    /// Looks `rank` up in the runs of `tree` on storage without filters: a block is read of each,
    /// from the newest on, up to the first that has the key.
    pub(crate) fn look_through(&mut self, tree: &Tree, rank: u32) {
        let to = KeyRange { start: Key::new(), end: Some(Key::after_number(rank.into())) };
        for run in tree.disk_runs() {
            // The block that holds the greatest keys up to this one; the first block if there is
            // none.
            let slices = run.slices();
            let Some(slice) = run.overlapping(&to).last().or_else(|| slices.first()) else {
                continue;
            };
            let table = self.tables.of(slice);
            let within = slice.range().intersection(&to);
            let part = table.part(if within.is_empty() { slice.range() } else { &within });
            let at = if within.is_empty() { part.from } else { part.end.max(part.from + 1) - 1 };
            let found = part.entries().last().is_some_and(|last| last.rank() == rank);
            let block = table.block_of(at, self.layout.block_bytes);
            let name = BlockName { table: table.table.id, block };
            self.read(Reader::Lookup, name, true);
            if found {
                return;
            }
        }
    }

    /// Reads the blocks that a range read has seen. Only the store's cache leaves some out.
    pub(crate) fn read_seen(&mut self, seen: &[SeenBlock]) {
        let adds_all = self.caches.serves_merges();
        for block in seen {
            self.read(Reader::Scan, block.name, block.adds || adds_all);
        }
    }

    fn read(&mut self, reader: Reader, name: BlockName, adds: bool) {
        let bytes = self.block_bytes(name);
        self.caches.read(reader, name, bytes, adds);
    }

    /// Returns the bytes that a block takes in a cache: as many as a full block, and more if its
    /// only entry is larger.
    fn block_bytes(&self, name: BlockName) -> u64 {
        let table = self.tables.named(name.table);
        let bytes = table.map_or(0, |table| table.lone_bytes(name.block, self.layout.block_bytes));
        bytes.max(self.layout.block_bytes)
    }

    /// Takes the blocks that a merge has replaced out of the caches. Before that, the merge reads
    /// and writes through them if they serve merges.
    pub(super) fn merge_through_caches(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        outcome: &Outcome,
    ) {
        if self.caches.is_empty() {
            return;
        }
        let read = self.blocks_read(tree, plan, outcome);
        if self.caches.serves_merges() {
            let mut touched = read.clone();
            touched.extend(self.blocks_written(tree.next_table(), outcome));
            // A stable sort is fast on sorted rows.
            touched.sort_by_key(|touched| (touched.rank, touched.is_written));
            for Touched { name, is_written, .. } in touched {
                if is_written {
                    let bytes = self.block_bytes(name);
                    self.caches.write(name, bytes);
                } else {
                    self.read(Reader::Merge, name, true);
                }
            }
        }
        for block in read {
            self.caches.forget(block.name);
        }
    }

    /// Returns the blocks on storage that a merge read, in key order: blocks of its inputs that it
    /// did not keep, and neighbours that it joined.
    fn blocks_read(&self, tree: &Tree, plan: &MergePlan, outcome: &Outcome) -> Vec<Touched> {
        let mut read = Vec::new();
        let joined = outcome.rewritten.iter().filter_map(|(Input { run, range }, _)| {
            let (level, run) = tree.run(*run)?;
            Some((level, &**run, range))
        });
        let taken = inputs(tree, plan).map(|(level, run, range)| (level, &**run, range));
        for (level, run, range) in taken.chain(joined) {
            if level != LevelId::Memory {
                self.add_blocks(run, range, &mut read);
            }
        }
        read.sort_by_key(|block| (block.rank, block.name));
        // The blocks on both sides of a window are joined, and their range has the window in it.
        read.dedup_by_key(|block| block.name);
        let is_old = |slice: &&Slice| slice.table().id < tree.next_table();
        let kept = outcome.slices.iter().filter(is_old);
        let mut kept = kept.flat_map(|slice| {
            let table = slice.table().id;
            slice.cell_indexes().map(move |cell| BlockName { table, block: cell as u32 })
        });
        // Kept blocks are in key order too.
        let mut next = kept.next();
        read.retain(|block| {
            let is_kept = next == Some(block.name);
            if is_kept {
                next = kept.next();
            }
            !is_kept
        });
        read
    }

    /// Adds the blocks of `run` within `range`.
    fn add_blocks(&self, run: &Run, range: &KeyRange, to: &mut Vec<Touched>) {
        for part in self.parts(run, range).into_iter().filter(|part| !part.is_empty()) {
            let table = part.table_id();
            if self.layout.by_block {
                to.extend(part.blocks().map(|block| Touched {
                    rank: block.first_rank(),
                    is_written: false,
                    name: BlockName { table, block: block.cell },
                }));
            } else if let Some(blocks) = part.whole_blocks() {
                let rank = part.first_rank();
                to.extend(blocks.map(|block| Touched {
                    rank,
                    is_written: false,
                    name: BlockName { table, block },
                }));
            }
        }
    }

    /// Returns the blocks of the tables from `first` on that a merge wrote.
    fn blocks_written(&self, first: TableId, outcome: &Outcome) -> impl Iterator<Item = Touched> {
        let rewritten = outcome.rewritten.iter().flat_map(|(_, slices)| slices);
        let new =
            outcome.slices.iter().chain(rewritten).filter(move |slice| slice.table().id >= first);
        new.flat_map(|slice| {
            let part = self.tables.of(slice).shown(slice);
            let table = slice.table().id;
            part.blocks().map(move |block: Part<'_, E>| Touched {
                rank: block.end_rank() - 1,
                is_written: true,
                name: BlockName { table, block: block.cell },
            })
        })
    }
}

impl<E: KeyedEntry> KeyedTable<E> {
    /// Returns the index of the block with the entry at this index, and of the last block for an
    /// index behind the last entry.
    fn block_of(&self, entry: u32, block_bytes: u64) -> u32 {
        if self.by_block {
            let inner = &self.cells[..self.cells.len() - 1];
            return inner.partition_point(|cell| cell.entries <= entry) as u32;
        }
        let ends = self.block_ends(block_bytes);
        ends[..ends.len() - 1].partition_point(|end| *end <= entry) as u32
    }

    /// Returns the bytes of the only entry of a block; 0 if it has several.
    fn lone_bytes(&self, block: u32, block_bytes: u64) -> u64 {
        let end = |block: u32| match self.by_block {
            true => self.cells[block as usize].entries,
            false => self.block_ends(block_bytes)[block as usize],
        };
        let from = block.checked_sub(1).map_or(0, end);
        if end(block) - from == 1 { self.entries[from as usize].bytes() } else { 0 }
    }
}
