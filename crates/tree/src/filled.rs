//! Key ranges without the gaps that profiles know of at their ends.

use crate::{KeyRange, Slice, Table};

impl Table {
    /// Shrinks `range` at both ends to the keys that the table may hold, according to its profile.
    pub fn filled(&self, KeyRange { mut start, mut end }: KeyRange) -> KeyRange {
        let profile = &self.profile;
        let next = profile.partition_point(|point| point.key <= start);
        if let Some(point) = profile.get(next)
            && point.after.as_ref().is_some_and(|after| *after <= start)
        {
            start = point.key.clone();
        }
        if let Some(end) = &mut end {
            let next = profile.partition_point(|point| point.key < *end);
            if let Some(after) = profile.get(next).and_then(|point| point.after.as_ref())
                && *after < *end
            {
                *end = after.clone();
            }
        }
        KeyRange { start, end }
    }
}

impl Slice {
    /// Shrinks the slice's range at both ends to keys that the table may hold, by its profile.
    pub fn filled(&self) -> KeyRange {
        let KeyRange { mut start, mut end } = self.range().clone();
        let profile = &self.table().profile;
        let cells = self.cell_indexes();
        if let Some(point) = profile.get(cells.start)
            && point.after.as_ref().is_some_and(|after| *after <= start)
        {
            start = point.key.clone();
        }
        if let Some(end) = &mut end
            && let Some(after) = profile.get(cells.end - 1).and_then(|point| point.after.as_ref())
            && *after < *end
        {
            *end = after.clone();
        }
        KeyRange { start, end }
    }
}
