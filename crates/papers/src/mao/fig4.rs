//! Write cost over flushes of tiered and leveled.

use super::course::{CHEAP, Course, Courses, flushes_of, panel, specs};
use crate::form::*;

/// The approximate flushes of a run, and of the second part of the figure.
const FLUSHES: u64 = 24_000;
const BEGINNING: u64 = 2_000;

/// Flushes between two points: for the beginning, and for the whole run.
const EVERY: u64 = 10;
const EVERY_LONG: u64 = 100;

pub(super) const RATIOS: [u64; 4] = [4, 8, 16, 32];

/// The policies and bounds that the paper compares with tiered and leveled. Constant is missing:
/// the paper excepts it in the rank of leveled, and it is above all others, so also above tiered.
const BOUNDS: [u64; 7] = [3, 4, 5, 6, 7, 8, 10];

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let flushes = flushes_of(FLUSHES, task.effort);
    let [tiered, leveled] = ["tiered", "leveled"].map(|name| specs([name], "ratio", &RATIOS));
    let bounded = specs(CHEAP, "k", &BOUNDS);
    let all = tiered.iter().chain(&leveled).chain(&bounded);
    let own = task.own_beside(all.clone());
    let all = all.chain(&own);
    let courses = Courses::unit(task, all, flushes, EVERY)?;
    let sized = [("tiered", &tiered), ("leveled", &leveled)];
    let parts = [("a", flushes), ("b", BEGINNING.min(flushes))];
    let mut figure = task.figure(parts.into_iter().flat_map(|(part, shown)| {
        let title = |name| format!("{name}, {shown} flushes");
        sized.map(|(name, _)| panel(&format!("{part}-{name}"), &title(name)))
    }));
    for (name, specs) in sized {
        let long = |at: u64| at.is_multiple_of(EVERY_LONG);
        courses.draw(&mut figure, &format!("a-{name}"), specs.iter().chain(&own), long);
    }
    for (name, specs) in sized {
        let all = specs.iter().chain(&own);
        courses.draw(&mut figure, &format!("b-{name}"), all, |at| at <= BEGINNING);
    }
    let of = |specs: &[String]| specs.iter().map(|spec| courses.of(spec)).collect::<Vec<_>>();
    let [tiered, leveled] = [of(&tiered), of(&leveled)];
    claim_ranks(&mut figure, &tiered, &leveled, &of(&bounded));
    claim_ratios(&mut figure, &tiered, &leveled);
    claim_growth(&mut figure, &tiered, &leveled);
    note(&mut figure);
    Ok(figure)
}

fn claim_ranks(figure: &mut Figure, tiered: &[&Course], leveled: &[&Course], bounded: &[&Course]) {
    let next = least(bounded.iter().chain(leveled).map(|course| course.write_cost()));
    for course in tiered {
        let claim = format!(
            "{}: write cost over the least of all but tiered (tiered is lowest)",
            course.spec
        );
        figure.at_most(claim, next.map(|next| course.write_cost() / next), 1.0);
    }
    for from in [6, 3] {
        let rivals = bounded.iter().filter(|course| bound_of(course) >= from);
        let dearest = most(rivals.map(|course| course.write_cost()));
        let cheapest = least(leveled.iter().map(|course| course.write_cost()));
        let claim = format!(
            "least write cost of leveled over the most of minlatency, binomial, bigtable and \
             exploring, k from {from} (leveled is above all but constant)"
        );
        figure.at_least(claim, over(cheapest, dearest), 1.0);
    }
}

/// Returns the bound in the spec of one of [`CHEAP`].
fn bound_of(course: &Course) -> u64 {
    let fits = |k: &u64| course.spec.ends_with(&format!("(k={k})"));
    BOUNDS.into_iter().find(fits).expect("all are spelled with one of these")
}

/// Adds claims on the effect of the ratio, at the end and after the beginning.
fn claim_ratios(figure: &mut Figure, tiered: &[&Course], leveled: &[&Course]) {
    for at in [None, Some(BEGINNING)] {
        let cost = |course: &Course| match at {
            None => Some(course.write_cost()),
            Some(at) => course.write_costs_where(|flushes| flushes == at).first().map(|one| one.1),
        };
        // The cost of each ratio over the cost of the ratio before it.
        let steps = |courses: &[&Course]| -> Option<Vec<f64>> {
            courses.windows(2).map(|pair| over(cost(pair[1]), cost(pair[0]))).collect()
        };
        let when = at.map_or("at the end".to_owned(), |at| format!("after {at} flushes"));
        let claim = format!(
            "tiered, {when}: most write cost over that of half the ratio (smaller ratio, higher \
             cost)"
        );
        figure.at_most(claim, steps(tiered).and_then(most), 1.0);
        let claim = format!(
            "leveled, {when}: least write cost over that of half the ratio (smaller ratio, lower \
             cost)"
        );
        figure.at_least(claim, steps(leveled).and_then(least), 1.0);
    }
}

/// Adds claims on O(log t) and O(B log t). Tiered writes every flush at most once per tier; leveled
/// writes it once per level, together with the keys that it meets.
fn claim_growth(figure: &mut Figure, tiered: &[&Course], leveled: &[&Course]) {
    let excess = |courses: &[&Course], per_level: fn(f64) -> f64| {
        let of = |course: &Course, ratio: f64| {
            let costs = course.write_costs().into_iter();
            most(costs.map(|(at, cost)| cost / (per_level(ratio) * (1.0 + at.log(ratio)))))
        };
        let courses = courses.iter().zip(RATIOS);
        most(courses.filter_map(|(course, ratio)| of(course, ratio as f64)))
    };
    let claim = "tiered: most write cost over 1 + log t, base B, at any time (it is O(log t))";
    figure.at_most(claim, excess(tiered, |_| 1.0), 1.0);
    let claim = "leveled: most write cost over B + 1 times 1 + log t, base B, at any time (it is \
                 O(B log t))";
    figure.at_most(claim, excess(leveled, |ratio| ratio + 1.0), 1.0);
}

fn note(figure: &mut Figure) {
    figure.note(
        "Write cost: bytes written to create runs so far, flushes included, over bytes flushed so \
         far; simulated with flushes of equal size. A piece that leveled moves down meets `ratio` \
         times its size in the next level.",
    );
    figure.explain(
        "tiered(ratio=4): write cost over the least of all but tiered",
        "tiered(ratio=4) and minlatency(k=10) come out all but equal, so the rank of tiered with \
         that ratio depends on the very number of flushes.",
    );
    figure.explain(
        "least write cost of leveled over the most",
        "bigtable and exploring with k up to 5 are far above leveled by the end, since they grow \
         linearly: also in the paper, which ended some of those runs early. What it says of \
         leveled can only hold for larger k.",
    );
}
