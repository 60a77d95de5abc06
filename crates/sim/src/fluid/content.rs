//! Fluid content: tables as intervals of time per part of the key space.

use super::FluidWorkload;
use super::amount::Amount;
use super::draw::SEED;
use super::full_blocks::FullBlocks;
use super::joining::merge;
use super::place::place;
use super::segment::{Segment, entries};
use super::table::{FluidTable, NewTable, ProfilePoints, amount, cut, split_at};
use crate::{Content, SimError};
use lsmith_policy::MergePolicy;
use lsmith_tree::{
    BLOCK_BYTES_USUAL, KeptTables, LevelId, MergePlan, Mode, Outcome, Place, Run, Size, Slice,
    Table, TableId, Tree,
};
use lsmith_workload::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The expected sizes of every table, including memtables. Keys in trees and plans stand for places
/// in a key space in which all keys are spread evenly.
#[derive(Clone, Debug)]
pub struct FluidContent {
    tables: BTreeMap<TableId, FluidTable>,
    pub(super) workload: FluidWorkload,
    /// True if profiles have a point at every block border.
    pub(super) by_block: bool,
    /// True if merges keep tables as they are where no other input has keys.
    keeps_tables: bool,
    pub(super) block_bytes: u64,
    /// The random draws that decide which blocks overlap nothing.
    pub(super) draws: Rng,
}

/// The part of one run that a plan takes.
pub(super) struct PlanInput {
    pub(super) level: LevelId,
    pub(super) slices: Vec<Slice>,
    pub(super) segments: Vec<Segment>,
    pub(super) is_target: bool,
}

impl FluidContent {
    /// Returns content without tables. `by_block` is true if the policy counts in blocks.
    #[must_use]
    pub fn new(workload: FluidWorkload, by_block: bool) -> FluidContent {
        FluidContent::drawn(workload, by_block, SEED)
    }

    /// Returns content without tables, with random draws of another seed.
    pub(super) fn drawn(workload: FluidWorkload, by_block: bool, seed: u64) -> FluidContent {
        FluidContent {
            tables: BTreeMap::new(),
            workload,
            by_block,
            keeps_tables: false,
            block_bytes: BLOCK_BYTES_USUAL,
            draws: Rng::new(seed, 0),
        }
    }

    /// Returns the same content. Merges keep tables as they are where no other input has keys, if
    /// that is known of the workload and `policy` does not mind.
    #[must_use]
    pub(super) fn under(self, policy: &Arc<dyn MergePolicy>) -> FluidContent {
        let keeps_tables = self.workload.keeps_tables() && policy.needs().lets_tables_stay();
        FluidContent { keeps_tables, ..self }
    }

    /// Returns a memtable with the writes of an interval.
    pub(super) fn memtable(&mut self, id: TableId, from: f64, until: f64) -> Slice {
        let segments = self.workload.memory_segments(from, until);
        self.hold_all(id, segments)
    }

    /// Returns a memtable with the writes of an interval, folded together with all of `runs`,
    /// newest first.
    pub(super) fn fold(&mut self, id: TableId, from: f64, until: f64, runs: &[Arc<Run>]) -> Slice {
        let mut sides = vec![self.workload.memory_segments(from, until)];
        sides.extend(runs.iter().map(|run| self.segments(run.slices())));
        let merged = merge(&sides, false, &self.workload);
        // What is left in memory has as many entries as it had, however windows were picked. The
        // new writes add what is expected.
        let mut expected = amount(&merged);
        for (run, side) in runs.iter().zip(&sides[1..]) {
            expected += Amount::of_size(run.size()).minus(amount(side));
        }
        self.add_table(id, merged, expected.rounded()).0
    }

    pub(super) fn segments<'a>(&self, slices: impl IntoIterator<Item = &'a Slice>) -> Vec<Segment> {
        slices.into_iter().flat_map(|slice| self.tables[&slice.table().id].within(slice)).collect()
    }

    fn hold_all(&mut self, id: TableId, segments: Vec<Segment>) -> Slice {
        let size = amount(&segments).rounded();
        self.add_table(id, segments, size).0
    }

    /// Adds a table of `segments` with full blocks. Returns its slice and the number of its blocks.
    pub(super) fn add_table(
        &mut self,
        id: TableId,
        segments: Vec<Segment>,
        size: Size,
    ) -> (Slice, u64) {
        let blocks = FullBlocks::of(size, self.block_bytes);
        let points =
            if self.by_block { ProfilePoints::Blocks(blocks.made()) } else { ProfilePoints::Steps };
        (self.hold_with(id, segments, size, &points), blocks.count())
    }

    pub(super) fn hold_with(
        &mut self,
        id: TableId,
        segments: Vec<Segment>,
        size: Size,
        points: &ProfilePoints,
    ) -> Slice {
        let new = NewTable { id, segments, size, points };
        let held = new.build(&self.workload, &mut self.draws);
        let table = Arc::clone(&held.table);
        self.tables.insert(id, held);
        Slice::whole(table)
    }

    /// Makes the table of `slice`, which must be whole, a root of an append table. The file
    /// holds `dead_bytes` besides.
    pub(super) fn set_root(&mut self, slice: &Slice, root: u64, dead_bytes: u64) -> Slice {
        let table = Arc::new(Table { root, dead_bytes, ..Table::clone(slice.table()) });
        if let Some(held) = self.tables.get_mut(&table.id) {
            held.table = Arc::clone(&table);
        }
        Slice::whole(table)
    }

    /// Returns the inputs of a plan, newest first, and counts them. Leaves out the run whose trees
    /// the plan appends to.
    pub(super) fn sides(
        &self,
        tree: &Tree,
        plan: &MergePlan,
        outcome: &mut Outcome,
    ) -> Vec<PlanInput> {
        let target = plan.appends_to();
        let inputs = plan.inputs.iter().filter(|input| Some(input.run) != target);
        let inputs = inputs.filter_map(|input| {
            let (level, run) = tree.run(input.run)?;
            let slices: Vec<Slice> = run.clip(&input.range).collect();
            let size: Size = slices.iter().map(Slice::size).sum();
            match level {
                LevelId::Memory => outcome.from_memory += size,
                LevelId::Disk(_) => {
                    outcome.read += size;
                    outcome.blocks.read += self.blocks_of(&slices, size);
                }
            }
            let segments = self.segments(&slices);
            let is_target = plan.place == Place::Into(input.run);
            Some(PlanInput { level, slices, segments, is_target })
        });
        inputs.collect()
    }

    fn blocks_of(&self, slices: &[Slice], size: Size) -> u64 {
        if self.by_block {
            slices.iter().map(Slice::cell_count).sum()
        } else {
            FullBlocks::of(size, self.block_bytes).count()
        }
    }

    /// Carries out a merge that rewrites everything.
    fn merge(&mut self, tree: &Tree, plan: &MergePlan) -> Result<Outcome, SimError> {
        let illegal = |rule| SimError::BadPlan { plan: Box::new(plan.clone()), rule };
        let is_bottom = tree.is_bottom_for(plan).map_err(illegal)?;
        let mut outcome = Outcome::default();
        let inputs = self.sides(tree, plan, &mut outcome);
        let kept = match self.keeps_tables {
            true => KeptTables::of(tree, plan, tree.range_deletes(), |_| true),
            false => KeptTables::default(),
        };
        let rest = |side: PlanInput| match kept.is_empty() {
            true => side.segments,
            false => self.segments(side.slices.iter().filter(|slice| !kept.has(slice.table().id))),
        };
        let sides: Vec<Vec<Segment>> = inputs.into_iter().map(rest).collect();
        let merged = merge(&sides, is_bottom, &self.workload);
        let cut_bytes = plan.cut_bytes.unwrap_or(u64::MAX);
        let cut_keys = kept.cut_keys(plan.cut_keys(tree));
        let places: Vec<u64> = cut_keys.iter().map(|key| place(key)).collect();
        let parts = split_at(&merged, &places).into_iter();
        let tables = parts.flat_map(|part| cut(&part, cut_bytes));
        let ids = (tree.next_table().0..).map(TableId);
        let mut sum = Amount::default();
        let mut before = Size::default();
        for (id, segments) in ids.zip(tables) {
            sum += amount(&segments);
            // The size below a border is rounded, so that rounding errors do not add up.
            let size = sum.rounded() - before;
            before = sum.rounded();
            if size.entries == 0 && entries(&segments) < 0.5 {
                continue;
            }
            let (mut slice, blocks) = self.add_table(id, segments, size);
            if plan.makes_append() {
                slice = self.set_root(&slice, 1, 0);
            }
            outcome.blocks.written += blocks;
            outcome.written += size;
            outcome.slices.push(slice);
        }
        if !kept.is_empty() {
            let blocks = self.blocks_of(kept.slices(), kept.size());
            outcome.reused = kept.size();
            outcome.blocks.reused = blocks;
            outcome.blocks.read = outcome.blocks.read.saturating_sub(blocks);
            KeptTables::join(kept.slices(), &mut outcome.slices);
        }
        balance(&mut outcome);
        Ok(outcome)
    }
}

/// Counts as dropped the entries that were read and not written. Rounding must not make the output
/// larger than the input.
pub(super) fn balance(outcome: &mut Outcome) {
    let entries_in = outcome.from_memory.entries + outcome.read.entries;
    let entries_out = outcome.written.entries + outcome.reused.entries;
    outcome.read.entries += entries_out.saturating_sub(entries_in);
    outcome.entries_dropped = entries_in.saturating_sub(entries_out);
}

impl Content for FluidContent {
    const MOVES_ARE_MERGES: bool = false;

    fn carry_out(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        outcome: &mut Outcome,
    ) -> Result<(), SimError> {
        if let Some(target) = plan.appends_to() {
            *outcome = self.append(tree, plan, target)?;
            return Ok(());
        }
        *outcome = match (plan.mode, plan.reuse) {
            (Mode::Merge, None) => self.merge(tree, plan)?,
            (Mode::Merge, Some(reuse)) => self.merge_blocks(tree, plan, reuse)?,
            (Mode::Drop, _) => Outcome::default(),
            (Mode::Move, _) => {
                let inputs = plan.inputs.iter();
                let clip = |input: &lsmith_tree::Input| -> Vec<Slice> {
                    let run = tree.run(input.run);
                    run.map_or(Vec::new(), |(_, run)| run.clip(&input.range).collect())
                };
                let mut slices: Vec<Slice> = inputs.flat_map(clip).collect();
                slices.sort_by(|left, right| left.range().start.cmp(&right.range().start));
                Outcome { slices, ..Outcome::default() }
            }
        };
        Ok(())
    }

    fn adopt(&mut self, table: &Arc<Table>) {
        if let Some(held) = self.tables.get_mut(&table.id) {
            held.table = Arc::clone(table);
        }
    }

    fn rest(&mut self, _: &Tree) {
        // The tree and its clones hold a reference to each of their tables.
        self.tables.retain(|_, held| Arc::strong_count(&held.table) > 1);
    }
}
