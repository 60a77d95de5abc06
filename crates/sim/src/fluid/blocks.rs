//! Merges that keep blocks which overlap nothing. Random draws decide which blocks these are. The
//! rules of the store decide which of them may be kept.

use super::content::{FluidContent, PlanInput, balance};
use super::draw;
use super::joining::merge;
use super::meeting::{Meeting, Prospect, meetings};
use super::merger::{Block, Made, Merger, Visit};
use super::place::{PLACES, behind, place, width};
use super::segment::Segment;
use super::table::{ProfilePoints, amount};
use super::workload::FluidWorkload;
use crate::SimError;
use lsmith_tree::blocks::{BlockRules, room};
use lsmith_tree::{Cell, LevelId, MergePlan, Outcome, Reuse, Size, Slice, Tree};
use lsmith_workload::Rng;

impl FluidContent {
    pub(super) fn merge_blocks(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        reuse: Reuse,
    ) -> Result<Outcome, SimError> {
        let illegal = |rule| SimError::BadPlan { plan: Box::new(plan.clone()), rule };
        let is_bottom = tree.is_bottom_for(plan).map_err(illegal)?;
        let mut outcome = Outcome::default();
        let sides = self.sides(tree, plan, &mut outcome);
        let blocks = self.input_blocks(&sides, is_bottom);
        let targets = blocks.iter().filter(|block| block.is_target);
        outcome.room_taken = targets.map(|block| room(reuse.full_bytes, block.size.bytes)).sum();
        let segments: Vec<Vec<Segment>> = sides.into_iter().map(|side| side.segments).collect();
        let merged = merge(&segments, is_bottom, &self.workload);
        let output = amount(&merged);
        let entry_bytes = (output.bytes / output.entries.max(f64::MIN_POSITIVE)).max(1.0);
        let rules = BlockRules::of(tree, plan, reuse, self.block_bytes);
        let made = Merger::new(rules, reuse, entry_bytes).run(&blocks);
        self.count_blocks(tree, made, merged, reuse, &mut outcome);
        balance(&mut outcome);
        Ok(outcome)
    }

    /// Returns all blocks of the inputs in key order, each with its overlap.
    fn input_blocks(&mut self, sides: &[PlanInput], is_bottom: bool) -> Vec<Block> {
        let (newer, older) = match sides {
            [newer @ .., older] if !newer.is_empty() => (newer, std::slice::from_ref(older)),
            all => (all, &[][..]),
        };
        let joined = |sides: &[PlanInput], workload: &FluidWorkload| {
            let segments: Vec<_> = sides.iter().map(|side| side.segments.clone()).collect();
            merge(&segments, false, workload)
        };
        let up = joined(newer, &self.workload);
        let down = joined(older, &self.workload);
        let meetings = meetings(&up, &down, is_bottom, &self.workload);
        let mut blocks = Vec::new();
        for (sides, is_newer) in [(newer, true), (older, false)] {
            for side in sides {
                self.add_blocks(side, is_newer, is_bottom, &meetings, &mut blocks);
            }
        }
        blocks.sort_by_key(|(block, _)| block.start);
        self.visit(&mut blocks);
        blocks.into_iter().map(|(block, _)| block).collect()
    }

    /// Adds the blocks of one input, each with its expected overlap. A guest that overlaps nothing
    /// gets its visit here.
    fn add_blocks(
        &mut self,
        side: &PlanInput,
        is_newer: bool,
        is_bottom: bool,
        mut meetings: &[Meeting],
        blocks: &mut Vec<(Block, Overlap)>,
    ) {
        for (cell, last) in cells(&side.slices) {
            let start = place(&cell.start);
            let end = cell.end.as_ref().map_or(PLACES, |end| place(end));
            while meetings.first().is_some_and(|meeting| meeting.end <= start) {
                meetings = &meetings[1..];
            }
            let prospect = Prospect::of(start, end, is_newer, meetings);
            let entries = cell.size.entries;
            let before_last = match last {
                Some(last) => width(start, last) / width(start, end),
                None => draw::part_before_last(&mut self.draws, entries),
            };
            let drops = is_bottom && cell.size.tombstones > 0;
            let can_stay = side.level != LevelId::Memory && !drops;
            let end_filled = behind(start, width(start, end) * before_last, end);
            let is_target = side.is_target;
            let visit = (can_stay && prospect.hosts == 0.0 && {
                let between = if entries < 2 { 0.0 } else { prospect.hosts_around * before_last };
                let misses = (1.0 - prospect.guest_hit).powf(entries as f64);
                self.draws.unit() < misses * (-between).exp()
            })
            .then_some(Visit {
                own: entries,
                inside: 0,
                behind: 0,
                is_alone: true,
                goes_on: 1.0,
            });
            let block =
                Block { start, end: end_filled, is_newer, is_target, size: cell.size, visit };
            blocks.push((block, Overlap { prospect, before_last, can_stay }));
        }
    }

    /// Draws the overlap of all hosts. The hosts of a side share the guests that overlap
    /// something, so that no entry is lost or made.
    fn visit(&mut self, blocks: &mut [(Block, Overlap)]) {
        let mut left = [Guests::default(); 2];
        for (block, Overlap { prospect, .. }) in &*blocks {
            let of_hosts = &mut left[usize::from(block.is_newer)];
            of_hosts.expected += prospect.guests;
            of_hosts.new_weight += prospect.new;
            let of_others = &mut left[usize::from(!block.is_newer)];
            let guests = block.size.entries as f64 * (1.0 - prospect.hosts);
            of_others.entries += guests;
            of_others.alone += if block.visit.is_some() { guests } else { 0.0 };
        }
        left.iter_mut().for_each(Guests::count_new);
        let mut guest_start = u64::MAX;
        for index in (0..blocks.len()).rev() {
            let (block, Overlap { prospect, before_last, can_stay }) = &mut blocks[index];
            if prospect.hosts == 0.0 {
                if block.visit.is_some() {
                    guest_start = block.start;
                }
                continue;
            }
            let new = left[usize::from(block.is_newer)].take(prospect.new, &mut self.draws);
            let visit = draw_visit(block, *prospect, (new, *before_last), &mut self.draws);
            let is_split = (block.start..block.end).contains(&guest_start);
            let is_alone = visit.is_alone && *can_stay && !is_split;
            block.visit = Some(Visit { is_alone, ..visit });
        }
    }

    /// Counts all blocks of the output. Kept blocks count as reused; all blocks together become one
    /// table.
    fn count_blocks(
        &mut self,
        tree: &Tree,
        made: Vec<Made>,
        merged: Vec<Segment>,
        reuse: Reuse,
        outcome: &mut Outcome,
    ) {
        for block in &made {
            let size = Size { bytes: block.bytes, entries: block.entries, tombstones: 0 };
            outcome.room_added += room(reuse.full_bytes, block.bytes);
            if block.kept_at.is_some() {
                outcome.reused += size;
                outcome.blocks.reused += 1;
                outcome.blocks.read = outcome.blocks.read.saturating_sub(1);
            } else {
                outcome.written += size;
                outcome.blocks.written += 1;
            }
        }
        let mut size = outcome.written + outcome.reused;
        if size.entries == 0 {
            return;
        }
        size.tombstones = amount(&merged).rounded().tombstones;
        let points = ProfilePoints::Blocks(made);
        outcome.slices = vec![self.hold_with(tree.next_table(), merged, size, &points)];
    }
}

/// Returns the blocks of slices, each with the place directly behind its last key, if known.
fn cells(slices: &[Slice]) -> impl Iterator<Item = (Cell, Option<u64>)> {
    slices.iter().flat_map(|slice| {
        let profile = &slice.table().profile;
        let first = profile.partition_point(|point| *point.key <= *slice.range().start);
        let points = profile[first..].iter().map(Some).chain(std::iter::repeat(None));
        slice.cells().zip(points).map(|(cell, point)| {
            let key_after = point.and_then(|point| point.after.as_ref());
            let inside = |last: &u64| cell.end.as_ref().is_none_or(|end| *last <= place(end));
            let after = key_after.map(|key| place(key)).filter(inside);
            (cell, after)
        })
    })
}

/// The expected overlap of a block.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    prospect: Prospect,
    /// The part of the block's range that lies before its last key.
    before_last: f64,
    /// True if the rules allow to keep the block if it overlaps nothing.
    can_stay: bool,
}

/// The guests of all hosts of one side.
#[derive(Clone, Copy, Debug, Default)]
struct Guests {
    /// The entries of the guests, and their expected count where there are hosts.
    entries: f64,
    expected: f64,
    /// The entries of guests that overlap nothing.
    alone: f64,
    /// The expected new entries of the hosts that have not drawn theirs.
    new_weight: f64,
    /// The new entries for these hosts.
    new: u64,
}

impl Guests {
    /// Computes the new entries: the expected part of the entries that there are, without entries
    /// that overlap nothing.
    fn count_new(&mut self) {
        let share = if self.expected > 0.0 { self.new_weight / self.expected } else { 0.0 };
        self.new = (share * self.entries - self.alone).round().max(0.0) as u64;
    }

    /// Draws the new entries of a host with the given expectation.
    fn take(&mut self, weight: f64, draws: &mut Rng) -> u64 {
        let before = self.new_weight;
        self.new_weight -= weight;
        let is_last = self.new_weight <= 1e-9 * before;
        let new =
            if is_last { self.new } else { draw::count(draws, self.new as f64 * weight / before) };
        let new = new.min(self.new);
        self.new -= new;
        new
    }
}

/// Draws the entries of the other side that are merged with a block. The keys of `new` of them are
/// not on the block's side.
fn draw_visit(
    block: &Block,
    prospect: Prospect,
    (new, before_last): (u64, f64),
    draws: &mut Rng,
) -> Visit {
    let Prospect { hosts, hit, goes_on, .. } = prospect;
    let entries = block.size.entries;
    let inside = draw::part_of(draws, new, before_last);
    let behind = new - inside;
    let is_hit = hit > 0.0 && draws.unit() >= (1.0 - hit).powf(entries as f64);
    if hosts < 1.0 {
        // The other entries are guests, so the block overlaps the host.
        let own = (entries as f64 * hosts + draws.unit()) as u64;
        return Visit { own, inside, behind, is_alone: false, goes_on };
    }
    Visit { own: entries, inside, behind, is_alone: inside == 0 && !is_hit, goes_on }
}
