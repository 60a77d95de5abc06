//! Asks for the parts that cover keys, one key after the other.

use super::{Erased, ErasedPart};
use crate::key::Key;
use crate::range::KeyRange;

/// Tells which part of an [`Erased`] covers a key. A search is needed only for a key that lies
/// outside of the part, or of the gap between two parts, of the key before.
#[derive(Clone, Debug, Default)]
pub struct ErasedWalk {
    erased: Erased,
    /// True if something is erased. Merges and range reads ask for each entry.
    erases: bool,
    /// The part or the gap of the last key.
    here: KeyRange,
    part: Option<ErasedPart>,
}

impl ErasedWalk {
    /// Returns a walk over the parts of `erased`.
    pub fn new(erased: Erased) -> ErasedWalk {
        // No key lies in the first range.
        ErasedWalk {
            erases: !erased.is_empty(),
            erased,
            here: KeyRange { start: Key::new(), end: Some(Key::new()) },
            part: None,
        }
    }

    /// Returns true if nothing is erased.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.erases
    }

    /// Returns what is erased.
    pub fn erased(&self) -> &Erased {
        &self.erased
    }

    /// Returns the part that covers `key`, if one does.
    #[inline]
    pub fn part_of(&mut self, key: &[u8]) -> Option<&ErasedPart> {
        if !self.here.contains(key) {
            self.go_to(key);
        }
        self.part.as_ref()
    }

    fn go_to(&mut self, key: &[u8]) {
        let last = self.erased.last_from(key);
        if let Some(part) = last.filter(|part| part.range.contains(key)) {
            self.here = part.range.clone();
            self.part = Some(part.clone());
            return;
        }
        let start = last.and_then(|part| part.range.end.clone()).unwrap_or_default();
        let end = self.erased.first_above(key).map(|part| part.range.start.clone());
        self.here = KeyRange { start, end };
        self.part = None;
    }
}
