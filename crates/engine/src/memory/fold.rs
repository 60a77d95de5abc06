//! Folding the runs in memory into one.
//!
//! The one run is what merging all of them would write, snapshots minded, cut into blocks as a
//! table would be. No answer changes by it, and the manifest does not learn of it: the log holds
//! what memory holds, folded or not.

use super::onto::Onto;
use crate::shared::Shared;
use crate::version::{Core, Failure, Held, MemoryRun, Space, Writes};
use lsmith_storage::cursor::Cursor;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::fold::Fold;
use lsmith_storage::memtable::{Folded, FoldedBuilder, Rest, Sealed};
use lsmith_storage::panics;
use lsmith_storage::read::MergingCursor;
use lsmith_storage::sync::atomic::Ordering;
use lsmith_tree::{
    AddPlace, Addition, Input, KeyRange, MergePlan, Place, Reason, RunId, Slice, Table, TreeEdit,
    apply,
};
use std::sync::Arc;

/// Entries between two looks at whether the store is closing.
const ENTRIES_PER_LOOK: u64 = 4096;

/// All runs in memory, to be folded into one.
pub(crate) struct FoldJob {
    space: Arc<Space>,
    /// Keeps plans away from them meanwhile.
    reserved: MergePlan,
    block_bytes: u64,
}

impl Core {
    /// Whether memory must be folded, and can be now: no plan takes from it.
    pub(crate) fn is_fold_due(&self) -> bool {
        let is_one = || matches!(&self.sealed[..], [held] if held.sealed.is_folded());
        self.policy.wants_blocks()
            && !self.sealed.is_empty()
            && !is_one()
            && !self.is_memory_reserved()
    }

    /// Takes part of no merge, but keeps plans away from all runs in memory.
    pub(super) fn reserve_memory(&mut self, reason: &'static str) -> MergePlan {
        let runs = self.sealed.iter().map(|held| held.run);
        let plan = MergePlan::merge(runs, Place::Oldest, Reason::new(reason, [0; 3]));
        self.reserve(plan.clone());
        plan
    }

    /// All writes that went into `runs`.
    pub(crate) fn writes_of<'a>(
        &self,
        runs: impl IntoIterator<Item = &'a RunId>,
    ) -> Option<Writes> {
        let held = |run: &RunId| self.sealed.iter().find(|held| held.run == *run);
        let writes = runs.into_iter().filter_map(held).map(|held| held.writes);
        writes.reduce(Writes::with)
    }
}

impl Shared {
    /// Reserves the folding of memory, if it is due.
    pub(crate) fn next_fold(&self, space: &Arc<Space>, core: &mut Core) -> Option<FoldJob> {
        core.is_fold_due().then(|| FoldJob {
            space: Arc::clone(space),
            block_bytes: core.view.block_bytes,
            reserved: core.reserve_memory("memory is folded into one run"),
        })
    }

    /// Folds, and puts what comes out in the place of what went in.
    pub(crate) fn run_fold(&self, job: &FoldJob) {
        let version = job.space.version.load_full();
        let runs: Vec<RunId> = job.reserved.inputs.iter().map(|input| input.run).collect();
        let sources: Vec<_> = runs.iter().filter_map(|run| version.memory_run(*run)).collect();
        let fold = || match &sources[..] {
            [] => Ok(None),
            [newest, older @ ..] => {
                let (cursor, bytes) = (newest.cursor(&KeyRange::ALL), newest.run().bytes());
                self.fold_over(Newest { cursor, bytes }, older, job.block_bytes)
            }
        };
        let folded = panics::as_error("folding memory", fold);
        // While the manifest is written nothing happens to memory but that memtables are sealed.
        let _committing = job.space.committing.lock();
        let mut core = job.space.core.lock();
        core.release(&job.reserved);
        match folded {
            Ok(folded) => {
                if let Some(writes) = core.writes_of(&runs) {
                    let place = AddPlace::Above(runs[0]);
                    let step = self.one_step();
                    core.replace_memory(&runs, Replacement { folded, writes, place });
                    job.space.publish(&core);
                    step.over();
                }
            }
            Err(error) if error.kind() == ErrorKind::Panicked => {
                tracing::error!(keyspace = job.space.name, %error, "memory could not be folded");
                core.block(Failure::for_good(job.reserved.clone(), error));
            }
            // The store closes.
            Err(_) => return,
        }
        job.space.gate.note(&core);
    }

    /// What merging `newest` and the `older` runs, newest first, comes to.
    pub(crate) fn fold_over(
        &self,
        newest: Newest,
        older: &[&Arc<MemoryRun>],
        block_bytes: u64,
    ) -> Result<Option<(Folded, Table)>> {
        if let [old] = older
            && let Some(folded) = shareable(newest.bytes, old)
        {
            return self.fold_onto(newest.cursor, folded, block_bytes);
        }
        let older = older.iter().map(|memory| memory.cursor(&KeyRange::ALL));
        self.fold(std::iter::once(newest.cursor).chain(older).collect(), block_bytes)
    }

    /// What merging `sources`, newest first, comes to.
    fn fold(
        &self,
        sources: Vec<Box<dyn Cursor>>,
        block_bytes: u64,
    ) -> Result<Option<(Folded, Table)>> {
        // Taken after the inputs were fixed: a later snapshot sees the newest of all of them.
        let snapshots = self.snapshots.newest_first();
        let mut fold = Fold::new(MergingCursor::new(sources), snapshots, |_| false)?;
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let mut builder = FoldedBuilder::new(number, block_bytes);
        let mut entries = 0;
        while let Some(entry) = fold.next_entry()? {
            builder.add(entry);
            entries += 1;
            if entries % ENTRIES_PER_LOOK == 0 && self.closing.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Io, "the store is closing"));
            }
        }
        Ok(builder.finish())
    }

    /// The same as [`fold`](Shared::fold) of `new` over what is left of folded memory, which stays
    /// where it is but for the keys that `new` has too.
    fn fold_onto(
        &self,
        new: Box<dyn Cursor>,
        (folded, rest): (&Arc<Folded>, Rest),
        block_bytes: u64,
    ) -> Result<Option<(Folded, Table)>> {
        let snapshots = self.snapshots.newest_first();
        let onto = Onto::new(new, rest);
        let mut fold = Fold::new(onto, snapshots, |_| false)?;
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let mut builder = FoldedBuilder::new(number, block_bytes);
        builder.share(folded);
        loop {
            let (rest, bound) = fold.walk_mut().left();
            builder.keep_below(rest, bound);
            if !fold.walk_mut().go_on() {
                return Ok(builder.finish());
            }
            while let Some(entry) = fold.next_entry()? {
                builder.add(entry);
            }
        }
    }
}

/// The newest of what is folded.
pub(crate) struct Newest {
    pub(crate) cursor: Box<dyn Cursor>,
    /// Its logical bytes.
    pub(crate) bytes: u64,
}

/// What is left of `old`, if its chunks are to be shared: it must be folded, without versions to be
/// forgotten meanwhile, and most of what its chunks hold must be in use.
fn shareable(new_bytes: u64, old: &MemoryRun) -> Option<(&Arc<Folded>, Rest)> {
    let (folded, rest) = old.folded()?;
    let in_use = old.run().bytes() + new_bytes;
    let shares = !folded.has_versions() && folded.chunk_bytes() <= 2 * in_use;
    shares.then_some((folded, rest))
}

/// What stands in the place of runs in memory.
pub(crate) struct Replacement {
    /// `None` where all entries have cancelled.
    pub(crate) folded: Option<(Folded, Table)>,
    /// The writes that went into it.
    pub(crate) writes: Writes,
    pub(crate) place: AddPlace,
}

impl Core {
    /// Puts `new` in the place of the `old` runs, which are the oldest in memory.
    pub(crate) fn replace_memory(&mut self, old: &[RunId], new: Replacement) {
        let Replacement { folded, writes, place } = new;
        let mut edit = TreeEdit::default();
        edit.remove.extend(old.iter().copied().map(Input::all));
        self.sealed.retain(|held| !old.contains(&held.run));
        let run = self.view.tree.next_run();
        match folded {
            Some((folded, table)) => {
                let table = Table { seq_min: writes.oldest, seq_max: writes.newest, ..table };
                let slices = vec![Slice::whole(table)];
                edit.add.push(Addition { run, place, knot: None, slices });
                let sealed = Sealed::Folded(Arc::new(folded));
                self.sealed.push(Held { run, sealed, writes });
            }
            None => {
                let before = self.vanished.take();
                self.vanished = Some(before.map_or(writes, |before| before.with(writes)));
            }
        }
        apply(&mut self.view.tree, &edit).expect("memory is what the tree says");
    }
}
