//! Keys and values: 16-byte keys in random or ascending order, values that do not compress.

use lsmith_workload::{Rng, fill_value};

/// Bytes of a key.
pub(crate) const KEY_BYTES: usize = 16;

/// A key.
pub(crate) type Key = [u8; KEY_BYTES];

/// Turns the number of an item into its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Keys whose byte order has nothing to do with their numbers.
    Random,
    /// Keys that ascend with their numbers.
    Ascending,
}

impl Order {
    /// The key of item `number`; no two items have the same key.
    pub(crate) fn key(self, number: u64) -> Key {
        let mut key = [0; KEY_BYTES];
        let head = match self {
            Order::Random => scatter(number),
            Order::Ascending => number,
        };
        key[..8].copy_from_slice(&head.to_be_bytes());
        key[8..].copy_from_slice(&scatter(!number).to_be_bytes());
        key
    }
}

/// A permutation of all numbers that leaves no pattern: every step can be undone.
fn scatter(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 32)
}

/// Values of one length, cut from a pool of random bytes: drawing one costs next to nothing.
#[derive(Debug)]
pub(crate) struct Values {
    pool: Vec<u8>,
    bytes: usize,
}

/// Places at which a value can begin in the pool.
const STARTS: usize = 1 << 16;

impl Values {
    /// Values of `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Values {
        let mut pool = vec![0; STARTS + bytes];
        fill_value(7, &mut pool);
        Values { pool, bytes }
    }

    /// Bytes of a value.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A value.
    pub(crate) fn draw(&self, rng: &mut Rng) -> &[u8] {
        let start = rng.bits() as usize % STARTS;
        &self.pool[start..start + self.bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_differ_and_ascend_only_where_they_should() {
        let keys = |order: Order| (0..10_000).map(move |number| order.key(number));
        let random: BTreeSet<Key> = keys(Order::Random).collect();
        assert_eq!(random.len(), 10_000);
        assert!(keys(Order::Ascending).is_sorted());
        let pairs = keys(Order::Random).zip(keys(Order::Random).skip(1));
        let descents = pairs.filter(|(earlier, later)| earlier > later).count();
        assert!((4500..5500).contains(&descents), "{descents}");
    }

    #[test]
    fn values_have_their_length_and_vary() {
        let values = Values::new(100);
        let mut rng = Rng::new(1, 1);
        let one = values.draw(&mut rng);
        let other = values.draw(&mut rng);
        assert_eq!((one.len(), other.len()), (100, 100));
        assert_ne!(one, other);
    }
}
