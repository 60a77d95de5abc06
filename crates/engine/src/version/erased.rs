//! What range deletes hide from reads.

use super::{Moment, Version};
use lsmith_tree::{Erased, SeqNo};

impl Version {
    /// Returns the number of the newest range delete that covers `key` at `moment`; 0 if there is
    /// none. Entries with smaller numbers are hidden.
    ///
    /// A read without a snapshot calls this first, and looks for the entry then. Let `t` be the
    /// moment at which the range deletes were copied. The read then sees either the entry that was
    /// the newest at `t` or at the number found here, or a later one, which was the newest when it
    /// became visible, during the read.
    #[inline]
    pub(super) fn newest_erased(&self, key: &[u8], moment: Moment<'_>) -> SeqNo {
        if !self.active.has_erased() && self.erased.is_none() {
            return SeqNo(0);
        }
        self.search_erased(key, moment)
    }

    #[cold]
    #[inline(never)]
    fn search_erased(&self, key: &[u8], moment: Moment<'_>) -> SeqNo {
        let in_active = self.active.erased();
        let at = moment.in_memory();
        let older = self.erased.as_deref().map(|erased| erased.newest_at(key, at));
        in_active.newest_at(key, at).max(older.unwrap_or_default())
    }

    /// Returns all range deletes. Those of the active memtable may not be visible yet.
    pub(crate) fn all_erased(&self) -> Erased {
        let in_active = self.active.erased();
        match self.erased.as_deref() {
            None => in_active,
            Some(erased) => Erased::all([erased, &in_active]),
        }
    }
}
