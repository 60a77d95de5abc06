//! Profiles: how much of a table lies below which key.

use crate::key::Key;
use crate::slice::Size;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

/// Logical bytes between two neighbouring profile points, unless a policy asks for more of them.
pub const PROFILE_STEP_BYTES: u64 = 64 * 1024;

/// A point of a profile: how much of the table lies below `key`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfilePoint {
    /// The first key that is not counted.
    pub key: Key,
    /// What the table holds below that key.
    pub below: Size,
    /// The least key above all that is counted, where that is known: from it up to `key` the table
    /// holds nothing.
    pub after: Option<Key>,
}

/// A point of a profile whose keys are [numbers](Key::of_number): less than half as large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberPoint {
    /// The number of the point's key.
    pub number: u64,
    /// The number of the last key that is counted; the same as `number` where that is not known.
    pub last: u64,
    /// How many entries the table holds below.
    pub entries: u32,
    tombstones: u32,
    bytes: u64,
}

impl NumberPoint {
    /// A point at `number`, the key behind that of `last`, with `below` below it: less than 2^32
    /// entries.
    #[inline]
    pub fn new(number: u64, last: u64, below: Size) -> NumberPoint {
        let (entries, tombstones) = (below.entries as u32, below.tombstones as u32);
        NumberPoint { number, last, bytes: below.bytes, entries, tombstones }
    }

    /// What the table holds below the point.
    #[inline]
    pub fn below(&self) -> Size {
        let (entries, tombstones) = (u64::from(self.entries), u64::from(self.tombstones));
        Size { bytes: self.bytes, entries, tombstones }
    }

    #[inline]
    fn key(&self) -> Key {
        Key::of_number(self.number)
    }

    #[inline]
    fn after(&self) -> Option<Key> {
        (self.last < self.number).then(|| Key::after_number(self.last))
    }
}

/// The profile points of a table, ascending; shared between clones, and nowhere when there are
/// none.
///
/// As a slice it has [`ProfilePoint`]s. Where it was made of [`NumberPoint`]s, these are made the
/// first time that somebody wants them, which is not what trees and slices do.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    points: OnceLock<Arc<[ProfilePoint]>>,
    /// The ends of cells as numbers, the end of the table among them.
    cells: Option<Arc<[NumberPoint]>>,
    /// Whether two neighbours are not in order. Looked at once, while all points are at hand: a
    /// tree can show a table in thousands of parts.
    is_disordered: bool,
}

impl Profile {
    fn new(points: Arc<[ProfilePoint]>) -> Profile {
        let ascending = |pair: &[ProfilePoint]| {
            pair[0].key < pair[1].key && pair[0].below.bytes <= pair[1].below.bytes
        };
        let is_disordered = !points.windows(2).all(ascending);
        Profile { points: points.into(), cells: None, is_disordered }
    }

    /// A profile of the points at which these cells of a table end: all but the last, at which the
    /// table ends.
    pub fn of_cells(cells: Arc<[NumberPoint]>) -> Profile {
        let ascending = |pair: &[NumberPoint]| {
            pair[0].number < pair[1].number && pair[0].bytes <= pair[1].bytes
        };
        let points = &cells[..cells.len().saturating_sub(1)];
        let is_disordered = !points.windows(2).all(ascending);
        Profile { points: OnceLock::new(), cells: Some(cells), is_disordered }
    }

    /// The points as numbers, where it was made of such.
    #[inline]
    fn numbers(&self) -> Option<&[NumberPoint]> {
        self.cells.as_ref().map(|cells| &cells[..cells.len().saturating_sub(1)])
    }

    /// Whether keys ascend, and no point has less below it than the one before.
    pub fn is_ordered(&self) -> bool {
        !self.is_disordered
    }

    /// How many points there are.
    #[inline]
    pub fn len(&self) -> usize {
        match self.numbers() {
            Some(numbers) => numbers.len(),
            None => self.points.get().map_or(0, |points| points.len()),
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key of the point with this index.
    ///
    /// # Panics
    /// There are fewer; so with the next two.
    #[inline]
    pub(crate) fn key(&self, index: usize) -> Key {
        match self.numbers() {
            Some(numbers) => numbers[index].key(),
            None => self[index].key.clone(),
        }
    }

    /// What lies below the point with this index.
    #[inline]
    pub(crate) fn below(&self, index: usize) -> Size {
        match self.numbers() {
            Some(numbers) => numbers[index].below(),
            None => self[index].below,
        }
    }

    /// The least key above all that is counted at the point with this index, if it is known.
    #[inline]
    pub(crate) fn after(&self, index: usize) -> Option<Key> {
        match self.numbers() {
            Some(numbers) => numbers[index].after(),
            None => self[index].after.clone(),
        }
    }

    /// How many points with indexes in `among` lie below `key`, or on it where `or_on`.
    #[inline]
    pub(crate) fn count(&self, among: Range<usize>, key: &Key, or_on: bool) -> usize {
        match self.numbers() {
            Some(numbers) => {
                // A number has eight bytes: a key that begins with them is longer, the same, or
                // else shorter and below it.
                let on_prefix = key.len() + usize::from(or_on) > size_of::<u64>();
                let prefix = key.prefix();
                numbers[among].partition_point(|point| {
                    point.number < prefix || on_prefix && point.number == prefix
                })
            }
            None => self[among]
                .partition_point(|point| if or_on { point.key <= *key } else { point.key < *key }),
        }
    }

    /// How many points have less than `bytes` below them.
    pub(crate) fn count_by_bytes(&self, bytes: u64) -> usize {
        match self.numbers() {
            Some(numbers) => numbers.partition_point(|point| point.bytes < bytes),
            None => self.partition_point(|point| point.below.bytes < bytes),
        }
    }
}

impl Deref for Profile {
    type Target = [ProfilePoint];

    #[inline]
    fn deref(&self) -> &[ProfilePoint] {
        let Some(numbers) = self.numbers() else {
            return self.points.get().map_or(&[], |points| points);
        };
        self.points.get_or_init(|| {
            let points = numbers.iter().map(|point| ProfilePoint {
                key: point.key(),
                below: point.below(),
                after: point.after(),
            });
            points.collect()
        })
    }
}

impl PartialEq for Profile {
    fn eq(&self, other: &Profile) -> bool {
        match (self.numbers(), other.numbers()) {
            (Some(numbers), Some(other)) => numbers == other,
            _ => **self == **other,
        }
    }
}

impl Eq for Profile {}

impl Hash for Profile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl From<Vec<ProfilePoint>> for Profile {
    fn from(points: Vec<ProfilePoint>) -> Profile {
        if points.is_empty() { Profile::default() } else { Profile::new(points.into()) }
    }
}

impl FromIterator<ProfilePoint> for Profile {
    fn from_iter<I: IntoIterator<Item = ProfilePoint>>(points: I) -> Profile {
        // Where it is known how many there are, they are made where they stay.
        Profile::new(points.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::key_after;

    #[test]
    fn numbers_answer_as_their_keys_do() {
        let below = |bytes| Size { bytes, entries: bytes / 10, tombstones: bytes / 100 };
        let points = [(5, 4, 100), (9, 9, 200), (u64::MAX, 300, 300), (0, 0, 400)];
        let points =
            points.map(|(number, last, bytes)| NumberPoint::new(number, last, below(bytes)));
        let numbers = Profile::of_cells(points.into());
        let keys = Profile::from(numbers.to_vec());
        assert_eq!(numbers, keys);
        assert!(numbers.is_ordered() && keys.is_ordered());
        assert_eq!(keys.iter().map(|point| point.below.entries).collect::<Vec<_>>(), [10, 20, 30]);
        for index in 0..3 {
            assert_eq!(numbers.key(index), keys[index].key);
            assert_eq!(numbers.below(index), keys[index].below);
            assert_eq!(numbers.after(index), keys[index].after);
        }
        assert_eq!(keys.after(1), None);
        let borders = [0, 5, 9, u64::MAX].map(Key::of_number);
        let shorter = borders.clone().map(|key| Key::from(&key[..7]));
        let longer = borders.clone().map(|key| key_after(&key));
        for key in borders.iter().chain(&shorter).chain(&longer).chain([&Key::new()]) {
            for or_on in [false, true] {
                for from in 0..3 {
                    let count = |profile: &Profile| profile.count(from..3, key, or_on);
                    assert_eq!(count(&numbers), count(&keys), "{key:?}");
                }
            }
        }
        for bytes in [0, 100, 101, 300, 301] {
            assert_eq!(numbers.count_by_bytes(bytes), keys.count_by_bytes(bytes));
        }
        let back = Profile::of_cells([points[1], points[0], points[3]].into());
        assert!(!back.is_ordered());
        assert_eq!((Profile::default().len(), numbers.len(), keys.len()), (0, 3, 3));
    }
}
