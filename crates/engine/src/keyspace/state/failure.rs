//! Plans that failed, and the conditions to try them again.

use super::KeyspaceState;
use crate::context::Context;
use lsmith_storage::env::is_too_many_files;
use lsmith_storage::error::{Error, ErrorKind};
use lsmith_tree::{MergePlan, Reservation, ReservationState};
use std::time::Duration;

/// A plan that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) plan: MergePlan,
    /// The reason.
    pub(crate) error: Error,
    /// Bytes that must be free on the device before another try.
    pub(crate) needs_bytes: u64,
    /// Bytes that were free on the device when the plan began.
    pub(crate) free_bytes: u64,
    /// The time of another try even if no more bytes are free than before.
    pub(crate) retry_at: Duration,
}

impl Failure {
    /// Returns the failure of a `plan` that is not tried again before `Store::retry`.
    pub(crate) fn for_good(plan: MergePlan, error: Error) -> Failure {
        Failure { plan, error, needs_bytes: 0, free_bytes: 0, retry_at: Duration::ZERO }
    }

    /// Returns the error for writers that would have to wait for this plan. It names the way out.
    pub(crate) fn to_error(&self) -> Error {
        let until = match self.error.kind() {
            ErrorKind::Full => "there is room",
            ErrorKind::Corruption => "`Keyspace::clear` or a repair",
            _ => "`Store::retry`",
        };
        self.error.said_again(&format!("writes are refused until {until}: a merge failed: "))
    }

    /// Returns true if the plan failed because the device was full.
    pub(crate) fn is_full(&self) -> bool {
        self.error.kind() == ErrorKind::Full
    }

    /// Returns true if the plan failed because too many files were open.
    fn is_crowded(&self) -> bool {
        self.error.io_error().is_some_and(is_too_many_files)
    }

    /// Returns true if the cause may go by itself. The plan is then tried again.
    fn may_pass(&self) -> bool {
        self.is_full() || self.is_crowded()
    }
}

impl KeyspaceState {
    /// Adds `failure`, and reserves its plan as blocked, so that it is not tried at once again.
    pub(crate) fn block(&mut self, failure: Failure) {
        let plan = failure.plan.clone();
        let state = ReservationState::Blocked;
        self.view.reservations.push(Reservation { plan, state });
        self.failures.push(failure);
        self.at_rest = false;
    }

    /// Removes the failures for which `stays` returns false, so that their plans are tried again.
    pub(crate) fn unblock(&mut self, stays: impl Fn(&Failure) -> bool) {
        self.failures.retain(stays);
        let failures = &self.failures;
        self.view.reservations.retain(|reservation| {
            reservation.state == ReservationState::UnderWay
                || failures.iter().any(|failure| failure.plan == reservation.plan)
        });
        self.at_rest = false;
    }

    /// Unblocks plans that failed because the device was full, if the bytes that they need are free
    /// now. A plan for which no more bytes are free than before waits for its `retry_at`, because
    /// the store may be unable to use those bytes. So does a plan that failed because too many
    /// files were open. Returns true if a plan was unblocked.
    pub(crate) fn retry_failures(&mut self, context: &Context) -> bool {
        if !self.failures.iter().any(Failure::may_pass) {
            return false;
        }
        let options = &context.options;
        let Ok(free) = options.env.free_bytes(&options.dir) else { return false };
        let now = options.env.now();
        let waits = |failure: &Failure| {
            if failure.is_crowded() {
                return now < failure.retry_at;
            }
            let hopeful = free > failure.free_bytes || now >= failure.retry_at;
            !failure.is_full() || failure.needs_bytes > free || !hopeful
        };
        let any = !self.failures.iter().all(waits);
        if any {
            self.unblock(waits);
            context.progress.notify();
        }
        any
    }

    /// Unblocks plans that failed because too many files were open, for a caller who asks for work.
    pub(crate) fn retry_crowded(&mut self) {
        if self.failures.iter().any(Failure::is_crowded) {
            self.unblock(|failure| !failure.is_crowded());
        }
    }

    /// Returns an error if a failed plan, or a panic of the policy, keeps the keyspace from coming
    /// to rest.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.failures.first().map(Failure::to_error).or_else(|| self.policy_trouble())
    }

    /// Returns an error if the policy has panicked on a merging thread.
    pub(crate) fn policy_trouble(&self) -> Option<Error> {
        let message = self.policy.panic()?;
        let text = format!(
            "the merge policy panicked and is not asked again until `Store::retry`: {message}"
        );
        Some(Error::new(ErrorKind::Panicked, text))
    }
}
