//! When the entries of a workload expire.

use std::sync::Arc;

/// After how many writes the entries of a workload expire. A write that comes that many writes
/// later no longer finds the entry. Deletes count as writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Lives {
    /// No entry expires.
    #[default]
    Stay,
    /// Each entry expires that many writes after its own, at least 1.
    All(u64),
    /// The entry of write number `i` expires that many writes after its own; it stays if that is
    /// 0. Number 1 is at index 0. Later entries stay.
    Each(Arc<[u32]>),
}

impl Lives {
    /// Returns true if entries can expire.
    #[inline]
    #[must_use]
    pub fn expire(&self) -> bool {
        !matches!(self, Lives::Stay)
    }

    /// Returns the number of writes after which the entry of this write expires; `None` if it
    /// stays. The first write has number 1.
    #[inline]
    #[must_use]
    pub fn after(&self, write: u64) -> Option<u64> {
        match self {
            Lives::Stay => None,
            Lives::All(after) => Some(*after),
            Lives::Each(lives) => {
                let index = usize::try_from(write.checked_sub(1)?).ok()?;
                lives.get(index).filter(|life| **life > 0).map(|life| u64::from(*life))
            }
        }
    }

    /// Returns the number of the write from which on the entry of this write has expired; `None`
    /// if it stays.
    #[inline]
    #[must_use]
    pub fn end(&self, write: u64) -> Option<u64> {
        self.after(write).map(|after| write.saturating_add(after))
    }
}
