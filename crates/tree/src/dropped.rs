//! Which tombstones merges have dropped, by key range.

use crate::entry::SeqNo;
use crate::range::KeyRange;

/// The most parts that are told apart.
const PARTS_MAX: usize = 64;

/// For parts of the key space, the greatest sequence number of the tombstones that merges have
/// dropped there. A table with older entries could bring back deleted data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Disjoint, in key order, not empty; neighbours that touch have different sequence numbers.
    parts: Vec<DroppedPart>,
}

/// A part of the key space in which tombstones were dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedPart {
    /// The keys.
    pub range: KeyRange,
    /// The greatest sequence number of a dropped tombstone, or more.
    pub below: SeqNo,
}

impl Dropped {
    /// Returns the parts in key order.
    pub fn parts(&self) -> &[DroppedPart] {
        &self.parts
    }

    /// Returns the greatest sequence number of the tombstones that were dropped in `range`, or
    /// more; 0 if none was.
    pub fn below(&self, range: &KeyRange) -> SeqNo {
        let met = self.parts.iter().filter(|part| part.range.overlaps(range));
        met.map(|part| part.below).max().unwrap_or_default()
    }

    /// Notes that tombstones with sequence numbers up to `below` were dropped in `range`.
    pub fn raise(&mut self, range: &KeyRange, below: SeqNo) {
        if below == SeqNo(0) || range.is_empty() {
            return;
        }
        let mut parts = Vec::with_capacity(self.parts.len() + 2);
        let mut rest = range.clone();
        for old in self.parts.drain(..) {
            let [before, after] = old.range.without(range);
            let [new, behind] = rest.without(&old.range);
            if old.range.overlaps(range) {
                let inside = old.range.intersection(range);
                parts.push(DroppedPart { range: before, below: old.below });
                parts.push(DroppedPart { range: new, below });
                parts.push(DroppedPart { range: inside, below: old.below.max(below) });
                parts.push(DroppedPart { range: after, below: old.below });
                rest = behind;
            } else {
                parts.push(old);
            }
        }
        parts.push(DroppedPart { range: rest, below });
        parts.retain(|part| !part.range.is_empty());
        parts.sort_by(|left, right| left.range.start.cmp(&right.range.start));
        self.parts = joined(parts);
        while self.parts.len() > PARTS_MAX {
            self.join_most_alike();
        }
    }

    /// Joins the two neighbours whose sequence numbers differ least. Keys between them get the
    /// greater one.
    fn join_most_alike(&mut self) {
        let alike = |index: &usize| {
            let [left, right] = [&self.parts[*index], &self.parts[index + 1]];
            left.below.0.abs_diff(right.below.0)
        };
        let Some(index) = (0..self.parts.len() - 1).min_by_key(alike) else { return };
        let right = self.parts.remove(index + 1);
        let left = &mut self.parts[index];
        left.range.end = right.range.end;
        left.below = left.below.max(right.below);
    }
}

/// Joins neighbours that touch and have the same sequence number.
fn joined(parts: Vec<DroppedPart>) -> Vec<DroppedPart> {
    let mut joined: Vec<DroppedPart> = Vec::with_capacity(parts.len());
    for part in parts {
        match joined.last_mut() {
            Some(last)
                if last.below == part.below
                    && last.range.end.as_ref() == Some(&part.range.start) =>
            {
                last.range.end = part.range.end;
            }
            _ => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use proptest::prelude::*;

    fn range(start: u8, end: Option<u8>) -> KeyRange {
        let key = |byte: u8| Key::copy_from_slice(&[byte]);
        KeyRange { start: key(start), end: end.map(key) }
    }

    fn ranges() -> impl Strategy<Value = KeyRange> {
        (0..250u8, proptest::option::weighted(0.9, 0..250u8))
            .prop_map(|(start, length)| range(start, length.map(|more| start.saturating_add(more))))
    }

    #[test]
    fn the_oldest_number_of_each_key_is_its_own() {
        let mut dropped = Dropped::default();
        dropped.raise(&range(10, Some(20)), SeqNo(5));
        dropped.raise(&range(15, Some(30)), SeqNo(7));
        dropped.raise(&range(12, Some(14)), SeqNo(3));
        let below = |start, end| dropped.below(&range(start, Some(end)));
        assert_eq!(dropped.parts().len(), 2);
        assert_eq!(
            [below(0, 10), below(10, 15), below(14, 16), below(30, 40)].map(|seq| seq.0),
            [0, 5, 7, 0]
        );
        dropped.raise(&KeyRange::ALL, SeqNo(9));
        assert_eq!(dropped.parts(), [DroppedPart { range: KeyRange::ALL, below: SeqNo(9) }]);
    }

    proptest! {
        /// What is told is never less than the greatest sequence number of a key. It is exact as
        /// long as there are few parts.
        #[test]
        fn no_key_is_told_too_little(
            raised in prop::collection::vec((ranges(), 1..1000u64), 0..200),
        ) {
            let mut dropped = Dropped::default();
            let mut known = [0; 256];
            let mut is_exact = true;
            for (range, below) in raised {
                dropped.raise(&range, SeqNo(below));
                is_exact &= dropped.parts().len() < PARTS_MAX;
                for (key, known) in known.iter_mut().enumerate() {
                    if range.contains(&[key as u8]) {
                        *known = below.max(*known);
                    }
                }
                prop_assert!(dropped.parts().len() <= PARTS_MAX);
                for pair in dropped.parts().windows(2) {
                    prop_assert!(pair[0].range.lies_below(&pair[1].range.start));
                }
                for (key, known) in known.iter().enumerate() {
                    let key = [key as u8];
                    let told = dropped.below(&KeyRange::inclusive(&key, &key)).0;
                    prop_assert!(told >= *known);
                    prop_assert!(!is_exact || told == *known, "{key:?}: {told}, not {known}");
                }
            }
        }
    }
}
