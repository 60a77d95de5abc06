//! The operator of stores that play workloads with combines.

use lsmith::{Clock, Combine, CombineError, Expiry, KeyspaceOptions};
use lsmith_workload::{Lives, Workload};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A combine operator whose values are the newest operands. So values have the length that
/// simulations count, whatever the operands are.
#[derive(Clone, Copy, Debug, Default)]
pub struct Newest;

impl Newest {
    const NAME: &str = "newest";

    /// Returns the options of a keyspace that plays `workload`. If entries expire, the store
    /// needs this [clock](Newest::clock).
    #[must_use]
    pub fn options(workload: &Workload) -> KeyspaceOptions {
        let operator = workload.combines().then(|| Newest::NAME.into());
        let expiry = match workload.lives() {
            Lives::Stay => None,
            Lives::All(writes) => Some(Expiry::after(*writes)),
            Lives::Each(_) => Some(Expiry::default()),
        };
        KeyspaceOptions { operator, expiry, ..KeyspaceOptions::default() }
    }
}

impl Newest {
    /// Returns a clock that counts `writes`: one tick, which is called a second, for each.
    #[must_use]
    pub fn clock(writes: &Arc<AtomicU64>) -> Clock {
        let writes = Arc::clone(writes);
        let clock = Clock::new("writes", move || writes.load(Ordering::SeqCst));
        clock.with_tick(Duration::from_secs(1))
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
