//! The filter of a table: it answers which keys the table certainly does not hold.
//!
//! ```text
//! line: 64 bytes ... | probes: u8 | seal
//! ```
//!
//! This is a blocked Bloom filter. The upper half of the hash of a key selects a line of 512 bits.
//! All bits of the key are in that line, so that a query reads one cache line.
//!
//! A filter may hold prefixes too: the first bytes, of one length, of all keys that have so many.
//! Their hash has another seed. Otherwise a key as long as a prefix would pass for it.

use super::codec::{Damage, Reader};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The seed of the hash of prefixes: `prefixes` in ASCII. It differs from the seed of keys, 0, in
/// its upper half too, because hashes of up to three bytes mix the seed with 32 bits of input.
const PREFIX_SEED: u64 = 0x7072_6566_6978_6573;

/// Returns the hash of `key` that filters use.
#[inline]
pub fn key_hash(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// Returns the hash of the first bytes of a key, `prefix`, that filters use.
#[inline]
pub fn prefix_hash(prefix: &[u8]) -> u64 {
    xxh3_64_with_seed(prefix, PREFIX_SEED)
}

/// Returns the [`prefix_hash`] of the first `prefix_bytes` bytes of `key`, or `None` if it has
/// fewer. There are no prefixes if `prefix_bytes` is 0.
#[inline]
pub fn prefix_hash_of(key: &[u8], prefix_bytes: u16) -> Option<u64> {
    if prefix_bytes == 0 {
        return None;
    }
    key.get(..usize::from(prefix_bytes)).map(prefix_hash)
}

const LINE_WORDS: usize = 8;
const LINE_BYTES: usize = LINE_WORDS * 8;
const LINE_BITS: usize = LINE_BYTES * 8;
const PROBES_MAX: u8 = 16;

/// One cache line of the filter.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Line([u64; LINE_WORDS]);

impl Line {
    fn insert(&mut self, hash: u64, probes: u8) {
        for bit in bits(hash, probes) {
            if let Some(word) = self.0.get_mut(bit / 64) {
                *word |= 1 << (bit % 64);
            }
        }
    }

    #[inline]
    fn may_hold(&self, hash: u64, probes: u8) -> bool {
        bits(hash, probes)
            .all(|bit| self.0.get(bit / 64).is_none_or(|word| word >> (bit % 64) & 1 == 1))
    }
}

/// Returns the bits of a key in its line: the top nine bits of the hash times ascending powers of
/// an odd number (2^64 divided by the golden ratio, which spreads the powers evenly).
#[inline]
fn bits(hash: u64, probes: u8) -> impl Iterator<Item = usize> {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut mixed = hash;
    (0..probes).map(move |_| {
        mixed = mixed.wrapping_mul(SPREAD);
        (mixed >> (u64::BITS - LINE_BITS.ilog2())) as usize
    })
}

/// Returns the line of a key among `lines`.
#[inline]
fn line_index(hash: u64, lines: usize) -> usize {
    ((hash >> 32).wrapping_mul(lines as u64) >> 32) as usize
}

/// Collects the hashes of keys while a table is written. Their count determines the size of the
/// filter.
#[derive(Debug)]
pub struct FilterBuilder {
    hashes: Vec<u64>,
    /// The hashes before those, [`FULL_HASHES`] in each. One list of all would be moved as it
    /// grows, and take three times its memory meanwhile.
    full: Vec<Vec<u64>>,
    bits_per_key: f64,
}

/// Hashes in a full list: 64 KiB.
const FULL_HASHES: usize = 8192;

impl FilterBuilder {
    /// Creates a builder for about `bits_per_key` bits per key, more than 0.
    pub fn new(bits_per_key: impl Into<f64>) -> FilterBuilder {
        let bits_per_key = bits_per_key.into();
        FilterBuilder { hashes: Vec::new(), full: Vec::new(), bits_per_key }
    }

    /// Adds a key by its [`key_hash`], or a prefix by its [`prefix_hash`]. Adding one twice makes
    /// the filter larger than needed.
    pub fn add(&mut self, hash: u64) {
        self.hashes.push(hash);
        if self.hashes.len() == FULL_HASHES {
            let next = Vec::with_capacity(FULL_HASHES);
            self.full.push(std::mem::replace(&mut self.hashes, next));
        }
    }

    fn keys(&self) -> u64 {
        (self.full.len() * FULL_HASHES + self.hashes.len()) as u64
    }

    /// Returns the bytes of memory that the hashes take, and that [`finish`](FilterBuilder::finish)
    /// will take beside them.
    pub fn memory_bytes(&self) -> u64 {
        let filter_bytes = self.bits_per_key / 8.0;
        8 * self.hashes.capacity() as u64
            + (self.full.len() * FULL_HASHES * 8) as u64
            + (self.keys() as f64 * 2.0 * filter_bytes) as u64
    }

    /// Returns the payload of the filter block.
    pub fn finish(self) -> Vec<u8> {
        let mut filter = Filter::with_room(self.keys(), self.bits_per_key);
        for hashes in self.full.iter().chain([&self.hashes]) {
            hashes.iter().for_each(|hash| filter.insert(*hash));
        }
        filter.encode()
    }
}

/// A filter in memory.
#[derive(Clone, Debug)]
pub struct Filter {
    lines: Box<[Line]>,
    probes: u8,
}

impl Filter {
    /// Creates an empty filter of about `bits_per_key` bits, more than 0, for each of `keys` keys.
    pub fn with_room(keys: u64, bits_per_key: f64) -> Filter {
        let bits = (keys as f64 * bits_per_key) as u64;
        let lines = bits.div_ceil(LINE_BITS as u64).clamp(1, u64::from(u32::MAX)) as usize;
        // The best number of probes of an unblocked filter is ln 2 times the bits per key.
        let probes = (bits_per_key * 0.69).clamp(1.0, f64::from(PROBES_MAX)) as u8;
        Filter { lines: vec![Line::default(); lines].into(), probes }
    }

    /// Adds the key with this [`key_hash`], or the prefix with this [`prefix_hash`].
    pub fn insert(&mut self, hash: u64) {
        let index = line_index(hash, self.lines.len());
        if let Some(line) = self.lines.get_mut(index) {
            line.insert(hash, self.probes);
        }
    }

    /// Returns the payload of the filter block.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.memory_bytes() + 1);
        for word in self.lines.iter().flat_map(|line| line.0) {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.push(self.probes);
        out
    }

    /// Decodes the payload of a filter block.
    pub fn parse(payload: &[u8]) -> Result<Filter, Damage> {
        let Some((&probes, lines)) = payload.split_last() else {
            return Err(Damage::whole("a filter is too short"));
        };
        if lines.is_empty() || !lines.len().is_multiple_of(LINE_BYTES) {
            return Err(Damage::whole("expected a filter of whole 64-byte lines"));
        }
        if probes == 0 || probes > PROBES_MAX {
            return Err(Damage { what: "expected a filter of 1 to 16 probes", at: lines.len() });
        }
        let mut reader = Reader::new(lines, 0);
        let mut filter = vec![Line::default(); lines.len() / LINE_BYTES];
        for word in filter.iter_mut().flat_map(|line| &mut line.0) {
            *word = reader.u64()?;
        }
        Ok(Filter { lines: filter.into(), probes })
    }

    /// Returns the size in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }

    /// Returns the largest number of bits that a key sets.
    pub fn probes(&self) -> u8 {
        self.probes
    }

    /// Loads the line of the key with this [`key_hash`], and returns an arbitrary word of it. A
    /// caller that queries many filters touches all of them first, so that the loads run in
    /// parallel.
    #[inline]
    pub fn touch(&self, hash: u64) -> u64 {
        let line = self.lines.get(line_index(hash, self.lines.len()));
        line.and_then(|line| line.0.first()).copied().unwrap_or_default()
    }

    /// Returns true if the key with this [`key_hash`], or the prefix with this [`prefix_hash`], may
    /// have been added. `false` is certain.
    #[inline]
    pub fn may_hold(&self, hash: u64) -> bool {
        let line = self.lines.get(line_index(hash, self.lines.len()));
        line.is_none_or(|line| line.may_hold(hash, self.probes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(keys: u64, bits_per_key: u8) -> Filter {
        let mut builder = FilterBuilder::new(bits_per_key);
        (0..keys).for_each(|key| builder.add(key_hash(&key.to_be_bytes())));
        Filter::parse(&builder.finish()).expect("just written")
    }

    /// Returns the share of 200,000 absent keys that a filter over `keys` keys does not exclude.
    fn false_positives(keys: u64, bits_per_key: u8) -> f64 {
        let filter = filter(keys, bits_per_key);
        assert!((0..keys).all(|key| filter.may_hold(key_hash(&key.to_be_bytes()))));
        let absent = 1 << 40..(1 << 40) + 200_000u64;
        let held = absent.filter(|key| filter.may_hold(key_hash(&key.to_be_bytes()))).count();
        held as f64 / 200_000.0
    }

    #[test]
    fn ten_bits_per_key_let_about_one_absent_key_in_a_hundred_pass() {
        for keys in [1_000, 30_000, 300_000] {
            let share = false_positives(keys, 10);
            assert!((0.006..0.015).contains(&share), "{share} of {keys}");
        }
    }

    #[test]
    fn more_bits_let_fewer_pass() {
        let shares = [2, 5, 10, 16, 24].map(|bits| false_positives(30_000, bits));
        assert!(shares.is_sorted_by(|more, fewer| more > fewer), "{shares:?}");
        assert!(shares[4] < 0.001, "{shares:?}");
    }

    #[test]
    fn prefixes_and_keys_of_the_same_bytes_are_told_apart() {
        for bytes in 1..40 {
            let keys: Vec<Vec<u8>> = (0..200u8).map(|last| vec![last; bytes]).collect();
            let mut builder = FilterBuilder::new(10);
            keys.iter().for_each(|key| builder.add(key_hash(key)));
            let filter = Filter::parse(&builder.finish()).expect("just written");
            let held = keys.iter().filter(|key| filter.may_hold(prefix_hash(key))).count();
            assert!(held < 20, "{held} of 200 prefixes of {bytes} bytes");
        }
    }

    #[test]
    fn only_keys_with_enough_bytes_have_a_prefix() {
        assert_eq!(prefix_hash_of(b"abc", 0), None);
        assert_eq!(prefix_hash_of(b"abc", 4), None);
        assert_eq!(prefix_hash_of(b"abc", 3), Some(prefix_hash(b"abc")));
        assert_eq!(prefix_hash_of(b"abcd", 3), Some(prefix_hash(b"abc")));
    }

    #[test]
    fn filter_line_is_one_cache_line() {
        assert_eq!((size_of::<Line>(), align_of::<Line>()), (64, 64));
    }
}
