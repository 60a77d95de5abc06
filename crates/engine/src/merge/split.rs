//! One merge carried out by several threads. Each thread takes a part of the key space at a time.
//!
//! Parts are cut at keys in the profiles of the inputs, so that each holds about as many bytes. The
//! thread that carries out the plan offers the parts to the others of its pool, takes the parts
//! that they leave, and puts the outputs one behind the other. The output is the same as with one
//! thread, except for where tables are cut. In lockstep no merge is split.

use super::input::{InputCursor, taken_of};
use super::kept::add_kept;
use super::output::{Output, Written};
use super::values::Separation;
use super::{Merged, hiding, named, outcome_of};
use super::{Merger, ReservedPlan};
use crate::keyspace::KeyspaceShared;
use crate::version::Version;
use lsmith_storage::error::Result;
use lsmith_storage::fold::{Fold, FoldCounts, Hiding, Operators};
use lsmith_storage::panics;
use lsmith_storage::sync::{Condvar, Mutex};
use lsmith_storage::table::{ReadTally, TableOptions};
use lsmith_tree::{Input, KeptTables, Key, KeyRange, SeqNo, Size};
use std::fmt;
use std::sync::Arc;

/// The greatest number of parts of a merge.
const PARTS_MAX: u64 = 64;

/// The same where a limit on space wants small parts.
const ROOM_PARTS_MAX: u64 = 1024;

/// The properties that all parts of a merge share.
pub(super) struct SplitPlan {
    keyspace: Arc<KeyspaceShared>,
    pub(super) inputs: Vec<Input>,
    pub(super) bottom: bool,
    pub(super) forgets: bool,
    /// True if the limit on bytes written per second applies to the output.
    pub(super) limited: bool,
    pub(super) cut_bytes: Option<u64>,
    /// Which values go into value files.
    separation: Separation,
    /// The tables that the merge keeps.
    pub(super) kept: KeptTables,
    /// The keys at which the output is cut whatever the size of its tables.
    cut_keys: Vec<Key>,
    pub(super) table: TableOptions,
    /// The live snapshots, newest first.
    pub(super) snapshots: Vec<SeqNo>,
    operators: Option<Operators>,
    /// The range deletes.
    pub(super) hiding: Hiding,
    pub(super) tally: Arc<ReadTally>,
}

impl SplitPlan {
    /// Returns the properties of the plan of `reserved`. The inputs are fixed already: snapshots
    /// taken later see the newest version of all their keys.
    pub(super) fn new(
        merger: &Merger,
        reserved: &ReservedPlan,
        version: &Version,
        table: TableOptions,
    ) -> SplitPlan {
        let (hiding, snapshots) = hiding(&merger.context, &reserved.plan, version);
        SplitPlan {
            keyspace: Arc::clone(&reserved.keyspace),
            inputs: reserved.plan.inputs.clone(),
            bottom: reserved.bottom,
            forgets: reserved.forgets,
            limited: reserved.is_limited(),
            separation: merger.separation(&reserved.keyspace),
            cut_bytes: reserved.plan.cut_bytes,
            cut_keys: reserved.kept.cut_keys(reserved.plan.cut_keys(&version.tree)),
            kept: reserved.kept.clone(),
            table,
            snapshots,
            operators: reserved.keyspace.rules.for_merges(),
            hiding,
            tally: Arc::default(),
        }
    }
}

/// The output of a part.
pub(super) struct PartOutput {
    pub(super) written: Written,
    pub(super) counts: FoldCounts,
    /// The size of the entries taken from each input.
    pub(super) taken: Vec<Size>,
}

/// A merge whose parts are carried out by several threads.
pub(crate) struct Split {
    pub(super) plan: SplitPlan,
    pub(super) parts: Vec<KeyRange>,
    state: Mutex<SplitState>,
    done: Condvar,
}

struct SplitState {
    /// The version that holds the inputs. It is dropped before the plan commits, so that callers
    /// who wait for rest find the files of obsolete tables removed.
    version: Option<Arc<Version>>,
    /// The index of the first part that no thread has taken.
    next: usize,
    /// The number of parts that were begun and are not finished.
    under_way: usize,
    /// Parts from this index on may not begin yet: parts below them must commit first.
    end: usize,
    /// The result of each finished part, until it is taken.
    results: Vec<Option<Result<PartOutput>>>,
}

impl fmt::Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

impl Split {
    /// Takes the next part. Returns `None` if no other part may begin, or if one has failed.
    fn take(&self) -> Option<(usize, Arc<Version>)> {
        let mut state = self.state.lock();
        let version = state.version.clone()?;
        let failed = state.results.iter().flatten().any(|result| result.is_err());
        if failed || state.next >= state.end.min(self.parts.len()) {
            return None;
        }
        let part = state.next;
        state.next += 1;
        state.under_way += 1;
        Some((part, version))
    }

    fn put(&self, part: usize, result: Result<PartOutput>) {
        let mut state = self.state.lock();
        state.results[part] = Some(result);
        state.under_way -= 1;
        drop(state);
        self.done.notify_all();
    }

    /// Takes the result of `part`. Returns `None` while the part is not finished.
    pub(super) fn result_of(&self, part: usize) -> Option<Result<PartOutput>> {
        self.state.lock().results[part].take()
    }

    /// Waits for `part`, which another thread carries out. If another part fails and `part` never
    /// begins, `part` gets that error as its result.
    pub(super) fn wait_for(&self, part: usize) {
        let mut state = self.state.lock();
        let lacks = |state: &mut SplitState| state.results[part].is_none() && state.under_way > 0;
        self.done.wait_while(&mut state, lacks);
        if state.results[part].is_none() {
            let failed = state.results.iter_mut().find(|result| matches!(result, Some(Err(_))));
            state.results[part] = failed.and_then(Option::take);
        }
    }

    /// Makes threads that take a part from now on read from `version`, which holds what is left of
    /// the inputs. Allows parts below the index `end` to begin.
    pub(super) fn set_version(&self, version: Arc<Version>, end: usize) {
        let mut state = self.state.lock();
        state.version = Some(version);
        state.end = end;
    }

    /// Drops the version, once all parts are finished.
    pub(super) fn drop_version(&self) {
        let version = self.state.lock().version.take();
        drop(version);
    }

    /// Returns the bytes in the files of finished parts whose results are not taken yet.
    pub(super) fn waiting_bytes(&self) -> u64 {
        let state = self.state.lock();
        let over = state.results.iter().flatten().flatten();
        over.map(|part| part.written.file_bytes()).sum()
    }

    /// Waits for the parts that other threads carry out. Returns all results that are not taken
    /// yet, in key order. If a part failed, some may be missing.
    pub(super) fn finish(&self) -> Vec<Result<PartOutput>> {
        let mut state = self.state.lock();
        // No thread takes another part.
        state.next = self.parts.len();
        self.done.wait_while(&mut state, |state| state.under_way > 0);
        state.version = None;
        std::mem::take(&mut state.results).into_iter().flatten().collect()
    }
}

/// Stores the result of a part when dropped, even if the thread of the part panics.
struct PartGuard<'a> {
    split: &'a Split,
    part: usize,
    result: Option<Result<PartOutput>>,
}

impl Drop for PartGuard<'_> {
    fn drop(&mut self) {
        let panicked =
            || Err(crate::Error::new(crate::ErrorKind::Panicked, "a merging thread panicked"));
        self.split.put(self.part, self.result.take().unwrap_or_else(panicked));
    }
}

impl Merger {
    /// Merges all inputs of the plan into new tables, in parts if the plan is large and there are
    /// threads. Returns what came out, with its tables in `output`.
    pub(super) fn merge(
        &self,
        reserved: &ReservedPlan,
        version: &Arc<Version>,
        output: &mut Output<'_>,
        table: TableOptions,
    ) -> Result<Merged> {
        let plan = SplitPlan::new(self, reserved, version, table);
        let tally = Arc::clone(&plan.tally);
        let deletes_applied = plan.hiding.deletes_applied(&reserved.plan.hull(), &plan.snapshots);
        let parts = self.parts_of(reserved, version);
        let done = match parts.len() {
            0 | 1 => vec![self.merge_part(&plan, &plan.inputs, version)],
            _ => self.merge_split(plan, parts, version),
        };
        let mut counts = FoldCounts::default();
        let mut sizes = Vec::new();
        let mut failed = None;
        for part in done {
            match part {
                Ok(part) => {
                    output.append(part.written);
                    counts += part.counts;
                    sizes.resize(part.taken.len(), Size::default());
                    sizes.iter_mut().zip(&part.taken).for_each(|(all, part)| *all += *part);
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        output.open_tables()?;
        let taken = taken_of(version, &reserved.plan.inputs, &sizes);
        let mut outcome = outcome_of(counts, taken);
        outcome.deletes_applied = deletes_applied;
        outcome.blocks.read = tally.blocks();
        output.add_to(&mut outcome);
        add_kept(&reserved.kept, &KeyRange::ALL, version, &mut outcome);
        Ok(Merged { outcome, bytes_read: tally.bytes(), is_filtered: counts.filtered > 0 })
    }

    /// Offers `parts` to all threads, and works with them. Returns the results in key order.
    fn merge_split(
        &self,
        plan: SplitPlan,
        parts: Vec<KeyRange>,
        version: &Arc<Version>,
    ) -> Vec<Result<PartOutput>> {
        let all = parts.len();
        let split = self.offer(plan, parts, Arc::clone(version), all);
        while self.carry_out_part(&split) {}
        self.splits.lock().retain(|other| !Arc::ptr_eq(other, &split));
        split.finish()
    }

    /// Offers `parts` of `plan`, whose inputs are in `version`, to all threads. Parts from the
    /// index `end` on may not begin yet.
    pub(super) fn offer(
        &self,
        plan: SplitPlan,
        parts: Vec<KeyRange>,
        version: Arc<Version>,
        end: usize,
    ) -> Arc<Split> {
        let results = parts.iter().map(|_| None).collect();
        let state = SplitState { version: Some(version), next: 0, under_way: 0, end, results };
        let split = Arc::new(Split { plan, parts, state: Mutex::new(state), done: Condvar::new() });
        self.splits.lock().push(Arc::clone(&split));
        self.context.progress.notify();
        split
    }

    /// Carries out a part of a merge that another thread has split. Returns false if there was
    /// none.
    pub(crate) fn help(&self) -> bool {
        let splits = self.splits.lock().clone();
        splits.iter().any(|split| self.carry_out_part(split))
    }

    pub(super) fn carry_out_part(&self, split: &Split) -> bool {
        let Some((part, version)) = split.take() else { return false };
        let mut guard = PartGuard { split, part, result: None };
        let range = &split.parts[part];
        // If parts commit one by one, a run may have lost all its keys and be gone.
        let left = split.plan.inputs.iter().filter(|input| version.tree.run(input.run).is_some());
        let clipped =
            left.map(|input| Input { run: input.run, range: input.range.intersection(range) });
        let inputs: Vec<Input> = clipped.collect();
        let result = self.merge_part(&split.plan, &inputs, &version);
        drop(version);
        guard.result = Some(result);
        true
    }

    /// Merges `inputs` into new tables. On an error no file of the part stays on the device.
    fn merge_part(
        &self,
        plan: &SplitPlan,
        inputs: &[Input],
        version: &Version,
    ) -> Result<PartOutput> {
        let output = self.output(plan.cut_bytes, plan.table.clone()).limited(plan.limited);
        let output = output.separating(plan.separation);
        let mut output =
            output.cutting_keyspaces(plan.keyspace.members.is_some()).cutting_at(&plan.cut_keys);
        let merge = || self.write_merged(plan, inputs, version, &mut output);
        match panics::as_error("a merge", merge) {
            Ok((counts, taken)) => Ok(PartOutput { written: output.into_written(), counts, taken }),
            Err(error) => {
                output.remove();
                Err(named(error, inputs, version))
            }
        }
    }

    fn write_merged(
        &self,
        plan: &SplitPlan,
        inputs: &[Input],
        version: &Version,
        output: &mut Output<'_>,
    ) -> Result<(FoldCounts, Vec<Size>)> {
        let cursor = InputCursor::new(version, inputs, &plan.kept, &plan.tally);
        let cursor = cursor.leaping(plan.hiding.clone(), &plan.snapshots);
        let cursor = cursor.reading_if(plan.operators.is_some(), version);
        let fold = Fold::new(cursor, plan.snapshots.clone(), |_| plan.bottom)?;
        let fold = fold.forgetting(plan.forgets).combining(plan.operators.clone());
        let mut fold = fold.hiding(plan.hiding.clone());
        let mut entries = 0;
        while let Some(entry) = fold.next_entry()? {
            output.add(entry)?;
            entries += 1;
            self.check_open(&plan.keyspace, entries)?;
        }
        output.finish_table()?;
        Ok((fold.counts(), fold.walk().taken_each()))
    }

    /// Returns the ranges in which the plan is carried out: one if the plan is small, none if the
    /// store has no threads and no limit on space.
    pub(super) fn parts_of(&self, reserved: &ReservedPlan, version: &Version) -> Vec<KeyRange> {
        let has_threads = self.context.progress.has_threads();
        if !has_threads && self.context.space.is_none() {
            return Vec::new();
        }
        let steps = steps(version, &reserved.plan.inputs, &reserved.kept);
        let bytes = steps.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let by_thread = (bytes / self.context.options.split_bytes).min(PARTS_MAX);
        let count = if has_threads { by_thread } else { 0 };
        cut(&steps, bytes, count.max(self.parts_for_room(bytes)))
    }

    /// Returns the number of parts of `bytes` such that those under way fit into half of the room
    /// that the limit on space leaves.
    fn parts_for_room(&self, bytes: u64) -> u64 {
        let Some(space) = &self.context.space else { return 0 };
        let room = space.room(self.context.memtable_memory()) / 2;
        // As many more are committed, and their inputs are still read by those under way.
        let under_way = 2 * (self.context.options.threads as u64 + 2);
        (bytes.saturating_mul(under_way) / room.max(1)).min(ROOM_PARTS_MAX)
    }
}

/// Returns the starts and the profile points of all slices of `inputs` on storage, in key order.
/// Each has its key, and the logical bytes of the slice from that key to the next point or the end.
fn steps(version: &Version, inputs: &[Input], kept: &KeptTables) -> Vec<(Key, u64)> {
    let mut steps = Vec::new();
    for input in inputs {
        // Memory has no profiles.
        let Some(open) = version.disk_run(input.run) else { continue };
        for slice in open.run().clip(&input.range).filter(|slice| !kept.has(slice.table().id)) {
            let range = slice.range();
            let table = slice.table();
            let points = table.profile.iter().filter(|point| range.contains(&point.key));
            let starts = std::iter::once(&range.start).chain(points.map(|point| &point.key));
            let keys: Vec<&Key> = starts.collect();
            let inner = keys.iter().skip(1).map(|key| table.below(key).bytes);
            let end = range.end.as_ref().map_or(table.size.bytes, |end| table.below(end).bytes);
            let ends = inner.chain([end]);
            steps.extend(
                keys.iter()
                    .zip(ends)
                    .map(|(key, end)| ((*key).clone(), end.saturating_sub(table.below(key).bytes))),
            );
        }
    }
    steps.sort_unstable_by(|left, right| left.0.cmp(&right.0));
    steps
}

/// Cuts the key space into at most `count` ranges of about equal bytes. `bytes` is the sum of
/// `steps`. Returns one range of all keys if `count` is below 2.
fn cut(steps: &[(Key, u64)], bytes: u64, count: u64) -> Vec<KeyRange> {
    let mut parts = Vec::new();
    let mut start = Key::new();
    let mut bytes_below = 0;
    // The first key that the part under construction is known to hold.
    let mut first = steps.first().map(|(key, _)| key);
    for (key, step_bytes) in steps {
        let due = (parts.len() as u64 + 1) * bytes / count.max(1);
        if bytes_below >= due && first.is_some_and(|first| key > first) {
            parts.push(KeyRange { start, end: Some(key.clone()) });
            start = key.clone();
            first = Some(key);
        }
        bytes_below += step_bytes;
    }
    parts.push(KeyRange { start, end: None });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u64) -> Key {
        Key::copy_from_slice(&index.to_be_bytes())
    }

    #[test]
    fn parts_are_of_about_equal_size_and_cover_all_keys() {
        let steps: Vec<(Key, u64)> = (1..=1000).map(|n| (key(n), 60 + n % 10)).collect();
        let bytes: u64 = steps.iter().map(|(_, bytes)| bytes).sum();
        let parts = cut(&steps, bytes, 7);
        assert_eq!(parts.len(), 7);
        assert_eq!((&parts[0].start, &parts[6].end), (&Key::new(), &None));
        assert!(parts.windows(2).all(|pair| pair[0].end.as_ref() == Some(&pair[1].start)));
        for part in &parts {
            let held: u64 = steps.iter().filter(|(key, _)| part.contains(key)).map(|s| s.1).sum();
            assert!(held.abs_diff(bytes / 7) <= 70, "{held} of {bytes}");
        }
    }

    #[test]
    fn single_key_is_never_cut() {
        let steps = vec![(key(1), 1000), (key(1), 1000), (key(1), 1000)];
        assert_eq!(cut(&steps, 3000, 3), [KeyRange::ALL]);
        assert_eq!(cut(&[], 0, 0), [KeyRange::ALL]);
        assert_eq!(cut(&[(key(1), 10), (key(2), 10)], 20, 1), [KeyRange::ALL]);
    }
}
