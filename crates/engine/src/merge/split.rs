//! One merge carried out by several threads: each takes a part of the key space at a time.
//!
//! Parts are cut at keys that the profiles of the inputs name, so that each holds about as many
//! bytes. The thread that carries out the plan offers the parts to the others of its pool, takes
//! what they leave, and puts the outputs one behind the other. What comes out is what one thread
//! would have written, but for where tables are cut. In lockstep nothing is split.

use super::input::{InputCursor, passed_of};
use super::output::{Output, Written};
use super::{Merger, ReservedPlan};
use super::{named, outcome_of};
use crate::context::Context;
use crate::version::Version;
use lsmith_storage::error::Result;
use lsmith_storage::fold::{Fold, FoldCounts};
use lsmith_storage::panics;
use lsmith_storage::sync::{Condvar, Mutex};
use lsmith_storage::table::{ReadTally, TableOptions};
use lsmith_tree::{Input, Key, KeyRange, Outcome, SeqNo, Size};
use std::fmt;
use std::sync::Arc;

/// Parts of a merge, at most.
const PARTS_MAX: u64 = 64;

/// What all parts of a merge have in common.
pub(super) struct SplitPlan {
    pub(super) inputs: Vec<Input>,
    pub(super) bottom: bool,
    pub(super) forgets: bool,
    /// Whether the limit on what merges write is to be kept.
    pub(super) limited: bool,
    pub(super) cut_bytes: Option<u64>,
    pub(super) table: TableOptions,
    /// Newest first.
    pub(super) snapshots: Vec<SeqNo>,
    pub(super) tally: Arc<ReadTally>,
}

impl SplitPlan {
    /// What `job` writes anew. Its inputs are fixed already: a snapshot that is taken later sees
    /// the newest of all of them.
    pub(super) fn new(
        context: &Context,
        reserved: &ReservedPlan,
        table: TableOptions,
    ) -> SplitPlan {
        SplitPlan {
            inputs: reserved.plan.inputs.clone(),
            bottom: reserved.bottom,
            forgets: reserved.forgets,
            limited: reserved.is_limited(),
            cut_bytes: reserved.plan.cut_bytes,
            table,
            snapshots: context.snapshots.newest_first(),
            tally: Arc::default(),
        }
    }
}

/// What came out of a part.
pub(super) struct PartOutput {
    pub(super) written: Written,
    pub(super) counts: FoldCounts,
    /// What was taken of each input.
    pub(super) passed: Vec<Size>,
}

/// A merge whose parts several threads carry out.
pub(crate) struct Split {
    pub(super) plan: SplitPlan,
    pub(super) parts: Vec<KeyRange>,
    state: Mutex<Parts>,
    done: Condvar,
}

struct Parts {
    /// The version that holds the inputs. It goes before the plan commits, so that whoever waits
    /// for rest finds the files of obsolete tables gone.
    version: Option<Arc<Version>>,
    /// The first part that nobody has taken.
    next: usize,
    under_way: usize,
    /// Parts from here on are not to be begun yet: those below are to be committed first.
    end: usize,
    /// What came out of each part that is over.
    results: Vec<Option<Result<PartOutput>>>,
}

impl fmt::Debug for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("parts", &self.parts.len()).finish_non_exhaustive()
    }
}

impl Split {
    /// Takes the next part; `None` where all are taken, or one has failed.
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

    /// What came out of `part`; `None` as long as it is not over.
    pub(super) fn result_of(&self, part: usize) -> Option<Result<PartOutput>> {
        self.state.lock().results[part].take()
    }

    /// Waits for `part`, which another thread carries out.
    pub(super) fn wait_for(&self, part: usize) {
        let mut state = self.state.lock();
        // Where another part has failed, this one may never begin.
        let lacks = |state: &mut Parts| state.results[part].is_none() && state.under_way > 0;
        self.done.wait_while(&mut state, lacks);
        if state.results[part].is_none() {
            let failed = state.results.iter_mut().find(|result| matches!(result, Some(Err(_))));
            state.results[part] = failed.and_then(Option::take);
        }
    }

    /// Has those who take a part from now on read from `version`, which holds what they need, and
    /// lets parts up to `end` be begun.
    pub(super) fn show(&self, version: Arc<Version>, end: usize) {
        let mut state = self.state.lock();
        state.version = Some(version);
        state.end = end;
    }

    /// Lets go of the version: all parts are over.
    pub(super) fn let_go(&self) {
        let version = self.state.lock().version.take();
        drop(version);
    }

    /// Bytes in the files of parts that are over, and whose results nobody has asked for.
    pub(super) fn waiting_bytes(&self) -> u64 {
        let state = self.state.lock();
        let over = state.results.iter().flatten().flatten();
        over.map(|part| part.written.file_bytes()).sum()
    }

    /// Waits for the parts that other threads carry out. What came out of all of them, in key
    /// order; fewer where one failed.
    pub(super) fn finish(&self) -> Vec<Result<PartOutput>> {
        let mut state = self.state.lock();
        // Nobody takes another.
        state.next = self.parts.len();
        self.done.wait_while(&mut state, |state| state.under_way > 0);
        state.version = None;
        std::mem::take(&mut state.results).into_iter().flatten().collect()
    }
}

/// Counts a part as over also where its thread panics.
struct Under<'a> {
    split: &'a Split,
    part: usize,
    result: Option<Result<PartOutput>>,
}

impl Drop for Under<'_> {
    fn drop(&mut self) {
        let panicked =
            || Err(crate::Error::new(crate::ErrorKind::Panicked, "a merging thread panicked"));
        self.split.put(self.part, self.result.take().unwrap_or_else(panicked));
    }
}

impl Merger {
    /// Writes all that `job` takes anew, in parts where it is large and there are threads. What
    /// came out, with its tables in `output`, and the bytes read from files.
    pub(super) fn merge(
        &self,
        reserved: &ReservedPlan,
        version: &Arc<Version>,
        output: &mut Output<'_>,
        table: TableOptions,
    ) -> Result<(Outcome, u64)> {
        let plan = SplitPlan::new(&self.context, reserved, table);
        let tally = Arc::clone(&plan.tally);
        let parts = self.parts_of(reserved, version);
        let done = match parts.len() {
            0 | 1 => vec![self.merge_part(&plan, &plan.inputs, version)],
            _ => self.merge_split(plan, parts, version),
        };
        let (mut counts, mut passed) = (FoldCounts::default(), Vec::new());
        let mut failed = None;
        for part in done {
            match part {
                Ok(part) => {
                    output.append(part.written);
                    counts += part.counts;
                    passed.resize(part.passed.len(), Size::default());
                    passed.iter_mut().zip(&part.passed).for_each(|(all, part)| *all += *part);
                }
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        output.open_tables()?;
        let passed = passed_of(version, &reserved.plan.inputs, &passed);
        let mut outcome = outcome_of(counts, passed);
        outcome.blocks.read = tally.blocks();
        output.tell(&mut outcome);
        Ok((outcome, tally.bytes()))
    }

    /// Offers `parts` to all threads and works with them.
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

    /// Offers `parts` of `plan`, whose inputs are in `version`, to all threads; those from `end`
    /// on later.
    pub(super) fn offer(
        &self,
        plan: SplitPlan,
        parts: Vec<KeyRange>,
        version: Arc<Version>,
        end: usize,
    ) -> Arc<Split> {
        let results = parts.iter().map(|_| None).collect();
        let state = Parts { version: Some(version), next: 0, under_way: 0, end, results };
        let split = Arc::new(Split { plan, parts, state: Mutex::new(state), done: Condvar::new() });
        self.splits.lock().push(Arc::clone(&split));
        self.context.progress.notify();
        split
    }

    /// Carries out a part of a merge that another thread has split; whether there was one.
    pub(crate) fn help(&self) -> bool {
        let splits = self.splits.lock().clone();
        splits.iter().any(|split| self.carry_out_part(split))
    }

    pub(super) fn carry_out_part(&self, split: &Split) -> bool {
        let Some((part, version)) = split.take() else { return false };
        let mut under = Under { split, part, result: None };
        let range = &split.parts[part];
        // Where parts are committed one by one, a run may have no keys left.
        let left = split.plan.inputs.iter().filter(|input| version.tree.run(input.run).is_some());
        let clipped =
            left.map(|input| Input { run: input.run, range: input.range.intersection(range) });
        let inputs: Vec<Input> = clipped.collect();
        let result = self.merge_part(&split.plan, &inputs, &version);
        drop(version);
        under.result = Some(result);
        true
    }

    /// Writes what `inputs` hold. On an error nothing is left on the device.
    fn merge_part(
        &self,
        plan: &SplitPlan,
        inputs: &[Input],
        version: &Version,
    ) -> Result<PartOutput> {
        let mut output = self.output(plan.cut_bytes, plan.table.clone()).limited(plan.limited);
        let merge = || self.write_merged(plan, inputs, version, &mut output);
        match panics::as_error("a merge", merge) {
            Ok((counts, passed)) => {
                Ok(PartOutput { written: output.into_written(), counts, passed })
            }
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
        let cursor = InputCursor::new(version, inputs, &plan.tally);
        let fold = Fold::new(cursor, plan.snapshots.clone(), |_| plan.bottom)?;
        let mut fold = fold.forgetting(plan.forgets);
        let mut entries = 0;
        while let Some(entry) = fold.next_entry()? {
            output.add(entry)?;
            entries += 1;
            self.check_open(entries)?;
        }
        output.finish_table()?;
        Ok((fold.counts(), fold.walk().passed_each()))
    }

    /// The ranges in which `job` is carried out: one where it is small, or nobody could help.
    pub(super) fn parts_of(&self, reserved: &ReservedPlan, version: &Version) -> Vec<KeyRange> {
        if !self.context.progress.has_threads() {
            return Vec::new();
        }
        let steps = steps(version, &reserved.plan.inputs);
        let bytes = steps.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let count = (bytes / self.context.options.split_bytes).min(PARTS_MAX);
        cut(&steps, bytes, count)
    }
}

/// The points at which the profiles of `inputs` on storage say how much they hold: keys, ascending,
/// and the logical bytes that one of the inputs holds from there to its next such point.
fn steps(version: &Version, inputs: &[Input]) -> Vec<(Key, u64)> {
    let mut steps = Vec::new();
    for input in inputs {
        // Memory has no profiles.
        let Some(open) = version.disk_run(input.run) else { continue };
        for slice in open.run().clip(&input.range) {
            let (range, table) = (slice.range(), slice.table());
            let points = table.profile.iter().filter(|point| range.contains(&point.key));
            let keys = std::iter::once(&range.start).chain(points.map(|point| &point.key));
            let keys: Vec<&Key> = keys.collect();
            let ends = keys.iter().skip(1).map(|key| table.below(key).bytes);
            let end = range.end.as_ref().map_or(table.size.bytes, |end| table.below(end).bytes);
            let ends = ends.chain([end]);
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

/// Cuts the key space into at most `count` ranges of about equal size. All of it where `count` is
/// below 2.
fn cut(steps: &[(Key, u64)], bytes: u64, count: u64) -> Vec<KeyRange> {
    let mut parts = Vec::new();
    let (mut start, mut passed) = (Key::new(), 0);
    // The first key that the part under construction is known to hold.
    let mut first = steps.first().map(|(key, _)| key);
    for (key, step_bytes) in steps {
        let due = (parts.len() as u64 + 1) * bytes / count.max(1);
        if passed >= due && first.is_some_and(|first| key > first) {
            parts.push(KeyRange { start, end: Some(key.clone()) });
            start = key.clone();
            first = Some(key);
        }
        passed += step_bytes;
    }
    parts.push(KeyRange { start, end: None });
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        Key::copy_from_slice(&number.to_be_bytes())
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
    fn one_key_is_never_cut() {
        let steps = vec![(key(1), 1000), (key(1), 1000), (key(1), 1000)];
        assert_eq!(cut(&steps, 3000, 3), [KeyRange::ALL]);
        assert_eq!(cut(&[], 0, 0), [KeyRange::ALL]);
        assert_eq!(cut(&[(key(1), 10), (key(2), 10)], 20, 1), [KeyRange::ALL]);
    }
}
