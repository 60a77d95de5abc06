//! What merges read and write with the paper's buffer caches: section V says which sizes they had,
//! and why costs count writes alone.

use super::scale::{cost_axis, dataset_axis, scale, scale_note};
use super::steady::{Bench, Keys};
use super::sweep::{KEEPING, and_own};
use crate::form::*;

/// The caches, in megabytes: none, the default, and the cache of section V-A.
const CACHES_MB: [u64; 3] = [0, 16, 100];
const SIZES_MB: [u64; 2] = [200, 800];
const KEYS: [(&str, Keys); 2] = [("uniform", Keys::Uniform), ("normal", Keys::NORMAL)];
/// The blocks that the paper calls a megabyte.
const BLOCKS_PER_MB: u64 = 250;
/// The rate of merges in section V-A.
const RATE: f64 = 0.05;
/// The least entries of an internal node: it fills half of 4096 bytes, with keys of 4 bytes and
/// places of 4 bytes.
const NODE_ENTRIES_MIN: f64 = 256.0;
/// By how much reads may differ from writes to be roughly as many.
const ROUGHLY: f64 = 0.1;
/// Costs that differ by at most this are not ordered, in percent.
const TIE: f64 = 5.0;

/// The blocks of one policy, keys and size of the data.
#[derive(Clone, Debug)]
struct Found {
    /// Blocks that merges read per megabyte of requests, with each cache.
    reads: [f64; CACHES_MB.len()],
    /// Blocks that merges write per megabyte of requests.
    writes: f64,
    /// The data blocks of all levels on storage, at the scale of the measurement.
    blocks: u64,
}

/// Keys and a size of the data, with the panel of what merges read.
#[derive(Clone, Debug)]
struct Setting {
    keys: &'static str,
    size_mb: u64,
    reads: String,
    writes: String,
}

/// Returns all keys with all sizes.
fn settings() -> impl Iterator<Item = Setting> {
    KEYS.into_iter().flat_map(|(keys, _)| {
        SIZES_MB.map(|size_mb| Setting {
            keys,
            size_mb,
            reads: format!("{keys}-{size_mb}"),
            writes: format!("{keys}-writes"),
        })
    })
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let policies = and_own(&KEEPING, task);
    let mut jobs = Vec::new();
    for (_, keys) in KEYS {
        for size_mb in SIZES_MB {
            for policy in &policies {
                let bench = Bench::standard(policy, keys, size_mb, scale(task.effort, size_mb));
                jobs.push(Bench { rate: RATE, ..bench.with_own(task) });
            }
        }
    }
    let found = task.each(task.name(), &jobs, Bench::work, cached)?;
    let mut figure = task.figure(KEYS.into_iter().flat_map(|(keys, _)| panels(keys)));
    for (setting, found) in settings().zip(found.chunks(policies.len())) {
        for (policy, found) in policies.iter().zip(found) {
            let caches = CACHES_MB.map(|cache_mb| cache_mb as f64);
            figure.draw(&setting.reads, policy, caches.into_iter().zip(found.reads));
            figure.point(&setting.writes, policy, setting.size_mb as f64, found.writes);
        }
    }
    claims_of_merges(&mut figure);
    claims_of_nodes(&mut figure, &jobs, &found);
    explain(&mut figure);
    notes(&mut figure);
    figure.note(scale_note(SIZES_MB.map(|size_mb| (size_mb, scale(task.effort, size_mb)))));
    Ok(figure)
}

fn panels(keys: &str) -> Vec<Panel> {
    let reads = Axis::linear("blocks read by merges", "per MB of requests");
    let own = settings().filter(|setting| setting.keys == keys);
    let with_caches = own.map(|setting| {
        let title = format!("{keys} keys, {} MB", setting.size_mb);
        Panel::new(setting.reads, title, Axis::linear("cache", "MB"), reads.clone())
    });
    let title = format!("{keys} keys, with any cache");
    let writes = Panel::new(format!("{keys}-writes"), title, dataset_axis(), cost_axis());
    with_caches.chain([writes]).collect()
}

impl Setting {
    /// Returns what merges of one policy read with one cache, and what they write, in blocks.
    fn cost(&self, figure: &Figure, policy: &str, cache: f64) -> Option<(f64, f64)> {
        let writes = figure.y(&self.writes, policy, self.size_mb as f64)?;
        Some((figure.y(&self.reads, policy, cache)?, writes))
    }

    /// Returns how many percent of the blocks that merges read a cache saves.
    fn saved(&self, figure: &Figure, policy: &str, cache: u64) -> Option<f64> {
        let all = figure.y(&self.reads, policy, 0.0)?;
        Some((1.0 - figure.y(&self.reads, policy, cache as f64)? / all) * 100.0)
    }
}

/// Judges what sections III and V say about reads and writes of merges.
fn claims_of_merges(figure: &mut Figure) {
    for setting in settings() {
        let costs: Vec<(f64, f64)> =
            KEEPING.iter().filter_map(|policy| setting.cost(figure, policy, 0.0)).collect();
        let ratios = || costs.iter().map(|(reads, writes)| reads / writes);
        for (end, ratio) in [("least", least(ratios())), ("most", most(ratios()))] {
            let claim = format!(
                "{}, {} MB: merges read roughly as many blocks as they write, {end} of all \
                 policies: ratio",
                setting.keys, setting.size_mb
            );
            figure.near(claim, 1.0, ratio, ROUGHLY);
        }
    }
    for cache in CACHES_MB {
        let (alike, pairs) = ranked_alike(figure, cache as f64);
        let percent = (pairs > 0).then(|| alike as f64 * 100.0 / pairs as f64);
        let claim = format!(
            "cache of {cache} MB: write costs stand for all I/O of merges, which ranks policies \
             alike: % of pairs"
        );
        figure.at_least(claim, percent, 80.0);
    }
}

/// Returns the number of pairs of policies whose reads and writes together have the order of their
/// writes, and the number of pairs whose writes differ.
fn ranked_alike(figure: &Figure, cache: f64) -> (usize, usize) {
    let counts = settings().map(|setting| {
        ranked(&KEEPING, |one, other| {
            let (one, other) =
                (setting.cost(figure, one, cache)?, setting.cost(figure, other, cache)?);
            let all = |(reads, writes): (f64, f64)| reads + writes;
            let differs = percent_off(one.1, other.1).abs() > TIE;
            differs.then(|| (one.1 - other.1, all(one) - all(other)))
        })
    });
    counts.fold((0, 0), |sum, (alike, pairs)| (sum.0 + alike, sum.1 + pairs))
}

/// Judges what section V says about internal nodes in the cache.
fn claims_of_nodes(figure: &mut Figure, jobs: &[Bench], found: &[Found]) {
    let default_mb = CACHES_MB[1];
    let is_of_paper = |bench: &Bench| KEEPING.contains(&bench.policy.as_str());
    let of_paper = jobs.iter().zip(found).filter(|(bench, _)| is_of_paper(bench));
    let nodes_mb = of_paper.map(|(bench, found)| {
        let nodes = (found.blocks * bench.shrink) as f64 / NODE_ENTRIES_MIN;
        nodes / BLOCKS_PER_MB as f64
    });
    let claim =
        format!("a cache of {default_mb} MB is large enough for all internal nodes: at most, MB");
    figure.at_most(claim, most(nodes_mb), default_mb as f64);
    // A merge of whole levels reads each node once for the blocks below it.
    let by_nodes = 100.0 / NODE_ENTRIES_MIN;
    for setting in settings() {
        for cache in &CACHES_MB[1..] {
            let claim = format!(
                "{}, {} MB, cache of {cache} MB: full benefits more from data blocks than from \
                 internal nodes: reads saved, %",
                setting.keys, setting.size_mb
            );
            figure.at_least(claim, setting.saved(figure, "full", *cache), by_nodes);
        }
    }
}

/// Explains why a cache as large as memory saves `full` nothing.
fn explain(figure: &mut Figure) {
    let cache_mb = CACHES_MB[1];
    let why = format!(
        "the first merge into level 1 writes as many blocks as memory and the cache hold, \
         {cache_mb} MB. The next merge reads them in the order in which they were written. For \
         each block that it writes, the block leaves that it is about to read. So an LRU cache \
         saves nothing until it is larger than a merge's input and output"
    );
    let part = format!("cache of {cache_mb} MB: full benefits more");
    figure.explain(&part, why);
}

fn notes(figure: &mut Figure) {
    figure.note(
        "All blocks that merges read and write go through the cache, as in the paper. The paper \
         does not say so of those that are written. But merges read a block once, and then it is \
         gone: a cache saves reads of merges only if blocks enter it when they are written. Blocks \
         leave it when the merge that has replaced them ends, and if it is full, those whose last \
         use is longest ago. Internal nodes take no room in it.",
    );
    for (keys, _) in KEYS {
        let own = settings().filter(|setting| setting.keys == keys);
        let words = own.flat_map(|setting| {
            let figure = &*figure;
            KEEPING.iter().filter_map(move |policy| {
                let saved = |cache| setting.saved(figure, policy, cache);
                let [default, large] = [CACHES_MB[1], CACHES_MB[2]].map(saved);
                let size_mb = setting.size_mb;
                Some(format!("{policy} at {size_mb} MB {:.1} and {:.1}", default?, large?))
            })
        });
        let saved = joined("; ", words);
        figure.note(format!("{keys}: reads saved by 16 and 100 MB, in percent: {saved}."));
    }
}

fn cached(bench: &Bench, ticker: &Ticker<'_>) -> anyhow::Result<Found> {
    let caches = CACHES_MB.map(|megabytes| megabytes * BLOCKS_PER_MB / bench.shrink);
    bench.when_steady(bench.sim()?.with_caches(&caches), ticker, |settled| {
        let before = settled.course.index.uncached();
        let start = settled.megabytes();
        let steady = settled.measure()?;
        let megabytes = settled.megabytes() - start;
        let index = &settled.course.index;
        let mut reads = [0.0; CACHES_MB.len()];
        for ((reads, missed), before) in reads.iter_mut().zip(index.uncached()).zip(before) {
            *reads = missed.since(before).merges as f64 / megabytes;
        }
        let blocks = index.tree().disk_runs().map(|run| run.cell_count()).sum();
        Ok(Found { reads, writes: steady.write_cost_blocks, blocks })
    })
}
