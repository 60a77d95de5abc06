//! Plans that failed, and when they are tried again.

use super::KeyspaceState;
use crate::context::Context;
use lsmith_storage::error::{Error, ErrorKind};
use lsmith_tree::{MergePlan, Reservation, ReservationState};
use std::time::Duration;

/// A plan that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) plan: MergePlan,
    /// Why.
    pub(crate) error: Error,
    /// Free bytes that are needed before it is worth trying again.
    pub(crate) needs_bytes: u64,
    /// Free bytes when it was begun.
    pub(crate) free_bytes: u64,
    /// When it is worth trying again although there is not more room than there was.
    pub(crate) retry_at: Duration,
}

impl Failure {
    /// The failure of `plan` that is not tried again before somebody asks for it.
    pub(crate) fn for_good(plan: MergePlan, error: Error) -> Failure {
        let (needs_bytes, free_bytes, retry_at) = (0, 0, Duration::ZERO);
        Failure { plan, error, needs_bytes, free_bytes, retry_at }
    }

    /// The error that a writer gets who must wait for this plan.
    pub(crate) fn to_error(&self) -> Error {
        self.error.said_again("writes are refused because a merge failed: ")
    }

    /// Whether there was no room.
    pub(crate) fn is_full(&self) -> bool {
        self.error.kind() == ErrorKind::Full
    }
}

impl KeyspaceState {
    /// Keeps `failure`'s plan out of the way until its cause is gone.
    pub(crate) fn block(&mut self, failure: Failure) {
        let (plan, state) = (failure.plan.clone(), ReservationState::Blocked);
        self.view.reservations.push(Reservation { plan, state });
        self.failures.push(failure);
        self.at_rest = false;
    }

    /// Lets the failed plans for which `holds` returns false be tried again.
    pub(crate) fn unblock(&mut self, holds: impl Fn(&Failure) -> bool) {
        self.failures.retain(holds);
        let failures = &self.failures;
        self.view.reservations.retain(|reservation| {
            reservation.state == ReservationState::UnderWay
                || failures.iter().any(|failure| failure.plan == reservation.plan)
        });
        self.at_rest = false;
    }

    /// Lets plans that failed for want of room be tried again once there is room: at once where
    /// there is more than there was, else after a while, in case the room there was is not ours to
    /// use. Returns whether there are such plans.
    pub(crate) fn retry_failures(&mut self, context: &Context) -> bool {
        if !self.failures.iter().any(Failure::is_full) {
            return false;
        }
        let options = &context.options;
        let Ok(free) = options.env.free_bytes(&options.dir) else { return false };
        let now = options.env.now();
        let waits = |failure: &Failure| {
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

    /// Returns what keeps the keyspace from coming to rest: a plan that failed, or a policy that
    /// panicked.
    pub(crate) fn trouble(&self) -> Option<Error> {
        self.failures.first().map(Failure::to_error).or_else(|| self.policy_trouble())
    }

    /// Returns the error that a panic of the policy has left.
    pub(crate) fn policy_trouble(&self) -> Option<Error> {
        let message = self.policy.panic()?;
        let message = format!("the merge policy panicked, and is not asked since: {message}");
        Some(Error::new(ErrorKind::Panicked, message))
    }
}
