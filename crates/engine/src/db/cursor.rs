//! Cursors, which seek, and step in both directions.

use super::Iter;
use crate::group::Member;
use bytes::Bytes;
use lsmith_storage::error::Result;
use std::fmt;
use std::ops::Bound;

/// A cursor over the entries of a keyspace at one moment. It seeks, steps in both directions, and
/// turns round. Turning round costs a seek.
///
/// Each call returns the entry that the cursor is on then, lent until the next call, or `None` if
/// it has left the entries. Beyond the last entry a step back returns to the last one, and before
/// the first a step forward returns to the first one. A cursor over a range never leaves it: a seek
/// to a key outside goes to the next entry within.
///
/// Like an [`Iter`], a cursor keeps its store open, and the files that it reads.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let store = lsmith::Store::builder(dir.path()).open()?;
/// # let fruit = store.keyspace("fruit")?;
/// for name in ["apple", "cherry", "pear"] {
///     fruit.put(name, "")?;
/// }
/// let mut cursor = fruit.cursor();
/// assert_eq!(cursor.seek("b")?.unwrap().0, b"cherry");
/// assert_eq!(cursor.next()?.unwrap().0, b"pear");
/// assert_eq!(cursor.prev()?.unwrap().0, b"cherry");
/// assert_eq!(cursor.seek_back("banana")?.unwrap().0, b"apple");
/// assert!(cursor.prev()?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("iterator", "seek"))]
pub struct Cursor {
    iter: Iter,
    /// The id in front of the keys of a group's keyspace.
    member: Vec<u8>,
    bounds: (Bound<Bytes>, Bound<Bytes>),
    place: Place,
    /// The key of the entry that the cursor is on, as the tree has it.
    key: Vec<u8>,
    /// The direction of the last step, if the iterator can go on from it.
    facing: Option<Side>,
}

/// Where a cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Before,
    On,
    Behind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Forward,
    Back,
}

/// An entry, lent until the next call.
type Lent<'a> = Result<Option<(&'a [u8], &'a [u8])>>;

impl Cursor {
    /// Returns a cursor over the entries of `iter`, before the first one. `bounds` are its
    /// bounds as the tree has them, and `member` is the keyspace in its group.
    pub(super) fn new(
        iter: Iter,
        member: Option<&Member>,
        bounds: (Bound<Bytes>, Bound<Bytes>),
    ) -> Cursor {
        let member = member.map_or(Vec::new(), |member| vec![member.id]);
        let key = member.clone();
        Cursor { iter, member, bounds, place: Place::Before, key, facing: None }
    }

    /// Goes to the first entry.
    ///
    /// # Errors
    /// As [`Iter::next_ref`]. After an error the next step tries again. If the error is one of a
    /// [single key](crate::Error::key), the next step goes to the key behind that.
    pub fn first(&mut self) -> Lent<'_> {
        self.place = Place::Before;
        self.facing = None;
        self.next()
    }

    /// Goes to the last entry.
    ///
    /// # Errors
    /// As [`first`](Cursor::first).
    pub fn last(&mut self) -> Lent<'_> {
        self.place = Place::Behind;
        self.facing = None;
        self.prev()
    }

    /// Goes to the first entry whose key is `key` or greater.
    ///
    /// # Errors
    /// As [`first`](Cursor::first).
    pub fn seek(&mut self, key: impl AsRef<[u8]>) -> Lent<'_> {
        let key = [&self.member, key.as_ref()].concat();
        let (lower, upper) = &self.bounds;
        let from = match borrowed(lower) {
            Bound::Included(bound) | Bound::Excluded(bound) if bound >= &key[..] => borrowed(lower),
            _ => Bound::Included(&key[..]),
        };
        if matches!(borrowed(upper), Bound::Included(end) | Bound::Excluded(end) if end < &key[..])
        {
            (self.place, self.facing) = (Place::Behind, None);
            return Ok(None);
        }
        self.iter.restart(from, borrowed(upper));
        self.step(Side::Forward)
    }

    /// Goes to the last entry whose key is `key` or smaller.
    ///
    /// # Errors
    /// As [`first`](Cursor::first).
    pub fn seek_back(&mut self, key: impl AsRef<[u8]>) -> Lent<'_> {
        let key = [&self.member, key.as_ref()].concat();
        let (lower, upper) = &self.bounds;
        let to = match borrowed(upper) {
            Bound::Included(bound) | Bound::Excluded(bound) if bound <= &key[..] => borrowed(upper),
            _ => Bound::Included(&key[..]),
        };
        let is_beyond = |start: &[u8]| start > &key[..];
        if matches!(borrowed(lower), Bound::Included(at) | Bound::Excluded(at) if is_beyond(at)) {
            (self.place, self.facing) = (Place::Before, None);
            return Ok(None);
        }
        self.iter.restart(borrowed(lower), to);
        self.step(Side::Back)
    }

    /// Steps to the next entry, in ascending order of keys.
    ///
    /// # Errors
    /// As [`first`](Cursor::first).
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend, nor step back")]
    pub fn next(&mut self) -> Lent<'_> {
        let (lower, upper) = &self.bounds;
        match self.place {
            Place::Behind => return Ok(None),
            Place::Before => self.iter.restart(borrowed(lower), borrowed(upper)),
            Place::On if self.facing == Some(Side::Forward) => {}
            Place::On => self.iter.restart(Bound::Excluded(&self.key), borrowed(upper)),
        }
        self.step(Side::Forward)
    }

    /// Steps to the entry before, in descending order of keys.
    ///
    /// # Errors
    /// As [`first`](Cursor::first).
    pub fn prev(&mut self) -> Lent<'_> {
        let (lower, upper) = &self.bounds;
        match self.place {
            Place::Before => return Ok(None),
            Place::Behind => self.iter.restart(borrowed(lower), borrowed(upper)),
            Place::On if self.facing == Some(Side::Back) => {}
            Place::On => self.iter.restart(borrowed(lower), Bound::Excluded(&self.key)),
        }
        self.step(Side::Back)
    }

    fn step(&mut self, side: Side) -> Lent<'_> {
        self.facing = None;
        let (entry, end) = match side {
            Side::Forward => (self.iter.next_ref(), Place::Behind),
            Side::Back => (self.iter.next_back_ref(), Place::Before),
        };
        let Some(entry) = entry else {
            self.place = end;
            return Ok(None);
        };
        let found = match &entry {
            Ok((key, _)) => Some(*key),
            // A key with an error has no value. The next step goes to the key behind it.
            Err(error) => error.key(),
        };
        if let Some(key) = found {
            self.key.truncate(self.member.len());
            self.key.extend_from_slice(key);
            self.place = Place::On;
            self.facing = Some(side);
        }
        entry.map(Some)
    }
}

fn borrowed(bound: &Bound<Bytes>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &key[..])
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor").field("place", &self.place).finish_non_exhaustive()
    }
}
