//! The operator of stores that play workloads with combines.

use lsmith::{Combine, CombineError, Expiry, KeyspaceOptions};
use lsmith_workload::Workload;

/// A combine operator whose values are the newest operands. So values have the length that
/// simulations count, whatever the operands are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest;

impl Newest {
    const NAME: &str = "newest";

    /// Returns the options of a keyspace that plays `workload`. If entries expire, the clock of the
    /// store must count writes.
    #[must_use]
    pub fn options(workload: &Workload) -> KeyspaceOptions {
        let operator = workload.combines().then(|| Newest::NAME.into());
        let expiry = workload.expire_after().map(Expiry::after);
        KeyspaceOptions { operator, expiry, ..KeyspaceOptions::default() }
    }
}

impl Combine for Newest {
    fn name(&self) -> &str {
        Newest::NAME
    }

    fn combine(
        &self,
        _key: &[u8],
        value: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>, CombineError> {
        Ok(operands.last().copied().or(value).unwrap_or_default().to_vec())
    }

    fn combine_operands(&self, _key: &[u8], _older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some(newer.to_vec())
    }
}
