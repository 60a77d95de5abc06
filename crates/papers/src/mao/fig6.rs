//! Space used while merges run.

use super::course::flushes_of;
use crate::form::*;
use lsmith_sim::{Event, FigureCounter, UNIT_BYTES, simulate_unit};

/// The approximate flushes of a run.
const FLUSHES: u64 = 24_000;

/// The number of points of a curve.
const WINDOWS: u64 = 120;

/// The policies of the paper. Only the last one builds levels.
const SPECS: [&str; 6] = [
    "minlatency(k=4)",
    "binomial(k=4)",
    "bigtable(k=4)",
    "exploring(k=4)",
    "tiered(ratio=4)",
    "leveled(ratio=32)",
];

/// Simulates `spec`. Returns the greatest space per flushed byte within each range of flushes, over
/// the last flush of the range.
fn spaces(
    spec: &str,
    flushes_max: u64,
    task: &Task<'_>,
    ticker: &Ticker<'_>,
) -> anyhow::Result<Vec<(f64, f64)>> {
    let policy = task.policy(spec)?;
    let mut counter = FigureCounter::new();
    let mut windows = Vec::new();
    let mut flushes = 0;
    let every = (flushes_max / WINDOWS).max(1);
    let sizes = (0..flushes_max).map(|_| UNIT_BYTES);
    simulate_unit(&policy, sizes, UNIT_BYTES, &mut |event| match event {
        Event::Sealed { .. } => {
            flushes += 1;
            counter.sealed(flushes * UNIT_BYTES);
        }
        Event::Merge { tree, edit, .. } => counter.merge(tree, edit),
        Event::Flushed { .. } => {}
        Event::Rest { tree } => {
            counter.rest(tree);
            if flushes % every == 0 {
                let most = std::mem::take(&mut counter).figures().space_cost_peak;
                windows.push((flushes as f64, most));
                ticker.tick(every);
            }
        }
    })?;
    Ok(windows)
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let flushes = flushes_of(FLUSHES, task.effort);
    let own = task.own_beside(SPECS);
    let specs: Vec<&str> = SPECS.into_iter().chain(own.iter().map(String::as_str)).collect();
    let space = |spec: &&str, ticker: &Ticker<'_>| spaces(spec, flushes, task, ticker);
    let curves = task.each("simulation", &specs, |_| flushes, space)?;
    let x = Axis::linear("flushes", "");
    let mut figure = task.figure([Panel::only(x, Axis::linear("space over data flushed", ""))]);
    for (spec, curve) in specs.iter().zip(curves) {
        figure.draw("", spec, curve);
    }
    claims(&mut figure, (flushes / 2) as f64);
    note(&mut figure, flushes);
    Ok(figure)
}

/// Judges what comes after `half` of the flushes: at first a merge of two always doubles the space.
fn claims(figure: &mut Figure, half: f64) {
    let second_half = |spec: &str| -> Vec<f64> {
        figure.curve("", spec).filter(|(at, _)| *at > half).map(|(_, space)| space).collect()
    };
    let halves = SPECS.map(second_half);
    for (spec, half) in SPECS.iter().zip(&halves).take(5) {
        let claim = format!("{spec}: the most in the second half of the run (it can reach 2)");
        figure.near(claim, 2.0, most(half.iter().copied()), 0.01);
    }
    let claim = "leveled(ratio=32): the most in the second half of the run (it is close to 1)";
    figure.near(claim, 1.0, most(halves[5].iter().copied()), 0.1);
    let means = halves.map(mean);
    let [Some(minlatency), Some(binomial), Some(bigtable), Some(exploring), Some(tiered), _] =
        means
    else {
        return;
    };
    let lowest = least([minlatency, binomial, bigtable, exploring]);
    let claim = "space of tiered over the least of the other stacks (tiered is lowest), averaged \
                 over the points of the second half";
    figure.at_most(claim, lowest.map(|lowest| tiered / lowest), 1.0);
    let lowest = minlatency.min(binomial).min(exploring);
    let claim = "space of bigtable over the least of minlatency, binomial and exploring (bigtable \
                 is lower), averaged over the points of the second half";
    figure.at_most(claim, bigtable / lowest, 1.0);
}

fn note(figure: &mut Figure, flushes: u64) {
    let window = (flushes / WINDOWS).max(1);
    figure.note(format!(
        "Each point is the most within {window} flushes: all runs, those being merged included, \
         with the output under way, over all that has been flushed. Flushes are of equal size."
    ));
}
