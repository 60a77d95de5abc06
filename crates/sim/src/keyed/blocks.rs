//! Plans that keep blocks, carried out on entries.

use super::content::{KeyedContent, count_input, inputs};
use super::entry::Record;
use super::merge::{Dropped, Pieces, merge};
use super::preserve::{self, MergeSide, Orders, Output, OutputPart};
use super::table::{Builder, KeyedTable, Layout, Part};
use crate::SimError;
use lsmith_tree::blocks::{BlockRules, fits};
use lsmith_tree::{
    Input, Key, KeyRange, LevelId, MergePlan, Outcome, Place, Reuse, Run, Size, Slice, TableId,
    Tree,
};
use std::sync::Arc;

/// The neighbour before or after a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Before,
    After,
}

/// The result of a plan before it is added to the content.
struct Made<R> {
    outcome: Outcome,
    tables: Vec<KeyedTable<R>>,
}

impl<R: Record> KeyedContent<R> {
    /// Carries out a merge that keeps blocks, joins neighbours that fit into one, and closes the
    /// gap that a window leaves.
    pub(super) fn merge_blocks(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        reuse: Reuse,
    ) -> Result<Outcome, SimError> {
        let illegal = |rule| SimError::BadPlan { plan: Box::new(plan.clone()), rule };
        let bottom = tree.is_bottom_for(plan).map_err(illegal)?;
        let layout = Layout { by_block: true, ..self.layout };
        let mut builder = self.builder_of(layout, 0);
        let Made { outcome, tables } = self.made(tree, plan, (reuse, bottom), &mut builder);
        self.builder = builder;
        for held in tables {
            self.add_table(held);
        }
        Ok(outcome)
    }

    /// Merges the inputs. If `bottom` is true, tombstones are dropped.
    fn made(
        &self,
        tree: &Tree,
        plan: &MergePlan,
        (reuse, bottom): (Reuse, bool),
        builder: &mut Builder<R>,
    ) -> Made<R> {
        let mut outcome = Outcome::default();
        let hull = plan.hull();
        let target = match plan.place {
            Place::Into(target) => tree.run(target).map(|(_, run)| run),
            _ => None,
        };
        let mut sides = Vec::new();
        for (level, run, range) in inputs(tree, plan) {
            let pieces = self.parts(run, range);
            let size = pieces.iter().map(Part::size).sum();
            let blocks = pieces.iter().map(Part::block_count).sum();
            count_input(level, size, blocks, &mut outcome);
            let is_target = target.is_some_and(|target| target.id() == run.id());
            // If the target is the older input, the merge reads all of its blocks.
            if is_target && (sides.is_empty() || sides.len() + 1 < plan.inputs.len()) {
                outcome.room_taken +=
                    pieces.iter().map(|piece| piece.room(reuse.full_bytes)).sum::<u64>();
            }
            sides.push((pieces, level != LevelId::Memory, is_target));
        }
        let beside = |side| target.and_then(|run| self.neighbour(run, &hull, side));
        let (before, after) = (beside(Beside::Before), beside(Beside::After));
        let entries_in = outcome.from_memory.entries + outcome.read.entries;
        let orders = Orders {
            rules: BlockRules {
                before: before.map(|part| part.size().bytes),
                ..BlockRules::of(tree, plan, reuse, self.layout.block_bytes)
            },
            piece_bytes: reuse.piece_bytes,
            bottom,
            before,
            after,
        };
        builder.reserve(entries_in as usize);
        let side = |(pieces, keeps, is_target)| MergeSide::new(pieces, keeps, is_target);
        let newer_merged;
        let output = match &sides[..] {
            [] => preserve::merge(MergeSide::empty(), MergeSide::empty(), orders, builder),
            // A single input counts as the newer one, so that its blocks are not blocks of a
            // target.
            [_] => preserve::merge(side(sides.remove(0)), MergeSide::empty(), orders, builder),
            [_, _] => {
                let older = side(sides.remove(1));
                preserve::merge(side(sides.remove(0)), older, orders, builder)
            }
            [newer @ .., _] => {
                let newer = newer.iter().map(|(pieces, _, _)| Pieces::of(pieces)).collect();
                let folded;
                (newer_merged, folded) = self.folded(newer);
                let newer = newer_merged.iter().map(|held| held.part(&KeyRange::ALL));
                let newer = side((newer.collect(), false, false));
                let older = side(sides.remove(sides.len() - 1));
                let mut output = preserve::merge(newer, older, orders, builder);
                output.dropped.below = output.dropped.below.max(folded.below);
                output
            }
        };
        self.outcome_of(tree, plan, (output, builder), outcome, (before, after))
    }

    /// Merges several newer inputs into one.
    fn folded(&self, sides: Vec<Pieces<'_, R>>) -> (Option<KeyedTable<R>>, Dropped) {
        let mut builder = Builder::new(self.layout);
        let dropped = merge(sides, false, |entry| builder.put(entry));
        builder.cut_all();
        ((builder.len() > 0).then(|| builder.finish(TableId::default())), dropped)
    }

    /// Returns the block of `run` next to `range`, before or after it.
    fn neighbour(&self, run: &Run, range: &KeyRange, side: Beside) -> Option<Part<'_, R>> {
        let beyond = match side {
            Beside::Before => KeyRange { start: Key::new(), end: Some(range.start.clone()) },
            Beside::After => KeyRange { start: range.end.clone()?, end: None },
        };
        let slices = run.overlapping(&beyond);
        let slice = match side {
            Beside::Before => slices.last(),
            Beside::After => slices.first(),
        }?;
        let visible = slice.range().intersection(&beyond);
        let part = self.tables.of(slice).part(&visible);
        if part.is_empty() {
            return None;
        }
        match side {
            Beside::Before => Some(part.last_block()),
            Beside::After => part.blocks().next(),
        }
    }

    /// Returns the outcome of a merge, and adds its table to the result.
    fn outcome_of(
        &self,
        tree: &Tree,
        plan: &MergePlan,
        (output, new): (Output<'_, R>, &mut Builder<R>),
        mut outcome: Outcome,
        beside: (Option<Part<'_, R>>, Option<Part<'_, R>>),
    ) -> Made<R> {
        if let Place::Into(run) = plan.place {
            let hull = plan.hull();
            // Includes the gap between the block and the window, which a slice may cover.
            let before = beside
                .0
                .filter(|_| output.took_before)
                .map(|part| (part, KeyRange { end: Some(hull.start.clone()), ..part.range() }));
            let joined = beside.1.filter(|_| output.took_after);
            let after = joined
                .zip(hull.end)
                .map(|(part, start)| (part, KeyRange { start, ..part.range() }));
            for (part, range) in before.into_iter().chain(after) {
                outcome.read += part.size();
                outcome.blocks.read += 1;
                outcome.rewritten.push((Input { run, range }, Vec::new()));
            }
        }
        let mut tables = Vec::new();
        let Output { parts, kept, kept_blocks, room, room_taken, dropped, .. } = output;
        outcome.room_taken += room_taken;
        (outcome.reused, outcome.blocks.reused) = (kept, kept_blocks);
        outcome.blocks.read -= kept_blocks;
        (outcome.room_added, outcome.dropped_below) = (room, dropped.below);
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
    ) -> Option<KeyedTable<R>> {
        let input = plan.inputs.first()?;
        let (level, run) = tree.run(input.run)?;
        let stays = [Place::Oldest, Place::Into(input.run)].contains(&plan.place);
        if level == LevelId::Memory || stays {
            return None;
        }
        let left = self.neighbour(run, &input.range, Beside::Before)?;
        let right = self.neighbour(run, &input.range, Beside::After)?;
        if !fits(self.layout.block_bytes, left.size().bytes, right.size().bytes) {
            return None;
        }
        let entries = [left.entries(), right.entries()].concat();
        let layout = Layout { by_block: true, ..self.layout };
        let mut builder = Builder::new(layout);
        entries.into_iter().for_each(|entry| builder.push(entry));
        let held = builder.finish(id);
        outcome.read += held.table.size;
        outcome.written += held.table.size;
        outcome.blocks.read += 2;
        outcome.blocks.written += 1;
        let slices = vec![Slice::whole(Arc::clone(&held.table))];
        let range = left.range().hull(&right.range());
        outcome.rewritten.push((Input { run: input.run, range }, slices));
        Some(held)
    }
}

/// Returns the slice for a part of the output.
fn slice_of<R: Record>(stretch: &OutputPart<'_, R>, new: Option<&KeyedTable<R>>) -> Option<Slice> {
    match stretch {
        OutputPart::New(from, end) => Some(Slice::of_cells(Arc::clone(&new?.table), *from..*end)),
        OutputPart::Old(piece) => piece.slice(),
    }
}
