//! The index of a table: for each data block its fence pointer and its length.
//!
//! ```text
//! fence ... | seal
//! fence = block bytes << 1 + continued | shared | suffix bytes | suffix
//! ```
//!
//! Numbers are varints. Blocks lie one behind the other from the start of the file, so lengths are
//! enough. The fence of a block is the shortest start of its first key that is above every key of
//! the block before. Where there is none, because versions of one key fill the end of one block
//! and the start of the next, it is the key itself, and the later block is *continued*. The fence
//! of the first block is empty. As in a data block, a fence shares bytes with the one before.

use super::codec::{Damage, Reader, common_prefix_bytes, key_prefix, put_varint};
use std::hint::black_box;
use std::ops::Range;

/// What the index says about one data block.
#[derive(Clone, Copy, Debug)]
pub struct Fence<'a> {
    /// At most every key of the block, and above every key of the block before, except where the
    /// block is continued.
    pub key: &'a [u8],
    /// Whether the block starts with the key with which the block before ended.
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

    /// The payload of the index block.
    pub fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// From one of the numbers that are searched first to the next.
const TOP_STEP: usize = 16;

/// Numbers in a line of the processor's caches.
const LINE_NUMBERS: usize = 8;

/// Fences among which one is searched for: those from one top to the next.
#[derive(Clone, Copy, Debug)]
pub struct Stretch(usize);

/// The fences of a table in memory: searched where they lie, without decoding or allocation.
///
/// A search goes by numbers first: eight bytes of each fence behind those that all of them begin
/// with. They lie side by side, so that most of a search stays in few cache lines; whole fences
/// are compared only among those whose numbers are those of the key.
#[derive(Debug)]
pub struct Fences {
    /// What all fences but the first, the empty one, begin with.
    shared: Box<[u8]>,
    /// The number of each fence but the first.
    prefixes: Box<[u64]>,
    /// Every sixteenth of them, from the first on: few enough to stay in a near cache.
    tops: Box<[u64]>,
    /// All fence keys, one behind the other.
    keys: Box<[u8]>,
    /// Where in `keys` each starts, and the end of the last.
    key_starts: Box<[u32]>,
    /// Where in the file each block starts, and the end of the last.
    block_starts: Box<[u64]>,
    /// The blocks that are continued, ascending. Nearly always none.
    continued: Box<[u32]>,
}

impl Fences {
    /// Bytes that they take in memory.
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
    /// which come to at most `plain_bytes_max` when nothing of them is compressed.
    pub fn parse(payload: &[u8], data_bytes: u64, plain_bytes_max: u64) -> Result<Fences, Damage> {
        let mut reader = Reader::new(payload, 0);
        let (mut keys, mut continued) = (Vec::new(), Vec::new());
        let (mut key_starts, mut block_starts) = (vec![0], vec![0]);
        let (mut key_start, mut block_end) = (0, 0u64);
        while reader.at() < payload.len() {
            let tagged = reader.varint()?;
            if tagged & 1 == 1 {
                continued.push((block_starts.len() - 1) as u32);
            }
            block_end = block_end.saturating_add(tagged >> 1);
            let shared = reader.size()?;
            let suffix = reader.bytes()?;
            if shared > keys.len() - key_start {
                return Err(reader.damage("a fence shares bytes that are not there"));
            }
            let end = keys.len() as u64 + (shared + suffix.len()) as u64;
            // Each fence is the start of a key that its block holds in full.
            if block_end > data_bytes || end > plain_bytes_max {
                return Err(reader.damage("fences exceed the data blocks"));
            }
            let Ok(key_end) = u32::try_from(end) else {
                return Err(reader.damage("fences exceed 4 GiB"));
            };
            let shared = key_start..key_start + shared;
            key_start = keys.len();
            keys.extend_from_within(shared);
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
        fences.note_prefixes();
        Ok(fences)
    }

    fn note_prefixes(&mut self) {
        let first = self.key(1);
        let shared_bytes = (2..self.count()).fold(first.len(), |bytes, index| {
            common_prefix_bytes(first, self.key(index)).min(bytes)
        });
        let rest = |index| self.key(index).get(shared_bytes..).unwrap_or_default();
        self.prefixes = (1..self.count()).map(|index| key_prefix(rest(index))).collect();
        self.tops = self.prefixes.iter().copied().step_by(TOP_STEP).collect();
        self.shared = self.key(1).get(..shared_bytes).unwrap_or_default().into();
    }

    /// How many blocks there are: at least one.
    pub fn count(&self) -> usize {
        self.block_starts.len() - 1
    }

    /// The fence of block `index`.
    pub fn key(&self, index: usize) -> &[u8] {
        let bound = |at: usize| self.key_starts.get(at).map_or(0, |start| *start as usize);
        self.keys.get(bound(index)..bound(index + 1)).unwrap_or_default()
    }

    /// Where block `index` lies in the file; empty for an index beyond the last.
    pub fn place(&self, index: usize) -> Range<u64> {
        let last = self.block_starts.last().copied().unwrap_or_default();
        let bound = |at: usize| self.block_starts.get(at).copied().unwrap_or(last);
        bound(index)..bound(index + 1)
    }

    /// How many blocks, from the first on, end at `offset` of the file or before.
    pub fn blocks_within(&self, offset: u64) -> usize {
        self.block_starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Whether block `index` starts with the key with which the block before ended.
    pub fn continued(&self, index: usize) -> bool {
        u32::try_from(index).is_ok_and(|index| self.continued.binary_search(&index).is_ok())
    }

    /// How many blocks before block `index` are continued.
    pub fn continued_before(&self, index: usize) -> usize {
        self.continued.partition_point(|block| (*block as usize) < index)
    }

    /// Whether versions of `key` may fill the end of the block before block `index`.
    pub fn continues_key(&self, index: usize, key: &[u8]) -> bool {
        index < self.count() && self.continued(index) && self.key(index) == key
    }

    /// The block in which the first entry with `key` or above lies, unless all of that block is
    /// below `key`: then the next block starts with it.
    pub fn block_for(&self, key: &[u8]) -> usize {
        let stretch = self.stretch_for(key);
        black_box(self.touch(stretch));
        self.block_within(stretch, key)
    }

    /// The same, where [`stretch_for`](Fences::stretch_for) has said where to search.
    pub fn block_within(&self, stretch: Stretch, key: &[u8]) -> usize {
        let (after, tied) = self.search(stretch, key);
        let starts_here =
            tied && after < self.count() && self.key(after) == key && !self.continued(after);
        if starts_here { after } else { after.saturating_sub(1) }
    }

    /// How many blocks, from the first on, have a fence below `key`.
    pub fn blocks_below(&self, key: &[u8]) -> usize {
        self.search(self.stretch_for(key), key).0
    }

    /// Where `key` is to be searched for.
    pub fn stretch_for(&self, key: &[u8]) -> Stretch {
        let number = key_prefix(key.get(self.shared.len()..).unwrap_or_default());
        let tops = self.tops.partition_point(|top| *top < number);
        let from = tops.saturating_sub(1) * TOP_STEP;
        Stretch(from)
    }

    /// How many blocks have a fence below `key`, and whether the fence that follows may be `key`.
    fn search(&self, stretch: Stretch, key: &[u8]) -> (usize, bool) {
        let common = common_prefix_bytes(&self.shared, key);
        if common < self.shared.len() {
            let above = self.shared.get(common) > key.get(common);
            return (if above { usize::from(!key.is_empty()) } else { self.count() }, false);
        }
        let number = key_prefix(key.get(common..).unwrap_or_default());
        // Fence `i` has the number at `i - 1`.
        let from = 1 + self.prefixes_below(stretch, number);
        let rest = self.prefixes.get(from - 1..).unwrap_or_default();
        let ties = match rest.first() {
            Some(prefix) if *prefix == number => rest.partition_point(|prefix| *prefix == number),
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

    /// How many numbers are below `number`, which belongs into `stretch`.
    fn prefixes_below(&self, Stretch(from): Stretch, number: u64) -> usize {
        let upto = self.prefixes.len().min(from + TOP_STEP);
        let stretch = self.prefixes.get(from..upto).unwrap_or_default();
        from + stretch.iter().filter(|prefix| **prefix < number).count()
    }

    /// Loads the numbers of `stretch`, and where their blocks start, and gives anything of it:
    /// these loads go on side by side, those of the search and what follows one after the other.
    #[inline]
    pub fn touch(&self, Stretch(from): Stretch) -> u64 {
        let number = |row: &[u64], at: usize| row.get(at).copied().unwrap_or_default();
        let line = |all, index: usize| {
            let at = from + index * LINE_NUMBERS;
            all ^ number(&self.prefixes, at) ^ number(&self.block_starts, at)
        };
        (0..=TOP_STEP / LINE_NUMBERS).fold(0, line)
    }
}
