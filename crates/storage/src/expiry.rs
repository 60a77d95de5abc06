//! Entries that expire: their time stands in front of their value.
//!
//! ```text
//! value = time: u64 | the value that readers see
//! ```
//!
//! Time is a number of the application's. An entry is there as long as the clock shows less than
//! its time.

use lsmith_tree::{EntryKind, Size};

/// The bytes in front of the value.
pub const EXPIRY_BYTES: usize = 8;

/// Returns the value of an entry that expires at `time`.
pub fn expiring_value(time: u64, value: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(EXPIRY_BYTES + value.len());
    stored.extend_from_slice(&time.to_le_bytes());
    stored.extend_from_slice(value);
    stored
}

/// Returns the time at which an entry with this value expires. One that is too short, which no
/// store has written, has expired long ago.
#[inline]
pub fn expires_at(stored: &[u8]) -> u64 {
    stored.first_chunk().map_or(0, |time| u64::from_le_bytes(*time))
}

/// Returns true if an entry has lost its value by the time `now`.
#[inline]
pub fn has_expired(kind: EntryKind, stored: &[u8], now: u64) -> bool {
    kind == EntryKind::Expiring && expires_at(stored) <= now
}

/// Finds out when the last of some entries expires, if all of them do, deletions aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiryTally {
    /// The number of entries that expire.
    entries: u64,
    latest: u64,
}

impl ExpiryTally {
    /// Adds an entry of this kind with the value `stored`. Does nothing if it does not expire.
    #[inline]
    pub fn add(&mut self, kind: EntryKind, stored: &[u8]) {
        if kind == EntryKind::Expiring {
            self.entries += 1;
            self.latest = self.latest.max(expires_at(stored));
        }
    }

    /// Returns the number of added entries that expire.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the latest time of an added entry; 0 if none expires.
    pub fn latest(&self) -> u64 {
        self.latest
    }

    /// Returns true if each entry is a deletion or was added here and expires. `size` counts all
    /// entries.
    pub fn is_all_of(&self, size: Size) -> bool {
        self.entries + size.tombstones >= size.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_is_there_while_the_clock_shows_less_than_its_time() {
        let stored = expiring_value(7, b"value");
        assert_eq!((expires_at(&stored), &stored[EXPIRY_BYTES..]), (7, &b"value"[..]));
        assert!(!has_expired(EntryKind::Expiring, &stored, 6));
        assert!(has_expired(EntryKind::Expiring, &stored, 7));
        assert!(!has_expired(EntryKind::Put, &stored, 7));
        assert!(has_expired(EntryKind::Expiring, b"short", 0));
    }

    #[test]
    fn tally_has_the_latest_time_and_knows_whether_an_entry_stays() {
        let mut tally = ExpiryTally::default();
        let size = |entries| Size { entries, tombstones: 1, bytes: 0 };
        assert!(tally.is_all_of(size(1)));
        tally.add(EntryKind::Expiring, &expiring_value(7, b"a"));
        tally.add(EntryKind::Expiring, &expiring_value(3, b"b"));
        tally.add(EntryKind::Put, &expiring_value(9, b"c"));
        assert_eq!((tally.entries(), tally.latest()), (2, 7));
        assert!(tally.is_all_of(size(3)) && !tally.is_all_of(size(4)));
    }
}
