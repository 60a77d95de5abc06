//! A plan that failed.

use lsmith_storage::env::is_too_many_files;
use lsmith_storage::error::{Error, ErrorKind};
use lsmith_tree::MergePlan;
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
    pub(super) fn is_crowded(&self) -> bool {
        self.error.io_error().is_some_and(is_too_many_files)
    }

    /// Returns true if the cause may go by itself. The plan is then tried again.
    pub(super) fn may_pass(&self) -> bool {
        self.is_full() || self.is_crowded()
    }
}
