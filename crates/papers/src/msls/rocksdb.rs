//! Compares random choice of the table to merge with choice in key order.

use super::design::{Design, Pick};
use super::panels::{POPULARITIES, in_a_hurry, panels};
use super::steady::{StageCosts, Steady, simulated};
use crate::form::*;

/// Keys of the formula.
const KEYS: [u64; 5] = [1_000_000, 3_300_000, 10_000_000, 33_000_000, 100_000_000];
/// Keys of simulations.
const KEYS_SIMULATED: [u64; 3] = [330_000, 1_000_000, 3_300_000];
const KEYS_SIMULATED_QUICK: [u64; 1] = [330_000];

/// The paper's gain of choice in key order over random choice, in percent, with ten million keys.
const SAVED: f64 = 32.0;
const KEYS_SAVED: u64 = 10_000_000;

/// The cost with random choice by the paper's definitions: uniform and Zipf 0.99.
const BY_DEFINITION: [(u64, [f64; 2]); 3] =
    [(1_000_000, [17.49, 8.99]), (10_000_000, [28.24, 13.82]), (100_000_000, [39.21, 19.07])];

const PICKS: [(Pick, &str); 2] = [(Pick::Random, "random"), (Pick::InTurn, "round_robin")];

fn curve(source: &str, pick: &str) -> String {
    format!("{source}, {pick}")
}

const MODEL: &str = "model";
const KEYED: &str = "keyed";

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let mut figure = task.figure(panels(&Axis::log("unique keys", ""), str::to_owned));
    let hurried = KEYS_SIMULATED_QUICK.map(|keys| in_a_hurry(keys, task.effort));
    let keys_simulated = task.pick(hurried.to_vec(), KEYS_SIMULATED.to_vec());
    let mut all_keys = [&keys_simulated[..], &KEYS[..]].concat();
    all_keys.sort_unstable();
    all_keys.dedup();
    let mut all = Vec::new();
    for (panel, _, skew) in POPULARITIES {
        for (pick, name) in PICKS {
            for keys in &all_keys {
                let x = *keys as f64;
                let design = Design { pick, ..Design::leveldb(*keys, skew) };
                figure.point(panel, &curve(MODEL, name), x, design.write_cost()?);
                if keys_simulated.contains(keys) {
                    let job = Steady::new(design);
                    all.push(Spot { panel, curve: curve(KEYED, name), x, job });
                }
            }
        }
    }
    simulated(task, all)?.draw(&mut figure, StageCosts::write_cost);
    claims(&mut figure, &keys_simulated);
    for claim in ["saved in keyed simulation", "random: model off"] {
        figure.explain(
            claim,
            "tables hold as much wherever they are, so there are more of them where a level is \
             dense, and a choice among tables favours dense places, which meet less below. The \
             model takes each place to be chosen as often as any other.",
        );
    }
    figure.note(
        "LevelDB's design, as in msls-wa, with another choice of the table that goes down: RocksDB \
         takes the largest, which is as good as any, so that no part of a level is thinner than \
         others. In turn, what was just swept is thin, and the next level is met by more.",
    );
    Ok(figure)
}

/// Returns by how many percent choice in key order costs less.
fn saved(figure: &Figure, panel: &str, source: &str, keys: u64) -> Option<f64> {
    let [random, in_turn] = PICKS.map(|(_, pick)| curve(source, pick));
    figure.excess(panel, &in_turn, &random, keys as f64).map(|percent| -percent)
}

fn claims(figure: &mut Figure, simulated: &[u64]) {
    let found = saved(figure, POPULARITIES[0].0, MODEL, KEYS_SAVED);
    let claim = format!("uniform, {KEYS_SAVED} keys: choice in turn costs less, %");
    figure.near(claim, SAVED, found, 1.0);
    for (index, (panel, name, _)) in POPULARITIES.into_iter().enumerate() {
        for (keys, costs) in BY_DEFINITION {
            let cost = figure.y(panel, &curve(MODEL, PICKS[0].1), keys as f64);
            let claim = format!("{name}, {keys} keys: random choice by the paper's definitions");
            figure.near(claim, costs[index], cost, 0.005 * costs[index]);
        }
        for keys in simulated {
            for (_, pick) in PICKS {
                let [model, keyed] = [MODEL, KEYED].map(|source| curve(source, pick));
                let off = figure.excess(panel, &model, &keyed, *keys as f64);
                let claim = format!("{name}, {keys} keys, {pick}: model off from simulation, %");
                figure.near(claim, 0.0, off, 6.5);
            }
            let Some(by_model) = saved(figure, panel, MODEL, *keys) else { continue };
            let keyed = saved(figure, panel, KEYED, *keys);
            let claim =
                format!("{name}, {keys} keys: saved in keyed simulation, %, against the model's");
            figure.near(claim, by_model, keyed, 3.0);
        }
    }
}
