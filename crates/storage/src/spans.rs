//! Sets of byte positions in a file, kept as ranges.

use std::ops::Range;

/// Ascending ranges that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spans(Vec<Range<u64>>);

impl Spans {
    /// Adds the bytes of `range`.
    pub fn add(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.0.partition_point(|span| span.end < range.start);
        let last = self.0.partition_point(|span| span.start <= range.end);
        let touched = &self.0[first..last];
        let start = touched.first().map_or(range.start, |span| span.start.min(range.start));
        let end = touched.last().map_or(range.end, |span| span.end.max(range.end));
        self.0.splice(first..last, std::iter::once(start..end));
    }

    /// Returns the parts of `range` that are not in the set, ascending.
    pub fn gaps_in(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let first = self.0.partition_point(|span| span.end <= range.start);
        let mut gaps = Vec::new();
        let mut at = range.start;
        for span in self.0[first..].iter().take_while(|span| span.start < range.end) {
            if at < span.start {
                gaps.push(at..span.start);
            }
            at = span.end;
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
        gaps
    }

    /// Returns the number of bytes below `end` that are in the set.
    pub fn bytes_below(&self, end: u64) -> u64 {
        self.0.iter().map(|span| span.end.min(end).saturating_sub(span.start)).sum()
    }

    /// Returns the ranges, ascending.
    #[cfg(test)]
    fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.0.iter().cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_are_a_set_of_bytes(
            ranges in vec((0..60_u64, 0..12_u64), 0..20),
            asked in (0..60_u64, 0..30_u64),
        ) {
            let mut spans = Spans::default();
            let mut bytes = [false; 100];
            for (start, length) in ranges {
                spans.add(start..start + length);
                bytes[start as usize..(start + length) as usize].fill(true);
            }
            let ranges: Vec<_> = spans.iter().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert!(ranges.iter().all(|range| !range.is_empty()));
            let start = asked.0;
            let end = asked.0 + asked.1;
            let expected = bytes[..end as usize].iter().filter(|held| **held).count();
            prop_assert_eq!(spans.bytes_below(end), expected as u64);
            let mut gaps = [false; 100];
            for gap in spans.gaps_in(start..end) {
                gaps[gap.start as usize..gap.end as usize].fill(true);
            }
            for at in 0..100 {
                let within = (start as usize..end as usize).contains(&at);
                prop_assert_eq!(gaps[at], within && !bytes[at]);
            }
        }
    }
}
