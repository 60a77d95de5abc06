//! Stripes of keys, beside merges of whole runs by the same rule.

use crate::form::*;
use anyhow::Context;
use lsmith_sim::{Figures, KeyedWorkload, simulate_keyed};
use lsmith_workload::{NoInputs, Workload};

/// The panel of stripes.
const PANEL: &str = "h";

/// Keys that are loaded, and of a quick measurement. A tree of a quarter of them is measured too.
const KEYS: u64 = 400_000;
const KEYS_QUICK: u64 = 100_000;

/// Logical bytes of an entry: a key of 8 bytes, and 8 more.
const VALUE_BYTES: u64 = 100;
const ENTRY_BYTES: u64 = VALUE_BYTES + 16;

/// The memtables that all keys fill.
const MEMTABLES: u64 = 512;

const STRIPES: &str = "hbase_stripe";
const WHOLE: &str = "exploring";

/// The size in memtables at which a stripe is split: eight merges of four runs of level 0.
const SPLIT_MEMTABLES: u64 = 32;

/// The largest run of a window over the others together, at most.
const LAMBDA: f64 = 1.2;

pub(super) fn panel() -> Panel {
    let x = Axis::log("memtables", "");
    let title = "new keys, even and in order, as data grow";
    Panel::new(PANEL, title, x, Axis::log("write cost", "bytes written per byte flushed"))
}

pub(super) fn measure(task: &Task<'_>, figure: &mut Figure) -> anyhow::Result<()> {
    let keys = task.pick(KEYS_QUICK, KEYS);
    let memtable = keys * ENTRY_BYTES / MEMTABLES;
    let runs: Vec<(&str, &str, u64)> = ["hashed", "sequential"]
        .into_iter()
        .flat_map(|order| [(STRIPES, order), (WHOLE, order)])
        .flat_map(|(spec, order)| [4, 1].map(|part| (spec, order, part)))
        .collect();
    let found = task.each(
        "stripes",
        &runs,
        |(.., part)| keys / part,
        |(spec, order, part), _| {
            let workload =
                format!("load(keys={}, order={order}, value={VALUE_BYTES}B)", keys / part);
            // HBase rewrites all that it merges.
            let workload = KeyedWorkload::new(Workload::from_spec(&workload.parse()?, &NoInputs)?);
            let workload = workload.with_rewrites();
            let simulated = simulate_keyed(&task.policy(spec)?, &workload, memtable, &mut |_| {});
            Ok(simulated.with_context(|| format!("policy {spec}"))?.figures)
        },
    )?;
    let all: Vec<_> = runs.into_iter().zip(found).collect();
    for ((spec, order, part), figures) in &all {
        let name = format!("{spec}, {order}");
        figure.point(PANEL, &name, (MEMTABLES / part) as f64, figures.write_cost_system);
    }
    let of = |spec: &str, order: &str, part: u64, value: fn(&Figures) -> f64| {
        let found = all.iter().find(|(run, _)| *run == (spec, order, part));
        found.map_or(f64::NAN, |(_, figures)| value(figures))
    };
    let write = |figures: &Figures| figures.write_cost_system;
    let largest = |figures: &Figures| figures.merge_bytes_max as f64;
    // A stripe below the size is merged whole once newer runs of it come to its part of the window.
    let most = (SPLIT_MEMTABLES * memtable) as f64 * (1.0 + 1.0 / LAMBDA);
    for order in ["hashed", "sequential"] {
        let claim = format!("hbase_stripe, {order} keys: largest merge over the most of a stripe");
        figure.at_most(claim, of(STRIPES, order, 1, largest) / most, 1.1);
        // Whole runs come to more than half of all data at once.
        let claim = format!("hbase_stripe, {order} keys: largest merge over exploring");
        let over = of(STRIPES, order, 1, largest) / of(WHOLE, order, 1, largest);
        figure.at_most(claim, over, most / (keys * ENTRY_BYTES / 2) as f64);
    }
    let growth = of(STRIPES, "sequential", 1, write) / of(STRIPES, "sequential", 4, write);
    let claim = "hbase_stripe, keys in order: write cost of four times the data";
    figure.near(claim, 1.0, growth, 0.1);
    let over = of(STRIPES, "sequential", 1, write) / of(WHOLE, "sequential", 1, write);
    figure.at_most("hbase_stripe, keys in order: write cost over exploring", over, 1.0);
    figure.note(format!(
        "HBase's documentation tells no figures of stripes. It says that merges are smaller in \
         large regions, and that old data are merged less or not at all where keys grow with time. \
         With even keys hbase_stripe writes {:.2} times what exploring writes. With four times the \
         data, the largest merge of exploring is {:.1} times as large.",
        of(STRIPES, "hashed", 1, write) / of(WHOLE, "hashed", 1, write),
        of(WHOLE, "hashed", 1, largest) / of(WHOLE, "hashed", 4, largest)
    ));
    Ok(())
}
