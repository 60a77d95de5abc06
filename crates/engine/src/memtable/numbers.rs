//! Sorted keys as numbers, to be searched side by side.

use crate::format::{common_prefix_bytes, key_prefix};
use std::ops::Range;

/// Keys of a node at most. A slot's index fits into a byte.
///
/// A split takes as long as some puts, and comes once in about 0.7 times so many: with 208, one put
/// of 150 pays for one, of 20 us, so that the one in a hundred that is slow takes 2.9 us. With 64 a
/// split takes 5 us and comes once in 45 puts; all puts together take a seventh longer, because
/// there are three times as many leaves to find the way to.
pub(super) const KEYS_MAX: usize = 208;

/// Numbers in a line of the processor's caches.
const NUMBERS_PER_LINE: usize = 8;

/// Bytes that the keys of a node share, as far as they are used.
const SHARED_BYTES_MAX: usize = 22;

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
        let lines = self.numbers.iter().step_by(NUMBERS_PER_LINE);
        std::hint::black_box(lines.fold(0, |all, number| all ^ number));
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

    /// Numbers these keys, which are sorted.
    pub(super) fn renumber<'a>(&mut self, keys: impl DoubleEndedIterator<Item = &'a [u8]> + Clone) {
        let (first, last) = (keys.clone().next(), keys.clone().next_back());
        let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
        let shared_bytes = common_prefix_bytes(first, last).min(SHARED_BYTES_MAX);
        self.shared[..shared_bytes].copy_from_slice(&first[..shared_bytes]);
        self.shared_bytes = shared_bytes as u8;
        self.len = 0;
        for key in keys {
            self.numbers[self.len()] = key_prefix(&key[shared_bytes..]);
            self.len += 1;
        }
    }
}
