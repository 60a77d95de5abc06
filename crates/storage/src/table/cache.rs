//! The cache of data blocks that all tables of a store share, and several stores if they want to.

use super::waits::Waits;
use crate::format::Block;
use crate::sync::atomic::Ordering;
use crate::sync::unscheduled::AtomicU64;
use crate::sync::{BlockMap, Mutex};
use bytes::BytesMut;
use quick_cache::{DefaultHashBuilder, Lifecycle, Weighter};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Bytes that a block costs in the cache besides its payload.
const OVERHEAD_BYTES: u64 = 96;

/// A guess for the size of the cache's own table: blocks are cut at about this size.
const BLOCK_BYTES_USUAL: u64 = 4096;

/// Counters are spread, so that threads that read different blocks do not fight for one of them.
const COUNTERS: usize = 16;

/// Names a table in a cache, whichever store it is of and whatever its number is: no two tables
/// that are ever opened have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheName(u64);

/// What names a block: its table, and where in the file it starts.
type BlockKey = (CacheName, u64);

type Blocks = BlockMap<BlockKey, Block, BlockWeight, DefaultHashBuilder, Buffers>;

#[derive(Clone, Debug)]
struct BlockWeight;

impl Weighter<BlockKey, Block> for BlockWeight {
    fn weight(&self, _: &BlockKey, block: &Block) -> u64 {
        block.bytes() as u64 + OVERHEAD_BYTES
    }
}

/// Buffers kept for later blocks at most.
const BUFFERS_MAX: usize = 32;

/// Bytes of a buffer that is kept at most: a huge block is rare.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Buffers are made this much too long at most, so that they fit blocks of about one size.
const BUFFER_STEP_BYTES: usize = 128;

/// The memory of blocks that have left the cache and that nobody reads any more: where blocks come
/// and go all the time, the next one is read into it.
#[derive(Clone, Debug, Default)]
struct Buffers(Arc<Mutex<Vec<BytesMut>>>);

impl Buffers {
    /// A buffer of `bytes` bytes with anything in it.
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

/// A cache of table blocks for several stores: see `Builder::cache`.
/// Cheap to clone: clones are the same cache. What a store has in it is forgotten when the store
/// closes.
#[derive(Clone, Debug)]
pub struct Cache {
    blocks: Option<Arc<Blocks>>,
    buffers: Buffers,
    /// The name of the next table.
    next: Arc<AtomicU64>,
}

impl Cache {
    /// A cache of up to `capacity_bytes`; 0 keeps nothing.
    pub fn new(capacity_bytes: u64) -> Cache {
        let blocks_usual = (capacity_bytes / BLOCK_BYTES_USUAL) as usize;
        let buffers = Buffers::default();
        let cache = || {
            let (hasher, buffers) = (DefaultHashBuilder::default(), buffers.clone());
            Arc::new(Blocks::with(blocks_usual, capacity_bytes, BlockWeight, hasher, buffers))
        };
        let blocks = (capacity_bytes > 0).then(cache);
        Cache { blocks, buffers, next: Arc::default() }
    }

    /// Bytes that the cache holds now, of all stores.
    pub fn bytes(&self) -> u64 {
        self.blocks.as_ref().map_or(0, |blocks| blocks.weight())
    }

    /// Bytes that it holds at most.
    pub fn capacity_bytes(&self) -> u64 {
        self.blocks.as_ref().map_or(0, |blocks| blocks.capacity())
    }
}

/// Data blocks in memory, the ones that are read often first: what one store has of a [`Cache`]. A
/// block that takes a large share of the capacity is not kept.
#[derive(Debug)]
pub struct BlockCache {
    cache: Cache,
    /// The names of this store's tables.
    names: Mutex<FxHashSet<CacheName>>,
    counters: [Counter; COUNTERS],
    /// Whether blocks that come from mapped files, and not through here, are waited for.
    pub(super) waits: Waits,
}

impl Drop for BlockCache {
    fn drop(&mut self) {
        // Where no other store has a part in it, it goes as a whole.
        if let Some(blocks) = &self.cache.blocks
            && Arc::strong_count(blocks) > 1
        {
            let names = self.names.get_mut();
            blocks.retain(|(of, _), _| !names.contains(of));
        }
    }
}

impl BlockCache {
    /// A cache of its own of up to `capacity_bytes`; 0 keeps nothing.
    pub fn new(capacity_bytes: u64) -> BlockCache {
        BlockCache::within(&Cache::new(capacity_bytes))
    }

    /// A part in `cache`.
    pub fn within(cache: &Cache) -> BlockCache {
        let counters = std::array::from_fn(|_| Counter::default());
        let (names, waits) = (Mutex::default(), Waits::default());
        BlockCache { cache: cache.clone(), names, counters, waits }
    }

    /// A name for a table that has just been opened.
    pub(super) fn name_table(&self) -> CacheName {
        let name = CacheName(self.cache.next.fetch_add(1, Ordering::Relaxed));
        self.names.lock().insert(name);
        name
    }

    /// Lets the cache hold up to `bytes` from now on. One made to keep nothing stays so.
    pub fn set_capacity(&self, bytes: u64) {
        if let Some(blocks) = &self.cache.blocks {
            blocks.set_capacity(bytes);
        }
    }

    /// A buffer of `bytes` bytes with anything in it, to read a block into.
    pub(super) fn buffer(&self, bytes: usize) -> BytesMut {
        self.cache.buffers.take(bytes)
    }

    /// The block of `table` that starts at `offset`, if it is here.
    pub(super) fn block(&self, table: CacheName, offset: u64) -> Option<Block> {
        let block = self.cache.blocks.as_ref()?.get(&(table, offset));
        // Blocks start anywhere: the low bits of their offsets are as good as random.
        let counter = &self.counters[(offset ^ table.0) as usize % COUNTERS];
        let count = if block.is_some() { &counter.hits } else { &counter.misses };
        count.fetch_add(1, Ordering::Relaxed);
        block
    }

    /// Keeps `block`.
    pub(super) fn insert(&self, table: CacheName, offset: u64, block: Block) {
        if let Some(blocks) = &self.cache.blocks {
            blocks.insert((table, offset), block);
        }
    }

    /// Forgets the blocks of `table`, to be called when its file is deleted. Looks at every block
    /// of the cache (about a millisecond per 100,000). A read of the table that is still going on
    /// may put blocks back: they are never asked for again and leave like any cold block, which
    /// is safe because no two tables have the same name.
    pub(super) fn remove_table(&self, table: CacheName) {
        self.names.lock().remove(&table);
        if let Some(blocks) = &self.cache.blocks {
            blocks.retain(|(of, _), _| *of != table);
        }
    }

    /// Bytes that the cache holds now.
    pub fn bytes(&self) -> u64 {
        self.cache.bytes()
    }

    /// Questions that were answered from memory.
    pub fn hits(&self) -> u64 {
        self.counters.iter().map(|counter| counter.hits.load(Ordering::Relaxed)).sum()
    }

    /// Questions that were not; without capacity there are none.
    pub fn misses(&self) -> u64 {
        self.counters.iter().map(|counter| counter.misses.load(Ordering::Relaxed)).sum()
    }
}
