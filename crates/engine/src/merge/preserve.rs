//! Carrying out a plan that minds blocks: the block-preserving merge (Thonangi & Yang, section
//! II-B) on tables.
//!
//! [`BlockMerge`] decides by sizes, as it does in simulations. Blocks that are kept are neither
//! read nor written: they come out as slices of the tables that they are in. All others go to a
//! table of the output, and slices of both alternate.

use super::outcome_of;
use super::output::Output;
use super::part::{Block, Cursors, Part};
use super::side::{FoldedSide, Side, Sides, Stop, StorageSide};
use super::{InputCursor, Merger, ReservedPlan, entry_size};
use crate::version::{OpenRun, TableHandle, Version};
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::Result;
use lsmith_storage::fold::{Fold, FoldCounts};
use lsmith_storage::table::ReadTally;
use lsmith_tree::blocks::{BlockMerge, BlockRules, Front, Write, fits, is_piece, room};
use lsmith_tree::{
    EntryKind, Input, Key, KeyRange, MergePlan, Outcome, Place, Reuse, SeqNo, Size, Slice,
    key_after,
};
use std::sync::Arc;

impl Merger {
    /// Merges what the plan takes, and keeps blocks of it as `reuse` says. What came out, and the
    /// bytes read from files.
    pub(super) fn preserve(
        &self,
        reserved: &ReservedPlan,
        reuse: Reuse,
        version: &Version,
        output: &mut Output<'_>,
    ) -> Result<(Outcome, u64)> {
        let tally = Arc::new(ReadTally::default());
        // Taken after the inputs were fixed: a later snapshot sees the newest of all of them.
        let snapshots = self.context.snapshots.newest_first();
        let sides = sides(version, &reserved.plan, &snapshots, &tally)?;
        let mut fold =
            Fold::new(sides, snapshots, |_| reserved.bottom)?.forgetting(reserved.forgets);
        let mut keeper = Keeper::new(self.rules(reserved, reuse, version), output, &tally);
        let mut entries = 0;
        loop {
            while let Some(entry) = fold.next_entry()? {
                keeper.add(entry)?;
                entries += 1;
                self.check_open(entries)?;
            }
            let Some(stop) = fold.walk().stop().filter(|stop| *stop != Stop::End) else { break };
            let over = keeper.meet(fold.walk(), stop)?;
            fold.walk_mut().go_on(stop, over)?;
        }
        keeper.end()?;
        let (folded, counts, passed) = (fold.walk().folded(), fold.counts(), fold.walk().passed());
        // What the cursors have read is told when they go.
        drop(fold);
        let counts = both(folded, counts);
        let mut outcome = keeper.finish(outcome_of(counts, passed), version, &reserved.plan)?;
        outcome.blocks.read = tally.blocks();
        Ok((outcome, tally.bytes()))
    }

    fn rules(&self, reserved: &ReservedPlan, reuse: Reuse, version: &Version) -> Orders {
        let target = match reserved.plan.place {
            Place::Into(target) => version.disk_run(target).map(Arc::clone),
            _ => None,
        };
        let hull = reserved.plan.hull();
        let before = target.as_ref().and_then(|run| Part::block_below(run, &hull.start));
        let after = hull.end.as_ref().and_then(|end| Part::block_from(target.as_ref()?, end));
        let block_bytes = self.context.options.table.block_bytes as u64;
        let rules = BlockRules {
            before: before.as_ref().map(|block| block.size.bytes),
            ..BlockRules::of(&version.tree, &reserved.plan, reuse, block_bytes)
        };
        Orders { rules, reuse, bottom: reserved.bottom, target, before, after }
    }
}

/// What became of the entries of a fold that another one has folded on.
fn both(first: FoldCounts, second: FoldCounts) -> FoldCounts {
    FoldCounts {
        entries_in: first.entries_in + second.entries_in - first.entries_out,
        entries_out: second.entries_out,
        superseded: first.superseded + second.superseded,
        tombstones_dropped: first.tombstones_dropped + second.tombstones_dropped,
        pairs_cancelled: first.pairs_cancelled + second.pairs_cancelled,
        dropped_below: first.dropped_below.max(second.dropped_below),
    }
}

/// The oldest input on one side, all others folded on the other. A single input is the newer side.
fn sides(
    version: &Version,
    plan: &MergePlan,
    snapshots: &[SeqNo],
    tally: &Arc<ReadTally>,
) -> Result<Sides> {
    let reads_ahead = plan.reuse.is_none_or(|reuse| reuse.piece_bytes == u64::MAX);
    let one = |input: &Input| match version.disk_run(input.run) {
        Some(run) => {
            Side::Storage(Box::new(StorageSide::new(run, &input.range, reads_ahead, tally)))
        }
        None => {
            let inputs = std::slice::from_ref(input);
            Side::Memory(Box::new(InputCursor::new(version, inputs, tally)))
        }
    };
    Ok(match &plan.inputs[..] {
        [] => Sides::new(Side::Empty, Side::Empty),
        [newer] => Sides::new(one(newer), Side::Empty),
        [newer, older] => Sides::new(one(newer), one(older)),
        [newer @ .., older] => {
            let inputs = InputCursor::new(version, newer, tally);
            let nothing_beneath: fn(&[u8]) -> bool = |_| false;
            let fold = Fold::new(inputs, snapshots.to_vec(), nothing_beneath)?;
            Sides::new(Side::Folded(Box::new(FoldedSide::new(fold))), one(older))
        }
    })
}

/// What a merge that minds blocks is told.
struct Orders {
    rules: BlockRules,
    reuse: Reuse,
    /// Whether tombstones have nothing left to hide.
    bottom: bool,
    /// The run that the output goes into.
    target: Option<Arc<OpenRun>>,
    /// The blocks of the target on both sides of the output.
    before: Option<Block>,
    after: Option<Block>,
}

/// The entries of the block that is still open.
#[derive(Default)]
struct OpenBlock {
    entries: Vec<OpenEntry>,
    /// Keys and values.
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
        let (key_bytes, value_bytes) = (entry.key.len(), entry.value.len());
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
        // A huge value must not hold its memory until the merge is over.
        self.bytes.shrink_to(64 * 1024);
    }
}

/// A stretch of the output.
enum Stretch {
    /// Blocks that were kept, and the last of them.
    Old { table: Arc<TableHandle>, range: KeyRange, last: Block },
    /// Blocks of the table that is number `table` of those written, from a key to a key.
    New { table: usize, first: Key, last: Key },
}

/// Writes blocks and keeps blocks.
struct Keeper<'a, 'b> {
    orders: Orders,
    blocks: BlockMerge,
    open: OpenBlock,
    output: &'a mut Output<'b>,
    cursors: Cursors,
    stretches: Vec<Stretch>,
    kept: Size,
    kept_blocks: u64,
    /// What was read besides that which went through the merge.
    copied: Size,
    /// Empty room in all blocks that come out.
    room: u64,
    took_before: bool,
    took_after: bool,
}

impl<'a, 'b> Keeper<'a, 'b> {
    fn new(orders: Orders, output: &'a mut Output<'b>, tally: &Arc<ReadTally>) -> Keeper<'a, 'b> {
        Keeper {
            blocks: BlockMerge::new(orders.rules),
            orders,
            open: OpenBlock::default(),
            output,
            cursors: Cursors::new(tally),
            stretches: Vec::new(),
            kept: Size::default(),
            kept_blocks: 0,
            copied: Size::default(),
            room: 0,
            took_before: false,
            took_after: false,
        }
    }

    /// Adds an entry to the output.
    fn add(&mut self, entry: EntryRef<'_>) -> Result<()> {
        if let Some(write) = self.blocks.add(entry_size(&entry).bytes) {
            self.write(write)?;
        }
        self.open.push(entry);
        Ok(())
    }

    /// Decides on the block at which the merge has stopped; whether it is kept.
    fn meet(&mut self, sides: &Sides, stop: Stop) -> Result<bool> {
        let Some(side) = sides.stopped(stop) else { return Ok(false) };
        let Some((block, part, index)) = side.block() else { return Ok(false) };
        let is_target = self.orders.target.as_ref().is_some_and(|t| t.run().id() == side.run());
        if is_target && stop == Stop::Older {
            self.blocks.begin_target(block.size.bytes);
        }
        let (other, bottom) = (sides.other_key(stop), self.orders.bottom);
        let alone = |index: &usize| {
            other.is_none_or(|key| part.ends_below(*index, key))
                && !(bottom && part.size(*index).tombstones > 0)
        };
        if !alone(&index) || !self.blocks.may_keep(block.size) {
            return Ok(false);
        }
        let keepable = (index..part.len()).take_while(alone).map(|index| part.size(index).bytes);
        if !is_piece(self.orders.reuse.piece_bytes, self.goes_on(block), keepable) {
            return Ok(false);
        }
        if let Some(write) = self.blocks.keep(block.size) {
            self.write(write)?;
        }
        self.keep(block.clone());
        Ok(true)
    }

    /// Whether `block` goes on with the blocks that were kept last.
    fn goes_on(&self, block: &Block) -> bool {
        self.open.entries.is_empty()
            && matches!(self.stretches.last(), Some(Stretch::Old { table, range, .. })
                if block.follows(table, range))
    }

    fn keep(&mut self, block: Block) {
        self.kept += block.size;
        self.kept_blocks += 1;
        self.room += self.room_in(block.size.bytes);
        match self.stretches.last_mut() {
            Some(Stretch::Old { table, range, last }) if block.follows(table, range) => {
                range.end = block.range.end.clone();
                *last = block;
            }
            _ => {
                let (table, range) = (Arc::clone(&block.handle), block.range.clone());
                self.stretches.push(Stretch::Old { table, range, last: block });
            }
        }
    }

    /// Takes back the block that was kept last, to be written after all.
    fn take_back(&mut self) -> Option<Block> {
        let Some(Stretch::Old { table, range, last }) = self.stretches.pop() else { return None };
        let rest = KeyRange { start: range.start, end: Some(last.range.start.clone()) };
        if !rest.is_empty() {
            self.stretches.push(Stretch::Old { table, range: rest, last: last.clone() });
        }
        self.kept -= last.size;
        self.kept_blocks -= 1;
        self.room -= self.room_in(last.size.bytes);
        Some(last)
    }

    fn room_in(&self, bytes: u64) -> u64 {
        room(self.orders.reuse.full_bytes, bytes)
    }

    /// Writes the open block, with what joins it.
    fn write(&mut self, write: Write) -> Result<()> {
        let front = match write.front {
            Front::Nothing => None,
            Front::Kept => self.take_back(),
            Front::Before => {
                self.took_before = true;
                self.orders.before.clone()
            }
        };
        let after = self.orders.after.clone().filter(|_| write.takes_after);
        self.took_after |= after.is_some();
        let mut ends = Ends::default();
        if let Some(block) = &front {
            self.copied += copy(block, &mut self.cursors, self.output, &mut ends)?;
        }
        for entry in self.open.entries() {
            self.output.put(entry)?;
            ends.pass(entry.key);
        }
        self.open.clear();
        if let Some(block) = &after {
            self.copied += copy(block, &mut self.cursors, self.output, &mut ends)?;
        }
        self.room += self.room_in(write.bytes);
        let table = self.output.table_index();
        self.output.end_block(&ends.last)?;
        self.note_written(table, ends);
        Ok(())
    }

    fn note_written(&mut self, index: usize, ends: Ends) {
        let Some(first_key) = ends.first else { return };
        let last_key = Key::copy_from_slice(&ends.last);
        match self.stretches.last_mut() {
            Some(Stretch::New { table, last, .. }) if *table == index => *last = last_key,
            _ => {
                let (table, first, last) = (index, first_key, last_key);
                self.stretches.push(Stretch::New { table, first, last });
            }
        }
    }

    /// Writes what is open when all entries have come.
    fn end(&mut self) -> Result<()> {
        let after = self.orders.after.as_ref().map(|block| block.size.bytes);
        match self.blocks.clone().end(after) {
            Some(write) => self.write(write),
            None => Ok(()),
        }
    }

    /// Mends the run that a window was taken from, makes tables of what was written, and adds all
    /// up.
    fn finish(
        mut self,
        mut outcome: Outcome,
        version: &Version,
        plan: &MergePlan,
    ) -> Result<Outcome> {
        self.output.finish_table()?;
        let gap = self.close_gap(version, plan)?;
        self.output.open_tables()?;
        outcome.read += self.kept + self.copied;
        outcome.reused = self.kept;
        outcome.blocks.reused = self.kept_blocks;
        for facts in &self.output.facts {
            outcome.written += facts.size;
            outcome.blocks.written += facts.data_blocks;
        }
        (outcome.room_added, outcome.room_taken) = (self.room, self.room_taken(plan));
        if let Some(target) = &self.orders.target {
            let run = target.run().id();
            let hull = plan.hull();
            // With the room between block and window, where nothing lies but a slice may.
            if let Some(block) = self.orders.before.as_ref().filter(|_| self.took_before) {
                let range = KeyRange { end: Some(hull.start), ..block.range.clone() };
                outcome.rewritten.push((Input { run, range }, Vec::new()));
            }
            if let Some(block) = self.orders.after.as_ref().filter(|_| self.took_after) {
                let start = hull.end.expect("a block lies behind it");
                let range = KeyRange { start, ..block.range.clone() };
                outcome.rewritten.push((Input { run, range }, Vec::new()));
            }
        }
        if let Some((input, table)) = gap {
            let slice = self.output.handles[table].whole();
            outcome.rewritten.push((input, vec![slice]));
        }
        outcome.slices = self.stretches.iter().map(|stretch| self.slice(stretch)).collect();
        Ok(outcome)
    }

    fn slice(&self, stretch: &Stretch) -> Slice {
        let (handle, range) = match stretch {
            Stretch::Old { table, range, .. } => {
                (table, table.table().tree_table().filled(range.clone()))
            }
            Stretch::New { table, first, last } => {
                let range = KeyRange { start: first.clone(), end: Some(key_after(last)) };
                (&self.output.handles[*table], range)
            }
        };
        handle.whole().clip(&range).expect("a stretch is a part of its table")
    }

    /// Empty room in the blocks of the target that the plan takes.
    fn room_taken(&self, plan: &MergePlan) -> u64 {
        let Some(target) = &self.orders.target else { return 0 };
        let inputs = plan.inputs.iter().filter(|input| input.run == target.run().id());
        let parts = inputs.flat_map(|input| Part::all(target, &input.range));
        let rooms = parts.map(|part| {
            (0..part.len()).map(|index| self.room_in(part.size(index).bytes)).sum::<u64>()
        });
        rooms.sum()
    }

    /// The blocks on both sides of the hole that a window leaves become one where they fit: what
    /// of the run is rewritten, and the number of the new table.
    fn close_gap(&mut self, version: &Version, plan: &MergePlan) -> Result<Option<(Input, usize)>> {
        let Some(input) = plan.inputs.first() else { return Ok(None) };
        let stays = [Place::Oldest, Place::Into(input.run)].contains(&plan.place);
        let run = version.disk_run(input.run).filter(|_| !stays);
        let (Some(run), Some(end)) = (run, &input.range.end) else { return Ok(None) };
        let before = Part::block_below(run, &input.range.start);
        let (Some(before), Some(after)) = (before, Part::block_from(run, end)) else {
            return Ok(None);
        };
        if !fits(self.orders.rules.block_bytes, before.size.bytes, after.size.bytes) {
            return Ok(None);
        }
        let mut ends = Ends::default();
        self.copied += copy(&before, &mut self.cursors, self.output, &mut ends)?;
        self.copied += copy(&after, &mut self.cursors, self.output, &mut ends)?;
        let table = self.output.table_index();
        self.output.finish_table()?;
        let range = KeyRange { start: before.range.start, end: after.range.end };
        Ok(Some((Input { run: input.run, range }, table)))
    }
}

/// The first and the last key of a block.
#[derive(Default)]
struct Ends {
    first: Option<Key>,
    last: Vec<u8>,
}

impl Ends {
    fn pass(&mut self, key: &[u8]) {
        self.first.get_or_insert_with(|| Key::copy_from_slice(key));
        self.last.clear();
        self.last.extend_from_slice(key);
    }
}

/// Copies the entries of `block` to the output; what they come to.
fn copy(
    block: &Block,
    cursors: &mut Cursors,
    output: &mut Output<'_>,
    ends: &mut Ends,
) -> Result<Size> {
    let mut size = Size::default();
    let cursor = cursors.enter(block)?;
    let end = block.range.end.as_deref();
    while let Some(entry) = cursor.entry().filter(|entry| end.is_none_or(|end| entry.key < end)) {
        size += entry_size(&entry);
        output.put(entry)?;
        ends.pass(entry.key);
        cursor.next()?;
    }
    Ok(size)
}
