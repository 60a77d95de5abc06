//! `kCompactionStyleUniversal`.

use super::compensated;
use lsmith_policy::{Eager, MergePolicy, Shape, Stack};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, Reason, Slice, TreeView};

/// RocksDB's universal style. It differs from lsmith's `universal`, which follows Lim et al., in
/// one rule: if nothing else applies, the newest runs are merged until `trigger` runs are left, not
/// one more.
///
/// Source: `UniversalCompactionBuilder::PickCompaction` of RocksDB 7.8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Universal {
    pub(crate) trigger: u64,
    pub(crate) size_ratio: f64,
    pub(crate) space_max: f64,
    /// The least and the most runs of one compaction.
    pub(crate) widths: (u64, u64),
    /// Bytes of a value, which a delete may hide.
    pub(crate) value_bytes: f64,
}

/// A run: its bytes, and what it weighs with the deletes in it.
struct SortedRun {
    bytes: f64,
    weight: f64,
}

impl Universal {
    /// Returns the end of the row of runs that starts with run `from`: each is at most as large as
    /// all newer ones of the row together and `size_ratio` percent.
    fn row_end(&self, runs: &[SortedRun], from: usize) -> usize {
        let mut row_bytes = runs[from].weight;
        let mut end = from + 1;
        while end < runs.len()
            && ((end - from) as u64) < self.widths.1
            && row_bytes * (100.0 + self.size_ratio) / 100.0 >= runs[end].bytes
        {
            row_bytes += runs[end].weight;
            end += 1;
        }
        end
    }

    fn due(&self, runs: &[SortedRun]) -> Option<(usize, usize, Reason)> {
        let (oldest, newer) = runs.split_last()?;
        let newer_bytes: f64 = newer.iter().map(|run| run.weight).sum();
        if newer_bytes * 100.0 >= oldest.bytes * self.space_max {
            return Some((0, runs.len(), Reason::new("UniversalSizeAmplification", [0; 3])));
        }
        let rows = (0..runs.len()).map(|from| (from, self.row_end(runs, from)));
        let mut wide = rows.filter(|(from, end)| (end - from) as u64 >= self.widths.0);
        if let Some((from, end)) = wide.next() {
            return Some((from, end, Reason::new("UniversalSizeRatio", [0; 3])));
        }
        let excess = (runs.len() as u64).checked_sub(self.trigger).filter(|excess| *excess > 0)?;
        Some((0, excess as usize + 1, Reason::new("UniversalSortedRunNum", [0; 3])))
    }
}

impl MergePolicy for Universal {
    fn spec(&self) -> Spec {
        Spec::bare("kCompactionStyleUniversal")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let stack = Stack::of(view);
        if (stack.len() as u64) < self.trigger {
            return None;
        }
        let weigh = |slice: &Slice| compensated(slice.size(), self.value_bytes);
        let runs = stack.runs().iter().filter_map(|run| {
            let slices = view.tree.run(run.id)?.1.slices();
            let weight = slices.iter().map(weigh).sum();
            Some(SortedRun { bytes: run.bytes as f64, weight })
        });
        let runs: Vec<SortedRun> = runs.collect();
        let (from, end, reason) = self.due(&runs)?;
        // The memtable counts as flushed, as RocksDB does.
        stack.merge(from, end, Eager::Always, reason)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.trigger }
    }
}
