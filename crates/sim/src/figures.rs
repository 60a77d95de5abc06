//! The named figures of a run, and the counter that collects them.

use lsmith_tree::{AddPlace, Counters, RunId, Tree, TreeEdit};

/// What a run has cost. All bytes are logical. A figure without anything to divide by is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Bytes written to runs that exist at rest after a flush and did not before, over bytes
    /// flushed: a run that comes and goes between two rests is free. What is rewritten into a run
    /// that exists counts in full, so that for leveled trees this equals
    /// [`write_cost_system`](Figures::write_cost_system).
    ///
    /// Source: the formal cost of Mao et al., section 2.
    pub write_cost_eager: f64,
    /// Bytes of all flushes and of the outputs of all merges, over bytes flushed. A memtable that
    /// is merged straight in counts as flushed first.
    ///
    /// Source: Mao et al., section 4, where a system writes each flush before it merges it.
    pub write_cost_system: f64,
    /// Runs on storage at rest after a flush, which a point read must consider; mean over flushes.
    ///
    /// Source: Mao et al., section 2 ("average read amplification").
    pub read_cost_mean: f64,
    /// The same with all runs of level 0 counted as one.
    ///
    /// Source: Mao et al., Fig. 12, where level 0 of leveled trees is counted so.
    pub read_cost_mean_l0_one: f64,
    /// Most runs on storage at rest.
    pub runs_max: u64,
    /// Bytes of all tables and of an output under way, over live bytes (the newest versions that
    /// are not deleted) at that moment: the most ever. A full merge of live data makes it 2.
    ///
    /// Source: Mao et al., section 4 ("transient space amplification").
    pub space_cost_peak: f64,
    /// The most of that within each flush, from its memtable's sealing to rest; mean over flushes.
    pub space_cost_mean: f64,
    /// Data blocks written below memory per megabyte (10^6 bytes) of requests, a request counting
    /// for the logical bytes of the entry that it writes; blocks that merges kept cost nothing.
    ///
    /// Source: Thonangi & Yang, section V ("Metrics of comparison").
    pub write_cost_blocks: f64,
    /// What the write costs are made of.
    pub parts: Parts,
}

/// What has been done, in counts and logical bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Memtables sealed.
    pub sealed: u64,
    /// Memtables that left memory as a whole.
    pub flushes: u64,
    /// Bytes of those memtables.
    pub flush_bytes: u64,
    /// Bytes written for memtables that became runs of their own; tombstones with nothing left to
    /// hide are missing from them.
    pub flush_written_bytes: u64,
    /// Merges, those that took in a memtable included; flushes to a run of its own and moves not.
    pub merges: u64,
    /// Bytes that merges took from memory.
    pub merge_memory_bytes: u64,
    /// Bytes that merges read from storage.
    pub merge_read_bytes: u64,
    /// Bytes that merges wrote.
    pub merge_written_bytes: u64,
    /// Bytes that merges took over without rewriting them.
    pub reused_bytes: u64,
    /// Data blocks written by flushes and merges.
    pub blocks_written: u64,
    /// Data blocks that merges took over.
    pub blocks_reused: u64,
    /// Bytes of all requests that wrote, up to the memtable that was sealed last; 0 where nobody
    /// tells.
    pub requested_bytes: u64,
    /// Moves.
    pub moves: u64,
    /// Bytes moved.
    pub moved_bytes: u64,
}

/// Collects [`Figures`] from what happens to a tree, be it in a simulation or in a store that runs
/// in lockstep: tell it of each sealed memtable, of each edit before it is applied, and of each
/// rest.
#[derive(Clone, Debug, Default)]
pub struct FigureCounter {
    parts: Parts,
    eager_bytes: u64,
    /// New runs since the last rest with the bytes written to them.
    new_runs: Vec<(RunId, u64)>,
    rests: u64,
    runs: u64,
    runs_l0_one: u64,
    runs_max: u64,
    live_bytes: u64,
    /// Since the last rest.
    space_cost: f64,
    space_cost_peak: f64,
    space_cost_sum: f64,
}

impl FigureCounter {
    /// Nothing has happened yet.
    pub fn new() -> FigureCounter {
        FigureCounter::default()
    }

    /// A memtable was sealed when the newest versions that are not deleted came to `live_bytes`,
    /// those in memory included.
    pub fn sealed(&mut self, live_bytes: u64) {
        self.parts.sealed += 1;
        self.live_bytes = live_bytes;
    }

    /// All requests that wrote, up to the memtable that is sealed next, came to `bytes` logical
    /// bytes.
    pub fn requested(&mut self, bytes: u64) {
        self.parts.requested_bytes = bytes;
    }

    /// `edit` is about to be applied to `tree`.
    pub fn merge(&mut self, tree: &Tree, edit: &TreeEdit) {
        self.parts.flushes += edit.flushes;
        self.parts.flush_bytes += edit.flushed.bytes;
        let mut written = 0;
        for (_, counters) in &edit.counters {
            self.count(counters);
            written += counters.bytes_written;
        }
        // The output stands first.
        match edit.add.first() {
            Some(addition) if addition.place != AddPlace::Into => {
                self.new_runs.push((addition.run, written));
            }
            _ => self.eager_bytes += written,
        }
        self.use_space(tree.disk_bytes() + written);
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
        }
    }

    fn use_space(&mut self, bytes: u64) {
        self.space_cost = self.space_cost.max(ratio(bytes as f64, self.live_bytes));
    }

    /// `tree` has come to rest.
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

        self.space_cost_peak = self.space_cost_peak.max(self.space_cost);
        self.space_cost_sum += self.space_cost;
        self.space_cost = 0.0;
    }

    /// Returns the figures so far; to be asked at rest.
    pub fn figures(&self) -> Figures {
        let parts = self.parts;
        let flush_writes = parts.flush_written_bytes + parts.merge_memory_bytes;
        let system_bytes = flush_writes + parts.merge_written_bytes;
        Figures {
            write_cost_eager: ratio(self.eager_bytes as f64, parts.flush_bytes),
            write_cost_system: ratio(system_bytes as f64, parts.flush_bytes),
            read_cost_mean: ratio(self.runs as f64, self.rests),
            read_cost_mean_l0_one: ratio(self.runs_l0_one as f64, self.rests),
            runs_max: self.runs_max,
            space_cost_peak: self.space_cost_peak,
            space_cost_mean: ratio(self.space_cost_sum, self.rests),
            write_cost_blocks: ratio(parts.blocks_written as f64 * 1e6, parts.requested_bytes),
            parts,
        }
    }
}

/// `part / whole`, or 0 where there is no whole.
fn ratio(part: f64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part / whole as f64 }
}
