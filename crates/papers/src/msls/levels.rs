//! Write cost over the number of levels, and over the ratio of their sizes.

use super::design::{Design, LEVEL1_ENTRIES, Levels, SKEWS};
use super::panels::{cost_axis, in_a_hurry, percent_off};
use super::steady::{StageCosts, Steady};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::plot::Axis;
use lsmith_lab::{SharedProgress, measure_all};
use lsmith_model::formulas::LeveledModel;

/// Keys of the paper, for the formula.
const KEYS: u64 = 100_000_000;
/// Keys of simulations.
const KEYS_SIMULATED: u64 = 1_000_000;
const KEYS_SIMULATED_QUICK: u64 = 330_000;

/// Numbers of levels without level 0, as in the paper.
const LEVELS: [usize; 8] = [3, 4, 5, 6, 7, 8, 9, 10];
/// The number of LevelDB with a hundred million keys.
const LEVELS_USUAL: usize = 5;
/// With fewer keys these have ratios as the paper's numbers.
const LEVELS_SIMULATED: [usize; 3] = [3, 4, 5];
/// The number from which on optimized sizes gain nothing from another level.
const LEVELS_ENOUGH: f64 = 6.0;
/// Ratios of the sizes of neighbouring levels.
const RATIOS: [f64; 9] = [2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0];
const RATIOS_SIMULATED: [f64; 3] = [4.0, 10.0, 20.0];

/// The costs with LevelDB's sizes and with optimized ones by the paper's definitions, computed
/// independently of this crate.
const BY_DEFINITION: [[f64; 2]; 2] = [[25.83, 23.67], [12.68, 11.76]];

/// How far the formula may be off simulation, in percent.
const OFF_MAX: f64 = 5.0;

/// The panels of each popularity: over levels, and over ratios.
const OVER_LEVELS: [&str; 2] = ["a", "b"];
const OVER_RATIOS: [&str; 2] = ["c", "d"];

const FIXED: &str = "model, geometric sizes";
const OPTIMIZED: &str = "model, optimized sizes";

fn model_of(keys: u64) -> String {
    format!("model, {keys} keys")
}

fn keyed(keys: u64) -> String {
    format!("keyed, {keys} keys")
}

/// Returns LevelDB's design with so many levels without level 0, whose sizes grow evenly from level
/// 1 to all keys.
fn with_levels(keys: u64, skew: f64, levels: usize) -> Design {
    let growth = keys as f64 / LEVEL1_ENTRIES;
    let size = |level: usize| LEVEL1_ENTRIES * growth.powf(level as f64 / (levels - 1) as f64);
    Design { sizes: (0..levels - 1).map(size).collect(), ..Design::leveldb(keys, skew) }
}

fn with_ratio(keys: u64, skew: f64, ratio: f64) -> Design {
    let sizes = LeveledModel::geometric(LEVEL1_ENTRIES, ratio, keys as f64);
    Design { sizes, ..Design::leveldb(keys, skew) }
}

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let panel = |name: &str, skew: &str, x: Axis| Panel {
        name: name.to_owned(),
        title: format!("{skew}, {KEYS} unique keys"),
        x,
        y: cost_axis(),
    };
    let levels = || Axis::linear("levels without level 0", "");
    let ratios = || Axis::log("size of a level over the one above", "");
    let over_levels = OVER_LEVELS.iter().zip(SKEWS).map(|(name, (skew, _))| (name, skew, levels()));
    let over_ratios = OVER_RATIOS.iter().zip(SKEWS).map(|(name, (skew, _))| (name, skew, ratios()));
    let panels = over_levels.chain(over_ratios).map(|(name, skew, x)| panel(name, skew, x));
    let mut figure = Figure::empty(info.name, info.title, panels.collect());
    for (index, (_, skew)) in SKEWS.iter().enumerate() {
        for levels in LEVELS {
            // Where levels grow by ten they are LevelDB's.
            let design = match levels {
                LEVELS_USUAL => Design::leveldb(KEYS, *skew),
                _ => with_levels(KEYS, *skew, levels),
            };
            let x = levels as f64;
            figure.point(OVER_LEVELS[index], FIXED, x, design.write_cost()?);
            let optimized = design.optimized(Levels::AsMany)?;
            figure.point(OVER_LEVELS[index], OPTIMIZED, x, optimized.write_cost()?);
        }
        for ratio in RATIOS {
            let cost = with_ratio(KEYS, *skew, ratio).write_cost()?;
            figure.point(OVER_RATIOS[index], FIXED, ratio, cost);
        }
    }
    definitions(&mut figure);
    shapes(&mut figure);
    let keys = match effort.is_quick {
        true => in_a_hurry(KEYS_SIMULATED_QUICK, effort),
        false => KEYS_SIMULATED,
    };
    simulate(&mut figure, keys, progress)?;
    figure.note(format!(
        "LevelDB's design as in msls-wa. Panels a and b: so many levels from 10 MiB to all keys, \
         evenly apart ({LEVELS_USUAL}: LevelDB's ratio of 10), or with the sizes that cost least. \
         Panels c and d: levels of 10 MiB and up by a ratio. A level is one more run to look into.",
    ));
    Ok(figure)
}

/// Adds the claims on costs that are known from elsewhere.
fn definitions(figure: &mut Figure) {
    for ((panel, (name, _)), costs) in OVER_LEVELS.iter().zip(SKEWS).zip(BY_DEFINITION) {
        for (curve, cost) in [FIXED, OPTIMIZED].into_iter().zip(costs) {
            let found = figure.y(panel, curve, LEVELS_USUAL as f64);
            let claim =
                format!("{name}, {LEVELS_USUAL} levels, {curve}: by the paper's definitions");
            figure.claim(found.map(|found| Claim::near(claim, cost, found, 0.005 * cost)));
        }
    }
}

/// Adds the claims on the shape of curves.
fn shapes(figure: &mut Figure) {
    for (index, (name, _)) in SKEWS.iter().enumerate() {
        let curve = |curve: &str| figure.curve(OVER_LEVELS[index], curve).collect::<Vec<_>>();
        let [fixed, optimized] = [FIXED, OPTIMIZED].map(curve);
        let gains: Vec<f64> = fixed
            .iter()
            .zip(&optimized)
            .map(|(fixed, optimized)| -percent_off(optimized.1, fixed.1))
            .collect();
        let enough = optimized.iter().filter(|(levels, _)| *levels >= LEVELS_ENOUGH);
        let costs: Vec<f64> = enough.map(|(_, cost)| *cost).collect();
        let [least, most] = [f64::min, f64::max].map(|end| costs.iter().copied().reduce(end));
        let gain = gains.iter().copied().reduce(f64::min);
        figure.claim(gain.map(|gain| {
            let claim = format!("{name}: optimized sizes of as many levels gain, %, at least");
            Claim::at_least(claim, gain, 0.0)
        }));
        figure.claim(least.zip(most).map(|(least, most)| {
            let claim = format!(
                "{name}: optimized sizes of {LEVELS_ENOUGH} levels and more differ, %, at most"
            );
            Claim::at_most(claim, percent_off(most, least), 2.0)
        }));
        let over_ratios: Vec<(f64, f64)> = figure.curve(OVER_RATIOS[index], FIXED).collect();
        let least = over_ratios.iter().copied().reduce(|one, other| match other.1 < one.1 {
            true => other,
            false => one,
        });
        figure.claim(least.map(|(ratio, _)| {
            let claim = format!("{name}: the ratio of sizes that writes least, at most");
            Claim::at_most(claim, ratio, 5.0)
        }));
    }
}

/// Adds simulations at a handful of points, and the formula for as many keys.
fn simulate(figure: &mut Figure, keys: u64, progress: &SharedProgress) -> anyhow::Result<()> {
    let mut jobs: Vec<(&str, f64, Steady)> = Vec::new();
    for (index, (_, skew)) in SKEWS.iter().enumerate() {
        for levels in LEVELS_SIMULATED {
            let steady = Steady::new(with_levels(keys, *skew, levels));
            jobs.push((OVER_LEVELS[index], levels as f64, steady));
        }
        for ratio in RATIOS_SIMULATED {
            let steady = Steady::new(with_ratio(keys, *skew, ratio));
            jobs.push((OVER_RATIOS[index], ratio, steady));
        }
    }
    let steady: Vec<Steady> = jobs.iter().map(|(_, _, steady)| steady.clone()).collect();
    let found: Vec<StageCosts> = measure_all("keyed simulation", &steady, progress)?;
    for ((panel, x, steady), found) in jobs.iter().zip(&found) {
        let model = steady.design.write_cost()?;
        figure.point(panel, &model_of(keys), *x, model);
        figure.point(panel, &keyed(keys), *x, found.write_cost());
        let skew = if steady.design.skew > 0.0 { SKEWS[1].0 } else { SKEWS[0].0 };
        let what = match OVER_LEVELS.contains(panel) {
            true => "levels",
            false => "times as large",
        };
        let claim = format!("{skew}, {keys} keys, {x} {what}: model off from simulation, %");
        figure.claim(Claim::near(claim, 0.0, percent_off(model, found.write_cost()), OFF_MAX));
    }
    Ok(())
}
