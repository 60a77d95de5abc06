//! The cache of data blocks, shared by all tables of a store, and by several stores on request.

use super::open_files::OpenFiles;
use super::waits::Waits;
use crate::format::Block;
use crate::sync::atomic::Ordering;
use crate::sync::unscheduled::AtomicU64;
use crate::sync::{BlockMap, Mutex};
use bytes::BytesMut;
use quick_cache::{DefaultHashBuilder, Lifecycle, Weighter};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Bytes of a block in the cache besides its payload, roughly.
const OVERHEAD_BYTES: u64 = 96;

/// The assumed size of a block, from which the cache sizes its own hash table.
const BLOCK_BYTES_USUAL: u64 = 4096;

/// The most blocks for which the cache sizes its hash table in advance. It grows beyond that.
const BLOCKS_USUAL_MAX: u64 = 1 << 22;

/// The number of counters. Threads that read different blocks use different ones, so that they do
/// not contend.
const COUNTERS: usize = 16;

/// Identifies a table in a cache, independently of its store and its file id. No two opened tables
/// have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheName(u64);

/// Identifies a block: its table, and its start in the file.
type BlockKey = (CacheName, u64);

type Blocks = BlockMap<BlockKey, Block, BlockWeight, DefaultHashBuilder, Buffers>;

#[derive(Clone, Debug)]
struct BlockWeight;

impl Weighter<BlockKey, Block> for BlockWeight {
    fn weight(&self, _: &BlockKey, block: &Block) -> u64 {
        block.bytes() as u64 + OVERHEAD_BYTES
    }
}

/// The most buffers that are kept for later blocks.
const BUFFERS_MAX: usize = 32;

/// The most bytes of a buffer that is kept, because huge blocks are rare.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Buffer sizes are multiples of this many bytes, so that a buffer fits blocks of similar sizes.
const BUFFER_STEP_BYTES: usize = 128;

/// The memory of blocks that have left the cache and are no longer used. If blocks come and go all
/// the time, the next one is read into such a buffer.
#[derive(Clone, Debug, Default)]
struct Buffers(Arc<Mutex<Vec<BytesMut>>>);

impl Buffers {
    /// Returns a buffer of `bytes` bytes with arbitrary contents.
    fn take(&self, bytes: usize) -> BytesMut {
        let kept = self.0.lock().pop();
        let mut buffer = match kept.filter(|buffer| buffer.capacity() >= bytes) {
            Some(buffer) => buffer,
            None => BytesMut::with_capacity(bytes.next_multiple_of(BUFFER_STEP_BYTES)),
        };
        buffer.resize(bytes, 0);
        buffer
    }
}

impl Lifecycle<BlockKey, Block> for Buffers {
    type RequestState = ();

    fn on_evict(&self, _: &mut (), _: BlockKey, block: Block) {
        if let Some(buffer) = block.into_buffer()
            && buffer.capacity() <= BUFFER_BYTES_MAX
        {
            let mut kept = self.0.lock();
            if kept.len() < BUFFERS_MAX {
                kept.push(buffer);
            }
        }
    }
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter {
    hits: AtomicU64,
    misses: AtomicU64,
}

/// A cache of table blocks for several stores: see `Builder::cache`. A clone is the same cache, and
/// cheap. When a store closes, its blocks are removed.
#[doc(alias = "block cache")]
#[derive(Clone, Debug)]
pub struct Cache {
    blocks: Option<Arc<Blocks>>,
    buffers: Buffers,
    /// The name of the next table.
    next: Arc<AtomicU64>,
}

impl Cache {
    /// Creates a cache of at most `capacity_bytes`. A cache of 0 bytes keeps no blocks.
    pub fn new(capacity_bytes: u64) -> Cache {
        let blocks_usual = (capacity_bytes / BLOCK_BYTES_USUAL).min(BLOCKS_USUAL_MAX) as usize;
        let buffers = Buffers::default();
        let cache = || {
            let hasher = DefaultHashBuilder::default();
            let buffers = buffers.clone();
            Arc::new(Blocks::with(blocks_usual, capacity_bytes, BlockWeight, hasher, buffers))
        };
        let blocks = (capacity_bytes > 0).then(cache);
        Cache { blocks, buffers, next: Arc::default() }
    }

    /// Returns the bytes that the cache holds now, for all stores.
    pub fn bytes(&self) -> u64 {
        self.blocks.as_ref().map_or(0, |blocks| blocks.weight())
    }

    /// Returns the most bytes that the cache may hold.
    pub fn capacity_bytes(&self) -> u64 {
        self.blocks.as_ref().map_or(0, |blocks| blocks.capacity())
    }
}

/// The part of a [`Cache`] that one store uses: data blocks in memory, preferably blocks that are
/// read often. A block that takes a large share of the capacity is not kept.
#[derive(Debug)]
pub struct BlockCache {
    cache: Cache,
    /// The names of this store's tables.
    names: Mutex<FxHashSet<CacheName>>,
    counters: [Counter; COUNTERS],
    /// Whether reads of mapped files, which do not use the cache, wait for a device.
    pub(super) waits: Waits,
    /// Whether reads of value files wait for a device.
    pub(super) value_waits: Waits,
    /// The files of this store's tables that keep descriptors.
    pub(super) files: Arc<OpenFiles>,
    /// False if files are not mapped, so that every block is checked each time it is read from its
    /// file.
    pub(super) maps: bool,
}

impl Drop for BlockCache {
    fn drop(&mut self) {
        // If no other store uses the cache, it is freed as a whole.
        if let Some(blocks) = &self.cache.blocks
            && Arc::strong_count(blocks) > 1
        {
            let names = self.names.get_mut();
            blocks.retain(|(of, _), _| !names.contains(of));
        }
    }
}

impl BlockCache {
    /// Creates a cache for one store, of at most `capacity_bytes`. A cache of 0 bytes keeps no
    /// blocks.
    pub fn new(capacity_bytes: u64) -> BlockCache {
        BlockCache::within(&Cache::new(capacity_bytes))
    }

    /// Creates the part of one store in `cache`.
    pub fn within(cache: &Cache) -> BlockCache {
        let counters = std::array::from_fn(|_| Counter::default());
        BlockCache {
            cache: cache.clone(),
            names: Mutex::default(),
            counters,
            waits: Waits::default(),
            value_waits: Waits::default(),
            files: OpenFiles::few(),
            maps: true,
        }
    }

    /// Returns the same cache for a store that keeps descriptors of at most `max` table files.
    #[must_use]
    pub fn with_open_files(mut self, max: usize) -> BlockCache {
        self.files = OpenFiles::new(max);
        self
    }

    /// Returns the same cache for a store whose tables are not mapped: another process may change
    /// what a map shows after it was checked.
    #[must_use]
    pub fn unmapped(mut self) -> BlockCache {
        self.maps = false;
        self
    }

    /// Returns true if reads have waited for a device recently, of blocks or of values.
    pub fn reads_wait(&self) -> bool {
        self.waits.are_recent() || self.values_wait()
    }

    /// Returns true if reads of values in value files have waited for a device recently.
    pub fn values_wait(&self) -> bool {
        self.value_waits.are_recent()
    }

    /// Returns the files of this store's tables that keep descriptors.
    pub fn open_files(&self) -> &Arc<OpenFiles> {
        &self.files
    }

    /// Returns a name for a table that has just been opened.
    pub(super) fn name_table(&self) -> CacheName {
        let name = CacheName(self.cache.next.fetch_add(1, Ordering::Relaxed));
        self.names.lock().insert(name);
        name
    }

    /// Sets the capacity to `bytes`. A cache created with 0 bytes stays without blocks.
    pub fn set_capacity(&self, bytes: u64) {
        if let Some(blocks) = &self.cache.blocks {
            blocks.set_capacity(bytes);
        }
    }

    /// Returns a buffer of `bytes` bytes with arbitrary contents, to read a block into.
    pub(super) fn buffer(&self, bytes: usize) -> BytesMut {
        self.cache.buffers.take(bytes)
    }

    /// Returns the block of `table` that starts at `offset`, if it is in the cache.
    pub(super) fn block(&self, table: CacheName, offset: u64) -> Option<Block> {
        let block = self.cache.blocks.as_ref()?.get(&(table, offset));
        // Blocks start at arbitrary offsets, so the low bits are as good as random.
        let counter = &self.counters[(offset ^ table.0) as usize % COUNTERS];
        let count = if block.is_some() { &counter.hits } else { &counter.misses };
        count.fetch_add(1, Ordering::Relaxed);
        block
    }

    /// Returns true if the block of `table` that starts at `offset` is in the cache. That does not
    /// count as a use.
    pub(super) fn has_block(&self, table: CacheName, offset: u64) -> bool {
        self.cache.blocks.as_ref().is_some_and(|blocks| blocks.contains_key(&(table, offset)))
    }

    /// Adds `block`.
    pub(super) fn insert(&self, table: CacheName, offset: u64, block: Block) {
        if let Some(blocks) = &self.cache.blocks {
            blocks.insert((table, offset), block);
        }
    }

    /// Removes the blocks of `table`. Call this when its file is deleted. It visits every block of
    /// the cache (about a millisecond per 100,000). A read of the table that is still running may
    /// add blocks again. These are never read again and leave like any cold block. That is safe
    /// because no two tables have the same name.
    pub(super) fn remove_table(&self, table: CacheName) {
        self.names.lock().remove(&table);
        if let Some(blocks) = &self.cache.blocks {
            blocks.retain(|(of, _), _| *of != table);
        }
    }

    /// Returns the bytes that the cache holds now.
    pub fn bytes(&self) -> u64 {
        self.cache.bytes()
    }

    /// Returns the number of lookups that found their block.
    pub fn hits(&self) -> u64 {
        self.counters.iter().map(|counter| counter.hits.load(Ordering::Relaxed)).sum()
    }

    /// Returns the number of lookups that did not. A cache without capacity counts none.
    pub fn misses(&self) -> u64 {
        self.counters.iter().map(|counter| counter.misses.load(Ordering::Relaxed)).sum()
    }
}
