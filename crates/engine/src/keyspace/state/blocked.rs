//! Plans that failed are blocked, until the conditions are there to try them again.

use super::KeyspaceState;
use super::failure::Failure;
use crate::context::Context;
use lsmith_storage::error::{Error, ErrorKind};
use lsmith_tree::{Reservation, ReservationState};

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
