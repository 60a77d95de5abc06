//! Keyed content: the entries of every table.

use super::entry::{Entry, Expired, KeyedEntry};
use super::hiding::Hiding;
use super::merge::{Dropping, More, Pieces, merge};
use super::ranges::{Ranges, WriteSpan};
use super::rank::rank_from;
use super::table::{Builder, KeyedTable, Layout, Part};
use super::tables::Tables;
use crate::cache::BlockCaches;
use crate::{Content, SimError};
use lsmith_tree::{
    BLOCK_BYTES_USUAL, CutWalk, DoneReaders, EditError, KeptTables, KeyRange, LevelId, MergePlan,
    Mode, Outcome, PlanError, Run, SeqNo, Size, Slice, Table, TableId, Tree, TreeEdit, TreeView,
};
use lsmith_workload::Lives;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The sorted entries of every table, including memtables.
///
/// Merges follow the rules of the store. Versions of a key are folded into their net effect.
/// Tombstones are dropped if nothing lies below the merge. Tables and blocks are cut by the same
/// rules, and block-preserving merges keep and join the same blocks. There are no snapshots.
///
/// Keys in trees and plans are [ranks](super::rank_key).
#[derive(Clone, Debug)]
pub struct KeyedContent<E = Entry> {
    pub(super) tables: Tables<E>,
    pub(super) layout: Layout,
    /// A reused buffer to build tables in.
    pub(super) builder: Builder<E>,
    /// The same for folded memory, which has about the same size every time.
    memory: Builder<E>,
    /// The number of tables at which unused tables are removed.
    sweep_at: usize,
    /// The ranks of each keyspace of a group. Outputs are cut between keyspaces.
    keyspace_ranks: Option<u64>,
    /// True if merges keep tables as they are where no other input has keys.
    keeps_tables: bool,
    /// Caches of blocks. They change no table.
    pub(super) caches: BlockCaches,
    /// The sequence number of the last write. It is the time.
    now: SeqNo,
    /// The sequence number of the last write that looked at the time, or of the last that a merge
    /// saw.
    seen: SeqNo,
    /// The range deletes; `None` if there are none in this simulation.
    pub(super) ranges: Option<Ranges>,
}

impl<E: KeyedEntry> Default for KeyedContent<E> {
    fn default() -> KeyedContent<E> {
        KeyedContent::new(BLOCK_BYTES_USUAL, false)
    }
}

impl<E: KeyedEntry> KeyedContent<E> {
    /// Returns content without tables. If `by_block` is true, profiles have a point at every block
    /// border.
    pub(crate) fn new(block_bytes: u64, by_block: bool) -> KeyedContent<E> {
        let layout = Layout { block_bytes, by_block, lives: Lives::Stay };
        KeyedContent {
            tables: Tables::default(),
            builder: Builder::new(layout.clone()),
            memory: Builder::new(layout.clone()),
            layout,
            sweep_at: 0,
            keyspace_ranks: None,
            keeps_tables: false,
            caches: BlockCaches::default(),
            now: SeqNo::default(),
            seen: SeqNo::default(),
            ranges: None,
        }
    }

    /// Cuts outputs between the keyspaces of a group, each with `ranks` ranks.
    pub(crate) fn set_keyspaces(&mut self, ranks: u64) {
        self.keyspace_ranks = Some(ranks);
    }

    /// Sets whether merges keep tables as they are where no other input has keys.
    pub(crate) fn set_keeps_tables(&mut self, keeps: bool) {
        self.keeps_tables = keeps;
    }

    /// Makes entries expire that have a time.
    pub(crate) fn set_lives(&mut self, lives: &Lives) {
        self.layout.lives = lives.clone();
    }

    /// Notes that `now` is the sequence number of the last write.
    #[inline]
    pub(crate) fn set_time(&mut self, now: SeqNo) {
        self.now = now;
    }

    /// Notes that the last write looked at the time. A write does so only if it must know it.
    pub(crate) fn look_at_time(&mut self) {
        self.seen = self.now;
    }

    /// Returns what the merge of `plan` drops and forgets.
    pub(super) fn dropping(&self, tree: &Tree, plan: &MergePlan) -> Result<Dropping, PlanError> {
        let ranges = self.ranges.as_ref();
        let more = More {
            expired: self.expired(),
            forgets: ranges.is_some_and(|ranges| ranges.forgets),
            hiding: ranges.and_then(|ranges| ranges.applied_by(tree, plan)),
        };
        Ok(Dropping { bottom: tree.is_bottom_for(plan)?, more: self.boxed(more), ..<_>::default() })
    }

    fn boxed(&self, more: More) -> Option<Box<More>> {
        (self.ranges.is_some() || self.layout.lives.expire()).then(|| Box::new(more))
    }

    /// Returns the entries that have expired.
    pub(super) fn expired(&self) -> Expired {
        Expired::new(&self.layout.lives, self.now)
    }

    /// Sets whether profiles of new tables have a point at every block border.
    pub(crate) fn set_by_block(&mut self, by_block: bool) {
        self.layout.by_block = by_block;
    }

    /// Returns a new table of `count` entries, at least one, in key order.
    pub(crate) fn add(
        &mut self,
        id: TableId,
        count: usize,
        entries: impl Iterator<Item = E>,
    ) -> Slice {
        let mut builder = self.builder(count);
        entries.for_each(|entry| builder.push(entry));
        let held = builder.finish(id);
        self.builder = builder;
        self.add_table(held)
    }

    /// Returns the memtable `slice`, whose writes are `writes`, if that matters. Writes count
    /// whether or not they left entries.
    pub(super) fn dated(&mut self, slice: Slice, writes: Option<WriteSpan>) -> Slice {
        let Some(WriteSpan { oldest, newest }) = writes else { return slice };
        let table = Table { seq_min: oldest, seq_max: newest, ..Table::clone(slice.table()) };
        let table = Arc::new(table);
        self.tables.adopt(&table);
        Slice::whole(table)
    }

    /// Returns a builder for a table of at most `entries_max` entries. The caller must put it back.
    pub(super) fn builder(&mut self, entries_max: usize) -> Builder<E> {
        self.builder_of(self.layout.clone(), entries_max)
    }

    /// Returns a builder with another layout.
    pub(super) fn builder_of(&mut self, layout: Layout, entries_max: usize) -> Builder<E> {
        let room = std::mem::replace(&mut self.builder, Builder::new(layout.clone()));
        room.start(layout, entries_max)
    }

    /// Returns a new table of the net effect of `newest`, in key order, over all of `runs`, newest
    /// first; `None` if nothing is left.
    pub(crate) fn fold(&mut self, id: TableId, newest: &[E], runs: &[Arc<Run>]) -> Option<Slice> {
        let older_entries: u64 = runs.iter().map(|run| run.size().entries).sum();
        let room = std::mem::replace(&mut self.memory, Builder::new(self.layout.clone()));
        let mut builder = room.start(self.layout.clone(), newest.len() + older_entries as usize);
        let older = runs.iter().map(|run| self.pieces(run, &KeyRange::ALL));
        let sides: Vec<_> = std::iter::once(Pieces::new(vec![newest])).chain(older).collect();
        merge(sides, Dropping::nothing(), |entry| builder.put(entry));
        builder.cut_all();
        let held = (builder.len() > 0).then(|| builder.finish(id));
        self.memory = builder;
        held.map(|held| self.add_table(held))
    }

    pub(super) fn add_table(&mut self, held: KeyedTable<E>) -> Slice {
        let table = Arc::clone(&held.table);
        self.tables.insert(held);
        Slice::whole(table)
    }

    /// Returns the visible entries of `run` within `range`.
    pub(super) fn parts(&self, run: &Run, range: &KeyRange) -> Vec<Part<'_, E>> {
        let slices = run.overlapping(range);
        let mut found = Vec::with_capacity(slices.len());
        for (at, slice) in slices.iter().enumerate() {
            // Only the first and last slices can reach beyond the range.
            let is_edge = at == 0 || at + 1 == slices.len();
            if !is_edge || range.covers(slice.range()) {
                found.push(self.tables.of(slice).shown(slice));
            } else if let Some(clip) = slice.clip(range) {
                found.push(self.tables.of(slice).shown(&clip));
            }
        }
        found
    }

    /// Returns the tables that the merge of `plan` keeps.
    fn kept(&self, tree: &Tree, plan: &MergePlan, dropping: &Dropping) -> KeptTables {
        // A merge may remove entries that have expired. Nobody knows whether a table has some.
        if !self.keeps_tables || self.layout.lives.expire() {
            return KeptTables::default();
        }
        let range_deletes = dropping.hiding().map(Hiding::range_deletes);
        let range_deletes = range_deletes.unwrap_or(tree.range_deletes());
        // A merge takes sequence numbers away, which the store counts only among range deletes.
        let has_no_seqs = |table: &Table| self.ranges.is_none() || table.seq_max == SeqNo(0);
        KeptTables::of(tree, plan, range_deletes, has_no_seqs)
    }

    /// Counts `kept` as reused.
    fn count_kept(&self, kept: &KeptTables, outcome: &mut Outcome) {
        for slice in kept.slices() {
            outcome.blocks.reused += self.tables.of(slice).shown(slice).block_count();
        }
        outcome.read += kept.size();
        outcome.reused += kept.size();
        KeptTables::join(kept.slices(), &mut outcome.slices);
    }

    /// Returns the entries of an input of a plan. Skips tables whose entries are all hidden by
    /// range deletes, and tables that are `kept`. Counts it as read.
    pub(super) fn take_input(
        &self,
        (level, run, range): (LevelId, &Arc<Run>, &KeyRange),
        kept: &KeptTables,
        dropping: &Dropping,
        outcome: &mut Outcome,
    ) -> Pieces<'_, E> {
        let mut parts = self.parts(run, range);
        if !kept.is_empty() {
            parts.retain(|part| !kept.has(part.table_id()));
        }
        let all: Size = parts.iter().map(Part::size).sum();
        if let Some(hiding) = dropping.hiding() {
            parts = parts.into_iter().flat_map(|part| part.visited(hiding)).collect();
        }
        let visited: Size = parts.iter().map(Part::size).sum();
        // The bytes of a whole memtable count, also the ones that the merge passes over.
        let is_whole = level == LevelId::Memory && run.lies_within(range);
        let bytes = if is_whole { all.bytes } else { visited.bytes };
        // Two parts may lie in one block.
        let shared = parts.windows(2).filter(|pair| pair[0].shares_block_with(&pair[1])).count();
        let blocks: u64 = parts.iter().map(Part::block_count).sum();
        count_input(level, Size { bytes, ..visited }, blocks - shared as u64, outcome);
        Pieces::of(&parts)
    }

    pub(super) fn pieces(&self, run: &Run, range: &KeyRange) -> Pieces<'_, E> {
        Pieces::of(&self.parts(run, range))
    }

    /// Returns the entries of `run`, in key order.
    pub(crate) fn entries(&self, run: &Run) -> impl Iterator<Item = E> {
        let parts = self.parts(run, &KeyRange::ALL).into_iter();
        parts.flat_map(|part| part.entries()).copied()
    }

    /// Returns the rank of every live key of `tree`, with the logical bytes of its newest version,
    /// as a full scan would.
    pub fn live(&self, tree: &Tree) -> Vec<(u64, u64)> {
        let sides = tree.runs().map(|(_, run)| self.pieces(run, &KeyRange::ALL)).collect();
        let mut live = Vec::new();
        let hiding = self.ranges.as_ref().and_then(|ranges| ranges.seen_by_readers(tree));
        let more = self.boxed(More { expired: self.expired(), forgets: false, hiding });
        merge(sides, Dropping { bottom: true, more, ..Dropping::default() }, |entry: E| {
            live.push((u64::from(entry.rank()), entry.bytes()))
        });
        live
    }

    /// Returns the logical bytes of obsolete entries in each level, newest level first: tombstones,
    /// expired entries, and entries that a newer run or a range delete hides. A full scan returns
    /// none of them.
    pub(crate) fn obsolete_bytes(&self, tree: &Tree) -> Vec<(LevelId, u64)> {
        let mut levels: Vec<(LevelId, u64)> = Vec::new();
        let expired = self.expired();
        // One bit per rank: set if a newer run has the key.
        let mut seen: Vec<u64> = Vec::new();
        let mut hiding = self.ranges.as_ref().and_then(|ranges| ranges.seen_by_readers(tree));
        for (level, run) in tree.runs() {
            let mut obsolete = 0;
            for entry in self.entries(run) {
                let word = entry.rank() as usize / 64;
                let bit = 1 << (entry.rank() % 64);
                if seen.len() <= word {
                    seen.resize(word + 1, 0);
                }
                let hidden = seen[word] & bit != 0;
                seen[word] |= bit;
                let is_hidden = hiding.as_mut().is_some_and(|hiding| hiding.hides(entry));
                let is_dead = hidden || is_hidden || entry.expired(&expired).is_tombstone();
                obsolete += if is_dead { entry.bytes() } else { 0 };
            }
            match levels.last_mut() {
                Some((last, bytes)) if *last == level => *bytes += obsolete,
                _ => levels.push((level, obsolete)),
            }
        }
        levels
    }

    /// Carries out a merge that rewrites everything.
    fn merge(&mut self, tree: &Tree, plan: &MergePlan) -> Result<Outcome, SimError> {
        let illegal = |rule| SimError::BadPlan { plan: Box::new(plan.clone()), rule };
        let dropping = self.dropping(tree, plan).map_err(illegal)?;
        let mut builder = self.builder(0);
        let mut outcome =
            Outcome { deletes_applied: dropping.deletes_applied(plan), ..Outcome::default() };
        let mut sides = Vec::new();
        let kept = self.kept(tree, plan, &dropping);
        for input in inputs(tree, plan) {
            sides.push(self.take_input(input, &kept, &dropping, &mut outcome));
        }
        let entries_max: usize = sides.iter().map(Pieces::len).sum();
        let cut_bytes = plan.cut_bytes.unwrap_or(u64::MAX);
        builder =
            builder.start(self.layout.clone(), table_entries(&outcome, cut_bytes, entries_max));
        let mut ids = (tree.next_table().0..).map(TableId);
        let mut done = Vec::new();
        let mut finish = |builder: &mut Builder<E>| {
            outcome.blocks.written += builder.blocks();
            done.extend(ids.next().map(|id| builder.finish(id)));
        };
        let keyspaces = self.keyspace_ranks;
        // The least rank behind the keyspace of the entry before.
        let mut end = keyspaces.map_or(u64::MAX, |_| 0);
        let cut_keys = kept.cut_keys(plan.cut_keys(tree));
        let mut cuts = CutWalk::new(cut_keys.iter().map(|key| rank_from(key)).collect());
        let makes_append = plan.makes_append();
        let dropped = merge(sides, dropping, |entry| {
            let rank = u64::from(entry.rank());
            let is_cut = cuts.passes(|cut| *cut <= rank) && builder.len() > 0;
            let is_full = match makes_append {
                true => MergePlan::ends_append(builder.bytes(), entry.bytes(), cut_bytes),
                false => builder.bytes() >= cut_bytes,
            };
            if is_full || is_cut {
                finish(&mut builder);
            }
            if rank >= end {
                end = keyspaces.map_or(u64::MAX, |ranks| (rank / ranks + 1) * ranks);
                if builder.len() > 0 {
                    finish(&mut builder);
                }
            }
            builder.push(entry);
        });
        if builder.len() > 0 {
            finish(&mut builder);
        }
        self.builder = builder;
        outcome.entries_dropped = dropped.entries;
        outcome.dropped_below = dropped.below;
        for mut held in done {
            if makes_append {
                held.set_root(1, 0);
            }
            let slice = self.add_table(held);
            outcome.written += slice.size();
            outcome.slices.push(slice);
        }
        self.count_kept(&kept, &mut outcome);
        Ok(outcome)
    }
}

/// Counts an input as if all of its blocks were read.
pub(super) fn count_input(level: LevelId, size: Size, blocks: u64, outcome: &mut Outcome) {
    match level {
        LevelId::Memory => outcome.from_memory += size,
        LevelId::Disk(_) => {
            outcome.read += size;
            outcome.blocks.read += blocks;
        }
    }
}

/// Returns the approximate number of entries of an output table: as many as fit into `cut_bytes`,
/// at most all.
fn table_entries(outcome: &Outcome, cut_bytes: u64, entries: usize) -> usize {
    let bytes = outcome.from_memory.bytes + outcome.read.bytes;
    let mean = (bytes / entries.max(1) as u64).max(1);
    // A plan whose windows show no entry has a mean of 1, and perhaps no cut rule.
    entries.min(((cut_bytes / mean) as usize).saturating_add(2))
}

/// Returns the inputs of a plan, newest first.
pub(super) fn inputs<'a>(
    tree: &'a Tree,
    plan: &'a MergePlan,
) -> impl Iterator<Item = (LevelId, &'a Arc<Run>, &'a KeyRange)> {
    plan.inputs.iter().filter_map(|input| {
        let (level, run) = tree.run(input.run)?;
        Some((level, run, &input.range))
    })
}

impl<E: KeyedEntry> Content for KeyedContent<E> {
    const MOVES_ARE_MERGES: bool = false;

    fn carry_out(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        outcome: &mut Outcome,
    ) -> Result<(), SimError> {
        if let Some(target) = plan.appends_to() {
            self.seen = self.now;
            *outcome = self.append(tree, plan, target);
            return Ok(());
        }
        *outcome = match (plan.mode, plan.reuse) {
            (Mode::Merge, None) => self.merge(tree, plan)?,
            (Mode::Merge, Some(reuse)) => self.merge_blocks(tree, plan, reuse)?,
            (Mode::Drop, _) => Outcome::default(),
            (Mode::Move, _) => {
                let clips = inputs(tree, plan).flat_map(|(_, run, range)| run.clip(range));
                let mut slices: Vec<Slice> = clips.collect();
                slices.sort_by(|left, right| left.range().start.cmp(&right.range().start));
                Outcome { slices, ..Outcome::default() }
            }
        };
        if plan.mode == Mode::Merge {
            self.seen = self.now;
            self.merge_through_caches(tree, plan, outcome);
        }
        Ok(())
    }

    fn unread(&self, view: &TreeView) -> Option<MergePlan> {
        let hidden = self.ranges.as_ref().and_then(|_| MergePlan::drop_hidden(view, SeqNo::MAX));
        let now = self.seen.0;
        let expires = self.layout.lives.expire();
        hidden.or_else(|| expires.then(|| MergePlan::expire(view, now, SeqNo::MAX)).flatten())
    }

    fn complete(
        &mut self,
        tree: &Tree,
        plan: &MergePlan,
        edit: &mut TreeEdit,
    ) -> Result<(), EditError> {
        let Some(ranges) = &mut self.ranges else { return Ok(()) };
        edit.range_deletes = ranges.leave_memory(plan);
        edit.forget_done(tree, DoneReaders::default())
    }

    fn adopt(&mut self, table: &Arc<Table>) {
        self.tables.adopt(table);
    }

    fn rest(&mut self, tree: &Tree) {
        if self.tables.len() >= self.sweep_at {
            if self.ranges.is_some() {
                // Slices say of their tables which range deletes are done, each in its own copy.
                let slices = tree.runs().flat_map(|(_, run)| run.slices());
                let named: BTreeSet<_> = slices.map(|slice| slice.table().id).collect();
                self.tables.retain(|held| named.contains(&held.table.id));
            } else {
                // The tree and its clones hold a reference to each of their tables.
                self.tables.retain(|held| Arc::strong_count(&held.table) > 1);
            }
            // With thousands of tables, this is not done after every merge.
            self.sweep_at = self.tables.len() + self.tables.len() / 16 + 1;
        }
    }
}
