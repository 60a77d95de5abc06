//! Walks a run with one cursor: its parts in key order, each opened when the walk reaches it.

use crate::cursor::{Cursor, EntryRef, disordered};
use crate::error::{Error, Result};
use bytes::Bytes;
use lsmith_tree::{KeyRange, SeqNo};

/// The parts of a run, in key order, with disjoint key ranges.
pub trait Parts: Send {
    /// The cursor that walks the entries of a part.
    type Cursor: Cursor;

    /// Returns the number of parts.
    fn count(&self) -> usize;

    /// Returns the smallest key that part `index` may show; empty for no limit.
    fn start(&self, index: usize) -> &[u8];

    /// Returns the first key behind the range of part `index`, or `None` for no limit.
    fn end(&self, index: usize) -> Option<&[u8]>;

    /// Returns the first part with keys at or above `key`, or [`count`](Parts::count) if there is
    /// none.
    fn part_for(&self, key: &[u8]) -> usize {
        partition_point(self.count(), |index| self.end(index).is_some_and(|end| end <= key))
    }

    /// Returns true if the source of part `index` may have entries outside of the part.
    fn is_cut(&self, _index: usize) -> bool {
        true
    }

    /// Returns an index for the source of part `index`. One cursor can walk all parts of a source.
    fn source(&self, index: usize) -> usize;

    /// Returns a sequence number that no entry of part `index` exceeds.
    fn newest(&self, _index: usize) -> SeqNo {
        SeqNo::MAX
    }

    /// Returns the error for entries of part `index` in a wrong order.
    fn disorder(&self, _index: usize) -> Error {
        disordered()
    }

    /// Opens a cursor over the source of part `index`.
    fn open(&self, index: usize) -> Result<Self::Cursor>;

    /// Announces to `cursor`, which is open over the source of part `index`, that it will walk this
    /// part. The cursor may still show entries outside of the part's range.
    fn enter(&self, index: usize, cursor: &mut Self::Cursor);
}

/// The number of cursors that stay open. After merges have rewritten some places of a run, its
/// slices alternate between few tables.
const CURSORS_MAX: usize = 8;

/// Walks the entries of a run. Each part shows only the entries in its own range, even if its
/// cursor has more.
pub struct ConcatCursor<P: Parts> {
    parts: P,
    /// The cursors used last, newest first, each with the index of its source.
    cursors: Vec<(usize, P::Cursor)>,
    /// The part that the first cursor walks.
    index: Option<usize>,
    /// The part that an approach has chosen for the coming seek.
    aimed: Option<Aimed>,
    /// Whether the first cursor is on an entry within its part.
    live: bool,
    /// Whether the first cursor may leave its part before it is at its own end.
    cut: bool,
}

/// The part that a search goes to.
#[derive(Clone, Copy)]
struct Aimed {
    index: usize,
    /// True if the part begins, or ends, beyond the key that is searched for. The search then goes
    /// to that end. All steps of a search ask for it, and it takes two comparisons of keys.
    is_beyond: bool,
}

impl<P: Parts> ConcatCursor<P> {
    /// Fails if a search has gone to a key that is not `right`: a leap would come back there.
    fn check_landing(&self, right: impl FnOnce(&[u8]) -> bool) -> Result<()> {
        match self.entry() {
            Some(entry) if !right(entry.key) => Err(self.disorder()),
            _ => Ok(()),
        }
    }

    /// Creates a cursor over `parts`. It is on no entry and has opened no part yet.
    pub fn new(parts: P) -> ConcatCursor<P> {
        ConcatCursor {
            parts,
            cursors: Vec::new(),
            index: None,
            aimed: None,
            live: false,
            cut: true,
        }
    }

    /// Returns the part of the first cursor, and that cursor.
    #[inline]
    fn current(&self) -> Option<(usize, &P::Cursor)> {
        Some((self.index?, &self.cursors.first()?.1))
    }

    /// Makes part `index` the current one and moves its cursor by `go`, which gets the part's
    /// range.
    fn enter(
        &mut self,
        index: usize,
        go: impl FnOnce(&mut P::Cursor, &[u8], Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        self.open(index)?;
        go(&mut self.cursors[0].1, self.parts.start(index), self.parts.end(index))
    }

    /// Makes part `index` the current one.
    fn open(&mut self, index: usize) -> Result<()> {
        self.live = false;
        if self.index != Some(index) {
            self.index = None;
            self.bring_first(index)?;
            self.parts.enter(index, &mut self.cursors[0].1);
            self.index = Some(index);
            self.cut = self.parts.is_cut(index);
        }
        Ok(())
    }

    /// Makes a cursor over the source of part `index` the first one.
    fn bring_first(&mut self, index: usize) -> Result<()> {
        let source = self.parts.source(index);
        match self.cursors.iter().position(|(open, _)| *open == source) {
            Some(at) => self.cursors[..=at].rotate_right(1),
            None => {
                self.cursors.truncate(CURSORS_MAX - 1);
                let cursor = self.parts.open(index)?;
                // Most walks need one cursor only.
                self.cursors.reserve_exact(1);
                self.cursors.insert(0, (source, cursor));
            }
        }
        Ok(())
    }

    /// Returns the part that a search for `key` goes to. It may be behind the last one.
    fn aim(&self, key: &[u8]) -> Aimed {
        let index = self.parts.part_for(key);
        let is_beyond = index < self.parts.count() && self.parts.start(index) > key;
        Aimed { index, is_beyond }
    }

    /// Returns the part that a search for the last key below `key` goes to, if there is one.
    fn aim_before(&self, key: &[u8]) -> Option<Aimed> {
        let index = self.last_part_below(key)?;
        let is_beyond = self.parts.end(index).is_some_and(|end| end < key);
        Some(Aimed { index, is_beyond })
    }

    /// Returns the last part that starts below `key`.
    fn last_part_below(&self, key: &[u8]) -> Option<usize> {
        partition_point(self.parts.count(), |i| self.parts.start(i) < key).checked_sub(1)
    }

    /// Completes a forward move that did not go below the part's start. If the cursor left the part
    /// through its end, goes to the first entry of the following parts.
    fn settle_forward(&mut self) -> Result<()> {
        while let Some((index, cursor)) = self.current() {
            let end = self.parts.end(index).filter(|_| self.cut);
            self.live = cursor.entry().is_some_and(|entry| end.is_none_or(|end| entry.key < end));
            let behind = index + 1;
            if self.live || behind == self.parts.count() {
                break;
            }
            self.enter(behind, |cursor, start, _| cursor.seek(start))?;
        }
        Ok(())
    }

    /// The reverse of `settle_forward`.
    fn settle_backward(&mut self) -> Result<()> {
        while let Some((index, cursor)) = self.current() {
            let start = self.parts.start(index);
            self.live = cursor.entry().is_some_and(|entry| start <= entry.key);
            let Some(before) = index.checked_sub(1).filter(|_| !self.live) else { break };
            self.enter(before, |cursor, _, end| seek_end(cursor, end))?;
        }
        Ok(())
    }

    /// Moves the first cursor if it is on an entry. Returns true if the step is complete, as it is
    /// mostly. Otherwise the cursor may have left its part, and the caller must settle.
    #[inline]
    fn step(&mut self, go: impl FnOnce(&mut P::Cursor) -> Result<()>) -> Result<bool> {
        if !std::mem::take(&mut self.live) {
            return Ok(true);
        }
        go(&mut self.cursors[0].1)?;
        self.live = !self.cut && self.cursors[0].1.entry().is_some();
        Ok(self.live)
    }
}

/// Returns the first number up to `count` for which `holds` is false; it is true for all numbers
/// below.
fn partition_point(count: usize, holds: impl Fn(usize) -> bool) -> usize {
    let mut low = 0;
    let mut high = count;
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Goes to the last entry below `end`.
fn seek_end(cursor: &mut impl Cursor, end: Option<&[u8]>) -> Result<()> {
    match end {
        Some(end) => cursor.seek_before(end),
        None => cursor.seek_last(),
    }
}

impl<P: Parts> Cursor for ConcatCursor<P> {
    fn has_opened(&self) -> bool {
        !self.cursors.is_empty()
    }

    fn seek_first(&mut self) -> Result<()> {
        self.seek(b"")
    }

    fn seek_last(&mut self) -> Result<()> {
        self.live = false;
        let Some(last) = self.parts.count().checked_sub(1) else { return Ok(()) };
        self.enter(last, |cursor, _, end| seek_end(cursor, end))?;
        self.settle_backward()
    }

    fn approach(&mut self, key: &[u8]) -> bool {
        if let Some(Aimed { index, is_beyond }) = self.aimed {
            let key = if is_beyond { self.parts.start(index) } else { key };
            // The seek tries the same again after an error, and returns it.
            return self.index == Some(index) && self.cursors[0].1.approach(key);
        }
        let aimed = self.aim(key);
        self.aimed = Some(aimed);
        aimed.index < self.parts.count() && self.open(aimed.index).is_ok() && self.approach(key)
    }

    fn approach_before(&mut self, key: &[u8]) -> bool {
        if let Some(Aimed { index, is_beyond }) = self.aimed {
            let key = self.parts.end(index).filter(|_| is_beyond).unwrap_or(key);
            // As above.
            return self.index == Some(index) && self.cursors[0].1.approach_before(key);
        }
        let Some(aimed) = self.aim_before(key) else { return false };
        self.aimed = Some(aimed);
        self.open(aimed.index).is_ok() && self.approach_before(key)
    }

    #[inline]
    fn touch(&self) -> u64 {
        self.cursors.first().map_or(0, |(_, cursor)| cursor.touch())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.live = false;
        let Aimed { index, is_beyond } = self.aimed.take().unwrap_or_else(|| self.aim(key));
        if index == self.parts.count() {
            return Ok(());
        }
        self.open(index)?;
        self.cursors[0].1.seek(if is_beyond { self.parts.start(index) } else { key })?;
        self.settle_forward()
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.live = false;
        let Some(Aimed { index, is_beyond }) = self.aimed.take().or_else(|| self.aim_before(key))
        else {
            return Ok(());
        };
        self.open(index)?;
        let key = self.parts.end(index).filter(|_| is_beyond).unwrap_or(key);
        self.cursors[0].1.seek_before(key)?;
        self.settle_backward()
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if self.step(|cursor| cursor.next())? { Ok(()) } else { self.settle_forward() }
    }

    #[inline]
    fn prev(&mut self) -> Result<()> {
        if self.step(|cursor| cursor.prev())? { Ok(()) } else { self.settle_backward() }
    }

    /// Passes over parts that lie in `range` without opening them.
    fn leap(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        let Some(mut index) = self.index else { return Ok(()) };
        if self.parts.newest(index) >= below {
            return self.next();
        }
        self.live = false;
        let end = range.end.as_deref();
        while self.parts.newest(index) < below {
            if let Some(end) = end
                && self.parts.end(index).is_none_or(|part| end < part)
            {
                self.seek(end)?;
                return self.check_landing(|key| key >= end);
            }
            index += 1;
            if index == self.parts.count() {
                return Ok(());
            }
        }
        self.enter(index, |cursor, start, _| cursor.seek(start))?;
        self.settle_forward()
    }

    fn leap_back(&mut self, range: &KeyRange, below: SeqNo) -> Result<()> {
        let Some(mut index) = self.index else { return Ok(()) };
        if self.parts.newest(index) >= below {
            return self.prev();
        }
        self.live = false;
        while self.parts.newest(index) < below {
            if self.parts.start(index) < &*range.start {
                self.seek_before(&range.start)?;
                return self.check_landing(|key| key < &*range.start);
            }
            let Some(before) = index.checked_sub(1) else { return Ok(()) };
            index = before;
        }
        self.enter(index, |cursor, _, end| seek_end(cursor, end))?;
        self.settle_backward()
    }

    fn disorder(&self) -> Error {
        self.index.map_or_else(disordered, |index| self.parts.disorder(index))
    }

    fn newest(&self) -> SeqNo {
        self.index.map_or(SeqNo::MAX, |index| self.parts.newest(index))
    }

    #[inline]
    fn entry(&self) -> Option<EntryRef<'_>> {
        let (_, cursor) = self.cursors.first().filter(|_| self.live)?;
        cursor.entry()
    }

    fn value(&self) -> Bytes {
        self.current().filter(|_| self.live).map_or_else(Bytes::new, |(_, cursor)| cursor.value())
    }
}

#[cfg(test)]
mod tests;
