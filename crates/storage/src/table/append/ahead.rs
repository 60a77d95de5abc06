//! Blocks that a cursor fetches together, before it needs them.
//!
//! In the order of keys, the values of a table come from as many places of the file as there were
//! batches, and from each place in the order of the file. So a cursor that goes on looks at the
//! references of the entries to come, a *window* of them at a time, in either direction. Their
//! blocks, in the order of the file, make one *piece* for each place. So a window costs as many
//! reads as it has places, and a device can serve them at once. Nothing is read that the window
//! does not need.
//!
//! If the file is mapped, pieces are announced to the system instead. That is done only while reads
//! wait for the device: see [`Waits`](crate::table::waits::Waits).

use super::reader::AppendTable;
use super::refs::{NodePlace, RefWalk, leaves_from};
use crate::error::Result;
use crate::format::{Block, Span};
use crate::table::waits::WAIT_MIN;
use bytes::{Bytes, BytesMut};
use std::ops::Range;
use std::time::Duration;

/// The bytes between two blocks up to which they are read together.
const GAP_BYTES: u64 = 4096;

/// Value bytes of the first window.
const WINDOW_BYTES_MIN: u64 = 16 * 1024;

/// How many times as long as a window that was read the next one is.
const READ_GROWTH: u64 = 2;

/// How many times as long as a window that was announced the next one is. A reader waits once for
/// each window. It does not wait for those parts of a window that it does not reach, as it would if
/// it read the window.
const ANNOUNCED_GROWTH: u64 = 4;

/// Value bytes of the longest window.
const WINDOW_BYTES_MAX: u64 = 512 * 1024;

/// The most bytes of a piece, unless one block is longer. A value in use keeps all of them in
/// memory.
const PIECE_BYTES_MAX: u64 = 64 * 1024;

/// Memory for pieces is taken in steps of this many bytes, so that it fits later pieces too.
const BUFFER_STEP_BYTES: usize = 16 * 1024;

/// The number of blocks in a row, read one by one, after which a reader is expected to continue.
const STREAK_BLOCKS: u32 = 4;

/// The number of windows that are announced after a read that waited. Then one is not, to see
/// whether reads still wait.
const WINDOWS_ANNOUNCED: u32 = 16;

/// What a cursor has fetched of the entries to come, and how it goes on.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Blocks of values, if the file is not mapped.
    values: Pieces,
    /// Leaves of this window and of the one before, if the file is not mapped.
    leaves: [Pieces; 2],
    /// Value bytes of the next window.
    window_bytes: u64,
    /// The number of blocks that were read one by one in a row.
    streak: u32,
    /// The number of windows still to be announced.
    announcing: u32,
    /// Behind the entries that were announced.
    walk: Option<RefWalk>,
    /// The number of announced entries that the cursor has not passed, and the count at which
    /// further ones are announced.
    announced: u64,
    announced_low: u64,
}

impl Default for Ahead {
    fn default() -> Ahead {
        Ahead {
            values: Pieces::default(),
            leaves: Default::default(),
            window_bytes: WINDOW_BYTES_MIN,
            streak: 0,
            announcing: 0,
            walk: None,
            announced: 0,
            announced_low: 0,
        }
    }
}

impl Ahead {
    /// Counts a block that is to be read by itself. Returns true if a window should be read
    /// instead.
    pub(super) fn is_streak(&mut self) -> bool {
        self.streak += 1;
        self.streak > STREAK_BLOCKS
    }

    /// Returns the block of values at `span` of `table`, if it was read ahead.
    pub(super) fn value(&self, table: &AppendTable, span: Span) -> Option<Result<Block>> {
        self.values.block(table, span)
    }

    /// Returns the leaf at `span` of `table`, if it was read ahead.
    pub(super) fn leaf(&self, table: &AppendTable, span: Span) -> Option<Result<Block>> {
        self.leaves.iter().find_map(|leaves| leaves.block(table, span))
    }

    /// Reads the blocks of a window of values, from `walk` on. `is_known` says which blocks need
    /// not be read. Returns the number of bytes that were read.
    pub(super) fn read(
        &mut self,
        table: &AppendTable,
        mut walk: RefWalk,
        is_known: impl Fn(Span) -> bool,
    ) -> u64 {
        let bytes = self.window_bytes;
        let mut read = 0;
        let mut spans = Vec::new();
        let side = walk.side();
        walk.collect(table, bytes, &mut spans, |path, span| {
            if let Some(found) = self.leaf(table, span) {
                return found.ok();
            }
            let leaves = leaves_from(path.last()?, side, 2 * bytes);
            self.leaves.swap(0, 1);
            read += self.leaves[0].read(table, leaves);
            self.leaf(table, span)?.ok()
        });
        spans.retain(|span| !is_known(*span));
        read += self.values.read(table, spans);
        self.window_bytes = (bytes * READ_GROWTH).min(WINDOW_BYTES_MAX);
        read
    }

    /// Counts `entries` that the cursor is about to reach. Returns true if further ones must be
    /// announced: reads have waited recently, and half of the window before is reached.
    pub(super) fn must_announce(&mut self, table: &AppendTable, entries: u64) -> bool {
        let is_idle = self.announced == 0 && self.announcing == 0;
        if is_idle && !table.waits_are_recent() {
            return false;
        }
        if is_idle {
            self.announcing = WINDOWS_ANNOUNCED;
        }
        self.announced = self.announced.saturating_sub(entries);
        self.announcing > 0 && self.announced <= self.announced_low
    }

    /// Returns true if the cursor has waited, so that it looks closely whether it still does.
    pub(super) fn is_watching(&self) -> bool {
        self.window_bytes > WINDOW_BYTES_MIN
    }

    /// Announces the next window of values, or else the first one from `here` on, and the leaves of
    /// the window after that.
    pub(super) fn announce(&mut self, table: &AppendTable, here: impl FnOnce() -> RefWalk) {
        self.announcing -= 1;
        let behind = self.walk.take().filter(|_| self.announced > 0);
        let mut walk = behind.unwrap_or_else(here);
        let mut spans = Vec::new();
        let load = |_: &[NodePlace], span| table.passing_block(span).ok();
        let passed = walk.collect(table, self.window_bytes, &mut spans, load);
        spans.extend(walk.next_leaves(self.window_bytes));
        for piece in pieces(spans, WINDOW_BYTES_MAX) {
            table.request(piece);
        }
        self.announced += passed;
        self.announced_low = passed / 2;
        self.walk = Some(walk);
        self.window_bytes = (self.window_bytes * ANNOUNCED_GROWTH).min(WINDOW_BYTES_MAX);
    }
}

/// Bytes of the file that were read ahead, in the order of the file.
#[derive(Debug, Default)]
struct Pieces {
    all: Vec<(u64, Bytes)>,
    /// Memory of earlier pieces.
    spare: Vec<BytesMut>,
}

impl Pieces {
    /// Reads the blocks at `spans`, which replace the blocks read before. Returns the number of
    /// bytes that were read. What cannot be read is left out: the cursor tries again when it gets
    /// there, and returns the error.
    fn read(&mut self, table: &AppendTable, spans: Vec<Span>) -> u64 {
        let before = self.all.drain(..).filter_map(|(_, bytes)| bytes.try_into_mut().ok());
        self.spare = before.collect();
        let pieces = pieces(spans, PIECE_BYTES_MAX);
        let mut read = 0;
        for (index, piece) in pieces.iter().enumerate() {
            let bytes = (piece.end - piece.start) as usize;
            let mut buffer = self.spare.pop().unwrap_or_default();
            if buffer.capacity() < bytes {
                buffer = BytesMut::with_capacity(bytes.next_multiple_of(BUFFER_STEP_BYTES));
            }
            buffer.resize(bytes, 0);
            let start = table.env.now();
            let filled = table.file.fill(buffer, piece.start);
            let waited = table.env.now().saturating_sub(start) >= wait_min(bytes);
            if index == 0 && waited {
                // The device reads the others at the same time.
                pieces[1..].iter().for_each(|piece| table.file.announce(piece.clone()));
            }
            if let Ok(bytes) = filled {
                read += bytes.len() as u64;
                self.all.push((piece.start, bytes));
            }
        }
        read
    }

    fn block(&self, table: &AppendTable, span: Span) -> Option<Result<Block>> {
        let at = self.all.partition_point(|(start, _)| *start <= span.offset).checked_sub(1)?;
        let (start, bytes) = &self.all[at];
        let from = (span.offset - start) as usize;
        let sealed = from..from + span.bytes as usize;
        let is_there = sealed.end <= bytes.len();
        is_there.then(|| table.file.unsealed_block(bytes.slice(sealed), span.offset))
    }
}

/// Returns the least time after which a read of `bytes` bytes has waited for a device. To copy four
/// bytes takes less than a nanosecond.
fn wait_min(bytes: usize) -> Duration {
    WAIT_MIN + Duration::from_nanos(bytes as u64 / 4)
}

/// Returns the pieces, of at most `bytes_max` bytes, that blocks at `spans` make.
fn pieces(mut spans: Vec<Span>, bytes_max: u64) -> Vec<Range<u64>> {
    spans.sort_unstable_by_key(|span| span.offset);
    let mut pieces: Vec<Range<u64>> = Vec::new();
    for span in spans {
        match pieces.last_mut() {
            Some(piece) if span.end() <= piece.end => {}
            Some(piece)
                if span.offset <= piece.end + GAP_BYTES
                    && span.end() - piece.start <= bytes_max =>
            {
                piece.end = span.end();
            }
            _ => pieces.push(span.offset..span.end()),
        }
    }
    pieces
}
