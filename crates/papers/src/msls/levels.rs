//! Write cost over the number of levels, and over the ratio of their sizes.

use super::design::{Design, LEVEL1_ENTRIES, Levels};
use super::panels::{POPULARITIES, cost_axis, in_a_hurry};
use super::steady::{Steady, simulated};
use crate::form::*;
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
const LEVELS_SIMULATED: [f64; 3] = [3.0, 4.0, 5.0];
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

/// The popularities, with their panels over levels and over ratios.
const PANELS: [(&str, f64, [&str; 2]); 2] = [
    (POPULARITIES[0].1, POPULARITIES[0].2, ["a", "c"]),
    (POPULARITIES[1].1, POPULARITIES[1].2, ["b", "d"]),
];

const FIXED: &str = "model, geometric sizes";
const OPTIMIZED: &str = "model, optimized sizes";

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

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let xs = [
        Axis::linear("levels without level 0", ""),
        Axis::log("size of a level over the one above", ""),
    ];
    let mut figure = task.figure([0, 1].into_iter().flat_map(|over| {
        PANELS.map(|(name, _, panels)| {
            let title = format!("{name}, {KEYS} unique keys");
            Panel::new(panels[over], title, xs[over].clone(), cost_axis())
        })
    }));
    for (_, skew, [over_levels, over_ratios]) in PANELS {
        for levels in LEVELS {
            // Where levels grow by ten they are LevelDB's.
            let design = match levels {
                LEVELS_USUAL => Design::leveldb(KEYS, skew),
                _ => with_levels(KEYS, skew, levels),
            };
            let x = levels as f64;
            figure.point(over_levels, FIXED, x, design.write_cost()?);
            let optimized = design.optimized(Levels::AsMany)?;
            figure.point(over_levels, OPTIMIZED, x, optimized.write_cost()?);
        }
        for ratio in RATIOS {
            let cost = with_ratio(KEYS, skew, ratio).write_cost()?;
            figure.point(over_ratios, FIXED, ratio, cost);
        }
    }
    definitions(&mut figure);
    shapes(&mut figure);
    simulate(&mut figure, task)?;
    figure.note(format!(
        "LevelDB's design as in msls-wa. Panels a and b: so many levels from 10 MiB to all keys, \
         evenly apart ({LEVELS_USUAL}: LevelDB's ratio of 10), or with the sizes that cost least. \
         Panels c and d: levels of 10 MiB and up by a ratio. A level is one more run to look into.",
    ));
    Ok(figure)
}

/// Adds the claims on costs that are known from elsewhere.
fn definitions(figure: &mut Figure) {
    for ((name, _, [panel, _]), costs) in PANELS.into_iter().zip(BY_DEFINITION) {
        for (curve, cost) in [FIXED, OPTIMIZED].into_iter().zip(costs) {
            let found = figure.y(panel, curve, LEVELS_USUAL as f64);
            let claim =
                format!("{name}, {LEVELS_USUAL} levels, {curve}: by the paper's definitions");
            figure.near(claim, cost, found, 0.005 * cost);
        }
    }
}

/// Adds the claims on the shape of curves.
fn shapes(figure: &mut Figure) {
    for (name, _, [over_levels, over_ratios]) in PANELS {
        let [fixed, optimized] =
            [FIXED, OPTIMIZED].map(|curve| figure.curve(over_levels, curve).collect::<Vec<_>>());
        let pairs = fixed.iter().zip(&optimized);
        let gain = least(pairs.map(|(fixed, optimized)| -percent_off(optimized.1, fixed.1)));
        let claim = format!("{name}: optimized sizes of as many levels gain, %, at least");
        figure.at_least(claim, gain, 0.0);
        let enough = optimized.iter().filter(|(levels, _)| *levels >= LEVELS_ENOUGH);
        let costs: Vec<f64> = enough.map(|(_, cost)| *cost).collect();
        let ends = most(costs.iter().copied()).zip(least(costs));
        let claim = format!(
            "{name}: optimized sizes of {LEVELS_ENOUGH} levels and more differ, %, at most"
        );
        figure.at_most(claim, ends.map(|(most, least)| percent_off(most, least)), 2.0);
        let over_ratios = figure.curve(over_ratios, FIXED);
        let least = over_ratios.min_by(|one, other| one.1.total_cmp(&other.1));
        let claim = format!("{name}: the ratio of sizes that writes least, at most");
        figure.at_most(claim, least.map(|(ratio, _)| ratio), 5.0);
    }
}

/// Adds simulations at a handful of points, and the formula for as many keys.
fn simulate(figure: &mut Figure, task: &Task<'_>) -> anyhow::Result<()> {
    let keys = task.pick(in_a_hurry(KEYS_SIMULATED_QUICK, task.effort), KEYS_SIMULATED);
    let keyed = format!("keyed, {keys} keys");
    let all = PANELS.into_iter().flat_map(|(_, skew, [over_levels, over_ratios])| {
        let levels = |_: &str, x| Steady::new(with_levels(keys, skew, x as usize));
        let ratio = |_: &str, x| Steady::new(with_ratio(keys, skew, x));
        let mut own = spots(over_levels, [&keyed], &LEVELS_SIMULATED, levels);
        own.extend(spots(over_ratios, [&keyed], &RATIOS_SIMULATED, ratio));
        own
    });
    let sweep = simulated(task, all.collect())?;
    for (spot, found) in sweep.iter() {
        let model = spot.job.design.write_cost()?;
        figure.point(spot.panel, &format!("model, {keys} keys"), spot.x, model);
        figure.point(spot.panel, &keyed, spot.x, found.write_cost());
        let own = PANELS.iter().find(|(_, _, panels)| panels.contains(&spot.panel));
        let Some((name, _, [over_levels, _])) = own else { continue };
        let what = if spot.panel == *over_levels { "levels" } else { "times as large" };
        let claim = format!("{name}, {keys} keys, {} {what}: model off from simulation, %", spot.x);
        figure.near(claim, 0.0, percent_off(model, found.write_cost()), OFF_MAX);
    }
    Ok(())
}
