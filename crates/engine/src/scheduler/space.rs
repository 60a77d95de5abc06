//! Merges that are made because writers wait for space.

use super::Scheduler;
use super::propose::{FOR_SPACE, merge_for_space};
use crate::keyspace::{Failure, KeyspaceState, Request};
use crate::memory::seal;
use crate::space::{SpaceLimit, is_worth};
use crate::wal::WalWriter;
use lsmith_storage::error::Error;
use lsmith_tree::SeqNo;

impl Scheduler {
    /// Returns true if space may become free: merges are under way or to come, or the keyspace in
    /// which a merge of all runs on storage frees most was asked for one.
    pub(crate) fn reclaim_space(&self) -> bool {
        let keyspaces = self.keyspaces.all();
        let mut most = None;
        for keyspace in &keyspaces {
            let mut state = keyspace.state.lock();
            if state.is_dropped {
                continue;
            }
            state.retry_failures(&self.context);
            if !state.failures.is_empty() {
                let is_for_space = |failure: &Failure| failure.plan.reason.rule() == FOR_SPACE;
                if !state.failures.iter().all(Failure::is_full)
                    || state.failures.iter().any(is_for_space)
                {
                    continue;
                }
                // No merge frees space for a flush that does not fit.
                if state.view.tree.disk_run_count() == 0 {
                    continue;
                }
                // What the policy wants does not fit as a whole. This is made part by part.
                state.unblock(|_| false);
                state.ask(Request::Reclaim);
                drop(state);
                self.context.progress.notify();
                return true;
            }
            let is_to_work = !state.at_rest && !self.context.options.lockstep;
            if state.is_busy() || is_to_work {
                return true;
            }
            let (_, snapshots) = self.context.readers();
            let freed = may_free(&state, snapshots.last().copied());
            if freed > most.map_or(0, |(most, _)| most) {
                most = Some((freed, keyspace));
            }
        }
        let Some((_, keyspace)) = most else {
            let kept_for = self.context.readers().1.last().copied();
            keyspaces.iter().for_each(|keyspace| keyspace.state.lock().kept_for = kept_for);
            return false;
        };
        let mut state = keyspace.state.lock();
        state.kept_for = None;
        state.ask(Request::Reclaim);
        drop(state);
        self.context.progress.notify();
        true
    }

    /// Returns why writers wait for space in vain: a merge that did not fit, or the limit `space`.
    pub(crate) fn no_space(&self, space: &SpaceLimit) -> Error {
        let keyspaces = self.keyspaces.all();
        let mut failures = keyspaces.iter().filter_map(|keyspace| {
            let state = keyspace.state.lock();
            state.failures.iter().find(|failure| failure.is_full()).map(Failure::to_error)
        });
        failures.next().unwrap_or_else(|| space.error(&self.context.options.dir))
    }

    /// Seals and flushes all memtables that hold anything, while other writers are kept out.
    /// Returns false if there are none, or if merges have failed.
    pub(crate) fn flush_for_space(&self, writer: &mut WalWriter) -> bool {
        let mut any = false;
        for keyspace in self.keyspaces.all() {
            let mut state = keyspace.state.lock();
            if state.is_dropped || !state.failures.is_empty() || state.active.memtable.is_empty() {
                continue;
            }
            seal(&self.context, &keyspace, &mut state);
            state.ask(Request::Flush);
            any = true;
        }
        if any {
            self.after_seal(writer);
        }
        any
    }
}

/// Returns the logical bytes that a merge of all runs on storage may free: entries of newer runs
/// hide as many in older ones, and a tombstone hides an entry. 0 if it is not worth it.
///
/// Any entry may be hidden by a range delete, unless the oldest snapshot, `shown`, shows it. If
/// writers have waited in vain while a snapshot kept old versions, any entry may be one of them
/// once it is gone.
fn may_free(state: &KeyspaceState, shown: Option<SeqNo>) -> u64 {
    let tree = &state.view.tree;
    let runs: Vec<_> = tree.disk_runs().collect();
    let Some((oldest, newer)) = runs.split_last() else { return 0 };
    let size = oldest.size();
    let of_entry = size.bytes / size.entries.max(1);
    let hides = |bytes: u64, tombstones: u64| bytes + tombstones * of_entry;
    let freed = newer.iter().map(|run| hides(run.bytes(), run.size().tombstones)).sum::<u64>();
    let bytes = runs.iter().map(|run| run.bytes()).sum();
    // With a snapshot, range deletes outlive the merge, and would be worth another one for ever.
    let is_hidden = shown.is_none() && !tree.range_deletes().is_empty();
    let is_let_go = state.kept_for.is_some_and(|kept| shown.is_none_or(|shown| shown > kept));
    let may_be_any = is_hidden || is_let_go;
    let freed = if may_be_any { bytes } else { freed };
    let is_worth = is_worth(freed, bytes) && merge_for_space(state).is_some();
    if is_worth { freed } else { 0 }
}
