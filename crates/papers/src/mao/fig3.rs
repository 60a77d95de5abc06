//! Write cost over flushes of the policies that bound the number of runs.

use super::course::{Course, course, flushes_of, panel, simulate_all, unit_plans};
use super::fit::{fit_line, least, mean, power_of};
use crate::{Claim, Effort, Figure, FigureInfo};
use lsmith_lab::SharedProgress;

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

/// The drawn policies; [`CONSTANT`] would flatten all others.
const SHOWN: [&str; 4] = ["minlatency", "binomial", "bigtable", "exploring"];
const CONSTANT: &str = "constant";

/// The courses of the drawn policies with one bound, in the order of [`SHOWN`].
struct Bound<'a> {
    k: u64,
    shown: [&'a Course; 4],
    constant: &'a Course,
}

pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let flushes = flushes_of(FLUSHES, effort);
    let bounded = |k: u64| {
        let names = SHOWN.into_iter().chain([CONSTANT]);
        names.map(move |name| format!("{name}(k={k})"))
    };
    let specs = PANELS.iter().flat_map(|(k, ..)| bounded(*k));
    let courses = simulate_all(&unit_plans(specs, flushes, EVERY), progress)?;
    let bounds = PANELS.map(|(k, ..)| Bound {
        k,
        shown: SHOWN.map(|name| course(&courses, &format!("{name}(k={k})"))),
        constant: course(&courses, &format!("{CONSTANT}(k={k})")),
    });

    let titles = PANELS.map(|(k, long, beginning)| {
        let title = |shown: u64| format!("k = {k}, {shown} flushes, 4^k = {}", regime(k));
        (panel(long, &title(SHOWN_LONG)), panel(beginning, &title(SHOWN_SHORT)))
    });
    let (long, beginnings): (Vec<_>, Vec<_>) = titles.into_iter().unzip();
    let mut figure =
        Figure::empty(info.name, info.title, long.into_iter().chain(beginnings).collect());
    draw(&mut figure, &bounds);
    for bound in &bounds {
        claim_small(&mut figure, bound);
        claim_large(&mut figure, bound);
    }
    note(&mut figure);
    Ok(figure)
}

fn draw(figure: &mut Figure, bounds: &[Bound<'_>]) {
    for (bound, (_, long, _)) in bounds.iter().zip(PANELS) {
        for course in bound.shown {
            course.draw(figure, long, &course.write_costs_where(shown_long));
        }
    }
    for (bound, (_, _, beginning)) in bounds.iter().zip(PANELS) {
        for course in bound.shown {
            course.draw(figure, beginning, &course.write_costs_where(|at| at <= SHOWN_SHORT));
        }
    }
}

/// Returns the flushes at which the large-n regime begins.
fn regime(k: u64) -> u64 {
    1 << (2 * k)
}

/// Returns true if a long run has a point at `flushes`.
fn shown_long(flushes: u64) -> bool {
    flushes <= SHOWN_LONG && flushes.is_multiple_of(EVERY_LONG)
}

impl Bound<'_> {
    /// Returns the write costs of the drawn policies in the small-n regime, averaged over flushes.
    fn means(&self) -> Option<[f64; 4]> {
        let mean_of = |course: &Course| {
            let costs = course.write_costs_where(|at| at <= regime(self.k));
            mean(costs.into_iter().map(|(_, cost)| cost))
        };
        let [minlatency, binomial, bigtable, exploring] = self.shown;
        Some([mean_of(minlatency)?, mean_of(binomial)?, mean_of(bigtable)?, mean_of(exploring)?])
    }
}

fn claim_small(figure: &mut Figure, bound: &Bound<'_>) {
    let Some([minlatency, binomial, bigtable, exploring]) = bound.means() else { return };
    let regime = format!("k = {}, up to 4^k flushes, mean write costs", bound.k);
    figure.claim(Claim::at_most(
        format!("{regime}: minlatency over the least of the others (it is least)"),
        minlatency / binomial.min(bigtable).min(exploring),
        1.0,
    ));
    figure.claim(Claim::at_most(
        format!("{regime}: binomial over the less of bigtable and exploring (it is second)"),
        binomial / bigtable.min(exploring),
        1.0,
    ));
    figure.claim(Claim::at_most(
        format!("{regime}: bigtable over exploring (exploring is last)"),
        bigtable / exploring,
        1.0,
    ));
    figure.claim(Claim::at_most(
        format!("{regime}: the most over minlatency (all are close behind)"),
        binomial.max(bigtable).max(exploring) / minlatency,
        1.5,
    ));
}

fn claim_large(figure: &mut Figure, bound: &Bound<'_>) {
    let k = bound.k;
    let [minlatency, binomial, bigtable, exploring] =
        bound.shown.map(|course| course.write_costs_where(|at| at > regime(k)));
    let pairs = minlatency.iter().zip(&binomial);
    figure.claim(mean(pairs.map(|(one, other)| (other.1 / one.1 - 1.0).abs())).map(|apart| {
        let claim = "minlatency and binomial differ in write cost by this share, on average";
        Claim::at_most(format!("k = {k}, past 4^k flushes: {claim}"), apart, 0.02)
    }));
    for (name, costs) in [("minlatency", &minlatency), ("binomial", &binomial)] {
        figure.claim(power_of(costs).map(|power| {
            let claim = format!("k = {k}, past 4^k flushes t: {name} grows as t^(1/k), exponent");
            Claim::near(claim, 1.0 / k as f64, power, 0.1)
        }));
    }
    let lines = [&bigtable, &exploring].map(|costs| fit_line(costs).map(|line| line.r_squared));
    if let [Some(bigtable), Some(exploring)] = lines {
        let growth = "bigtable and exploring grow linearly, R² of a line at least";
        let claim = format!("k = {k}, past 4^k flushes: {growth}");
        figure.claim(least([bigtable, exploring]).map(|r| Claim::at_least(claim, r, 0.9)));
    }
    let constant = bound.constant.last();
    let predicted = constant.parts.flushes as f64 / (2 * k) as f64;
    let claim = format!("k = {k}: constant grows as t/k, write cost at the end over t/2k");
    figure.claim(Claim::near(claim, 1.0, bound.constant.write_cost() / predicted, 0.02));
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
         a way to tell growth. Write costs go in waves, which is why neither \
         exponents nor lines are met exactly."
    ));
    figure.note(
        "constant is left out of the drawing: its write cost in the thousands would flatten all \
         other curves.",
    );
}
