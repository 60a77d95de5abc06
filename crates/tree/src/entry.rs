//! Entries: their kinds, their sequence numbers, and what a merge makes of two entries of one key.

use std::fmt;

/// A place in the order of writes: a larger number is a later write. Zero is before every write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqNo(pub u64);

impl SeqNo {
    /// Later than every write.
    pub const MAX: SeqNo = SeqNo(u64::MAX);
}

impl fmt::Display for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What an entry says about its key.
///
/// `Insert` and `Remove` are promises of the caller. `Insert` promises that the key was absent.
/// `Remove` promises that the key was present and inserted once. In return, the two cancel each
/// other out before they reach the bottom of the tree. `Put` and `Delete` promise nothing.
///
/// The numbers are stored in files. 4 is a range delete, which is in logs only. 5 is reserved for
/// combine operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// The key has this value, whatever was there before.
    Put = 0,
    /// The key is absent, whatever was there before.
    Delete = 1,
    /// The key, absent before, has this value.
    Insert = 2,
    /// The key, inserted once before, is absent.
    Remove = 3,
}

impl EntryKind {
    /// Returns the kind that is stored as `byte`, or `None` for an unknown byte.
    pub fn from_byte(byte: u8) -> Option<EntryKind> {
        match byte {
            0 => Some(EntryKind::Put),
            1 => Some(EntryKind::Delete),
            2 => Some(EntryKind::Insert),
            3 => Some(EntryKind::Remove),
            _ => None,
        }
    }

    /// Returns true if the entry is a tombstone.
    pub fn is_tombstone(self) -> bool {
        matches!(self, EntryKind::Delete | EntryKind::Remove)
    }

    /// Returns the kind of the one entry that replaces `self` and the older entry `older` of the
    /// same key, with the value of `self`. Returns `None` if the two cancel each other out. No
    /// snapshot may lie between the two.
    ///
    /// Below an `Insert` the key is absent. So an update of an insert is still an insert, and a
    /// `Remove` of it leaves nothing. An insert over a tombstone hides what the tombstone hid, so
    /// it becomes a `Put` (Thonangi & Yang, section II-A; the text leaves this case open, and
    /// otherwise deleted data would return).
    pub fn over(self, older: EntryKind) -> Option<EntryKind> {
        use EntryKind::{Delete, Insert, Put, Remove};
        match (self, older) {
            (Remove, Insert) => None,
            (Put | Insert, Insert) => Some(Insert),
            (Put | Insert, _) => Some(Put),
            (Delete, _) => Some(Delete),
            (Remove, Delete) => Some(Delete),
            (Remove, Put | Remove) => Some(Remove),
        }
    }
}

/// Returns the logical bytes of an entry: the key, the value and 8 more. Policies, capacities and
/// cut rules count these. A tombstone has no value.
pub const fn logical_bytes(key_bytes: usize, value_bytes: usize) -> u64 {
    (key_bytes + value_bytes + 8) as u64
}

#[cfg(test)]
mod tests {
    use super::EntryKind::{Delete, Insert, Put, Remove};
    use super::*;

    #[test]
    fn kinds_survive_their_bytes() {
        for kind in [Put, Delete, Insert, Remove] {
            assert_eq!(EntryKind::from_byte(kind as u8), Some(kind));
        }
        assert_eq!(EntryKind::from_byte(4), None);
    }

    #[test]
    fn only_a_remove_over_an_insert_leaves_nothing() {
        for newer in [Put, Delete, Insert, Remove] {
            for older in [Put, Delete, Insert, Remove] {
                let vanishes = newer.over(older).is_none();
                assert_eq!(vanishes, newer == Remove && older == Insert, "{newer:?} {older:?}");
            }
        }
    }

    /// Put v1, delete it, insert v2, remove v2: whatever is merged first, v1 must stay hidden.
    #[test]
    fn an_insert_over_a_tombstone_keeps_what_the_tombstone_hid() {
        assert_eq!(Insert.over(Delete), Some(Put));
        assert_eq!(Remove.over(Put), Some(Remove));
        assert!(Remove.over(Put).is_some_and(EntryKind::is_tombstone));
    }

    /// Merging (a over b) over c must say the same as a over (b over c) about the key.
    #[test]
    fn order_of_merging_does_not_change_presence() {
        let apply = |newer: Option<EntryKind>, older: Option<EntryKind>| match (newer, older) {
            (Some(n), Some(o)) => n.over(o),
            (Some(n), None) => Some(n),
            (None, o) => o,
        };
        // Sequences that keep their promises, oldest first, on a key absent at the start.
        for story in [
            [Insert, Remove, Insert],
            [Put, Delete, Insert],
            [Insert, Put, Remove],
            [Delete, Insert, Remove],
            [Put, Remove, Insert],
        ] {
            let [c, b, a] = story.map(Some);
            let present = |kind: Option<EntryKind>| kind.is_some_and(|k| !k.is_tombstone());
            let left = apply(apply(a, b), c);
            let right = apply(a, apply(b, c));
            assert_eq!(present(left), present(right), "{story:?}");
        }
    }
}
