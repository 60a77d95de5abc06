//! Write cost over the number of keys.

use super::design::{Design, SKEWS};
use super::panels::{PANELS, in_a_hurry, panels, percent_off};
use super::steady::{StageCosts, Steady};
use crate::{Claim, Effort, Figure, FigureInfo};
use lsmith_lab::plot::Axis;
use lsmith_lab::{Clock, Job, SharedProgress, Ticker, measure_all, measure_in_turn};

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

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let panels = panels(&Axis::log("unique keys", ""), str::to_owned);
    let mut figure = Figure::empty(info.name, info.title, panels);
    let hurried = |keys: u64| in_a_hurry(keys, effort);
    let (simulated, on_store) = if effort.is_quick {
        (KEYS_SIMULATED_QUICK.map(hurried).to_vec(), hurried(KEYS_ON_STORE_QUICK))
    } else {
        (KEYS_SIMULATED.to_vec(), KEYS_ON_STORE)
    };
    let mut model_keys = [&simulated[..], &KEYS[..]].concat();
    model_keys.sort_unstable();
    model_keys.dedup();
    for (panel, (_, skew)) in PANELS.iter().zip(SKEWS) {
        for keys in &model_keys {
            let cost = Design::leveldb(*keys, skew).write_cost()?;
            figure.point(panel, MODEL, *keys as f64, cost);
        }
    }
    simulate(&mut figure, &simulated, progress)?;
    run(&mut figure, on_store, progress)?;
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

fn simulate(figure: &mut Figure, keys: &[u64], progress: &SharedProgress) -> anyhow::Result<()> {
    let steady = |skew: f64| keys.iter().map(move |keys| Steady::new(Design::leveldb(*keys, skew)));
    let jobs: Vec<Steady> = SKEWS.iter().flat_map(|(_, skew)| steady(*skew)).collect();
    let found: Vec<StageCosts> = measure_all(SIMULATED, &jobs, progress)?;
    for (job, found) in jobs.iter().zip(found) {
        let panel = PANELS[usize::from(job.design.skew > 0.0)];
        figure.point(panel, SIMULATED, job.design.keys as f64, found.write_cost());
    }
    Ok(())
}

/// A measurement on the store.
struct OnStore(Steady);

impl Job for OnStore {
    type Output = f64;

    fn work(&self) -> u64 {
        self.0.work()
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<f64> {
        Ok(self.0.run(ticker)?.1)
    }
}

fn run(figure: &mut Figure, keys: u64, progress: &SharedProgress) -> anyhow::Result<()> {
    let steady = |skew: f64| Steady {
        item_bytes: STORE_ITEM_BYTES,
        ..Steady::new(Design::leveldb(keys, skew))
    };
    let jobs = SKEWS.map(|(_, skew)| OnStore(steady(skew)));
    for (panel, cost) in PANELS.iter().zip(measure_in_turn(STORE, &jobs, progress)?) {
        figure.point(panel, STORE, keys as f64, cost);
    }
    Ok(())
}

fn claims(figure: &mut Figure, on_store: u64) {
    for (index, (panel, (name, _))) in PANELS.iter().zip(SKEWS).enumerate() {
        let simulated: Vec<(f64, f64)> = figure.curve(panel, SIMULATED).collect();
        for (keys, cost) in simulated {
            let off = figure.y(panel, MODEL, keys).map(|model| percent_off(model, cost));
            let claim = format!("{name}, {keys} keys: model off from simulation, %");
            figure.claim(off.map(|off| Claim::near(claim, 0.0, off, 3.0)));
        }
        let store = figure.y(panel, STORE, on_store as f64);
        let model = figure.y(panel, MODEL, on_store as f64);
        let off = model.zip(store).map(|(model, store)| percent_off(model, store));
        let claim = format!("{name}, {on_store} keys: model off from the store, %");
        figure.claim(off.map(|off| Claim::near(claim, 0.0, off, 3.0)));
        for (keys, costs) in BY_DEFINITION {
            let model = figure.y(panel, MODEL, keys as f64);
            let claim = format!("{name}, {keys} keys: model by the paper's definitions");
            let near = |model| Claim::near(claim, costs[index], model, 0.005 * costs[index]);
            figure.claim(model.map(near));
        }
        for (keys, costs) in BY_SIMULATOR {
            let simulated = figure.y(panel, SIMULATED, keys as f64);
            let claim = format!("{name}, {keys} keys: the authors' simulator against this one");
            let near = |cost| Claim::near(claim, costs[index], cost, 0.02 * costs[index]);
            figure.claim(simulated.map(near));
        }
    }
}

/// Adds the claim on the seconds that the formula takes.
fn time(figure: &mut Figure) -> anyhow::Result<()> {
    let clock = Clock::start();
    for (_, skew) in SKEWS {
        Design::leveldb(100_000_000, skew).write_cost()?;
    }
    let claim = "100 M keys: milliseconds of CPU for one evaluation of the model, at most";
    figure.claim(Claim::at_most(claim, clock.cpu_seconds() * 1e3 / SKEWS.len() as f64, 5.0));
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
