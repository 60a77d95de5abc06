//! Write cost over the skew of requests.

use super::design::Design;
use super::panels::{cost_axis, in_a_hurry, percent_off};
use super::steady::{StageCosts, Steady};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::plot::Axis;
use lsmith_lab::{SharedProgress, measure_all};

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

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let (keys, skews) = if effort.is_quick {
        (in_a_hurry(KEYS_SIMULATED_QUICK, effort), &SIMULATED_QUICK[..])
    } else {
        (KEYS_SIMULATED, &SIMULATED[..])
    };
    let panels = PANELS.iter().zip([KEYS, keys]).map(|(name, keys)| Panel {
        name: (*name).to_owned(),
        title: format!("{keys} unique keys"),
        x: Axis::linear("skew of a Zipf distribution", ""),
        y: cost_axis(),
    });
    let mut figure = Figure::empty(info.name, info.title, panels.collect());
    let grid = (0..=STEPS).map(|step| f64::from(step) * STEP);
    let mut skews_of_model: Vec<f64> = grid.chain(SIMULATED).collect();
    skews_of_model.sort_by(f64::total_cmp);
    skews_of_model.dedup_by(|right, left| *right - *left < STEP / 20.0);
    for (panel, keys) in PANELS.iter().zip([KEYS, keys]) {
        for skew in &skews_of_model {
            let cost = Design::leveldb(keys, *skew).write_cost()?;
            figure.point(panel, MODEL, *skew, cost);
        }
    }
    let steady = |skew: &f64| Steady::new(Design::leveldb(keys, *skew));
    let jobs: Vec<Steady> = skews.iter().map(steady).collect();
    let found: Vec<StageCosts> = measure_all(KEYED, &jobs, progress)?;
    for (job, found) in jobs.iter().zip(&found) {
        figure.point("b", KEYED, job.design.skew, found.write_cost());
    }
    claims(&mut figure);
    for (job, found) in jobs.iter().zip(&found) {
        let design = &job.design;
        let off = percent_off(design.write_cost()?, found.write_cost());
        let claim = format!("{keys} keys, skew {}: model off from simulation, %", design.skew);
        figure.claim(Claim::near(claim, 0.0, off, 3.0));
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
        let near = |(_, model)| {
            let claim = format!("100 M keys, skew {skew}: model by the paper's definitions");
            Claim::near(claim, cost, model, 0.005 * cost)
        };
        let at_skew = figure.curve("a", MODEL).find(|(x, _)| (x - skew).abs() < STEP / 20.0);
        figure.claim(at_skew.map(near));
    }
    let curve: Vec<(f64, f64)> = figure.curve("a", MODEL).collect();
    let rises = curve.windows(2).map(|pair| pair[1].1 - pair[0].1).fold(f64::MIN, f64::max);
    let claim =
        "100 M keys: the most that the write cost rises from one skew to the next (it falls)";
    figure.claim(Claim::at_most(claim, rises, 0.0));
}
