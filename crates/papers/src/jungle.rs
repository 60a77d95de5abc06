//! Ahn et al., "Jungle: towards dynamically adjustable key-value store by
//! combining LSM-tree and copy-on-write B+-tree", HotStorage 2019: its table of costs, for the
//! paper's store.

use crate::form::*;
use lsmith_model::formulas::{IndexShare, JungleModel, Textbook};
use lsmith_model::{KeyOrder, Model, Popularity, Setting};
use lsmith_policy::Registry;
use lsmith_sim::{Figures, FluidWorkload, simulate_fluid};

/// The paper's store: its number of records, bytes of keys and values, size of level 0, and updates
/// per record.
const KEYS: u64 = 20_000_000;
const KEY_BYTES: f64 = 8.0;
const VALUE_BYTES: f64 = 1024.0;
const LEVEL0_BYTES: f64 = 256e6;
const ROUNDS: u64 = 20;
/// The size of a run, the ratio of levels, filter bits per key, and filter probes.
const RUN_BYTES: f64 = 64e6;
const RATIO: f64 = 10.0;
const FILTER_BITS: f64 = 10.0;
const PROBES: f64 = 3.0;
/// Bytes of a key with its reference in an index node, for the paper's costs of an index.
const INDEX_KEY_BYTES: f64 = 16.0;

/// Bytes of an append table per live byte at which it is rewritten.
const THRESHOLDS: [f64; 7] = [1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0];

const LEVELING: &str = "leveling";
const TIERING: &str = "tiering";
const JUNGLE: &str = "jungle";

/// The policies that simulate two rows of the table.
const SIMULATED: [(&str, &str); 2] =
    [("leveled(ratio=10, l0=1, pick=round_robin)", LEVELING), ("tiered(ratio=10)", TIERING)];

/// Where costs come from.
const SOURCES: [&str; 2] = ["by the table", "in fluid simulation"];

/// Bytes of an entry in simulation. Only their ratio to the bytes of a memtable matters.
const SIMULATED_BYTES: u32 = 16;

const PANELS: [(&str, &str, &str); 3] = [
    ("a", "writes", "bytes written per byte flushed"),
    ("b", "space", "bytes held per live byte"),
    ("c", "lookups with filters", "steps of binary searches"),
];

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let mut figure = task.figure(PANELS.map(|(name, title, label)| {
        let x = Axis::linear("compaction threshold C", "");
        Panel::new(name, title, x, Axis::linear(label, ""))
    }));
    let popularity = Popularity::uniform(KEYS)?;
    let record_bytes = KEY_BYTES + VALUE_BYTES;
    let setting = Setting {
        popularity: &popularity,
        memtable: LEVEL0_BYTES / record_bytes,
        item_bytes: record_bytes,
        requests: (KEYS * (ROUNDS + 1)) as f64,
        false_positives: false_positives(),
        loaded: 0.0,
        order: KeyOrder::Random,
    };
    draw_rows(&mut figure, &setting);
    table_claims(&mut figure);
    let simulated = simulate(&popularity, task)?;
    measured_claims(&mut figure, &simulated);
    notes(&mut figure, &setting);
    Ok(figure)
}

/// Returns the false positive rate of a filter by the paper's formula.
fn false_positives() -> f64 {
    (1.0 - (-PROBES / FILTER_BITS).exp()).powf(PROBES)
}

/// Draws the costs of writes, space and lookups by the table. The threshold is Jungle's alone.
fn draw_rows(figure: &mut Figure, setting: &Setting<'_>) {
    let run_keys = RUN_BYTES / setting.item_bytes;
    for threshold in THRESHOLDS {
        let mut row = |name, model: &Model, lookup| {
            let costs = [model.write_cost_system(), model.space_cost, lookup];
            for ((panel, ..), cost) in PANELS.iter().zip(costs) {
                figure.point(panel, name, threshold, cost);
            }
        };
        for (name, textbook) in [(LEVELING, Textbook::Leveling), (TIERING, Textbook::Tiering)] {
            let model = textbook.evaluate(setting, RATIO);
            let looked_into = 1.0 + model.reads(setting).point_miss;
            row(name, &model, looked_into * run_keys.log2());
        }
        let index = IndexShare::both(INDEX_KEY_BYTES / VALUE_BYTES);
        let jungle = JungleModel { garbage_ratio: threshold, ratio: RATIO, index };
        let model = jungle.evaluate(setting);
        row(JUNGLE, &model, jungle.lookup_steps(&model.reads(setting), run_keys, true));
    }
}

/// Simulates the policies of two rows with expected sizes: all keys are loaded, then updated.
fn simulate(popularity: &Popularity, task: &Task<'_>) -> anyhow::Result<[Figures; 2]> {
    task.progress.begin("fluid simulation", SIMULATED.len() as u64);
    let writes = KEYS * (ROUNDS + 1);
    let memtable_bytes = LEVEL0_BYTES / (KEY_BYTES + VALUE_BYTES) * f64::from(SIMULATED_BYTES);
    let run = |done: u64, spec: &str| {
        let policy = Registry::builtin().build(spec)?;
        let workload = FluidWorkload::drawn(popularity.clone(), writes, SIMULATED_BYTES.into());
        let simulated = simulate_fluid(&policy, &workload, memtable_bytes as u64, &mut |_| {})?;
        task.progress.advance(done);
        anyhow::Ok(simulated.figures)
    };
    Ok([run(1, SIMULATED[0].0)?, run(2, SIMULATED[1].0)?])
}

/// Adds the claims that the paper derives.
fn table_claims(figure: &mut Figure) {
    let passed = false_positives() * 100.0;
    figure.near("a filter of 10 bits per key and 3 probes lets through, %", 1.7, passed, 0.1);
    let share = INDEX_KEY_BYTES / VALUE_BYTES;
    figure.near("index bytes written per value byte, from", 0.016, share, 0.0005);
    let claim = "index bytes written per value byte, up to, for C = 10";
    figure.near(claim, 0.16, 10.0 * share, 0.005);
    let space = figure.y("b", TIERING, 10.0);
    figure.near("space of tiering as expected, T^2 / (T - 1)", 11.1, space, 0.05);
    let space = figure.y("b", LEVELING, 10.0);
    let gigabytes = space.map(|space| space * KEYS as f64 * (KEY_BYTES + VALUE_BYTES) / 1e9);
    figure.near("space of leveling as expected, GB", 22.0, gigabytes, 1.1);
    let claim = "C = T: space of Jungle over that of tiering is 1 plus the index";
    figure.near(claim, 1.0 + share, figure.ratio("b", JUNGLE, TIERING, 10.0), 0.001);
    let claim = "C = T: write cost of Jungle over that of tiering, very close";
    figure.near(claim, 1.0, figure.ratio("a", JUNGLE, TIERING, 10.0), 0.1);
    let claim = "C = 2: write cost of leveling over that of Jungle, at least";
    figure.at_least(claim, figure.ratio("a", LEVELING, JUNGLE, 2.0), 3.0);
    let claim = "C = 10: steps of a lookup over those of leveling, nearly the same";
    figure.near(claim, 1.0, figure.ratio("c", JUNGLE, LEVELING, 10.0), 0.25);
    let writes: Vec<f64> = figure.curve("a", JUNGLE).map(|(_, y)| y).collect();
    let rise = most(writes.windows(2).map(|pair| pair[1] - pair[0]));
    let claim = "the most that Jungle's write cost rises from one threshold to the next (it falls)";
    figure.at_most(claim, rise, 0.0);
}

/// Adds the claims that the paper measured, judged by formulas and simulation.
fn measured_claims(figure: &mut Figure, [leveled, tiered]: &[Figures; 2]) {
    let y = |panel: &str, name: &str| figure.y(panel, name, 5.0);
    let times = over(y("a", LEVELING), y("a", TIERING));
    let fluid = leveled.write_cost_system / tiered.write_cost_system;
    let spaces = [
        ("tiering", 3.24, 0.8, [y("b", TIERING), Some(tiered.space_cost_mean)]),
        ("leveling", 1.2, 0.1, [y("b", LEVELING), Some(leveled.space_cost_mean)]),
    ];
    for (source, times) in SOURCES.into_iter().zip([times, Some(fluid)]) {
        let claim = format!("write cost of leveling over that of tiering, {source}");
        figure.near(claim, 4.0, times, 0.8);
    }
    for (name, paper, tolerance, spaces) in spaces {
        for (source, space) in SOURCES.into_iter().zip(spaces) {
            figure.near(format!("mean space of {name}, {source}"), paper, space, tolerance);
        }
    }
    let five = figure.ratio("a", JUNGLE, TIERING, 5.0);
    let claim = "C = 5: write cost of Jungle below that of tiering, over it by the table";
    figure.at_most(claim, five, 1.0);
    figure.explain(
        "leveling over that of tiering, by the table",
        "the table counts the worst: a merge meets a full level, T times what comes down, and \
         everything is written at each of L levels.",
    );
    figure.explain(
        "leveling over that of tiering, in fluid simulation",
        "the paper's tiering keeps a stack of runs for each range of keys. Stacks fill unevenly \
         and are merged before they hold T full runs, as it says itself, so it writes more than \
         here, where all runs of a level are merged at once.",
    );
    figure.explain(
        "mean space of tiering, by the table",
        "the table counts the worst: T full runs at the last level at once, none with a key of \
         another's gone.",
    );
    figure.explain(
        "mean space of leveling, in fluid simulation",
        "space is counted at rest here. The paper's is that of a running store, with the outputs \
         of merges under way.",
    );
    figure.explain(
        "C = 5: write cost of Jungle below",
        "by the table Jungle rewrites in place what tiering does not, and both write once per \
         level. The paper measures the advantage and explains it by runs of uneven size, for which \
         tiering merges more often; its table leaves that out.",
    );
}

fn notes(figure: &mut Figure, setting: &Setting<'_>) {
    let levels = (setting.growth().ln() / RATIO.ln()).ceil();
    figure.note(format!(
        "The table of costs for the store that the paper measured: {KEYS} records of 8 + 1024 \
         bytes, level 0 of 256 MB, T = 10, hence {levels} levels, runs of 64 MB, filters of 10 \
         bits per key. Worst cases; leveling and tiering don't depend on C."
    ));
    figure.note(format!(
        "Fluid simulation: all records loaded, then updated {ROUNDS} times at random, under {} and \
         {}, with memtables of the size of level 0; space at rest, mean over flushes.",
        SIMULATED[0].0, SIMULATED[1].0
    ));
}
