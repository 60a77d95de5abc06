//! What merges read and write with the paper's buffer caches: section V says which sizes they had,
//! and why costs count writes alone.

use super::scale::{cost_axis, dataset_axis, scale, scale_note};
use super::steady::{Bench, Course, Keys, REQUESTS_MAX};
use super::sweep::{KEEPING, least, most};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all};
use lsmith_sim::BlockSim;

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

/// One measurement.
struct Cached {
    keys: &'static str,
    size_mb: u64,
    policy: &'static str,
    bench: Bench,
}

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let mut jobs = Vec::new();
    for (name, keys) in KEYS {
        for size_mb in SIZES_MB {
            for policy in KEEPING {
                let bench = Bench::standard(policy, keys, size_mb, scale(effort, size_mb));
                let bench = Bench { rate: RATE, ..bench };
                jobs.push(Cached { keys: name, size_mb, policy, bench });
            }
        }
    }
    let found = measure_all(info.name, &jobs, progress)?;
    let mut figure = Figure::empty(info.name, info.title, panels());
    for (job, found) in jobs.iter().zip(&found) {
        for (cache_mb, reads) in CACHES_MB.iter().zip(found.reads) {
            figure.point(&reads_panel(job.keys, job.size_mb), job.policy, *cache_mb as f64, reads);
        }
        figure.point(&writes_panel(job.keys), job.policy, job.size_mb as f64, found.writes);
    }
    claims_of_merges(&mut figure);
    claims_of_nodes(&mut figure, &jobs, &found);
    explain(&mut figure);
    notes(&mut figure);
    figure.note(scale_note(SIZES_MB.map(|size_mb| (size_mb, scale(effort, size_mb)))));
    Ok(figure)
}

fn reads_panel(keys: &str, size_mb: u64) -> String {
    format!("{keys}-{size_mb}")
}

fn writes_panel(keys: &str) -> String {
    format!("{keys}-writes")
}

fn panels() -> Vec<Panel> {
    let reads = Axis::linear("blocks read by merges", "per MB of requests");
    let of_keys = |(keys, _): (&str, Keys)| {
        let with_caches = SIZES_MB.map(|size_mb| Panel {
            name: reads_panel(keys, size_mb),
            title: format!("{keys} keys, {size_mb} MB"),
            x: Axis::linear("cache", "MB"),
            y: reads.clone(),
        });
        let writes = Panel {
            name: writes_panel(keys),
            title: format!("{keys} keys, with any cache"),
            x: dataset_axis(),
            y: cost_axis(),
        };
        with_caches.into_iter().chain([writes]).collect::<Vec<Panel>>()
    };
    KEYS.into_iter().flat_map(of_keys).collect()
}

/// Reads and writes of one policy with one cache.
fn cost(figure: &Figure, keys: &str, size_mb: u64, policy: &str, cache: f64) -> Option<(f64, f64)> {
    let reads = figure.y(&reads_panel(keys, size_mb), policy, cache)?;
    let writes = figure.y(&writes_panel(keys), policy, size_mb as f64)?;
    Some((reads, writes))
}

/// Judges what sections III and V say about reads and writes of merges.
fn claims_of_merges(figure: &mut Figure) {
    for (keys, _) in KEYS {
        for size_mb in SIZES_MB {
            let ratio = |figure: &Figure, policy: &str| {
                let (reads, writes) = cost(figure, keys, size_mb, policy, 0.0)?;
                Some(reads / writes)
            };
            let ratios = || KEEPING.iter().filter_map(|policy| ratio(figure, policy));
            for (end, ratio) in [("least", least(ratios())), ("most", most(ratios()))] {
                figure.claims.extend(ratio.map(|ratio| {
                    let claim = format!(
                        "{keys}, {size_mb} MB: merges read roughly as many blocks as they write, \
                         {end} of all policies: ratio"
                    );
                    Claim::near(claim, 1.0, ratio, ROUGHLY)
                }));
            }
        }
    }
    for cache in CACHES_MB {
        let (alike, pairs) = ranked(figure, cache as f64);
        let percent = (pairs > 0).then(|| alike as f64 * 100.0 / pairs as f64);
        figure.claim(percent.map(|percent| {
            let claim = format!(
                "cache of {cache} MB: write costs stand for all I/O of merges, which ranks \
                 policies alike: % of pairs"
            );
            Claim::at_least(claim, percent, 80.0)
        }));
    }
}

/// Returns the number of pairs of policies whose reads and writes together have the order of their
/// writes, and the number of pairs whose writes differ.
fn ranked(figure: &Figure, cache: f64) -> (usize, usize) {
    let mut pairs = 0;
    let mut alike = 0;
    for (keys, _) in KEYS {
        for size_mb in SIZES_MB {
            for (index, one) in KEEPING.iter().enumerate() {
                for other in &KEEPING[index + 1..] {
                    let of = |policy| cost(figure, keys, size_mb, policy, cache);
                    let Some((one, other)) = of(one).zip(of(other)) else { continue };
                    if (one.1 / other.1 - 1.0).abs() * 100.0 > TIE {
                        pairs += 1;
                        let all = |(reads, writes): (f64, f64)| reads + writes;
                        alike += usize::from((one.1 > other.1) == (all(one) > all(other)));
                    }
                }
            }
        }
    }
    (alike, pairs)
}

/// Judges what section V says about internal nodes in the cache.
fn claims_of_nodes(figure: &mut Figure, jobs: &[Cached], found: &[Found]) {
    let default_mb = CACHES_MB[1];
    let nodes_mb = jobs.iter().zip(found).map(|(job, found)| {
        let nodes = (found.blocks * job.bench.shrink) as f64 / NODE_ENTRIES_MIN;
        nodes / BLOCKS_PER_MB as f64
    });
    figure.claim(most(nodes_mb).map(|nodes_mb| {
        let claim = format!(
            "a cache of {default_mb} MB is large enough for all internal nodes: at most, MB"
        );
        Claim::at_most(claim, nodes_mb, default_mb as f64)
    }));
    // A merge of whole levels reads each node once for the blocks below it.
    let by_nodes = 100.0 / NODE_ENTRIES_MIN;
    for (keys, _) in KEYS {
        for size_mb in SIZES_MB {
            for cache in &CACHES_MB[1..] {
                let saved = saved_percent(figure, keys, size_mb, "full", *cache);
                figure.claim(saved.map(|saved| {
                    let claim = format!(
                        "{keys}, {size_mb} MB, cache of {cache} MB: full benefits more from data \
                         blocks than from internal nodes: reads saved, %"
                    );
                    Claim::at_least(claim, saved, by_nodes)
                }));
            }
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

/// Returns how many percent of the blocks that merges read a cache saves.
fn saved_percent(
    figure: &Figure,
    keys: &str,
    size_mb: u64,
    policy: &str,
    cache: u64,
) -> Option<f64> {
    let panel = reads_panel(keys, size_mb);
    let all = figure.y(&panel, policy, 0.0)?;
    Some((1.0 - figure.y(&panel, policy, cache as f64)? / all) * 100.0)
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
        let words = SIZES_MB.iter().flat_map(|&size_mb| {
            let figure = &*figure;
            KEEPING.iter().filter_map(move |policy| {
                let saved = |cache| saved_percent(figure, keys, size_mb, policy, cache);
                let [default, large] = [CACHES_MB[1], CACHES_MB[2]].map(saved);
                Some(format!("{policy} at {size_mb} MB {:.1} and {:.1}", default?, large?))
            })
        });
        let saved = words.collect::<Vec<String>>().join("; ");
        figure.note(format!("{keys}: reads saved by 16 and 100 MB, in percent: {saved}."));
    }
}

impl Job for Cached {
    type Output = Found;

    fn work(&self) -> u64 {
        self.bench.work()
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Found> {
        let Cached { bench, .. } = self;
        let sizes = bench.sizes();
        let workload = bench.workload(0.5, REQUESTS_MAX)?;
        let caches = CACHES_MB.map(|megabytes| megabytes * BLOCKS_PER_MB / bench.shrink);
        let index = BlockSim::new(&bench.build_policy()?, sizes).with_caches(&caches);
        let mut course = Course { index, ops: workload.ops(), ticker };
        course.run(workload.load_ops())?;
        let mut settled = bench.settled(course, sizes)?;
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
    }
}
