//! Tables, and slices: the parts of tables that runs are made of.
//!
//! What the fields of a slice mean when it is only a part of its table:
//!
//! | field | meaning for a part |
//! |---|---|
//! | range | exact: it decides which keys are visible |
//! | size | read off the table's profile: exact at profile points, else between two of them |
//! | sequence bounds, filter | the table's: loose, never wrong by omission |
//! | tombstones | as size |

use crate::entry::SeqNo;
use crate::key::Key;
use crate::profile::Profile;
use crate::range::{KeyRange, cmp_ends};
use crate::size::Size;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The name of a table, on disk or in memory. A tree never uses a name twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u64);

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// The metadata of a table: an immutable sorted file, one root of an append-only file, or a sealed
/// memtable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Table {
    /// The name of the table.
    pub id: TableId,
    /// The root of an append table; 0 for every other table.
    pub root: u64,
    /// The range from the first key to the least key above the last.
    pub range: KeyRange,
    /// The size of all entries.
    pub size: Size,
    /// The logical bytes in the file of an append table that the root does not show: entries,
    /// and [nodes](crate::ReplacedNodes) that batches have replaced. 0 for every other table.
    pub dead_bytes: u64,
    /// The number of [flushes](crate::Tree::flushes) of the tree when the file of an append-only
    /// table was begun; 0 for every other table.
    pub born: u64,
    /// The smallest sequence number of all entries.
    pub seq_min: SeqNo,
    /// The greatest sequence number of all entries.
    pub seq_max: SeqNo,
    /// Range deletes up to this sequence number hide no entry of the table: the merge that wrote it
    /// has left those out. 0 if nothing is known.
    pub deletes_applied: SeqNo,
    /// The time of the clock at which all entries have expired, deletions aside. 0 if an entry does
    /// not expire, or if that is not known.
    pub expires: u64,
    /// The number of the flush that brought the oldest tombstone of the table, or an earlier one. 0
    /// if the table has none, or if that is not known. Only kept for policies that need it.
    pub oldest_tombstone: u64,
    /// Profile points within the range, ascending. Policies cut at these.
    pub profile: Profile,
}

impl Table {
    /// Returns the size of all entries below `key`. It is exact at profile points and at the ends,
    /// and the mean of both neighbouring points otherwise.
    pub fn below(&self, key: &Key) -> Size {
        if *key <= self.range.start {
            return Size::default();
        }
        if self.range.lies_below(key) {
            return self.size;
        }
        let profile = &self.profile;
        let all = 0..self.profile.len();
        let index = profile.count(all.clone(), key, false);
        let lower = index.checked_sub(1).map_or(Size::default(), |last| profile.below(last));
        if index == all.end {
            return lower.middle(self.size);
        }
        let upper = profile.below(index);
        let is_above = profile.after(index).is_some_and(|after| after <= *key);
        if is_above || profile.key(index) == *key { upper } else { lower.middle(upper) }
    }

    /// Returns the indexes of the profile points within `range`, without a point at its start.
    fn points_inside(&self, range: &KeyRange) -> Range<usize> {
        let all = 0..self.profile.len();
        let from = self.profile.count(all.clone(), &range.start, true);
        let end = match &range.end {
            Some(end) => self.profile.count(all, end, false),
            None => all.end,
        };
        from..end.max(from)
    }

    /// Returns true if the profile ascends and stays within the range and the size of the table.
    fn has_order(&self) -> bool {
        let Some(last) = self.profile.len().checked_sub(1) else { return true };
        // The profile ascends, so that its first and last points bound all others.
        self.profile.is_ordered()
            && self.range.start <= self.profile.key(0)
            && !self.range.lies_below(&self.profile.key(last))
            && self.profile.below(last).bytes <= self.size.bytes
    }

    /// Returns true if `range`, which contains these points, consists of whole cells and ends right
    /// above the last key of one.
    fn is_of_cells(&self, range: &KeyRange, points: &Range<usize>) -> bool {
        let end = if points.end < self.profile.len() {
            self.profile.after(points.end)
        } else {
            self.range.end.clone()
        };
        let begins = match points.start.checked_sub(1) {
            Some(last) => range.start == self.profile.key(last),
            None => range.start == self.range.start,
        };
        begins && end.is_some() && range.end == end
    }

    /// Returns the size of all entries from `start` up to, not including, `end`.
    fn between(&self, start: &Key, end: Option<&Key>) -> Size {
        if end.is_some_and(|end| end <= start) {
            return Size::default();
        }
        end.map_or(self.size, |end| self.below(end)) - self.below(start)
    }

    /// Returns the size of all entries within `range`, to the precision of the profile.
    pub fn within(&self, range: &KeyRange) -> Size {
        self.between(&range.start, range.end.as_ref())
    }
}

/// The part of a table within a key range: the element of a run. A whole table is a slice that
/// covers the table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    table: Arc<Table>,
    range: KeyRange,
    size: Size,
    cells: u32,
    /// The index of the first profile point inside the range.
    first_point: u32,
    is_of_cells: bool,
    has_order: bool,
}

/// The part of a slice between two neighbouring profile points: a data block, if the table has a
/// profile point per block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The least key that the cell can hold.
    pub start: Key,
    /// The least key above the cell; `None` for no bound.
    pub end: Option<Key>,
    /// The size of its entries.
    pub size: Size,
}

impl Slice {
    /// Returns the slice that covers `table`.
    pub fn whole(table: impl Into<Arc<Table>>) -> Slice {
        let table = table.into();
        let points = 0..table.profile.len();
        let first_point = table.profile.count(points, &table.range.start, true) as u32;
        let cells = table.profile.len() as u32 + 1 - first_point;
        Slice {
            range: table.range.clone(),
            size: table.size,
            cells,
            first_point,
            is_of_cells: first_point == 0,
            has_order: table.has_order(),
            table,
        }
    }

    /// Returns this slice of an append table whose file was begun after so many flushes.
    pub(crate) fn born_at(self, flushes: u64) -> Slice {
        if self.table.born == flushes {
            return self;
        }
        Slice { table: Arc::new(Table { born: flushes, ..Table::clone(&self.table) }), ..self }
    }

    /// Returns this slice of `table`, which is the same table with more known of it.
    pub(crate) fn of_table(self, table: Arc<Table>) -> Slice {
        Slice { table, ..self }
    }

    /// Returns this slice of a table whose entries are not hidden by range deletes up to `seq`.
    pub(crate) fn with_deletes_applied(self, seq: SeqNo) -> Slice {
        if self.table.deletes_applied == seq {
            return self;
        }
        Slice {
            table: Arc::new(Table { deletes_applied: seq, ..Table::clone(&self.table) }),
            ..self
        }
    }

    /// Returns the part of `table` that consists of these cells, as [`clip`](Slice::clip) does with
    /// the keys of the cells, but without a search. If the table is known to hold nothing before
    /// the next cell, the part ends where that gap starts.
    ///
    /// # Panics
    /// If `cells` is empty or exceeds the cells of the table, or if a profile point lies at the
    /// start of the table.
    pub fn of_cells(table: Arc<Table>, cells: Range<usize>) -> Slice {
        let profile = &table.profile;
        let (start, below) = match cells.start.checked_sub(1) {
            Some(point) => (profile.key(point), profile.below(point)),
            None => (table.range.start.clone(), Size::default()),
        };
        let last = cells.end - 1;
        let (end, below_end, is_of_cells) = if last < profile.len() {
            let after = profile.after(last);
            let is_known = after.is_some();
            (after.or_else(|| Some(profile.key(last))), profile.below(last), is_known)
        } else {
            (table.range.end.clone(), table.size, true)
        };
        // Reads only the points at the ends of the slice: others can be far away in memory.
        let has_order = table.profile.is_ordered()
            && table.range.start <= start
            && cmp_ends(&end, &table.range.end).is_le()
            && below_end.bytes <= table.size.bytes;
        Slice {
            range: KeyRange { start, end },
            size: below_end - below,
            cells: cells.len() as u32,
            first_point: cells.start as u32,
            is_of_cells,
            has_order,
            table,
        }
    }

    /// Returns the part of this slice within `range`, or `None` if the slice can hold nothing
    /// there.
    ///
    /// Every partial merge and every block-preserving merge is built on this operation.
    pub fn clip(&self, range: &KeyRange) -> Option<Slice> {
        if range.covers(&self.range) {
            return Some(self.clone());
        }
        let range = self.range.intersection(range);
        if range.is_empty() {
            return None;
        }
        let points = self.table.points_inside(&range);
        Some(Slice {
            size: self.table.within(&range),
            cells: points.len() as u32 + 1,
            first_point: points.start as u32,
            is_of_cells: self.table.is_of_cells(&range, &points),
            has_order: self.has_order,
            table: self.table.clone(),
            range,
        })
    }

    /// Returns the number of cells: one more than there are profile points inside the slice.
    #[inline]
    pub fn cell_count(&self) -> u64 {
        u64::from(self.cells)
    }

    /// Returns the indexes, among the cells of the table, of the cells that the slice shows in
    /// whole or in part. Cell `i` lies between the profile points `i - 1` and `i`.
    #[inline]
    pub fn cell_indexes(&self) -> Range<usize> {
        let first = self.first_point as usize;
        first..first + self.cells as usize
    }

    /// Returns true if the slice consists of whole cells and ends right above the last key of one.
    /// Its size is then exact.
    #[inline]
    pub fn is_of_cells(&self) -> bool {
        self.is_of_cells
    }

    /// Returns true if the profile of the table ascends, and the slice stays within the range and
    /// the size of the table.
    #[inline]
    pub(crate) fn has_order(&self) -> bool {
        self.has_order
    }

    /// Returns the indexes of the profile points inside the slice, between its cells.
    pub(crate) fn point_indexes(&self) -> Range<usize> {
        let first = self.first_point as usize;
        first..first + self.cells as usize - 1
    }

    /// Returns the number of profile points inside the slice that lie below `key`, or at `key` if
    /// `or_on` is true.
    #[inline]
    fn count_points(&self, key: &Key, or_on: bool) -> usize {
        // With block-preserving merges most slices are a single cell, and to look at the table of
        // each would be a cache miss.
        match self.cells {
            1 => 0,
            _ => self.table.profile.count(self.point_indexes(), key, or_on),
        }
    }

    /// Returns the key of a profile point inside the slice.
    fn point_key(&self, index: usize) -> Key {
        self.table.profile.key(self.first_point as usize + index)
    }

    /// Returns the key at which the cell with this index starts. The first cell starts where the
    /// slice starts.
    ///
    /// # Panics
    /// If the slice has fewer cells.
    #[inline]
    pub fn cell_start_at(&self, index: usize) -> Key {
        match index.checked_sub(1) {
            None => self.range.start.clone(),
            Some(point) => self.point_key(point),
        }
    }

    /// Returns the index of the cell that holds the greatest keys below `key`; 0 for a key below
    /// all cells.
    #[inline]
    pub fn cell_below(&self, key: &Key) -> usize {
        self.count_points(key, false)
    }

    /// Returns the key at which the cell with this index ends; `None` for no bound.
    ///
    /// # Panics
    /// If the slice has fewer cells.
    pub fn cell_end_at(&self, index: usize) -> Option<Key> {
        if index + 1 == self.cells as usize {
            self.range.end.clone()
        } else {
            Some(self.point_key(index))
        }
    }

    /// Returns the cells of the slice, in key order.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        let profile = &self.table.profile;
        let mut below = self.table.below(&self.range.start);
        let all = below.saturating_add(self.size);
        let mut start = self.range.start.clone();
        let inner = self.point_indexes().map(|at| (Some(profile.key(at)), profile.below(at)));
        let ends = inner.chain(std::iter::once((self.range.end.clone(), all)));
        ends.map(move |(end, below_end)| {
            let next = end.clone().unwrap_or_default();
            let cell =
                Cell { start: std::mem::replace(&mut start, next), end, size: below_end - below };
            below = below_end;
            cell
        })
    }

    /// Returns the start of the cell that holds `key`; the start of the slice for a key below it.
    pub fn cell_start(&self, key: &Key) -> Key {
        self.cell_start_at(self.count_points(key, true))
    }

    /// Returns the end of the cell that holds the greatest keys below `key`; the end of the slice
    /// for a key above it.
    pub fn cell_end(&self, key: &Key) -> Option<Key> {
        self.cell_end_at(self.count_points(key, false))
    }

    /// Returns the table that the slice is a part of.
    #[inline]
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Returns the keys that are visible through this slice.
    #[inline]
    pub fn range(&self) -> &KeyRange {
        &self.range
    }

    /// Returns the size of the slice, to the precision of the table's profile.
    #[inline]
    pub fn size(&self) -> Size {
        self.size
    }

    /// Returns true if the slice covers an append table, so that it may be appended to.
    pub fn is_append(&self) -> bool {
        self.table.root > 0 && self.is_whole()
    }

    /// Returns the logical bytes that the file of the table holds besides the slice, if it covers
    /// an append table; 0 for every other slice.
    pub fn dead_bytes(&self) -> u64 {
        if self.is_whole() { self.table.dead_bytes } else { 0 }
    }

    /// Returns the logical bytes of the file if the table were rewritten as an append-only one: the
    /// bytes of the slice and of the [nodes](crate::node_bytes) above its entries.
    pub fn bytes_with_nodes(&self) -> u64 {
        self.size.bytes.saturating_add(crate::node_bytes(self.size.entries))
    }

    /// Returns true if the slice covers its table.
    pub fn is_whole(&self) -> bool {
        self.range.covers(&self.table.range)
    }

    /// Returns the size of the part of this slice within `range`, to the precision of the table's
    /// profile.
    pub fn size_within(&self, range: &KeyRange) -> Size {
        if range.covers(&self.range) {
            return self.size;
        }
        let start = match self.range.start.cmp(&range.start) {
            Ordering::Less => &range.start,
            _ => &self.range.start,
        };
        let end = match cmp_ends(&self.range.end, &range.end) {
            Ordering::Less => &self.range.end,
            _ => &range.end,
        };
        self.table.between(start, end.as_ref())
    }

    /// Returns the range of the first piece of this slice that holds at least `bytes` logical
    /// bytes. The piece starts where the slice starts and ends at a profile point, or at the end of
    /// the slice if there is no such point.
    pub fn first_piece(&self, bytes: u64) -> KeyRange {
        if self.size.bytes <= bytes {
            return self.range.clone();
        }
        let profile = &self.table.profile;
        let base = self.table.below(&self.range.start).bytes;
        let on_start = profile.count(0..profile.len(), &self.range.start, true);
        let cut = profile.count_by_bytes(base.saturating_add(bytes)).max(on_start);
        if cut < profile.len() {
            let end = profile.key(cut);
            if self.range.contains(&end) {
                return KeyRange { start: self.range.start.clone(), end: Some(end) };
            }
        }
        self.range.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ProfilePoint;

    fn table() -> Arc<Table> {
        let point = |key: &'static str, bytes| ProfilePoint {
            key: Key::from(key),
            below: Size { bytes, entries: bytes / 10, tombstones: 0 },
            after: None,
        };
        Arc::new(Table {
            id: TableId(1),
            range: KeyRange::new("a", "z"),
            size: Size { bytes: 1000, entries: 100, tombstones: 0 },
            profile: vec![point("g", 300), point("p", 700)].into(),
            ..Table::default()
        })
    }

    #[test]
    fn sizes_are_exact_at_profile_points_and_between_them_elsewhere() {
        let whole = Slice::whole(table());
        let size = |start, end| whole.clip(&KeyRange::new(start, end)).map(|s| s.size().bytes);
        assert_eq!(size("g", "p"), Some(400));
        assert_eq!(size("a", "h"), Some(500));
        assert_eq!(size("0", "zz"), Some(1000));
        assert_eq!(size("z", "zz"), None);
    }

    #[test]
    fn cells_are_parts_as_their_keys_are() {
        let mut known = Table::clone(&table());
        let mut points = known.profile.to_vec();
        points[0].after = Some(Key::from("e"));
        known.profile = points.into();
        let whole = Slice::whole(known);
        let cells = |from, end| Slice::of_cells(Arc::clone(whole.table()), from..end);
        let clip = |start, end| whole.clip(&KeyRange::new(start, end)).expect("not empty");
        assert_eq!(cells(0, 3), whole);
        assert_eq!(cells(0, 1), clip("a", "e"));
        assert_eq!(cells(1, 2), clip("g", "p"));
        assert_eq!(cells(1, 3), clip("g", "z"));
        assert_eq!(clip("h", "zz").cell_indexes(), 1..3);
    }

    #[test]
    fn a_first_piece_ends_at_a_profile_point() {
        let whole = Slice::whole(table());
        assert_eq!(whole.first_piece(200), KeyRange::new("a", "g"));
        assert_eq!(whole.first_piece(301), KeyRange::new("a", "p"));
        assert_eq!(whole.first_piece(701), KeyRange::new("a", "z"));
        assert_eq!(whole.first_piece(5000), KeyRange::new("a", "z"));
        let rest = whole.clip(&KeyRange::new("g", "z")).expect("not empty");
        assert_eq!(rest.first_piece(400), KeyRange::new("g", "p"));
        assert_eq!(rest.first_piece(401), KeyRange::new("g", "z"));
    }

    #[test]
    fn cells_lie_between_profile_points() {
        let whole = Slice::whole(table());
        let cells = |slice: &Slice| -> Vec<(String, u64)> {
            let text = |key: Key| String::from_utf8_lossy(&key).into_owned();
            let cells = slice.cells();
            cells
                .map(|c| (text(c.start) + ".." + &c.end.map_or(String::new(), text), c.size.bytes))
                .collect()
        };
        let expected = [("a..g", 300), ("g..p", 400), ("p..z", 300)];
        assert_eq!(cells(&whole), expected.map(|(range, bytes)| (range.to_string(), bytes)));
        let part = whole.clip(&KeyRange::new("g", "q")).expect("not empty");
        assert_eq!(part.cell_count(), 2);
        assert_eq!(
            (part.cell_start(&"h".into()), part.cell_start(&"p".into())),
            (Key::from("g"), Key::from("p"))
        );
        assert_eq!(
            (part.cell_end(&"p".into()), part.cell_end(&"pa".into())),
            (Some("p".into()), Some("q".into()))
        );
        assert_eq!(cells(&part), [("g..p".to_string(), 400), ("p..q".to_string(), 150)]);
    }
}
