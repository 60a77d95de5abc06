//! Which blocks of a table are needed to see a part of its keys.

use super::reader::Table;
use lsmith_tree::KeyRange;
use std::ops::Range;

impl Table {
    /// The indexes of the blocks that reads within `ranges` go to, as ranges that do not touch.
    /// `ranges` are in key order and disjoint.
    pub fn needed_blocks(&self, ranges: &[KeyRange]) -> Vec<Range<usize>> {
        let mut needed: Vec<Range<usize>> = Vec::new();
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            let from = self.fences.block_for(&range.start);
            let upto = match &range.end {
                Some(end) => self.fences.blocks_below(end),
                None => self.fences.count(),
            };
            let blocks = from..upto.max(from + 1);
            match needed.last_mut() {
                Some(last) if blocks.start <= last.end => last.end = last.end.max(blocks.end),
                _ => needed.push(blocks),
            }
        }
        needed
    }

    /// Where in the file the blocks lie that no read within `ranges` goes to, ascending.
    pub fn dead_places(&self, ranges: &[KeyRange]) -> Vec<Range<u64>> {
        let needed = self.needed_blocks(ranges);
        let starts = std::iter::once(0).chain(needed.iter().map(|blocks| blocks.end));
        let ends = needed.iter().map(|blocks| blocks.start).chain([self.fences.count()]);
        let gaps = starts.zip(ends).filter(|(start, end)| start < end);
        let place = |(from, upto): (usize, usize)| {
            self.fences.place(from).start..self.fences.place(upto - 1).end
        };
        gaps.map(place).collect()
    }
}
