//! The writes to a part of the key space.

use super::points::Points;

/// One write, with the fields that counts need.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellWrite {
    /// The moment: the number of writes to the cell before this one.
    pub(super) at: u32,
    /// The moment and the action of the previous write to the key.
    pub(super) before: Option<(u32, Kind)>,
    /// The moment of the next write to the key; [`NEVER`] if there is none.
    pub(super) next: u32,
    pub(super) kind: Kind,
    /// Logical bytes.
    pub(super) bytes: u32,
}

/// A moment after all others.
pub(super) const NEVER: u32 = u32::MAX;

/// The action of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Put,
    Insert,
    Delete,
    Remove,
}

impl Kind {
    fn is_tombstone(self) -> bool {
        matches!(self, Kind::Delete | Kind::Remove)
    }
}

/// Counts of the writes to a part of the key space.
///
/// # Derivation
/// Of the moments from `a` up to `b`, a run holds the last write to each key. A write at `t` in
/// this interval is the last one if the next write to its key is at `b` or later. So the entries of
/// the run are the points `(t, next)` in a corner, counted separately for tombstones and for
/// entries of different sizes. A key that was inserted and removed in the interval leaves no entry.
/// The number of these keys is the number of removes whose insert is at `a` or later, minus the
/// keys that were inserted again afterwards, which are the inserts in the interval that follow a
/// remove in it.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// The index of each write among the writes of all cells, ascending; `None` if this cell has
    /// all writes.
    numbers: Option<Vec<u32>>,
    classes: Vec<Class>,
    /// Removes, with the moment of the previous insert.
    cancelled: Points,
    /// Inserts, with the moment of the previous remove.
    returned: Points,
}

/// Writes of similar size, either all tombstones or no tombstones.
#[derive(Clone, Debug)]
struct Class {
    is_tombstone: bool,
    /// Mean logical bytes.
    bytes: f64,
    /// The writes, each with the moment of the next write to its key.
    last: Points,
}

/// The totals of the last writes to each key.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::fluid) struct DistinctKeys {
    /// The number of written keys.
    pub(in crate::fluid) keys: f64,
    /// The keys that have a value at the end, and their logical bytes.
    pub(in crate::fluid) puts: f64,
    pub(in crate::fluid) put_bytes: f64,
    /// The tombstones that remain if none is dropped, and their logical bytes.
    pub(in crate::fluid) tombstones: f64,
    pub(in crate::fluid) tombstone_bytes: f64,
}

impl Cell {
    /// Counts `writes`, in time order, with their indexes.
    pub(super) fn new(numbers: Option<Vec<u32>>, writes: &[CellWrite]) -> Cell {
        let mut by_class: Vec<(u32, Vec<&CellWrite>)> = Vec::new();
        for write in writes {
            let key = class_of(write);
            match by_class.iter_mut().find(|(other, _)| *other == key) {
                Some((_, members)) => members.push(write),
                None => by_class.push((key, vec![write])),
            }
        }
        let class = |members: Vec<&CellWrite>| {
            let bytes: f64 = members.iter().map(|write| f64::from(write.bytes)).sum();
            let at = members.iter().map(|write| write.at).collect();
            // `NEVER` becomes the moment after the last one, so that it needs no more bits.
            let never = writes.len() as u32;
            let next = members.iter().map(|write| write.next.min(never)).collect();
            Class {
                is_tombstone: members[0].kind.is_tombstone(),
                bytes: bytes / members.len() as f64,
                last: Points::new(at, next),
            }
        };
        let following = |before: Kind, kind: Kind| {
            let pairs = writes.iter().filter(|write| write.kind == kind).filter_map(|write| {
                let (at, _) = write.before.filter(|(_, was)| *was == before)?;
                Some((write.at, at))
            });
            let (at, values) = pairs.unzip();
            Points::new(at, values)
        };
        Cell {
            numbers,
            classes: by_class.into_iter().map(|(_, members)| class(members)).collect(),
            cancelled: following(Kind::Insert, Kind::Remove),
            returned: following(Kind::Remove, Kind::Insert),
        }
    }

    /// Returns the totals of the writes from one index up to another.
    pub(super) fn found(&self, from: u32, until: u32) -> DistinctKeys {
        let moment = |index: u32| match &self.numbers {
            Some(numbers) => numbers.partition_point(|at| *at < index) as u32,
            None => index,
        };
        let from = moment(from);
        let until = moment(until);
        let mut found = DistinctKeys::default();
        for class in &self.classes {
            let count = class.last.count(from, until, until) as f64;
            found.keys += count;
            if class.is_tombstone {
                found.tombstones += count;
                found.tombstone_bytes += count * class.bytes;
            } else {
                found.puts += count;
                found.put_bytes += count * class.bytes;
            }
        }
        let cancelled = self.cancelled.count(from, until, from) as f64;
        let gone = cancelled - self.returned.count(from, until, from) as f64;
        if gone > 0.0 && found.tombstones > 0.0 {
            let left = (1.0 - gone / found.tombstones).max(0.0);
            found.tombstones *= left;
            found.tombstone_bytes *= left;
        }
        found
    }
}

impl std::ops::AddAssign for DistinctKeys {
    fn add_assign(&mut self, other: DistinctKeys) {
        self.keys += other.keys;
        self.puts += other.puts;
        self.put_bytes += other.put_bytes;
        self.tombstones += other.tombstones;
        self.tombstone_bytes += other.tombstone_bytes;
    }
}

/// Returns the class of a write: tombstone or not, and sizes within a quarter of each other.
fn class_of(write: &CellWrite) -> u32 {
    let log = 31 - write.bytes.max(1).leading_zeros();
    let quarter = if log < 2 { 0 } else { write.bytes >> (log - 2) & 3 };
    (log << 2 | quarter) << 1 | u32::from(write.kind.is_tombstone())
}

impl DistinctKeys {
    /// Returns the totals of a key space larger by a factor.
    pub(super) fn times(self, factor: f64) -> DistinctKeys {
        DistinctKeys {
            keys: self.keys * factor,
            puts: self.puts * factor,
            put_bytes: self.put_bytes * factor,
            tombstones: self.tombstones * factor,
            tombstone_bytes: self.tombstone_bytes * factor,
        }
    }
}
