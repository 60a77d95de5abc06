//! Sealed memtables folded into one run: sorted, compact, immutable.
//!
//! The entries lie one after the other in chunks. A list of places, in the store's order, locates
//! them. Beside it stands how much lies up to each place. The builder copies every byte once, and
//! allocates memory a chunk at a time.
//!
//! When newer entries are merged in, the old ones [stay](FoldedRest) in their chunks. A stretch of
//! neighbours between two new entries keeps its order, and two sums say how much it holds. So its
//! places are copied as they are. Only entries that begin a block are looked at.

mod builder;

pub use builder::FoldedBuilder;

use super::FoundVersion;
use crate::combine::Stack;
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use crate::format::key_prefix;
use bytes::Bytes;
use lsmith_tree::{EntryKind, KeyRange, SeqNo};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Entries in the store's order.
#[derive(Debug, Default)]
pub struct Folded {
    places: Vec<FoldedPlace>,
    /// For each place, the bytes and tombstones up to it, its own included.
    sums: Vec<RunningSum>,
    chunks: Vec<Bytes>,
    /// The number of entries in each chunk. Chunks without entries are empty.
    in_chunks: Vec<u32>,
    /// Whether any key has several versions.
    has_versions: bool,
}

/// Logical bytes and tombstones of the first entries, in one integer. Only differences are read,
/// which are small, so the sum may overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RunningSum(u64);

impl RunningSum {
    /// The bits of the tombstones; the bytes have the bits above. A block holds fewer of both.
    const TOMBSTONE_BITS: u32 = 24;

    #[inline]
    fn with(self, bytes: u64, tombstones: u64) -> RunningSum {
        self.plus((bytes << Self::TOMBSTONE_BITS) + tombstones)
    }

    /// Adds a difference of two sums.
    #[inline]
    fn plus(self, difference: u64) -> RunningSum {
        RunningSum(self.0.wrapping_add(difference))
    }

    /// Returns the difference to the sum of fewer entries.
    #[inline]
    fn since(self, before: RunningSum) -> u64 {
        self.0.wrapping_sub(before.0)
    }

    #[inline]
    fn bytes_since(self, before: RunningSum) -> u64 {
        self.since(before) >> Self::TOMBSTONE_BITS
    }

    #[inline]
    fn tombstones_since(self, before: RunningSum) -> u64 {
        self.since(before) & ((1 << Self::TOMBSTONE_BITS) - 1)
    }
}

/// The place of an entry.
#[derive(Clone, Copy, Debug)]
struct FoldedPlace {
    /// The [prefix](key_prefix) of the key, which has the same order as the key, except for ties.
    prefix: u64,
    seq: SeqNo,
    chunk: u32,
    /// The offset of the key in its chunk; the value follows.
    offset: u32,
    value_bytes: u32,
    key_bytes: u16,
    kind: EntryKind,
}

impl Folded {
    fn key(&self, place: &FoldedPlace) -> &[u8] {
        let start = place.offset as usize;
        &self.chunks[place.chunk as usize][start..start + usize::from(place.key_bytes)]
    }

    fn value(&self, place: &FoldedPlace) -> &[u8] {
        let start = place.offset as usize + usize::from(place.key_bytes);
        &self.chunks[place.chunk as usize][start..start + place.value_bytes as usize]
    }

    fn entry(&self, place: &FoldedPlace) -> EntryRef<'_> {
        EntryRef {
            key: self.key(place),
            seq: place.seq,
            kind: place.kind,
            value: self.value(place),
        }
    }

    /// Returns the value as a handle that shares the memory of its chunk.
    fn shared_value(&self, place: &FoldedPlace) -> Bytes {
        let start = place.offset as usize + usize::from(place.key_bytes);
        self.chunks[place.chunk as usize].slice(start..start + place.value_bytes as usize)
    }

    fn cmp_key(&self, place: &FoldedPlace, prefix: u64, key: &[u8]) -> Ordering {
        place.prefix.cmp(&prefix).then_with(|| self.key(place).cmp(key))
    }

    /// Returns the number of entries with keys below `key`.
    fn below(&self, key: &[u8]) -> usize {
        let prefix = key_prefix(key);
        self.places.partition_point(|place| self.cmp_key(place, prefix, key).is_lt())
    }

    /// Returns the newest version of `key` that `snapshot` sees.
    pub fn get(&self, key: &[u8], snapshot: SeqNo) -> Option<FoundVersion> {
        let prefix = key_prefix(key);
        let before = |place: &FoldedPlace| match self.cmp_key(place, prefix, key) {
            Ordering::Less => true,
            Ordering::Equal => place.seq > snapshot,
            Ordering::Greater => false,
        };
        let place = self.places.get(self.places.partition_point(before))?;
        let found = self.cmp_key(place, prefix, key).is_eq();
        found.then(|| FoundVersion {
            seq: place.seq,
            kind: place.kind,
            value: self.shared_value(place),
        })
    }

    /// Adds the versions of `key` that `snapshot` sees to `stack`, newest first, down to one that
    /// makes it whole.
    pub fn push_on(&self, stack: &mut Stack, key: &[u8], snapshot: SeqNo) {
        let prefix = key_prefix(key);
        let of_key = |place: &&FoldedPlace| self.cmp_key(place, prefix, key).is_eq();
        let places = self.places[self.below(key)..].iter().take_while(of_key);
        for place in places.filter(|place| place.seq <= snapshot) {
            if stack.push(place.seq, place.kind, self.shared_value(place)) {
                break;
            }
        }
    }

    /// Returns true if any key has several versions.
    pub fn has_versions(&self) -> bool {
        self.has_versions
    }

    /// Returns the bytes of all chunks.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }

    /// Returns the bytes and tombstones of the first `count` entries.
    fn sum_of_first(&self, count: usize) -> RunningSum {
        count.checked_sub(1).map_or(RunningSum::default(), |last| self.sums[last])
    }

    /// Returns the entries within `ranges`, which must be ascending.
    pub fn entries_within(
        self: &Arc<Self>,
        ranges: impl IntoIterator<Item = KeyRange>,
    ) -> FoldedRest {
        let place = |range: KeyRange| {
            let end = range.end.map_or(self.places.len(), |end| self.below(&end));
            self.below(&range.start)..end
        };
        let kept: Vec<Range<usize>> =
            ranges.into_iter().map(place).filter(|range| !range.is_empty()).collect();
        let mut in_chunks = self.in_chunks.clone();
        let gap_starts = std::iter::once(0).chain(kept.iter().map(|range| range.end));
        let gap_ends = kept.iter().map(|range| range.start).chain([self.places.len()]);
        for place in gap_starts.zip(gap_ends).flat_map(|(start, end)| &self.places[start..end]) {
            in_chunks[place.chunk as usize] -= 1;
        }
        let mut later = kept.into_iter();
        let here = later.next().unwrap_or(0..0);
        FoldedRest { folded: Arc::clone(self), in_chunks, here, later }
    }

    /// Returns a cursor over all entries.
    pub fn cursor(self: &Arc<Self>) -> FoldedCursor {
        FoldedCursor { folded: Arc::clone(self), at: None }
    }

    /// Returns the memory in use in bytes, roughly.
    pub fn allocated_bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| chunk.len() + size_of::<Bytes>());
        let per_entry = size_of::<FoldedPlace>() + size_of::<RunningSum>();
        self.places.len() * per_entry + chunks.sum::<usize>()
    }
}

/// A part of folded memory, walked entry by entry.
#[derive(Debug, Default)]
pub struct FoldedRest {
    folded: Arc<Folded>,
    /// The number of entries in each chunk that stay.
    in_chunks: Vec<u32>,
    /// The next places without a gap; the next entry is the first of them.
    here: Range<usize>,
    later: std::vec::IntoIter<Range<usize>>,
}

impl FoldedRest {
    fn place(&self) -> Option<&FoldedPlace> {
        self.folded.places[self.here.clone()].first()
    }

    /// Returns the number of entries ahead.
    fn len(&self) -> usize {
        self.here.len() + self.later.as_slice().iter().map(ExactSizeIterator::len).sum::<usize>()
    }

    /// Returns the next entry.
    pub fn entry(&self) -> Option<EntryRef<'_>> {
        self.place().map(|place| self.folded.entry(place))
    }

    /// Returns true if the next entry has this key, whose [prefix](key_prefix) is `prefix`. Reads
    /// the key of the entry only if the prefixes are equal.
    #[inline]
    pub fn is_at(&self, prefix: u64, key: &[u8]) -> bool {
        self.place().is_some_and(|place| self.folded.cmp_key(place, prefix, key).is_eq())
    }

    /// Goes to the following entry. The one before does not stay.
    pub fn advance(&mut self) {
        if let Some(place) = self.place() {
            let chunk = place.chunk as usize;
            self.in_chunks[chunk] -= 1;
            self.skip(1);
        }
    }

    /// Skips `entries` entries, which must follow without a gap.
    fn skip(&mut self, entries: usize) {
        self.here.start += entries;
        if self.here.is_empty() {
            self.here = self.later.next().unwrap_or(0..0);
        }
    }
}

/// Walks the entries.
#[derive(Debug)]
pub struct FoldedCursor {
    folded: Arc<Folded>,
    at: Option<usize>,
}

impl FoldedCursor {
    fn here(&self) -> Option<&FoldedPlace> {
        self.folded.places.get(self.at?)
    }
}

impl Cursor for FoldedCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.at = Some(0);
        Ok(())
    }

    fn seek_last(&mut self) -> Result<()> {
        self.at = self.folded.places.len().checked_sub(1);
        Ok(())
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.at = Some(self.folded.below(key));
        Ok(())
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.at = self.folded.below(key).checked_sub(1);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at = self.at.map(|at| at + 1);
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        self.at = self.at.and_then(|at| at.checked_sub(1));
        Ok(())
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        self.here().map(|place| self.folded.entry(place))
    }

    fn value(&self) -> Bytes {
        self.here().map_or_else(Bytes::new, |place| self.folded.shared_value(place))
    }
}

#[cfg(test)]
mod tests;
