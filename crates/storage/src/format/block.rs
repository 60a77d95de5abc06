//! Data blocks: where entries are.
//!
//! ```text
//! entry ... | restart offset: u32 ... | usual: key bytes: u16, value bytes << 3 + kind: u32
//!     | sequence base: u64 | restarts: u32 | seal
//! entry = head | suffix | value
//! ```
//!
//! Everything in front of the seal may be [compressed](super::compress).
//!
//! The [head](super::entry_head) of an entry says how long the rest is. A key is the first `shared`
//! bytes of the key before it and the suffix; what is shared is the longest possible, except at a
//! restart point, where it is nothing. The sequence delta is zigzag against the base, the number of
//! the first entry.

use super::block_builder::RESTART_ENTRIES;
use super::codec::{Damage, Reader, common_prefix_bytes, key_prefix, unzigzag};
use super::compress::expand;
use super::entry_head::{Head, KIND_BITS, Usual};
use super::seal::{Place, TAG_PLAIN, plain, unseal_tagged};
use bytes::{Bytes, BytesMut};
use lsmith_tree::{EntryKind, SeqNo};
use std::cmp::Ordering;
use std::hint::black_box;
use std::ops::Range;

/// What is usual, the sequence base and the number of restart points.
const TAIL_BYTES: usize = 18;
const RESTART_BYTES: usize = 4;

/// Bytes of a line of the processor's caches.
const LINE_BYTES: usize = 64;

/// Lines behind a restart point that are loaded side by side: about as many as a processor can wait
/// for at once, and half of what lies between two restart points of usual entries.
const LINES_AHEAD: usize = 12;

/// Bytes of a key that are copied at once.
const SUFFIX_SHORT: usize = 16;

/// Restart points that are kept beside the payload, at most.
const RESTARTS_NEAR: usize = 4;

/// A data block that passed its checksum. Cheap to clone: the bytes are shared.
#[derive(Clone, Debug)]
pub struct Block {
    payload: Bytes,
    seq_base: u64,
    usual: Usual,
    /// Payloads are shorter than 4 GiB.
    entries_end: u32,
    restarts: u32,
    /// The restart points, if they are few and near: else they are in the payload only, far from
    /// everything else that a search looks at.
    near: Option<[u16; RESTARTS_NEAR]>,
    /// Whether the bytes are those of a mapped file, see [`lent`](Block::lent).
    is_lent: bool,
}

/// An entry of a block, decoded but for its key: offsets are into the block's payload. Searches
/// make many of these, so they are small.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    start: u32,
    shared: u32,
    suffix_start: u32,
    value_start: u32,
    end: u32,
    /// What it says.
    pub kind: EntryKind,
    /// When it was written.
    pub seq: SeqNo,
}

impl Slot {
    /// Where the entry starts.
    pub fn start(&self) -> usize {
        self.start as usize
    }

    /// Bytes that the key shares with the start of the key before it.
    pub fn shared(&self) -> usize {
        self.shared as usize
    }

    /// Where the next entry starts.
    pub fn end(&self) -> usize {
        self.end as usize
    }

    fn suffix(&self) -> Range<usize> {
        self.suffix_start as usize..self.value_start as usize
    }

    fn value(&self) -> Range<usize> {
        self.value_start as usize..self.end as usize
    }
}

/// Entries that were met on the way to one, so that a walk back meets them again without decoding
/// anything.
#[derive(Debug, Default)]
pub struct Trail {
    slots: Vec<(Slot, usize)>,
    /// Their keys, one behind the other; with each slot is noted where its key starts.
    keys: Vec<u8>,
}

impl Trail {
    /// Forgets all.
    #[inline]
    pub fn clear(&mut self) {
        self.slots.clear();
        self.keys.clear();
    }

    fn push(&mut self, slot: Slot, key: &[u8]) {
        self.slots.push((slot, self.keys.len()));
        self.keys.extend_from_slice(key);
    }

    /// The last entry, which is forgotten, and its key in `key`.
    pub fn pop(&mut self, key: &mut Vec<u8>) -> Option<Slot> {
        let (slot, key_start) = self.slots.pop()?;
        key.clear();
        key.extend_from_slice(self.keys.get(key_start..).unwrap_or_default());
        self.keys.truncate(key_start);
        Some(slot)
    }
}

/// What a block knows about a key.
#[derive(Debug)]
pub enum Search {
    /// The newest version that the snapshot sees.
    Found(Slot),
    /// The snapshot sees no version of the key, here or in a later block.
    Absent,
    /// The block ends before that is known.
    Beyond,
}

impl Block {
    /// The block stored as `sealed` at `place`.
    pub fn open(sealed: Bytes, place: Place) -> Result<Block, Damage> {
        let (tag, stored) = unseal_tagged(&sealed, place)?;
        match (tag, stored.len()) {
            (TAG_PLAIN, bytes) => Block::parse(sealed.slice(..bytes)),
            _ => Block::parse(expand(tag, stored)?),
        }
    }

    /// The block stored at `place` of a mapped `file`, which passed its checksum before: nothing is
    /// copied and not all of it looked at. Its bytes may be used as long as the
    /// version of the tree is held that shows them; values that outlive it are copies.
    pub fn lent(file: &Bytes, place: Range<usize>) -> Result<Block, Damage> {
        let start = place.start;
        let payload = file.get(place).and_then(plain);
        let payload = payload.ok_or(Damage::whole("a block changed after it was read"))?;
        let block = Block::parse(file.slice(start..start + payload.len()))?;
        Ok(Block { is_lent: true, ..block })
    }

    /// The block with this payload.
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
        let near = near_restarts(payload.get(entries_end..tail_start).unwrap_or_default());
        let near = near.filter(|_| u16::try_from(entries_end).is_ok());
        let (entries_end, restarts) = (entries_end as u32, restarts as u32);
        Ok(Block { payload, seq_base, usual, entries_end, restarts, near, is_lent: false })
    }

    /// The block with `base` added to the numbers of its entries.
    pub fn dated(mut self, base: u64) -> Block {
        self.seq_base = self.seq_base.wrapping_add(base);
        self
    }

    /// Bytes that the block keeps in memory, but for a small constant.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }

    /// The memory of the block, with anything in it, where nobody else needs it.
    pub fn into_buffer(self) -> Option<BytesMut> {
        self.payload.try_into_mut().ok()
    }

    /// Where the last entry ends.
    pub fn entries_end(&self) -> usize {
        self.entries_end as usize
    }

    /// How many restart points there are.
    pub fn restarts(&self) -> usize {
        self.restarts as usize
    }

    /// The entry that starts at `start`.
    #[inline(always)]
    pub fn slot(&self, start: usize) -> Result<Slot, Damage> {
        let entries = self.payload.get(..self.entries_end()).unwrap_or_default();
        let (head, at) = Head::read(entries, start, self.usual)?;
        let Head { shared, suffix_bytes, tagged, delta } = head;
        let Some(kind) = EntryKind::from_byte(tagged as u8 & ((1 << KIND_BITS) - 1)) else {
            return Err(Damage { what: "an entry has an unknown kind", at });
        };
        let suffix_start = at as u64;
        let value_start = suffix_start.saturating_add(suffix_bytes);
        let end = value_start.saturating_add(tagged >> KIND_BITS);
        if end > u64::from(self.entries_end) || shared > u64::from(u32::MAX) {
            return Err(Damage { what: "an entry reaches beyond its block", at });
        }
        // Nothing is cut off here: a block has fewer than 4 GiB.
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

    /// The last bytes of the key of `slot`, those that are stored with it.
    #[inline]
    pub fn suffix(&self, slot: &Slot) -> &[u8] {
        self.payload.get(slot.suffix()).unwrap_or_default()
    }

    /// The value of `slot`.
    #[inline]
    pub fn value(&self, slot: &Slot) -> &[u8] {
        self.payload.get(slot.value()).unwrap_or_default()
    }

    /// The value of `slot`, sharing the block's memory unless that is [lent](Block::lent).
    pub fn shared_value(&self, slot: &Slot) -> Bytes {
        match self.is_lent {
            true => Bytes::copy_from_slice(self.value(slot)),
            false => self.payload.slice(slot.value()),
        }
    }

    /// Turns `key`, the key of the entry before `slot`, into the key of `slot`.
    #[inline]
    pub fn step(&self, slot: &Slot, key: &mut Vec<u8>) -> Result<(), Damage> {
        if slot.shared() > key.len() {
            return Err(Damage { what: "a key shares bytes that are not there", at: slot.start() });
        }
        key.truncate(slot.shared());
        // Most suffixes are short: a copy of a length that is always the same takes no call.
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

    /// The entry that ends at `end`, which is not 0, and its key in `key`. Those in front of it,
    /// from a restart point on, are in `trail`.
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
            // Each holds its whole key, which may have taken no bytes of the block.
            if trail.slots.len() >= RESTART_ENTRIES {
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

    /// The first entry whose key is `target` or above, and whether it is `target`.
    ///
    /// No key is put together on the way. While all keys so far are below the target it is enough
    /// to know how many bytes of the target the last of them starts with: a key that shares more
    /// than these with the last one is below the target for the same reason, a key that shares
    /// fewer is above it, and only a key that shares exactly these must be compared from there.
    /// It follows that the bytes that the found entry shares are bytes of the target.
    pub fn lower_bound(&self, target: &[u8]) -> Result<Option<(Slot, bool)>, Damage> {
        black_box(self.touch_restarts());
        let start = self.restart_below(target)?;
        black_box(self.touch_behind(start));
        self.lower_bound_from(start, target)
    }

    /// The same, where [`restart_below`](Block::restart_below) has found `start`.
    pub fn lower_bound_from(
        &self,
        start: usize,
        target: &[u8],
    ) -> Result<Option<(Slot, bool)>, Damage> {
        let (mut at, mut matched) = (start, 0);
        loop {
            let Slot { shared, suffix_start, value_start, end, .. } = self.slot(at)?;
            let (shared, end) = (shared as usize, end as usize);
            let ordering = if shared > matched {
                Ordering::Less
            } else if shared == matched || shared == 0 {
                let suffix = suffix_start as usize..value_start as usize;
                let suffix = self.payload.get(suffix).unwrap_or_default();
                let rest = target.get(shared..).unwrap_or_default();
                let common = common_prefix_bytes(suffix, rest);
                matched = shared + common;
                suffix.get(common).cmp(&rest.get(common))
            } else {
                Ordering::Greater
            };
            if ordering != Ordering::Less {
                return Ok(Some((self.slot(at)?, ordering == Ordering::Equal)));
            }
            if end >= self.entries_end() {
                return Ok(None);
            }
            at = end;
        }
    }

    /// The newest version of `key` that is not newer than `snapshot`.
    pub fn find(&self, key: &[u8], snapshot: SeqNo) -> Result<Search, Damage> {
        let mut slot = match self.lower_bound(key)? {
            None => return Ok(Search::Beyond),
            Some((_, false)) => return Ok(Search::Absent),
            Some((slot, true)) => slot,
        };
        while slot.seq > snapshot {
            if slot.end() >= self.entries_end() {
                return Ok(Search::Beyond);
            }
            slot = self.slot(slot.end())?;
            let suffix = self.suffix(&slot);
            let same = match slot.shared() {
                0 => suffix == key,
                shared => shared == key.len() && suffix.is_empty(),
            };
            if !same {
                return Ok(Search::Absent);
            }
        }
        Ok(Search::Found(slot))
    }

    /// Where restart point `index` is.
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

    /// The last restart point whose key is below `target`, or the first of all. Not the last with
    /// the target itself: versions of it may lie in front of that one.
    pub fn restart_below(&self, target: &[u8]) -> Result<usize, Damage> {
        let after = self.partition_restarts(|restart| {
            let slot = self.slot(restart)?;
            if slot.shared() != 0 {
                return Err(Damage { what: "a restart point shares bytes", at: restart });
            }
            let suffix = self.suffix(&slot);
            let prefixes = key_prefix(suffix).cmp(&key_prefix(target));
            Ok(prefixes.then_with(|| suffix.cmp(target)).is_lt())
        })?;
        self.restart(after.saturating_sub(1))
    }

    /// Loads a byte of each near restart point, and gives anything of them. A block that is
    /// searched lies in main memory as a rule: these loads go on side by side, those of the search
    /// one after the other.
    #[inline]
    pub fn touch_restarts(&self) -> u64 {
        let byte = |at: &u16| self.payload.get(usize::from(*at)).copied().map_or(0, u64::from);
        self.near.iter().flatten().fold(0, |all, at| all ^ byte(at))
    }

    /// Loads what a walk from `start` on will meet, for the same reason.
    #[inline]
    pub fn touch_behind(&self, start: usize) -> u64 {
        let line = |index| self.payload.get(start + index * LINE_BYTES).copied();
        (1..=LINES_AHEAD).map_while(line).fold(0, |all, byte| all ^ u64::from(byte))
    }

    /// How many restart points, from the first on, are `low`.
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

/// The restart points whose offsets these are, if they are few. What does not fit is made an
/// offset beyond all entries of a block with near ones.
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
