//! The writes of a transaction, on top of all that is stored.

use super::Source;
use lsmith_storage::cursor::Cursor;
use lsmith_storage::read::Without;
use lsmith_tree::{RangeDeletes, SeqNo};

/// What a transaction has written in a keyspace.
pub(crate) struct OwnWrites {
    /// Its entries. They have no sequence numbers, and are newer than all others of their keys.
    pub(crate) entries: Box<dyn Cursor>,
    /// The ranges that it has deleted. They hide what is stored, and none of its entries.
    pub(crate) range_deletes: RangeDeletes,
}

impl OwnWrites {
    /// Returns the source of the entries, and the range deletes.
    pub(super) fn into_source(self) -> (Source, RangeDeletes) {
        let OwnWrites { entries: cursor, range_deletes } = self;
        (Source::Other { cursor, is_on_storage: false, newest: SeqNo::MAX }, range_deletes)
    }
}

/// Hides what `range_deletes` cover in all `sources` but the first, which has the entries of a
/// transaction.
pub(super) fn hide_stored(sources: Vec<Source>, range_deletes: &RangeDeletes) -> Vec<Source> {
    if range_deletes.is_empty() {
        return sources;
    }
    let hide = |(index, source)| if index == 0 { source } else { without(source, range_deletes) };
    sources.into_iter().enumerate().map(hide).collect()
}

/// Returns the entries of `source` outside of what `range_deletes` cover.
fn without(source: Source, range_deletes: &RangeDeletes) -> Source {
    let (is_on_storage, newest) = match &source {
        Source::Active(_) => (false, SeqNo::MAX),
        Source::Run(_) => (true, SeqNo::MAX),
        Source::Other { is_on_storage, newest, .. } => (*is_on_storage, *newest),
    };
    let cursor = Box::new(Without::new(source, range_deletes.clone()));
    Source::Other { cursor, is_on_storage, newest }
}
