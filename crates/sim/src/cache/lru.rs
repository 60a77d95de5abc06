//! Blocks in the order of their last use.

use super::BlockName;

/// No block: the end of a list.
const NONE: u32 = u32::MAX;

/// The least number of chains, a power of two.
const CHAINS_MIN: usize = 64;

/// A block in the cache.
#[derive(Clone, Copy, Debug)]
struct Node {
    name: BlockName,
    bytes: u64,
    /// The block that was used next after this one.
    newer: u32,
    /// The block that was used last before this one.
    older: u32,
    /// The next block of the same chain.
    next: u32,
}

/// Blocks of at most so many bytes. If there is no room for another, those go whose last use is
/// longest ago.
///
/// Nodes are linked by their indexes: into a list by use, and into chains by the hash of their
/// names. Each operation takes constant time, and memory is proportional to the blocks held.
#[derive(Clone, Debug)]
pub(super) struct Lru {
    bytes_max: u64,
    bytes: u64,
    nodes: Vec<Node>,
    /// Indexes of nodes that hold no block.
    free: Vec<u32>,
    /// The first node of each chain. Their number is a power of two.
    chains: Vec<u32>,
    newest: u32,
    oldest: u32,
}

impl Lru {
    /// Returns an empty cache of at most `bytes_max`.
    pub(super) fn new(bytes_max: u64) -> Lru {
        Lru {
            bytes_max,
            bytes: 0,
            nodes: Vec::new(),
            free: Vec::new(),
            chains: vec![NONE; CHAINS_MIN],
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Returns true if the cache holds this block, which then is the one used last.
    #[inline]
    pub(super) fn touch(&mut self, name: BlockName) -> bool {
        let at = self.find(name);
        if at == NONE {
            return false;
        }
        if at != self.newest {
            self.unlink(at);
            self.link(at);
        }
        true
    }

    /// Adds a block of `bytes`, which the cache must not hold. A block that alone is too large is
    /// not added.
    pub(super) fn insert(&mut self, name: BlockName, bytes: u64) {
        debug_assert_eq!(self.find(name), NONE, "{name:?} is added twice");
        if bytes > self.bytes_max {
            return;
        }
        while self.bytes + bytes > self.bytes_max {
            self.take_out(self.oldest);
        }
        let node = Node { name, bytes, newer: NONE, older: NONE, next: NONE };
        let at = self.free.pop().unwrap_or(self.nodes.len() as u32);
        match self.nodes.get_mut(at as usize) {
            Some(free) => *free = node,
            None => self.nodes.push(node),
        }
        self.bytes += bytes;
        self.link(at);
        if self.nodes.len() > self.chains.len() {
            self.chain_all();
        } else {
            self.chain(at);
        }
    }

    /// Removes a block, if the cache holds it.
    pub(super) fn remove(&mut self, name: BlockName) {
        let at = self.find(name);
        if at != NONE {
            self.take_out(at);
        }
    }

    /// Returns the index of the chain for a block.
    #[inline]
    fn chain_of(&self, name: BlockName) -> usize {
        // Blocks of a table follow each other, and so do names of tables.
        let mixed = name.table.0.rotate_right(32) ^ u64::from(name.block);
        let hash = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 20
            & (self.chains.len() - 1)
    }

    /// Returns the node of a block, or `NONE`.
    #[inline]
    fn find(&self, name: BlockName) -> u32 {
        let mut at = self.chains[self.chain_of(name)];
        while at != NONE && self.nodes[at as usize].name != name {
            at = self.nodes[at as usize].next;
        }
        at
    }

    /// Adds a node to its chain.
    fn chain(&mut self, at: u32) {
        let chain = self.chain_of(self.nodes[at as usize].name);
        self.nodes[at as usize].next = std::mem::replace(&mut self.chains[chain], at);
    }

    /// Doubles the number of chains.
    #[cold]
    fn chain_all(&mut self) {
        self.chains = vec![NONE; self.chains.len() * 2];
        let mut at = self.oldest;
        while at != NONE {
            self.chain(at);
            at = self.nodes[at as usize].newer;
        }
    }

    /// Makes a node the newest.
    fn link(&mut self, at: u32) {
        let older = std::mem::replace(&mut self.newest, at);
        let node = &mut self.nodes[at as usize];
        (node.older, node.newer) = (older, NONE);
        match self.nodes.get_mut(older as usize) {
            Some(older) => older.newer = at,
            None => self.oldest = at,
        }
    }

    /// Takes a node out of the list by use.
    fn unlink(&mut self, at: u32) {
        let Node { newer, older, .. } = self.nodes[at as usize];
        match self.nodes.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.nodes.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
    }

    /// Removes the block of a node.
    fn take_out(&mut self, at: u32) {
        self.unlink(at);
        let Node { name, bytes, next, .. } = self.nodes[at as usize];
        self.bytes -= bytes;
        let chain = self.chain_of(name);
        if self.chains[chain] == at {
            self.chains[chain] = next;
        } else {
            let mut before = self.chains[chain];
            while self.nodes[before as usize].next != at {
                before = self.nodes[before as usize].next;
            }
            self.nodes[before as usize].next = next;
        }
        self.free.push(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_tree::TableId;

    fn name(index: u64) -> BlockName {
        BlockName { table: TableId(index / 8), block: (index % 8) as u32 }
    }

    /// The same cache as a plain list, the block used last at the end.
    #[derive(Default)]
    struct Plain(Vec<(u64, u64)>);

    impl Plain {
        fn touch(&mut self, block: u64) -> bool {
            let Some(at) = self.0.iter().position(|(held, _)| *held == block) else { return false };
            let held = self.0.remove(at);
            self.0.push(held);
            true
        }

        fn insert(&mut self, block: u64, bytes: u64, bytes_max: u64) {
            if bytes <= bytes_max {
                self.0.push((block, bytes));
                while self.0.iter().map(|(_, bytes)| bytes).sum::<u64>() > bytes_max {
                    self.0.remove(0);
                }
            }
        }
    }

    #[test]
    fn it_holds_what_a_plain_list_holds() {
        for (bytes_max, blocks) in [(0, 9), (1, 9), (7, 30), (100, 60), (1000, 900), (50_000, 900)]
        {
            let mut lru = Lru::new(bytes_max);
            let mut plain = Plain::default();
            let mut state = bytes_max + 1;
            let mut below = |bound: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) % bound
            };
            let mut hits = 0;
            for _ in 0..10_000 {
                let block = below(blocks);
                if below(10) == 0 {
                    lru.remove(name(block));
                    plain.0.retain(|(held, _)| *held != block);
                    continue;
                }
                let is_held = plain.touch(block);
                assert_eq!(lru.touch(name(block)), is_held);
                hits += u64::from(is_held);
                if !is_held {
                    let bytes = 1 + below(12);
                    lru.insert(name(block), bytes);
                    plain.insert(block, bytes, bytes_max);
                }
                assert_eq!(lru.bytes, plain.0.iter().map(|(_, bytes)| bytes).sum::<u64>());
            }
            let mut at = lru.oldest;
            for (block, _) in &plain.0 {
                assert_eq!(lru.nodes[at as usize].name, name(*block));
                at = lru.nodes[at as usize].newer;
            }
            assert_eq!(at, NONE);
            assert_eq!(hits > 0, bytes_max > 0);
            assert!(lru.nodes.len() as u64 <= bytes_max.min(blocks), "as many as fit");
        }
    }

    #[test]
    fn the_block_whose_last_use_is_longest_ago_goes() {
        let mut lru = Lru::new(3);
        for block in [0, 1, 2] {
            assert!(!lru.touch(name(block)));
            lru.insert(name(block), 1);
        }
        assert!(lru.touch(name(0)));
        lru.insert(name(3), 1);
        let held = [0, 1, 2, 3].map(|block| lru.touch(name(block)));
        assert_eq!(held, [true, false, true, true]);
    }

    /// Names of tables and blocks come in long rows. Their chains stay short.
    #[test]
    fn rows_of_blocks_spread_over_the_chains() {
        for (tables, blocks) in [(1, 4096), (4096, 1), (64, 64)] {
            let mut lru = Lru::new(u64::MAX);
            for table in 0..tables {
                for block in 0..blocks {
                    lru.insert(BlockName { table: TableId(table), block }, 1);
                }
            }
            let mut lengths = vec![0; lru.chains.len()];
            for node in &lru.nodes {
                lengths[lru.chain_of(node.name)] += 1;
            }
            assert!(lengths.iter().all(|length| *length <= 12), "{tables} tables");
        }
    }
}
