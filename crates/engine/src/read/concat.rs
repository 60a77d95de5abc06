//! A run as one cursor: parts in key order, opened when they are reached.

use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use bytes::Bytes;

/// The parts of a run, in key order, their ranges disjoint.
pub(crate) trait Parts: Send {
    /// How many parts there are.
    fn count(&self) -> usize;

    /// The smallest key that may show through part `index`; empty for no limit.
    fn start(&self, index: usize) -> &[u8];

    /// The smallest key above all that may show through part `index`; `None` for no limit.
    fn end(&self, index: usize) -> Option<&[u8]>;

    /// A cursor over what holds part `index`. It may know entries outside of the part's range.
    fn open(&self, index: usize) -> Result<Box<dyn Cursor>>;
}

/// Walks the entries of a run. Each part shows the entries in its own range only, whatever else
/// its cursor knows.
pub(crate) struct ConcatCursor<P> {
    parts: P,
    /// The part last opened: only one is open at any time.
    open: Option<Open>,
    /// Whether the open cursor stands on an entry within its part.
    live: bool,
}

struct Open {
    index: usize,
    cursor: Box<dyn Cursor>,
}

impl<P: Parts> ConcatCursor<P> {
    /// A cursor over `parts`; it stands nowhere yet and has opened nothing.
    pub(crate) fn new(parts: P) -> ConcatCursor<P> {
        ConcatCursor { parts, open: None, live: false }
    }

    /// The number of parts for whose index `holds` says true: those before the first that doesn't.
    fn partition_point(&self, holds: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (0, self.parts.count());
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

    /// Opens part `index` and places its cursor by `go`, which is told the part's range.
    fn enter(
        &mut self,
        index: usize,
        go: impl FnOnce(&mut dyn Cursor, &[u8], Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        self.live = false;
        let open = match &mut self.open {
            Some(open) if open.index == index => open,
            closed => {
                *closed = None;
                closed.insert(Open { index, cursor: self.parts.open(index)? })
            }
        };
        go(&mut *open.cursor, self.parts.start(index), self.parts.end(index))
    }

    /// Goes on from wherever the open cursor went to, which is no place below the part's start:
    /// where it left the part through its end, to the first entry of the parts behind it.
    fn settle_forward(&mut self) -> Result<()> {
        while let Some(open) = &self.open {
            let end = self.parts.end(open.index);
            self.live =
                open.cursor.entry().is_some_and(|entry| end.is_none_or(|end| entry.key < end));
            let behind = open.index + 1;
            if self.live || behind == self.parts.count() {
                break;
            }
            self.enter(behind, |cursor, start, _| cursor.seek(start))?;
        }
        Ok(())
    }

    /// The reverse of `settle_forward`.
    fn settle_backward(&mut self) -> Result<()> {
        while let Some(open) = &self.open {
            let start = self.parts.start(open.index);
            self.live = open.cursor.entry().is_some_and(|entry| start <= entry.key);
            let Some(before) = open.index.checked_sub(1).filter(|_| !self.live) else { break };
            self.enter(before, |cursor, _, end| seek_end(cursor, end))?;
        }
        Ok(())
    }

    /// Moves the open cursor; whether there was one to move.
    fn step(&mut self, go: impl FnOnce(&mut dyn Cursor) -> Result<()>) -> Result<bool> {
        let live = std::mem::take(&mut self.live);
        let Some(open) = self.open.as_mut().filter(|_| live) else { return Ok(false) };
        go(&mut *open.cursor)?;
        Ok(true)
    }
}

/// Stands on the last entry below `end`.
fn seek_end(cursor: &mut dyn Cursor, end: Option<&[u8]>) -> Result<()> {
    match end {
        Some(end) => cursor.seek_before(end),
        None => cursor.seek_last(),
    }
}

impl<P: Parts> Cursor for ConcatCursor<P> {
    fn seek_first(&mut self) -> Result<()> {
        self.seek(b"")
    }

    fn seek_last(&mut self) -> Result<()> {
        self.live = false;
        let Some(last) = self.parts.count().checked_sub(1) else { return Ok(()) };
        self.enter(last, |cursor, _, end| seek_end(cursor, end))?;
        self.settle_backward()
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.live = false;
        let index = self.partition_point(|i| self.parts.end(i).is_some_and(|end| end <= key));
        if index == self.parts.count() {
            return Ok(());
        }
        self.enter(index, |cursor, start, _| cursor.seek(start.max(key)))?;
        self.settle_forward()
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.live = false;
        let after = self.partition_point(|i| self.parts.start(i) < key);
        let Some(index) = after.checked_sub(1) else { return Ok(()) };
        self.enter(index, |cursor, _, end| {
            cursor.seek_before(end.map_or(key, |end| end.min(key)))
        })?;
        self.settle_backward()
    }

    fn next(&mut self) -> Result<()> {
        if self.step(|cursor| cursor.next())? { self.settle_forward() } else { Ok(()) }
    }

    fn prev(&mut self) -> Result<()> {
        if self.step(|cursor| cursor.prev())? { self.settle_backward() } else { Ok(()) }
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        self.open.as_ref().filter(|_| self.live)?.cursor.entry()
    }

    fn value(&self) -> Bytes {
        self.open.as_ref().filter(|_| self.live).map_or_else(Bytes::new, |o| o.cursor.value())
    }
}

#[cfg(test)]
mod tests;
