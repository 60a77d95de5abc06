//! Merges of key ranges by hand.

use super::Keyspace;
use lsmith_storage::error::{Error, ErrorKind, Result};
use std::ops::RangeBounds;

impl Keyspace {
    /// Merges the entries in `range`, and waits until that is done. What memory holds of the range
    /// is flushed first. Afterwards one run on storage has all of them, and deletions in the range
    /// that no snapshot needs are gone. Merges of other ranges go on meanwhile.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace is in a group, or if its policy keeps levels of append
    /// tables. The error of a merge that failed and is in the way. Otherwise as
    /// [`Store::write`](crate::Store::write).
    #[doc(alias("compaction", "compact range"))]
    pub fn merge_range<K: AsRef<[u8]>>(&self, range: impl RangeBounds<K>) -> Result<()> {
        self.store().context().check_writable()?;
        if self.member().is_some() {
            return Err(is_of_group(self));
        }
        let Some(range) = self.key_range(range) else { return Ok(()) };
        self.store().engine().write_path.merge_range(self.shared(), &range)?;
        self.store().work_in_lockstep();
        Ok(())
    }
}

/// Returns the error of a range that cannot be merged alone.
fn is_of_group(keyspace: &Keyspace) -> Error {
    let message = format!(
        "the keyspace `{}` is in a group, whose runs are merged whole: expected a keyspace of its \
         own, or `Keyspace::merge`",
        keyspace.name()
    );
    Error::new(ErrorKind::InvalidArgument, message)
}
