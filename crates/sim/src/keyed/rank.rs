//! Ranks as keys.

use lsmith_tree::Key;

/// Returns the key that stands for `rank` in trees and plans: its eight bytes, so that order is
/// kept.
pub fn rank_key(rank: u64) -> Key {
    Key::of_number(rank)
}

/// Returns the least rank whose key is at or above `key`.
pub(crate) fn rank_from(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let bytes = key.len().min(8);
    first[..bytes].copy_from_slice(&key[..bytes]);
    u64::from_be_bytes(first).saturating_add(u64::from(key.len() > 8))
}
