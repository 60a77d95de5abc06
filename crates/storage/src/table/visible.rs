//! Computes the blocks of a table that reads of some key ranges need.

use super::reader::Table;
use lsmith_tree::KeyRange;
use std::ops::Range;

impl Table {
    /// Returns the indexes of the blocks that reads within `ranges` need, as ranges that do not
    /// touch. `ranges` must be in key order and disjoint.
    pub fn needed_blocks(&self, ranges: &[KeyRange]) -> Vec<Range<usize>> {
        let mut needed: Vec<Range<usize>> = Vec::new();
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            let first = self.fences.block_for(&range.start);
            let end = match &range.end {
                Some(end) => self.fences.blocks_below(end),
                None => self.fences.count(),
            };
            let blocks = first..end.max(first + 1);
            match needed.last_mut() {
                Some(last) if blocks.start <= last.end => last.end = last.end.max(blocks.end),
                _ => needed.push(blocks),
            }
        }
        needed
    }

    /// Returns the file ranges of the blocks that no read within `ranges` needs, ascending.
    pub(super) fn unneeded_places(&self, ranges: &[KeyRange]) -> Vec<Range<u64>> {
        let needed = self.needed_blocks(ranges);
        let starts = std::iter::once(0).chain(needed.iter().map(|blocks| blocks.end));
        let ends = needed.iter().map(|blocks| blocks.start).chain([self.fences.count()]);
        let gaps = starts.zip(ends).filter(|(start, end)| start < end);
        let place = |(first, end): (usize, usize)| {
            self.fences.place(first).start..self.fences.place(end - 1).end
        };
        gaps.map(place).collect()
    }
}
