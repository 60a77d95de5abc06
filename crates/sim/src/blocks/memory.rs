//! Memory: one sorted run that takes writes.

use super::BlockEntry;
use crate::keyed::KeyedEntry;

/// The most entries of a chunk; a larger chunk is split.
const CHUNK_MAX: usize = 256;

/// The net effect of all writes to each key, in key order.
///
/// Entries are in chunks. A write moves part of one chunk. Reading all entries, which happens for
/// each window that leaves memory, is as fast as copying memory.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// For each chunk the least key that it may hold, ascending from 0.
    starts: Vec<u32>,
    /// The chunks, at least one; any can be empty.
    chunks: Vec<Vec<BlockEntry>>,
    len: usize,
}

impl Memory {
    pub(super) fn new() -> Memory {
        Memory { starts: vec![0], chunks: vec![Vec::new()], len: 0 }
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns all entries, in key order.
    pub(super) fn entries(&self) -> impl Iterator<Item = BlockEntry> {
        self.chunks.iter().flatten().copied()
    }

    /// Returns the entries from `key` on, in key order.
    pub(super) fn entries_from(&self, key: u32) -> impl Iterator<Item = BlockEntry> {
        let chunks = &self.chunks[self.chunk_of(key)..];
        chunks.iter().flatten().copied().skip_while(move |entry| entry.rank() < key)
    }

    /// Returns the index of the chunk for `key`.
    #[inline]
    fn chunk_of(&self, key: u32) -> usize {
        self.starts.partition_point(|start| *start <= key) - 1
    }

    /// Returns true if memory has an entry of `key`.
    pub(super) fn holds(&self, key: u32) -> bool {
        let chunk = &self.chunks[self.chunk_of(key)];
        chunk.binary_search_by_key(&key, |entry| entry.rank()).is_ok()
    }

    /// Adds a write.
    #[inline]
    pub(super) fn write(&mut self, entry: BlockEntry) {
        let index = self.chunk_of(entry.rank());
        let chunk = &mut self.chunks[index];
        let at = chunk.partition_point(|older| older.rank() < entry.rank());
        match chunk.get_mut(at) {
            Some(older) if older.rank() == entry.rank() => {
                if let Some(net) = entry.over(*older) {
                    *older = net;
                } else {
                    chunk.remove(at);
                    self.len -= 1;
                }
            }
            _ => {
                chunk.insert(at, entry);
                self.len += 1;
                if chunk.len() > CHUNK_MAX {
                    self.split(index);
                }
            }
        }
    }

    #[cold]
    fn split(&mut self, index: usize) {
        let chunk = &mut self.chunks[index];
        let mut upper = Vec::with_capacity(CHUNK_MAX + 1);
        upper.extend(chunk.drain(CHUNK_MAX / 2..));
        self.starts.insert(index + 1, upper[0].rank());
        self.chunks.insert(index + 1, upper);
    }

    /// Removes the entries with keys from `first` to `last`, both inclusive.
    pub(super) fn forget(&mut self, first: u32, last: u32) {
        let first_chunk = self.chunk_of(first);
        let last_chunk = self.chunk_of(last);
        for chunk in &mut self.chunks[first_chunk..=last_chunk] {
            let start = chunk.partition_point(|entry| entry.rank() < first);
            let end = chunk.partition_point(|entry| entry.rank() <= last);
            chunk.drain(start..end);
            self.len -= end - start;
        }
        // The keys of emptied chunks now belong to the chunk before them.
        let mut index = first_chunk.max(1);
        for _ in first_chunk.max(1)..=last_chunk {
            if self.chunks[index].is_empty() {
                self.chunks.remove(index);
                self.starts.remove(index);
            } else {
                index += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_tree::EntryKind;
    use std::collections::BTreeMap;

    /// Writes and removed windows have the same effect as on a plain map.
    #[test]
    fn it_is_a_sorted_map_of_net_effects() {
        let mut memory = Memory::new();
        let mut map = BTreeMap::new();
        let mut state = 1_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % bound) as u32
        };
        for step in 0..60_000 {
            let key = match step / 20_000 {
                0 => below(100_000),
                1 => u32::MAX - below(5_000),
                _ => below(1 << 31) * 2,
            };
            let kind = if below(3) > 0 { EntryKind::Insert } else { EntryKind::Remove };
            memory.write(BlockEntry::new(key, 104, kind));
            let net = map.get(&key).map_or(Some(kind), |older| kind.over(*older));
            match net {
                Some(net) => map.insert(key, net),
                None => map.remove(&key),
            };
            if step % 1_000 == 999 {
                let first = below(u32::MAX as u64 - 100_000_000) / [1, 50_000][step / 1_000 % 2];
                let last = first + [500, 100_000_000][step / 1_000 % 2];
                memory.forget(first, last);
                map.retain(|key, _| !(first..=last).contains(key));
            }
            assert_eq!(memory.len(), map.len());
        }
        assert!(map.len() > 2_000, "{}", map.len());
        assert!(memory.chunks.len() > 10);
        let entries: Vec<_> = memory.entries().map(|r| (r.rank(), r.kind())).collect();
        assert_eq!(entries, map.into_iter().collect::<Vec<_>>());
    }
}
