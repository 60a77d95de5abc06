//! What comes out of a plan, in blocks.

use super::merge::{Out, Part, Rules, Side, merge};
use super::table::{BlockTable, Record, block_key};
use crate::{Content, SimError};
use lsmith_tree::{
    Input, KeyRange, LevelId, MergePlan, Mode, Outcome, Place, Run, RunId, Size, Slice, Table,
    TableId, Tree,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Records of every table, in blocks of `per_block` records of `record_bytes` each.
#[derive(Clone, Debug)]
pub struct BlockContent {
    pub(super) per_block: usize,
    pub(super) record_bytes: u64,
    tables: BTreeMap<TableId, (Arc<Table>, Arc<BlockTable>)>,
}

impl BlockContent {
    /// No tables yet.
    pub(super) fn new(per_block: usize, record_bytes: u64) -> BlockContent {
        BlockContent { per_block, record_bytes, tables: BTreeMap::new() }
    }

    /// A new table.
    pub(super) fn add(&mut self, id: TableId, table: BlockTable) -> Slice {
        let facts = Arc::new(table.facts(id, self.record_bytes));
        self.tables.insert(id, (Arc::clone(&facts), Arc::new(table)));
        Slice::whole(facts)
    }

    /// The records of `run` within `range`, in key order.
    pub(super) fn records(&self, run: &Run, range: &KeyRange) -> Vec<Record> {
        let parts = self.parts(run, range);
        let blocks = parts.iter().flat_map(|part| (part.from..part.upto).map(move |i| (part, i)));
        blocks.flat_map(|(part, index)| part.table.block(index)).copied().collect()
    }

    fn parts(&self, run: &Run, range: &KeyRange) -> Vec<Part> {
        let slices = run.clip(range);
        let parts = slices.map(|slice| {
            let id = slice.table().id;
            let table = Arc::clone(&self.tables[&id].1);
            let blocks = table.within(slice.range());
            Part { id, table, from: blocks.start, upto: blocks.end }
        });
        parts.filter(|part| part.from < part.upto).collect()
    }

    fn slots(&self, bytes: u64) -> i64 {
        (bytes / self.record_bytes) as i64
    }

    /// The block of `run` next to `range`, before or after it.
    fn neighbour(&self, run: &Run, range: &KeyRange, side: Beside) -> Option<Part> {
        let beyond = match side {
            Beside::Before => {
                KeyRange { start: Default::default(), end: Some(range.start.clone()) }
            }
            Beside::After => KeyRange { start: range.end.clone()?, end: None },
        };
        let slices = run.overlapping(&beyond);
        let slice = match side {
            Beside::Before => slices.last(),
            Beside::After => slices.first(),
        };
        let slice = slice?.clip(&beyond)?;
        let id = slice.table().id;
        let table = Arc::clone(&self.tables[&id].1);
        let blocks = table.within(slice.range());
        let from = match side {
            Beside::Before => blocks.end.checked_sub(1).filter(|at| *at >= blocks.start)?,
            Beside::After => Some(blocks.start).filter(|at| *at < blocks.end)?,
        };
        Some(Part { id, table, from, upto: from + 1 })
    }

    /// The slices of `blocks`, new ones in tables named from `next` on.
    fn slices(&mut self, blocks: &[Out], next: &mut u64) -> Vec<Slice> {
        let mut slices = Vec::new();
        let mut at = 0;
        while at < blocks.len() {
            let same = |out: &Out| match (&blocks[at], out) {
                (Out::New(_), Out::New(_)) => true,
                (Out::Old { id, .. }, Out::Old { id: other, .. }) => id == other,
                _ => false,
            };
            let mut upto = at + 1;
            while upto < blocks.len()
                && same(&blocks[upto])
                && follows(&blocks[upto - 1], &blocks[upto])
            {
                upto += 1;
            }
            match &blocks[at] {
                Out::New(_) => {
                    let mut table = BlockTable::default();
                    blocks[at..upto].iter().for_each(|block| table.push(block.records()));
                    slices.push(self.add(TableId(*next), table));
                    *next += 1;
                }
                Out::Old { id, table, block } => {
                    let whole = Slice::whole(Arc::clone(&self.tables[id].0));
                    slices.extend(table.slice(&whole, *block, block + upto - at));
                }
            }
            at = upto;
        }
        slices
    }

    fn carry_out_merge(&mut self, tree: &Tree, plan: &MergePlan) -> Result<Outcome, SimError> {
        let illegal = |rule| SimError::BadPlan { plan: Box::new(plan.clone()), rule };
        let bottom = tree.is_bottom_for(plan).map_err(illegal)?;
        let target = match plan.place {
            Place::Into(target) => tree.run(target).map(|(_, run)| run),
            _ => None,
        };
        let hull = plan.hull();
        let mut outcome = Outcome::default();
        let mut sides: Vec<Side> = Vec::new();
        for input in &plan.inputs {
            let Some((level, run)) = tree.run(input.run) else { continue };
            let parts = self.parts(run, &input.range);
            let read = self.size_of(&parts);
            match level {
                LevelId::Memory => outcome.from_memory += read,
                LevelId::Disk(_) => {
                    outcome.read += read;
                    outcome.blocks.read +=
                        parts.iter().map(|p| (p.upto - p.from) as u64).sum::<u64>();
                }
            }
            sides.push(Side::new(parts, level != LevelId::Memory));
        }
        let before = target.and_then(|run| self.neighbour(run, &hull, Beside::Before));
        let rules = Rules {
            per_block: self.per_block,
            reuse: plan.reuse.is_some(),
            bottom,
            before: before.as_ref().map(|part| part.table.block(part.from).len()),
            empty: 0,
            allowed: i64::MAX,
        };
        let rules = self.with_account(rules, tree, plan, target);
        let is_compaction = plan.place == Place::Oldest && plan.inputs.len() == 1;
        if let (Some(_), false, Some(taken)) = (plan.reuse, is_compaction, target) {
            outcome.room_taken = self.room_taken(taken, plan);
        }
        let merged = self.fold(sides, rules);
        let mut ends = Ends { blocks: merged, before, after: None, outcome };
        if let Some(target) = target {
            ends.after = self.neighbour(target, &hull, Beside::After);
            self.mend(&mut ends, target.id());
        }
        let Ends { blocks, mut outcome, .. } = ends;
        let mut next = tree.next_table().0;
        self.close_gap(tree, plan, &mut outcome, &mut next);
        self.count(&blocks, &mut outcome);
        if is_compaction {
            outcome.room_added = 0;
        }
        outcome.slices = self.slices(&blocks, &mut next);
        let entries_in = outcome.from_memory.entries + outcome.read.entries;
        let entries_out = outcome.written.entries + outcome.reused.entries;
        outcome.entries_dropped = entries_in - entries_out;
        Ok(outcome)
    }

    /// Merges all sides, newest first; only the last merge can keep blocks.
    fn fold(&self, mut sides: Vec<Side>, rules: Rules) -> Vec<Out> {
        let oldest = sides.pop().unwrap_or_else(|| Side::new(Vec::new(), false));
        if sides.is_empty() {
            return merge(oldest, Side::new(Vec::new(), false), rules);
        }
        let first = sides.remove(0);
        let newest = sides.into_iter().fold(first, |newer, older| {
            let plain = Rules { reuse: false, bottom: false, before: None, ..rules };
            let blocks = merge(newer, older, plain);
            let records = blocks.iter().flat_map(|block| block.records()).copied().collect();
            let table = Arc::new(BlockTable::packed(records, self.per_block));
            let upto = table.len();
            let part = Part { id: TableId::default(), table, from: 0, upto };
            Side::new(if upto > 0 { vec![part] } else { Vec::new() }, false)
        });
        merge(newest, oldest, rules)
    }

    /// Empty room in the blocks of `target` that `plan` takes.
    fn room_taken(&self, target: &Arc<Run>, plan: &MergePlan) -> u64 {
        let inputs = plan.inputs.iter().filter(|input| input.run == target.id());
        let parts = inputs.flat_map(|input| self.parts(target, &input.range));
        parts.map(|part| self.room(part.table.blocks(part.from, part.upto))).sum()
    }

    fn room<'a>(&self, blocks: impl Iterator<Item = &'a [Record]>) -> u64 {
        blocks.map(|block| (self.per_block - block.len()) as u64 * self.record_bytes).sum()
    }

    fn size(&self, records: u64) -> Size {
        Size { bytes: records * self.record_bytes, entries: records, tombstones: 0 }
    }

    fn size_of(&self, parts: &[Part]) -> Size {
        let blocks = parts.iter().flat_map(|part| part.table.blocks(part.from, part.upto));
        self.size(blocks.map(|block| block.len() as u64).sum())
    }

    /// The blocks beside the output join it where they would fit into one block with its ends.
    fn mend(&self, ends: &mut Ends, target: RunId) {
        let fits = |left: &[Record], right: &[Record]| left.len() + right.len() <= self.per_block;
        let joined = |left: &[Record], right: &[Record]| Out::New([left, right].concat());
        let block = |part: &Part| part.table.block(part.from).to_vec();
        let (before, after) = (ends.before.as_ref().map(block), ends.after.as_ref().map(block));
        if let (Some(before), Some(first)) = (&before, ends.blocks.first())
            && fits(before, first.records())
        {
            ends.blocks[0] = joined(before, first.records());
            self.consume(ends, Beside::Before, target);
        }
        match (before, ends.blocks.last(), after) {
            (_, Some(last), Some(after)) if fits(last.records(), &after) => {
                let block = joined(last.records(), &after);
                ends.blocks.pop();
                ends.blocks.push(block);
                self.consume(ends, Beside::After, target);
            }
            (Some(before), None, Some(after)) if fits(&before, &after) => {
                ends.blocks.push(joined(&before, &after));
                self.consume(ends, Beside::Before, target);
                self.consume(ends, Beside::After, target);
            }
            _ => {}
        }
    }

    /// Takes the neighbour on `side` out of the target.
    fn consume(&self, ends: &mut Ends, side: Beside, run: RunId) {
        let part = match side {
            Beside::Before => ends.before.take(),
            Beside::After => ends.after.take(),
        };
        let Some(part) = part else { return };
        ends.outcome.read += self.size_of(std::slice::from_ref(&part));
        ends.outcome.rewritten.push((Input { run, range: range_of(&part) }, Vec::new()));
    }

    /// The blocks on both sides of the hole that a window leaves become one where they fit.
    fn close_gap(&mut self, tree: &Tree, plan: &MergePlan, outcome: &mut Outcome, next: &mut u64) {
        let Some(input) = plan.inputs.first() else { return };
        let Some((LevelId::Disk(_), run)) = tree.run(input.run) else { return };
        if plan.inputs.len() < 2 || plan.place == Place::Into(input.run) {
            return;
        }
        let before = self.neighbour(run, &input.range, Beside::Before);
        let after = self.neighbour(run, &input.range, Beside::After);
        let (Some(before), Some(after)) = (before, after) else { return };
        let left = before.table.block(before.from);
        let right = after.table.block(after.from);
        if left.len() + right.len() > self.per_block {
            return;
        }
        let mut table = BlockTable::default();
        table.push(&[left, right].concat());
        let records = self.size((left.len() + right.len()) as u64);
        outcome.read += records;
        outcome.written += records;
        outcome.blocks.written += 1;
        let range = range_of(&before).hull(&range_of(&after));
        let slice = self.add(TableId(*next), table);
        *next += 1;
        outcome.rewritten.push((Input { run: input.run, range }, vec![slice]));
    }

    fn count(&self, blocks: &[Out], outcome: &mut Outcome) {
        for block in blocks {
            let size = self.size(block.records().len() as u64);
            match block {
                Out::New(_) => {
                    outcome.written += size;
                    outcome.blocks.written += 1;
                }
                Out::Old { .. } => {
                    outcome.reused += size;
                    outcome.blocks.reused += 1;
                }
            }
        }
        outcome.room_added = self.room(blocks.iter().map(Out::records));
    }

    fn with_account(
        &self,
        mut rules: Rules,
        tree: &Tree,
        plan: &MergePlan,
        target: Option<&Arc<Run>>,
    ) -> Rules {
        let slack = plan.reuse.and_then(|reuse| reuse.slack_bytes);
        let level = target.and_then(|run| tree.run(run.id())).map(|(level, _)| level);
        if let (Some(slack), Some(LevelId::Disk(level))) = (slack, level) {
            let counters = tree.levels()[level].counters();
            rules.empty = self.slots(counters.room_added) - self.slots(counters.room_taken);
            rules.allowed = self.slots(counters.slack + slack);
        }
        rules
    }
}

/// The output with the blocks beside it.
struct Ends {
    blocks: Vec<Out>,
    before: Option<Part>,
    after: Option<Part>,
    outcome: Outcome,
}

/// The keys of the one block of `part`.
fn range_of(part: &Part) -> KeyRange {
    let block = part.table.block(part.from);
    let (first, last) = (block[0].key, block[block.len() - 1].key);
    KeyRange::inclusive(&block_key(first), &block_key(last))
}

/// Which neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Before,
    After,
}

/// Whether `next` is the block behind `block` in the same table, or both are new.
fn follows(block: &Out, next: &Out) -> bool {
    match (block, next) {
        (Out::Old { block, .. }, Out::Old { block: next, .. }) => block + 1 == *next,
        _ => true,
    }
}

impl Content for BlockContent {
    const MOVES_ARE_MERGES: bool = false;
    const KEEPS_MEMORY: bool = true;

    fn carry_out(&mut self, tree: &Tree, plan: &MergePlan) -> Result<Outcome, SimError> {
        if matches!(plan.place, Place::Append(_) | Place::Nowhere) {
            let what = "block content knows neither append tables nor dropping";
            return Err(SimError::Unsupported { plan: Box::new(plan.clone()), what });
        }
        if plan.mode == Mode::Merge {
            return self.carry_out_merge(tree, plan);
        }
        let inputs = plan.inputs.iter().filter_map(|input| Some((tree.run(input.run)?.1, input)));
        let clips = inputs.flat_map(|(run, input)| run.clip(&input.range));
        let mut slices: Vec<Slice> = clips.collect();
        slices.sort_by(|left, right| left.range().start.cmp(&right.range().start));
        Ok(Outcome { slices, ..Outcome::default() })
    }

    fn rest(&mut self, _: &Tree) {
        self.tables.retain(|_, (table, _)| Arc::strong_count(table) > 1);
    }
}
