//! Half-open ranges of keys.

use crate::key::{Key, key_after};
use std::cmp::Ordering;

/// The keys from `start` up to, not including, `end`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// The least key of the range; empty for no lower bound.
    pub start: Key,
    /// The least key above the range; `None` for no upper bound.
    pub end: Option<Key>,
}

impl KeyRange {
    /// Every key.
    pub const ALL: KeyRange = KeyRange { start: Key::new(), end: None };

    /// Returns the range of keys from `start` up to, not including, `end`.
    pub fn new(start: impl Into<Key>, end: impl Into<Key>) -> KeyRange {
        KeyRange { start: start.into(), end: Some(end.into()) }
    }

    /// Returns the range of keys from `first` to `last`, both included.
    pub fn inclusive(first: &[u8], last: &[u8]) -> KeyRange {
        KeyRange { start: Key::copy_from_slice(first), end: Some(key_after(last)) }
    }

    /// Returns true if the range contains every key.
    pub fn is_all(&self) -> bool {
        self.start.is_empty() && self.end.is_none()
    }

    /// Returns true if the range contains no key.
    pub fn is_empty(&self) -> bool {
        self.lies_below(&self.start)
    }

    /// Returns true if `key` lies in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| *key < **end)
    }

    /// Returns true if some key can lie in both ranges.
    pub fn overlaps(&self, other: &KeyRange) -> bool {
        !self.is_empty()
            && !other.is_empty()
            && !other.lies_below(&self.start)
            && !self.lies_below(&other.start)
    }

    /// Returns true if every key of `other` lies in this range.
    pub fn covers(&self, other: &KeyRange) -> bool {
        self.is_all()
            || self.start <= other.start && cmp_ends(&other.end, &self.end).is_le()
            || other.is_empty()
    }

    /// Returns the range of keys that lie in both ranges.
    #[must_use]
    pub fn intersection(&self, other: &KeyRange) -> KeyRange {
        KeyRange {
            start: match self.start.cmp(&other.start) {
                Ordering::Greater => self.start.clone(),
                _ => other.start.clone(),
            },
            end: match cmp_ends(&self.end, &other.end) {
                Ordering::Less => self.end.clone(),
                _ => other.end.clone(),
            },
        }
    }

    /// Returns the least range that covers both ranges.
    #[must_use]
    pub fn hull(&self, other: &KeyRange) -> KeyRange {
        if self.is_empty() {
            return other.clone();
        }
        if other.is_empty() {
            return self.clone();
        }
        KeyRange {
            start: match self.start.cmp(&other.start) {
                Ordering::Less => self.start.clone(),
                _ => other.start.clone(),
            },
            end: match cmp_ends(&self.end, &other.end) {
                Ordering::Greater => self.end.clone(),
                _ => other.end.clone(),
            },
        }
    }

    /// Returns the two parts of this range that remain when `taken` is cut out: the part below
    /// `taken` and the part above. Either part can be empty.
    pub fn without(&self, taken: &KeyRange) -> [KeyRange; 2] {
        let below = KeyRange { start: self.start.clone(), end: Some(taken.start.clone()) };
        let above = match &taken.end {
            Some(end) => KeyRange { start: end.clone(), end: None },
            None => KeyRange { start: taken.start.clone(), end: Some(taken.start.clone()) },
        };
        [self.intersection(&below), self.intersection(&above)]
    }

    /// Returns true if every key of the range is below `key`.
    pub fn lies_below(&self, key: &Key) -> bool {
        self.end.as_ref().is_some_and(|end| end <= key)
    }
}

/// Compares two range ends. `None` is above every key.
pub(crate) fn cmp_ends(left: &Option<Key>, right: &Option<Key>) -> Ordering {
    match (left, right) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(left), Some(right)) => left.cmp(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: &'static str, end: &'static str) -> KeyRange {
        KeyRange { start: Key::from(start), end: (!end.is_empty()).then(|| Key::from(end)) }
    }

    #[test]
    fn ranges_are_half_open() {
        assert!(range("b", "d").contains(b"b"));
        assert!(!range("b", "d").contains(b"d"));
        assert!(!range("a", "b").overlaps(&range("b", "c")));
        assert!(range("a", "").overlaps(&range("z", "")));
        assert!(KeyRange::inclusive(b"b", b"d").contains(b"d"));
        assert!(!KeyRange::inclusive(b"b", b"d").contains(b"da"));
    }

    #[test]
    fn cutting_a_range_out_leaves_both_sides() {
        let [below, above] = range("a", "z").without(&range("c", "f"));
        assert_eq!((below, above), (range("a", "c"), range("f", "z")));
        let [below, above] = range("d", "z").without(&range("c", ""));
        assert!(below.is_empty() && above.is_empty());
        let [below, above] = KeyRange::ALL.without(&KeyRange::ALL);
        assert!(below.is_empty() && above.is_empty());
    }

    #[test]
    fn the_hull_covers_and_the_intersection_is_covered() {
        let left = range("a", "f");
        let right = range("c", "");
        assert!(left.hull(&right).covers(&left) && left.hull(&right).covers(&right));
        assert!(left.covers(&left.intersection(&right)));
        assert_eq!(left.intersection(&right), range("c", "f"));
    }
}
