//! The choices that inputs are made from.

use lsmith_spec::random;

/// Numbers at the limits of common field widths.
const BORDERS: [u64; 22] = [
    0,
    1,
    2,
    3,
    15,
    16,
    17,
    127,
    128,
    255,
    4096,
    65_535,
    65_536,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 56,
    1 << 62,
    i64::MAX as u64,
    u64::MAX - 1,
    u64::MAX,
];

/// A sequence of choices, taken first from bytes and then from a seed.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
    seed: u64,
}

impl<'a> Choices<'a> {
    /// Returns the choices of a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Choices<'static> {
        Choices { bytes: &[], seed }
    }

    /// Returns choices from the bytes of a coverage-guided fuzzer.
    #[must_use]
    pub fn of_bytes(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes, seed: 0 }
    }

    /// Returns a number of `bytes` bytes, 1 to 8.
    fn take(&mut self, bytes: usize) -> u64 {
        let mut word = [0; 8];
        match self.bytes.split_at_checked(bytes) {
            Some((taken, rest)) => {
                word.iter_mut().zip(taken).for_each(|(to, from)| *to = *from);
                self.bytes = rest;
            }
            None => {
                self.bytes = &[];
                word = random::next(&mut self.seed).to_le_bytes();
            }
        }
        u64::from_le_bytes(word)
    }

    /// Returns any number.
    pub fn number(&mut self) -> u64 {
        self.take(8)
    }

    /// Returns a number below `limit`, or 0 if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let bytes = match limit {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 8,
        };
        (self.take(bytes) % limit.max(1) as u64) as usize
    }

    /// Returns true in about `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `choices`, which must not be empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns `length` random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.take(1) as u8).collect()
    }

    /// Returns a number at a limit, or any other number, often a small one.
    pub fn border(&mut self) -> u64 {
        match self.below(4) {
            0 => {
                let shift = self.below(64);
                self.number() >> shift
            }
            1 => self.below(600) as u64,
            _ => self.pick(&BORDERS),
        }
    }
}
