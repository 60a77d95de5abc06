//! Sorted keys as numbers, to be searched side by side.

use crate::format::{common_prefix_bytes, key_prefix};
use std::ops::Range;

/// Keys of a node at most.
///
/// A split takes as long as some puts, and comes once in about 0.7 times so many: one put of 150
/// pays for one, of 2 to 3 us, which is the one in a hundred that is slow. With fewer keys splits
/// come more often, and there are more leaves to find the way to.
pub(super) const KEYS_MAX: usize = 208;

/// Numbers in a line of the processor's caches.
const NUMBERS_PER_LINE: usize = 8;

/// Bytes that the keys of a node share, as far as they are used.
const SHARED_BYTES_MAX: usize = 22;

/// Bytes at the front of all numbers that may be alike before the keys are numbered anew.
const COMMON_BYTES_MAX: usize = 4;

/// For each key of a node the eight bytes behind those that all of them begin with. Where keys
/// differ there, a search needs nothing else of them; ties are left to who has the keys.
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
    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    fn shared(&self) -> &[u8] {
        &self.shared[..usize::from(self.shared_bytes)]
    }

    /// Loads a number of each cache line. Of many thousand leaves the one that is searched lies in
    /// main memory: these loads go on side by side, those of a search one after the other.
    #[inline]
    pub(super) fn touch(&self) {
        let lines = self.numbers.as_chunks::<NUMBERS_PER_LINE>().0;
        std::hint::black_box(lines.iter().fold(0, |all, line| all ^ line[0]));
    }

    /// The keys that cannot be told from `key` by their numbers. Those before are below it, those
    /// behind are above it.
    #[inline]
    pub(super) fn ties(&self, key: &[u8]) -> Range<usize> {
        let shared = self.shared();
        let Some(rest) = key.strip_prefix(shared) else {
            let at = if key < shared { 0 } else { self.len() };
            return at..at;
        };
        let number = key_prefix(rest);
        let numbers = &self.numbers[..self.len()];
        let from = numbers.partition_point(|other| *other < number);
        let ties = numbers[from..].iter().take_while(|other| **other == number);
        from..from + ties.count()
    }

    /// Takes in `key`, which belongs at `at` and for which there is room.
    ///
    /// False where it does not begin as the others do: nothing is changed then, and all must be
    /// [numbered](Numbers::renumber) anew.
    pub(super) fn insert(&mut self, at: usize, key: &[u8]) -> bool {
        let Some(rest) = key.strip_prefix(self.shared()) else { return false };
        let len = self.len();
        self.numbers.copy_within(at..len, at + 1);
        self.numbers[at] = key_prefix(rest);
        self.len += 1;
        true
    }

    /// Numbers keys that are sorted, of which these are the first and the last: `numbers` tells the
    /// [numbers](key_prefix) of all of them without their first so many bytes.
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

    /// Moves the numbers from `at` on into `above`, which has none.
    pub(super) fn split_off(&mut self, at: usize, above: &mut Numbers) {
        let numbers = &self.numbers[at..self.len()];
        above.numbers[..numbers.len()].copy_from_slice(numbers);
        above.len = numbers.len() as u8;
        above.shared = self.shared;
        above.shared_bytes = self.shared_bytes;
        self.len = at as u8;
    }

    /// Whether all keys have so much in common that what is left of the numbers may not tell one
    /// from the other.
    pub(super) fn are_coarse(&self) -> bool {
        let numbers = &self.numbers[..self.len()];
        let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return false };
        let common_bytes = (first ^ last).leading_zeros() as usize / 8;
        common_bytes >= COMMON_BYTES_MAX
            && usize::from(self.shared_bytes) + common_bytes <= SHARED_BYTES_MAX
    }
}
