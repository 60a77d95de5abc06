//! Plans that keep blocks, carried out on entries.

use super::content::{KeyedContent, count_input, inputs};
use super::entry::KeyedEntry;
use super::merge::{Dropped, Dropping, Pieces, merge};
use super::preserve::{self, MergeSide};
use super::table::{Builder, KeyedTable, Layout, Part};
use crate::SimError;
use lsmith_tree::blocks::{
    BlockRules, InputPair, Neighbours, OutputPart, PreserveRules, Preserved, input_with_gap,
};
use lsmith_tree::{
    Input, Key, KeyRange, LevelId, MergePlan, Outcome, Place, Reuse, Run, SeqNo, Size, Slice,
    TableId, Tree,
};
use std::ops::Range;
use std::sync::Arc;

/// The result of a plan before it is added to the content.
struct Made<E> {
    outcome: Outcome,
    tables: Vec<KeyedTable<E>>,
}

impl<E: KeyedEntry> KeyedContent<E> {
    /// Carries out a merge that keeps blocks, joins neighbours that fit into one, and closes the
    /// gap that a window leaves.
    pub(super) fn merge_blocks(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        reuse: Reuse,
    ) -> Result<Outcome, SimError> {
        let illegal = |rule| SimError::BadPlan { plan: Box::new(plan.clone()), rule };
        let dropping = self.dropping(tree, plan).map_err(illegal)?;
        let layout = Layout { by_block: true, ..self.layout.clone() };
        let mut builder = self.builder_of(layout, 0);
        let Made { outcome, tables } = self.made(tree, plan, (reuse, dropping), &mut builder);
        self.builder = builder;
        for held in tables {
            self.add_table(held);
        }
        Ok(outcome)
    }

    /// Merges the inputs, without what `dropping` drops.
    fn made(
        &self,
        tree: &Tree,
        plan: &MergePlan,
        (reuse, dropping): (Reuse, Dropping),
        builder: &mut Builder<E>,
    ) -> Made<E> {
        let mut outcome = Outcome::default();
        let target = match plan.place {
            Place::Into(target) => tree.run(target).map(|(_, run)| run),
            _ => None,
        };
        let mut sides = Vec::new();
        for (level, run, range) in inputs(tree, plan) {
            let mut pieces = self.parts(run, range);
            let mut size: Size = pieces.iter().map(Part::size).sum();
            // A merge steps through the blocks of storage, but passes over ranges of memory.
            if let Some(hiding) = dropping.hiding().filter(|_| level == LevelId::Memory) {
                pieces = pieces.into_iter().flat_map(|part| part.visited(hiding)).collect();
                let visited: Size = pieces.iter().map(Part::size).sum();
                let bytes = if run.lies_within(range) { size.bytes } else { visited.bytes };
                size = Size { bytes, ..visited };
            }
            let blocks = pieces.iter().map(Part::block_count).sum();
            count_input(level, size, blocks, &mut outcome);
            let is_target = target.is_some_and(|target| target.id() == run.id());
            // If the target is the older input, the merge reads all of its blocks.
            if is_target && (sides.is_empty() || sides.len() + 1 < plan.inputs.len()) {
                outcome.room_taken +=
                    pieces.iter().map(|piece| piece.room(reuse.full_bytes)).sum::<u64>();
            }
            sides.push((pieces, level != LevelId::Memory));
        }
        let beside = target.map(|run| self.neighbours(run, &plan.hull()));
        let rules = PreserveRules {
            rules: BlockRules::of(tree, plan, reuse, self.layout.block_bytes),
            piece_bytes: reuse.piece_bytes,
            bottom: dropping.bottom,
            beside: beside.unwrap_or(Neighbours::NONE),
        };
        builder.reserve((outcome.from_memory.entries + outcome.read.entries) as usize);
        let side = |(pieces, keeps)| MergeSide::new(pieces, keeps);
        let newer_merged;
        let mut below = SeqNo::default();
        let older = if sides.len() > 1 { sides.pop() } else { None };
        let newer = match &mut sides[..] {
            [] => MergeSide::empty(),
            [_] => side(sides.remove(0)),
            newer => {
                let newer = newer.iter().map(|(pieces, _)| Pieces::of(pieces)).collect();
                let folded;
                (newer_merged, folded) = self.folded(newer, &dropping);
                below = folded.below;
                let newer = newer_merged.iter().map(|held| held.part(&KeyRange::ALL));
                side((newer.collect(), false))
            }
        };
        let deletes_applied = dropping.deletes_applied(plan);
        let pair = InputPair { newer, older: older.map_or(MergeSide::empty(), side) };
        let (output, dropped) = preserve::merge(pair, plan, rules, dropping, builder);
        outcome.dropped_below = dropped.below.max(below);
        let has_copies = output.sink.has_copies();
        let mut made = self.outcome_of(tree, plan, output, outcome);
        if !has_copies && made.outcome.rewritten.is_empty() {
            made.outcome.deletes_applied = deletes_applied;
        }
        made
    }

    /// Merges several newer inputs into one.
    fn folded(
        &self,
        sides: Vec<Pieces<'_, E>>,
        dropping: &Dropping,
    ) -> (Option<KeyedTable<E>>, Dropped) {
        let mut builder = Builder::new(self.layout.clone());
        let dropped = merge(sides, dropping.of_first(), |entry| builder.put(entry));
        builder.cut_all();
        ((builder.len() > 0).then(|| builder.finish(TableId::default())), dropped)
    }

    /// Returns the blocks of `run` on both sides of `range`.
    fn neighbours(&self, run: &Run, range: &KeyRange) -> Neighbours<Part<'_, E>> {
        let part = |slice: &Slice, beyond: &KeyRange| {
            let part = self.tables.of(slice).part(&slice.range().intersection(beyond));
            (!part.is_empty()).then_some(part)
        };
        let below = |start: &Key| {
            let below = KeyRange { start: Key::new(), end: Some(start.clone()) };
            part(run.overlapping(&below).last()?, &below).map(Part::last_block)
        };
        let from = |end: &Key| {
            let above = KeyRange { start: end.clone(), end: None };
            part(run.overlapping(&above).first()?, &above).map(Part::first_block)
        };
        Neighbours::of(range, below, from)
    }

    /// Returns the outcome of a merge, and adds its table to the result.
    fn outcome_of(
        &self,
        tree: &Tree,
        plan: &MergePlan,
        output: Preserved<Part<'_, E>, &mut Builder<E>>,
        mut outcome: Outcome,
    ) -> Made<E> {
        output.add_to(&mut outcome, plan);
        let Preserved { sink: new, parts, kept, kept_blocks, joined, .. } = output;
        for part in joined.before.into_iter().chain(joined.after) {
            outcome.read += part.size();
            outcome.blocks.read += 1;
        }
        outcome.blocks.read -= kept_blocks;
        let mut tables = Vec::new();
        let entries_in = outcome.from_memory.entries + outcome.read.entries;
        outcome.blocks.written = new.blocks();
        outcome.entries_dropped = entries_in - new.len() as u64 - kept.entries;
        let mut next = tree.next_table();
        let new = (new.len() > 0).then(|| new.finish(next));
        outcome.written = new.as_ref().map_or(Size::default(), |held| held.table.size);
        outcome.slices.reserve(parts.len());
        outcome.slices.extend(parts.iter().filter_map(|s| slice_of(s, new.as_ref())));
        if let Some(new) = new {
            tables.push(new);
            next.0 += 1;
        }
        tables.extend(self.close_gap(tree, plan, &mut outcome, next));
        Made { outcome, tables }
    }

    /// Joins the blocks on both sides of the gap that a window leaves, if they fit into one.
    /// Returns the table of the joined block.
    fn close_gap(
        &self,
        tree: &Tree,
        plan: &MergePlan,
        outcome: &mut Outcome,
        id: TableId,
    ) -> Option<KeyedTable<E>> {
        let input = input_with_gap(plan)?;
        let (level, run) = tree.run(input.run)?;
        if level == LevelId::Memory {
            return None;
        }
        let beside = self.neighbours(run, &input.range);
        let (left, right, range) = beside.fitting(self.layout.block_bytes)?;
        let entries = [left.entries(), right.entries()].concat();
        let layout = Layout { by_block: true, ..self.layout.clone() };
        let mut builder = Builder::new(layout);
        entries.into_iter().for_each(|entry| builder.push(entry));
        let held = builder.finish(id);
        outcome.read += held.table.size;
        outcome.written += held.table.size;
        outcome.blocks.read += 2;
        outcome.blocks.written += 1;
        let slices = vec![Slice::whole(Arc::clone(&held.table))];
        outcome.rewritten.push((Input { run: input.run, range }, slices));
        Some(held)
    }
}

/// Returns the slice for a part of the output. Written parts are blocks of the table `new`.
fn slice_of<E: KeyedEntry>(
    part: &OutputPart<Part<'_, E>, Range<usize>>,
    new: Option<&KeyedTable<E>>,
) -> Option<Slice> {
    match part {
        OutputPart::Written(blocks) => {
            Some(Slice::of_cells(Arc::clone(&new?.table), blocks.clone()))
        }
        OutputPart::Kept(piece) => piece.slice(),
    }
}
