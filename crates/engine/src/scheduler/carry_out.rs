//! Carries reserved work out, and commits it or gives it up.

use super::{Scheduler, Work};
use crate::keyspace::{Failure, Request};
use crate::merge::{PlanPart, ReservedPlan};
use crate::stats::add;
use crate::threads::LOOK_AGAIN;
use crate::version::Version;
use lsmith_storage::env::SyncReach;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::log::LogWriter;
use lsmith_storage::panics;
use std::sync::Arc;

impl Scheduler {
    /// Syncs `logs`, then does `work`.
    pub(super) fn do_work(&self, work: Work, logs: &[Arc<LogWriter>]) {
        let sync = || self.wal.sync(logs, SyncReach::Data);
        match work {
            Work::Merge(reserved, version) => self.merge(reserved, version, sync),
            Work::Fold(reserved) => reserved.carry_out(&self.context),
            Work::Spill(reserved) => {
                let synced = panics::as_error("syncing the log", sync);
                reserved.carry_out(&self.context, &self.manifest, synced);
            }
        }
        self.keyspaces.balance_memory();
        self.context.progress.notify();
    }

    /// Calls `sync`, carries `reserved` out and commits it. Gives it up if any of that fails.
    fn merge(
        &self,
        mut reserved: ReservedPlan,
        version: Arc<Version>,
        sync: impl FnOnce() -> Result<()>,
    ) {
        let options = &self.context.options;
        let keyspace = &reserved.keyspace.name;
        let plan = &reserved.plan;
        // `{:#}` names no keys: others may read log lines.
        let span = tracing::info_span!(
            "merge",
            %keyspace,
            plan = %format_args!("{plan:#}"),
            reason = %plan.reason
        );
        let _span = span.entered();
        let mut free_bytes = 0;
        let result = panics::catch(|| {
            let timer = self.context.timer();
            free_bytes = options.env.free_bytes(&options.dir).unwrap_or(0);
            sync()?;
            self.merge_and_commit(&mut reserved, version)?;
            timer.end(|recorders| &recorders.merge_nanos);
            Ok(())
        });
        match result {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.give_up(&reserved, error, free_bytes),
            // In lockstep a panic of the policy or the observer during the commit reaches the
            // writer.
            Err(panic) if options.lockstep => {
                reserved.keyspace.state.lock().release(&reserved.plan);
                panic.resume()
            }
            Err(panic) => self.give_up(&reserved, panic.of("a merge"), free_bytes),
        }
    }

    /// Carries `reserved` out and commits it, as a whole or part by part.
    fn merge_and_commit(&self, reserved: &mut ReservedPlan, version: Arc<Version>) -> Result<()> {
        tracing::debug!("a merge begins");
        reserved.kept = reserved.tables_kept(self.context.options.keep_tables, &version);
        if let Some(parts) = self.merger.parts_to_commit(reserved, &version) {
            let commit =
                &mut |reserved: &mut _, part, output| self.committer.commit(reserved, part, output);
            return self.merger.merge_by_part(reserved, version, parts, commit);
        }
        let output = self.merger.execute(reserved, &version)?;
        // Dropped before the plan is released, so that callers who wait for rest find the files of
        // obsolete tables removed.
        drop(version);
        let part = PlanPart { plan: reserved.plan.clone(), end: None, waiting_bytes: 0 };
        self.committer.commit(reserved, part, output).map(drop)
    }

    /// Blocks the plan of `reserved`, which failed with `error`, until the cause is gone. The
    /// device had `free_bytes` when the plan began.
    fn give_up(&self, reserved: &ReservedPlan, error: Error, free_bytes: u64) {
        let ReservedPlan { keyspace, plan, .. } = reserved;
        let mut state = keyspace.state.lock();
        state.release(plan);
        if self.context.is_closing() || keyspace.is_halted() {
            return;
        }
        add(&self.context.counts.plans_failed, 1);
        tracing::warn!(
            keyspace = %keyspace.name,
            plan = %format_args!("{plan:#}"),
            error = %format_args!("{error:#}"),
            "a merge was given up"
        );
        let runs = plan.inputs.iter().filter_map(|input| state.view.tree.run(input.run));
        let input_bytes: u64 = runs.map(|(_, run)| run.bytes()).sum();
        let options = &self.context.options;
        // Every thread writes a part, and the space of finished inputs is freed a little later.
        let parts = options.threads as u64 + 2;
        let bytes = reserved.part_bytes.map_or(input_bytes, |part| input_bytes.min(part * parts));
        if reserved.by_hand {
            state.ask(Request::Merge);
        }
        let wait = LOOK_AGAIN * (1 << state.failed_in_row.min(10));
        state.failed_in_row += 1;
        state.block(Failure {
            plan: plan.clone(),
            error,
            needs_bytes: bytes + bytes / 16 + (64 << 10),
            free_bytes,
            retry_at: options.env.now() + wait,
        });
        keyspace.gate.note(&state);
    }
}
