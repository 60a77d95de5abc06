//! Profiles: how much of a table lies below which keys.

use crate::key::Key;
use crate::size::Size;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

/// Logical bytes between two neighbouring profile points, unless a policy needs more points.
pub const PROFILE_STEP_BYTES: u64 = 64 * 1024;

/// A point of a profile: how much of the table lies below `key`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProfilePoint {
    /// The key. Entries at or above it are not counted.
    pub key: Key,
    /// The size of all entries below `key`.
    pub below: Size,
    /// The least key above all counted entries, if it is known. The table holds nothing from
    /// `after` up to `key`.
    pub after: Option<Key>,
}

/// A profile point whose key is a [number](Key::of_number). It takes less than half the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberPoint {
    /// The key, as a number.
    pub key: u64,
    /// The last counted key, as a number; equal to `key` if it is not known.
    pub last: u64,
    /// The number of entries below the point.
    pub entries: u32,
    tombstones: u32,
    bytes: u64,
}

impl NumberPoint {
    /// Returns a point at `key`. `last` is the last key below it. `below` is the size of all
    /// entries below it, fewer than 2^32.
    #[inline]
    pub fn new(key: u64, last: u64, below: Size) -> NumberPoint {
        let entries = below.entries as u32;
        let tombstones = below.tombstones as u32;
        NumberPoint { key, last, bytes: below.bytes, entries, tombstones }
    }

    /// Returns the size of all entries below the point.
    #[inline]
    pub fn below(&self) -> Size {
        let entries = u64::from(self.entries);
        let tombstones = u64::from(self.tombstones);
        Size { bytes: self.bytes, entries, tombstones }
    }

    #[inline]
    fn key(&self) -> Key {
        Key::of_number(self.key)
    }

    #[inline]
    fn after(&self) -> Option<Key> {
        (self.last < self.key).then(|| Key::after_number(self.last))
    }
}

/// The profile points of a table, ascending. Clones share them; an empty profile takes no memory.
///
/// Dereferences to a slice of [`ProfilePoint`]s. A profile of [`NumberPoint`]s makes these on first
/// use. Trees and slices do not need them.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    points: OnceLock<Arc<[ProfilePoint]>>,
    /// The ends of the cells as numbers, up to and including the end of the table.
    cells: Option<Arc<[NumberPoint]>>,
    /// True if the points do not ascend. Computed once, because a tree can show a table in
    /// thousands of slices.
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

    /// Returns a profile from the ends of the cells of a table. The last cell ends where the table
    /// ends, and gives no point.
    pub fn of_cells(cells: Arc<[NumberPoint]>) -> Profile {
        let ascending =
            |pair: &[NumberPoint]| pair[0].key < pair[1].key && pair[0].bytes <= pair[1].bytes;
        let points = &cells[..cells.len().saturating_sub(1)];
        let is_disordered = !points.windows(2).all(ascending);
        Profile { points: OnceLock::new(), cells: Some(cells), is_disordered }
    }

    /// Returns the points as numbers, if the profile was made from numbers.
    #[inline]
    fn numbers(&self) -> Option<&[NumberPoint]> {
        self.cells.as_ref().map(|cells| &cells[..cells.len().saturating_sub(1)])
    }

    /// Returns true if keys ascend and sizes do not fall.
    pub fn is_ordered(&self) -> bool {
        !self.is_disordered
    }

    /// Returns the number of points.
    #[inline]
    pub fn len(&self) -> usize {
        match self.numbers() {
            Some(numbers) => numbers.len(),
            None => self.points.get().map_or(0, |points| points.len()),
        }
    }

    /// Returns true if there are no points.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the key of the point with this index.
    ///
    /// # Panics
    /// If `index` is not below [`len`](Profile::len). The next two methods panic likewise.
    #[inline]
    pub(crate) fn key(&self, index: usize) -> Key {
        match self.numbers() {
            Some(numbers) => numbers[index].key(),
            None => self[index].key.clone(),
        }
    }

    /// Returns the size of all entries below the point with this index.
    #[inline]
    pub(crate) fn below(&self, index: usize) -> Size {
        match self.numbers() {
            Some(numbers) => numbers[index].below(),
            None => self[index].below,
        }
    }

    /// Returns the least key above all entries that the point with this index counts, if it is
    /// known.
    #[inline]
    pub(crate) fn after(&self, index: usize) -> Option<Key> {
        match self.numbers() {
            Some(numbers) => numbers[index].after(),
            None => self[index].after.clone(),
        }
    }

    /// Returns the number of points with indexes in `among` that lie below `key`, or at `key` if
    /// `or_on` is true.
    #[inline]
    pub(crate) fn count(&self, among: Range<usize>, key: &Key, or_on: bool) -> usize {
        match self.numbers() {
            Some(numbers) => {
                // A number has eight bytes. A key that starts with these bytes is longer, equal, or
                // else shorter and below it.
                let on_prefix = key.len() + usize::from(or_on) > size_of::<u64>();
                let prefix = key.prefix();
                numbers[among]
                    .partition_point(|point| point.key < prefix || on_prefix && point.key == prefix)
            }
            None => self[among]
                .partition_point(|point| if or_on { point.key <= *key } else { point.key < *key }),
        }
    }

    /// Returns the number of points with less than `bytes` below them.
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
        // The iterator knows its length, so the points are collected in place.
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
        let points = points.map(|(key, last, bytes)| NumberPoint::new(key, last, below(bytes)));
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
