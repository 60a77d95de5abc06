//! Write cost over the number of keys.

use super::design::Design;
use super::panels::{POPULARITIES, in_a_hurry, panels};
use super::steady::{StageCosts, Steady, simulated};
use crate::form::*;
use lsmith_lab::Clock;

/// Keys of the paper.
const KEYS: [u64; 7] =
    [1_000_000, 3_300_000, 10_000_000, 33_000_000, 100_000_000, 330_000_000, 1_000_000_000];

/// Keys of simulations and of the store.
const KEYS_SIMULATED: [u64; 4] = [330_000, 1_000_000, 3_300_000, 10_000_000];
const KEYS_SIMULATED_QUICK: [u64; 2] = [33_000, 330_000];
const KEYS_ON_STORE: u64 = 330_000;
const KEYS_ON_STORE_QUICK: u64 = 33_000;

/// Logical bytes of an entry on the store.
const STORE_ITEM_BYTES: u32 = 200;

/// The costs by the paper's definitions, computed independently of this crate: uniform and Zipf
/// 0.99, for 1, 10, 100 and 1000 million keys.
const BY_DEFINITION: [(u64, [f64; 2]); 4] = [
    (1_000_000, [12.90, 6.53]),
    (10_000_000, [19.34, 9.50]),
    (100_000_000, [25.83, 12.68]),
    (1_000_000_000, [32.33, 16.01]),
];

/// The costs by the authors' simulator.
const BY_SIMULATOR: [(u64, [f64; 2]); 2] = [(1_000_000, [13.07, 6.62]), (3_300_000, [15.78, 7.96])];

const MODEL: &str = "model";
const SIMULATED: &str = "keyed simulation";
const STORE: &str = "store";

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let mut figure = task.figure(panels(&Axis::log("unique keys", ""), str::to_owned));
    let hurried = |keys: u64| in_a_hurry(keys, task.effort);
    let keys_simulated =
        task.pick(KEYS_SIMULATED_QUICK.map(hurried).to_vec(), KEYS_SIMULATED.to_vec());
    let on_store = task.pick(hurried(KEYS_ON_STORE_QUICK), KEYS_ON_STORE);
    let mut model_keys = [&keys_simulated[..], &KEYS[..]].concat();
    model_keys.sort_unstable();
    model_keys.dedup();
    for (panel, _, skew) in POPULARITIES {
        for keys in &model_keys {
            let cost = Design::leveldb(*keys, skew).write_cost()?;
            figure.point(panel, MODEL, *keys as f64, cost);
        }
    }
    let xs: Vec<f64> = keys_simulated.iter().map(|keys| *keys as f64).collect();
    let all = POPULARITIES.into_iter().flat_map(|(panel, _, skew)| {
        let steady = |_: &str, keys| Steady::new(Design::leveldb(keys as u64, skew));
        spots(panel, [SIMULATED], &xs, steady)
    });
    simulated(task, all.collect())?.draw(&mut figure, StageCosts::write_cost);
    let stores = POPULARITIES.map(|(_, _, skew)| Steady {
        item_bytes: STORE_ITEM_BYTES,
        ..Steady::new(Design::leveldb(on_store, skew))
    });
    let found = task
        .each_in_turn(STORE, &stores, Steady::work, |steady, ticker| Ok(steady.run(ticker)?.1))?;
    for ((panel, ..), cost) in POPULARITIES.iter().zip(found) {
        figure.point(panel, STORE, on_store as f64, cost);
    }
    claims(&mut figure, on_store);
    figure.explain(
        "33000 keys",
        "so few keys are eight memtables, and a dozen tables in all: merges come in steps where \
         the model has a steady flow.",
    );
    figure.explain(
        "330000 keys: model off from the store",
        "most of it the model is off from simulation as well, where so few keys are not many \
         tables; the rest is that files take less than logical bytes count for entries of 200 \
         bytes.",
    );
    figure.explain(
        "the authors' simulator against",
        "the authors draw keys from an approximation of the Zipf distribution (Gray et al.), here \
         draws are exact.",
    );
    time(&mut figure)?;
    notes(&mut figure);
    Ok(figure)
}

fn claims(figure: &mut Figure, on_store: u64) {
    for (index, (panel, name, _)) in POPULARITIES.into_iter().enumerate() {
        let simulated: Vec<f64> = figure.curve(panel, SIMULATED).map(|(keys, _)| keys).collect();
        for keys in simulated {
            let off = figure.excess(panel, MODEL, SIMULATED, keys);
            let claim = format!("{name}, {keys} keys: model off from simulation, %");
            figure.near(claim, 0.0, off, 3.0);
        }
        let off = figure.excess(panel, MODEL, STORE, on_store as f64);
        let claim = format!("{name}, {on_store} keys: model off from the store, %");
        figure.near(claim, 0.0, off, 3.0);
        for (keys, costs) in BY_DEFINITION {
            let model = figure.y(panel, MODEL, keys as f64);
            let claim = format!("{name}, {keys} keys: model by the paper's definitions");
            figure.near(claim, costs[index], model, 0.005 * costs[index]);
        }
        for (keys, costs) in BY_SIMULATOR {
            let simulated = figure.y(panel, SIMULATED, keys as f64);
            let claim = format!("{name}, {keys} keys: the authors' simulator against this one");
            figure.near(claim, costs[index], simulated, 0.02 * costs[index]);
        }
    }
}

/// Adds the claim on the seconds that the formula takes.
fn time(figure: &mut Figure) -> anyhow::Result<()> {
    let clock = Clock::start();
    for (_, _, skew) in POPULARITIES {
        Design::leveldb(100_000_000, skew).write_cost()?;
    }
    let milliseconds = clock.cpu_seconds() * 1e3 / POPULARITIES.len() as f64;
    let claim = "100 M keys: milliseconds of CPU for one evaluation of the model, at most";
    figure.at_most(claim, milliseconds, 5.0);
    Ok(())
}

fn notes(figure: &mut Figure) {
    figure.note(
        "LevelDB's design: memtables of 4 MiB of requests, of which four go into level 1 together, \
         tables of 2 MiB, levels of 10 MiB, 100 MiB and so on, items of 1000 bytes. All keys are \
         loaded in order, then ten random requests per key are counted, the log once. A sweep goes \
         on at the key behind the last that went down.",
    );
    figure.note(format!(
        "On the store entries have {STORE_ITEM_BYTES} bytes, and memtables, tables and levels as \
         many entries as with 1000; bytes are those of the files of tables, which are real but \
         never synced."
    ));
}
