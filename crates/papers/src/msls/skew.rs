//! Write cost over the skew of requests.

use super::design::Design;
use super::panels::{cost_axis, in_a_hurry};
use super::steady::{StageCosts, Steady, simulated};
use crate::form::*;

/// Keys of the paper, for the formula.
const KEYS: u64 = 100_000_000;
/// Keys of simulations.
const KEYS_SIMULATED: u64 = 1_000_000;
const KEYS_SIMULATED_QUICK: u64 = 330_000;

/// The step between skews, and the greatest skew.
const STEP: f64 = 0.1;
const STEPS: u32 = 16;
/// The simulated skews.
const SIMULATED: [f64; 7] = [0.0, 0.4, 0.8, 0.99, 1.2, 1.4, 1.6];
const SIMULATED_QUICK: [f64; 3] = [0.0, 0.8, 1.6];

/// The costs by the paper's definitions, computed independently of this crate.
const BY_DEFINITION: [(f64, f64); 4] = [(0.4, 25.58), (0.8, 21.18), (0.99, 12.68), (1.2, 4.31)];

const MODEL: &str = "model";
const KEYED: &str = "keyed simulation";
const PANELS: [&str; 2] = ["a", "b"];

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let keys = task.pick(in_a_hurry(KEYS_SIMULATED_QUICK, task.effort), KEYS_SIMULATED);
    let skews = task.pick(&SIMULATED_QUICK[..], &SIMULATED);
    let panels = [(PANELS[0], KEYS), (PANELS[1], keys)];
    let mut figure = task.figure(panels.map(|(name, keys)| {
        let x = Axis::linear("skew of a Zipf distribution", "");
        Panel::new(name, format!("{keys} unique keys"), x, cost_axis())
    }));
    let grid = (0..=STEPS).map(|step| f64::from(step) * STEP);
    let mut skews_of_model: Vec<f64> = grid.chain(SIMULATED).collect();
    skews_of_model.sort_by(f64::total_cmp);
    skews_of_model.dedup_by(|right, left| *right - *left < STEP / 20.0);
    for (panel, keys) in panels {
        for skew in &skews_of_model {
            let cost = Design::leveldb(keys, *skew).write_cost()?;
            figure.point(panel, MODEL, *skew, cost);
        }
    }
    let steady = |_: &str, skew| Steady::new(Design::leveldb(keys, skew));
    let sweep = simulated(task, spots(PANELS[1], [KEYED], skews, steady))?;
    sweep.draw(&mut figure, StageCosts::write_cost);
    claims(&mut figure);
    for (spot, found) in sweep.iter() {
        let off = percent_off(spot.job.design.write_cost()?, found.write_cost());
        let claim = format!("{keys} keys, skew {}: model off from simulation, %", spot.x);
        figure.near(claim, 0.0, off, 3.0);
    }
    figure.explain(
        "model off from simulation",
        "at such a skew ten requests per key are for so few different keys that deep levels are \
         not swept once: they still hold what was loaded, and next to nothing comes down to the \
         last one, which in the steady state of the model would.",
    );
    figure.note(
        "LevelDB's design, as in msls-wa. Popular keys lie anywhere in key order. Simulated after \
         a load of all keys in order, with ten requests per key.",
    );
    Ok(figure)
}

fn claims(figure: &mut Figure) {
    for (skew, cost) in BY_DEFINITION {
        let at_skew = figure.curve("a", MODEL).find(|(x, _)| (x - skew).abs() < STEP / 20.0);
        let claim = format!("100 M keys, skew {skew}: model by the paper's definitions");
        figure.near(claim, cost, at_skew.map(|(_, model)| model), 0.005 * cost);
    }
    let curve: Vec<(f64, f64)> = figure.curve("a", MODEL).collect();
    let rises = most(curve.windows(2).map(|pair| pair[1].1 - pair[0].1));
    let claim = "100 M keys: the most that the write cost rises from one skew to the next (it \
                 falls)";
    figure.at_most(claim, rises, 0.0);
}
