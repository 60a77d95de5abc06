//! The keys of all benches.

/// Returns key `number`: 16 bytes, in random order, and different for each number.
pub(crate) fn key(number: u64) -> [u8; 16] {
    let scattered = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut key = [0; 16];
    key[..8].copy_from_slice(&scattered.to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}
