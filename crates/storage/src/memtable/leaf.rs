//! A node with entries: up to 208 neighbouring keys, and the places of their versions in the
//! memtable's arena.
//!
//! A key that was written once is an [`ArenaEntry`]. It gets a chain when it is written again, or
//! if its value is long. A key stays at its place as long as the memtable lives, and a value until
//! no reader can read it. So a split moves only numbers.

use super::arena::{Arena, LINE_WORDS, WORDS_MAX};
use super::arena_entry::{ArenaEntry, ArenaHead, Memory};
use super::chain::{Chain, Stored, ValuePlace};
use super::numbers::{KEYS_MAX, Numbers};
use super::{FoundVersion, KeepFrom};
use crate::combine::Stack;
use crate::cursor::EntryRef;
use lsmith_tree::{SeqNo, logical_bytes};
use std::ops::Range;

/// A leaf with this many bytes of keys is full, unless it has few keys.
const KEY_BYTES_FULL: usize = 32 * 1024;

/// The number of keys that a leaf takes, however long they are.
const KEYS_FEW: usize = 8;

/// Set in the place of a key with a chain; the other bits are the index of the chain.
const CHAINED: u32 = WORDS_MAX as u32;

/// The most words of an entry that are loaded ahead. Of longer ones the processor prefetches the
/// rest.
const TOUCHED_WORDS_MAX: usize = 32;

/// Bytes that a key takes outside the arena, roughly: nodes are on average two thirds full.
const KEY_BESIDE_BYTES: usize = (size_of::<u64>() + size_of::<u32>()) * 3 / 2;

/// Neighbouring keys with all their versions.
#[derive(Debug)]
pub(super) struct Leaf {
    numbers: Numbers,
    /// For each key its arena entry, or the index of its chain.
    places: [u32; KEYS_MAX],
    chains: Vec<Chained>,
    /// The bytes of all keys together, roughly.
    key_bytes: usize,
}

impl Default for Leaf {
    fn default() -> Leaf {
        Leaf {
            numbers: Numbers::default(),
            places: [0; KEYS_MAX],
            chains: Vec::new(),
            key_bytes: 0,
        }
    }
}

/// A key with several versions, or with a long value.
#[derive(Debug, Default)]
struct Chained {
    /// The place of the key.
    arena_entry: ArenaEntry,
    chain: Chain,
}

/// The versions of a key.
pub(super) enum KeyVersions<'a> {
    /// One version.
    Once(ArenaEntry, ArenaHead),
    /// These versions; the arena entry has the key.
    Chained(ArenaEntry, &'a Chain),
}

/// The effect of a write on the counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WriteEffect {
    /// Logical bytes that a flush without snapshots writes for the key, before and after.
    pub(super) live_before: Option<u64>,
    pub(super) live_now: Option<u64>,
    /// Bytes outside the arena that the write took and that pruning freed, roughly.
    pub(super) taken_bytes: usize,
    pub(super) freed_bytes: usize,
}

impl Leaf {
    /// Returns the number of keys.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    fn is_heavy(&self) -> bool {
        self.key_bytes >= KEY_BYTES_FULL
    }

    /// Returns true if the leaf takes no more keys.
    pub(super) fn is_full(&self) -> bool {
        self.len() == KEYS_MAX || (self.is_heavy() && self.len() >= KEYS_FEW)
    }

    fn chained(&self, place: u32) -> Option<&Chained> {
        (place & CHAINED != 0).then(|| &self.chains[(place & !CHAINED) as usize])
    }

    fn arena_entry(&self, place: u32) -> ArenaEntry {
        self.chained(place).map_or(ArenaEntry(place), |chained| chained.arena_entry)
    }

    /// Returns the key at `position` in key order.
    pub(super) fn key(&self, position: usize, arena: &Arena) -> Vec<u8> {
        let arena_entry = self.arena_entry(self.places[position]);
        arena.bytes(arena_entry.key_at(), arena_entry.key_bytes(arena))
    }

    /// Returns the versions of the key at `position`.
    #[inline]
    pub(super) fn versions(&self, position: usize, arena: &Arena) -> KeyVersions<'_> {
        let place = self.places[position];
        match self.chained(place) {
            None => KeyVersions::Once(ArenaEntry(place), ArenaEntry(place).head(arena)),
            Some(Chained { arena_entry, chain }) => KeyVersions::Chained(*arena_entry, chain),
        }
    }

    /// Returns the number of keys below `key`, and whether the next key equals `key`.
    #[inline]
    pub(super) fn find(&self, key: &[u8], arena: &Arena) -> (usize, bool) {
        self.numbers.touch();
        let ties = self.numbers.ties(key);
        let against = |place: &u32| {
            let arena_entry = self.arena_entry(*place);
            arena.cmp(arena_entry.key_at(), arena_entry.key_bytes(arena), key)
        };
        match self.places[ties.clone()].binary_search_by(against) {
            Ok(at) => (ties.start + at, true),
            Err(at) => (ties.start + at, false),
        }
    }

    /// Returns the newest version of `key` that `snapshot` sees.
    #[inline]
    pub(super) fn get(&self, key: &[u8], snapshot: SeqNo, arena: &Arena) -> Option<FoundVersion> {
        let (position, found) = self.find(key, arena);
        if !found {
            return None;
        }
        let version = |Stored { seq, kind, place, .. }: &Stored| {
            let seq = *seq;
            let kind = *kind;
            let value = place.value(arena);
            (seq <= snapshot).then_some(FoundVersion { seq, kind, value })
        };
        let place = self.places[position];
        match self.chained(place) {
            None => version(&ArenaEntry(place).version(arena)),
            Some(Chained { chain, .. }) => version(chain.at(snapshot)?),
        }
    }

    /// Adds the versions of `key` that `snapshot` sees to `stack`, down to one that makes it whole.
    pub(super) fn push_on(&self, stack: &mut Stack, key: &[u8], snapshot: SeqNo, arena: &Arena) {
        let (position, found) = self.find(key, arena);
        if !found {
            return;
        }
        match self.versions(position, arena) {
            KeyVersions::Once(arena_entry, _) => {
                let Stored { seq, kind, place, .. } = arena_entry.version(arena);
                if seq <= snapshot {
                    stack.push(seq, kind, place.value(arena));
                }
            }
            KeyVersions::Chained(_, chain) => {
                for version in chain.stack_at(snapshot) {
                    let Stored { seq, kind, ref place, .. } = *version;
                    if stack.push(seq, kind, place.value(arena)) {
                        break;
                    }
                }
            }
        }
    }

    /// Adds a write. Returns `None`, and changes nothing, if its key is new and the leaf is full.
    pub(super) fn insert(
        &mut self,
        entry: &EntryRef<'_>,
        keep: KeepFrom,
        memory: &mut Memory<'_>,
    ) -> Option<WriteEffect> {
        let (position, found) = self.find(entry.key, memory.arena);
        if found {
            return Some(self.overwrite(position, entry, keep, memory));
        }
        if self.is_full() {
            return None;
        }
        let (place, beside_bytes) = self.add_first(entry, memory);
        let len = self.len();
        self.places.copy_within(position..len, position + 1);
        self.places[position] = place;
        self.key_bytes += entry.key.len();
        if !self.numbers.insert(position, entry.key) {
            self.renumber(len + 1, memory.arena);
        }
        let live_now = Some(logical_bytes(entry.key.len(), entry.value.len()));
        let taken_bytes = KEY_BESIDE_BYTES + beside_bytes;
        Some(WriteEffect { live_before: None, live_now, taken_bytes, freed_bytes: 0 })
    }

    /// Writes a new key. Returns its place in `places`, and the bytes taken outside the arena.
    fn add_first(&mut self, entry: &EntryRef<'_>, memory: &mut Memory<'_>) -> (u32, usize) {
        let arena_entry = ArenaEntry::new(entry, memory);
        if ArenaEntry::holds(entry, memory.arena) {
            return (arena_entry.0, 0);
        }
        let mut version = arena_entry.version(memory.arena);
        version.seq = entry.seq;
        if version.place.bytes() < entry.value.len() {
            version.place = ValuePlace::new(entry.value, memory);
        }
        let beside_bytes = size_of::<Chained>() + version.place.bytes_beside();
        (self.add_chain(arena_entry, version), beside_bytes)
    }

    /// Adds a chain and returns its place in `places`.
    fn add_chain(&mut self, arena_entry: ArenaEntry, first: Stored) -> u32 {
        self.chains.push(Chained { arena_entry, chain: Chain::new(first) });
        CHAINED | (self.chains.len() - 1) as u32
    }

    fn overwrite(
        &mut self,
        position: usize,
        entry: &EntryRef<'_>,
        keep: KeepFrom,
        memory: &mut Memory<'_>,
    ) -> WriteEffect {
        let mut taken_bytes = size_of::<Stored>();
        let mut freed_bytes = 0;
        let place = self.places[position];
        if place & CHAINED == 0 {
            let version = ArenaEntry(place).version(memory.arena);
            self.places[position] = self.add_chain(ArenaEntry(place), version);
            taken_bytes += size_of::<Chained>();
        }
        let chain = &mut self.chains[(self.places[position] & !CHAINED) as usize].chain;
        let live_before = chain.live_bytes(entry.key.len());
        let version = Stored::new(entry.seq, entry.kind, ValuePlace::default());
        chain.push(version, keep, &mut |place| {
            freed_bytes += size_of::<Stored>() + place.bytes_beside();
            place.release(memory);
        });
        let value_place = ValuePlace::new(entry.value, memory);
        taken_bytes += value_place.bytes_beside();
        chain.set_newest_place(value_place);
        let live_now = chain.live_bytes(entry.key.len());
        WriteEffect { live_before, live_now, taken_bytes, freed_bytes }
    }

    /// Moves the keys from `position` on into `above`, which must be empty.
    pub(super) fn split_off(&mut self, position: usize, above: &mut Leaf, arena: &Arena) {
        let places = &self.places[position..self.len()];
        above.places[..places.len()].copy_from_slice(places);
        let each_bytes = self.key_bytes / self.len();
        let was_heavy = self.is_heavy();
        self.numbers.split_off(position, &mut above.numbers);
        let mut chains = std::mem::take(&mut self.chains);
        for half in [self, above] {
            half.adopt(&mut chains);
            half.key_bytes = each_bytes * half.len();
            if was_heavy {
                let places = half.places[..half.len()].iter();
                half.key_bytes =
                    places.map(|place| half.arena_entry(*place).key_bytes(arena)).sum();
            }
            if half.numbers.are_coarse() {
                half.touch_words(0..half.len(), 0, arena);
                half.renumber(half.len(), arena);
            }
        }
    }

    /// Takes over the chains of this leaf's keys from `others`.
    fn adopt(&mut self, others: &mut [Chained]) {
        let len = self.len();
        for place in self.places[..len].iter_mut().filter(|place| **place & CHAINED != 0) {
            self.chains.push(std::mem::take(&mut others[(*place & !CHAINED) as usize]));
            *place = CHAINED | (self.chains.len() - 1) as u32;
        }
    }

    /// Loads the cache lines of the entries at these positions, for each as many as the first one
    /// has.
    pub(super) fn touch(&self, positions: Range<usize>, arena: &Arena) {
        let Some(first) = self.places[positions.clone()].first() else { return };
        let words = self.arena_entry(*first).head(arena).words().min(TOUCHED_WORDS_MAX);
        self.touch_words(positions, words, arena);
    }

    /// Loads the cache lines of the first word and the `words` words behind it, for each entry at
    /// these positions. The entries are scattered in main memory. These loads run in parallel;
    /// later reads would wait for one entry after the other.
    fn touch_words(&self, positions: Range<usize>, words: usize, arena: &Arena) {
        let lines = words.div_ceil(LINE_WORDS);
        let word = |line: usize| (line * LINE_WORDS).min(words) as u32;
        let all = |place: &u32| {
            let arena_entry = self.arena_entry(*place);
            (0..=lines).fold(0, |all, line| all ^ arena.touch(arena_entry.0 + word(line)))
        };
        let places = self.places[positions].iter();
        std::hint::black_box(places.fold(0, |sum, place| sum ^ all(place)));
    }

    /// Numbers the first `len` keys again.
    fn renumber(&mut self, len: usize, arena: &Arena) {
        let first = self.key(0, arena);
        let last = self.key(len - 1, arena);
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.renumber((&first, &last), |skip| {
            let arena_entries = self.places[..len].iter().map(|place| self.arena_entry(*place));
            arena_entries.map(move |arena_entry| {
                arena.prefix(arena_entry.key_at(), arena_entry.key_bytes(arena), skip)
            })
        });
        self.numbers = numbers;
    }
}
