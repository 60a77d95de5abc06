//! The index of a table: the fence pointer and the length of each data block.
//!
//! ```text
//! fence ... | seal
//! fence = block bytes << 1 + continued | shared | suffix bytes | suffix
//! ```
//!
//! Integers are varints. Blocks lie without gaps from the start of the file, so lengths are enough.
//! The fence of a block is the shortest prefix of its first key that is above every key of the
//! previous block. There is no such prefix if versions of one key fill the end of one block and the
//! start of the next. Then the fence is the key itself, and the later block is *continued*. The
//! fence of the first block is empty. A fence shares bytes with the previous one, as keys in a data
//! block do.

use super::codec::{Damage, Reader, common_prefix_bytes, key_prefix, put_varint};
use std::hint::black_box;
use std::ops::Range;

/// The fence pointer of one data block, and the length of the block.
#[derive(Clone, Copy, Debug)]
pub struct Fence<'a> {
    /// At most every key of the block, and above every key of the previous block, except if the
    /// block is continued.
    pub key: &'a [u8],
    /// True if the block starts with the last key of the previous block.
    pub continued: bool,
    /// Bytes of the block, seal included.
    pub block_bytes: usize,
}

/// Encodes fences while blocks are written.
#[derive(Debug, Default)]
pub struct FencesBuilder {
    out: Vec<u8>,
    last: Vec<u8>,
}

impl FencesBuilder {
    /// Adds the fence of the next block.
    pub fn add(&mut self, fence: Fence<'_>) {
        let shared = common_prefix_bytes(&self.last, fence.key);
        let suffix = fence.key.get(shared..).unwrap_or_default();
        put_varint(&mut self.out, (fence.block_bytes as u64) << 1 | u64::from(fence.continued));
        put_varint(&mut self.out, shared as u64);
        put_varint(&mut self.out, suffix.len() as u64);
        self.out.extend_from_slice(suffix);
        self.last.truncate(shared);
        self.last.extend_from_slice(suffix);
    }

    /// Returns the bytes of memory that the fences take.
    pub fn memory_bytes(&self) -> u64 {
        self.out.capacity() as u64
    }

    /// Returns the payload of the index block.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// The distance between two integers in `tops`, which are searched first.
const TOP_STEP: usize = 16;

/// The number of prefixes in a cache line.
const LINE_NUMBERS: usize = 8;

/// A group of neighbouring fences that contains the result of a search: from one top to the next.
#[derive(Clone, Copy, Debug)]
pub struct FenceGroup(usize);

/// The fences of a table in memory, searched without decoding or allocation.
///
/// A search first compares integers: for each fence the eight bytes behind the prefix that all
/// fences share. The integers lie side by side, so that most of a search stays in few cache lines.
/// Whole fences are compared only if their integer is the key's.
#[derive(Debug)]
pub struct Fences {
    /// The common prefix of all fences but the first one, which is empty.
    shared: Box<[u8]>,
    /// The integer of each fence but the first.
    prefixes: Box<[u64]>,
    /// Every sixteenth integer, from the first on: few enough to stay in a near cache.
    tops: Box<[u64]>,
    /// All fence keys, one behind the other.
    keys: Box<[u8]>,
    /// The start of each fence in `keys`, and the end of the last.
    key_starts: Box<[u32]>,
    /// The start of each block in the file, and the end of the last.
    block_starts: Box<[u64]>,
    /// The continued blocks, ascending. Nearly always empty.
    continued: Box<[u32]>,
}

impl Fences {
    /// Returns the size in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.shared)
            + size_of_val(&*self.prefixes)
            + size_of_val(&*self.tops)
            + size_of_val(&*self.keys)
            + size_of_val(&*self.key_starts)
            + size_of_val(&*self.block_starts)
            + size_of_val(&*self.continued)
    }

    /// Decodes the payload of the index block of a table with `data_bytes` bytes of data blocks,
    /// which have at most `plain_bytes_max` bytes when uncompressed.
    pub fn parse(payload: &[u8], data_bytes: u64, plain_bytes_max: u64) -> Result<Fences, Damage> {
        let mut reader = Reader::new(payload, 0);
        let mut keys = Vec::new();
        let mut continued = Vec::new();
        let mut key_starts = vec![0];
        let mut block_starts = vec![0];
        let mut key_start = 0;
        let mut block_end = 0u64;
        while reader.at() < payload.len() {
            let tagged = reader.varint()?;
            if tagged & 1 == 1 {
                continued.push((block_starts.len() - 1) as u32);
            }
            block_end = block_end.saturating_add(tagged >> 1);
            let shared = reader.size()?;
            let suffix = reader.bytes()?;
            if shared > keys.len() - key_start {
                return Err(reader.damage("a fence shares more bytes than the fence before it has"));
            }
            let end = keys.len() as u64 + (shared + suffix.len()) as u64;
            // Each fence is the prefix of a key that its block holds in full.
            if block_end > data_bytes || end > plain_bytes_max {
                return Err(reader.damage("fences exceed the data blocks"));
            }
            let Ok(key_end) = u32::try_from(end) else {
                return Err(reader.damage("fences exceed 4 GiB"));
            };
            let shared_range = key_start..key_start + shared;
            key_start = keys.len();
            keys.extend_from_within(shared_range);
            keys.extend_from_slice(suffix);
            key_starts.push(key_end);
            block_starts.push(block_end);
        }
        if block_end != data_bytes || data_bytes == 0 {
            return Err(reader.damage("fences do not cover the data blocks"));
        }
        let mut fences = Fences {
            shared: Box::default(),
            prefixes: Box::default(),
            tops: Box::default(),
            keys: keys.into(),
            key_starts: key_starts.into(),
            block_starts: block_starts.into(),
            continued: continued.into(),
        };
        fences.set_prefixes();
        Ok(fences)
    }

    fn set_prefixes(&mut self) {
        let first = self.key(1);
        let shared_bytes = (2..self.count()).fold(first.len(), |bytes, index| {
            common_prefix_bytes(first, self.key(index)).min(bytes)
        });
        let rest = |index| self.key(index).get(shared_bytes..).unwrap_or_default();
        self.prefixes = (1..self.count()).map(|index| key_prefix(rest(index))).collect();
        self.tops = self.prefixes.iter().copied().step_by(TOP_STEP).collect();
        self.shared = self.key(1).get(..shared_bytes).unwrap_or_default().into();
    }

    /// Returns the number of blocks, at least one.
    pub fn count(&self) -> usize {
        self.block_starts.len() - 1
    }

    /// Returns the fence of block `index`.
    pub fn key(&self, index: usize) -> &[u8] {
        let bound = |at: usize| self.key_starts.get(at).map_or(0, |start| *start as usize);
        self.keys.get(bound(index)..bound(index + 1)).unwrap_or_default()
    }

    /// Returns the byte range of block `index` in the file; empty for an index beyond the last.
    pub fn place(&self, index: usize) -> Range<u64> {
        let last = self.block_starts.last().copied().unwrap_or_default();
        let bound = |at: usize| self.block_starts.get(at).copied().unwrap_or(last);
        bound(index)..bound(index + 1)
    }

    /// Returns the number of blocks, from the first on, that end at or before `offset` of the file.
    pub fn blocks_within(&self, offset: u64) -> usize {
        self.block_starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Returns true if block `index` starts with the last key of the previous block.
    pub fn is_continued(&self, index: usize) -> bool {
        u32::try_from(index).is_ok_and(|index| self.continued.binary_search(&index).is_ok())
    }

    /// Returns the number of continued blocks before block `index`.
    pub fn continued_before(&self, index: usize) -> usize {
        self.continued.partition_point(|block| (*block as usize) < index)
    }

    /// Returns true if versions of `key` may fill the end of the block before block `index`.
    pub fn may_continue_key(&self, index: usize, key: &[u8]) -> bool {
        index < self.count() && self.is_continued(index) && self.key(index) == key
    }

    /// Returns the block with the first entry at or above `key`. If all keys of that block are
    /// below `key`, the next block starts with that entry.
    pub fn block_for(&self, key: &[u8]) -> usize {
        let group = self.group_for(key);
        black_box(self.touch(group));
        self.block_in_group(group, key)
    }

    /// Like [`block_for`](Fences::block_for), within the group from
    /// [`group_for`](Fences::group_for).
    pub fn block_in_group(&self, group: FenceGroup, key: &[u8]) -> usize {
        let (after, tied) = self.search(group, key);
        let starts_here =
            tied && after < self.count() && self.key(after) == key && !self.is_continued(after);
        if starts_here { after } else { after.saturating_sub(1) }
    }

    /// Returns the number of blocks, from the first on, whose fence is below `key`.
    pub fn blocks_below(&self, key: &[u8]) -> usize {
        self.search(self.group_for(key), key).0
    }

    /// Returns the group in which a search for `key` must look.
    pub fn group_for(&self, key: &[u8]) -> FenceGroup {
        let wanted = key_prefix(key.get(self.shared.len()..).unwrap_or_default());
        let tops = self.tops.partition_point(|top| *top < wanted);
        let from = tops.saturating_sub(1) * TOP_STEP;
        FenceGroup(from)
    }

    /// Returns the number of blocks whose fence is below `key`, and true if the next fence may
    /// equal `key`.
    fn search(&self, group: FenceGroup, key: &[u8]) -> (usize, bool) {
        let common = common_prefix_bytes(&self.shared, key);
        if common < self.shared.len() {
            let above = self.shared.get(common) > key.get(common);
            return (if above { usize::from(!key.is_empty()) } else { self.count() }, false);
        }
        let wanted = key_prefix(key.get(common..).unwrap_or_default());
        // The number of fence `i` is at `i - 1`.
        let from = 1 + self.prefixes_below(group, wanted);
        let rest = self.prefixes.get(from - 1..).unwrap_or_default();
        let ties = match rest.first() {
            Some(prefix) if *prefix == wanted => rest.partition_point(|prefix| *prefix == wanted),
            _ => 0,
        };
        let mut range = from..from + ties;
        while !range.is_empty() {
            let middle = usize::midpoint(range.start, range.end);
            if self.key(middle) < key {
                range.start = middle + 1;
            } else {
                range.end = middle;
            }
        }
        // Nothing is below the empty key, not even the first fence.
        if key.is_empty() { (0, false) } else { (range.start, ties > 0) }
    }

    /// Returns how many integers are below `wanted`, whose group is `from..`.
    fn prefixes_below(&self, FenceGroup(from): FenceGroup, wanted: u64) -> usize {
        let end = self.prefixes.len().min(from + TOP_STEP);
        let group = self.prefixes.get(from..end).unwrap_or_default();
        from + group.iter().filter(|prefix| **prefix < wanted).count()
    }

    /// Loads the integers of the group and the starts of its blocks, and returns an arbitrary
    /// combination. These loads run in parallel; the search and its caller would load one after the
    /// other.
    #[inline]
    pub fn touch(&self, FenceGroup(from): FenceGroup) -> u64 {
        let value = |row: &[u64], at: usize| row.get(at).copied().unwrap_or_default();
        let line = |all, index: usize| {
            let at = from + index * LINE_NUMBERS;
            all ^ value(&self.prefixes, at) ^ value(&self.block_starts, at)
        };
        (0..=TOP_STEP / LINE_NUMBERS).fold(0, line)
    }
}
