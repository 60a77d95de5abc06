//! Builds folded memory, from new entries and from entries that stay.

use super::{Folded, FoldedPlace, FoldedRest, RunningSum};
use crate::cursor::EntryRef;
use crate::format::{EntryPlace, FactsBuilder, ProfileGrain, key_prefix};
use bytes::Bytes;
use lsmith_tree::blocks::fits;
use lsmith_tree::{Size, Table, logical_bytes};
use std::ops::Range;

/// Bytes of a chunk, unless one entry needs more. A value that is in use keeps its chunk in memory.
const CHUNK_BYTES: usize = 32 * 1024;

/// Items that are looked at one by one in a search.
const FEW: usize = 32;

/// Builds folded memory from entries in the store's order.
#[derive(Debug)]
pub struct FoldedBuilder {
    folded: Folded,
    /// The chunk under construction.
    chunk: Vec<u8>,
    /// The index of that chunk.
    chunk_id: u32,
    /// The number of entries in that chunk.
    in_chunk: u32,
    /// Whether entries stay in the chunks where they are.
    shares: bool,
    /// The numbers of shared chunks in which no entry stays. New chunks take them.
    free_chunks: Vec<u32>,
    facts: FactsBuilder,
    block_bytes: u64,
    /// Logical bytes of the open data block.
    open_bytes: u64,
    /// The sum of all entries.
    sum: RunningSum,
    /// The number of entries that were looked at one by one.
    folded_entries: u64,
}

impl FoldedBuilder {
    /// Creates an empty builder. The profile will describe table `table_id`, packed into data
    /// blocks of `block_bytes`.
    pub fn new(table_id: u64, block_bytes: u64) -> FoldedBuilder {
        FoldedBuilder {
            folded: Folded::default(),
            chunk: Vec::new(),
            chunk_id: 0,
            in_chunk: 0,
            shares: false,
            free_chunks: Vec::new(),
            facts: FactsBuilder::new(table_id, ProfileGrain::Blocks),
            block_bytes,
            open_bytes: 0,
            sum: RunningSum::default(),
            folded_entries: 0,
        }
    }

    /// Shares the chunks of `rest`, so that its entries can [stay](FoldedBuilder::keep_below).
    /// About `more` entries will come to them. Must be called before any entry is added.
    pub fn share(&mut self, rest: &FoldedRest, more: usize) {
        self.shares = true;
        let chunks = rest.folded.chunks.iter().zip(&rest.in_chunks);
        let used = |(chunk, entries): (&Bytes, &u32)| match entries {
            0 => Bytes::new(),
            _ => Bytes::clone(chunk),
        };
        self.folded.chunks = chunks.map(used).collect();
        self.folded.in_chunks = vec![0; self.folded.chunks.len()];
        let free = (0..).zip(&rest.in_chunks).filter(|(_, entries)| **entries == 0);
        self.free_chunks = free.map(|(chunk_id, _)| chunk_id).collect();
        let entries_max = rest.len() + more;
        self.folded.places.reserve_exact(entries_max);
        self.folded.sums.reserve_exact(entries_max);
    }

    /// Adds the entries of `rest` with keys below `bound`, or all of them. `rest` must have one
    /// version per key, and its entries must follow in the store's order. If its chunks are not
    /// shared, the entries are copied.
    ///
    /// Nearly all entries stay whenever memory is folded. So this looks neither at their keys nor
    /// at their sizes, except where a block begins, and in the search for `bound`.
    pub fn keep_below(&mut self, rest: &mut FoldedRest, bound: Option<&[u8]>) {
        let bound = bound.map(|key| (key_prefix(key), key));
        loop {
            let FoldedRest { folded, here, .. } = &*rest;
            let places = &folded.places[here.clone()];
            let below = match bound {
                Some((prefix, key)) => {
                    count_while(places, |place| folded.cmp_key(place, prefix, key).is_lt())
                }
                None => places.len(),
            };
            if below == 0 {
                return;
            }
            let entries = here.start..here.start + below;
            if self.shares {
                self.keep(folded, entries);
            } else {
                folded.places[entries].iter().for_each(|place| self.add(folded.entry(place)));
            }
            rest.skip(below);
        }
    }

    /// Adds these entries of `from`, each of another key than the one before, block by block.
    fn keep(&mut self, from: &Folded, mut entries: Range<usize>) {
        loop {
            // The first entry of all has no block to join.
            if !self.folded.places.is_empty() {
                entries.start += self.join(from, entries.clone());
            }
            if entries.is_empty() {
                return;
            }
            let place = &from.places[entries.start];
            self.pack(&from.entry(place), true);
            self.folded.places.push(*place);
            entries.start += 1;
        }
    }

    /// Adds the first of these entries of `from` that fit into the open block, and returns how
    /// many.
    fn join(&mut self, from: &Folded, entries: Range<usize>) -> usize {
        let before = from.sum_of_first(entries.start);
        let sums = &from.sums[entries.clone()];
        let open_bytes = self.open_bytes;
        let joins = |sum: &RunningSum| fits(self.block_bytes, open_bytes, sum.bytes_since(before));
        let joined = match sums.last() {
            Some(last) if joins(last) => sums.len(),
            _ => count_while(sums, joins),
        };
        let Some(last) = sums[..joined].last() else { return 0 };
        let size = Size {
            bytes: last.bytes_since(before),
            entries: joined as u64,
            tombstones: last.tombstones_since(before),
        };
        self.open_bytes += size.bytes;
        let shift = self.sum.since(before);
        self.sum = last.plus(shift);
        self.folded.sums.extend(sums[..joined].iter().map(|sum| sum.plus(shift)));
        self.facts.add_size(size);
        self.folded.places.extend_from_slice(&from.places[entries][..joined]);
        joined
    }

    /// Adds the next entry in the store's order.
    pub fn add(&mut self, entry: EntryRef<'_>) {
        let prefix = key_prefix(entry.key);
        let new_key = self.folded.places.last().is_none_or(|last| last.prefix != prefix)
            || entry.key != last_key(&self.folded, &self.chunk);
        self.pack(&entry, new_key);
        self.store(entry);
    }

    /// Packs the entry into blocks.
    #[inline]
    fn pack(&mut self, entry: &EntryRef<'_>, new_key: bool) {
        let entry_bytes = logical_bytes(entry.key.len(), entry.value.len());
        let joins = fits(self.block_bytes, self.open_bytes, entry_bytes);
        self.open_bytes = if joins { self.open_bytes + entry_bytes } else { entry_bytes };
        let last_key = if joins { &[] } else { last_key(&self.folded, &self.chunk) };
        self.facts.add(entry, EntryPlace { last_key, new_key, begins_block: !joins });
        self.sum = self.sum.with(entry_bytes, u64::from(entry.kind.is_tombstone()));
        self.folded.sums.push(self.sum);
        self.folded.has_versions |= !new_key;
        self.folded_entries += 1;
    }

    fn store(&mut self, entry: EntryRef<'_>) {
        let needed = entry.key.len() + entry.value.len();
        if self.chunk.len() + needed > self.chunk.capacity() || self.in_chunk == 0 {
            self.close_chunk();
            self.open_chunk(needed.max(CHUNK_BYTES));
        }
        self.folded.places.push(FoldedPlace {
            prefix: key_prefix(entry.key),
            seq: entry.seq,
            chunk: self.chunk_id,
            offset: self.chunk.len() as u32,
            value_bytes: entry.value.len() as u32,
            key_bytes: entry.key.len() as u16,
            kind: entry.kind,
        });
        self.in_chunk += 1;
        self.chunk.extend_from_slice(entry.key);
        self.chunk.extend_from_slice(entry.value);
    }

    fn open_chunk(&mut self, bytes: usize) {
        let Folded { chunks, in_chunks, .. } = &mut self.folded;
        self.chunk_id = self.free_chunks.pop().unwrap_or_else(|| {
            chunks.push(Bytes::new());
            in_chunks.push(0);
            chunks.len() as u32 - 1
        });
        self.chunk = Vec::with_capacity(bytes);
    }

    fn close_chunk(&mut self) {
        if self.in_chunk > 0 {
            let chunk_id = self.chunk_id as usize;
            let mut chunk = std::mem::take(&mut self.chunk);
            chunk.shrink_to_fit();
            self.folded.chunks[chunk_id] = chunk.into();
            self.folded.in_chunks[chunk_id] = std::mem::take(&mut self.in_chunk);
        }
    }

    /// Counts the entries that stay in shared chunks. Frees chunks in which none has stayed.
    fn count_shared(&mut self, rest: &FoldedRest) {
        let Folded { chunks, in_chunks, .. } = &mut self.folded;
        let counts = in_chunks.iter_mut().zip(chunks).zip(&rest.in_chunks);
        // The numbers of free chunks went to new ones, which are counted already.
        for ((in_chunk, chunk), stay) in counts.filter(|((in_chunk, _), _)| **in_chunk == 0) {
            *in_chunk = *stay;
            if *stay == 0 {
                *chunk = Bytes::new();
            }
        }
    }

    /// Returns the folded entries and their table for the tree, or `None` if there are no entries.
    /// `rest` is the one whose entries stay, if there is one, at its end. The sequence numbers of
    /// the table count the added entries alone.
    pub fn finish(mut self, rest: Option<&FoldedRest>) -> Option<(Folded, Table)> {
        if self.folded.places.is_empty() {
            return None;
        }
        self.close_chunk();
        if let Some(rest) = rest.filter(|_| self.shares) {
            self.count_shared(rest);
        }
        self.folded.places.shrink_to_fit();
        self.folded.sums.shrink_to_fit();
        let last = self.folded.places.last().map_or(&[][..], |place| self.folded.key(place));
        let mut facts = self.facts.finish(last);
        Some((self.folded, facts.take_tree_table()))
    }

    /// Returns the number of entries that were looked at one by one: all added entries, and kept
    /// entries that begin a block.
    pub fn folded_entries(&self) -> u64 {
        self.folded_entries
    }
}

/// Returns the key of the last entry, or an empty key if there is none. `open` is the chunk that is
/// under construction; its place in the list of chunks is empty.
fn last_key<'a>(folded: &'a Folded, open: &'a [u8]) -> &'a [u8] {
    let Some(place) = folded.places.last() else { return &[] };
    let closed = &folded.chunks[place.chunk as usize][..];
    let chunk = if closed.is_empty() { open } else { closed };
    let start = place.offset as usize;
    &chunk[start..start + usize::from(place.key_bytes)]
}

/// Returns the number of items at the start of `items` for which `is_before` holds. It must hold
/// for none behind the first for which it does not.
///
/// Looks at the first items one by one, because there are usually few. Beyond them it looks
/// at few.
#[inline]
pub(super) fn count_while<T>(items: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let few = items.len().min(FEW);
    if let Some(count) = items[..few].iter().position(|item| !is_before(item)) {
        return count;
    }
    let mut start = few;
    let mut end = 2 * FEW;
    while items.get(end).is_some_and(&is_before) {
        start = end + 1;
        end *= 2;
    }
    let end = end.min(items.len());
    start + items[start..end].partition_point(is_before)
}
