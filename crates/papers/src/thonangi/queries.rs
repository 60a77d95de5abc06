//! Lookups and range queries: the paper measured them for its technical report, and says in section
//! V that partial and block-preserving merges add little to what they cost under `full-p`.

use super::density::place;
use super::scale::{scale, scale_note};
use super::steady::{Bench, Keys};
use super::sweep::and_own;
use crate::form::*;
use lsmith_tree::{LevelId, Run, Tree};
use std::sync::Arc;

const PANELS: [(&str, Keys); 2] = [("uniform", Keys::Uniform), ("normal", Keys::NORMAL)];
const DATASET_MB: u64 = 800;
/// The paper's `full-p`, which stores records most densely: it keeps no block that is not full.
const DENSE: &str = "full(reuse=false)";
const POLICIES: [&str; 5] = [DENSE, "full", "rr", "choose_best", "mixed"];
/// The records of a range query.
const RANGES: [u64; 3] = [10, 100, 1000];
/// Moments at which queries are made.
const MOMENTS: u32 = 40;
/// Megabytes of requests between two moments, at the paper's scale. All moments span a little more
/// than the requests after which `full` has emptied level 1 again.
const MEGABYTES_BETWEEN: f64 = 5.0;
/// Range queries of each length at a moment.
const QUERIES: u32 = 100;
/// A block may be empty up to the waste factor of 0.2, so blocks are 1.25 times as many at most.
const BLOCKS_MAX: f64 = 1.25;

/// The mean cost of queries, in blocks below memory.
#[derive(Clone, Debug, Default)]
struct Found {
    /// Blocks that a lookup of a present key reads.
    lookup: f64,
    /// Blocks that a range query of each length reads.
    ranges: [f64; RANGES.len()],
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let shrink = scale(task.effort, DATASET_MB);
    let settings = PANELS.into_iter().flat_map(|(panel, keys)| {
        spots(panel, and_own(&POLICIES, task), &[1.0], |policy, _| {
            Bench::standard(policy, keys, DATASET_MB, shrink).with_own(task)
        })
    });
    let sweep = Sweep::measure(task, task.name(), settings.collect(), Bench::work, queried)?;
    let mut figure = task.figure(PANELS.map(|(name, _)| {
        let x = Axis::log("records of a range query; 1 is a lookup", "");
        Panel::new(name, format!("{name} keys"), x, Axis::log("blocks read by a query", ""))
    }));
    for (spot, found) in sweep.iter() {
        figure.point(spot.panel, &spot.curve, 1.0, found.lookup);
        let ranges =
            RANGES.iter().zip(found.ranges).map(|(records, blocks)| (*records as f64, blocks));
        figure.draw(spot.panel, &spot.curve, ranges);
    }
    for (panel, _) in PANELS {
        for policy in &POLICIES[1..] {
            let over = |x| figure.ratio(panel, policy, DENSE, x);
            let lookups = over(1.0);
            let ranges = most(RANGES.iter().filter_map(|records| over(*records as f64)));
            let claim = format!("{panel}, {policy}: lookups over full-p (little overhead): ratio");
            figure.at_most(claim, lookups, BLOCKS_MAX);
            let claim = format!(
                "{panel}, {policy}: range queries over full-p, any length (little overhead): ratio"
            );
            figure.at_most(claim, ranges, BLOCKS_MAX);
        }
    }
    figure.note(
        "A lookup of a present key reads one block of each level, from level 1 down to that of the \
         key; memory costs nothing. A range query reads every block that it overlaps, at least one \
         of each level. Queries are spread over the records evenly, and over a cycle of level 1.",
    );
    figure.note(scale_note([(DATASET_MB, shrink)]));
    Ok(figure)
}

fn queried(bench: &Bench, ticker: &Ticker<'_>) -> anyhow::Result<Found> {
    bench.when_steady(bench.sim()?, ticker, |settled| {
        let mut sum = Found::default();
        for moment in 0..MOMENTS {
            settled.watch(MEGABYTES_BETWEEN / bench.shrink as f64)?;
            let index = Densities::of(settled.course.index.tree());
            sum.lookup += index.lookup();
            for (blocks, records) in sum.ranges.iter_mut().zip(RANGES) {
                *blocks += index.range_queries(records as f64, f64::from(moment) / 40.0);
            }
        }
        let moments = f64::from(MOMENTS);
        Ok(Found { lookup: sum.lookup / moments, ranges: sum.ranges.map(|sum| sum / moments) })
    })
}

/// The records of each level over the key space, memory first.
struct Densities(Vec<LevelDensity>);

/// The records of one level, assumed to be spread evenly from each block up to the next.
struct LevelDensity {
    /// The first key of each block, as a part of the key space.
    starts: Vec<f64>,
    /// The records before each block, and all of them at last. Deletes do not count.
    records_before: Vec<f64>,
}

impl Densities {
    fn of(tree: &Tree) -> Densities {
        let levels = (1..tree.levels().len()).map(LevelId::Disk);
        let all = std::iter::once(LevelId::Memory).chain(levels);
        Densities(all.map(|level| LevelDensity::of(tree.runs_at(level))).collect())
    }

    /// Returns the records below the part `place` of the key space.
    fn records_below(&self, place: f64) -> f64 {
        self.0.iter().map(|level| level.records_below(place)).sum()
    }

    /// Returns the part of the key space below which there are so many records.
    fn place_of(&self, records: f64) -> f64 {
        let mut low = 0.0;
        let mut high = 1.0;
        // A 60th of a millionth of a millionth of the key space is less than a key.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.records_below(middle) < records {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// Returns the blocks that the lookup of a present key reads, in the mean.
    fn lookup(&self) -> f64 {
        let blocks = self.0.iter().enumerate().map(|(depth, level)| depth as f64 * level.all());
        blocks.sum::<f64>() / self.records_below(1.0)
    }

    /// Returns the blocks that a range query of so many records reads, in the mean. `offset` moves
    /// the queries by a part of the distance between them.
    fn range_queries(&self, records: f64, offset: f64) -> f64 {
        let all = self.records_below(1.0) - records;
        let blocks = (0..QUERIES).map(|query| {
            let first = all * (f64::from(query) + offset) / f64::from(QUERIES);
            let [start, end] = [first, first + records].map(|count| self.place_of(count));
            self.0[1..].iter().map(|level| level.blocks_between(start, end)).sum::<f64>()
        });
        blocks.sum::<f64>() / f64::from(QUERIES)
    }
}

impl LevelDensity {
    fn of(runs: &[Arc<Run>]) -> LevelDensity {
        let mut level = LevelDensity { starts: Vec::new(), records_before: vec![0.0] };
        let mut records = 0;
        for cell in runs.iter().flat_map(|run| run.cells()) {
            level.starts.push(place(&cell.start));
            records += cell.size.entries - cell.size.tombstones;
            level.records_before.push(records as f64);
        }
        level
    }

    fn all(&self) -> f64 {
        self.records_before[self.starts.len()]
    }

    /// Returns the block that may hold the key at `place`.
    fn block(&self, place: f64) -> usize {
        self.starts.partition_point(|start| *start <= place).saturating_sub(1)
    }

    fn records_below(&self, place: f64) -> f64 {
        let block = self.block(place);
        let Some(start) = self.starts.get(block) else { return 0.0 };
        let end = self.starts.get(block + 1).copied().unwrap_or(1.0);
        let part = ((place - start) / (end - start)).clamp(0.0, 1.0);
        let before = self.records_before[block];
        before + part * (self.records_before[block + 1] - before)
    }

    /// Returns the blocks that a walk from `start` to `end` reads.
    fn blocks_between(&self, start: f64, end: f64) -> f64 {
        if self.starts.is_empty() {
            return 0.0;
        }
        (self.block(end) - self.block(start) + 1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{Densities, LevelDensity};

    /// Level 1 has 10 records in one block, level 2 has 90 in three.
    fn two_levels() -> Densities {
        let memory = LevelDensity { starts: vec![], records_before: vec![0.0] };
        let upper = LevelDensity { starts: vec![0.0], records_before: vec![0.0, 10.0] };
        let starts = vec![0.0, 0.2, 0.6];
        let lower = LevelDensity { starts, records_before: vec![0.0, 30.0, 60.0, 90.0] };
        Densities(vec![memory, upper, lower])
    }

    #[test]
    fn lookups_read_one_block_of_each_level_down_to_their_key() {
        assert!((two_levels().lookup() - 1.9).abs() < 1e-9);
    }

    #[test]
    fn range_queries_read_what_they_overlap() {
        let index = two_levels();
        // Below 0.2 there are 30 records of level 2, and 2 of level 1.
        assert!((index.place_of(32.0) - 0.2).abs() < 1e-9);
        // A query of everything reads every block.
        assert!((index.range_queries(100.0, 0.0) - 4.0).abs() < 1e-9);
        // Of all short queries two pass an end of a block.
        let short = index.range_queries(1.0, 0.5);
        assert!((short - 2.02).abs() < 0.011, "{short}");
    }
}
