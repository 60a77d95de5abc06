//! The memory for the keys and values of a memtable.
//!
//! Bytes are stored in words of eight. A word is a number with the same order as its bytes, padded
//! with zeros. Words are atomics, because there is no lock for the whole arena. A word in use
//! belongs to a leaf, and is accessed under the lock of that leaf, which also orders the accesses.
//! A free word is accessed only by the writer. Consecutive words may lie in two chunks, so that no
//! word is lost at the end of a chunk.

use super::chunk::{CHUNK_WORDS, Chunks, OwnChunks};
use crate::format::key_prefix;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::unscheduled::AtomicU64;
use lsmith_tree::SeqNo;
use std::cmp::Ordering;
use std::sync::Arc;

/// Freed holes of up to this many words are reused, by size; larger ones are not.
pub(super) const HOLE_WORDS_MAX: usize = 64;

/// Word offsets are below this number: 16 GiB.
pub(super) const WORDS_MAX: usize = 1 << 31;

/// Half of the offsets are reserved for the last batch.
const USED_WORDS_MAX: usize = WORDS_MAX / 2;

/// The end of a list of holes.
const NONE: u32 = u32::MAX;

/// Words in a cache line.
pub(super) const LINE_WORDS: usize = 8;

/// Words that all threads may read.
#[derive(Debug, Default)]
pub(super) struct Arena {
    chunks: OwnChunks,
    /// The sequence number of the first write.
    pub(super) first: SeqNo,
}

/// The free words of an arena, which only its writer accesses.
#[derive(Debug)]
pub(super) struct FreeWords {
    /// The first word that was never used.
    end: usize,
    /// The first hole of each size. Its first word has the offset of the next hole.
    holes: [u32; HOLE_WORDS_MAX + 1],
}

impl Default for FreeWords {
    fn default() -> FreeWords {
        FreeWords { end: 0, holes: [NONE; HOLE_WORDS_MAX + 1] }
    }
}

/// Returns the number of words that `bytes` bytes take.
pub(super) fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(8)
}

impl Arena {
    /// Returns an arena that takes its memory from `chunks`.
    pub(super) fn new(chunks: &Arc<Chunks>) -> Arena {
        Arena { chunks: OwnChunks::new(chunks), first: SeqNo::default() }
    }

    /// Adds words until there is room for `words` more. Write `seq` needs them.
    pub(super) fn grow(&mut self, free: &FreeWords, words: usize, seq: SeqNo) {
        if self.chunks.ready == 0 {
            self.first = seq;
        }
        while !self.has_room(free, words) {
            self.chunks.grow();
        }
    }

    /// Notes the bytes that the memtable has in memory beside the arena.
    pub(super) fn note_beside(&self, bytes: usize) {
        self.chunks.note_beside(bytes as u64);
    }

    /// Returns the bytes of memory that the arena takes.
    pub(super) fn held_bytes(&self) -> usize {
        8 * self.chunks.ready
    }

    /// Returns true if there is room for `words` more words.
    pub(super) fn has_room(&self, free: &FreeWords, words: usize) -> bool {
        free.end + words <= self.chunks.ready
    }

    /// Returns the words from `at` to the end of their chunk, but at most `words`.
    #[inline]
    fn run(&self, at: usize, words: usize) -> &[AtomicU64] {
        let rest = &self.chunks.chunk(at / CHUNK_WORDS).words()[at % CHUNK_WORDS..];
        &rest[..words.min(rest.len())]
    }

    /// Calls `see` with the `words` words from `at` on, one chunk at a time.
    #[inline]
    fn each_run<'a>(&'a self, at: u32, words: usize, mut see: impl FnMut(&'a [AtomicU64])) {
        let mut at = at as usize;
        let mut left = words;
        while left > 0 {
            let run = self.run(at, left);
            see(run);
            at += run.len();
            left -= run.len();
        }
    }

    /// Returns the word at `at`.
    #[inline]
    pub(super) fn word(&self, at: u32) -> u64 {
        let at = at as usize;
        self.chunks.chunk(at / CHUNK_WORDS).words()[at % CHUNK_WORDS].load(Relaxed)
    }

    /// Writes the word at `at`.
    #[inline]
    pub(super) fn set_word(&self, at: u32, word: u64) {
        let at = at as usize;
        self.chunks.chunk(at / CHUNK_WORDS).words()[at % CHUNK_WORDS].store(word, Relaxed);
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

    /// Returns the `bytes` bytes from `at` on.
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

    /// Appends the `words` words from `at` on to `to`.
    #[inline]
    pub(super) fn copy(&self, at: u32, words: usize, to: &mut Vec<[u8; 8]>) {
        self.each_run(at, words, |run| {
            to.extend(run.iter().map(|word| word.load(Relaxed).to_be_bytes()));
        });
    }

    /// Compares the `bytes` bytes from `at` on with `other`.
    #[inline]
    pub(super) fn cmp(&self, at: u32, bytes: usize, other: &[u8]) -> Ordering {
        // Padding with zeros makes a shorter string equal to a longer one or less, never greater.
        let shorter = words_of(bytes.min(other.len()));
        for (word, theirs) in (at..).zip(other.chunks(8)).take(shorter) {
            match self.word(word).cmp(&key_prefix(theirs)) {
                Ordering::Equal => {}
                differing => return differing,
            }
        }
        bytes.cmp(&other.len())
    }

    /// Returns the key prefix of the `bytes` bytes from `at` on, without the first `skip` of them.
    #[inline]
    pub(super) fn prefix(&self, at: u32, bytes: usize, skip: usize) -> u64 {
        let first = skip / 8;
        let shift = 8 * (skip % 8);
        let is_used = |index: usize| index < words_of(bytes);
        let word = |index: usize| if is_used(index) { self.word(at + index as u32) } else { 0 };
        match shift {
            0 => word(first),
            _ => word(first) << shift | word(first + 1) >> (64 - shift),
        }
    }

    /// Loads the word at `at`, if there is one. Many such loads run in parallel if no code depends
    /// on their results.
    #[inline]
    pub(super) fn touch(&self, at: u32) -> u64 {
        let at = at as usize;
        let chunk = self.chunks.get(at / CHUNK_WORDS);
        chunk.map_or(0, |chunk| chunk.words()[at % CHUNK_WORDS].load(Relaxed))
    }
}

impl FreeWords {
    /// Returns true if the memtable must be sealed for lack of word offsets, whatever the policy
    /// allows. There is still room for any batch.
    pub(super) fn is_short(&self) -> bool {
        self.end > USED_WORDS_MAX
    }

    /// Takes `words` words that were never used. The arena must [have room](Arena::has_room) for
    /// them.
    pub(super) fn take_new(&mut self, words: usize) -> u32 {
        let at = self.end;
        self.end += words;
        assert!(self.end <= WORDS_MAX, "a memtable is sealed before it needs more words");
        at as u32
    }

    /// Takes `words` words: a hole of this size if there is one, otherwise new words.
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

    /// Frees `words` words from `at` on, which no thread reads any more.
    pub(super) fn release(&mut self, arena: &Arena, at: u32, words: usize) {
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

    /// Generates byte strings. Many are prefixes of others, some with zeros at the end.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        vec(prop_oneof![Just(0), Just(1), Just(255)], 0..40)
    }

    fn arena(words: usize) -> (Arena, FreeWords) {
        let mut arena = Arena::default();
        let free = FreeWords::default();
        arena.grow(&free, words, SeqNo(1));
        (arena, free)
    }

    proptest! {
        /// Also across the border of two chunks.
        #[test]
        fn arena_returns_the_bytes_written(left in bytes(), right in bytes(), skip in 0..40_usize) {
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
    fn hole_is_reused_for_its_size() {
        let (arena, mut free) = arena(100);
        let [first, second] = [free.take(&arena, 3), free.take(&arena, 3)];
        free.release(&arena, first, 3);
        free.release(&arena, second, 3);
        let end = free.end;
        assert_eq!([3, 3].map(|words| free.take(&arena, words)), [second, first]);
        assert_eq!(free.end, end);
        assert_eq!(free.take(&arena, 3), second + 3);
    }

    #[test]
    fn empty_value_needs_no_hole() {
        let (arena, mut free) = arena(100);
        free.release(&arena, 0, 0);
        assert_eq!((free.take(&arena, 0), free.take(&arena, 1)), (0, 0));
    }

    #[test]
    fn memtable_of_eight_gigabytes_is_full() {
        let mut free = FreeWords::default();
        free.take_new(USED_WORDS_MAX);
        assert!(!free.is_short());
        free.take_new(1);
        assert!(free.is_short());
    }
}
