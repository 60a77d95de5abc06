//! What a user sees of the entries: one value per key, as of a snapshot.

use crate::cursor::Cursor;
use crate::error::Result;
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};
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
pub(crate) struct VisibleIter<C> {
    cursor: C,
    snapshot: SeqNo,
    /// What is left: the keys not yet passed, from the front and from the back.
    left: (Limit, Limit),
    /// The side on which the cursor stands, if it stands.
    side: Option<Side>,
    ended: bool,
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

impl Limit {
    /// Draws the limit in, to just beside `key`.
    fn pass(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.reach = Reach::Excluding;
    }

    /// Whether `key` is within this limit as the lower one.
    fn is_below(&self, key: &[u8]) -> bool {
        match self.reach {
            Reach::Endless => true,
            Reach::Including => self.key.as_slice() <= key,
            Reach::Excluding => self.key.as_slice() < key,
        }
    }

    /// Whether `key` is within this limit as the upper one.
    fn is_above(&self, key: &[u8]) -> bool {
        match self.reach {
            Reach::Endless => true,
            Reach::Including => key <= self.key.as_slice(),
            Reach::Excluding => key < self.key.as_slice(),
        }
    }
}

impl<C: Cursor> VisibleIter<C> {
    /// The keys of `cursor` between `lower` and `upper`, as `snapshot` sees them. Bounds that
    /// exclude each other hold no keys.
    pub(crate) fn new(
        cursor: C,
        snapshot: SeqNo,
        lower: Bound<Bytes>,
        upper: Bound<Bytes>,
    ) -> VisibleIter<C> {
        let left = (lower.into(), upper.into());
        VisibleIter { cursor, snapshot, left, side: None, ended: false }
    }

    /// Stands on the first entry within the lower limit, or beyond.
    fn enter_front(&mut self) -> Result<()> {
        if self.side != Some(Side::Front) {
            self.side = Some(Side::Front);
            match self.left.0.reach {
                Reach::Endless => self.cursor.seek_first()?,
                Reach::Including | Reach::Excluding => self.cursor.seek(&self.left.0.key)?,
            }
        }
        while self.cursor.entry().is_some_and(|entry| !self.left.0.is_below(entry.key)) {
            self.cursor.next()?;
        }
        Ok(())
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
        while self.cursor.entry().is_some_and(|entry| !self.left.1.is_above(entry.key)) {
            self.cursor.prev()?;
        }
        Ok(())
    }

    fn step_front(&mut self) -> Result<Option<KeyValue>> {
        self.enter_front()?;
        while let Some(entry) = self.cursor.entry()
            && self.left.1.is_above(entry.key)
        {
            if entry.seq > self.snapshot {
                self.cursor.next()?;
                continue;
            }
            self.left.0.pass(entry.key);
            if !entry.kind.is_tombstone() {
                let key = Bytes::copy_from_slice(entry.key);
                // The older versions of the key are stepped over when the next key is asked for.
                return Ok(Some((key, self.cursor.value())));
            }
            self.enter_front()?;
        }
        Ok(None)
    }

    fn step_back(&mut self) -> Result<Option<KeyValue>> {
        self.enter_back()?;
        while let Some(entry) = self.cursor.entry()
            && self.left.0.is_below(entry.key)
        {
            self.left.1.pass(entry.key);
            if let Some(value) = self.newest_visible_backward()? {
                return Ok(Some((Bytes::copy_from_slice(&self.left.1.key), value)));
            }
        }
        Ok(None)
    }

    /// Steps backward over all versions of the key that the cursor stands on, which the upper
    /// limit has just passed; the value of the newest that the snapshot sees.
    fn newest_visible_backward(&mut self) -> Result<Option<Bytes>> {
        let mut value = None;
        while let Some(entry) = self.cursor.entry()
            && entry.key == self.left.1.key
        {
            if entry.seq <= self.snapshot {
                value = match entry.kind {
                    EntryKind::Put | EntryKind::Insert => Some(self.cursor.value()),
                    EntryKind::Delete | EntryKind::Remove => None,
                };
            }
            self.cursor.prev()?;
        }
        Ok(value)
    }

    /// The outcome of a step as an iterator gives it.
    fn give(&mut self, step: Result<Option<KeyValue>>) -> Option<Result<KeyValue>> {
        self.ended = !matches!(step, Ok(Some(_)));
        step.transpose()
    }
}

impl<C: Cursor> Iterator for VisibleIter<C> {
    type Item = Result<KeyValue>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let step = self.step_front();
        self.give(step)
    }
}

impl<C: Cursor> DoubleEndedIterator for VisibleIter<C> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let step = self.step_back();
        self.give(step)
    }
}

#[cfg(test)]
mod tests;
