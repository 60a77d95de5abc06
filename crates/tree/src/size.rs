//! Amounts of entries.

use std::ops::{Add, AddAssign, Sub, SubAssign};

/// An amount of entries: their count, the tombstones among them, and their logical bytes (key +
/// value + 8 per entry).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Size {
    /// Logical bytes.
    pub bytes: u64,
    /// Entries, tombstones included.
    pub entries: u64,
    /// Tombstones.
    pub tombstones: u64,
}

impl Size {
    /// Returns a size of bytes alone, for what is counted in bytes only.
    pub fn of_bytes(bytes: u64) -> Size {
        Size { bytes, entries: 0, tombstones: 0 }
    }

    /// Returns the sum, with each count at its maximum on overflow.
    #[must_use]
    pub fn saturating_add(self, other: Size) -> Size {
        Size {
            bytes: self.bytes.saturating_add(other.bytes),
            entries: self.entries.saturating_add(other.entries),
            tombstones: self.tombstones.saturating_add(other.tombstones),
        }
    }

    /// Returns the amounts halfway between the two sizes.
    pub(crate) fn middle(self, other: Size) -> Size {
        Size {
            bytes: u64::midpoint(self.bytes, other.bytes),
            entries: u64::midpoint(self.entries, other.entries),
            tombstones: u64::midpoint(self.tombstones, other.tombstones),
        }
    }
}

impl Add for Size {
    type Output = Size;
    #[inline]
    fn add(self, other: Size) -> Size {
        Size {
            bytes: self.bytes + other.bytes,
            entries: self.entries + other.entries,
            tombstones: self.tombstones + other.tombstones,
        }
    }
}

impl Sub for Size {
    type Output = Size;
    /// Saturates at 0: sizes of parts are estimates, and the sum of two parts may exceed the whole
    /// by one.
    #[inline]
    fn sub(self, other: Size) -> Size {
        Size {
            bytes: self.bytes.saturating_sub(other.bytes),
            entries: self.entries.saturating_sub(other.entries),
            tombstones: self.tombstones.saturating_sub(other.tombstones),
        }
    }
}

impl AddAssign for Size {
    #[inline]
    fn add_assign(&mut self, other: Size) {
        *self = *self + other;
    }
}

impl SubAssign for Size {
    #[inline]
    fn sub_assign(&mut self, other: Size) {
        *self = *self - other;
    }
}

impl std::iter::Sum for Size {
    /// Saturates, because sizes may come from a text that anybody wrote.
    fn sum<I: Iterator<Item = Size>>(sizes: I) -> Size {
        sizes.fold(Size::default(), Size::saturating_add)
    }
}
