//! A node with entries: up to 208 neighbouring keys, and where in the memtable's arena all that was
//! written of them is.
//!
//! A key that was written once is a [`Record`]. It gets a chain when it is written again, or if its
//! value is long. Keys stay where they are as long as the memtable lives, and so do values until
//! nobody can read them: a split moves nothing but numbers.

use super::arena::{Arena, LINE_WORDS, WORDS_MAX};
use super::chain::{Chain, Place, Stored};
use super::numbers::{KEYS_MAX, Numbers};
use super::record::{Head, Memory, Record};
use super::{KeepFrom, Version};
use crate::cursor::EntryRef;
use lsmith_tree::{SeqNo, logical_bytes};
use std::ops::Range;

/// A leaf with so many bytes of keys is full, unless it has few of them.
const KEY_BYTES_FULL: usize = 32 * 1024;

/// Keys that a leaf takes however long they are.
const KEYS_FEW: usize = 8;

/// Set in the place of a key that has a chain: the other bits say which.
const CHAINED: u32 = WORDS_MAX as u32;

/// Words of a record that are loaded ahead: of more the processor sees itself what follows.
const TOUCHED_WORDS_MAX: usize = 32;

/// Bytes that a key takes beside the arena, roughly: nodes are on average two thirds full.
const KEY_BESIDE_BYTES: usize = (size_of::<u64>() + size_of::<u32>()) * 3 / 2;

/// Neighbouring keys with all their versions.
#[derive(Debug)]
pub(super) struct Leaf {
    numbers: Numbers,
    /// For each key its record, or which chain it has.
    places: [u32; KEYS_MAX],
    chains: Vec<Chained>,
    /// Of all keys together, about.
    key_bytes: usize,
}

impl Default for Leaf {
    fn default() -> Leaf {
        let (numbers, chains) = (Numbers::default(), Vec::new());
        Leaf { numbers, places: [0; KEYS_MAX], chains, key_bytes: 0 }
    }
}

/// A key of several versions, or with a long value.
#[derive(Debug, Default)]
struct Chained {
    /// Where the key is.
    record: Record,
    chain: Chain,
}

/// What was written of a key.
pub(super) enum Written<'a> {
    /// One version.
    Once(Record, Head),
    /// These versions of the key that is there.
    Chained(Record, &'a Chain),
}

/// What a write has changed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Change {
    /// What a flush without snapshots writes for the key, before and after.
    pub(super) live_before: Option<u64>,
    pub(super) live_now: Option<u64>,
    /// Bytes of memory beside the arena that the write took, roughly, and that pruning gave back.
    pub(super) taken_bytes: usize,
    pub(super) freed_bytes: usize,
}

impl Leaf {
    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    fn is_heavy(&self) -> bool {
        self.key_bytes >= KEY_BYTES_FULL
    }

    /// Whether it takes no more keys.
    pub(super) fn is_full(&self) -> bool {
        self.len() == KEYS_MAX || (self.is_heavy() && self.len() >= KEYS_FEW)
    }

    fn chained(&self, place: u32) -> Option<&Chained> {
        (place & CHAINED != 0).then(|| &self.chains[(place & !CHAINED) as usize])
    }

    fn record(&self, place: u32) -> Record {
        self.chained(place).map_or(Record(place), |chained| chained.record)
    }

    /// The key at `position` in key order.
    pub(super) fn key(&self, position: usize, arena: &Arena) -> Vec<u8> {
        let record = self.record(self.places[position]);
        arena.bytes(record.key_at(), record.key_bytes(arena))
    }

    /// What was written of the key at `position`.
    pub(super) fn written(&self, position: usize, arena: &Arena) -> Written<'_> {
        let place = self.places[position];
        match self.chained(place) {
            None => Written::Once(Record(place), Record(place).head(arena)),
            Some(Chained { record, chain }) => Written::Chained(*record, chain),
        }
    }

    /// How many keys are below `key`, and whether the following one is it.
    #[inline]
    pub(super) fn find(&self, key: &[u8], arena: &Arena) -> (usize, bool) {
        self.numbers.touch();
        let ties = self.numbers.ties(key);
        let against = |place: &u32| {
            let record = self.record(*place);
            arena.cmp(record.key_at(), record.key_bytes(arena), key)
        };
        match self.places[ties.clone()].binary_search_by(against) {
            Ok(at) => (ties.start + at, true),
            Err(at) => (ties.start + at, false),
        }
    }

    /// The newest version of `key` that `snapshot` sees.
    #[inline]
    pub(super) fn get(&self, key: &[u8], snapshot: SeqNo, arena: &Arena) -> Option<Version> {
        let (position, found) = self.find(key, arena);
        if !found {
            return None;
        }
        let version = |Stored { seq, kind, place }: &Stored| {
            let (seq, kind, value) = (*seq, *kind, place.value(arena));
            (seq <= snapshot).then_some(Version { seq, kind, value })
        };
        let place = self.places[position];
        match self.chained(place) {
            None => version(&Record(place).version(arena)),
            Some(Chained { chain, .. }) => version(chain.at(snapshot)?),
        }
    }

    /// Adds a write; `None`, and nothing is changed, where it has a new key and the leaf is full.
    pub(super) fn insert(
        &mut self,
        entry: &EntryRef<'_>,
        keep: KeepFrom,
        memory: &mut Memory<'_>,
    ) -> Option<Change> {
        let (position, found) = self.find(entry.key, memory.arena);
        if found {
            return Some(self.overwrite(position, entry, keep, memory));
        }
        if self.is_full() {
            return None;
        }
        let (place, beside_bytes) = self.first(entry, memory);
        let len = self.len();
        self.places.copy_within(position..len, position + 1);
        self.places[position] = place;
        self.key_bytes += entry.key.len();
        if !self.numbers.insert(position, entry.key) {
            self.renumber(len + 1, memory.arena);
        }
        let live_now = Some(logical_bytes(entry.key.len(), entry.value.len()));
        let taken_bytes = KEY_BESIDE_BYTES + beside_bytes;
        Some(Change { live_before: None, live_now, taken_bytes, freed_bytes: 0 })
    }

    /// Writes a new key; what stands for it in `places`, and bytes taken beside the arena.
    fn first(&mut self, entry: &EntryRef<'_>, memory: &mut Memory<'_>) -> (u32, usize) {
        let record = Record::new(entry, memory);
        if Record::holds(entry, memory.arena) {
            return (record.0, 0);
        }
        let mut version = record.version(memory.arena);
        version.seq = entry.seq;
        if version.place.bytes() < entry.value.len() {
            version.place = Place::new(entry.value, memory);
        }
        let beside_bytes = size_of::<Chained>() + version.place.bytes_beside();
        (self.add_chain(record, version), beside_bytes)
    }

    /// Makes a chain; what stands for it in `places`.
    fn add_chain(&mut self, record: Record, first: Stored) -> u32 {
        self.chains.push(Chained { record, chain: Chain::new(first) });
        CHAINED | (self.chains.len() - 1) as u32
    }

    fn overwrite(
        &mut self,
        position: usize,
        entry: &EntryRef<'_>,
        keep: KeepFrom,
        memory: &mut Memory<'_>,
    ) -> Change {
        let (mut taken_bytes, mut freed_bytes) = (size_of::<Stored>(), 0);
        let place = self.places[position];
        if place & CHAINED == 0 {
            let version = Record(place).version(memory.arena);
            self.places[position] = self.add_chain(Record(place), version);
            taken_bytes += size_of::<Chained>();
        }
        let chain = &mut self.chains[(self.places[position] & !CHAINED) as usize].chain;
        let live_before = chain.live_bytes(entry.key.len());
        let (seq, kind) = (entry.seq, entry.kind);
        chain.push(Stored { seq, kind, place: Place::default() }, keep, &mut |place| {
            freed_bytes += size_of::<Stored>() + place.bytes_beside();
            place.give_back(memory);
        });
        let place = Place::new(entry.value, memory);
        taken_bytes += place.bytes_beside();
        chain.place_newest(place);
        let live_now = chain.live_bytes(entry.key.len());
        Change { live_before, live_now, taken_bytes, freed_bytes }
    }

    /// Moves the keys from `position` on into `above`, which is empty.
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
                half.key_bytes = places.map(|place| half.record(*place).key_bytes(arena)).sum();
            }
            if half.numbers.are_coarse() {
                half.touch_words(0..half.len(), 0, arena);
                half.renumber(half.len(), arena);
            }
        }
    }

    /// Takes over the chains of its keys from `others`.
    fn adopt(&mut self, others: &mut [Chained]) {
        let len = self.len();
        for place in self.places[..len].iter_mut().filter(|place| **place & CHAINED != 0) {
            self.chains.push(std::mem::take(&mut others[(*place & !CHAINED) as usize]));
            *place = CHAINED | (self.chains.len() - 1) as u32;
        }
    }

    /// Loads the lines of the records at these positions: of all as many as the first one has.
    pub(super) fn touch(&self, positions: Range<usize>, arena: &Arena) {
        let Some(first) = self.places[positions.clone()].first() else { return };
        let words = self.record(*first).head(arena).words().min(TOUCHED_WORDS_MAX);
        self.touch_words(positions, words, arena);
    }

    /// Loads the lines of so many words behind the first of each record at these positions. Records
    /// lie in main memory as a rule, and anywhere there: so one would be waited for after the
    /// other. These loads go on side by side.
    fn touch_words(&self, positions: Range<usize>, words: usize, arena: &Arena) {
        let lines = words.div_ceil(LINE_WORDS);
        let word = |line: usize| (line * LINE_WORDS).min(words) as u32;
        let all = |place: &u32| {
            let record = self.record(*place);
            (0..=lines).fold(0, |all, line| all ^ arena.touch(record.0 + word(line)))
        };
        let places = self.places[positions].iter();
        std::hint::black_box(places.fold(0, |sum, place| sum ^ all(place)));
    }

    /// Numbers the keys, so many.
    fn renumber(&mut self, len: usize, arena: &Arena) {
        let (first, last) = (self.key(0, arena), self.key(len - 1, arena));
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.renumber((&first, &last), |skip| {
            let records = self.places[..len].iter().map(|place| self.record(*place));
            records.map(move |record| arena.prefix(record.key_at(), record.key_bytes(arena), skip))
        });
        self.numbers = numbers;
    }
}
