//! Data blocks: how their entries are found and decoded.
//!
//! ```text
//! entry ... | restart offset: u32 ... | usual: key bytes: u16, value bytes << 3 + kind: u32
//!     | sequence base: u64 | restarts: u32 | seal
//! entry = head | suffix | value
//! ```
//!
//! Everything in front of the seal may be [compressed](super::compress).
//!
//! The [head](super::entry_head) of an entry contains the lengths of the rest. A key is the first
//! `shared` bytes of the previous key, followed by the suffix. It shares as many bytes as possible,
//! except at a restart point, where it shares none. The sequence delta is the zigzag-encoded
//! difference to the base, which is the sequence number of the first entry.

use super::block_builder::{RESTART_BYTES, RESTART_ENTRIES, TAIL_BYTES};
use super::codec::{Damage, Reader, common_prefix_bytes, key_prefix, unzigzag};
use super::compress::expand;
use super::entry_head::{EntryHead, KIND_BITS, Usual};
use super::seal::{SealedPlace, TAG_PLAIN, plain, unseal_tagged};
use super::slot::{Slot, Trail};
use bytes::{Bytes, BytesMut};
use lsmith_tree::{EntryKind, SeqNo};
use std::cmp::Ordering;
use std::hint::black_box;
use std::ops::Range;

/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// The number of lines behind a restart point that are loaded in parallel. A processor can wait for
/// about this many loads at once, and they cover half of the usual distance between two restart
/// points.
const LINES_AHEAD: usize = 12;

/// The number of bytes of a key that are copied at once.
const SUFFIX_SHORT: usize = 16;

/// The most restart points that are kept beside the payload.
const RESTARTS_NEAR: usize = 4;

/// Up to this many restart points are loaded ahead. Of more, a search looks at few.
const RESTARTS_TOUCHED_MAX: usize = 16;

/// A data block whose checksum matched. A clone is cheap, because it shares the bytes.
#[derive(Clone, Debug)]
pub struct Block {
    payload: Bytes,
    seq_base: u64,
    usual: Usual,
    /// Fits into 32 bits, because payloads are shorter than 4 GiB.
    entries_end: u32,
    restarts: u32,
    /// The restart points, if they are few and have small offsets. Otherwise they are only in the
    /// payload, far from the other bytes that a search reads.
    near: Option<[u16; RESTARTS_NEAR]>,
    /// True if the bytes lie in a mapped file; see [`lent`](Block::lent).
    is_lent: bool,
}

/// The result of a search for a key in one block.
#[derive(Debug)]
pub enum BlockAnswer {
    /// The newest version of the key that the snapshot sees.
    Found(Slot),
    /// The snapshot sees no version of the key, neither here nor in a later block.
    Absent,
    /// The search must continue in the next block.
    Beyond,
}

impl Block {
    /// Opens the block whose sealed bytes `sealed` were read from `place`.
    pub fn open(sealed: Bytes, place: SealedPlace) -> Result<Block, Damage> {
        let (tag, stored) = unseal_tagged(&sealed, place)?;
        match (tag, stored.len()) {
            (TAG_PLAIN, bytes) => Block::parse(sealed.slice(..bytes)),
            _ => Block::parse(expand(tag, stored)?),
        }
    }

    /// Opens the block at `place` of a mapped `file`, whose checksum matched before. It copies
    /// nothing and does not read the whole block. The bytes may be used as long as the caller holds
    /// the version of the tree with this table; values that live longer must be copies.
    pub fn lent(file: &Bytes, place: Range<usize>) -> Result<Block, Damage> {
        let start = place.start;
        let found = file.get(place).and_then(plain);
        let payload = found.ok_or(Damage::whole("a block changed after its checksum matched"))?;
        let block = Block::parse(file.slice(start..start + payload.len()))?;
        Ok(Block { is_lent: true, ..block })
    }

    /// Returns a block of a mapped `file` that shows only the value at `value`, and an entry with
    /// this value. The rules of [`lent`](Block::lent) apply to the bytes. Returns `None` if the
    /// file ends before, or if the value is too long for a block.
    pub fn lent_value(
        file: &Bytes,
        value: Range<usize>,
        kind: EntryKind,
        seq: SeqNo,
    ) -> Option<(Block, Slot)> {
        let bytes = u32::try_from(value.len()).ok()?;
        file.get(value.clone())?;
        let block = Block {
            payload: file.slice(value),
            seq_base: 0,
            usual: Usual::default(),
            entries_end: bytes,
            restarts: 0,
            near: None,
            is_lent: true,
        };
        let slot =
            Slot { start: 0, shared: 0, suffix_start: 0, value_start: 0, end: bytes, kind, seq };
        Some((block, slot))
    }

    /// Returns the place of the value of the entry that starts at `start` of the block at `place`
    /// of `file`. The value has `value_bytes` bytes, and the key `key_bytes`. The block must not be
    /// compressed. Nothing but the head of the entry is read.
    #[inline(always)]
    pub fn value_place(
        file: &[u8],
        place: Range<usize>,
        start: usize,
        key_bytes: usize,
        value_bytes: usize,
    ) -> Result<Range<usize>, Damage> {
        let block = file.get(place.clone()).unwrap_or_default();
        let value_start = EntryHead::value_start(block, start, key_bytes)?;
        let end = value_start.saturating_add(value_bytes);
        if end > block.len() {
            return Err(Damage { what: "an entry reaches beyond its block", at: start });
        }
        Ok(place.start + value_start..place.start + end)
    }

    /// Opens a block whose `payload` was just built.
    pub fn from_payload(payload: Bytes) -> Result<Block, Damage> {
        Block::parse(payload)
    }

    /// Parses the payload of a block.
    pub(super) fn parse(payload: Bytes) -> Result<Block, Damage> {
        let short = Damage::whole("a data block is too short");
        let tail_start = payload.len().checked_sub(TAIL_BYTES).ok_or(short)?;
        let mut tail = Reader::new(&payload, tail_start);
        let usual = Usual { key_bytes: u16::from_le_bytes(tail.array()?), tagged: tail.u32()? };
        let seq_base = tail.u64()?;
        let restarts = tail.u32()? as usize;
        let restart_bytes = restarts.checked_mul(RESTART_BYTES).ok_or(short)?;
        let entries_end = tail_start.checked_sub(restart_bytes).ok_or(short)?;
        if restarts == 0 || entries_end == 0 {
            return Err(short);
        }
        if u32::try_from(payload.len()).is_err() {
            return Err(Damage::whole("a data block is too long"));
        }
        let nears = near_restarts(payload.get(entries_end..tail_start).unwrap_or_default());
        let near = nears.filter(|_| u16::try_from(entries_end).is_ok());
        Ok(Block {
            payload,
            seq_base,
            usual,
            entries_end: entries_end as u32,
            restarts: restarts as u32,
            near,
            is_lent: false,
        })
    }

    /// Returns the block with `base` added to the sequence numbers of its entries.
    pub fn with_seq_base(mut self, base: u64) -> Block {
        self.seq_base = self.seq_base.wrapping_add(base);
        self
    }

    /// Returns the size of the block in memory, in bytes, without a small constant.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }

    /// Returns the memory of the block for reuse, with arbitrary contents, if nobody else shares
    /// it.
    pub fn into_buffer(self) -> Option<BytesMut> {
        self.payload.try_into_mut().ok()
    }

    /// Returns the offset at which the last entry ends.
    pub fn entries_end(&self) -> usize {
        self.entries_end as usize
    }

    /// Returns the number of restart points.
    pub fn restarts(&self) -> usize {
        self.restarts as usize
    }

    /// Decodes the entry that starts at `start`.
    #[inline(always)]
    pub fn slot(&self, start: usize) -> Result<Slot, Damage> {
        self.slot_of_kind(start, EntryKind::from_byte)
    }

    /// Decodes the place of the entry that starts at `start`, for a walk that skips it. Neither
    /// reads nor checks its kind.
    #[inline(always)]
    fn slot_passed(&self, start: usize) -> Result<Slot, Damage> {
        self.slot_of_kind(start, |_| Some(EntryKind::Put))
    }

    #[inline(always)]
    fn slot_of_kind(
        &self,
        start: usize,
        kind: impl FnOnce(u8) -> Option<EntryKind>,
    ) -> Result<Slot, Damage> {
        let entries = self.payload.get(..self.entries_end()).unwrap_or_default();
        let (head, at) = EntryHead::read(entries, start, self.usual)?;
        let EntryHead { shared, suffix_bytes, tagged, delta } = head;
        let Some(kind) = kind(tagged as u8 & ((1 << KIND_BITS) - 1)) else {
            return Err(Damage { what: "an entry has an unknown kind", at });
        };
        let suffix_start = at as u64;
        let value_start = suffix_start.saturating_add(suffix_bytes);
        let end = value_start.saturating_add(tagged >> KIND_BITS);
        if end > u64::from(self.entries_end) || shared > u64::from(u32::MAX) {
            return Err(Damage { what: "an entry reaches beyond its block", at });
        }
        // These casts lose nothing, because a block is shorter than 4 GiB.
        Ok(Slot {
            start: start as u32,
            shared: shared as u32,
            suffix_start: suffix_start as u32,
            value_start: value_start as u32,
            end: end as u32,
            kind,
            seq: SeqNo(self.seq_base.wrapping_add_signed(unzigzag(delta))),
        })
    }

    /// Returns the suffix of the key of `slot`: the bytes that are stored with the entry.
    #[inline]
    pub fn suffix(&self, slot: &Slot) -> &[u8] {
        self.payload.get(slot.suffix()).unwrap_or_default()
    }

    /// Returns the value of `slot`.
    #[inline]
    pub fn value(&self, slot: &Slot) -> &[u8] {
        self.payload.get(slot.value()).unwrap_or_default()
    }

    /// Returns the sixteen bytes from the value of `slot` on, the first one lowest, and the length
    /// of the value. Returns `None` if the block ends before.
    #[inline]
    pub(super) fn value_near(&self, slot: &Slot) -> Option<(u128, usize)> {
        let bytes = self.payload.get(slot.value_start as usize..)?.first_chunk()?;
        Some((u128::from_le_bytes(*bytes), slot.value().len()))
    }

    /// Returns the value of `slot`. It shares the memory of the block, unless that is
    /// [lent](Block::lent).
    pub fn shared_value(&self, slot: &Slot) -> Bytes {
        if self.is_lent {
            Bytes::copy_from_slice(self.value(slot))
        } else {
            self.payload.slice(slot.value())
        }
    }

    /// Changes `key` from the key of the entry before `slot` to the key of `slot`.
    #[inline(always)]
    pub fn step(&self, slot: &Slot, key: &mut Vec<u8>) -> Result<(), Damage> {
        if slot.shared() > key.len() {
            return Err(Damage {
                what: "a key shares more bytes than the key before it has",
                at: slot.start(),
            });
        }
        key.truncate(slot.shared());
        // Most suffixes are short. A copy of a constant length needs no call.
        let behind = self.payload.get(slot.suffix_start as usize..).unwrap_or_default();
        match behind.first_chunk::<SUFFIX_SHORT>() {
            Some(chunk) if slot.suffix().len() <= SUFFIX_SHORT => {
                key.extend_from_slice(chunk);
                key.truncate(slot.shared() + slot.suffix().len());
            }
            _ => key.extend_from_slice(self.suffix(slot)),
        }
        Ok(())
    }

    /// Finds the entry that ends at `end`, which must not be 0, and sets `key` to its key. `trail`
    /// receives the entries in front of it, from a restart point on.
    pub fn slot_ending(
        &self,
        end: usize,
        key: &mut Vec<u8>,
        trail: &mut Trail,
    ) -> Result<Slot, Damage> {
        key.clear();
        trail.clear();
        let after = self.partition_restarts(|restart| Ok(restart < end))?;
        let mut slot = self.slot(self.restart(after.saturating_sub(1))?)?;
        self.step(&slot, key)?;
        while slot.end() < end {
            // Each trail entry holds a whole key, even if the key took no bytes of the block.
            if trail.len() >= RESTART_ENTRIES {
                return Err(Damage { what: "a restart point is missing", at: slot.start() });
            }
            trail.push(slot, key);
            slot = self.slot(slot.end())?;
            self.step(&slot, key)?;
        }
        if slot.end() > end {
            return Err(Damage { what: "entries overlap", at: slot.start() });
        }
        Ok(slot)
    }

    /// Returns the first entry whose key is `target` or greater, and whether the key equals
    /// `target`.
    ///
    /// The search builds no keys. While all keys so far are below the target, it keeps only the
    /// number of bytes that the last key has in common with the target. A key that shares more
    /// bytes with the last key is below the target for the same reason. A key that shares fewer is
    /// above it. Only a key that shares exactly this many must be compared from there. It follows
    /// that the shared bytes of the found entry are bytes of the target.
    pub fn lower_bound(&self, target: &[u8]) -> Result<Option<(Slot, bool)>, Damage> {
        black_box(self.touch_restarts());
        let start = self.restart_below(target)?;
        black_box(self.touch_behind(start));
        self.lower_bound_from(start, target)
    }

    /// Like [`lower_bound`](Block::lower_bound), from the `start` that
    /// [`restart_below`](Block::restart_below) found.
    pub fn lower_bound_from(
        &self,
        start: usize,
        target: &[u8],
    ) -> Result<Option<(Slot, bool)>, Damage> {
        let mut at = start;
        let mut matched = 0;
        loop {
            let slot = self.slot_passed(at)?;
            let end = slot.end();
            let ordering = self.compare(&slot, target, &mut matched);
            if ordering != Ordering::Less {
                return Ok(Some((self.slot(at)?, ordering == Ordering::Equal)));
            }
            if end >= self.entries_end() {
                return Ok(None);
            }
            at = end;
        }
    }

    /// Compares the key of `slot` with `target`, on a walk from a restart point. `matched` is the
    /// number of bytes that the key before has in common with the target.
    #[inline(always)]
    fn compare(&self, slot: &Slot, target: &[u8], matched: &mut usize) -> Ordering {
        let shared = slot.shared();
        if shared > *matched {
            Ordering::Less
        } else if shared == *matched || shared == 0 {
            let suffix = self.payload.get(slot.suffix()).unwrap_or_default();
            let rest = target.get(shared..).unwrap_or_default();
            let common = common_prefix_bytes(suffix, rest);
            *matched = shared + common;
            suffix.get(common).cmp(&rest.get(common))
        } else {
            Ordering::Greater
        }
    }

    /// Returns the last entry whose key is `target` or less, or the first one if there is none. All
    /// keys must be different.
    pub fn floor(&self, target: &[u8]) -> Result<Slot, Damage> {
        black_box(self.touch_restarts());
        let mut at = self.restart_below(target)?;
        let mut matched = 0;
        let mut next = at;
        while next < self.entries_end() {
            let slot = self.slot_passed(next)?;
            match self.compare(&slot, target, &mut matched) {
                Ordering::Less => at = next,
                Ordering::Equal => return self.slot(next),
                Ordering::Greater => break,
            }
            next = slot.end();
        }
        self.slot(at)
    }

    /// Searches for the newest version of `key` that `snapshot` sees.
    #[inline(always)]
    pub fn find(&self, key: &[u8], snapshot: SeqNo) -> Result<BlockAnswer, Damage> {
        let mut slot = match self.lower_bound(key)? {
            None => return Ok(BlockAnswer::Beyond),
            Some((_, false)) => return Ok(BlockAnswer::Absent),
            Some((slot, true)) => slot,
        };
        while slot.seq > snapshot {
            if slot.end() >= self.entries_end() {
                return Ok(BlockAnswer::Beyond);
            }
            slot = self.slot(slot.end())?;
            let suffix = self.suffix(&slot);
            let same = match slot.shared() {
                0 => suffix == key,
                shared => shared == key.len() && suffix.is_empty(),
            };
            if !same {
                return Ok(BlockAnswer::Absent);
            }
        }
        Ok(BlockAnswer::Found(slot))
    }

    /// Returns the offset of restart point `index`.
    pub fn restart(&self, index: usize) -> Result<usize, Damage> {
        let at = self.entries_end().saturating_add(index.saturating_mul(RESTART_BYTES));
        let start = match &self.near {
            Some(near) => near.get(index).copied().map_or(usize::MAX, usize::from),
            None => Reader::new(&self.payload, at).u32()? as usize,
        };
        if start >= self.entries_end() {
            return Err(Damage { what: "a restart point lies beyond the entries", at });
        }
        Ok(start)
    }

    /// Returns the last restart point whose key is below `target`, or the first one. A restart
    /// point at the target itself does not count, because newer versions of it may lie in front.
    pub fn restart_below(&self, target: &[u8]) -> Result<usize, Damage> {
        let after = self.partition_restarts(|restart| {
            let slot = self.slot(restart)?;
            if slot.shared() != 0 {
                return Err(Damage {
                    what: "the key of a restart point shares bytes",
                    at: restart,
                });
            }
            let suffix = self.suffix(&slot);
            let prefixes = key_prefix(suffix).cmp(&key_prefix(target));
            Ok(prefixes.then_with(|| suffix.cmp(target)).is_lt())
        })?;
        self.restart(after.saturating_sub(1))
    }

    /// Loads a byte of each restart point, if they are few, and returns an arbitrary combination of
    /// them. A searched block is usually in main memory. These loads run in parallel; the loads of
    /// the search would run one after the other.
    #[inline]
    pub fn touch_restarts(&self) -> u64 {
        let byte = |at: usize| self.payload.get(at).copied().map_or(0, u64::from);
        match &self.near {
            Some(near) => near.iter().fold(0, |all, at| all ^ byte(usize::from(*at))),
            None => self.touch_far_restarts(byte),
        }
    }

    fn touch_far_restarts(&self, byte: impl Fn(usize) -> u64) -> u64 {
        if self.restarts() > RESTARTS_TOUCHED_MAX {
            return 0;
        }
        let end = self.entries_end() + self.restarts() * RESTART_BYTES;
        let offsets = self.payload.get(self.entries_end()..end).unwrap_or_default();
        let offsets = offsets.as_chunks::<RESTART_BYTES>().0;
        offsets.iter().fold(0, |all, at| all ^ byte(u32::from_le_bytes(*at) as usize))
    }

    /// Loads the lines that a walk from `start` will read, in parallel for the same reason.
    #[inline]
    pub fn touch_behind(&self, start: usize) -> u64 {
        let line = |index| self.payload.get(start + index * LINE_BYTES).copied();
        (1..=LINES_AHEAD).map_while(line).fold(0, |all, byte| all ^ u64::from(byte))
    }

    /// Returns the number of restart points, from the first on, for which `low` is true.
    fn partition_restarts(
        &self,
        low: impl Fn(usize) -> Result<bool, Damage>,
    ) -> Result<usize, Damage> {
        let mut range = 0..self.restarts();
        while !range.is_empty() {
            let middle = usize::midpoint(range.start, range.end);
            if low(self.restart(middle)?)? {
                range.start = middle + 1;
            } else {
                range.end = middle;
            }
        }
        Ok(range.start)
    }
}

/// Decodes the restart points if there are few. An offset that does not fit becomes one beyond all
/// entries of a block with near restart points.
fn near_restarts(offsets: &[u8]) -> Option<[u16; RESTARTS_NEAR]> {
    let offsets = offsets.as_chunks::<RESTART_BYTES>().0;
    let mut near = [0; RESTARTS_NEAR];
    if offsets.len() > near.len() {
        return None;
    }
    for (place, offset) in near.iter_mut().zip(offsets) {
        *place = u16::try_from(u32::from_le_bytes(*offset)).unwrap_or(u16::MAX);
    }
    Some(near)
}
