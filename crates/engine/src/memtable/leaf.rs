//! A node with entries: up to 208 neighbouring keys, and all that was written of them.
//!
//! Keys and values lie one behind the other in a buffer of the leaf's own, in the order of
//! arrival. What is overwritten leaves a hole, which the next value takes if it fits; holes that
//! come to half of the buffer are squeezed out.

use super::KeepFrom;
use super::chain::{Chain, Place, Stored};
use super::numbers::{KEYS_MAX, Numbers};
use crate::cursor::EntryRef;
use bytes::Bytes;
use lsmith_tree::SeqNo;
use std::ops::Range;

/// Values up to this many bytes lie in the leaf, longer ones in memory of their own: they would
/// only be copied about.
const SHORT_BYTES_MAX: usize = 512;

/// A leaf with a buffer of so many bytes is full, unless it has few keys.
const HEAP_BYTES_FULL: usize = 32 * 1024;

/// Keys that a leaf takes however long they are.
const KEYS_FEW: usize = 8;

/// Bytes that a processor loads at once.
const CACHE_LINE_BYTES: usize = 64;

/// Dead bytes below this are let lie.
const DEAD_BYTES_MIN: usize = 1024;

/// Bytes that a key takes besides itself, roughly: nodes are on average two thirds full.
const KEY_OVERHEAD_BYTES: usize = (size_of::<Slot>() + 12) * 3 / 2;

/// Neighbouring keys with all their versions.
#[derive(Debug, Default)]
pub(super) struct Leaf {
    numbers: Numbers,
    /// Which slot each key has, in key order. A slot's index fits into a byte.
    order: Order,
    /// In the order of arrival.
    slots: Vec<Slot>,
    heap: Heap,
}

#[derive(Debug)]
struct Order([u8; KEYS_MAX]);

impl Default for Order {
    fn default() -> Order {
        Order([0; KEYS_MAX])
    }
}

#[derive(Debug, Default)]
struct Slot {
    key_start: u32,
    key_bytes: u16,
    chain: Chain,
}

/// Keys and values.
#[derive(Debug, Default)]
struct Heap {
    bytes: Vec<u8>,
    /// Bytes that no slot needs.
    dead_bytes: usize,
    long: Vec<Bytes>,
}

/// What a write has changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    /// What a flush without snapshots writes for the key, before and after.
    pub(super) live_before: Option<u64>,
    pub(super) live_now: Option<u64>,
    /// Bytes of memory that the write took, roughly, and that pruning gave back.
    pub(super) taken_bytes: usize,
    pub(super) freed_bytes: usize,
}

/// The value of a version.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Short(&'a [u8]),
    Long(&'a Bytes),
}

impl Value<'_> {
    /// A copy of a short value, another handle of a long one.
    pub(super) fn handle(self) -> Bytes {
        match self {
            Value::Short(bytes) => Bytes::copy_from_slice(bytes),
            Value::Long(bytes) => bytes.clone(),
        }
    }
}

impl Place {
    /// Whether the value lies between the keys.
    fn is_short(self) -> bool {
        self.bytes as usize <= SHORT_BYTES_MAX
    }
}

impl Heap {
    fn key(&self, slot: &Slot) -> &[u8] {
        let start = slot.key_start as usize;
        &self.bytes[start..start + usize::from(slot.key_bytes)]
    }

    fn value(&self, place: Place) -> Value<'_> {
        let (at, bytes) = (place.at as usize, place.bytes as usize);
        if !place.is_short() {
            Value::Long(&self.long[at])
        } else {
            Value::Short(&self.bytes[at..at + bytes])
        }
    }

    fn put(&mut self, bytes: &[u8]) -> u32 {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        u32::try_from(at).expect("a leaf is split long before 4 GiB")
    }

    fn put_value(&mut self, value: &[u8]) -> Place {
        let at = if value.len() > SHORT_BYTES_MAX {
            self.put_long(Bytes::copy_from_slice(value))
        } else {
            self.put(value)
        };
        Place { at, bytes: value.len() as u32 }
    }

    fn put_long(&mut self, value: Bytes) -> u32 {
        self.long.push(value);
        self.long.len() as u32 - 1
    }

    /// The value, put into the first of the `free` places that has room for it; the others are
    /// left as holes.
    fn put_value_into(&mut self, free: &[Place], value: &[u8]) -> Place {
        let mut taken = None;
        for place in free {
            let (at, bytes) = (place.at as usize, place.bytes as usize);
            if !place.is_short() {
                self.long[at] = Bytes::new();
                self.dead_bytes += size_of::<Bytes>();
            } else if taken.is_none() && bytes >= value.len() {
                self.bytes[at..at + value.len()].copy_from_slice(value);
                taken = Some(Place { at: place.at, bytes: value.len() as u32 });
                self.dead_bytes += bytes - value.len();
            } else {
                self.dead_bytes += bytes;
            }
        }
        taken.unwrap_or_else(|| self.put_value(value))
    }

    /// Empties it, and makes room for `bytes`.
    fn clear(&mut self, bytes: usize) {
        self.bytes.clear();
        self.bytes.reserve_exact(bytes);
        self.dead_bytes = 0;
        self.long.clear();
    }

    /// Takes over what belongs to `slot` of `other`.
    fn adopt_slot(&mut self, slot: &mut Slot, other: &mut Heap) {
        let key = slot.key_start as usize..slot.key_start as usize + usize::from(slot.key_bytes);
        match slot.chain.only() {
            // A key that was written once has its value behind it.
            Some(place) if place.at as usize == key.end && place.is_short() => {
                let all = key.start..key.end + place.bytes as usize;
                slot.key_start = self.put(&other.bytes[all]);
                let at = slot.key_start + u32::from(slot.key_bytes);
                slot.chain.place_newest(Place { at, ..place });
            }
            _ => {
                slot.key_start = self.put(&other.bytes[key]);
                slot.chain.move_values(|place| self.adopt(place, other));
            }
        }
    }

    /// Takes over the value at `place` of `other`.
    fn adopt(&mut self, place: Place, other: &mut Heap) -> Place {
        let at = match other.value(place) {
            Value::Short(bytes) => self.put(bytes),
            Value::Long(_) => self.put_long(std::mem::take(&mut other.long[place.at as usize])),
        };
        Place { at, ..place }
    }
}

impl Leaf {
    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether it takes no more keys.
    pub(super) fn is_full(&self) -> bool {
        let heavy = self.heap.bytes.len() >= HEAP_BYTES_FULL;
        self.len() == KEYS_MAX || (heavy && self.len() >= KEYS_FEW)
    }

    fn slot(&self, position: usize) -> &Slot {
        &self.slots[usize::from(self.order.0[position])]
    }

    /// The key at `position` in key order.
    pub(super) fn key(&self, position: usize) -> &[u8] {
        self.heap.key(self.slot(position))
    }

    /// The versions of the key at `position`, newest first.
    pub(super) fn versions(&self, position: usize) -> impl Iterator<Item = (&Stored, Value<'_>)> {
        let versions = self.slot(position).chain.versions();
        versions.map(|version| (version, self.heap.value(version.place)))
    }

    /// How many keys are below `key`, and whether the following one is it.
    #[inline]
    pub(super) fn find(&self, key: &[u8]) -> (usize, bool) {
        self.numbers.touch();
        let ties = self.numbers.ties(key);
        let order = &self.order.0[ties.clone()];
        let own = |slot: &u8| self.heap.key(&self.slots[usize::from(*slot)]);
        match order.binary_search_by(|slot| own(slot).cmp(key)) {
            Ok(at) => (ties.start + at, true),
            Err(at) => (ties.start + at, false),
        }
    }

    /// The newest version of `key` that `snapshot` sees.
    #[inline]
    pub(super) fn get(&self, key: &[u8], snapshot: SeqNo) -> Option<(&Stored, Value<'_>)> {
        let (position, found) = self.find(key);
        if !found {
            return None;
        }
        let version = self.slot(position).chain.at(snapshot)?;
        Some((version, self.heap.value(version.place)))
    }

    /// Adds a write; `None`, and nothing is changed, where it has a new key and the leaf is full.
    pub(super) fn insert(&mut self, entry: &EntryRef<'_>, keep: KeepFrom) -> Option<Change> {
        let (position, found) = self.find(entry.key);
        if found {
            return Some(self.overwrite(position, entry, keep));
        }
        if self.is_full() {
            return None;
        }
        let key_start = self.heap.put(entry.key);
        let place = self.heap.put_value(entry.value);
        let chain = Chain::new(Stored { seq: entry.seq, kind: entry.kind, place });
        let live_now = chain.live_bytes(entry.key.len());
        self.order.0.copy_within(position..self.slots.len(), position + 1);
        self.order.0[position] = self.slots.len() as u8;
        self.slots.push(Slot { key_start, key_bytes: entry.key.len() as u16, chain });
        if !self.numbers.insert(position, entry.key) {
            self.renumber();
        }
        let taken_bytes = KEY_OVERHEAD_BYTES + entry.key.len() + entry.value.len();
        Some(Change { live_before: None, live_now, taken_bytes, freed_bytes: 0 })
    }

    fn overwrite(&mut self, position: usize, entry: &EntryRef<'_>, keep: KeepFrom) -> Change {
        let key_bytes = entry.key.len();
        let chain = &mut self.slots[usize::from(self.order.0[position])].chain;
        let live_before = chain.live_bytes(key_bytes);
        let (seq, kind, place) = (entry.seq, entry.kind, Place::default());
        let mut free = Vec::new();
        chain.push(Stored { seq, kind, place }, keep, &mut free);
        let place = self.heap.put_value_into(&free, entry.value);
        chain.place_newest(place);
        let live_now = chain.live_bytes(key_bytes);
        if self.heap.dead_bytes > DEAD_BYTES_MIN.max(self.heap.bytes.len() / 2) {
            let mut dense = Leaf::default();
            self.gather(0..self.len(), &mut dense);
            *self = dense;
        }
        let freed = free.iter().map(|place| size_of::<Stored>() + place.bytes as usize).sum();
        let taken_bytes = size_of::<Stored>() + entry.value.len();
        Change { live_before, live_now, taken_bytes, freed_bytes: freed }
    }

    /// Moves the keys from `position` on into a new leaf, and those before to the front of a
    /// buffer without holes. That buffer is the one of `spare`, which gets the leaf's old one for
    /// the next split: memory that was just used is still in the processor's caches.
    pub(super) fn split_off(&mut self, position: usize, spare: &mut Leaf) -> Leaf {
        self.touch();
        let mut above = Leaf::default();
        self.gather(position..self.len(), &mut above);
        self.gather(0..position, spare);
        std::mem::swap(self, spare);
        above
    }

    /// Loads a byte of each cache line. A leaf lies in main memory as a rule, and is gone through
    /// in the order of its keys, which is none in memory: so one line would be waited for after the
    /// other. These loads go on side by side.
    fn touch(&self) {
        let heap = self.heap.bytes.iter().step_by(CACHE_LINE_BYTES);
        let slots = self.slots.iter().map(|slot| slot.key_bytes as u8);
        std::hint::black_box(heap.copied().chain(slots).fold(0, |all, byte| all ^ byte));
    }

    /// Takes the keys at these positions out, into `leaf`, which is emptied before, without holes
    /// and with room for as many more of their size as it may come to hold. They are not to be
    /// used here any more.
    fn gather(&mut self, positions: Range<usize>, leaf: &mut Leaf) {
        leaf.slots.clear();
        leaf.slots.reserve_exact(KEYS_MAX);
        let bytes = self.heap.bytes.len();
        let share = bytes * positions.len() / self.len().max(1);
        let full = (bytes * KEYS_MAX / self.len().max(1)).min(HEAP_BYTES_FULL);
        leaf.heap.clear(share.max(full + full / 16));
        for position in positions {
            let slot = &mut self.slots[usize::from(self.order.0[position])];
            let mut slot = std::mem::take(slot);
            leaf.heap.adopt_slot(&mut slot, &mut self.heap);
            leaf.order.0[leaf.slots.len()] = leaf.slots.len() as u8;
            leaf.slots.push(slot);
        }
        leaf.renumber();
    }

    fn renumber(&mut self) {
        let Leaf { numbers, order, slots, heap } = self;
        let order = order.0[..slots.len()].iter();
        numbers.renumber(order.map(|slot| heap.key(&slots[usize::from(*slot)])));
    }
}
