//! How tables with sequence numbers of their own enter a tree.
//!
//! In the keyspace every entry has its number. So the numbers say what is newer, and the order of
//! the runs must agree with them wherever runs share keys. A table can arrive
//!
//! * newer than some runs and older than the others: it becomes a run between them, or joins a run
//!   there that has no keys in its range ([`place_of`]);
//! * with numbers among those of some runs: it is merged with them over its range, and the output
//!   takes the place of the oldest of them.
//!
//! The steps:
//!
//! 1. The store's counter rises above the greatest number, durably. So all later writes are newer.
//! 2. Memory is flushed until it holds no write of the range that the table could be newer than.
//! 3. What must be merged is reserved like any plan, and merged on the thread of the caller.
//! 4. Under the writer's lock, one edit brings all tables in. A merge that was under way and has
//!    dropped tombstones is not committed, because they could have hidden what has arrived
//!    ([`KeyspaceState::arrivals`]).
//!
//! Snapshots from before keep the version from before; see [`snapshots`](crate::snapshots).

use super::WritePath;
use super::load::{InMemory, Incoming};
use crate::keyspace::{KeyspaceShared, KeyspaceState};
use crate::manifest::Mark;
use crate::merge::{PlanOutput, ReservedPlan};
use crate::version::{OpenRun, TableHandle, Version};
use lsmith_storage::cursor::Cursor;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::key_hash;
use lsmith_storage::table::{CacheFill, ReadCount};
use lsmith_tree::{
    AddPlace, Addition, Input, KeyRange, LevelId, MergePlan, Place, Reason, Run, RunId, SeqNo,
    Tree, TreeEdit, apply, check_plan,
};
use std::path::PathBuf;
use std::sync::Arc;

/// The greatest sequence number that a table may bring: half of what a store can count to.
pub(crate) const ARRIVING_SEQ_MAX: SeqNo = SeqNo(lsmith_storage::bounds::SEQ_MAX.0 / 2);

/// A table that arrives, with the file that the caller named.
pub(crate) struct Arriving {
    pub(crate) file: PathBuf,
    pub(crate) table: Arc<TableHandle>,
    /// The merge with what is there, if one is needed.
    merged: Option<MergedArrival>,
}

/// The outcome of the merge of an arriving table, whose plan is still reserved.
struct MergedArrival {
    /// The plan without the arriving table.
    reserved: MergePlan,
    edit: TreeEdit,
    tables: Vec<Arc<TableHandle>>,
}

/// What is to be done with an arriving table.
enum Fate {
    /// It becomes a run, or a part of one.
    Placed(Addition),
    /// It is merged with these runs, newest first, and the output goes into the last one.
    Merged(Vec<RunId>),
}

/// What is to be done with all arriving tables.
enum Placement {
    /// Each is merged, or has its place.
    All(Vec<Addition>),
    /// The table at this index must be merged with these runs first.
    Merge(usize, Vec<RunId>),
}

/// A step of an ingest, decided under the locks.
enum Step {
    Done,
    /// Wait for a flush, or for plans that are in the way.
    Wait,
    /// Merge the table at this index.
    Merge(usize, Box<ReservedMerge>),
}

/// A merge of an arriving table, for which the plan is reserved.
struct ReservedMerge {
    /// The plan that includes the arriving table, as a run.
    whole: ReservedPlan,
    /// The reserved plan, without that run.
    reserved: MergePlan,
    /// A version that has the run.
    version: Arc<Version>,
}

impl Arriving {
    pub(crate) fn new(file: PathBuf, table: Arc<TableHandle>) -> Arriving {
        Arriving { file, table, merged: None }
    }

    fn range(&self) -> &KeyRange {
        &self.table.table().tree_table().range
    }

    /// Returns the least and the greatest sequence number of the table.
    fn seqs(&self) -> (SeqNo, SeqNo) {
        let table = self.table.table().tree_table();
        (table.seq_min, table.seq_max)
    }
}

impl WritePath {
    /// Makes `arriving`, whose key ranges are disjoint, part of `keyspace`, all at once. If
    /// `resurrects`, entries may arrive that dropped tombstones could have hidden.
    ///
    /// # Errors
    /// As [`Store::ingest`](crate::Store::ingest). The files of the tables are then removed, unless
    /// the store is poisoned.
    pub(crate) fn ingest(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        mut arriving: Vec<Arriving>,
        resurrects: bool,
    ) -> Result<()> {
        // Each ingest gives merges work, and may undo one. So it waits where writers wait.
        let bytes = arriving.iter().map(|arriving| arriving.table.held_bytes()).sum();
        self.hold_back(keyspace, bytes).inspect_err(|_| {
            arriving.iter().for_each(|arriving| arriving.table.retire());
        })?;
        let _one_at_a_time = keyspace.ingesting.lock();
        let _busy = keyspace.keep_busy();
        let result = self.ingest_all(keyspace, &mut arriving, resurrects);
        let mut state = keyspace.state.lock();
        state.kept_for_ingest = None;
        for merged in arriving.iter().filter_map(|arriving| arriving.merged.as_ref()) {
            state.release(&merged.reserved);
        }
        drop(state);
        // In a poisoned store the manifest may name the tables: they must stay.
        let fails = result.is_err() && self.context.check_writable().is_ok();
        for arriving in &arriving {
            let merged = arriving.merged.as_ref();
            if fails {
                let outputs = merged.into_iter().flat_map(|merged| &merged.tables);
                outputs.for_each(|table| table.retire());
            }
            if fails || (result.is_ok() && merged.is_some()) {
                arriving.table.retire();
            }
        }
        self.context.progress.notify();
        result
    }

    fn ingest_all(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        arriving: &mut [Arriving],
        resurrects: bool,
    ) -> Result<()> {
        let newest = arriving.iter().map(|arriving| arriving.seqs().1).max().unwrap_or_default();
        self.rise_above(newest)?;
        loop {
            // Read first: what this thread waits for may end before it waits.
            let turn = self.context.progress.turn();
            match self.next_step(keyspace, arriving, resurrects)? {
                Step::Done => return Ok(()),
                Step::Wait => self.wait_for_flush(keyspace, turn)?,
                Step::Merge(index, merge) => {
                    let merged = self.merge_arriving(&arriving[index], &merge);
                    let ReservedMerge { reserved, .. } = *merge;
                    let (edit, tables) =
                        merged.inspect_err(|_| keyspace.state.lock().release(&reserved))?;
                    arriving[index].merged = Some(MergedArrival { reserved, edit, tables });
                }
            }
        }
    }

    /// Makes all later writes newer than `newest`. Returns when that survives power loss.
    pub(crate) fn rise_above(&self, newest: SeqNo) -> Result<()> {
        let mut guard = self.wal.lock();
        let writer = guard.as_mut().ok_or_else(crate::context::read_only)?;
        self.context.check_writable()?;
        if newest.0 < writer.next_seq {
            return Ok(());
        }
        let seq = self.take_numbers(writer, newest)?;
        let context = &self.context;
        context.snapshots.show_load(seq, &context.visible, || ());
        Ok(())
    }

    /// Does the next step that needs no waiting, or returns the one that does.
    fn next_step(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        arriving: &mut [Arriving],
        resurrects: bool,
    ) -> Result<Step> {
        let mut guard = self.wal.lock();
        let writer = guard.as_mut().ok_or_else(crate::context::read_only)?;
        self.context.check_writable()?;
        let older = arriving.iter().map(|arriving| (arriving.range().clone(), arriving.seqs().1));
        let older: Vec<(KeyRange, SeqNo)> = older.collect();
        let in_memory = self.flush_older(keyspace, writer, &older)?;
        if in_memory != InMemory::Nothing {
            return Ok(Step::Wait);
        }
        let mut state = keyspace.state.lock();
        if let Placement::Merge(index, runs) = placement(arriving, &state.view.tree, resurrects)? {
            let merge = reserve(keyspace, &mut state, &arriving[index], &runs);
            return Ok(merge.map_or(Step::Wait, |merge| Step::Merge(index, Box::new(merge))));
        }
        drop(state);
        let seq = self.take_numbers(writer, SeqNo(0))?;
        let is_done = self.commit(keyspace, seq, |state| {
            let tree = &state.view.tree;
            Ok(match placement(arriving, tree, resurrects)? {
                Placement::All(additions) => Some(incoming(arriving, additions, tree)),
                // Another commit came between.
                Placement::Merge(..) => None,
            })
        })?;
        self.scheduler.after_seal(writer);
        Ok(if is_done { Step::Done } else { Step::Wait })
    }

    /// Carries `merge` out. Returns the edit, without the arriving table, and the tables written.
    fn merge_arriving(
        &self,
        arriving: &Arriving,
        ReservedMerge { whole, version, .. }: &ReservedMerge,
    ) -> Result<(TreeEdit, Vec<Arc<TableHandle>>)> {
        check_clashes(arriving, &whole.plan, version)?;
        let PlanOutput { outcome, tables, bytes_read, bytes_written, .. } =
            self.scheduler.merge_now(whole, version)?;
        let edit = TreeEdit::of_plan(&version.tree, &whole.plan, outcome);
        let mut edit = edit.map_err(|error| {
            tables.iter().for_each(|table| table.retire());
            Error::new(ErrorKind::Corruption, format!("the merge is not legal: {error}"))
        })?;
        edit.remove.remove(0);
        let counts = &self.context.counts;
        crate::stats::add(&counts.merge_bytes_read, bytes_read);
        crate::stats::add(&counts.merge_bytes_written, bytes_written);
        Ok((edit, tables))
    }
}

/// Reserves the merge of `arriving` with `runs`. Returns `None` if other plans are in the way; no
/// new ones will be.
fn reserve(
    keyspace: &Arc<KeyspaceShared>,
    state: &mut KeyspaceState,
    arriving: &Arriving,
    runs: &[RunId],
) -> Option<ReservedMerge> {
    let range = arriving.range();
    let input = |run: &RunId| Input { run: *run, range: range.clone() };
    let last = *runs.last().expect("a merge has runs");
    let tree = &state.view.tree;
    let count = runs.len() as u64;
    let reason = Reason::new("an ingested table interleaves with {} runs", [count, 0, 0]);
    let mut plan = MergePlan::merge([], Place::Into(last), reason);
    plan.inputs = runs.iter().map(input).collect();
    plan.cut_bytes = tree.run(last).and_then(|(_, run)| table_bytes(run));
    if check_plan(&state.view, &plan).is_err() {
        state.kept_for_ingest = Some(range.clone());
        return None;
    }
    let run = tree.next_run();
    let slices = vec![arriving.table.whole()];
    let place = AddPlace::Above(runs[0]);
    let add = vec![Addition { run, place, knot: None, slices }];
    let mut coming = tree.clone();
    let placed = apply(&mut coming, &TreeEdit { add, ..TreeEdit::default() });
    placed.expect("a new run fits any tree");
    let version = version_with(keyspace, state, &coming, run, &arriving.table);
    let mut with_arriving = plan.clone();
    with_arriving.inputs.insert(0, input(&run));
    let bottom = coming.is_bottom_for(&with_arriving).expect("its runs are in the tree");
    let whole = ReservedPlan {
        keyspace: Arc::clone(keyspace),
        bottom,
        forgets: false,
        takes_memory: false,
        keeps_older: false,
        rewrites: None,
        by_hand: false,
        part_bytes: None,
        arrivals: state.arrivals,
        plan: with_arriving,
    };
    state.reserve(plan.clone());
    state.kept_for_ingest = None;
    Some(ReservedMerge { whole, reserved: plan, version: Arc::new(version) })
}

/// Decides what is to be done with the tables of `arriving` that are not merged yet.
///
/// # Errors
/// `InvalidArgument` if one cannot arrive in `tree`.
fn placement(arriving: &[Arriving], tree: &Tree, resurrects: bool) -> Result<Placement> {
    let mut additions = Vec::new();
    for (index, arriving) in arriving.iter().enumerate() {
        if !resurrects {
            check_age(arriving, tree)?;
        }
        if arriving.merged.is_none() {
            match fate_of(arriving, tree)? {
                Fate::Placed(addition) => additions.push(addition),
                Fate::Merged(runs) => return Ok(Placement::Merge(index, runs)),
            }
        }
    }
    Ok(Placement::All(additions))
}

/// Returns the one edit that brings all tables in, and the tables that it names. `additions` are
/// those of the tables that were not merged, for `tree`.
fn incoming(arriving: &[Arriving], additions: Vec<Addition>, tree: &Tree) -> Incoming {
    let mut edit = TreeEdit::default();
    for mut addition in additions {
        if addition.place != AddPlace::Into {
            let new = edit.add.iter_mut().find(|other| other.place == addition.place);
            if let Some(new) = new {
                new.slices.append(&mut addition.slices);
                continue;
            }
            let named = edit.add.iter().filter(|other| other.place != AddPlace::Into).count();
            addition.run = RunId(tree.next_run().0 + named as u64);
        }
        edit.add.push(addition);
    }
    let mut tables = Vec::new();
    for arriving in arriving {
        match &arriving.merged {
            None => tables.push(Arc::clone(&arriving.table)),
            Some(merged) => {
                edit.remove.extend_from_slice(&merged.edit.remove);
                edit.add.extend_from_slice(&merged.edit.add);
                edit.counters.extend_from_slice(&merged.edit.counters);
                edit.dropped_below = edit.dropped_below.max(merged.edit.dropped_below);
                tables.extend(merged.tables.iter().map(Arc::clone));
            }
        }
    }
    let plans = arriving.iter().filter_map(|arriving| Some(&arriving.merged.as_ref()?.reserved));
    let mark =
        |arriving: &Arriving| Mark { range: arriving.range().clone(), newest: arriving.seqs().1 };
    Incoming {
        edit,
        tables,
        plans: plans.cloned().collect(),
        taken: arriving.iter().map(mark).collect(),
        numbered: true,
    }
}

/// Returns a version of `state` that has `arrived` as run `run` too; `tree` has that run.
fn version_with(
    keyspace: &KeyspaceShared,
    state: &KeyspaceState,
    tree: &Tree,
    run: RunId,
    arrived: &Arc<TableHandle>,
) -> Version {
    let before = keyspace.version.load();
    let mut version = state.version(Some(&before));
    let index = tree.disk_runs().position(|other| other.id() == run).expect("it was just added");
    let added = tree.disk_runs().nth(index).expect("it was just found");
    version.runs.insert(index, Arc::new(OpenRun::new(added, None, |_| Arc::clone(arrived))));
    version.tree = tree.clone();
    version
}

/// Returns the logical bytes of the largest table of `run`, if it has several: the size at which
/// tables that join it are cut.
fn table_bytes(run: &Arc<Run>) -> Option<u64> {
    let bytes = run.slices().iter().map(|slice| slice.table().size.bytes).max()?;
    (run.slices().len() > 1).then_some(bytes.max(1))
}

/// Fails if a dropped tombstone of `tree` could have hidden an entry of `arriving`.
fn check_age(arriving: &Arriving, tree: &Tree) -> Result<()> {
    let (oldest, _) = arriving.seqs();
    let dropped = tree.dropped_below();
    if oldest >= dropped {
        return Ok(());
    }
    let message = format!(
        "the table has entries from number {oldest} on, and deletions up to number {dropped} are \
         dropped: deleted keys could come back; `allow_resurrect` accepts that"
    );
    Err(Error::new(ErrorKind::InvalidArgument, message).at(&arriving.file))
}

/// Decides what is to be done with `arriving` in `tree`.
///
/// # Errors
/// `InvalidArgument` if a table of the tree has entries without numbers in the range.
fn fate_of(arriving: &Arriving, tree: &Tree) -> Result<Fate> {
    let range = arriving.range();
    let (oldest, newest) = arriving.seqs();
    let runs: Vec<&Arc<Run>> = tree.disk_runs().collect();
    // The runs that share keys with the table, newest first, as indexes, and their numbers.
    let mut shared = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let tables = run.overlapping(range).iter().map(|slice| slice.table());
        let Some((min, max)) = tables
            .map(|table| (table.seq_min, table.seq_max))
            .reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))
        else {
            continue;
        };
        if min == SeqNo(0) {
            let message = "the keyspace has entries in the range of the table whose numbers were \
                           forgotten: which is newer is unknown";
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(&arriving.file));
        }
        shared.push((index, min, max));
    }
    let newer = shared.iter().take_while(|(_, min, _)| *min > newest).count();
    let tied = shared.iter().rposition(|(_, _, max)| *max >= oldest).map_or(0, |last| last + 1);
    if newer < tied {
        let members = shared[newer..tied].iter().map(|(index, ..)| runs[*index].id());
        return Ok(Fate::Merged(members.collect()));
    }
    let above = newer.checked_sub(1).map(|last| shared[last].0);
    let below = shared.get(newer).map(|(index, ..)| *index);
    Ok(match place_of(arriving, tree, &runs, above, below) {
        Some(addition) => Fate::Placed(addition),
        // It is older than everything, and no place is below the oldest run.
        None => Fate::Merged(vec![runs[runs.len() - 1].id()]),
    })
}

/// Returns the place of `arriving` below the run at index `above` and above the run at index
/// `below` of `runs`, all runs of `tree`. These two share keys with it, if they exist; the runs
/// between them do not. Returns `None` if there is no such place.
///
/// As deep as possible, so that no merge has to move the table on: within the oldest run between
/// the two that is not in level 0, or else as a run of its own.
fn place_of(
    arriving: &Arriving,
    tree: &Tree,
    runs: &[&Arc<Run>],
    above: Option<usize>,
    below: Option<usize>,
) -> Option<Addition> {
    let slices = vec![arriving.table.whole()];
    let between = above.map_or(0, |above| above + 1)..below.unwrap_or(runs.len());
    let deepest = between.rev().map(|index| runs[index]).next();
    if let Some(run) = deepest
        && tree.run(run.id()).is_some_and(|(level, _)| level > LevelId::Disk(0))
    {
        return Some(Addition { run: run.id(), place: AddPlace::Into, knot: None, slices });
    }
    let place = match (above, below) {
        (None, _) => AddPlace::Top(0),
        (Some(_), Some(below)) => AddPlace::Above(runs[below].id()),
        (Some(above), None) => AddPlace::Above(runs.get(above + 1)?.id()),
    };
    Some(Addition { run: tree.next_run(), place, knot: None, slices })
}

/// Fails if an entry of `arriving` has key and number of another entry in the inputs of `plan`,
/// which are in `version`, and differs from it.
fn check_clashes(arriving: &Arriving, plan: &MergePlan, version: &Version) -> Result<()> {
    let (arrived, others) = plan.inputs.split_first().expect("the table is the first input");
    let find = |run: RunId| version.disk_run(run).expect("the plan was checked");
    let others: Vec<&Arc<OpenRun>> = others.iter().map(|input| find(input.run)).collect();
    let mut cursor = find(arrived.run).parts(&arrived.range, CacheFill::No).cursor();
    let mut reads = ReadCount::default();
    cursor.seek_first()?;
    while let Some(entry) = cursor.entry() {
        for run in &others {
            let Some(table) = run.table_of(entry.key) else { continue };
            let facts = table.table().tree_table();
            if entry.seq < facts.seq_min || facts.seq_max < entry.seq {
                continue;
            }
            let hash = key_hash(entry.key);
            let found = table.table().find(entry.key, hash, entry.seq, &mut reads)?;
            let Some((block, slot)) = found.filter(|(_, slot)| slot.seq == entry.seq) else {
                continue;
            };
            if slot.kind != entry.kind || block.value(&slot) != entry.value {
                let message = format!(
                    "key `{}` has another entry with number {} in the keyspace",
                    entry.key.escape_ascii(),
                    entry.seq
                );
                return Err(Error::new(ErrorKind::InvalidArgument, message).at(&arriving.file));
            }
        }
        cursor.next()?;
    }
    Ok(())
}
