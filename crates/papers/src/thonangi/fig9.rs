//! Figure 9: seven policies over the size of the records.

use super::scale::{POINTS, cost_axis, scale};
use super::steady::{Bench, Keys};
use super::sweep::{KEEPING, PAIRS, SEVEN, Sweep, and_own, figure_of_costs};
use crate::form::*;

const DATASET_MB: u64 = 300;

/// The figure of the paper.
pub(crate) fn measure_uniform(task: &Task<'_>) -> anyhow::Result<Figure> {
    let (mut figure, sweep) = measure(task, Keys::Uniform)?;
    for (base, paper) in [("full", -33.0), ("rr", -23.0), ("choose_best", -23.0)] {
        let excess = figure.excess("", "mixed", base, 25.0);
        figure.near(format!("25 bytes: mixed over {base}, %"), paper, excess, POINTS);
    }
    claims(&mut figure);
    let why = "Policies that keep level 1 nearly full let more of them meet there.";
    explain_large(&mut figure, &sweep, why);
    Ok(figure)
}

/// The same under `normal`, where results are similar, as the paper says.
pub(crate) fn measure_normal(task: &Task<'_>) -> anyhow::Result<Figure> {
    let (mut figure, sweep) = measure(task, Keys::NORMAL)?;
    for base in ["full", "rr", "choose_best"] {
        let lead = figure.excess("", "mixed", base, 25.0).map(|percent| -percent);
        let claim = format!("25 bytes: mixed holds a significant lead over {base}: by, %");
        figure.at_least(claim, lead, 5.0);
    }
    claims(&mut figure);
    let why = "rr leaves all records equally long in level 1. The best windows take the densest \
               keys, which are the newest, so that fewer of them meet their deletes there.";
    explain_large(&mut figure, &sweep, why);
    Ok(figure)
}

fn measure(task: &Task<'_>, keys: Keys) -> anyhow::Result<(Figure, Sweep)> {
    let payloads = task.pick(
        &[25.0, 100.0, 500.0, 4000.0][..],
        &[25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2000.0, 4000.0],
    );
    // Large records are few. A smaller scale would leave too few and would not save time.
    let shrink = |bytes: u64| (scale(task.effort, DATASET_MB) * 100 / bytes.max(100)).max(1);
    let bench = |policy: &str, x| {
        let payload_bytes = x as u64;
        let bench = Bench::standard(policy, keys, DATASET_MB, shrink(payload_bytes));
        Bench { payload_bytes, ..bench }
    };
    let panel = Panel::only(Axis::log("payload", "bytes"), cost_axis());
    let spots = spots("", and_own(&SEVEN, task), payloads, bench);
    let (mut figure, sweep) = figure_of_costs(task, [panel], spots)?;
    if task.effort.is_quick {
        let words =
            payloads.iter().map(|bytes| format!("{bytes} bytes 1/{}", shrink(*bytes as u64)));
        let scales = joined(", ", words);
        figure.note(format!("Memory and data are a part of the paper's: {scales}."));
    }
    Ok((figure, sweep))
}

fn claims(figure: &mut Figure) {
    let large = || KEEPING.iter().filter_map(|policy| figure.y("", policy, 4000.0));
    let spread = over(most(large()), least(large())).map(|ratio| (ratio - 1.0) * 100.0);
    let claim = "4000 bytes: the four policies that keep blocks cost the same: within, %";
    figure.at_most(claim, spread, 2.5);
    for (keeps, plain) in PAIRS {
        let saved = figure.excesses("", plain, keeps, ALL);
        let claim = format!(
            "{plain} falls behind {keeps} further with each larger payload: at least by, \
             percentage points"
        );
        figure.at_least(claim, least(saved.windows(2).map(|pair| pair[1] - pair[0])), -0.5);
    }
    let flat = PAIRS.into_iter().filter_map(|(_, plain)| {
        let costs = || figure.curve("", plain).map(|(_, cost)| cost);
        Some(over(most(costs()), least(costs()))? - 1.0)
    });
    let claim = "policies that do not keep blocks are flat over all payloads: within, %";
    figure.at_most(claim, most(flat).map(|spread| spread * 100.0), 10.0);
}

/// Explains why policies differ although every block is kept.
fn explain_large(figure: &mut Figure, sweep: &Sweep, why_some_meet: &str) {
    let words = KEEPING.iter().filter_map(|policy| {
        let steady = sweep.at("", policy, 4000.0)?;
        let written = steady.write_cost_blocks;
        let merged = steady.records_merged;
        let met = (1.0 - written / merged) * 100.0;
        Some(format!("{policy} {merged:.1}, {met:.1} %, {written:.1}"))
    });
    let why = format!(
        "at 4000 bytes a block is one record, and every block below memory is kept: a record is \
         written once, when it leaves memory, unless a delete meets its insert in level 1 and both \
         vanish unwritten. Records that leave memory per MB, the part of them that vanishes so, \
         blocks written per MB: {}. {why_some_meet} The difference is small beside what these \
         policies cost at 25 bytes.",
        joined("; ", words)
    );
    figure.explain("4000 bytes", why);
}
