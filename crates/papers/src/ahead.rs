//! Judges the policy that plans ahead by the exact optimum at its mean number of runs.

use crate::form::*;
use anyhow::Context;
use lsmith_model::optimum::{Hull, Priced};
use lsmith_sim::{Event, UNIT_BYTES, simulate_unit};
use lsmith_workload::{FlushSizes, NoInputs};

/// Flushes of one size: the mean over numbers of flushes from a sixteenth of these up to them.
const FLUSHES: u64 = 4096;
const FLUSHES_QUICK: u64 = 512;
const ENDS: u32 = 16;

/// Flushes of sizes that vary, and how often they are drawn.
const VARIED: u64 = 300;
const VARIED_QUICK: u64 = 60;
const SIGMAS: [f64; 3] = [0.5, 1.2, 2.0];
const DRAWS: u64 = 6;

/// The most runs of the policy that plans ahead.
const RUNS: [u64; 8] = [4, 5, 6, 8, 10, 12, 16, 20];
const OTHERS: [&str; 4] = ["minlatency", "binomial", "bigtable", "exploring"];
const OTHERS_RUNS: [u64; 6] = [3, 4, 5, 6, 8, 12];
const AUTO: &str = "auto";
const LEAST: &str = "least";

/// Lucene's own simulations of its merge policy: largest merge, write cost and mean segments that
/// they print.
const LARGEST: u64 = 5_000_000_000;
const LUCENE: [Lucene; 2] = [
    Lucene { panel: "c", flushes: 555, largest_flush: 300_000_000, write: 1.99, segments: 33.62 },
    Lucene { panel: "d", flushes: 1000, largest_flush: 244_000_000, write: 2.88, segments: 36.4 },
];
const PRICES: [f64; 10] = [8.0, 3.0, 1.0, 0.5, 0.25, 0.1, 0.05, 0.03, 0.02, 0.01];

struct Lucene {
    panel: &'static str,
    flushes: u64,
    largest_flush: u64,
    write: f64,
    segments: f64,
}

impl Lucene {
    /// Returns the sizes of the flushes: all the same, or any up to the largest.
    fn sizes(&self) -> anyhow::Result<Vec<u64>> {
        if self.panel == "c" {
            return Ok(vec![self.largest_flush; self.flushes as usize]);
        }
        let mut random = lsmith_workload::Rng::new(1, 0);
        Ok((0..self.flushes).map(|_| 1 + random.below(self.largest_flush)).collect())
    }
}

/// What a policy has done after each flush, from 0 flushes on.
struct Course {
    flushed: Vec<f64>,
    merged: Vec<f64>,
    runs: Vec<f64>,
}

impl Course {
    fn of(spec: &str, sizes: &[u64], task: &Task<'_>, ticker: &Ticker<'_>) -> anyhow::Result<Self> {
        let policy = task.policy(spec)?;
        let memtable = sizes.iter().copied().max().unwrap_or(1);
        let mut course = Course { flushed: vec![0.0], merged: vec![0.0], runs: vec![0.0] };
        let mut merged = 0.0;
        let simulated =
            simulate_unit(&policy, sizes.iter().copied(), memtable, &mut |event| match event {
                Event::Merge { plan, edit, .. } if plan.inputs.len() > 1 => {
                    let slices = edit.add.iter().flat_map(|added| &added.slices);
                    merged += slices.map(|slice| slice.size().bytes as f64).sum::<f64>();
                }
                Event::Rest { tree } => {
                    let flush = course.flushed.len() - 1;
                    course.flushed.push(course.flushed[flush] + sizes[flush] as f64);
                    course.merged.push(merged);
                    course.runs.push(course.runs[flush] + tree.disk_run_count() as f64);
                    ticker.tick(1);
                }
                _ => {}
            });
        simulated.with_context(|| format!("policy {spec}"))?;
        Ok(course)
    }

    /// Returns mean runs and write cost after `flushes`.
    fn after(&self, flushes: usize) -> (f64, f64) {
        let cost = 1.0 + self.merged[flushes] / self.flushed[flushes];
        (self.runs[flushes] / flushes as f64, cost)
    }

    fn end(&self) -> (f64, f64) {
        self.after(self.flushed.len() - 1)
    }
}

/// How far above the least a policy is, at its mean number of runs.
#[derive(Clone, Copy)]
struct Excess {
    runs: f64,
    percent: f64,
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let runs = || Axis::log("runs after a flush, mean", "");
    let excess = || Axis::linear("written above the least", "%");
    let write = || Axis::linear("write cost", "bytes written per byte flushed");
    let segments = || Axis::linear("runs after a flush, mean", "");
    let mut figure = task.figure([
        Panel::new("a", "flushes of one size", runs(), excess()),
        Panel::new("b", "sizes that vary, sigma 1.2", runs(), excess()),
        Panel::new("c", "merges up to 5 GB of flushes of 300 MB", segments(), write()),
        Panel::new("d", "merges up to 5 GB of flushes of 0 to 244 MB", segments(), write()),
    ]);
    let specs = specs(task);
    one_size(&mut figure, &specs, task)?;
    for sigma in SIGMAS {
        varied(&mut figure, &specs, sigma, task)?;
    }
    for simulation in &LUCENE {
        largest_merge(&mut figure, simulation, task)?;
    }
    figure.note(
        "Simulated by size alone, eager=never: each flush is written once, and each output of a \
         merge. The least is over all schedules of merges of neighbours that know all flushes \
         from the start, with as many runs on average.",
    );
    figure.note(format!(
        "a: the mean over {} numbers of flushes, up to {}, one part of an octave apart. b: the \
         median of {DRAWS} draws of {} flushes. c, d: what Lucene's own test prints for its tiered \
         policy is a point (Lucene 9.12, no deletes; it may merge segments that are no neighbours).",
        ENDS + 1,
        task.pick(FLUSHES_QUICK, FLUSHES),
        task.pick(VARIED_QUICK, VARIED)
    ));
    Ok(figure)
}

/// Returns curves with their specs.
fn specs(task: &Task<'_>) -> Vec<(String, String)> {
    let auto = RUNS.map(|runs| (AUTO.to_string(), format!("auto(runs={runs}, eager=never)")));
    let others = OTHERS.into_iter().flat_map(|curve| {
        let min = |runs: u64| if curve == "exploring" && runs < 3 { ", min=2" } else { "" };
        OTHERS_RUNS
            .map(|runs| (curve.to_string(), format!("{curve}(k={runs}, eager=never{})", min(runs))))
    });
    let universal = [4, 6, 8, 12, 16].map(|trigger| {
        ("universal".to_string(), format!("universal(trigger={trigger}, eager=never)"))
    });
    let known: Vec<_> = auto.into_iter().chain(others).chain(universal).collect();
    let own = task.own_beside(known.iter().map(|(_, spec)| spec));
    known.into_iter().chain(own.into_iter().map(|spec| (spec.clone(), spec))).collect()
}

fn one_size(
    figure: &mut Figure,
    specs: &[(String, String)],
    task: &Task<'_>,
) -> anyhow::Result<()> {
    let flushes = task.pick(FLUSHES_QUICK * Effort::QUICK.shrink / task.effort.shrink, FLUSHES);
    let flushes = flushes.max(64);
    let end = |step: u32| {
        let part = f64::from(step) / f64::from(ENDS);
        (flushes as f64 / 16.0 * 16_f64.powf(part)).round() as usize
    };
    let sizes = vec![UNIT_BYTES; flushes as usize];
    let found = task.each(
        "flushes of one size",
        specs,
        |_| flushes,
        |(_, spec), ticker| {
            let course = Course::of(spec, &sizes, task, ticker)?;
            let percents = (0..=ENDS).map(|step| {
                let (runs, cost) = course.after(end(step));
                percent_off(cost, Hull::new(end(step) as u64).write_cost(runs))
            });
            let percent = mean(percents).unwrap_or(f64::NAN);
            Ok(Excess { runs: course.end().0, percent })
        },
    )?;
    draw(figure, "a", specs, &found);
    let of = |curve: &'static str| curve_of(specs, &found, curve);
    let claim = "one size: above the least, %, most over up to 6 mean runs";
    let few = of(AUTO).into_iter().filter(|it| it.runs <= 6.0).map(|it| it.percent);
    figure.at_most(claim, most(few), 5.0);
    let claim = "one size: above the least, %, most over all mean runs";
    figure.at_most(claim, most(of(AUTO).into_iter().map(|it| it.percent)), 5.0);
    figure.explain(
        "one size: above the least, %, most over all",
        "a schedule that does not know the end cannot be near the least at every end: the best of \
         all schedules that are fixed in advance is 5 % above it at 5 mean runs, 8 % at 6.5 and \
         11 % at 8.6 (means over ends from 32 to 600 flushes; docs/auto.md)",
    );
    let below = of("minlatency").into_iter().filter_map(|other| {
        let auto = at_runs(&of(AUTO), other.runs)?;
        Some(auto - other.percent)
    });
    figure.at_most("one size: points above minlatency, most", most(below), 0.0);
    Ok(())
}

fn varied(
    figure: &mut Figure,
    specs: &[(String, String)],
    sigma: f64,
    task: &Task<'_>,
) -> anyhow::Result<()> {
    let flushes = task.pick(VARIED_QUICK, VARIED);
    let draws: Vec<Vec<u64>> = (1..=DRAWS)
        .map(|draw| {
            let spec = format!("lognormal(mean=0.05, sigma={sigma}, seed={draw})");
            let sizes = FlushSizes::from_spec(&spec.parse()?, &NoInputs)?;
            Ok((0..flushes).map(|flush| sizes.bytes(flush, UNIT_BYTES)).collect())
        })
        .collect::<anyhow::Result<_>>()?;
    let step = format!("sizes that vary, sigma {sigma}");
    let found = task.each(
        &step,
        specs,
        |_| flushes,
        |(_, spec), ticker| {
            let mut runs = 0.0;
            let mut percents = Vec::new();
            for sizes in &draws {
                let (mean_runs, cost) = Course::of(spec, sizes, task, ticker)?.end();
                runs += mean_runs / draws.len() as f64;
                percents.push(percent_off(cost, Priced::new(sizes, None).write_cost(mean_runs)));
            }
            percents.sort_by(f64::total_cmp);
            let middle = percents.len() / 2;
            let percent = f64::midpoint(percents[middle - 1], percents[middle]);
            Ok(Excess { runs, percent })
        },
    )?;
    if sigma == 1.2 {
        draw(figure, "b", specs, &found);
    }
    let auto = mean(curve_of(specs, &found, AUTO).into_iter().map(|it| it.percent));
    let others = OTHERS.into_iter().chain(["universal"]);
    let best =
        least(others.filter_map(|curve| {
            mean(curve_of(specs, &found, curve).into_iter().map(|it| it.percent))
        }));
    let claim =
        format!("sigma {sigma}: above the least, over the best other policy (mean of runs)");
    figure.at_most(claim, over(auto, best), 0.5);
    Ok(())
}

fn largest_merge(figure: &mut Figure, simulation: &Lucene, task: &Task<'_>) -> anyhow::Result<()> {
    let sizes = simulation.sizes()?;
    let step = format!("merges up to 5 GB, {} flushes", simulation.flushes);
    let work = |_: &f64| simulation.flushes;
    let found = task.each(&step, &PRICES, work, |price, ticker| {
        let spec = format!("auto(runs=64, price={price}, eager=never, largest={LARGEST})");
        Ok(Course::of(&spec, &sizes, task, ticker)?.end())
    })?;
    let unit = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
    let optimum = task.each(&step, &PRICES, work, |price, _| {
        let least = Priced::new(&sizes, Some(LARGEST)).at_price(price * unit);
        let flushes = sizes.len() as f64;
        Ok((least.runs as f64 / flushes, 1.0 + least.merged / (unit * flushes)))
    })?;
    figure.draw(simulation.panel, AUTO, found.iter().copied());
    figure.draw(simulation.panel, LEAST, optimum.iter().copied());
    figure.point(simulation.panel, "Lucene, tiered", simulation.segments, simulation.write);
    let fewer = found.iter().filter(|(runs, _)| *runs <= simulation.segments);
    let best = least(fewer.map(|(_, cost)| *cost));
    let name = simulation.flushes;
    let claim = format!("{name} flushes: write cost over Lucene's, with no more runs");
    figure.at_most(&claim, best.map(|best| best / simulation.write), 0.75);
    let bound = Priced::new(&sizes, Some(LARGEST)).write_cost(simulation.segments);
    figure.explain(&claim, format!("the least with as many runs is {bound:.2}"));
    Ok(())
}

fn draw(figure: &mut Figure, panel: &str, specs: &[(String, String)], found: &[Excess]) {
    let mut points: Vec<_> = specs.iter().zip(found).collect();
    points.sort_by(|(_, one), (_, other)| one.runs.total_cmp(&other.runs));
    for ((curve, _), found) in points {
        figure.point(panel, curve, found.runs, found.percent);
    }
}

/// Returns the points of a curve, few runs first.
fn curve_of(specs: &[(String, String)], found: &[Excess], curve: &str) -> Vec<Excess> {
    let of = specs.iter().zip(found).filter(|((name, _), _)| name == curve);
    let mut points: Vec<Excess> = of.map(|(_, found)| *found).collect();
    points.sort_by(|one, other| one.runs.total_cmp(&other.runs));
    points
}

/// Returns the percent of a curve at `runs`, between two of its points.
fn at_runs(points: &[Excess], runs: f64) -> Option<f64> {
    let pair = points.windows(2).find(|pair| (pair[0].runs..=pair[1].runs).contains(&runs))?;
    let part = (runs - pair[0].runs) / (pair[1].runs - pair[0].runs);
    Some(pair[0].percent + (pair[1].percent - pair[0].percent) * part)
}
