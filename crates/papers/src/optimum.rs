//! Compares the cost of every policy with the optimum at its mean number of runs.

use crate::form::*;
use anyhow::Context;
use lsmith_model::formulas::write_cost_bound;
use lsmith_model::optimum::{Hull, write_cost_least};
use lsmith_policy::Registry;
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

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let flushes = task.pick(FLUSHES_QUICK * Effort::QUICK.shrink / task.effort.shrink, FLUSHES);
    let x = || Axis::log("runs after a flush, mean", "");
    let cost = Axis::log("write cost", "bytes written per byte flushed");
    let over_least = Axis::log("write cost over the least", "");
    let mut figure = task.figure([
        Panel::new("a", format!("{flushes} flushes"), x(), cost),
        Panel::new("b", "over the least at as many runs", x(), over_least),
    ]);
    let jobs = jobs(flushes);
    let found = task.each("unit simulation", &jobs, |run| run.flushes, Run::measure)?;
    let hull = Hull::new(flushes);
    let excess = |figures: &Figures| {
        let least = hull.write_cost(figures.read_cost_mean);
        (figures.write_cost_system / least - 1.0) * 100.0
    };
    let excesses: Vec<f64> = found.iter().map(excess).collect();
    draw(&mut figure, &jobs, &found, &excesses);
    let points = hull.points(HULL_POINTS).into_iter().map(|it| (it.runs_mean, it.write_cost));
    let is_shown = |(runs, cost): &(f64, f64)| *runs <= RUNS_SHOWN && *cost <= COST_SHOWN;
    figure.draw("a", HULL, points.filter(is_shown));
    claims(&mut figure, flushes, &jobs, &found, &excesses);
    notes(&mut figure, flushes);
    Ok(figure)
}

/// Adds the drawn points, each curve from few runs to many.
fn draw(figure: &mut Figure, jobs: &[Run], found: &[Figures], excesses: &[f64]) {
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    let runs = |index: &usize| found[*index].read_cost_mean;
    order.sort_by(|left, right| runs(left).total_cmp(&runs(right)));
    let curves = BOUNDED.iter().chain(LEVELED.iter().map(|(curve, _)| curve));
    for curve in curves {
        for &index in order.iter().filter(|index| jobs[**index].curve == *curve) {
            let runs = found[index].read_cost_mean;
            let cost = found[index].write_cost_system;
            if cost <= COST_SHOWN && runs <= RUNS_SHOWN {
                figure.point("a", curve, runs, cost);
                figure.point("b", curve, runs, 1.0 + excesses[index] / 100.0);
            }
        }
    }
}

/// A simulation.
struct Run {
    curve: &'static str,
    spec: String,
    /// The bound on the runs of the policy, if it has one.
    runs_max: Option<u64>,
    flushes: u64,
}

fn jobs(flushes: u64) -> Vec<Run> {
    let mut jobs = Vec::new();
    for curve in BOUNDED {
        for runs in RUNS {
            // Windows of exploring have at least this many runs: three, or fewer for small `k`.
            let spec = match curve {
                "exploring" if runs < 3 => format!("{curve}(k={runs}, min=2)"),
                _ => format!("{curve}(k={runs})"),
            };
            jobs.push(Run { curve, spec, runs_max: Some(runs), flushes });
        }
    }
    for (curve, more) in LEVELED {
        let name = curve.split(',').next().unwrap_or(curve);
        for ratio in RATIOS {
            let spec = format!("{name}(ratio={ratio}{more})");
            jobs.push(Run { curve, spec, runs_max: None, flushes });
        }
    }
    jobs
}

impl Run {
    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Figures> {
        let policy = Registry::builtin().build(&self.spec)?;
        let sizes = std::iter::repeat_n(UNIT_BYTES, self.flushes as usize);
        let simulated = simulate_unit(&policy, sizes, UNIT_BYTES, &mut |event| {
            if matches!(event, Event::Rest { .. }) {
                ticker.tick(1);
            }
        });
        Ok(simulated.with_context(|| format!("policy {}", self.spec))?.figures)
    }
}

fn claims(figure: &mut Figure, flushes: u64, jobs: &[Run], found: &[Figures], excesses: &[f64]) {
    let claim = "k = 4, 1024 flushes: least write cost, by the recursion";
    figure.near(claim, 8.7832, write_cost_least(1024, 4), 5e-5);
    let claim = "all policies: the least that one is above the hull, % (none is below)";
    figure.at_least(claim, least(excesses.iter().copied()), 0.0);
    let bounded = || jobs.iter().zip(found).filter(|(job, _)| job.runs_max.is_some());
    let over_least = bounded().map(|(job, found)| {
        let runs_max = job.runs_max.unwrap_or(1);
        found.write_cost_system / write_cost_least(flushes, runs_max)
    });
    let claim = "policies with a bound k: the least write cost over the optimum with k runs";
    figure.at_least(claim, least(over_least), 1.0);
    for name in ["minlatency", "binomial"] {
        let many = |k: u64| 1 << (2 * k) <= flushes;
        let shown =
            bounded().filter(|(job, _)| job.curve == name && job.runs_max.is_some_and(many));
        let over_bound = shown.map(|(job, found)| {
            let bound = write_cost_bound(flushes as f64, job.runs_max.unwrap_or(1));
            found.write_cost_eager / bound
        });
        let claim = format!("{name}, past 4^k flushes: most eager write cost over its bound");
        figure.at_most(claim, over_bound.fold(0.0, f64::max), 1.0);
    }
    let mean_excess = |curve: &str| {
        let of_curve = jobs.iter().zip(excesses).filter(|(job, _)| job.curve == curve);
        mean(of_curve.map(|(_, excess)| *excess)).unwrap_or(f64::NAN)
    };
    let [minlatency, binomial] = ["minlatency", "binomial"].map(mean_excess);
    for (name, excess) in [("minlatency", minlatency), ("binomial", binomial)] {
        let claim = format!("{name}: above the hull, %, mean over k (near the least)");
        figure.at_most(claim, excess, 25.0);
    }
    for other in BOUNDED.iter().skip(2) {
        let more = mean_excess(other) - minlatency.max(binomial);
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
