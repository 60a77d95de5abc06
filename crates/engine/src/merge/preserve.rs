//! The block-preserving merge (Thonangi & Yang, section II-B) on tables.
//!
//! [`PreservingMerge`] decides which blocks are kept, as in simulations. Kept blocks are neither
//! read nor written: the output has slices of the tables that hold them. All other entries go to
//! new tables. In the output, slices of old and new tables alternate.

use super::output::Output;
use super::part::{Block, Cursors, Part};
use super::side::{FoldedSide, MergeSide, Sides, StorageSide};
use super::{InputCursor, Merger, ReservedPlan, entry_size};
use super::{Merged, hiding, outcome_of};
use crate::version::{OpenRun, Version};
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::{Error, Result};
use lsmith_storage::fold::{Fold, FoldCounts, Hiding, Operators};
use lsmith_storage::table::{ReadTable, ReadTally};
use lsmith_tree::blocks::{
    BlockRules, BlockSink, Neighbours, OutputPart, PreserveRules, Preserved, PreservingMerge,
    input_with_gap, room,
};
use lsmith_tree::{
    EntryKind, Input, KeptTables, Key, KeyRange, MergePlan, Outcome, Place, Reuse, SeqNo, Size,
    Slice, key_after,
};
use std::sync::Arc;

impl Merger {
    /// Merges the inputs of the plan, and keeps blocks as `reuse` says. Returns what came
    /// out.
    pub(super) fn preserve(
        &self,
        reserved: &ReservedPlan,
        reuse: Reuse,
        version: &Version,
        output: &mut Output<'_>,
    ) -> Result<Merged> {
        let plan = &reserved.plan;
        let tally = Arc::new(ReadTally::default());
        let (hiding, snapshots) = hiding(&self.context, plan, version);
        let operators = reserved.keyspace.rules.for_merges();
        let applied = Applied { hiding: &hiding, snapshots: &snapshots, operators: &operators };
        let sides = sides(version, plan, applied, &tally)?;
        let deletes_applied = hiding.deletes_applied(&plan.hull(), &snapshots);
        let fold = Fold::new(sides, snapshots, |_| reserved.bottom)?;
        let mut fold = fold.forgetting(reserved.forgets).combining(operators).hiding(hiding);
        let rules = self.preserve_rules(reserved, reuse, version);
        let block_bytes = rules.rules.block_bytes;
        let mut merge = PreservingMerge::new(plan, rules, NewBlocks::new(output, &tally));
        let mut entries = 0;
        loop {
            while let Some(entry) = fold.next_entry()? {
                merge.add(entry_size(&entry).bytes)?.open.push(entry);
                entries += 1;
                self.check_open(&reserved.keyspace, entries)?;
            }
            if !fold.walk_mut().keep_or_enter_block(&mut merge)? {
                break;
            }
        }
        let preserved = merge.finish()?;
        let counts = total_counts(fold.walk().folded(), fold.counts());
        let taken = fold.walk().taken();
        // Cursors add their reads to the tally when they are dropped.
        drop(fold);
        let mut outcome = outcome_of(counts, taken);
        outcome.room_taken = newer_room(version, plan, reuse.full_bytes);
        preserved.add_to(&mut outcome, plan);
        let Preserved { sink: mut new, parts, kept, .. } = preserved;
        outcome.read += kept;
        new.output.finish_table()?;
        let closed = new.close_gap(version, plan, block_bytes)?;
        // Blocks that were copied as a whole may have entries under range deletes.
        outcome.deletes_applied =
            if new.copied == Size::default() { deletes_applied } else { SeqNo(0) };
        new.add_to(&mut outcome, &parts, closed)?;
        outcome.blocks.read = tally.blocks();
        Ok(Merged { outcome, bytes_read: tally.bytes(), is_filtered: counts.filtered > 0 })
    }

    fn preserve_rules(
        &self,
        reserved: &ReservedPlan,
        reuse: Reuse,
        version: &Version,
    ) -> PreserveRules<Block> {
        let plan = &reserved.plan;
        let target = match plan.place {
            Place::Into(target) => version.disk_run(target),
            _ => None,
        };
        let block_bytes = self.context.options.table.block_bytes as u64;
        PreserveRules {
            rules: BlockRules::of(&version.tree, plan, reuse, block_bytes),
            piece_bytes: reuse.piece_bytes,
            bottom: reserved.bottom,
            beside: target.map_or(Neighbours::NONE, |run| neighbours(run, &plan.hull())),
        }
    }
}

/// Returns the blocks of `run` on both sides of `range`.
fn neighbours(run: &OpenRun, range: &KeyRange) -> Neighbours<Block> {
    Neighbours::of(range, |start| Part::block_below(run, start), |end| Part::block_from(run, end))
}

/// Returns the empty room, in logical bytes, in the blocks of the target that a newer input of
/// `plan` takes. The merge itself counts the blocks of the older input.
fn newer_room(version: &Version, plan: &MergePlan, full_bytes: u64) -> u64 {
    let newer = match &plan.inputs[..] {
        [newer @ .., _] if !newer.is_empty() => newer,
        inputs => inputs,
    };
    let target = newer.iter().filter(|input| plan.place == Place::Into(input.run));
    let runs = target.filter_map(|input| Some((version.disk_run(input.run)?, &input.range)));
    let parts = runs.flat_map(|(run, range)| Part::all(run, range));
    let rooms = parts.map(|part| {
        (0..part.len()).map(|index| room(full_bytes, part.size(index).bytes)).sum::<u64>()
    });
    rooms.sum()
}

/// Returns the counts of two folds together. The second one has folded the output of the first.
fn total_counts(first: FoldCounts, second: FoldCounts) -> FoldCounts {
    FoldCounts {
        entries_in: first.entries_in + second.entries_in - first.entries_out,
        entries_out: second.entries_out,
        superseded: first.superseded + second.superseded,
        tombstones_dropped: first.tombstones_dropped + second.tombstones_dropped,
        pairs_cancelled: first.pairs_cancelled + second.pairs_cancelled,
        hidden: first.hidden + second.hidden,
        filtered: first.filtered + second.filtered,
        dropped_below: first.dropped_below.max(second.dropped_below),
    }
}

/// What a merge applies to its entries.
struct Applied<'a> {
    hiding: &'a Hiding,
    /// Newest first.
    snapshots: &'a [SeqNo],
    operators: &'a Option<Operators>,
}

/// Returns the oldest input as the older side, and all others, folded, as the newer side. A single
/// input is the newer side.
fn sides(
    version: &Version,
    plan: &MergePlan,
    Applied { hiding, snapshots, operators }: Applied<'_>,
    tally: &Arc<ReadTally>,
) -> Result<Sides> {
    let reads_ahead = plan.reuse.is_none_or(|reuse| reuse.piece_bytes == u64::MAX);
    let one = |input: &Input| match version.disk_run(input.run) {
        Some(run) => {
            MergeSide::Storage(Box::new(StorageSide::new(run, &input.range, reads_ahead, tally)))
        }
        None => {
            let inputs = std::slice::from_ref(input);
            let inputs = InputCursor::new(version, inputs, &KeptTables::default(), tally);
            MergeSide::Memory(Box::new(inputs.leaping(hiding.clone(), snapshots)))
        }
    };
    Ok(match &plan.inputs[..] {
        [] => Sides::new(MergeSide::Empty, MergeSide::Empty),
        [newer] => Sides::new(one(newer), MergeSide::Empty),
        [newer, older] => Sides::new(one(newer), one(older)),
        [newer @ .., older] => {
            let inputs = InputCursor::new(version, newer, &KeptTables::default(), tally);
            let nothing_beneath: fn(&[u8]) -> bool = |_| false;
            let inputs = inputs.leaping(hiding.clone(), snapshots);
            let fold = Fold::new(inputs, snapshots.to_vec(), nothing_beneath)?;
            let fold = fold.combining(operators.clone()).hiding(hiding.clone());
            Sides::new(MergeSide::Folded(Box::new(FoldedSide::new(fold))), one(older))
        }
    })
}

/// The entries of the open block.
#[derive(Default)]
struct OpenBlock {
    entries: Vec<OpenEntry>,
    /// Key and value of each entry, one after the other.
    bytes: Vec<u8>,
}

struct OpenEntry {
    key_bytes: usize,
    value_bytes: usize,
    seq: SeqNo,
    kind: EntryKind,
}

impl OpenBlock {
    fn push(&mut self, entry: EntryRef<'_>) {
        let key_bytes = entry.key.len();
        let value_bytes = entry.value.len();
        self.entries.push(OpenEntry { key_bytes, value_bytes, seq: entry.seq, kind: entry.kind });
        self.bytes.extend_from_slice(entry.key);
        self.bytes.extend_from_slice(entry.value);
    }

    fn entries(&self) -> impl Iterator<Item = EntryRef<'_>> {
        let mut rest = &self.bytes[..];
        self.entries.iter().map(move |entry| {
            let (key, behind) = rest.split_at(entry.key_bytes);
            let (value, behind) = behind.split_at(entry.value_bytes);
            rest = behind;
            EntryRef { key, seq: entry.seq, kind: entry.kind, value }
        })
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.bytes.clear();
        // A huge value must not hold its memory until the merge ends.
        self.bytes.shrink_to(64 * 1024);
    }
}

/// Neighbouring blocks of a new table.
#[derive(Debug)]
struct WrittenBlocks {
    /// The index of the table in the output.
    table: usize,
    first: Key,
    last: Key,
}

/// The tables of the output, and the open block.
struct NewBlocks<'a, 'b> {
    open: OpenBlock,
    output: &'a mut Output<'b>,
    cursors: Cursors,
    /// The size of the entries copied from whole blocks, which the sides did not read.
    copied: Size,
}

impl<'a, 'b> NewBlocks<'a, 'b> {
    fn new(output: &'a mut Output<'b>, tally: &Arc<ReadTally>) -> NewBlocks<'a, 'b> {
        let cursors = Cursors::new(tally);
        NewBlocks { open: OpenBlock::default(), output, cursors, copied: Size::default() }
    }

    /// Copies the entries of `block` to the output, and adds their keys to `ends`.
    fn copy(&mut self, block: &Block, ends: &mut Ends) -> Result<()> {
        let cursor = self.cursors.enter(block)?;
        let end = block.range.end.as_deref();
        while let Some(entry) = cursor.entry().filter(|entry| end.is_none_or(|end| entry.key < end))
        {
            self.copied += entry_size(&entry);
            self.output.put(entry)?;
            ends.add(entry.key);
            cursor.next()?;
        }
        Ok(())
    }

    /// Joins the blocks on both sides of the gap that a window leaves, if they fit into one.
    /// Returns their run and range, and the index of the table that holds the joined block.
    /// Returns `None` if nothing was joined.
    fn close_gap(
        &mut self,
        version: &Version,
        plan: &MergePlan,
        block_bytes: u64,
    ) -> Result<Option<(Input, usize)>> {
        let Some(input) = input_with_gap(plan) else { return Ok(None) };
        let beside = version.disk_run(input.run).map(|run| neighbours(run, &input.range));
        let fitting = beside.and_then(|beside| beside.fitting(block_bytes));
        let Some((before, after, range)) = fitting else { return Ok(None) };
        let mut ends = Ends::default();
        self.copy(&before, &mut ends)?;
        self.copy(&after, &mut ends)?;
        let table = self.output.table_index();
        self.output.finish_table()?;
        // Blocks of a damaged table may hold nothing. They stay where they are.
        Ok(ends.first.map(|_| (Input { run: input.run, range }, table)))
    }

    /// Opens the tables. Adds to `outcome` the entries copied and written, the slices of the
    /// output, and the table that replaces the blocks around a `closed` gap.
    fn add_to(
        self,
        outcome: &mut Outcome,
        parts: &[OutputPart<Block, WrittenBlocks>],
        closed: Option<(Input, usize)>,
    ) -> Result<()> {
        self.output.open_tables()?;
        outcome.read += self.copied;
        for facts in &self.output.facts {
            outcome.written += facts.size;
            outcome.blocks.written += facts.data_blocks;
        }
        if let Some((input, table)) = closed {
            outcome.rewritten.push((input, vec![self.output.handles[table].whole()]));
        }
        outcome.slices = parts.iter().map(|part| self.slice(part)).collect();
        Ok(())
    }

    fn slice(&self, part: &OutputPart<Block, WrittenBlocks>) -> Slice {
        let (handle, range) = match part {
            OutputPart::Kept(Block { handle, range, .. }) => {
                (handle, handle.table().tree_table().filled(range.clone()))
            }
            OutputPart::Written(WrittenBlocks { table, first, last }) => {
                let range = KeyRange { start: first.clone(), end: Some(key_after(last)) };
                (&self.output.handles[*table], range)
            }
        };
        handle.whole().clip(&range).expect("a part of the output is a part of its table")
    }
}

impl BlockSink<Block> for NewBlocks<'_, '_> {
    type Written = WrittenBlocks;
    type Error = Error;

    fn write(
        &mut self,
        front: Option<&Block>,
        behind: Option<&Block>,
        last: Option<&mut WrittenBlocks>,
    ) -> Result<Option<WrittenBlocks>> {
        let mut ends = Ends::default();
        if let Some(block) = front {
            self.copy(block, &mut ends)?;
        }
        for entry in self.open.entries() {
            self.output.put(entry)?;
            ends.add(entry.key);
        }
        self.open.clear();
        if let Some(block) = behind {
            self.copy(block, &mut ends)?;
        }
        let table = self.output.table_index();
        self.output.end_block(&ends.last)?;
        let Some(first) = ends.first else { return Ok(None) };
        let last_key = Key::copy_from_slice(&ends.last);
        Ok(match last {
            Some(last) if last.table == table => {
                last.last = last_key;
                None
            }
            _ => Some(WrittenBlocks { table, first, last: last_key }),
        })
    }
}

/// The first and the last key of a block.
#[derive(Default)]
struct Ends {
    first: Option<Key>,
    last: Vec<u8>,
}

impl Ends {
    fn add(&mut self, key: &[u8]) {
        self.first.get_or_insert_with(|| Key::copy_from_slice(key));
        self.last.clear();
        self.last.extend_from_slice(key);
    }
}
