//! How a keyspace is cleared: all entries written before one moment go at that moment.
//!
//! 1. Plans under way are given up, and no new one begins.
//! 2. Under the writer's lock the clearing takes the next sequence number, with an empty batch in
//!    the log, which is synced. So everything written before it survives if it does.
//! 3. An edit removes the keys of the keyspace from all runs, also in memory. The same record of
//!    the manifest says that the log is not needed for earlier writes to these keys.
//! 4. Snapshots from before go on reading the version from before.

use super::WritePath;
use crate::context::read_only;
use crate::group::Member;
use crate::keyspace::{KeyspaceShared, KeyspaceState, Request};
use crate::manifest::{Mark, Record};
use crate::memory::{remove_spill, seal};
use crate::version::Version;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::{Input, KeyRange, SeqNo, TreeEdit};
use std::sync::Arc;

impl WritePath {
    /// Removes all entries of `keyspace`, or of `member` if `keyspace` is a group.
    ///
    /// # Errors
    /// As [`Keyspace::clear`](crate::Keyspace::clear).
    pub(crate) fn clear(&self, keyspace: &KeyspaceShared, member: Option<&Member>) -> Result<()> {
        self.context.check_writable()?;
        let halt = keyspace.halt(&self.context)?;
        let mut guard = self.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        self.context.check_writable()?;
        keyspace.state.lock().check_kept(keyspace)?;
        let seq = self.take_seqs(writer, SeqNo(0))?;
        let old = self.commit_cleared(keyspace, member, seq)?;
        drop(halt);
        self.scheduler.after_seal(writer);
        self.wal.leave_log(writer);
        drop(guard);
        self.wal.retire_logs();
        // The files of the tables go here, outside of the locks, unless someone reads them.
        drop(old);
        self.context.leftovers.drop_all();
        Ok(())
    }

    /// Clears `keyspace` with sequence number `seq`. Returns the version from before. The caller
    /// holds the writer's lock, so nothing is written or sealed meanwhile.
    fn commit_cleared(
        &self,
        keyspace: &KeyspaceShared,
        member: Option<&Member>,
        seq: SeqNo,
    ) -> Result<Arc<Version>> {
        let context = &*self.context;
        let _committing = keyspace.committing.lock();
        let mut state = keyspace.state.lock();
        seal(context, keyspace, &mut state);
        let edit = clearing(&state, member.map_or(KeyRange::ALL, Member::range), seq);
        let mut coming = state.view.tree.clone();
        edit.clone().apply_to(&mut coming).map_err(|error| {
            let message = format!("the keyspace cannot be cleared: {error}");
            Error::new(ErrorKind::Corruption, message).at(&context.options.dir)
        })?;
        let (flushed_seq, taken) = match member {
            None => (seq, Vec::new()),
            Some(member) => (SeqNo(0), vec![Mark { range: member.range(), newest: seq }]),
        };
        let durable = edit.durable(&state.view.tree);
        let record = Record::Edit { keyspace: keyspace.id, flushed_seq, taken, edit: durable };
        let after = self.committer.write_apart(&mut state, coming, record)?;
        let step = context.one_step();
        state.view.tree = after;
        state.forget_range_deletes(seq);
        let spill = state.forget_cleared(flushed_seq);
        let old = keyspace.version.load_full();
        let new = Arc::new(state.version(Some(&old)));
        context.snapshots.show_arrival(seq, &context.visible, keyspace.id, &old, || {
            keyspace.version.store(Arc::clone(&new));
        });
        step.over();
        state.let_go(&old, &edit, &new);
        remove_spill(context, spill);
        keyspace.gate.note(&state);
        Ok(old)
    }
}

/// Returns the edit that removes the keys in `range` from all runs, at sequence number `seq`.
fn clearing(state: &KeyspaceState, range: KeyRange, seq: SeqNo) -> TreeEdit {
    let runs = state.view.tree.runs().filter(|(_, run)| !run.overlapping(&range).is_empty());
    let input =
        |(_, run): (_, &Arc<lsmith_tree::Run>)| Input { run: run.id(), range: range.clone() };
    TreeEdit {
        remove: runs.map(input).collect(),
        // Replay skips all range deletes up to `seq`, also in other keyspaces of the group.
        range_deletes: state.range_deletes_upto(seq),
        forget: vec![(range.clone(), seq)],
        // Entries from outside that are older than the clearing would come back.
        dropped_below: seq,
        ..TreeEdit::default()
    }
}

impl KeyspaceState {
    /// Forgets memory that the tree no longer has, and plans that failed. All writes up to sequence
    /// number `flushed_seq` have left memory. Returns the spill that is not needed any more.
    fn forget_cleared(&mut self, flushed_seq: SeqNo) -> Option<crate::manifest::Spill> {
        let tree = &self.view.tree;
        self.sealed.retain(|sealed| tree.run(sealed.run).is_some());
        if self.sealed.is_empty() {
            self.requests.withdraw(Request::Flush);
        }
        self.vanished = self.vanished.filter(|writes| flushed_seq < writes.newest);
        let unneeded = self.spill.filter(|spill| spill.newest <= flushed_seq);
        self.spill = self.spill.filter(|_| unneeded.is_none());
        self.unblock(|_| false);
        unneeded
    }
}
