//! Entries: their kinds, their sequence numbers, and what a merge makes of two entries of one key.

use std::fmt;

/// A place in the order of writes: a larger sequence number is a later write. Zero is before every
/// write.
#[doc(alias = "sequence number")]
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
/// other out before they reach the bottom of the tree. `Put` and `Delete` promise nothing. A
/// `Combine` is an update that waits to be applied: its value is an operand for the operator of the
/// keyspace.
///
/// The codes are stored in files. In logs 4 is a range delete, and there are no references.
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
    /// The key has what an operator makes of the value that was there before and of this operand.
    Combine = 5,
    /// The key has this value, whatever was there before, until a time that stands in front of the
    /// value. Then it is absent.
    Expiring = 6,
    /// A put whose value lies in a value file. The entry has a reference in its place.
    PutReference = 4,
    /// An insert whose value lies in a value file.
    InsertReference = 7,
}

impl EntryKind {
    /// Returns the kind that is stored as `byte`, or `None` for an unknown byte.
    pub fn from_byte(byte: u8) -> Option<EntryKind> {
        match byte {
            0 => Some(EntryKind::Put),
            1 => Some(EntryKind::Delete),
            2 => Some(EntryKind::Insert),
            3 => Some(EntryKind::Remove),
            4 => Some(EntryKind::PutReference),
            5 => Some(EntryKind::Combine),
            6 => Some(EntryKind::Expiring),
            7 => Some(EntryKind::InsertReference),
            _ => None,
        }
    }

    /// Returns true if the entry is a tombstone.
    pub fn is_tombstone(self) -> bool {
        matches!(self, EntryKind::Delete | EntryKind::Remove)
    }

    /// Returns true if the entry says the value of its key by itself.
    #[inline]
    pub fn is_value(self) -> bool {
        // Put and insert differ in one bit. A `match` becomes a jump through a table, per entry.
        const DIFFERENCE: u8 = EntryKind::Put as u8 ^ EntryKind::Insert as u8;
        self as u8 & !DIFFERENCE == EntryKind::Put as u8
    }

    /// Returns true if the value of the entry lies in a value file.
    #[inline]
    pub fn is_reference(self) -> bool {
        matches!(self, EntryKind::PutReference | EntryKind::InsertReference)
    }

    /// Returns the kind of the same entry with its value in a value file. Only puts and inserts
    /// have one.
    pub fn referring(self) -> Option<EntryKind> {
        match self {
            EntryKind::Put | EntryKind::PutReference => Some(EntryKind::PutReference),
            EntryKind::Insert | EntryKind::InsertReference => Some(EntryKind::InsertReference),
            _ => None,
        }
    }

    /// Returns the kind of the same entry with its value in its place.
    pub fn resolved(self) -> EntryKind {
        match self {
            EntryKind::PutReference => EntryKind::Put,
            EntryKind::InsertReference => EntryKind::Insert,
            kind => kind,
        }
    }

    /// Returns the kind of the one entry that replaces `self` and the older entry `older` of the
    /// same key, with the value of `self`, or, over a combine or under one, with what the operator
    /// makes of both. Returns `None` if the two cancel each other out. No snapshot may lie between
    /// the two.
    ///
    /// Below an `Insert` the key is absent. So an update of an insert is still an insert, and a
    /// `Remove` of it leaves nothing. An insert over a tombstone hides what the tombstone hid, so
    /// it becomes a `Put` (Thonangi & Yang, section II-A; the text leaves this case open, and
    /// otherwise deleted data would return). A combine is an update too: over anything but another
    /// combine the value is known.
    pub fn over(self, older: EntryKind) -> Option<EntryKind> {
        use EntryKind::Remove;
        use EntryKind::{Combine, Delete, Expiring, Insert, InsertReference, Put, PutReference};
        match (self, older.resolved()) {
            (PutReference | InsertReference, Insert) => Some(InsertReference),
            (PutReference | InsertReference, _) => Some(PutReference),
            (Expiring, _) => Some(Expiring),
            (Remove, Insert) => None,
            (Combine, Combine) => Some(Combine),
            (Put | Insert | Combine, Insert) => Some(Insert),
            (Put | Insert | Combine, _) => Some(Put),
            (Delete, _) => Some(Delete),
            (Remove, Delete) => Some(Delete),
            (Remove, _) => Some(Remove),
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
    use super::EntryKind::{Combine, Delete, Expiring, Insert, Put, Remove};
    use super::EntryKind::{InsertReference, PutReference};
    use super::*;

    const ALL: [EntryKind; 8] =
        [Put, Delete, Insert, Remove, Combine, Expiring, PutReference, InsertReference];

    #[test]
    fn kinds_survive_their_bytes() {
        for kind in ALL {
            assert_eq!(EntryKind::from_byte(kind as u8), Some(kind));
        }
        assert_eq!(EntryKind::from_byte(8), None);
    }

    #[test]
    fn place_of_a_value_changes_nothing_else() {
        for kind in ALL {
            assert_eq!(kind.is_reference(), kind.resolved() != kind);
            assert!(!(kind.is_reference() && (kind.is_value() || kind.is_tombstone())), "{kind:?}");
            if let Some(referring) = kind.referring() {
                assert_eq!(referring.resolved(), kind.resolved());
            }
            for older in ALL {
                let over = kind.over(older);
                let plain = kind.resolved().over(older.resolved());
                assert_eq!(over.map(EntryKind::resolved), plain, "{kind:?} {older:?}");
                let refers = over.is_some_and(EntryKind::is_reference);
                assert_eq!(refers, kind.is_reference(), "the value of {kind:?} stays");
            }
        }
    }

    #[test]
    fn only_a_remove_over_an_insert_leaves_nothing() {
        for newer in ALL {
            for older in ALL {
                let vanishes = newer.over(older).is_none();
                let is_pair = newer == Remove && older.resolved() == Insert;
                assert_eq!(vanishes, is_pair, "{newer:?} {older:?}");
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
            [Combine, Combine, Delete],
            [Insert, Combine, Remove],
            [Delete, Combine, Combine],
            [Insert, Expiring, Remove],
            [Put, Expiring, Insert],
        ] {
            let [c, b, a] = story.map(Some);
            let present = |kind: Option<EntryKind>| kind.is_some_and(|k| !k.is_tombstone());
            let left = apply(apply(a, b), c);
            let right = apply(a, apply(b, c));
            assert_eq!(present(left), present(right), "{story:?}");
        }
    }
}
