//! Compares random choice of the table to merge with choice in key order.

use super::design::{Design, Pick, SKEWS};
use super::panels::{PANELS, in_a_hurry, panels, percent_off};
use super::steady::{StageCosts, Steady};
use crate::{Claim, Effort, Figure, FigureInfo};
use lsmith_lab::plot::Axis;
use lsmith_lab::{SharedProgress, measure_all};

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

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let panels = panels(&Axis::log("unique keys", ""), str::to_owned);
    let mut figure = Figure::empty(info.name, info.title, panels);
    let simulated = if effort.is_quick {
        KEYS_SIMULATED_QUICK.map(|keys| in_a_hurry(keys, effort)).to_vec()
    } else {
        KEYS_SIMULATED.to_vec()
    };
    let mut keys = [&simulated[..], &KEYS[..]].concat();
    keys.sort_unstable();
    keys.dedup();
    let mut jobs = Vec::new();
    for (panel, (_, skew)) in PANELS.iter().zip(SKEWS) {
        for (pick, name) in PICKS {
            for keys in &keys {
                let design = Design { pick, ..Design::leveldb(*keys, skew) };
                figure.point(panel, &curve(MODEL, name), *keys as f64, design.write_cost()?);
                if simulated.contains(keys) {
                    jobs.push((*panel, name, Steady::new(design)));
                }
            }
        }
    }
    let steady: Vec<Steady> = jobs.iter().map(|(_, _, steady)| steady.clone()).collect();
    let found: Vec<StageCosts> = measure_all("keyed simulation", &steady, progress)?;
    for ((panel, name, steady), found) in jobs.iter().zip(&found) {
        figure.point(panel, &curve(KEYED, name), steady.design.keys as f64, found.write_cost());
    }
    claims(&mut figure, &simulated);
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
    let y = |pick: &str| figure.y(panel, &curve(source, pick), keys as f64);
    Some(-percent_off(y(PICKS[1].1)?, y(PICKS[0].1)?))
}

fn claims(figure: &mut Figure, simulated: &[u64]) {
    let claim = format!("uniform, {KEYS_SAVED} keys: choice in turn costs less, %");
    let found = saved(figure, PANELS[0], MODEL, KEYS_SAVED);
    figure.claim(found.map(|found| Claim::near(claim, SAVED, found, 1.0)));
    for (index, (panel, (name, _))) in PANELS.iter().zip(SKEWS).enumerate() {
        for (keys, costs) in BY_DEFINITION {
            let cost = figure.y(panel, &curve(MODEL, PICKS[0].1), keys as f64);
            let claim = format!("{name}, {keys} keys: random choice by the paper's definitions");
            let near = |cost| Claim::near(claim, costs[index], cost, 0.005 * costs[index]);
            figure.claim(cost.map(near));
        }
        for keys in simulated {
            for (_, pick) in PICKS {
                let y = |source: &str| figure.y(panel, &curve(source, pick), *keys as f64);
                let off = y(MODEL).zip(y(KEYED)).map(|(model, keyed)| percent_off(model, keyed));
                let claim = format!("{name}, {keys} keys, {pick}: model off from simulation, %");
                figure.claim(off.map(|off| Claim::near(claim, 0.0, off, 6.5)));
            }
            let [by_model, keyed] =
                [MODEL, KEYED].map(|source| saved(figure, panel, source, *keys));
            let claim =
                format!("{name}, {keys} keys: saved in keyed simulation, %, against the model's");
            let near = |(model, keyed)| Claim::near(claim, model, keyed, 3.0);
            figure.claim(by_model.zip(keyed).map(near));
        }
    }
}
