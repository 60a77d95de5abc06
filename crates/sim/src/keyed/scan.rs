//! Range reads in a keyed simulation, which look at the same runs and blocks as in the store.

use super::content::KeyedContent;
use super::entry::{Entry, KeyedEntry};
use super::rank::rank_key;
use crate::ScanCost;
use crate::cache::BlockName;
use lsmith_tree::{KeyRange, LevelId, Run, SlicesIter, TableId, Tree};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The number of blocks of a table after which a reader that goes on reads ahead. Blocks that it
/// then reads do not enter the store's cache.
const STREAK_BLOCKS: u32 = 4;

/// A block on storage that a range read has stood in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenBlock {
    pub(super) name: BlockName,
    /// True if the block enters the cache of a store.
    pub(super) adds: bool,
}

/// Range reads, and what they need besides the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Scans {
    /// The newest entries of the active memtable, by rank.
    active: BTreeMap<u32, Entry>,
    scans: u64,
    runs: u64,
    blocks: u64,
}

impl Scans {
    /// Notes a write to the active memtable.
    pub(super) fn write(&mut self, entry: Entry) {
        self.active.insert(entry.rank(), entry);
    }

    /// Notes that the active memtable was sealed.
    pub(super) fn seal(&mut self) {
        self.active.clear();
    }

    /// Reads `items` live entries from the key `from` on. Returns the blocks on storage that it
    /// stood in, in order.
    pub(super) fn scan<E: KeyedEntry>(
        &mut self,
        content: &KeyedContent<E>,
        tree: &Tree,
        from: u32,
        items: u32,
    ) -> Vec<SeenBlock> {
        let runs = tree.runs().map(|(level, run)| (level, &**run));
        let expired = content.expired();
        let is_dead = |entry: &Entry| entry.expired(&expired).is_tombstone();
        let active = self.active.range(from..).map(|(rank, entry)| (*rank, is_dead(entry)));
        let seen = scan(content, runs, active, (from, items));
        self.scans += 1;
        self.runs += seen.runs;
        self.blocks += seen.blocks.len() as u64;
        seen.blocks
    }

    /// Returns the number of range reads.
    pub(super) fn count(&self) -> u64 {
        self.scans
    }

    /// Returns the mean cost of the range reads; `None` if there was none.
    pub(super) fn cost(&self) -> Option<ScanCost> {
        let mean = |count: u64| count as f64 / self.scans as f64;
        (self.scans > 0)
            .then(|| ScanCost { runs: mean(self.runs), blocks: Some(mean(self.blocks)) })
    }
}

/// What a range read has seen on storage.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The number of runs that it looked at.
    runs: u64,
    /// The blocks that it stood in, in order.
    pub(crate) blocks: Vec<SeenBlock>,
}

/// Reads `items` live entries from the key `from` on, out of `runs`, newest first, and of `active`,
/// which is newer than all of them and begins at `from`. `active` is true for entries that readers
/// do not see.
///
/// The sources are walked as in the store. Each stands on its first entry that was not passed over.
/// A block counts if its source has stood in it.
pub(crate) fn scan<'a, E: KeyedEntry>(
    content: &'a KeyedContent<E>,
    runs: impl Iterator<Item = (LevelId, &'a Run)>,
    mut active: impl Iterator<Item = (u32, bool)>,
    (from, items): (u32, u32),
) -> Seen {
    let mut seen = Seen::default();
    let range = KeyRange { start: rank_key(u64::from(from)), end: None };
    let mut sources: Vec<_> =
        runs.map(|(level, run)| Source::new(content, level, run, &range)).collect();
    seen.blocks.extend(sources.iter().filter_map(Source::entered));
    // The active memtable is newer than all runs, so it is source 0.
    let in_active = |(rank, is_tombstone)| Reverse((rank, 0, is_tombstone));
    let expired = content.expired();
    let in_run = |at: usize, entry: E| {
        Reverse((entry.rank(), at + 1, entry.expired(&expired).is_tombstone()))
    };
    let numbered = sources.iter().enumerate();
    let mut heads: BinaryHeap<_> =
        numbered.filter_map(|(at, source)| Some(in_run(at, source.head()?))).collect();
    heads.extend(active.next().map(in_active));
    let mut last = None;
    let mut left = items;
    while let Some(&Reverse((rank, source, is_tombstone))) = heads.peek() {
        if last != Some(rank) {
            last = Some(rank);
            left -= u32::from(!is_tombstone);
            if left == 0 {
                break;
            }
        }
        heads.pop();
        match source.checked_sub(1) {
            None => heads.extend(active.next().map(in_active)),
            Some(at) => {
                let blocks = sources[at].blocks;
                sources[at].step();
                if sources[at].blocks > blocks {
                    seen.blocks.extend(sources[at].entered());
                }
                heads.extend(sources[at].head().map(|entry| in_run(at, entry)));
            }
        }
    }
    for source in sources.iter().filter(|source| source.is_on_storage) {
        seen.runs += u64::from(source.is_opened);
    }
    seen
}

/// A run, and the place that a range read has reached there.
struct Source<'a, E> {
    content: &'a KeyedContent<E>,
    from: &'a KeyRange,
    is_on_storage: bool,
    /// The slices that are not yet entered.
    slices: SlicesIter<'a>,
    /// The entries of the current slice that are not yet passed over.
    entries: &'a [E],
    /// The number of entries up to the end of the current block.
    in_block: usize,
    /// The ends of the blocks behind the current one, in entries of the table.
    ends: &'a [u32],
    /// The end of the current block, in entries of the table.
    block_end: u32,
    /// True if a slice was looked at.
    is_opened: bool,
    /// The number of blocks that were stood in.
    blocks: u64,
    /// The table of the current block, the index of the block there, and the number of blocks of
    /// the table that were stood in.
    table: TableId,
    block: u32,
    streak: u32,
}

impl<'a, E: KeyedEntry> Source<'a, E> {
    fn new(
        content: &'a KeyedContent<E>,
        level: LevelId,
        run: &'a Run,
        from: &'a KeyRange,
    ) -> Source<'a, E> {
        let mut source = Source {
            content,
            from,
            is_on_storage: level != LevelId::Memory,
            slices: run.overlapping(from).iter(),
            entries: &[],
            in_block: 0,
            ends: &[],
            block_end: 0,
            is_opened: false,
            blocks: 0,
            table: TableId::default(),
            block: 0,
            streak: 0,
        };
        source.enter_next();
        source
    }

    fn head(&self) -> Option<E> {
        self.entries.first().copied()
    }

    /// Returns the current block, if it is on storage.
    fn entered(&self) -> Option<SeenBlock> {
        let name = BlockName { table: self.table, block: self.block };
        let adds = self.streak <= STREAK_BLOCKS;
        (self.is_on_storage && self.blocks > 0).then_some(SeenBlock { name, adds })
    }

    fn step(&mut self) {
        self.entries = &self.entries[1..];
        self.in_block -= 1;
        if self.entries.is_empty() {
            self.enter_next();
        } else if self.in_block == 0 {
            self.block += 1;
            self.enter_block();
        }
    }

    /// Goes to the next block of the current slice.
    fn enter_block(&mut self) {
        let end = self.ends[0];
        self.in_block = (end - self.block_end) as usize;
        self.block_end = end;
        self.ends = &self.ends[1..];
        self.blocks += 1;
        self.streak += 1;
    }

    /// Goes to the first entry of the next slice that has one.
    fn enter_next(&mut self) {
        for slice in self.slices.by_ref() {
            // The store passes over slices that are known to be empty.
            let range = slice.filled().intersection(self.from);
            if range.is_empty() {
                continue;
            }
            self.is_opened = true;
            let table = self.content.tables.of(slice);
            let part = table.part(&range);
            if part.is_empty() {
                continue;
            }
            self.entries = part.entries();
            let ends = table.block_ends(self.content.layout.block_bytes);
            let block = ends.partition_point(|end| *end <= part.from);
            self.ends = &ends[block..];
            (self.table, self.block, self.streak) = (table.table.id, block as u32, 0);
            self.block_end = part.from;
            self.enter_block();
            return;
        }
    }
}
