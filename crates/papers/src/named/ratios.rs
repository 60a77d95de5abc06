//! Levels with ratios of their own, beside levels of one ratio.

use crate::form::*;
use anyhow::Context;
use lsmith_sim::{KeyedWorkload, simulate_keyed};
use lsmith_workload::{NoInputs, Workload};

/// The panel of levels.
pub(super) const PANEL: &str = "g";

/// Keys, each written four times in the mean. They fill 128 memtables once.
const KEYS: u64 = 60_000;
const WRITES_PER_KEY: u64 = 4;
const MEMTABLE_BYTES: u64 = KEYS * 116 / 128;

/// What a run costs while a memtable is written, in written memtables.
const PRICES: [f64; 4] = [0.1, 0.3, 1.0, 3.0];

const RATIOS: [u64; 8] = [2, 3, 4, 5, 6, 8, 10, 12];

/// What the paper holds it against, each with every ratio.
const OTHERS: [&str; 4] = ["leveling", "tiering", "lazy leveling", "fluid"];

/// Returns the settings of one of the [`OTHERS`].
fn settings(name: &str) -> Vec<String> {
    let fluid = |ratio: u64| {
        let runs = [1, 2, 3, ratio - 1];
        let pairs = runs.into_iter().flat_map(move |inner| runs.map(|last| (inner, last)));
        let is_least = move |(inner, last): &(u64, u64)| inner.max(last) < &ratio;
        let pairs = pairs.filter(is_least);
        pairs.map(move |(inner, last)| format!("fluid(ratio={ratio}, inner={inner}, last={last})"))
    };
    let mut all: Vec<String> = match name {
        "leveling" => RATIOS.map(|ratio| format!("fluid(ratio={ratio}, inner=1, last=1)")).into(),
        "tiering" => RATIOS.map(|ratio| format!("tiered(ratio={ratio})")).into(),
        "lazy leveling" => RATIOS.map(|ratio| format!("lazy_leveling(ratio={ratio})")).into(),
        _ => RATIOS.into_iter().flat_map(fluid).collect(),
    };
    all.sort();
    all.dedup();
    all
}

pub(super) fn panel() -> Panel {
    let x = Axis::log("runs after a flush, mean", "");
    let title = "updates of a fixed set of keys, levels of one ratio and of several";
    Panel::new(PANEL, title, x, Axis::log("write cost", "bytes written per byte flushed"))
}

pub(super) fn measure(task: &Task<'_>, figure: &mut Figure) -> anyhow::Result<()> {
    let moose = PRICES.map(|price| format!("moose(price={price})"));
    let mut specs = moose.to_vec();
    specs.extend(OTHERS.iter().flat_map(|name| settings(name)));
    let ops = KEYS * WRITES_PER_KEY;
    let workload = format!("mix(put=1, keys={KEYS}, ops={ops}, value=100B)");
    let workload = KeyedWorkload::new(Workload::from_spec(&workload.parse()?, &NoInputs)?);
    let measured = task.each(
        "levels",
        &specs,
        |_| ops,
        |spec, _| {
            let policy = task.policy(spec)?;
            let simulated = simulate_keyed(&policy, &workload, MEMTABLE_BYTES, &mut |_| {});
            let figures = simulated.with_context(|| format!("policy {spec}"))?.figures;
            Ok((figures.read_cost_mean, figures.write_cost_system))
        },
    )?;
    let of = |spec: &String| specs.iter().position(|it| it == spec).map(|index| measured[index]);
    // The dearer, the fewer.
    figure.draw(PANEL, "moose", moose.iter().rev().filter_map(of));
    for name in OTHERS {
        let mut points: Vec<(f64, f64)> = settings(name).iter().filter_map(of).collect();
        for (price, spec) in PRICES.iter().zip(&moose) {
            let cost = |(runs, write): (f64, f64)| write + price * runs;
            let least = points.iter().map(|it| cost(*it)).fold(f64::INFINITY, f64::min);
            let claim = format!("moose, price {price}: cost over {name} of the best ratio");
            figure.at_most(claim, of(spec).map_or(f64::NAN, cost) / least, 1.0);
        }
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        figure.draw(PANEL, name, points);
    }
    figure.explain(
        "moose, price 0",
        "The program counts levels of keys that do not repeat, and a tree that is full. Here the \
         tree grows at first, and levels change with it. With its size given as 1.4 times the \
         data, moose costs what fluid costs at 0.3, and 0.6 % more at 0.1.",
    );
    figure.note(format!(
        "Panel {PANEL}: keyed simulation of {WRITES_PER_KEY} puts per key to {KEYS} keys, evenly, \
         which fill 128 memtables. The cost is the write cost and the price for each run in the \
         mean. fluid has every ratio with 1, 2, 3 and all but one of its runs."
    ));
    Ok(())
}
