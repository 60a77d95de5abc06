//! The memory of a memtable's keys and values.
//!
//! Bytes lie in words of eight, as numbers that are ordered as the bytes are, and zeros behind the
//! last. Words are atomics because those who use an arena do not exclude each other as a whole: a
//! word belongs to a leaf, and is read and written under the lock of that leaf, which is also what
//! orders the accesses; or it is free, and then only the writer touches it. Words that follow each
//! other may lie in two chunks, so that none is lost at the end of one.

use crate::format::key_prefix;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::unscheduled::AtomicU64;
use lsmith_tree::SeqNo;
use std::cmp::Ordering;

/// Words of a chunk: 32 KiB. Readers wait for the writer who adds one, as for a split.
const CHUNK_WORDS: usize = 4096;

/// Holes of up to so many words are kept apart by their size; larger ones are nobody's.
pub(super) const HOLE_WORDS_MAX: usize = 64;

/// Words can be named by numbers below this: 16 GiB.
pub(super) const WORDS_MAX: usize = 1 << 31;

/// Half of that is for the last batch.
const USED_WORDS_MAX: usize = WORDS_MAX / 2;

/// The end of a list of holes.
const NONE: u32 = u32::MAX;

/// Words in a line of the processor's caches.
pub(super) const LINE_WORDS: usize = 8;

type Chunk = [AtomicU64; CHUNK_WORDS];

/// Words, to be read by all.
#[derive(Debug, Default)]
pub(super) struct Arena {
    chunks: Vec<Box<Chunk>>,
    /// The first write of all.
    pub(super) first: SeqNo,
}

/// Which words are free: a part of an arena that only its writer has.
#[derive(Debug)]
pub(super) struct Free {
    /// The first word that nobody has used yet.
    end: usize,
    /// The first hole of each size; it says in its own first word where the next one is.
    holes: [u32; HOLE_WORDS_MAX + 1],
}

impl Default for Free {
    fn default() -> Free {
        Free { end: 0, holes: [NONE; HOLE_WORDS_MAX + 1] }
    }
}

/// How many words these bytes take.
pub(super) fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

impl Arena {
    /// Adds memory, so that so many words are there behind those that are used. It is write `seq`
    /// that needs them.
    pub(super) fn grow(&mut self, free: &Free, words: usize, seq: SeqNo) {
        if self.chunks.is_empty() {
            self.first = seq;
        }
        while !self.has_room(free, words) {
            let chunk: Box<[AtomicU64]> = (0..CHUNK_WORDS).map(|_| AtomicU64::new(0)).collect();
            self.chunks.push(chunk.try_into().expect("it has as many words as a chunk"));
        }
    }

    /// Whether so many words are there behind those that are used.
    pub(super) fn has_room(&self, free: &Free, words: usize) -> bool {
        free.end + words <= self.chunks.len() * CHUNK_WORDS
    }

    /// The words from `at` to the end of their chunk, or `words` of them if that is less.
    #[inline]
    fn run(&self, at: usize, words: usize) -> &[AtomicU64] {
        let rest = &self.chunks[at / CHUNK_WORDS][at % CHUNK_WORDS..];
        &rest[..words.min(rest.len())]
    }

    /// Shows the words from `at` on, a chunk at a time.
    #[inline]
    fn each_run<'a>(&'a self, at: u32, words: usize, mut see: impl FnMut(&'a [AtomicU64])) {
        let (mut at, mut left) = (at as usize, words);
        while left > 0 {
            let run = self.run(at, left);
            see(run);
            at += run.len();
            left -= run.len();
        }
    }

    /// The word at `at`.
    #[inline]
    pub(super) fn word(&self, at: u32) -> u64 {
        let at = at as usize;
        self.chunks[at / CHUNK_WORDS][at % CHUNK_WORDS].load(Relaxed)
    }

    /// Writes the word at `at`.
    #[inline]
    pub(super) fn set_word(&self, at: u32, word: u64) {
        let at = at as usize;
        self.chunks[at / CHUNK_WORDS][at % CHUNK_WORDS].store(word, Relaxed);
    }

    /// Writes `bytes` at `at`.
    #[inline]
    pub(super) fn set(&self, at: u32, mut bytes: &[u8]) {
        self.each_run(at, words_of(bytes.len()), |run| {
            let (now, later) = bytes.split_at(bytes.len().min(run.len() * 8));
            let (whole, part) = now.as_chunks::<8>();
            for (place, word) in run.iter().zip(whole) {
                place.store(u64::from_be_bytes(*word), Relaxed);
            }
            if let Some(last) = run.get(whole.len()) {
                let without = |last: &[u8; 8]| u64::from_be_bytes(*last) << (64 - 8 * part.len());
                let word = now.last_chunk().map_or_else(|| key_prefix(part), without);
                last.store(word, Relaxed);
            }
            bytes = later;
        });
    }

    /// The so many bytes from `at` on.
    #[inline]
    pub(super) fn bytes(&self, at: u32, bytes: usize) -> Vec<u8> {
        let mut all = vec![0; bytes];
        let (whole, part) = all.as_chunks_mut::<8>();
        let mut places = whole.iter_mut();
        self.each_run(at, bytes / 8, |run| {
            for (word, place) in run.iter().zip(&mut places) {
                *place = word.load(Relaxed).to_be_bytes();
            }
        });
        if !part.is_empty() {
            let last = self.word(at + (bytes / 8) as u32).to_be_bytes();
            part.copy_from_slice(&last[..part.len()]);
        }
        all
    }

    /// Adds so many words from `at` on to `to`.
    #[inline]
    pub(super) fn copy(&self, at: u32, words: usize, to: &mut Vec<[u8; 8]>) {
        self.each_run(at, words, |run| {
            to.extend(run.iter().map(|word| word.load(Relaxed).to_be_bytes()));
        });
    }

    /// How the so many bytes from `at` on are ordered against `other`.
    #[inline]
    pub(super) fn cmp(&self, at: u32, bytes: usize, other: &[u8]) -> Ordering {
        // Zeros behind the last byte: with those of a longer one they come to the same, or to less.
        let shorter = words_of(bytes.min(other.len()));
        for (word, theirs) in (at..).zip(other.chunks(8)).take(shorter) {
            match self.word(word).cmp(&key_prefix(theirs)) {
                Ordering::Equal => {}
                differing => return differing,
            }
        }
        bytes.cmp(&other.len())
    }

    /// The number that the so many bytes from `at` on have without the first `skip` of them.
    #[inline]
    pub(super) fn prefix(&self, at: u32, bytes: usize, skip: usize) -> u64 {
        let (first, shift) = (skip / 8, 8 * (skip % 8));
        let word = |index: usize| match index < words_of(bytes) {
            true => self.word(at + index as u32),
            false => 0,
        };
        match shift {
            0 => word(first),
            _ => word(first) << shift | word(first + 1) >> (64 - shift),
        }
    }

    /// Loads the word at `at`, if there is one: many such loads go on side by side if nobody
    /// looks at what they bring.
    #[inline]
    pub(super) fn touch(&self, at: u32) -> u64 {
        let at = at as usize;
        self.chunks.get(at / CHUNK_WORDS).map_or(0, |chunk| chunk[at % CHUNK_WORDS].load(Relaxed))
    }
}

impl Free {
    /// Bytes in use, or in holes.
    pub(super) fn used_bytes(&self) -> usize {
        8 * self.end
    }

    /// Whether so much is used that the memtable must be sealed, however much the policy allows:
    /// there is still room for any batch.
    pub(super) fn is_short(&self) -> bool {
        self.end > USED_WORDS_MAX
    }

    /// So many words that were never used, for which the arena [has room](Arena::has_room).
    pub(super) fn take_new(&mut self, words: usize) -> u32 {
        let at = self.end;
        self.end += words;
        assert!(self.end <= WORDS_MAX, "a memtable is sealed before");
        at as u32
    }

    /// So many words, where a hole of this size is there, and otherwise new ones.
    pub(super) fn take(&mut self, arena: &Arena, words: usize) -> u32 {
        match self.holes.get_mut(words) {
            Some(hole) if *hole != NONE => {
                let at = *hole;
                *hole = arena.word(at) as u32;
                at
            }
            _ => self.take_new(words),
        }
    }

    /// Gives words back that nobody reads any more.
    pub(super) fn give(&mut self, arena: &Arena, at: u32, words: usize) {
        if words > 0
            && let Some(hole) = self.holes.get_mut(words)
        {
            arena.set_word(at, u64::from(*hole));
            *hole = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Many the beginning of others, some with zeros at the end.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        vec(prop_oneof![Just(0), Just(1), Just(255)], 0..40)
    }

    fn arena(words: usize) -> (Arena, Free) {
        let (mut arena, free) = (Arena::default(), Free::default());
        arena.grow(&free, words, SeqNo(1));
        (arena, free)
    }

    proptest! {
        /// Also where one chunk ends and the next begins.
        #[test]
        fn bytes_are_what_was_written(left in bytes(), right in bytes(), skip in 0..40_usize) {
            let (arena, mut free) = arena(CHUNK_WORDS + 100);
            free.take_new(CHUNK_WORDS - 3);
            let at = free.take_new(words_of(left.len()));
            arena.set(at, &left);
            arena.set(free.take_new(words_of(right.len())), &right);
            prop_assert_eq!(&arena.bytes(at, left.len()), &left);
            let mut words = vec![[7; 8]];
            arena.copy(at, words_of(left.len()), &mut words);
            prop_assert_eq!(&words.as_flattened()[8..8 + left.len()], &left);
            prop_assert_eq!(arena.cmp(at, left.len(), &right), left.cmp(&right));
            let skip = skip.min(left.len());
            prop_assert_eq!(arena.prefix(at, left.len(), skip), key_prefix(&left[skip..]));
        }
    }

    #[test]
    fn bytes_may_take_several_chunks() {
        let long: Vec<u8> = (0..100_000_u32).map(|byte| byte as u8).collect();
        let (arena, mut free) = arena(1 + words_of(long.len()));
        free.take_new(1);
        let at = free.take_new(words_of(long.len()));
        arena.set(at, &long);
        assert_eq!(arena.bytes(at, long.len()), long);
        assert!(arena.cmp(at, long.len(), &long).is_eq());
        assert!(arena.cmp(at, long.len() - 1, &long).is_lt());
    }

    #[test]
    fn a_hole_is_taken_by_what_has_its_size() {
        let (arena, mut free) = arena(100);
        let [first, second] = [free.take(&arena, 3), free.take(&arena, 3)];
        free.give(&arena, first, 3);
        free.give(&arena, second, 3);
        let end = free.used_bytes();
        assert_eq!([3, 3].map(|words| free.take(&arena, words)), [second, first]);
        assert_eq!(free.used_bytes(), end);
        assert_eq!(free.take(&arena, 3), second + 3);
    }

    #[test]
    fn nothing_needs_no_hole() {
        let (arena, mut free) = arena(100);
        free.give(&arena, 0, 0);
        assert_eq!((free.take(&arena, 0), free.take(&arena, 1)), (0, 0));
    }

    #[test]
    fn a_memtable_of_eight_gigabytes_is_full() {
        let mut free = Free::default();
        free.take_new(USED_WORDS_MAX);
        assert!(!free.is_short());
        free.take_new(1);
        assert!(free.is_short());
    }
}
