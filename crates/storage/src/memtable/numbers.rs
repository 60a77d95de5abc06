//! The keys of a node as sorted numbers, for fast searches.

use crate::format::{common_prefix_bytes, key_prefix};
use std::ops::Range;

/// The most keys of a node.
///
/// A split takes as long as some puts (2 to 3 us), and comes once in about 0.7 times this many
/// puts. So one put of 150 pays for a split, and belongs to the slowest percent. With fewer keys,
/// splits would come more often, and there would be more leaves to search.
pub(super) const KEYS_MAX: usize = 208;

/// Numbers in a cache line.
const NUMBERS_PER_LINE: usize = 8;

/// The most common prefix bytes of a node that are used.
const SHARED_BYTES_MAX: usize = 22;

/// If this many first bytes of all numbers are equal, the keys are numbered again.
const COMMON_BYTES_MAX: usize = 4;

/// For each key of a node, the eight bytes behind the common prefix of all keys. If keys differ
/// there, a search needs nothing else of them. Ties are left to the caller, which has the keys.
#[derive(Debug)]
pub(super) struct Numbers {
    shared: [u8; SHARED_BYTES_MAX],
    shared_bytes: u8,
    len: u8,
    numbers: [u64; KEYS_MAX],
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers { shared: [0; SHARED_BYTES_MAX], shared_bytes: 0, len: 0, numbers: [0; KEYS_MAX] }
    }
}

impl Numbers {
    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    fn shared(&self) -> &[u8] {
        &self.shared[..usize::from(self.shared_bytes)]
    }

    /// Loads one number of each cache line. A searched leaf, of many thousand, is in main memory.
    /// These loads run in parallel; the loads of a search would run one after the other.
    #[inline]
    pub(super) fn touch(&self) {
        let lines = self.numbers.as_chunks::<NUMBERS_PER_LINE>().0;
        std::hint::black_box(lines.iter().fold(0, |all, line| all ^ line[0]));
    }

    /// Returns the positions of the keys whose numbers equal the number of `key`. Keys before them
    /// are below `key`, keys behind them are above it.
    #[inline]
    pub(super) fn ties(&self, key: &[u8]) -> Range<usize> {
        let shared = self.shared();
        let Some(rest) = key.strip_prefix(shared) else {
            let at = if key < shared { 0 } else { self.len() };
            return at..at;
        };
        let number = key_prefix(rest);
        let numbers = &self.numbers[..self.len()];
        let start = numbers.partition_point(|other| *other < number);
        let ties = numbers[start..].iter().take_while(|other| **other == number);
        start..start + ties.count()
    }

    /// Inserts `key` at position `at`. There must be room for it.
    ///
    /// Returns false, and changes nothing, if `key` does not have the common prefix. The caller
    /// must then [number](Numbers::renumber) all keys again.
    pub(super) fn insert(&mut self, at: usize, key: &[u8]) -> bool {
        let Some(rest) = key.strip_prefix(self.shared()) else { return false };
        let len = self.len();
        self.numbers.copy_within(at..len, at + 1);
        self.numbers[at] = key_prefix(rest);
        self.len += 1;
        true
    }

    /// Numbers sorted keys, given the first and the last one. `numbers(skip)` returns the
    /// [numbers](key_prefix) of all keys without their first `skip` bytes.
    pub(super) fn renumber<I: Iterator<Item = u64>>(
        &mut self,
        (first, last): (&[u8], &[u8]),
        numbers: impl FnOnce(usize) -> I,
    ) {
        let shared_bytes = common_prefix_bytes(first, last).min(SHARED_BYTES_MAX);
        self.shared[..shared_bytes].copy_from_slice(&first[..shared_bytes]);
        self.shared_bytes = shared_bytes as u8;
        self.len = 0;
        for number in numbers(shared_bytes) {
            self.numbers[self.len()] = number;
            self.len += 1;
        }
    }

    /// Moves the numbers from `at` on into `above`, which must be empty.
    pub(super) fn split_off(&mut self, at: usize, above: &mut Numbers) {
        let numbers = &self.numbers[at..self.len()];
        above.numbers[..numbers.len()].copy_from_slice(numbers);
        above.len = numbers.len() as u8;
        above.shared = self.shared;
        above.shared_bytes = self.shared_bytes;
        self.len = at as u8;
    }

    /// Returns true if the numbers have so many first bytes in common that the rest may not
    /// distinguish the keys.
    pub(super) fn are_coarse(&self) -> bool {
        let numbers = &self.numbers[..self.len()];
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return false };
        let common_bytes = (first ^ last).leading_zeros() as usize / 8;
        common_bytes >= COMMON_BYTES_MAX
            && usize::from(self.shared_bytes) + common_bytes <= SHARED_BYTES_MAX
    }
}
