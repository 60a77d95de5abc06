//! A cache of data blocks that keeps those used last, and what readers did not find in it.

mod lru;

use lru::Lru;
use lsmith_tree::TableId;

/// Names a data block: its table, and its index among the blocks of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BlockName {
    pub(crate) table: TableId,
    pub(crate) block: u32,
}

/// Who reads a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Merge,
    Lookup,
    Scan,
}

/// Data blocks that were read from storage because a cache did not hold them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlocksUncached {
    /// By merges; 0 if merges read past the cache.
    pub merges: u64,
    /// By lookups.
    pub lookups: u64,
    /// By range reads.
    pub scans: u64,
}

impl BlocksUncached {
    /// Returns what was missed since an earlier moment.
    #[must_use]
    pub fn since(self, earlier: BlocksUncached) -> BlocksUncached {
        BlocksUncached {
            merges: self.merges - earlier.merges,
            lookups: self.lookups - earlier.lookups,
            scans: self.scans - earlier.scans,
        }
    }
}

/// Caches of several sizes beside one simulation. None changes what the simulation does, so one
/// simulation serves all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockCaches {
    caches: Vec<(Lru, BlocksUncached)>,
    serves_merges: bool,
}

impl BlockCaches {
    /// Returns empty caches of so many bytes each. If `serves_merges`, merges read and write
    /// through them.
    pub(crate) fn new(bytes: &[u64], serves_merges: bool) -> BlockCaches {
        let cache = |bytes: &u64| (Lru::new(*bytes), BlocksUncached::default());
        BlockCaches { caches: bytes.iter().map(cache).collect(), serves_merges }
    }

    /// Returns true if there is no cache.
    pub(crate) fn is_empty(&self) -> bool {
        self.caches.is_empty()
    }

    /// Returns true if merges read and write through the caches.
    pub(crate) fn serves_merges(&self) -> bool {
        self.serves_merges
    }

    /// Notes that a block of `bytes` is read. If `adds`, it enters the caches that did not hold it.
    pub(crate) fn read(&mut self, reader: Reader, name: BlockName, bytes: u64, adds: bool) {
        for (cache, missed) in &mut self.caches {
            if cache.touch(name) {
                continue;
            }
            match reader {
                Reader::Merge => missed.merges += 1,
                Reader::Lookup => missed.lookups += 1,
                Reader::Scan => missed.scans += 1,
            }
            if adds {
                cache.insert(name, bytes);
            }
        }
    }

    /// Notes that a merge wrote a new block of `bytes`.
    pub(crate) fn write(&mut self, name: BlockName, bytes: u64) {
        for (cache, _) in &mut self.caches {
            cache.insert(name, bytes);
        }
    }

    /// Removes a block that no longer exists.
    pub(crate) fn forget(&mut self, name: BlockName) {
        for (cache, _) in &mut self.caches {
            cache.remove(name);
        }
    }

    /// Returns what each cache has missed, in the order of the sizes.
    pub(crate) fn uncached(&self) -> impl Iterator<Item = BlocksUncached> {
        self.caches.iter().map(|(_, missed)| *missed)
    }
}
