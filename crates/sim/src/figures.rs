//! The figures of a run, and the counter that collects them.

mod scan;

pub use scan::{SCAN_ITEMS, ScanCost};

use lsmith_policy::MergePolicy;
use lsmith_tree::{AddPlace, Counters, RunId, Tree, TreeEdit};
use scan::ScanMeter;

/// The costs of a run. All bytes are logical. A figure is 0 if its divisor is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Bytes written to runs that exist at rest after a flush and did not exist before, over bytes
    /// flushed. A run that exists only between two rests costs nothing. Bytes rewritten into an
    /// older run count in full, so that for leveled trees this equals
    /// [`write_cost_system`](Figures::write_cost_system).
    ///
    /// Source: the formal cost of Mao et al., section 2.
    pub write_cost_eager: f64,
    /// Bytes of all flushes and of all merge outputs, over bytes flushed. A memtable that goes
    /// straight into a merge counts as flushed first.
    ///
    /// Source: Mao et al., section 4, where a system writes each flush before it merges it.
    pub write_cost_system: f64,
    /// Runs on storage that a point read must consider, at rest after a flush; mean over flushes.
    ///
    /// Source: Mao et al., section 2 ("average read amplification").
    pub read_cost_mean: f64,
    /// As `read_cost_mean`, with all runs of level 0 counted as one.
    ///
    /// Source: Mao et al., Fig. 12, where level 0 of leveled trees is counted so.
    pub read_cost_mean_l0_one: f64,
    /// What a range read must look at on storage, at rest after a flush; mean over flushes. It has
    /// as many entries as the workload's range reads have on average, or [`SCAN_ITEMS`].
    ///
    /// It looks at every run, as a lookup does in `read_cost_mean`. In every run it looks at one
    /// data block, and at the blocks that it passes over: in all runs together, the share of all
    /// blocks on storage that its entries are of the live entries, at most all. A block has the
    /// live entries of mean size that fit into 4 KiB, and at least one. Under a policy that counts
    /// in blocks, blocks are counted.
    ///
    /// Source: the cost of a range query of Huynh et al. ("Endure", VLDB 2022): a seek per run, and
    /// the pages of its selectivity.
    pub scan_cost_mean: ScanCost,
    /// What the range reads of the workload looked at on storage; mean over range reads. `None` if
    /// there was none, or if nobody made them.
    ///
    /// A run counts if it may hold a key at or behind the start. A block counts if the range read
    /// stood on an entry in it. At the end it stands on its last entry, and in each other run on
    /// the first entry that does not lie before that. Simulations know the runs of append tables
    /// alone, and not their blocks.
    pub scan_cost_measured: Option<ScanCost>,
    /// Data blocks that the lookups of the workload read from files, because the cache did not hold
    /// them; mean over lookups of present and absent keys. `None` without a cache or lookups, and
    /// in a store that maps files. Simulations have filters that never err, and a cache that keeps
    /// the blocks used last. They do not know the blocks of append tables: `None` under a policy
    /// that makes such tables.
    pub read_cost_uncached: Option<f64>,
    /// Data blocks that the range reads of the workload read from files, because the cache did not
    /// hold them; mean over range reads. `None` as for `read_cost_uncached`.
    pub scan_cost_uncached: Option<f64>,
    /// The most runs on storage at rest.
    pub runs_max: u64,
    /// Runs on storage at rest that are settled: larger than half of the policy's largest merge.
    /// They are a part of `read_cost_mean`. 0 under a policy without a largest merge.
    pub settled_runs_mean: f64,
    /// Logical bytes of the largest output of a merge. Flushes and moves do not count.
    pub merge_bytes_max: u64,
    /// The most flushes in a row after which the tree was at rest without a merge.
    pub flushes_unmerged_max: u64,
    /// The maximum of the bytes held over live bytes, at rest and during merges.
    ///
    /// The bytes held are the bytes that slices show on storage, the rest of append tables,
    /// the bytes of sealed memtables, and the output under way. What the output takes out of memory
    /// counts once. Live bytes are the newest versions that are not deleted, up to the last sealed
    /// memtable. A full merge of live data makes it 2.
    ///
    /// Source: Mao et al., section 4 ("transient space amplification").
    pub space_cost_peak: f64,
    /// The bytes held over live bytes, at rest after a flush, when no output is under way; mean
    /// over flushes. At least 1, because every live entry is held.
    pub space_cost_mean: f64,
    /// Data blocks written below memory per megabyte (10^6 bytes) of requests. A request counts the
    /// logical bytes of the entry that it writes. Blocks that merges keep cost nothing.
    ///
    /// Source: Thonangi & Yang, section V ("Metrics of comparison").
    pub write_cost_blocks: f64,
    /// The counts that the write costs are computed from.
    pub parts: Parts,
}

/// Counts and logical bytes of what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Memtables sealed.
    pub sealed: u64,
    /// Memtables that left memory completely. Under a policy that counts in blocks memory is never
    /// left empty; there, the memtables that the writes would fill if each were sealed when full.
    pub flushes: u64,
    /// Bytes that left memory.
    pub flush_bytes: u64,
    /// Bytes written for memtables that became runs of their own. Tombstones with nothing below
    /// them are not written.
    pub flush_written_bytes: u64,
    /// Merges, including merges that took a memtable. Flushes and moves do not count.
    pub merges: u64,
    /// Bytes that merges took from memory.
    pub merge_memory_bytes: u64,
    /// Bytes that merges read from storage.
    pub merge_read_bytes: u64,
    /// Bytes that merges wrote.
    pub merge_written_bytes: u64,
    /// Bytes that merges reused without rewriting.
    pub reused_bytes: u64,
    /// Data blocks written by flushes and merges.
    pub blocks_written: u64,
    /// Data blocks that merges reused.
    pub blocks_reused: u64,
    /// Bytes of all write requests up to the last sealed memtable; 0 if nobody reports them.
    pub requested_bytes: u64,
    /// Moves.
    pub moves: u64,
    /// Bytes moved.
    pub moved_bytes: u64,
}

/// Collects [`Figures`] from what happens to a tree, in a simulation or in a store in lockstep. The
/// caller reports each sealed memtable, each edit before it is applied, and each rest.
#[derive(Clone, Debug, Default)]
pub struct FigureCounter {
    parts: Parts,
    /// The flushes under a policy that counts in blocks.
    filled: Option<u64>,
    eager_bytes: u64,
    /// New runs since the last rest, with the bytes written to them.
    new_runs: Vec<(RunId, u64)>,
    rests: u64,
    scan: ScanMeter,
    runs: u64,
    runs_l0_one: u64,
    runs_max: u64,
    /// The policy's largest merge.
    largest: Option<u64>,
    settled_runs: u64,
    merge_bytes_max: u64,
    /// The number of merges at the last rest, and the flushes since it changed.
    merges_at_rest: u64,
    flushes_unmerged: u64,
    flushes_unmerged_max: u64,
    live_bytes: u64,
    space_cost_peak: f64,
    space_cost_sum: f64,
    /// The number of rests with live bytes.
    space_costs: u64,
}

impl FigureCounter {
    /// Returns a counter of an empty tree.
    pub fn new() -> FigureCounter {
        FigureCounter::default()
    }

    /// Returns a counter of an empty tree under `policy`, for range reads of `scan_items` entries.
    pub fn under(policy: &dyn MergePolicy, scan_items: f64) -> FigureCounter {
        FigureCounter {
            scan: ScanMeter::new(scan_items, policy.needs().blocks),
            largest: policy.largest_merge(),
            ..FigureCounter::default()
        }
    }

    /// Reports the number of live entries at the rests that follow, on which the cost of range
    /// reads depends.
    pub fn live_entries(&mut self, entries: u64) {
        self.scan.live(entries);
    }

    /// Reports that a memtable was sealed. `live_bytes` are the newest versions of all keys that
    /// are not deleted, also in memory.
    pub fn sealed(&mut self, live_bytes: u64) {
        self.parts.sealed += 1;
        self.live_bytes = live_bytes;
    }

    /// Reports the logical bytes of all write requests up to the memtable that is sealed next.
    pub fn requested(&mut self, bytes: u64) {
        self.parts.requested_bytes = bytes;
    }

    /// Reports the flushes under a policy that counts in blocks, as
    /// [`FullMemtables`](crate::FullMemtables) counts them.
    pub fn filled(&mut self, memtables: u64) {
        self.filled = Some(memtables);
    }

    /// Reports that `edit` is about to be applied to `tree`.
    pub fn merge(&mut self, tree: &Tree, edit: &TreeEdit) {
        self.parts.flushes += edit.flushes;
        self.parts.flush_bytes += edit.flushed.bytes;
        let mut written = 0;
        for (_, counters) in &edit.counters {
            self.count(counters);
            written += counters.bytes_written;
        }
        // The output is the first addition.
        match edit.add.first() {
            Some(addition) if addition.place != AddPlace::Into => {
                self.new_runs.push((addition.run, written));
            }
            _ => self.eager_bytes += written,
        }
        let taken = edit.flushed.bytes;
        self.space_cost(held_bytes(tree).saturating_sub(taken) + written);
    }

    fn count(&mut self, counters: &Counters) {
        let parts = &mut self.parts;
        parts.merges += counters.merges;
        parts.moves += counters.moves;
        parts.moved_bytes += counters.bytes_moved;
        parts.reused_bytes += counters.bytes_reused;
        parts.blocks_written += counters.blocks_written;
        parts.blocks_reused += counters.blocks_reused;
        if counters.flushes > 0 {
            parts.flush_written_bytes += counters.bytes_written;
        } else {
            parts.merge_memory_bytes += counters.bytes_from_memory;
            parts.merge_read_bytes += counters.bytes_in;
            parts.merge_written_bytes += counters.bytes_written;
            self.merge_bytes_max = self.merge_bytes_max.max(counters.bytes_written);
        }
    }

    /// Returns the space cost of `bytes`, which may be a new peak. `None` if nothing is live.
    fn space_cost(&mut self, bytes: u64) -> Option<f64> {
        let cost = (self.live_bytes > 0).then(|| bytes as f64 / self.live_bytes as f64)?;
        self.space_cost_peak = self.space_cost_peak.max(cost);
        Some(cost)
    }

    /// Reports that `tree` is at rest.
    pub fn rest(&mut self, tree: &Tree) {
        let stays = |run: &RunId| tree.disk_runs().any(|other| other.id() == *run);
        let new_bytes = self.new_runs.iter().filter(|(run, _)| stays(run)).map(|(_, bytes)| bytes);
        self.eager_bytes += new_bytes.sum::<u64>();
        self.new_runs.clear();

        let runs = tree.disk_run_count() as u64;
        let level0 = tree.levels().first().map_or(0, |level| level.runs().len()) as u64;
        self.rests += 1;
        self.runs += runs;
        self.runs_l0_one += runs - level0 + level0.min(1);
        self.runs_max = self.runs_max.max(runs);
        if let Some(largest) = self.largest {
            let settled = tree.disk_runs().filter(|run| run.bytes() > largest / 2);
            self.settled_runs += settled.count() as u64;
        }
        let has_merged = self.parts.merges != self.merges_at_rest;
        self.merges_at_rest = self.parts.merges;
        self.flushes_unmerged = if has_merged { 0 } else { self.flushes_unmerged + 1 };
        self.flushes_unmerged_max = self.flushes_unmerged_max.max(self.flushes_unmerged);
        self.scan.rest(tree, self.live_bytes);

        if let Some(cost) = self.space_cost(held_bytes(tree)) {
            self.space_cost_sum += cost;
            self.space_costs += 1;
        }
    }

    /// Returns the figures so far. Call it at rest.
    pub fn figures(&self) -> Figures {
        let flushes = self.filled.unwrap_or(self.parts.flushes);
        let parts = Parts { flushes, ..self.parts };
        let flush_writes = parts.flush_written_bytes + parts.merge_memory_bytes;
        let system_bytes = flush_writes + parts.merge_written_bytes;
        Figures {
            write_cost_eager: ratio(self.eager_bytes as f64, parts.flush_bytes),
            write_cost_system: ratio(system_bytes as f64, parts.flush_bytes),
            read_cost_mean: ratio(self.runs as f64, self.rests),
            read_cost_mean_l0_one: ratio(self.runs_l0_one as f64, self.rests),
            scan_cost_mean: self.scan.cost(),
            scan_cost_measured: None,
            read_cost_uncached: None,
            scan_cost_uncached: None,
            runs_max: self.runs_max,
            settled_runs_mean: ratio(self.settled_runs as f64, self.rests),
            merge_bytes_max: self.merge_bytes_max,
            flushes_unmerged_max: self.flushes_unmerged_max,
            space_cost_peak: self.space_cost_peak,
            space_cost_mean: ratio(self.space_cost_sum, self.space_costs),
            write_cost_blocks: ratio(parts.blocks_written as f64 * 1e6, parts.requested_bytes),
            parts,
        }
    }
}

/// Returns the logical bytes that the tree shows on storage and in memory.
fn held_bytes(tree: &Tree) -> u64 {
    let dead = tree.disk_runs().map(|run| run.dead_bytes()).fold(0, u64::saturating_add);
    tree.disk_bytes() + dead + tree.memory().bytes()
}

/// Returns `part / whole`, or 0 if `whole` is 0.
fn ratio(part: f64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part / whole as f64 }
}
