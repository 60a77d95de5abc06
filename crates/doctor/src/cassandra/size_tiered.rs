//! How `SizeTieredCompactionStrategy` picks compactions.

use lsmith_policy::{Eager, MergePolicy, Shape, Stack};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, Reason, TreeView};

/// Cassandra's compactions of tables of like size.
///
/// Cassandra merges the tables of a bucket wherever they are in age. Here a merge takes neighbours:
/// of a bucket, the most that lie together. They differ where a table is older than a larger one.
///
/// Source: `SizeTieredCompactionStrategy.getBuckets` and `mostInterestingBucket` of Cassandra 5.0,
/// for tables that are read alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SizeTiered {
    /// The least and the most tables of a compaction: `min_threshold`, `max_threshold`.
    pub(crate) tables: (usize, usize),
    /// Tables below this number of bytes are in one bucket: `min_sstable_size`.
    pub(crate) small_bytes: u64,
}

/// `bucket_low` and `bucket_high`: a table is in a bucket if its bytes are between these parts of
/// the mean of the bucket.
const BUCKET: (f64, f64) = (0.5, 1.5);

/// Tables of like size.
#[derive(Debug, Default)]
struct Bucket {
    bytes: f64,
    /// The places of the runs, newest first.
    runs: Vec<usize>,
}

impl Bucket {
    fn mean(&self) -> f64 {
        self.bytes / self.runs.len().max(1) as f64
    }
}

impl Default for SizeTiered {
    fn default() -> SizeTiered {
        SizeTiered { tables: (4, 32), small_bytes: 50 << 20 }
    }
}

impl SizeTiered {
    /// Returns the buckets, small tables first. `runs` has the bytes of each run.
    fn buckets(&self, runs: &[f64]) -> Vec<Bucket> {
        let mut by_size: Vec<usize> = (0..runs.len()).collect();
        by_size.sort_by(|left, right| runs[*left].total_cmp(&runs[*right]));
        let small = self.small_bytes as f64;
        let mut buckets: Vec<Bucket> = Vec::new();
        for place in by_size {
            let bytes = runs[place];
            let holds = |bucket: &Bucket| {
                let mean = bucket.mean();
                let is_like = bytes > mean * BUCKET.0 && bytes < mean * BUCKET.1;
                is_like || bytes < small && mean < small
            };
            let at = buckets.iter().position(holds).unwrap_or_else(|| {
                buckets.push(Bucket::default());
                buckets.len() - 1
            });
            buckets[at].bytes += bytes;
            buckets[at].runs.push(place);
        }
        buckets.iter_mut().for_each(|bucket| bucket.runs.sort_unstable());
        buckets
    }

    /// Returns the first and the last of the runs to merge.
    fn due(&self, runs: &[f64]) -> Option<(usize, usize)> {
        let mut buckets = self.buckets(runs);
        buckets.sort_by(|left, right| left.mean().total_cmp(&right.mean()));
        buckets.iter().find_map(|bucket| {
            let rows = bucket.runs.chunk_by(|left, right| right - left == 1);
            let longest = rows.max_by_key(|row| row.len())?;
            // The oldest of more than a compaction may have.
            let from = longest.len().saturating_sub(self.tables.1);
            let row = &longest[from..];
            (row.len() >= self.tables.0).then(|| (row[0], row[row.len() - 1]))
        })
    }
}

impl MergePolicy for SizeTiered {
    fn spec(&self) -> Spec {
        Spec::bare("SizeTieredCompactionStrategy")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let stack = Stack::of(view);
        let runs: Vec<f64> = stack.runs().iter().map(|run| run.bytes as f64).collect();
        let (from, last) = self.due(&runs)?;
        // The memtable counts as flushed, as Cassandra does.
        let reason = Reason::new("SizeTieredCompactionStrategy", [0; 3]);
        stack.merge(from, last + 1, Eager::Always, reason)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: self.tables.0 as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_like_size_are_merged_once_there_are_enough() {
        let policy = SizeTiered { small_bytes: 0, ..SizeTiered::default() };
        assert_eq!(policy.due(&[10.0, 11.0, 9.0]), None);
        assert_eq!(policy.due(&[10.0, 11.0, 9.0, 10.0, 40.0]), Some((0, 3)));
        // The bucket of small tables comes first.
        assert_eq!(policy.due(&[1.0, 1.0, 1.0, 1.0, 40.0, 41.0, 39.0, 40.0]), Some((0, 3)));
        // Three lie together, and the fourth beyond a larger one.
        assert_eq!(policy.due(&[10.0, 11.0, 9.0, 40.0, 10.0]), None);
        // Below 50 MiB all are alike.
        assert_eq!(SizeTiered::default().due(&[10.0, 1.0, 900.0, 40_000.0]), Some((0, 3)));
        let many = [1e9; 40];
        assert_eq!(SizeTiered::default().due(&many), Some((8, 39)));
    }
}
