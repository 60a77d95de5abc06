//! Folding the runs in memory into one.
//!
//! The one run is what merging all of them would write, snapshots minded, cut into blocks as a
//! table would be. No answer changes by it, and the manifest does not learn of it: the log holds
//! what memory holds, folded or not.

use super::onto::Onto;
use crate::context::Context;
use crate::keyspace::{Failure, KeyspaceShared, KeyspaceState, Replacement};
use crate::version::MemoryRun;
use lsmith_storage::cursor::Cursor;
use lsmith_storage::error::{ErrorKind, Result};
use lsmith_storage::fold::Fold;
use lsmith_storage::memtable::{Folded, FoldedBuilder, FoldedRest};
use lsmith_storage::panics;
use lsmith_storage::read::MergingCursor;
use lsmith_tree::{AddPlace, KeyRange, MergePlan, RunId, Table};
use std::sync::Arc;

/// Entries between two looks at whether the store is closing.
const ENTRIES_PER_LOOK: u64 = 4096;

/// All runs in memory, to be folded into one.
pub(crate) struct ReservedFold {
    keyspace: Arc<KeyspaceShared>,
    /// Keeps plans away from them meanwhile.
    reserved: MergePlan,
    block_bytes: u64,
}

impl ReservedFold {
    /// Reserves the folding of memory, if it is due.
    pub(crate) fn next(keyspace: &Arc<KeyspaceShared>, state: &mut KeyspaceState) -> Option<Self> {
        state.is_fold_due().then(|| ReservedFold {
            keyspace: Arc::clone(keyspace),
            block_bytes: state.view.block_bytes,
            reserved: state.reserve_memory("memory is folded into one run"),
        })
    }

    /// Folds, and puts what comes out in the place of what went in.
    pub(crate) fn carry_out(&self, context: &Context) {
        let version = self.keyspace.version.load_full();
        let runs: Vec<RunId> = self.reserved.inputs.iter().map(|input| input.run).collect();
        let sources: Vec<_> = runs.iter().filter_map(|run| version.memory_run(*run)).collect();
        let fold = || match &sources[..] {
            [] => Ok(None),
            [newest, older @ ..] => {
                let (cursor, bytes) = (newest.cursor(&KeyRange::ALL), newest.run().bytes());
                fold_over(context, Newest { cursor, bytes }, older, self.block_bytes)
            }
        };
        let folded = panics::as_error("folding memory", fold);
        // While the manifest is written nothing happens to memory but that memtables are sealed.
        let _committing = self.keyspace.committing.lock();
        let mut state = self.keyspace.state.lock();
        state.release(&self.reserved);
        match folded {
            Ok(folded) => {
                if let Some(writes) = state.writes_of(&runs) {
                    let place = AddPlace::Above(runs[0]);
                    let step = context.one_step();
                    state.replace_memory(&runs, Replacement { folded, writes, place });
                    self.keyspace.publish(&state);
                    step.over();
                }
            }
            Err(error) if error.kind() == ErrorKind::Panicked => {
                let keyspace = &self.keyspace.name;
                tracing::error!(keyspace, %error, "memory could not be folded");
                state.block(Failure::for_good(self.reserved.clone(), error));
            }
            // The store closes.
            Err(_) => return,
        }
        self.keyspace.gate.note(&state);
    }
}

/// What merging `newest` and the `older` runs, newest first, comes to.
pub(super) fn fold_over(
    context: &Context,
    newest: Newest,
    older: &[&Arc<MemoryRun>],
    block_bytes: u64,
) -> Result<Option<(Folded, Table)>> {
    if let [old] = older
        && let Some(folded) = shareable(newest.bytes, old)
    {
        return fold_onto(context, newest.cursor, folded, block_bytes);
    }
    let older = older.iter().map(|memory| memory.cursor(&KeyRange::ALL));
    fold(context, std::iter::once(newest.cursor).chain(older).collect(), block_bytes)
}

/// What merging `sources`, newest first, comes to.
fn fold(
    context: &Context,
    sources: Vec<Box<dyn Cursor>>,
    block_bytes: u64,
) -> Result<Option<(Folded, Table)>> {
    // Taken after the inputs were fixed: a later snapshot sees the newest of all of them.
    let snapshots = context.snapshots.newest_first();
    let mut fold = Fold::new(MergingCursor::new(sources), snapshots, |_| false)?;
    let number = context.new_number();
    let mut builder = FoldedBuilder::new(number, block_bytes);
    let mut entries = 0;
    while let Some(entry) = fold.next_entry()? {
        builder.add(entry);
        entries += 1;
        if entries % ENTRIES_PER_LOOK == 0 {
            context.check_open()?;
        }
    }
    Ok(builder.finish())
}

/// The same as [`fold`] of `new` over what is left of folded memory, which stays
/// where it is but for the keys that `new` has too.
fn fold_onto(
    context: &Context,
    new: Box<dyn Cursor>,
    (folded, rest): (&Arc<Folded>, FoldedRest),
    block_bytes: u64,
) -> Result<Option<(Folded, Table)>> {
    let snapshots = context.snapshots.newest_first();
    let onto = Onto::new(new, rest);
    let mut fold = Fold::new(onto, snapshots, |_| false)?;
    let number = context.new_number();
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

/// The newest of what is folded.
pub(crate) struct Newest {
    pub(crate) cursor: Box<dyn Cursor>,
    /// Its logical bytes.
    pub(crate) bytes: u64,
}

/// What is left of `old`, if its chunks are to be shared: it must be folded, without versions to be
/// forgotten meanwhile, and most of what its chunks hold must be in use.
fn shareable(new_bytes: u64, old: &MemoryRun) -> Option<(&Arc<Folded>, FoldedRest)> {
    let (folded, rest) = old.folded()?;
    let in_use = old.run().bytes() + new_bytes;
    let shares = !folded.has_versions() && folded.chunk_bytes() <= 2 * in_use;
    shares.then_some((folded, rest))
}
