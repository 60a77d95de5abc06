//! Judges the policy that plans ahead by the exact optimum at its mean number of runs.

use crate::form::*;
use anyhow::Context;
use lsmith_model::optimum::{Hull, Priced, anytime};
use lsmith_sim::{Event, Figures, UNIT_BYTES, simulate_unit};
use lsmith_workload::{FlushSizes, NoInputs};

/// Flushes of one size: the mean over numbers of flushes from a sixteenth of these up to them.
const FLUSHES: u64 = 4096;
const FLUSHES_QUICK: u64 = 512;
const ENDS: u32 = 16;

/// Schedules that are fixed in advance are the best for ends up to the last of these flushes, and
/// are judged at ends that are far from the first and the last.
const FIXED: [u64; 2] = [8, 2048];
const FIXED_QUICK: [u64; 2] = [8, 256];
const FIXED_ENDS: u32 = 64;
const FIXED_PRICES: [f64; 6] = [6.0, 3.0, 1.6, 0.8, 0.4, 0.2];
const AHEAD: &str = "fixed in advance";

/// Flushes of sizes that vary, and how often they are drawn.
const VARIED: u64 = 300;
const VARIED_QUICK: u64 = 60;
const SIGMAS: [f64; 3] = [0.5, 1.2, 2.0];
const DRAWS: u64 = 6;

/// Numbers of flushes at which reads are held against reads of leveled.
const LEVELED_ENDS: [u64; 7] = [50, 100, 200, 500, 1000, 2000, 5000];
const AS_LEVELED: &str = "auto(reads=as_leveled)";

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

    /// Returns the course of a schedule: for each flush the first flush of the run that it makes.
    fn of_firsts(firsts: &[u64]) -> Course {
        let mut course = Course { flushed: vec![0.0], merged: vec![0.0], runs: vec![0.0] };
        let mut runs: Vec<u64> = Vec::new();
        for (flush, first) in firsts.iter().enumerate() {
            runs.retain(|run| run < first);
            runs.push(*first);
            let output = (flush as u64 - first + 1) as f64;
            let merged = if output > 1.0 { output } else { 0.0 };
            course.flushed.push((flush + 1) as f64);
            course.merged.push(course.merged[flush] + merged);
            course.runs.push(course.runs[flush] + runs.len() as f64);
        }
        course
    }

    /// Returns how far above the least this is at its mean number of runs, in the mean over `ends`,
    /// which are numbers of flushes of one size.
    fn excess(&self, ends: &[u64]) -> Excess {
        let percents = ends.iter().map(|end| {
            let (runs, cost) = self.after(*end as usize);
            percent_off(cost, Hull::new(*end).write_cost(runs))
        });
        let runs = ends.last().map_or(f64::NAN, |last| self.after(*last as usize).0);
        Excess { runs, percent: mean(percents).unwrap_or(f64::NAN) }
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
        Panel::new("a2", "flushes of one size, earlier ends", runs(), excess()),
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
    as_leveled(&mut figure, task)?;
    figure.note(
        "Simulated by size alone, eager=never: each flush is written once, and each output of a \
         merge. The least is over all schedules of merges of neighbours that know all flushes \
         from the start, with as many runs on average.",
    );
    figure.note(format!(
        "a: the mean over {} numbers of flushes, up to {}, a quarter of an octave apart. a2: the \
         mean over earlier ends, beside the schedules that are nearest to the least in the mean \
         over all ends of a wider range, and are the same whatever the end is. b: the \
         median of {DRAWS} draws of {} flushes. c, d: what Lucene's own test prints for its tiered \
         policy is a point (Lucene 9.12, no deletes; it may merge segments that are apart).",
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
        OTHERS_RUNS.map(|runs| (curve.to_string(), format!("{curve}(k={runs}, eager=never)")))
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
    let late = ends(flushes / 16, flushes, ENDS);
    let early = judged_ends(task);
    let sizes = vec![UNIT_BYTES; flushes as usize];
    let both = task.each(
        "flushes of one size",
        specs,
        |_| flushes,
        |(_, spec), ticker| {
            let course = Course::of(spec, &sizes, task, ticker)?;
            Ok((course.excess(&late), course.excess(&early)))
        },
    )?;
    let (found, earlier): (Vec<Excess>, Vec<Excess>) = both.into_iter().unzip();
    draw(figure, "a", specs, &found);
    draw(figure, "a2", specs, &earlier);
    fixed_in_advance(figure, &curve_of(specs, &earlier, AUTO), task)?;
    let of = |curve: &'static str| curve_of(specs, &found, curve);
    let claim = "one size: above the least, %, most over up to 6 mean runs";
    let few = of(AUTO).into_iter().filter(|it| it.runs <= 6.0).map(|it| it.percent);
    figure.at_most(claim, most(few), 5.0);
    let claim = "one size: above the least, %, most over all mean runs";
    figure.at_most(claim, most(of(AUTO).into_iter().map(|it| it.percent)), 5.0);
    figure.explain(
        "one size: above the least, %, most over all",
        "who does not know the end cannot be near the least at every end; a2 has the best of all \
         schedules that are fixed in advance",
    );
    let below = of("minlatency").into_iter().filter_map(|other| {
        let auto = at_runs(&of(AUTO), other.runs)?;
        Some(auto - other.percent)
    });
    figure.at_most("one size: points above minlatency, most", most(below), 0.0);
    Ok(())
}

/// Returns numbers of flushes, evenly spread over their logarithms.
fn ends(first: u64, last: u64, steps: u32) -> Vec<u64> {
    let ratio = last as f64 / first as f64;
    let end = |step: u32| first as f64 * ratio.powf(f64::from(step) / f64::from(steps));
    let mut ends: Vec<u64> = (0..=steps).map(|step| end(step).round() as u64).collect();
    ends.dedup();
    ends
}

/// Returns the ends at which schedules that are fixed in advance are judged.
fn judged_ends(task: &Task<'_>) -> Vec<u64> {
    let [first, last] = task.pick(FIXED_QUICK, FIXED);
    let all = ends(first, last, FIXED_ENDS);
    all.into_iter().filter(|end| (4 * first..=last / 4).contains(end)).collect()
}

/// Draws the best that anybody can do who does not know the end.
fn fixed_in_advance(figure: &mut Figure, auto: &[Excess], task: &Task<'_>) -> anyhow::Result<()> {
    let [first, last] = task.pick(FIXED_QUICK, FIXED);
    let all = ends(first, last, FIXED_ENDS);
    let work = |_: &f64| last;
    let fixed = task.each("schedules fixed in advance", &FIXED_PRICES, work, |price, _| {
        Ok(Course::of_firsts(&anytime(*price, &all)).excess(&judged_ends(task)))
    })?;
    figure.draw("a2", AHEAD, fixed.iter().map(|it| (it.runs, it.percent)));
    let above = fixed.iter().filter_map(|it| Some(at_runs(auto, it.runs)? - it.percent));
    let claim = "one size: points above the best schedule fixed in advance, mean";
    figure.at_most(claim, mean(above), 3.0);
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
    let mut found = task.each(&step, &PRICES, work, |price, ticker| {
        let spec = format!("auto(runs=64, price={price}, eager=never, largest={LARGEST})");
        Ok(Course::of(&spec, &sizes, task, ticker)?.end())
    })?;
    let unit = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
    let optimum = task.each(&step, &PRICES, work, |price, _| {
        let least = Priced::new(&sizes, Some(LARGEST)).at_price(price * unit);
        let flushes = sizes.len() as f64;
        Ok((least.runs as f64 / flushes, 1.0 + least.merged / (unit * flushes)))
    })?;
    found.sort_by(|one, other| one.0.total_cmp(&other.0));
    figure.draw(simulation.panel, AUTO, found.iter().copied());
    figure.draw(simulation.panel, LEAST, optimum.iter().copied());
    figure.point(simulation.panel, "Lucene, tiered", simulation.segments, simulation.write);
    let fewer = found.iter().filter(|(runs, _)| *runs <= simulation.segments);
    let best = least(fewer.map(|(_, cost)| *cost));
    let name = simulation.flushes;
    let claim = format!("{name} flushes: write cost over Lucene's, with no more runs");
    figure.at_most(&claim, best.map(|best| best / simulation.write), 0.75);
    if best.is_some_and(|best| best > 0.75 * simulation.write) {
        let bound = Priced::new(&sizes, Some(LARGEST)).write_cost(simulation.segments);
        figure.explain(&claim, format!("the least with as many runs is {bound:.2}"));
    }
    Ok(())
}

/// Judges the policy whose reads are to be as cheap as leveled's.
fn as_leveled(figure: &mut Figure, task: &Task<'_>) -> anyhow::Result<()> {
    let ends = &LEVELED_ENDS[..task.pick(4, LEVELED_ENDS.len())];
    let found = task.each(
        "reads as leveled",
        ends,
        |end| *end,
        |end, ticker| {
            let figures = |spec| -> anyhow::Result<Figures> {
                let sizes = std::iter::repeat_n(UNIT_BYTES, *end as usize);
                let simulated = simulate_unit(&task.policy(spec)?, sizes, UNIT_BYTES, &mut |_| {});
                Ok(simulated.with_context(|| format!("policy {spec}"))?.figures)
            };
            let found = (figures(AS_LEVELED)?, figures("leveled")?);
            ticker.tick(*end);
            Ok(found)
        },
    )?;
    let runs = found.iter().map(|(auto, other)| auto.read_cost_mean / other.read_cost_mean);
    let claim = format!("{AS_LEVELED}: mean runs over leveled's");
    figure.at_most(format!("{claim}, most"), most(runs), 1.05);
    let writes = found.iter().map(|(auto, other)| auto.write_cost_system / other.write_cost_system);
    figure.at_most(format!("{AS_LEVELED}: write cost over leveled's, most"), most(writes), 0.35);
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
