//! The chunks of arenas, which go back to the system as soon as they are freed.
//!
//! A chunk is a map of its own. What an allocator frees in small pieces, it may keep: the C library
//! of Linux kept a hundred megabytes after a fill. But fresh memory costs a fault for each page,
//! which took 6 % of the CPU time of a fill. So [`Chunks`] keeps what a sealed memtable leaves for
//! the next one, as long as memtables take from it.

use crate::account::Account;
use crate::sync::Mutex;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::unscheduled::AtomicU64;
use crate::system::Memory;
use std::mem::take;
use std::sync::Arc;

/// Words of a chunk: 1 MiB.
pub(super) const CHUNK_WORDS: usize = 128 * 1024;

/// Words that are made ready at a time: 32 KiB. Readers wait meanwhile, as for a split.
const STEP_WORDS: usize = 4096;

/// Words that threads may read and write at any time. Their first values are arbitrary.
#[derive(Debug)]
pub(super) struct Chunk {
    memory: Memory,
    /// The first words, which are ready: the system has given memory for them.
    ready: usize,
}

impl Chunk {
    /// # Panics
    ///
    /// Panics if the system has no memory for a chunk, or the process has too many maps.
    fn new() -> Chunk {
        let memory = Memory::new(size_of::<[AtomicU64; CHUNK_WORDS]>());
        Chunk { memory: memory.expect("the system has memory for a memtable"), ready: 0 }
    }

    /// Returns the words.
    #[allow(unsafe_code, reason = "a view of mapped memory as words")]
    #[inline(always)]
    pub(super) fn words(&self) -> &[AtomicU64; CHUNK_WORDS] {
        // SAFETY: The memory has as many bytes, is readable and writable, is aligned for words, and
        // lives as long as `self`. Nothing else refers to it, and any bytes are words.
        unsafe { &*self.memory.start().cast() }
    }

    /// Returns the bytes that are ready.
    fn bytes(&self) -> u64 {
        8 * self.ready as u64
    }

    /// Makes more words ready. Asks for the memory of all of them at once, which takes less time
    /// than a fault for each page.
    fn make_ready(&mut self) {
        self.memory.make_ready(8 * self.ready, 8 * STEP_WORDS);
        self.ready += STEP_WORDS;
    }
}

/// The chunks of all memtables of a store, and chunks that wait for the next one.
#[derive(Debug, Default)]
pub struct Chunks {
    spare: Mutex<Spare>,
    /// The bytes of all memtables and of spare chunks.
    held: Account,
    /// The most bytes of chunks that wait.
    spare_max: u64,
}

#[derive(Debug, Default)]
struct Spare {
    chunks: Vec<Chunk>,
    /// The bytes of the chunks that are ready.
    bytes: u64,
    /// True if a chunk was taken since the last call of [`Chunks::free_unused`].
    in_use: bool,
}

impl Chunks {
    /// Returns no chunks. Up to `spare_max` bytes of freed ones are kept. All bytes count in
    /// `whole` too.
    pub fn new(spare_max: u64, whole: &Arc<Account>) -> Chunks {
        Chunks { spare: Mutex::default(), held: Account::within(whole), spare_max }
    }

    /// Returns the bytes of memory that all memtables take, and of spare chunks.
    #[inline]
    pub fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// Returns the bytes of chunks that no memtable uses.
    pub fn spare_bytes(&self) -> u64 {
        self.spare.lock().bytes
    }

    /// Frees the spare chunks, if no memtable has taken one since the last call.
    pub fn free_unused(&self) {
        if !take(&mut self.spare.lock().in_use) {
            self.free_spare();
        }
    }

    /// Frees the spare chunks.
    pub fn free_spare(&self) {
        let freed = take(&mut *self.spare.lock());
        self.held.take(freed.bytes);
    }

    /// Takes a chunk.
    fn take(&self) -> Chunk {
        let mut spare = self.spare.lock();
        spare.in_use = true;
        let Some(chunk) = spare.chunks.pop() else { return Chunk::new() };
        spare.bytes -= chunk.bytes();
        chunk
    }

    /// Keeps `chunks`, or frees them.
    fn give_back(&self, mut chunks: Vec<Chunk>) {
        let mut spare = self.spare.lock();
        let mut kept = Vec::new();
        while let Some(chunk) = chunks.pop_if(|chunk| spare.bytes + chunk.bytes() <= self.spare_max)
        {
            spare.bytes += chunk.bytes();
            kept.push(chunk);
        }
        // The last one has the least memory and is taken first: a small memtable needs no more.
        spare.chunks.extend(kept.into_iter().rev());
        drop(spare);
        self.held.take(chunks.iter().map(Chunk::bytes).sum());
    }
}

/// The chunks of one memtable.
#[derive(Debug, Default)]
pub(super) struct OwnChunks {
    all: Arc<Chunks>,
    chunks: Vec<Chunk>,
    /// The first words, which are ready.
    pub(super) ready: usize,
    /// Bytes of the memtable beside its chunks, as they were noted last.
    beside_bytes: AtomicU64,
}

impl OwnChunks {
    pub(super) fn new(all: &Arc<Chunks>) -> OwnChunks {
        OwnChunks {
            all: Arc::clone(all),
            chunks: Vec::new(),
            ready: 0,
            beside_bytes: AtomicU64::default(),
        }
    }

    /// Returns chunk `index`.
    #[inline(always)]
    pub(super) fn chunk(&self, index: usize) -> &Chunk {
        &self.chunks[index]
    }

    /// Returns chunk `index`, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, index: usize) -> Option<&Chunk> {
        self.chunks.get(index)
    }

    /// Notes the bytes that the memtable has beside its chunks now. Only its writer calls this.
    pub(super) fn note_beside(&self, bytes: u64) {
        self.all.held.put(bytes);
        self.all.held.take(self.beside_bytes.swap(bytes, Relaxed));
    }

    /// Makes more words ready.
    pub(super) fn grow(&mut self) {
        if self.ready == self.chunks.len() * CHUNK_WORDS {
            let spare = self.all.take();
            self.ready += spare.ready;
            self.chunks.push(spare);
        }
        let has_room = self.ready < self.chunks.len() * CHUNK_WORDS;
        if let Some(last) = self.chunks.last_mut().filter(|_| has_room) {
            last.make_ready();
            self.ready += STEP_WORDS;
            self.all.held.put(8 * STEP_WORDS as u64);
        }
    }
}

impl Drop for OwnChunks {
    fn drop(&mut self) {
        self.note_beside(0);
        self.all.give_back(take(&mut self.chunks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP_BYTES: u64 = 8 * STEP_WORDS as u64;
    const CHUNK_BYTES: u64 = 8 * CHUNK_WORDS as u64;

    fn grown(all: &Arc<Chunks>, words: usize) -> OwnChunks {
        let mut own = OwnChunks::new(all);
        while own.ready < words {
            own.grow();
            own.note_beside(10);
        }
        own
    }

    #[test]
    fn what_a_memtable_leaves_is_kept_for_the_next_one_until_none_comes() {
        let all = Arc::new(Chunks::new(u64::MAX, &Arc::default()));
        let first = grown(&all, CHUNK_WORDS + 1);
        assert_eq!(all.held_bytes(), CHUNK_BYTES + STEP_BYTES + 10);
        drop(first);
        assert_eq!(
            (all.held_bytes(), all.spare_bytes()),
            (CHUNK_BYTES + STEP_BYTES, all.held_bytes())
        );
        all.free_unused();
        assert!(all.spare_bytes() > 0, "a memtable was filled a moment ago");
        let second = grown(&all, 1);
        assert_eq!(second.ready, 2 * STEP_WORDS, "what was ready stays so");
        assert_eq!(
            (all.held_bytes(), all.spare_bytes()),
            (CHUNK_BYTES + 2 * STEP_BYTES + 10, CHUNK_BYTES)
        );
        all.free_unused();
        assert_eq!(all.spare_bytes(), CHUNK_BYTES);
        all.free_unused();
        assert_eq!((all.held_bytes(), all.spare_bytes()), (2 * STEP_BYTES + 10, 0));
        drop(second);
        all.free_unused();
        assert_eq!(all.held_bytes(), 0);
    }

    #[test]
    fn no_more_is_kept_than_may_be() {
        let all = Arc::new(Chunks::new(CHUNK_BYTES + CHUNK_BYTES / 2, &Arc::default()));
        drop(grown(&all, 2 * CHUNK_WORDS));
        assert_eq!((all.held_bytes(), all.spare_bytes()), (CHUNK_BYTES, CHUNK_BYTES));
    }
}
