//! Sealed memtables folded into one run: sorted, compact, immutable.
//!
//! The entries lie one after the other in chunks. A list of places, in the store's order, locates
//! them. The builder copies every byte once, and allocates memory a chunk at a time. Entries that
//! are folded again can [stay](FoldedRest) in their chunks.

use super::FoundVersion;
use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use crate::format::{EntryPlace, EntrySum, FactsBuilder, ProfileGrain, key_prefix};
use bytes::Bytes;
use lsmith_tree::blocks::fits;
use lsmith_tree::{EntryKind, KeyRange, SeqNo, Table, logical_bytes};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a chunk, unless one entry needs more. A value that is in use keeps its chunk in memory.
const CHUNK_BYTES: usize = 32 * 1024;

/// Entries in the store's order.
#[derive(Debug, Default)]
pub struct Folded {
    places: Vec<FoldedPlace>,
    chunks: Vec<Bytes>,
    /// Whether any key has several versions.
    has_versions: bool,
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

impl FoldedPlace {
    #[inline]
    fn logical_bytes(&self) -> u64 {
        logical_bytes(usize::from(self.key_bytes), self.value_bytes as usize)
    }
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

    /// Returns the key of the last entry, or an empty key if there is none. `open` is the chunk
    /// that is not in `chunks` yet.
    fn last_key<'a>(&'a self, open: &'a [u8]) -> &'a [u8] {
        let Some(place) = self.places.last() else { return &[] };
        let chunk = self.chunks.get(place.chunk as usize).map_or(open, |chunk| &chunk[..]);
        let start = place.offset as usize;
        &chunk[start..start + usize::from(place.key_bytes)]
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

    /// Returns true if any key has several versions.
    pub fn has_versions(&self) -> bool {
        self.has_versions
    }

    /// Returns the bytes of all chunks.
    pub fn chunk_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
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
        let mut later = kept.into_iter();
        let here = later.next().unwrap_or(0..0);
        FoldedRest { folded: Arc::clone(self), here, later }
    }

    /// Returns a cursor over all entries.
    pub fn cursor(self: &Arc<Self>) -> FoldedCursor {
        FoldedCursor { folded: Arc::clone(self), at: None }
    }

    /// Returns the memory in use in bytes, roughly.
    pub fn allocated_bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(|chunk| chunk.len() + size_of::<Bytes>());
        self.places.len() * size_of::<FoldedPlace>() + chunks.sum::<usize>()
    }
}

/// A part of folded memory, walked entry by entry.
#[derive(Debug)]
pub struct FoldedRest {
    folded: Arc<Folded>,
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

    /// Goes to the following entry.
    pub fn advance(&mut self) {
        self.skip(1);
    }

    /// Skips `entries` entries, which must follow without a gap.
    fn skip(&mut self, entries: usize) {
        self.here.start += entries;
        if self.here.is_empty() {
            self.here = self.later.next().unwrap_or(0..0);
        }
    }
}

/// Builds folded memory from entries in the store's order.
#[derive(Debug)]
pub struct FoldedBuilder {
    folded: Folded,
    /// The chunk under construction.
    chunk: Vec<u8>,
    facts: FactsBuilder,
    block_bytes: u64,
    /// Logical bytes of the open data block.
    open_bytes: u64,
}

impl FoldedBuilder {
    /// Creates an empty builder. The profile will be that of table `number`, packed into data
    /// blocks of `block_bytes`.
    pub fn new(number: u64, block_bytes: u64) -> FoldedBuilder {
        FoldedBuilder {
            folded: Folded::default(),
            chunk: Vec::new(),
            facts: FactsBuilder::new(number, ProfileGrain::Blocks),
            block_bytes,
            open_bytes: 0,
        }
    }

    /// Shares the chunks of `rest`, so that its entries can [stay](FoldedBuilder::keep_below).
    /// About `more` entries will come to them. Must be called before any entry is added.
    pub fn share(&mut self, rest: &FoldedRest, more: usize) {
        self.folded.chunks.clone_from(&rest.folded.chunks);
        self.folded.places.reserve_exact(rest.len() + more);
    }

    /// Adds the entries of `rest` with keys below `bound`, or all of them, without a copy. The
    /// chunks of `rest` must be shared, it must have one version per key, and its entries must
    /// follow in the store's order.
    ///
    /// Memory is folded many times before an entry leaves it, and nearly all entries stay. So this
    /// goes through places and sums up sizes. It reads keys, which are scattered in memory, only
    /// where blocks begin, and where a prefix equals that of `bound`.
    pub fn keep_below(&mut self, rest: &mut FoldedRest, bound: Option<&[u8]>) {
        let bound = bound.map(|key| (key_prefix(key), key));
        loop {
            let FoldedRest { folded, here, .. } = &*rest;
            let places = &folded.places[here.clone()];
            let below = match bound {
                Some((prefix, key)) => {
                    let is_below =
                        |place: &&FoldedPlace| folded.cmp_key(place, prefix, key).is_lt();
                    places.iter().take_while(is_below).count()
                }
                None => places.len(),
            };
            if below == 0 {
                return;
            }
            self.keep(folded, &places[..below]);
            rest.skip(below);
        }
    }

    /// Adds entries of `folded`, each of another key than the one before, block by block.
    fn keep(&mut self, folded: &Folded, mut places: &[FoldedPlace]) {
        loop {
            // The first entry of all has no block to join.
            let joined = if self.folded.places.is_empty() { 0 } else { self.join(places) };
            places = &places[joined..];
            let Some((first, others)) = places.split_first() else { return };
            self.pack(&folded.entry(first), true);
            self.folded.places.push(*first);
            places = others;
        }
    }

    /// Adds the first of these entries that fit into the open block, and returns their number.
    fn join(&mut self, places: &[FoldedPlace]) -> usize {
        let mut sum = EntrySum::default();
        let mut joined = 0;
        for place in places {
            let bytes = place.logical_bytes();
            if !fits(self.block_bytes, self.open_bytes, bytes) {
                break;
            }
            self.open_bytes += bytes;
            sum.add(bytes, place.kind, place.seq);
            joined += 1;
        }
        self.facts.add_sum(sum);
        self.folded.places.extend_from_slice(&places[..joined]);
        joined
    }

    /// Adds the next entry in the store's order.
    pub fn add(&mut self, entry: EntryRef<'_>) {
        let new_key = entry.key != self.folded.last_key(&self.chunk);
        self.pack(&entry, new_key);
        self.store(entry);
    }

    /// Packs the entry into blocks.
    #[inline]
    fn pack(&mut self, entry: &EntryRef<'_>, new_key: bool) {
        let entry_bytes = logical_bytes(entry.key.len(), entry.value.len());
        let joins = fits(self.block_bytes, self.open_bytes, entry_bytes);
        self.open_bytes = if joins { self.open_bytes + entry_bytes } else { entry_bytes };
        let last_key = if joins { &[] } else { self.folded.last_key(&self.chunk) };
        self.facts.add(entry, EntryPlace { last_key, new_key, begins_block: !joins });
        self.folded.has_versions |= !new_key;
    }

    fn store(&mut self, entry: EntryRef<'_>) {
        let needed = entry.key.len() + entry.value.len();
        if self.chunk.len() + needed > self.chunk.capacity() {
            self.close_chunk();
            self.chunk = Vec::with_capacity(needed.max(CHUNK_BYTES));
        }
        self.folded.places.push(FoldedPlace {
            prefix: key_prefix(entry.key),
            seq: entry.seq,
            chunk: self.folded.chunks.len() as u32,
            offset: self.chunk.len() as u32,
            value_bytes: entry.value.len() as u32,
            key_bytes: entry.key.len() as u16,
            kind: entry.kind,
        });
        self.chunk.extend_from_slice(entry.key);
        self.chunk.extend_from_slice(entry.value);
    }

    fn close_chunk(&mut self) {
        if !self.chunk.is_empty() {
            let mut chunk = std::mem::take(&mut self.chunk);
            chunk.shrink_to_fit();
            self.folded.chunks.push(chunk.into());
        }
    }

    /// Frees shared chunks of which no entry has stayed.
    fn free_unused_chunks(&mut self) {
        let Folded { places, chunks, .. } = &mut self.folded;
        let mut in_use = vec![false; chunks.len()];
        places.iter().for_each(|place| in_use[place.chunk as usize] = true);
        let unused = chunks.iter_mut().zip(in_use).filter(|(_, in_use)| !in_use);
        unused.for_each(|(chunk, _)| *chunk = Bytes::new());
    }

    /// Returns the folded entries and their table for the tree, or `None` if there are no entries.
    pub fn finish(mut self) -> Option<(Folded, Table)> {
        if self.folded.places.is_empty() {
            return None;
        }
        self.close_chunk();
        self.folded.places.shrink_to_fit();
        self.free_unused_chunks();
        let mut facts = self.facts.finish(self.folded.last_key(&[]));
        Some((self.folded, facts.take_tree_table()))
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
