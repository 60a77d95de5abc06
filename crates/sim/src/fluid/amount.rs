//! Expected amounts of entries.

use super::measured::DistinctKeys;
use lsmith_tree::Size;

/// A [`Size`] with fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) entries: f64,
    pub(super) bytes: f64,
    pub(super) tombstones: f64,
}

impl Amount {
    pub(super) fn of(found: DistinctKeys, is_clean: bool) -> Amount {
        if is_clean {
            return Amount { entries: found.puts, bytes: found.put_bytes, tombstones: 0.0 };
        }
        Amount {
            entries: found.puts + found.tombstones,
            bytes: found.put_bytes + found.tombstone_bytes,
            tombstones: found.tombstones,
        }
    }

    pub(super) fn times(self, factor: f64) -> Amount {
        Amount {
            entries: self.entries * factor,
            bytes: self.bytes * factor,
            tombstones: self.tombstones * factor,
        }
    }

    pub(super) fn of_size(size: Size) -> Amount {
        Amount {
            entries: size.entries as f64,
            bytes: size.bytes as f64,
            tombstones: size.tombstones as f64,
        }
    }

    pub(super) fn minus(self, other: Amount) -> Amount {
        Amount {
            entries: self.entries - other.entries,
            bytes: self.bytes - other.bytes,
            tombstones: self.tombstones - other.tombstones,
        }
    }

    pub(super) fn rounded(self) -> Size {
        Size {
            bytes: self.bytes.round() as u64,
            entries: self.entries.round() as u64,
            tombstones: self.tombstones.round() as u64,
        }
    }
}

impl std::ops::AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.tombstones += other.tombstones;
    }
}
