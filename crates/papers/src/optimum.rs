//! Compares the cost of every policy with the optimum at its mean number of runs.

use crate::form::*;
use anyhow::Context;
use lsmith_model::formulas::write_cost_bound;
use lsmith_model::optimum::{Hull, write_cost_least};
use lsmith_sim::{Event, Figures, UNIT_BYTES, simulate_unit};

/// The number of simulated flushes.
const FLUSHES: u64 = 20_000;
const FLUSHES_QUICK: u64 = 2_000;

/// The bounds on runs, and the ratios, that are tried.
const RUNS: [u64; 9] = [2, 3, 4, 5, 6, 8, 10, 14, 20];
const RATIOS: [u64; 8] = [2, 3, 4, 6, 8, 10, 16, 24];

/// The policies with a bound on their runs.
const BOUNDED: [&str; 5] = ["minlatency", "binomial", "bigtable", "exploring", "constant"];
/// The policies of levels with a ratio.
const LEVELED: [(&str, &str); 4] = [
    ("tiered", ""),
    ("leveled", ", l0=1, pick=round_robin"),
    ("leveled, l0=4", ", l0=4, pick=round_robin"),
    ("leveled, whole levels", ", l0=1, pick=whole_level"),
];

const HULL: &str = "least";
/// The number of drawn points of the hull, and the most drawn runs.
const HULL_POINTS: usize = 60;
const RUNS_SHOWN: f64 = 40.0;
/// The greatest drawn write cost. Points above it would flatten all others.
const COST_SHOWN: f64 = 100.0;

/// A policy, with the bound on its runs if it has one.
struct Setting {
    curve: &'static str,
    spec: String,
    runs_max: Option<u64>,
}

/// What a policy costs.
struct Found {
    setting: Setting,
    figures: Figures,
    /// By how many percent it writes more than the least with as many runs.
    excess: f64,
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let flushes = task.pick(FLUSHES_QUICK * Effort::QUICK.shrink / task.effort.shrink, FLUSHES);
    let x = || Axis::log("runs after a flush, mean", "");
    let cost = Axis::log("write cost", "bytes written per byte flushed");
    let over_least = Axis::log("write cost over the least", "");
    let mut figure = task.figure([
        Panel::new("a", format!("{flushes} flushes"), x(), cost),
        Panel::new("b", "over the least at as many runs", x(), over_least),
    ]);
    let settings = settings();
    let simulated = task.each(
        "unit simulation",
        &settings,
        |_| flushes,
        |setting, ticker| simulate(&setting.spec, flushes, task, ticker),
    )?;
    let own = task.own_beside(settings.iter().map(|setting| &setting.spec));
    let simulated_own = task.each(
        "unit simulation of yours",
        &own,
        |_| flushes,
        |spec, ticker| simulate(spec, flushes, task, ticker),
    )?;
    let hull = Hull::new(flushes);
    let found = settings.into_iter().zip(simulated).map(|(setting, figures)| {
        let excess =
            percent_off(figures.write_cost_system, hull.write_cost(figures.read_cost_mean));
        Found { setting, figures, excess }
    });
    let mut found: Vec<Found> = found.collect();
    claims(&mut figure, flushes, &found);
    found.sort_by(|one, other| one.figures.read_cost_mean.total_cmp(&other.figures.read_cost_mean));
    let is_shown = |runs: f64, cost: f64| runs <= RUNS_SHOWN && cost <= COST_SHOWN;
    for curve in BOUNDED.into_iter().chain(LEVELED.map(|(curve, _)| curve)) {
        for Found { figures, excess, .. } in of(&found, curve) {
            let (runs, cost) = (figures.read_cost_mean, figures.write_cost_system);
            if is_shown(runs, cost) {
                figure.point("a", curve, runs, cost);
                figure.point("b", curve, runs, 1.0 + excess / 100.0);
            }
        }
    }
    for (spec, figures) in own.iter().zip(&simulated_own) {
        let (runs, cost) = (figures.read_cost_mean, figures.write_cost_system);
        figure.point("a", spec, runs, cost);
        figure.point("b", spec, runs, cost / hull.write_cost(runs));
    }
    let points = hull.points(HULL_POINTS).into_iter().map(|it| (it.runs_mean, it.write_cost));
    figure.draw("a", HULL, points.filter(|(runs, cost)| is_shown(*runs, *cost)));
    notes(&mut figure, flushes);
    Ok(figure)
}

fn of<'a>(found: &'a [Found], curve: &'a str) -> impl Iterator<Item = &'a Found> {
    found.iter().filter(move |it| it.setting.curve == curve)
}

fn settings() -> Vec<Setting> {
    let bounded = BOUNDED.into_iter().flat_map(|curve| {
        RUNS.map(|runs| {
            // Windows of exploring have at least this many runs: three, or fewer for small `k`.
            let min = if curve == "exploring" && runs < 3 { ", min=2" } else { "" };
            Setting { curve, spec: format!("{curve}(k={runs}{min})"), runs_max: Some(runs) }
        })
    });
    let leveled = LEVELED.into_iter().flat_map(|(curve, more)| {
        let name = curve.split(',').next().unwrap_or(curve);
        RATIOS.map(|ratio| Setting {
            curve,
            spec: format!("{name}(ratio={ratio}{more})"),
            runs_max: None,
        })
    });
    bounded.chain(leveled).collect()
}

fn simulate(
    spec: &str,
    flushes: u64,
    task: &Task<'_>,
    ticker: &Ticker<'_>,
) -> anyhow::Result<Figures> {
    let policy = task.policy(spec)?;
    let sizes = std::iter::repeat_n(UNIT_BYTES, flushes as usize);
    let simulated = simulate_unit(&policy, sizes, UNIT_BYTES, &mut |event| {
        if matches!(event, Event::Rest { .. }) {
            ticker.tick(1);
        }
    });
    Ok(simulated.with_context(|| format!("policy {spec}"))?.figures)
}

fn claims(figure: &mut Figure, flushes: u64, found: &[Found]) {
    let claim = "k = 4, 1024 flushes: least write cost, by the recursion";
    figure.near(claim, 8.7832, write_cost_least(1024, 4), 5e-5);
    let claim = "all policies: the least that one is above the hull, % (none is below)";
    figure.at_least(claim, least(found.iter().map(|it| it.excess)), 0.0);
    let over_least = found.iter().filter_map(|it| {
        Some(it.figures.write_cost_system / write_cost_least(flushes, it.setting.runs_max?))
    });
    let claim = "policies with a bound k: the least write cost over the optimum with k runs";
    figure.at_least(claim, least(over_least), 1.0);
    let mean_excess = |curve| mean(of(found, curve).map(|it| it.excess)).unwrap_or(f64::NAN);
    let best = [("minlatency", mean_excess("minlatency")), ("binomial", mean_excess("binomial"))];
    for (name, _) in best {
        let over_bound = of(found, name).filter_map(|it| {
            let k = it.setting.runs_max.filter(|k| 1 << (2 * k) <= flushes)?;
            Some(it.figures.write_cost_eager / write_cost_bound(flushes as f64, k))
        });
        let claim = format!("{name}, past 4^k flushes: most eager write cost over its bound");
        figure.at_most(claim, over_bound.fold(0.0, f64::max), 1.0);
    }
    for (name, excess) in best {
        let claim = format!("{name}: above the hull, %, mean over k (near the least)");
        figure.at_most(claim, excess, 25.0);
    }
    for other in BOUNDED.iter().skip(2) {
        let more = mean_excess(other) - best[0].1.max(best[1].1);
        let claim = format!("{other}: points above the worse of these two in that mean");
        figure.at_least(claim, more, 0.0);
    }
}

fn notes(figure: &mut Figure, flushes: u64) {
    figure.note(format!(
        "Simulated by size alone: {flushes} flushes of one size that share no key. Every flush is \
         written once, and every output of a merge. The least is over all schedules of merges of \
         whole runs that know the number of flushes, with as many runs on average: the lower hull \
         of write cost against mean runs. leveled merges parts of runs, which the hull does not \
         bound; it is far above it all the same."
    ));
    figure.note(format!(
        "Left out of the drawing: write costs above {COST_SHOWN} and more than {RUNS_SHOWN} runs. \
         Claims are about all."
    ));
}
