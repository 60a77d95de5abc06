//! What merges of parts of runs can gain at most over merges of whole runs, where keys repeat.

use crate::form::*;
use anyhow::Context;
use lsmith_lab::{Content, FileInputs, Least};
use lsmith_model::optimum::LeastOfRanges;
use lsmith_sim::KeyedWorkload;
use lsmith_workload::{FlushSizes, Workload};
use std::sync::Arc;

/// Key ranges that merge by themselves. One range merges whole runs.
const RANGES: [usize; 5] = [1, 2, 4, 8, 16];
const RANGES_QUICK: [usize; 3] = [1, 2, 4];

/// Runs in the key range of a lookup, mean over flushes.
const RUNS: [f64; 4] = [1.5, 2.0, 3.0, 5.0];

/// The optimum takes up to 300 flushes.
const FLUSHES: u64 = 200;
const FLUSHES_QUICK: u64 = 48;

/// Entries of 124 logical bytes.
const MEMTABLE_BYTES: u64 = 500 * 124;

/// What is written: the panel, its title, and the operations.
const WRITTEN: [(&str, &str, &str); 6] = [
    ("new", "new keys in random order", "load(keys=1M, value=100B, order=hashed"),
    ("even", "puts to even keys", "mix(put=1, keys=20k, ops=1M, value=100B"),
    ("zipf", "puts to Zipf keys", "mix(put=1, keys=20k, ops=1M, value=100B, dist=zipf"),
    ("tpc", "orders in districts", "tpc(warehouses=10, keys=20k, ops=1M, deletes=0, value=100B"),
    ("local", "new keys around a mean", "normal(keys=20k, ops=1M, deletes=0, value=100B"),
    (
        "order",
        "new keys in order, and updates of late ones",
        "update(keys=1M, order=sequential, value=100B",
    ),
];

/// In these, keys are spread evenly over all flushes.
const SPREAD: [&str; 4] = ["new", "even", "zipf", "tpc"];

/// What key ranges can write, for each of [`RUNS`].
type Found = [Option<LeastOfRanges>; RUNS.len()];

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let panel = |(name, title, _): (&str, &str, &str)| {
        let ranges = Axis::log("key ranges that merge by themselves", "");
        Panel::new(
            name,
            title,
            ranges,
            Axis::log("least write cost over the least of whole runs", ""),
        )
    };
    let mut figure = task.figure(WRITTEN.map(panel));
    let ranges: &[usize] = task.pick(&RANGES_QUICK, &RANGES);
    let flushes = task.pick(FLUSHES_QUICK, FLUSHES);
    let mut gaps = Vec::new();
    for (panel, _, written) in WRITTEN {
        let spec = format!("{written}, flushes={flushes})").parse()?;
        let workload = KeyedWorkload::new(Workload::from_spec(&spec, &FileInputs)?);
        let found = task.each(
            panel,
            ranges,
            |ranges| *ranges as u64,
            |ranges, ticker| {
                let found = least(&workload, *ranges).with_context(|| spec.to_string())?;
                ticker.tick(*ranges as u64);
                Ok(found)
            },
        )?;
        draw(&mut figure, panel, ranges, &found);
        gaps.extend(found[found.len() - 1].iter().flatten().map(|it| it.found / it.bound - 1.0));
    }
    let last = ranges[ranges.len() - 1] as f64;
    for panel in SPREAD {
        let gains = RUNS.map(|runs| figure.y(panel, &curve(runs), last));
        let gain = most(gains.into_iter().flatten().map(|least| 100.0 * (1.0 - least)));
        figure.at_most(format!("{panel}: parts write less than whole runs, %, most"), gain, 1.5);
    }
    for panel in ["local", "order"] {
        let gain = figure.y(panel, &curve(3.0), last).map(|least| 100.0 * (1.0 - least));
        figure.at_least(format!("{panel}: the same at 3 runs, %"), gain, 50.0);
    }
    let gap = most(gaps.into_iter().map(|gap| 100.0 * gap));
    figure.at_most(format!("schedules in {last} ranges above the bound, %, most"), gap, 2.5);
    figure.note(format!(
        "{flushes} flushes of memtables of 500 entries. Runs are those with an entry in a range. \
         The costs drawn are bounds: no schedule of merges in these ranges writes less."
    ));
    Ok(figure)
}

fn least(workload: &KeyedWorkload, ranges: usize) -> anyhow::Result<Found> {
    let sizes = Arc::new(FlushSizes::default());
    let least = Least::of(&Content::Keyed(workload), &sizes, MEMTABLE_BYTES)?;
    let least = least.with_key_ranges(workload, &sizes, MEMTABLE_BYTES, ranges)?;
    let parts = least.parts().context("its merges are unknown")?;
    Ok(RUNS.map(|runs| parts.least(runs)))
}

fn curve(runs: f64) -> String {
    format!("{runs} runs")
}

/// Draws the costs of `found`, one for each number of `ranges`, over the costs of whole runs.
fn draw(figure: &mut Figure, panel: &str, ranges: &[usize], found: &[Found]) {
    for (at, runs) in RUNS.into_iter().enumerate() {
        let bounds: Vec<f64> = found.iter().map_while(|it| Some(it[at]?.bound)).collect();
        for (ranges, bound) in ranges.iter().zip(&bounds) {
            figure.point(panel, &curve(runs), *ranges as f64, bound / bounds[0]);
        }
    }
}
