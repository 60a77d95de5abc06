//! Places in the key space.

use lsmith_tree::Key;

use crate::keyed::rank_from;
use crate::rank_key;

/// The number of places. A fraction of the key space is not measured more finely.
pub const PLACES: u64 = 1 << 62;

/// Returns the fraction of the key space from `start` up to `end`.
pub(super) fn width(start: u64, end: u64) -> f64 {
    end.saturating_sub(start) as f64 / PLACES as f64
}

/// Returns the place that is `width` of the key space behind `start`, but at most `end`.
pub(super) fn behind(start: u64, width: f64, end: u64) -> u64 {
    // The cast saturates.
    start.saturating_add((width * PLACES as f64) as u64).min(end)
}

/// Returns the key at a place.
pub(super) fn key(place: u64) -> Key {
    rank_key(place)
}

/// Returns the place of a key.
pub(super) fn place(key: &[u8]) -> u64 {
    rank_from(key)
}
