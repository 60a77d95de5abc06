//! Write cost over flushes of the policies that bound the number of runs.

use super::course::{BOUNDED, CHEAP, CONSTANT, Course, Courses, flushes_of, panel, specs};
use super::fit::{fit_line, power_of};
use crate::form::*;

/// The paper's bounds, with the letters of their panels: long runs and beginnings.
const PANELS: [(u64, &str, &str); 3] = [(5, "a", "d"), (6, "b", "e"), (7, "c", "f")];

/// The drawn flushes: approximately as many as the paper's runs have, and their beginnings.
const SHOWN_LONG: u64 = 24_000;
const SHOWN_SHORT: u64 = 2_000;

/// The simulated flushes: several times 4^k for every k, to show the growth after 4^k.
const FLUSHES: u64 = 100_000;

/// Flushes between two points: for the beginnings, and for the long runs.
const EVERY: u64 = 10;
const EVERY_LONG: u64 = 100;

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let bounds = PANELS.map(|(k, ..)| k);
    let all = specs(BOUNDED, "k", &bounds);
    let own = task.own_beside(&all);
    let all = all.iter().chain(&own);
    let courses = Courses::unit(task, all, flushes_of(FLUSHES, task.effort), EVERY)?;
    // Policies of the caller are in every panel.
    let shown = |k| [specs(CHEAP, "k", &[k]), own.clone()].concat();
    let panel = |name, k, shown: u64| {
        panel(name, &format!("k = {k}, {shown} flushes, 4^k = {}", regime(k)))
    };
    let long = PANELS.map(|(k, long, _)| panel(long, k, SHOWN_LONG));
    let beginnings = PANELS.map(|(k, _, beginning)| panel(beginning, k, SHOWN_SHORT));
    let mut figure = task.figure(long.into_iter().chain(beginnings));
    for (k, long, _) in PANELS {
        let is_shown = |at: u64| at <= SHOWN_LONG && at.is_multiple_of(EVERY_LONG);
        courses.draw(&mut figure, long, shown(k), is_shown);
    }
    for (k, _, beginning) in PANELS {
        courses.draw(&mut figure, beginning, shown(k), |at| at <= SHOWN_SHORT);
    }
    for k in bounds {
        let shown = CHEAP.map(|name| courses.of(&format!("{name}(k={k})")));
        claim_small(&mut figure, k, shown);
        claim_large(&mut figure, k, shown, courses.of(&format!("{CONSTANT}(k={k})")));
    }
    note(&mut figure);
    Ok(figure)
}

/// Returns the flushes at which the large-n regime begins.
fn regime(k: u64) -> u64 {
    1 << (2 * k)
}

/// Judges the small-n regime by the write costs of `shown`, averaged over flushes.
fn claim_small(figure: &mut Figure, k: u64, shown: [&Course; 4]) {
    let mean_of = |course: &Course| {
        mean(course.write_costs_where(|at| at <= regime(k)).into_iter().map(|(_, cost)| cost))
    };
    let means = shown.map(mean_of);
    let [Some(minlatency), Some(binomial), Some(bigtable), Some(exploring)] = means else { return };
    let regime = format!("k = {k}, up to 4^k flushes, mean write costs");
    for (claim, ratio, bound) in [
        (
            "minlatency over the least of the others (it is least)",
            minlatency / binomial.min(bigtable).min(exploring),
            1.0,
        ),
        (
            "binomial over the less of bigtable and exploring (it is second)",
            binomial / bigtable.min(exploring),
            1.0,
        ),
        ("bigtable over exploring (exploring is last)", bigtable / exploring, 1.0),
        (
            "the most over minlatency (all are close behind)",
            binomial.max(bigtable).max(exploring) / minlatency,
            1.5,
        ),
    ] {
        figure.at_most(format!("{regime}: {claim}"), ratio, bound);
    }
}

fn claim_large(figure: &mut Figure, k: u64, shown: [&Course; 4], constant: &Course) {
    let [minlatency, binomial, bigtable, exploring] =
        shown.map(|course| course.write_costs_where(|at| at > regime(k)));
    let pairs = minlatency.iter().zip(&binomial);
    let apart = mean(pairs.map(|(one, other)| (other.1 / one.1 - 1.0).abs()));
    let claim = format!(
        "k = {k}, past 4^k flushes: minlatency and binomial differ in write cost by this share, on \
         average"
    );
    figure.at_most(claim, apart, 0.02);
    for (name, costs) in [("minlatency", &minlatency), ("binomial", &binomial)] {
        let claim = format!("k = {k}, past 4^k flushes t: {name} grows as t^(1/k), exponent");
        figure.near(claim, 1.0 / k as f64, power_of(costs), 0.1);
    }
    let lines = [&bigtable, &exploring].map(|costs| fit_line(costs).map(|line| line.r_squared));
    if let [Some(bigtable), Some(exploring)] = lines {
        let claim = format!(
            "k = {k}, past 4^k flushes: bigtable and exploring grow linearly, R² of a line at least"
        );
        figure.at_least(claim, least([bigtable, exploring]), 0.9);
    }
    let predicted = constant.last().parts.flushes as f64 / (2 * k) as f64;
    let claim = format!("k = {k}: constant grows as t/k, write cost at the end over t/2k");
    figure.near(claim, 1.0, constant.write_cost() / predicted, 0.02);
}

fn note(figure: &mut Figure) {
    figure.note(
        "Write cost: bytes written to create runs so far, flushes included, over bytes flushed so \
         far; simulated with flushes of equal size.",
    );
    figure.note(
        "Ranks up to 4^k flushes are those of means over all flushes of the regime. At single \
         flushes binomial is at times below minlatency; in the first hundreds it is above \
         bigtable, as it merges early while its rule allows few runs.",
    );
    figure.note(format!(
        "Simulated until {FLUSHES} flushes: from 4^7 to the {SHOWN_LONG} of the paper is too short \
         a way to tell growth. Write costs go in waves, which is why neither exponents nor lines \
         are met exactly."
    ));
    figure.note(
        "constant is left out of the drawing: its write cost in the thousands would flatten all \
         other curves.",
    );
}
