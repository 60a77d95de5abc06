//! The density of a level along the key space, when its tables are merged in key order.

use super::design::{Design, ITEM_BYTES};
use super::panels::{POPULARITIES, in_a_hurry};
use super::steady::Steady;
use crate::form::*;
use lsmith_model::Popularity;
use lsmith_sim::{Event, rank_key};
use lsmith_tree::text::parse_key;
use lsmith_tree::{KeyRange, LevelId, Place, Tree};

const KEYS: u64 = 3_300_000;
const KEYS_QUICK: u64 = 330_000;

/// The number of measured parts of the key space.
const BINS: usize = 50;

/// The measured level: the one before the last.
fn level(design: &Design) -> usize {
    design.sizes.len()
}

const MODEL: &str = "model";
const KEYED: &str = "keyed simulation";

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let keys = task.pick(in_a_hurry(KEYS_QUICK, task.effort), KEYS);
    let jobs = POPULARITIES.map(|(_, _, skew)| Steady::new(Design::leveldb(keys, skew)));
    let panels = POPULARITIES.iter().zip(&jobs).map(|((panel, name, _), job)| {
        let title = format!("{name}, level {} of {keys} unique keys", level(&job.design));
        let x = Axis::linear("keys behind the place that was swept last", "share of all");
        Panel::new(*panel, title, x, Axis::linear("density", "entries per key"))
    });
    let mut figure = task.figure(panels);
    let found = task.each(KEYED, &jobs, Steady::work, sweep)?;
    for (((panel, name, _), job), swept) in POPULARITIES.iter().zip(&jobs).zip(&found) {
        let model = densities(&job.design)?;
        for (curve, densities) in [(MODEL, &model), (KEYED, &swept.densities)] {
            let places = (0..BINS).map(|bin| (bin as f64 + 0.5) / BINS as f64);
            figure.draw(panel, curve, places.zip(densities.iter().copied()));
        }
        claims(&mut figure, name, swept, &model);
    }
    figure.note(
        "LevelDB's design, as in msls-wa. A sweep goes up through the keys and begins anew, so \
         what lies right above its last place was swept longest ago, and what lies right below it \
         just now: the level is seen from its last place down, around the end of the key space. \
         Simulated densities are means over flushes.",
    );
    Ok(figure)
}

/// Returns the densities by formula. A place that was swept `x` sweeps ago holds the unique keys of
/// the requests since then.
fn densities(design: &Design) -> anyhow::Result<Vec<f64>> {
    let popularity = Popularity::zipf(design.keys, design.skew)?;
    let size = design.sizes.last().copied().unwrap_or_default();
    let interval = popularity.interval(size);
    let middle = |bin: usize| (bin as f64 + 0.5) / BINS as f64;
    let density = |bin: usize| popularity.unique(interval * middle(bin)) / popularity.keys();
    Ok((0..BINS).map(density).collect())
}

/// The measurements of a level.
#[derive(Clone, Debug)]
struct Swept {
    /// Entries per key, from the part swept last to the part swept first.
    densities: Vec<f64>,
    /// Entries of the last level that a merge reads per entry that moves down.
    overlap: f64,
}

fn sweep(steady: &Steady, ticker: &Ticker<'_>) -> anyhow::Result<Swept> {
    let design = &steady.design;
    let level = level(design);
    let keys = design.keys;
    // The first half of the requests brings the level to a steady state.
    let skipped = steady.work() / design.memtable as u64 / 2;
    let mut sums = vec![0.0; BINS];
    let mut looks = 0.0;
    let mut rests = 0;
    let mut down = 0;
    let mut met = 0;
    steady.simulate(ticker, &mut |event| match event {
        Event::Rest { tree } => {
            rests += 1;
            if rests > skipped && add_densities(tree, level, keys, &mut sums) {
                looks += 1.0;
            }
        }
        Event::Merge { tree, plan, .. } if rests > skipped => {
            let size = |input: &lsmith_tree::Input| {
                tree.run(input.run).map_or(0, |(_, run)| run.size_within(&input.range).bytes)
            };
            if let (Place::Into(target), [source, below]) = (plan.place, &plan.inputs[..])
                && tree.run(target).is_some_and(|(at, _)| at == LevelId::Disk(level + 1))
            {
                down += size(source);
                met += size(below);
            }
        }
        _ => {}
    })?;
    let densities = sums.iter().map(|sum| sum / looks).collect();
    Ok(Swept { densities, overlap: met as f64 / down as f64 })
}

/// Adds the densities of the level, and returns true, if the level has been swept.
fn add_densities(tree: &Tree, level: usize, keys: u64, sums: &mut [f64]) -> bool {
    let cursor = tree.memo().text(&format!("next_L{level}")).and_then(|text| parse_key(text).ok());
    let (Some(cursor), Some(run)) = (cursor, tree.runs_at(LevelId::Disk(level)).first()) else {
        return false;
    };
    // The key of the cursor is its first eight bytes, unless the cursor is at the end.
    let mut first = [0; 8];
    let bytes = cursor.len().min(8);
    first[..bytes].copy_from_slice(&cursor[..bytes]);
    let last = u64::from_be_bytes(first).min(keys);
    let per_bin = keys as f64 / BINS as f64;
    let entries = |from: u64, end: u64| {
        let range = KeyRange { start: rank_key(from), end: Some(rank_key(end)) };
        run.size_within(&range).bytes as f64 / ITEM_BYTES
    };
    for (bin, sum) in sums.iter_mut().enumerate() {
        let behind = |bins: usize| (bins as f64 * per_bin) as u64;
        // Bins go down from the cursor and wrap around the end.
        let end = (last + keys - behind(bin)) % keys;
        let from = (last + keys - behind(bin + 1)) % keys;
        let found =
            if from < end { entries(from, end) } else { entries(0, end) + entries(from, keys) };
        *sum += found / per_bin;
    }
    true
}

fn claims(figure: &mut Figure, name: &str, swept: &Swept, model: &[f64]) {
    let pairs = || swept.densities.iter().zip(model);
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / BINS as f64;
    let model_mean = mean(&mut model.iter().copied());
    let off = mean(&mut pairs().map(|(found, model)| (found - model).abs())) / model_mean;
    let claim = format!("{name}: density off from the model, % of the mean, mean over places");
    figure.at_most(claim, off * 100.0, 5.0);
    let ends = swept.densities.iter().take(BINS / 10).sum::<f64>()
        / swept.densities.iter().rev().take(BINS / 10).sum::<f64>();
    let claim = format!(
        "{name}: density of the tenth swept last over that of the tenth swept first (not uniform)"
    );
    figure.at_most(claim, ends, 0.3);
    let claim = format!("{name}: entries of the next level met by each that goes down, below 10");
    figure.at_most(claim, swept.overlap, 10.0);
}
