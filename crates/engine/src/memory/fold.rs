//! Folds the runs in memory into one run.
//!
//! The folded run holds the entries that a merge of all runs would write, versions for snapshots
//! included. It is cut into blocks as a table would be. Folding changes no answer. The manifest
//! does not record it, because the log holds the entries of memory, folded or not.
//!
//! Entries under range deletes stay. A range delete is forgotten once nothing lies under it any
//! more. If an entry had left memory before that, but not the log, replay would bring it back.

use super::onto::Onto;
use crate::context::Context;
use crate::keyspace::{Failure, KeyspaceShared, KeyspaceState, Replacement};
use crate::stats::add;
use crate::version::MemoryRun;
use lsmith_storage::cursor::Cursor;
use lsmith_storage::error::{ErrorKind, Result};
use lsmith_storage::fold::{Fold, Hiding, Operators};
use lsmith_storage::memtable::{Folded, FoldedBuilder, FoldedRest};
use lsmith_storage::panics;
use lsmith_storage::read::MergingCursor;
use lsmith_tree::{AddPlace, KeyRange, MergePlan, RangeDeletes, RunId, Size, Table};
use std::sync::Arc;

/// Entries between two checks whether the store is closing.
const ENTRIES_PER_CHECK: u64 = 4096;

/// The reserved folding of all runs in memory.
pub(crate) struct ReservedFold {
    keyspace: Arc<KeyspaceShared>,
    /// Reserves the runs, so that no plan takes from them.
    reserved: MergePlan,
    block_bytes: u64,
}

impl ReservedFold {
    /// Reserves the runs in memory of `keyspace` for folding, if that is due.
    pub(crate) fn next(keyspace: &Arc<KeyspaceShared>, state: &mut KeyspaceState) -> Option<Self> {
        state.is_fold_due().then(|| ReservedFold {
            keyspace: Arc::clone(keyspace),
            block_bytes: state.view.block_bytes,
            reserved: state.reserve_memory("memory is folded into one run"),
        })
    }

    /// Folds the runs, and replaces them by the folded run.
    pub(crate) fn carry_out(&self, context: &Context) {
        let version = self.keyspace.version.load_full();
        let runs: Vec<RunId> = self.reserved.inputs.iter().map(|input| input.run).collect();
        let sources: Vec<_> = runs.iter().filter_map(|run| version.memory_run(*run)).collect();
        let fold = || match &sources[..] {
            [] => Ok(None),
            [newest, older @ ..] => {
                let cursor = newest.cursor(&KeyRange::ALL);
                let newest = NewestRun { cursor, size: newest.run().size() };
                let operators = self.keyspace.memory_operators();
                let hiding = Hiding::keeping(version.all_range_deletes());
                let block_bytes = self.block_bytes;
                let folding = Folding { context, operators, hiding, block_bytes };
                fold_over(&folding, newest, older)
            }
        };
        let folded = panics::as_error("folding memory", fold);
        drop(sources);
        // Dropped before the runs are released, so that callers who wait for rest find the files of
        // obsolete tables removed.
        drop(version);
        // While another thread commits, memory may only gain sealed memtables.
        let _committing = self.keyspace.committing.lock();
        let mut state = self.keyspace.state.lock();
        state.release(&self.reserved);
        match folded {
            Ok(folded) => {
                if let Some(writes) = state.writes_of(&runs) {
                    let place = AddPlace::Above(runs[0]);
                    let step = context.one_step();
                    let range_deletes = RangeDeletes::default();
                    let new = Replacement { folded, writes, place, range_deletes };
                    state.replace_memory(&runs, new);
                    self.keyspace.publish(&state);
                    step.over();
                }
            }
            Err(error) if error.kind() == ErrorKind::Panicked => {
                let keyspace = &self.keyspace.name;
                tracing::error!(
                    %keyspace,
                    error = %format_args!("{error:#}"),
                    "memory could not be folded"
                );
                state.block(Failure::for_good(self.reserved.clone(), error));
            }
            // The store is closing.
            Err(_) => return,
        }
        self.keyspace.gate.note(&state);
    }
}

/// Folds `newest` and the `older` runs, newest first. Returns the folded run and its table, or
/// `None` if all entries have cancelled each other.
///
/// # Errors
/// Fails if the store is closing.
pub(super) fn fold_over(
    folding: &Folding<'_>,
    newest: NewestRun,
    older: &[&Arc<MemoryRun>],
) -> Result<Option<(Folded, Table)>> {
    let rest = match older {
        [] => Some((FoldedRest::default(), true)),
        [old] => single_versions(newest.size.bytes, old),
        _ => None,
    };
    if let Some(rest) = rest {
        return fold_onto(folding, newest, rest);
    }
    let older = older.iter().map(|memory| memory.cursor(&KeyRange::ALL));
    fold(folding, std::iter::once(newest.cursor).chain(older).collect())
}

/// Folds `sources`, newest first, into a new run. Returns and fails as [`fold_over`] does.
fn fold(folding: &Folding<'_>, sources: Vec<Box<dyn Cursor>>) -> Result<Option<(Folded, Table)>> {
    let Folding { context, operators, hiding, block_bytes } = folding;
    // Read after the inputs were fixed: a later snapshot sees the newest versions of all of them.
    let snapshots = context.snapshots.newest_first();
    let fold = Fold::new(MergingCursor::new(sources), snapshots, |_| false)?;
    let mut fold = fold.combining(operators.clone()).hiding(hiding.clone());
    let table_id = context.new_file_id();
    let mut builder = FoldedBuilder::new(table_id, *block_bytes);
    let mut entries = 0;
    while let Some(entry) = fold.next_entry()? {
        builder.add(entry);
        entries += 1;
        if entries % ENTRIES_PER_CHECK == 0 {
            context.check_open()?;
        }
    }
    add(&context.counts.entries_folded, builder.folded_entries());
    Ok(builder.finish(None))
}

/// Folds `new` over `rest`, the visible rest of a folded run. If `shares` is true, the entries of
/// that run stay in its chunks, except where `new` has the same keys.
fn fold_onto(
    folding: &Folding<'_>,
    new: NewestRun,
    (rest, shares): (FoldedRest, bool),
) -> Result<Option<(Folded, Table)>> {
    let Folding { context, operators, hiding, block_bytes } = folding;
    let snapshots = context.snapshots.newest_first();
    let table_id = context.new_file_id();
    let mut builder = FoldedBuilder::new(table_id, *block_bytes);
    if shares {
        builder.share(&rest, new.size.entries as usize);
    }
    let onto = Onto::new(new.cursor, rest);
    let fold = Fold::new(onto, snapshots, |_| false)?.combining(operators.clone());
    let mut fold = fold.hiding(hiding.clone());
    loop {
        fold.walk_mut().add_single(&mut builder)?;
        if !fold.walk_mut().next_key() {
            add(&context.counts.entries_folded, builder.folded_entries());
            return Ok(builder.finish(Some(fold.walk().rest())));
        }
        while let Some(entry) = fold.next_entry()? {
            builder.add(entry);
        }
    }
}

/// What every folding needs.
pub(super) struct Folding<'a> {
    pub(super) context: &'a Context,
    pub(super) operators: Option<Operators>,
    /// The range deletes. Combines on both sides of one stay apart.
    pub(super) hiding: Hiding,
    pub(super) block_bytes: u64,
}

/// The newest run of a folding.
pub(crate) struct NewestRun {
    pub(crate) cursor: Box<dyn Cursor>,
    /// The size of the run.
    pub(crate) size: Size,
}

/// Returns the visible rest of the folded run in `old`, and whether its entries may stay in their
/// chunks. At least half of the bytes there must be in use, with `new_bytes` counted as used.
/// Returns `None` if the run is not folded, or keys have several versions.
fn single_versions(new_bytes: u64, old: &MemoryRun) -> Option<(FoldedRest, bool)> {
    let (folded, rest) = old.folded()?;
    let in_use = old.run().bytes() + new_bytes;
    (!folded.has_versions()).then(|| (rest, folded.chunk_bytes() <= 2 * in_use))
}
