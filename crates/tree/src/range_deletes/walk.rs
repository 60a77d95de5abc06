//! Asks for the parts that cover keys, one key after the other.

use super::{RangeDeletePart, RangeDeletes};
use crate::key::Key;
use crate::range::KeyRange;

/// Tells which part of a [`RangeDeletes`] covers a key. A search is needed only for a key that lies
/// outside of the part, or of the gap between two parts, of the key before.
#[derive(Clone, Debug, Default)]
pub struct RangeDeleteWalk {
    range_deletes: RangeDeletes,
    /// True if there are range deletes. Merges and range reads ask for each entry.
    hides: bool,
    /// The part or the gap of the last key.
    here: KeyRange,
    part: Option<RangeDeletePart>,
}

impl RangeDeleteWalk {
    /// Returns a walk over the parts of `range_deletes`.
    pub fn new(range_deletes: RangeDeletes) -> RangeDeleteWalk {
        // No key lies in the first range.
        RangeDeleteWalk {
            hides: !range_deletes.is_empty(),
            range_deletes,
            here: KeyRange { start: Key::new(), end: Some(Key::new()) },
            part: None,
        }
    }

    /// Returns true if there are no range deletes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.hides
    }

    /// Returns the range deletes.
    pub fn range_deletes(&self) -> &RangeDeletes {
        &self.range_deletes
    }

    /// Returns the part that covers `key`, if one does.
    #[inline]
    pub fn part_of(&mut self, key: &[u8]) -> Option<&RangeDeletePart> {
        if !self.here.contains(key) {
            self.go_to(key);
        }
        self.part.as_ref()
    }

    fn go_to(&mut self, key: &[u8]) {
        let last = self.range_deletes.last_from(key);
        if let Some(part) = last.filter(|part| part.range.contains(key)) {
            self.here = part.range.clone();
            self.part = Some(part.clone());
            return;
        }
        let start = last.and_then(|part| part.range.end.clone()).unwrap_or_default();
        let end = self.range_deletes.first_above(key).map(|part| part.range.start.clone());
        self.here = KeyRange { start, end };
        self.part = None;
    }
}
