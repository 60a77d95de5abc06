//! What a user sees of the entries: one value per key, as of a snapshot.

use crate::cursor::Cursor;
use crate::error::Result;
use crate::format::key_prefix;
use bytes::Bytes;
use lsmith_tree::SeqNo;
use std::cmp::Ordering;
use std::ops::Bound;

/// A key and its value.
pub(crate) type KeyValue = (Bytes, Bytes);

/// The end of the range that the cursor works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Front,
    Back,
}

/// Iterates over the keys within bounds that are present as of a snapshot, from both ends until
/// they meet. After an error it ends.
///
/// There is one cursor. It is placed by a search where the caller changes ends.
pub struct VisibleIter<C> {
    cursor: C,
    snapshot: SeqNo,
    /// What is left: the keys not yet passed, from the front and from the back.
    left: (Limit, Limit),
    /// The side on which the cursor stands, if it stands.
    side: Option<Side>,
    /// Whether the cursor stands on the entry that was given last.
    given: bool,
    /// The value of the entry given last from the back.
    passed: Passed,
    ended: bool,
}

/// Bytes of a key that are copied at once.
const KEY_SHORT: usize = 16;

/// Values up to this many bytes are copied when the cursor passes them, longer ones held by handle.
const COPIED_BYTES_MAX: usize = 1024;

/// A value that the cursor has passed.
#[derive(Debug, Default)]
struct Passed {
    copied: Vec<u8>,
    shared: Option<Bytes>,
}

impl Passed {
    /// Holds `value`, of which `handle` makes a handle.
    #[inline]
    fn hold(&mut self, value: &[u8], handle: impl FnOnce() -> Bytes) {
        self.copied.clear();
        self.shared = None;
        if value.len() > COPIED_BYTES_MAX {
            self.shared = Some(handle());
        } else {
            self.copied.extend_from_slice(value);
        }
    }

    fn bytes(&self) -> &[u8] {
        self.shared.as_deref().unwrap_or(&self.copied)
    }

    fn handle(&mut self) -> Bytes {
        self.shared.take().unwrap_or_else(|| Bytes::copy_from_slice(&self.copied))
    }
}

/// One end of a range of keys.
#[derive(Debug, Default)]
struct Limit {
    key: Vec<u8>,
    reach: Reach,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Reach {
    /// As far as there are keys; the limit's key means nothing.
    #[default]
    Endless,
    /// Up to the limit's key and with it.
    Including,
    /// Up to the limit's key without it.
    Excluding,
}

impl From<Bound<Bytes>> for Limit {
    fn from(bound: Bound<Bytes>) -> Limit {
        match bound {
            Bound::Unbounded => Limit::default(),
            Bound::Included(key) => Limit { key: key.into(), reach: Reach::Including },
            Bound::Excluded(key) => Limit { key: key.into(), reach: Reach::Excluding },
        }
    }
}

/// Compares two keys, mostly without a call.
#[inline]
fn order(left: &[u8], right: &[u8]) -> Ordering {
    key_prefix(left).cmp(&key_prefix(right)).then_with(|| left.cmp(right))
}

impl Limit {
    /// Draws the limit in, to just beside `key`.
    fn pass(&mut self, key: &[u8]) {
        self.key.clear();
        // Short keys are copied without a call.
        match key.split_first_chunk::<KEY_SHORT>() {
            Some((chunk, rest)) => {
                self.key.extend_from_slice(chunk);
                if !rest.is_empty() {
                    self.key.extend_from_slice(rest);
                }
            }
            None => self.key.extend_from_slice(key),
        }
        self.reach = Reach::Excluding;
    }

    /// Whether `key` is within this limit as the lower one.
    fn is_below(&self, key: &[u8]) -> bool {
        let order = || order(&self.key, key);
        match self.reach {
            Reach::Endless => true,
            Reach::Including => order().is_le(),
            Reach::Excluding => order().is_lt(),
        }
    }

    /// Whether `key` is within this limit as the upper one.
    fn is_above(&self, key: &[u8]) -> bool {
        let order = || order(key, &self.key);
        match self.reach {
            Reach::Endless => true,
            Reach::Including => order().is_le(),
            Reach::Excluding => order().is_lt(),
        }
    }
}

impl<C: Cursor> VisibleIter<C> {
    /// The keys of `cursor` between `lower` and `upper`, as `snapshot` sees them. Bounds that
    /// exclude each other hold no keys.
    pub fn new(
        cursor: C,
        snapshot: SeqNo,
        lower: Bound<Bytes>,
        upper: Bound<Bytes>,
    ) -> VisibleIter<C> {
        let left = (lower.into(), upper.into());
        let (side, passed) = (None, Passed::default());
        VisibleIter { cursor, snapshot, left, side, given: false, passed, ended: false }
    }

    /// Stands on the entry with which the front begins, which may lie in front of it.
    fn enter_front(&mut self) -> Result<()> {
        if self.side != Some(Side::Front) {
            self.side = Some(Side::Front);
            self.given = false;
            match self.left.0.reach {
                Reach::Endless => self.cursor.seek_first()?,
                Reach::Including | Reach::Excluding => self.cursor.seek(&self.left.0.key)?,
            }
        }
        if std::mem::take(&mut self.given) { self.cursor.next() } else { Ok(()) }
    }

    /// Stands on the last entry within the upper limit, or before.
    fn enter_back(&mut self) -> Result<()> {
        if self.side != Some(Side::Back) {
            self.side = Some(Side::Back);
            match self.left.1.reach {
                Reach::Endless => self.cursor.seek_last()?,
                Reach::Excluding => self.cursor.seek_before(&self.left.1.key)?,
                Reach::Including => {
                    let mut above = self.left.1.key.clone();
                    above.push(0);
                    self.cursor.seek_before(&above)?;
                }
            }
        }
        Ok(())
    }

    /// Goes to the following key from the front: it is the lower limit then, and its entry is under
    /// the cursor. Whether there is one.
    fn step_front(&mut self) -> Result<bool> {
        self.enter_front()?;
        while let Some(entry) = self.cursor.entry()
            && self.left.1.is_above(entry.key)
        {
            // The older versions of a key that was passed are stepped over, and what is too new.
            if self.left.0.is_below(entry.key) && entry.seq <= self.snapshot {
                self.left.0.pass(entry.key);
                if !entry.kind.is_tombstone() {
                    self.given = true;
                    return Ok(true);
                }
            }
            self.cursor.next()?;
        }
        Ok(false)
    }

    /// Goes to the following key from the back: it is the upper limit then, and its value is held.
    /// Whether there is one.
    fn step_back(&mut self) -> Result<bool> {
        self.enter_back()?;
        while let Some(mut entry) = self.cursor.entry()
            && self.left.0.is_below(entry.key)
        {
            self.left.1.pass(entry.key);
            let mut present = false;
            // All versions of the key, of which the newest comes last.
            loop {
                if entry.seq <= self.snapshot {
                    present = !entry.kind.is_tombstone();
                    self.passed.hold(entry.value, || self.cursor.value());
                }
                self.cursor.prev()?;
                let is_same = |key| order(key, &self.left.1.key).is_eq();
                match self.cursor.entry() {
                    Some(newer) if is_same(newer.key) => entry = newer,
                    _ => break,
                }
            }
            if present {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes a step, unless the iterator has ended; whether there is an entry to give.
    fn step(&mut self, side: Side) -> Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let step = match side {
            Side::Front => self.step_front(),
            Side::Back => self.step_back(),
        };
        self.ended = !matches!(step, Ok(true));
        step
    }

    /// As [`next`](Iterator::next), without a copy of anything but the key.
    pub fn next_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        let step = self.step(Side::Front);
        let entry = || {
            let value = self.cursor.entry().map(|entry| entry.value).unwrap_or_default();
            (&self.left.0.key[..], value)
        };
        step.map(|present| present.then(entry)).transpose()
    }

    /// As [`next_back`](DoubleEndedIterator::next_back), with copies that are given up by the next
    /// step.
    pub fn next_back_ref(&mut self) -> Option<Result<(&[u8], &[u8])>> {
        let step = self.step(Side::Back);
        let entry = || (&self.left.1.key[..], self.passed.bytes());
        step.map(|present| present.then(entry)).transpose()
    }
}

impl<C: Cursor> Iterator for VisibleIter<C> {
    type Item = Result<KeyValue>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step(Side::Front);
        let entry = || (Bytes::copy_from_slice(&self.left.0.key), self.cursor.value());
        step.map(|present| present.then(entry)).transpose()
    }
}

impl<C: Cursor> DoubleEndedIterator for VisibleIter<C> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let step = self.step(Side::Back);
        let entry = || (Bytes::copy_from_slice(&self.left.1.key), self.passed.handle());
        step.map(|present| present.then(entry)).transpose()
    }
}

#[cfg(test)]
mod tests;
