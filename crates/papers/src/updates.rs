//! Judges policies by the exact optimum where keys repeat.

use crate::form::*;
use anyhow::Context;
use lsmith_lab::{Content, FileInputs, Least, simulate};
use lsmith_sim::KeyedWorkload;
use lsmith_workload::{FlushSizes, Workload};
use std::sync::Arc;

/// The optimum is exact for up to 300 flushes. Costs are means over these numbers of flushes.
const ENDS: [u64; 3] = [200, 250, 300];
const ENDS_QUICK: [u64; 2] = [60, 80];

/// Entries of 124 logical bytes.
const MEMTABLE_BYTES: u64 = 500 * 124;

/// What is written: the panel and the operations. All keys together fill forty memtables.
const WRITTEN: [(&str, &str); 3] = [
    ("even", "mix(put=1, keys=20k, ops=1M, value=100B"),
    ("zipf", "mix(put=1, keys=20k, ops=1M, value=100B, dist=zipf"),
    ("deletes", "mix(put=0.7, delete=0.3, keys=20k, ops=1M, value=100B"),
];

const AUTO: &str = "auto";
/// Policies by a bound on runs or a ratio.
const CURVES: [(&str, &str, &[u64]); 9] = [
    (AUTO, "runs", &[3, 4, 5, 6, 8, 12, 20]),
    ("minlatency", "k", &[2, 3, 4, 5, 6, 8, 12]),
    ("binomial", "k", &[2, 3, 4, 6, 8, 12]),
    ("bigtable", "k", &[3, 4, 5, 6, 8, 12]),
    ("exploring", "k", &[3, 4, 5, 6, 8, 12]),
    ("universal", "trigger", &[4, 6, 8, 12]),
    ("tiered", "ratio", &[2, 3, 4, 6, 8]),
    ("lazy_leveling", "ratio", &[2, 3, 4, 6, 8]),
    ("clickhouse", "base", &[2, 3, 5]),
];

/// What a policy costs, in the mean over all ends.
#[derive(Clone, Copy)]
struct Found {
    runs: f64,
    /// By how many percent it writes more than the least with as many runs in the mean.
    percent: f64,
}

/// A workload that ends after some flushes, with its optimum.
struct End {
    workload: KeyedWorkload,
    least: Least,
}

impl End {
    fn new(written: &str, flushes: u64) -> anyhow::Result<End> {
        let spec = format!("{written}, flushes={flushes})").parse()?;
        let workload = KeyedWorkload::new(Workload::from_spec(&spec, &FileInputs)?);
        let sizes = Arc::new(FlushSizes::default());
        let least = Least::of(&Content::Keyed(&workload), &sizes, MEMTABLE_BYTES)?;
        Ok(End { workload, least })
    }

    fn found(&self, spec: &str, task: &Task<'_>) -> anyhow::Result<Found> {
        let content = Content::Keyed(&self.workload);
        let simulated = simulate(&task.policy(spec)?, &content, MEMTABLE_BYTES, &mut |_| {});
        let simulated = simulated.with_context(|| format!("policy {spec}"))?;
        let optimum = self.least.optimum(&simulated).and_then(|optimum| optimum.at_mean_runs);
        let optimum = optimum.with_context(|| format!("policy {spec} leaves memory in place"))?;
        let runs = simulated.report.costs.read_cost_mean;
        Ok(Found { runs, percent: optimum.above * 100.0 })
    }
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let runs = || Axis::log("runs after a flush, mean", "");
    let excess = || Axis::log("write cost over the least", "");
    let mut figure = task.figure([
        Panel::new("even", "puts to even keys", runs(), excess()),
        Panel::new("zipf", "puts to Zipf keys", runs(), excess()),
        Panel::new("deletes", "puts, and deletes of 30 %", runs(), excess()),
    ]);
    let mut specs: Vec<(String, String)> = Vec::new();
    for (curve, parameter, values) in CURVES {
        specs.extend(
            values.iter().map(|value| (curve.into(), format!("{curve}({parameter}={value})"))),
        );
    }
    let own = task.own_beside(specs.iter().map(|(_, spec)| spec));
    specs.extend(own.into_iter().map(|spec| (spec.clone(), spec)));
    let ends: &[u64] = task.pick(&ENDS_QUICK, &ENDS);
    let mut in_all: Vec<(&str, Vec<f64>)> = CURVES.map(|(curve, ..)| (curve, Vec::new())).into();
    for (panel, written) in WRITTEN {
        let ends = ends
            .iter()
            .map(|end| End::new(written, (end * 4 / task.effort.shrink.max(4)).max(8)))
            .collect::<anyhow::Result<Vec<End>>>()?;
        let work = |_: &(String, String)| ends.len() as u64;
        let found = task.each(panel, &specs, work, |(_, spec), ticker| {
            let mut sum = Found { runs: 0.0, percent: 0.0 };
            for end in &ends {
                let found = end.found(spec, task)?;
                sum.runs += found.runs / ends.len() as f64;
                sum.percent += found.percent / ends.len() as f64;
                ticker.tick(1);
            }
            Ok(sum)
        })?;
        let mut points: Vec<_> = specs.iter().zip(&found).collect();
        points.sort_by(|(_, one), (_, other)| one.runs.total_cmp(&other.runs));
        for ((curve, _), found) in &points {
            figure.point(panel, curve, found.runs, 1.0 + found.percent / 100.0);
            if let Some((_, percents)) = in_all.iter_mut().find(|(name, _)| name == curve) {
                percents.push(found.percent);
            }
        }
        claims(&mut figure, panel, &points);
    }
    let means = in_all.iter().map(|(curve, percents)| (*curve, mean(percents.iter().copied())));
    let (auto, others): (Vec<_>, Vec<_>) = means.partition(|(curve, _)| *curve == AUTO);
    let best = least(others.into_iter().filter_map(|(_, percent)| percent));
    figure.at_most(
        "above the least, over the best other policy (means of all points)",
        over(auto[0].1, best),
        0.5,
    );
    figure.note(format!(
        "Keyed simulation of {ends:?} flushes of memtables of 500 entries; 20,000 keys. The least \
         is over all schedules of merges of whole runs that know all flushes and their keys, with \
         as many runs in the mean."
    ));
    Ok(figure)
}

fn claims(figure: &mut Figure, panel: &str, points: &[(&(String, String), &Found)]) {
    let of_auto = |most: f64| {
        let of = points.iter().filter(move |((curve, _), it)| curve == AUTO && it.runs <= most);
        of.map(|(_, found)| found.percent)
    };
    let claim = format!("{panel}: auto above the least, %, most over up to 3 mean runs");
    figure.at_most(claim, most(of_auto(3.0)), 5.0);
    let claim = format!("{panel}: auto above the least, %, most over all");
    figure.at_most(claim, most(of_auto(f64::INFINITY)), 10.0);
    // Between two points of auto, its percents are taken to lie on a line.
    let auto: Vec<&Found> =
        points.iter().filter(|((curve, _), _)| curve == AUTO).map(|(_, found)| *found).collect();
    let others = points.iter().filter(|((curve, _), _)| CURVES[1..].iter().any(|it| it.0 == curve));
    let above = others.filter_map(|(_, other)| {
        let pair = auto.windows(2).find(|it| (it[0].runs..=it[1].runs).contains(&other.runs))?;
        let part = (other.runs - pair[0].runs) / (pair[1].runs - pair[0].runs);
        let percent = pair[0].percent + (pair[1].percent - pair[0].percent) * part;
        Some(percent - other.percent)
    });
    let claim = format!("{panel}: points of auto above any other policy at its runs, most");
    figure.at_most(claim, most(above), 0.0);
}
