//! Figure 1: where the keys of each level lie, under windows that go down in turn.

use super::scale::{scale_note, small_scale};
use super::steady::{Bench, Keys};
use crate::form::*;
use anyhow::Context;
use lsmith_sim::BlockSim;
use lsmith_tree::text::parse_key;
use lsmith_tree::{Key, LevelId};

/// The setting of figure 2a at its smallest size.
const DATASET_MB: u64 = 20;
/// Keys are below this.
const DOMAIN: f64 = 1e9;
/// The parts of the key space that are counted.
const BINS: usize = 40;
/// The bins on one side of the arrow: a tenth of the key space.
const BESIDE: usize = BINS / 10;

/// The keys of two levels at one moment.
#[derive(Clone, Debug)]
struct Found {
    /// For each bin the records of level 1 and of level 2, relative to an even spread.
    densities: Vec<[f64; 2]>,
    /// The part of the key space before the next window.
    arrow: f64,
    /// The part of level 1, and the part of the key space, of the next window.
    window: [f64; 2],
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let shrink = small_scale(task.effort);
    let bench = Bench::small("rr", Keys::Uniform, DATASET_MB, shrink);
    let found = task.each(task.name(), &[bench], Bench::work, spread)?;
    let found = found.first().context("one job has one result")?;
    let x = Axis::linear("key space", "%");
    let y = Axis::linear("density of keys", "over the mean of the level");
    let mut figure = task.figure([Panel::only(x, y)]);
    for (level, curve) in ["level 1", "level 2"].into_iter().enumerate() {
        let bins = found.densities.iter().enumerate();
        let point = |(bin, densities): (usize, &[f64; 2])| {
            ((bin as f64 + 0.5) / BINS as f64 * 100.0, densities[level])
        };
        figure.draw("", curve, bins.map(point));
    }
    claims(&mut figure, found);
    figure.note(format!(
        "The next window of level 1 starts at {:.1} % of the key space.",
        found.arrow * 100.0
    ));
    figure.note(scale_note([(DATASET_MB, shrink)]));
    Ok(figure)
}

fn spread(bench: &Bench, ticker: &Ticker<'_>) -> anyhow::Result<Found> {
    bench.when_steady(bench.sim()?, ticker, |settled| {
        // The paper looks at any moment. Here the arrow is near the middle, so that both of its
        // sides are seen.
        for _ in 0..100 {
            if (0.3..0.7).contains(&arrow(&settled.course.index)?) {
                break;
            }
            settled.watch(0.1)?;
        }
        let window_blocks = bench.rate * (bench.sizes().memory_blocks * 10) as f64;
        found(&settled.course.index, window_blocks)
    })
}

/// Returns the part of the key space before the next window of level 1.
fn arrow(sim: &BlockSim) -> anyhow::Result<f64> {
    let text = sim.tree().memo().text("next_L1").context("rr notes its next window")?;
    Ok(place(&parse_key(text)?))
}

/// Returns the part of the key space below `key`.
pub(super) fn place(key: &Key) -> f64 {
    let mut first = [0; 8];
    let bytes = key.len().min(8);
    first[..bytes].copy_from_slice(&key[..bytes]);
    u64::from_be_bytes(first) as f64 / DOMAIN
}

fn found(sim: &BlockSim, window_blocks: f64) -> anyhow::Result<Found> {
    let mut densities = vec![[0.0; 2]; BINS];
    for level in [1, 2] {
        let runs = sim.tree().runs_at(LevelId::Disk(level));
        let all: u64 = runs.iter().map(|run| run.size().entries).sum();
        for cell in runs.iter().flat_map(|run| run.cells()) {
            let bin = (place(&cell.start) * BINS as f64) as usize;
            let records = cell.size.entries as f64;
            densities[bin.min(BINS - 1)][level - 1] += records * BINS as f64 / all as f64;
        }
    }
    let arrow = arrow(sim)?;
    let run = sim.tree().runs_at(LevelId::Disk(1)).first().context("level 1 is nearly full")?;
    let starts: Vec<f64> = run.cells().map(|cell| place(&cell.start)).collect();
    let ahead: Vec<f64> = starts.into_iter().filter(|start| *start >= arrow).collect();
    let window = window_blocks as usize;
    let end = ahead.get(window).copied().unwrap_or(1.0);
    let part = ahead.len().min(window) as f64 / run.cell_count() as f64;
    Ok(Found { densities, arrow, window: [part, end - arrow] })
}

fn claims(figure: &mut Figure, found: &Found) {
    let Found { densities, arrow, window: [part, spanned] } = found;
    let level = |level: usize| densities.iter().map(move |densities| densities[level]);
    let uneven = farthest(level(1).map(|density| (density - 1.0) * 100.0));
    let claim = "level 2 has a uniform distribution of keys: farthest from the mean, %";
    figure.at_most(claim, uneven, 15.0);
    let at = (arrow * BINS as f64).round() as usize;
    let mean = |bins: &[[f64; 2]]| mean(bins.iter().map(|bin| bin[0])).unwrap_or(0.0);
    let before = mean(&densities[at.saturating_sub(BESIDE)..at]);
    let after = mean(&densities[at..(at + BESIDE).min(BINS)]);
    let low = least(level(0)).unwrap_or(0.0);
    let claim = "level 1 bottoms where windows went down last: density of the tenth before the \
                 arrow, less the least of any bin";
    figure.at_most(claim, before - low, 0.3);
    let claim = "level 1 peaks where windows go down next: density of the tenth behind the arrow \
                 over that before it";
    figure.at_least(claim, after / before, 2.0);
    let claim = "the next window spans a narrower part of the key space than of level 1: ratio";
    figure.at_most(claim, spanned / part, 0.9);
}
