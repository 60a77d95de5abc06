//! From items to keys.

use crate::ranks::{DIGITS_MAX, KeyOrder, Ranks, rank_by_bytes, rank_by_place};

/// The keys of a workload's items, of a given length at least.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    space: KeySpace,
    /// The length to which shorter keys are filled up with zero bytes.
    bytes_min: usize,
}

impl Keys {
    /// Returns the keys of `space`, filled up to `bytes_min`. `None` if two would then be equal: a
    /// key ends with a zero byte, and another one is as long as both must be.
    pub(crate) fn new(space: KeySpace, bytes_min: usize) -> Option<Keys> {
        let is_distinct = match &space {
            KeySpace::Named(names) => bytes_min == 0 || !names.some_end_with(0),
            // Decimal keys have no zero bytes, and numbers are of one length.
            KeySpace::Decimal(_) | KeySpace::Number => true,
        };
        is_distinct.then_some(Keys { space, bytes_min })
    }

    /// Replaces `key` by the key of `item`.
    pub(crate) fn write(&self, item: u64, key: &mut Vec<u8>) {
        self.space.write(item, key);
        if key.len() < self.bytes_min {
            key.resize(self.bytes_min, 0);
        }
    }

    /// Returns the length of the key of `item` in bytes.
    pub(crate) fn key_bytes(&self, item: u64) -> usize {
        self.space.key_bytes(item).max(self.bytes_min)
    }

    /// Returns true if items 0..`items` are numbered in the byte order of their keys.
    pub(crate) fn in_order(&self, items: u64) -> bool {
        self.space.in_order(items)
    }

    /// Returns the ranks of the keys of items 0..`items`. Zero bytes at the end change no order.
    pub(crate) fn ranks(&self, items: u64) -> Ranks {
        self.space.ranks(items)
    }
}

/// How keys are made.
#[derive(Clone, Debug)]
pub(crate) enum KeySpace {
    /// Keys made from numbers.
    Decimal(DecimalKeys),
    /// Keys read from a file.
    Named(NamedKeys),
    /// The item itself, below 2^32, as four bytes, the highest first.
    Number,
}

impl KeySpace {
    /// Replaces `key` by the key of `item`.
    pub(crate) fn write(&self, item: u64, key: &mut Vec<u8>) {
        key.clear();
        match self {
            Self::Decimal(keys) => keys.write(item, key),
            Self::Named(keys) => key.extend_from_slice(keys.name(item as usize)),
            Self::Number => key.extend_from_slice(&(item as u32).to_be_bytes()),
        }
    }

    /// Returns the length of the key of `item` in bytes.
    pub(crate) fn key_bytes(&self, item: u64) -> usize {
        match self {
            Self::Decimal(keys) => keys.prefix.len() + keys.digits(keys.decimal(item)) as usize,
            Self::Named(keys) => keys.name(item as usize).len(),
            Self::Number => size_of::<u32>(),
        }
    }

    /// Returns true if items 0..`items` are numbered in the byte order of their keys.
    pub(crate) fn in_order(&self, items: u64) -> bool {
        match self {
            Self::Decimal(keys) => keys.ordered(items),
            Self::Named(keys) => keys.in_order,
            Self::Number => true,
        }
    }

    /// Returns the ranks of the keys of items 0..`items`.
    pub(crate) fn ranks(&self, items: u64) -> Ranks {
        match self {
            _ if self.in_order(items) => Ranks::Identity,
            Self::Decimal(keys) => Ranks::Table(rank_by_place(items, |item| keys.place(item))),
            Self::Named(keys) => {
                Ranks::Table(rank_by_bytes(items as usize, |item| keys.name(item)))
            }
            Self::Number => Ranks::Identity,
        }
    }
}

/// A prefix followed by a decimal number, the item itself or a hash of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecimalKeys {
    pub(crate) prefix: &'static str,
    /// True if the number is YCSB's hash of the item.
    pub(crate) hashed: bool,
    /// Shorter numbers get zeros in front.
    pub(crate) digits_min: u32,
}

impl DecimalKeys {
    /// Returns YCSB's keys: `user` and the hash of the item.
    pub(crate) const fn hashed() -> Self {
        Self { prefix: "user", hashed: true, digits_min: 1 }
    }

    /// Returns keys in the order of their items.
    pub(crate) const fn sequential() -> Self {
        Self { prefix: "user", hashed: false, digits_min: 20 }
    }

    /// Returns true if items 0..`items` are in key order.
    fn ordered(&self, items: u64) -> bool {
        !self.hashed && digit_count(items.saturating_sub(1)) <= self.digits_min
    }

    #[inline]
    fn decimal(&self, item: u64) -> u64 {
        if self.hashed { fnv_hash(item) } else { item }
    }

    #[inline]
    fn digits(&self, decimal: u64) -> u32 {
        digit_count(decimal).max(self.digits_min)
    }

    #[inline]
    fn place(&self, item: u64) -> KeyOrder {
        let decimal = self.decimal(item);
        let digits = self.digits(decimal);
        (decimal * 10u64.pow(DIGITS_MAX.saturating_sub(digits)), digits)
    }

    fn write(&self, item: u64, key: &mut Vec<u8>) {
        let mut decimal = self.decimal(item);
        key.extend_from_slice(self.prefix.as_bytes());
        let start = key.len();
        key.resize(start + self.digits(decimal) as usize, b'0');
        for digit in key[start..].iter_mut().rev() {
            *digit = b'0' + (decimal % 10) as u8;
            decimal /= 10;
            if decimal == 0 {
                break;
            }
        }
    }
}

/// Returns the number of decimal digits of a number below 10^19.
#[inline]
fn digit_count(value: u64) -> u32 {
    // Nine of ten hashes have 19 digits, so that most need no counting.
    const ALL: u64 = 10u64.pow(DIGITS_MAX - 1);
    if value >= ALL { DIGITS_MAX } else { value.checked_ilog10().map_or(1, |log| log + 1) }
}

/// YCSB's hash of a number: 64-bit FNV over its eight bytes, lowest first, made positive.
///
/// Its step (xor, then multiply) comes from FNV-1a. Below 2^63 but for one value of 2^64.
#[inline]
pub(crate) fn fnv_hash(value: u64) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let step = |hash: u64, index: u32| (hash ^ (value >> (8 * index) & 0xff)).wrapping_mul(PRIME);
    let hash = (0..8).fold(OFFSET_BASIS, step);
    hash.cast_signed().unsigned_abs()
}

/// The distinct keys of a file, in order of first appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedKeys {
    bytes: Vec<u8>,
    /// The end of each key in `bytes`.
    ends: Vec<usize>,
    /// True if they are in byte order.
    in_order: bool,
}

impl NamedKeys {
    pub(crate) fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the keys in byte order, and the new rank of each.
    pub(crate) fn sorted(&self) -> (NamedKeys, Vec<u32>) {
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_unstable_by_key(|index| self.name(*index));
        let mut sorted = NamedKeys { in_order: true, ..NamedKeys::default() };
        let mut places = vec![0; self.len()];
        for (place, index) in order.into_iter().enumerate() {
            sorted.push(self.name(index));
            places[index] = u32::try_from(place).expect("items are below 2^32");
        }
        (sorted, places)
    }

    fn some_end_with(&self, byte: u8) -> bool {
        (0..self.len()).any(|index| self.name(index).last() == Some(&byte))
    }

    pub(crate) fn name(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(keys: &KeySpace, item: u64) -> String {
        let mut key = b"left over".to_vec();
        keys.write(item, &mut key);
        assert_eq!(key.len(), keys.key_bytes(item));
        String::from_utf8(key).unwrap()
    }

    fn check_ranks(keys: &KeySpace, items: u64) {
        let texts: Vec<String> = (0..items).map(|item| key(keys, item)).collect();
        let mut sorted = texts.clone();
        sorted.sort();
        sorted.dedup();
        let ranks = keys.ranks(items);
        for (item, text) in texts.iter().enumerate() {
            let place = sorted.binary_search(text).unwrap() as u64;
            assert_eq!(ranks.rank(item as u64), place, "{text}");
        }
    }

    #[test]
    fn hashed_keys_are_those_of_ycsb() {
        // As printed by YCSB for the first records of a load.
        let keys = KeySpace::Decimal(DecimalKeys::hashed());
        assert_eq!(key(&keys, 0), "user6284781860667377211");
        assert_eq!(key(&keys, 1), "user8517097267634966620");
        assert_eq!(key(&keys, 2), "user1820151046732198393");
    }

    #[test]
    fn names_that_would_be_equal_are_not_filled_up() {
        let mut names = NamedKeys::default();
        names.push(b"a");
        names.push(b"a\0b");
        let filled = |names: &NamedKeys, bytes| Keys::new(KeySpace::Named(names.clone()), bytes);
        assert!(filled(&names, 4).is_some());
        names.push(b"a\0");
        assert!(filled(&names, 4).is_none());
        assert!(filled(&names, 0).is_some());
    }

    #[test]
    fn numbers_are_padded() {
        let keys =
            |digits_min| KeySpace::Decimal(DecimalKeys { prefix: "k", hashed: false, digits_min });
        assert_eq!(key(&keys(1), 0), "k0");
        assert_eq!(key(&keys(1), 1234), "k1234");
        assert_eq!(key(&keys(6), 1234), "k001234");
        assert_eq!(
            key(&KeySpace::Decimal(DecimalKeys::sequential()), 7),
            "user00000000000000000007"
        );
    }

    #[test]
    fn ranks_are_places_in_byte_order() {
        for digits_min in [1, 18, 19, 20, 25] {
            check_ranks(
                &KeySpace::Decimal(DecimalKeys { digits_min, ..DecimalKeys::hashed() }),
                3000,
            );
        }
        for digits_min in [1, 2, 3, 4, 30] {
            check_ranks(
                &KeySpace::Decimal(DecimalKeys { prefix: "", hashed: false, digits_min }),
                1234,
            );
        }
        let mut named = NamedKeys::default();
        for name in ["b", "a/b", "", "ä", "a", "a/", "aa"] {
            named.push(name.as_bytes());
        }
        check_ranks(&KeySpace::Named(named), 7);
    }

    #[test]
    fn padded_items_need_no_table() {
        let keys = DecimalKeys { prefix: "", hashed: false, digits_min: 3 };
        assert_eq!(KeySpace::Decimal(keys).ranks(1000), Ranks::Identity);
        assert_ne!(KeySpace::Decimal(keys).ranks(1001), Ranks::Identity);
    }
}
