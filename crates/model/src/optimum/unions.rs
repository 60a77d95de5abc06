//! The sizes of merges of consecutive flushes.

use std::ops::Range;

/// The most flushes whose ranges are all kept. Their number grows with the second power: 2,000
/// flushes take 32 MB.
pub const FLUSHES_MAX: usize = 2000;

/// The bytes of each merge of consecutive flushes, in the order in which they were written. If keys
/// repeat, a merge writes less than it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unions {
    /// The number of flushes.
    flushes: usize,
    /// The bytes of flushes `first` to `last`, at index `first * flushes + last`.
    bytes: Vec<u64>,
}

/// Collects the entries of all flushes.
#[derive(Clone, Debug)]
pub struct UnionsBuilder {
    /// One more than the number of flushes.
    width: usize,
    /// What each range has more than the ranges that begin and end one flush earlier, modulo 2^64.
    /// A rectangle of ranges has four corners.
    more: Vec<u64>,
}

impl UnionsBuilder {
    /// Returns a builder for `flushes` flushes, whose merges are all empty.
    ///
    /// # Panics
    /// Panics if there are more than [`FLUSHES_MAX`].
    #[must_use]
    pub fn new(flushes: usize) -> UnionsBuilder {
        assert!(flushes <= FLUSHES_MAX, "too many flushes: {flushes}");
        let width = flushes + 1;
        UnionsBuilder { width, more: vec![0; width * width] }
    }

    /// Adds the entry of `bytes` of one key in flush `flush`. `newer` is the next flush that has an
    /// entry of the key, if one has. Flushes count from 0. The entry comes out of every merge of
    /// its flush without `newer`; a tombstone does only if the merge leaves out an older flush.
    pub fn add(&mut self, flush: usize, newer: Option<usize>, bytes: u64, is_tombstone: bool) {
        let firsts = usize::from(is_tombstone)..flush + 1;
        self.add_rectangle(firsts, flush..newer.unwrap_or(self.width - 1), bytes);
    }

    /// Adds `bytes` to every merge whose first flush is one of `firsts`, and whose last one is one
    /// of `lasts`.
    fn add_rectangle(&mut self, firsts: Range<usize>, lasts: Range<usize>, bytes: u64) {
        if firsts.is_empty() || lasts.is_empty() {
            return;
        }
        let mut at = |first: usize, last: usize, bytes: u64| {
            let cell = &mut self.more[first * self.width + last];
            *cell = cell.wrapping_add(bytes);
        };
        at(firsts.start, lasts.start, bytes);
        at(firsts.end, lasts.start, bytes.wrapping_neg());
        at(firsts.start, lasts.end, bytes.wrapping_neg());
        at(firsts.end, lasts.end, bytes);
    }

    /// Returns the sizes.
    #[must_use]
    pub fn finish(mut self) -> Unions {
        let (width, flushes) = (self.width, self.width - 1);
        for at in 1..width {
            self.more[at] = self.more[at].wrapping_add(self.more[at - 1]);
        }
        for first in 1..width {
            let mut in_row = 0_u64;
            for last in 0..width {
                let at = first * width + last;
                in_row = in_row.wrapping_add(self.more[at]);
                self.more[at] = in_row.wrapping_add(self.more[at - width]);
            }
        }
        let rows = self.more.chunks(width).take(flushes);
        Unions { flushes, bytes: rows.flat_map(|row| &row[..flushes]).copied().collect() }
    }
}

impl Unions {
    /// Returns the sizes of merges of flushes of `sizes` that share no key.
    ///
    /// # Panics
    /// Panics if there are more than [`FLUSHES_MAX`].
    #[must_use]
    pub fn of_sizes(sizes: &[u64]) -> Unions {
        let mut unions = UnionsBuilder::new(sizes.len());
        for (flush, size) in sizes.iter().enumerate() {
            unions.add(flush, None, *size, false);
        }
        unions.finish()
    }

    /// Returns the number of flushes.
    #[must_use]
    pub fn flushes(&self) -> usize {
        self.flushes
    }

    /// Returns the bytes of all flushes together, before any merge.
    #[must_use]
    pub fn flushed(&self) -> u64 {
        (0..self.flushes).map(|flush| self.from(flush)[0]).sum()
    }

    /// Returns the bytes of the merges that begin with flush `first`, by their last flush.
    pub(super) fn from(&self, first: usize) -> &[u64] {
        &self.bytes[first * self.flushes..][first..self.flushes]
    }

    /// Returns the least bytes of a merge of each number of flushes, from one on. No merge of so
    /// many flushes writes less, whichever they are.
    pub(super) fn least_by_count(&self) -> Vec<u64> {
        let mut least = vec![u64::MAX; self.flushes];
        for first in 0..self.flushes {
            for (least, bytes) in least.iter_mut().zip(self.from(first)) {
                *least = (*least).min(*bytes);
            }
        }
        least
    }
}
