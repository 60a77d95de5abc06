//! The time of a merge.

use super::fig4::RATIOS;
use super::fit::fit_line;
use super::store::{Merge, Scale, StoreRun, flushed_first};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::SharedProgress;
use lsmith_lab::plot::Axis;

const BOUNDED: [&str; 4] = ["minlatency", "binomial", "bigtable", "exploring"];
const BOUNDS: [u64; 5] = [4, 5, 6, 7, 8];

/// The least R² of a good linear prediction.
const R_SQUARED: f64 = 0.95;

/// The least R² of elapsed time, which has what else the machine does in it.
const R_SQUARED_ELAPSED: f64 = 0.9;

/// The scales of the full and the quick measurement. The full one has the paper's values, and half
/// of the paper's memtable.
const SCALE: Scale = Scale { flushes: 250, memtable_bytes: 2 << 20, value_bytes: 1000 };
const SCALE_QUICK: Scale = Scale { flushes: 500, memtable_bytes: 64 << 10, value_bytes: 100 };

/// A policy and its curve.
struct Setting {
    family: &'static str,
    spec: String,
}

fn settings(effort: Effort) -> Vec<Setting> {
    let bounds = if effort.is_quick { &BOUNDS[..1] } else { &BOUNDS };
    let ratios = if effort.is_quick { &RATIOS[..1] } else { &RATIOS };
    let setting = |family, parameter: &str, value: u64| {
        let spec = flushed_first(family, &format!("{parameter}={value}"));
        Setting { family, spec }
    };
    let bounded = BOUNDED.iter().flat_map(|name| bounds.iter().map(|k| setting(name, "k", *k)));
    let names = ["tiered", "leveled"];
    let sized = names.iter().flat_map(|name| ratios.iter().map(|b| setting(name, "ratio", *b)));
    bounded.chain(sized).collect()
}

pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let scale = scale(effort, SCALE, SCALE_QUICK);
    let workload = scale.workload()?;
    let settings = settings(effort);
    progress.begin("runs on the store", scale.flushes * settings.len() as u64);
    let mut done = 0;
    let mut runs: Vec<(&Setting, StoreRun)> = Vec::new();
    for setting in &settings {
        let run = scale.run(&setting.spec, &workload, &mut || {
            done += 1;
            progress.advance(done);
        })?;
        runs.push((setting, run));
    }

    let panel = |name: &str, title: &str, y: &str| Panel {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::log("written by the merge", "bytes"),
        y: Axis::log(y, "s"),
    };
    let panels = vec![
        panel("elapsed", "elapsed time of each merge", "elapsed"),
        panel("cpu", "CPU time of each merge", "CPU of the merging thread"),
    ];
    let mut figure = Figure::empty(info.name, info.title, panels);
    for (panel, time) in [("elapsed", by_wall as fn(&Merge) -> (f64, f64)), ("cpu", by_cpu)] {
        for family in BOUNDED.into_iter().chain(["tiered", "leveled"]) {
            let own = runs.iter().filter(|(setting, _)| setting.family == family);
            let merges = own.flat_map(|(_, run)| &run.merges);
            let mut points: Vec<(f64, f64)> = merges.map(time).collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            points.into_iter().for_each(|(x, y)| figure.point(panel, family, x, y));
        }
    }
    for family in BOUNDED.into_iter().chain(["tiered", "leveled"]) {
        let own = runs.iter().filter(|(setting, _)| setting.family == family);
        let own_merges: Vec<&[Merge]> = own.map(|(_, run)| &run.merges[..]).collect();
        claim(&mut figure, family, &own_merges);
    }
    let merges: Vec<Merge> = runs.iter().flat_map(|(_, run)| run.merges.clone()).collect();
    let elapsed = fit_line(&merges.iter().map(by_wall).collect::<Vec<_>>());
    figure.claim(elapsed.map(|line| {
        let claim = "every merge of every run: R² of a line of elapsed time over bytes written \
                     (elapsed time is well predicted)";
        Claim::at_least(claim, line.r_squared, R_SQUARED_ELAPSED)
    }));
    note(&mut figure, &merges);
    figure.note(scale.note());
    Ok(figure)
}

/// The scale of a figure on the store.
pub(super) fn scale(effort: Effort, full: Scale, quick: Scale) -> Scale {
    let scale = if effort.is_quick { quick } else { full };
    let flushes = super::course::flushes_of(scale.flushes, effort);
    Scale { flushes, ..scale }
}

fn by_wall(merge: &Merge) -> (f64, f64) {
    (merge.bytes_written as f64, merge.seconds)
}

fn by_cpu(merge: &Merge) -> (f64, f64) {
    (merge.bytes_written as f64, merge.cpu_seconds)
}

/// Adds the claim that the time of a merge is linear in the bytes that it writes, in each run.
fn claim(figure: &mut Figure, family: &str, runs: &[&[Merge]]) {
    let squares = runs.iter().filter_map(|merges| {
        let points: Vec<_> = merges.iter().map(by_cpu).collect();
        Some((fit_line(&points)?.r_squared, merges))
    });
    let worst = squares.reduce(|one, other| if other.0 < one.0 { other } else { one });
    let Some((least, merges)) = worst else { return };
    let claim = format!(
        "{family}: R² of a line of CPU time over bytes written by each merge, least of all runs \
         (in each run time is well predicted by bytes)"
    );
    figure.claim(Claim::at_least(claim, least, R_SQUARED));
    if least < R_SQUARED {
        figure.explain(&format!("{family}: R²"), strays(merges));
    }
}

/// Returns a sentence on the spread of merges of one run: in bytes written, and in time per byte.
fn strays(merges: &[Merge]) -> String {
    let spread = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        [5, 95].map(|percent| values[(values.len() - 1) * percent / 100])
    };
    let bytes = spread(&mut merges.iter().map(|merge| merge.bytes_written as f64).collect());
    let per_byte = |merge: &Merge| merge.cpu_seconds / merge.bytes_written as f64;
    let seconds = spread(&mut merges.iter().map(per_byte).collect());
    format!(
        "in the worst run nine merges of ten write {:.2} to {:.2} MB and take {:.1} to {:.1} s of \
         CPU per GB. Over so little, what single merges stray by makes as much as their bytes do.",
        bytes[0] * 1e-6,
        bytes[1] * 1e-6,
        seconds[0] * 1e9,
        seconds[1] * 1e9
    )
}

fn note(figure: &mut Figure, merges: &[Merge]) {
    let cpu = fit_line(&merges.iter().map(by_cpu).collect::<Vec<_>>());
    let wall = fit_line(&merges.iter().map(by_wall).collect::<Vec<_>>());
    let (Some(cpu), Some(wall)) = (cpu, wall) else { return };
    let largest = merges.iter().map(|merge| merge.bytes_written).max().unwrap_or_default();
    figure.note(format!(
        "{} merges, the largest of {:.1} MB. Over all runs a merge takes {:.2} s of CPU per GB \
         written and {:.2} ms besides, with R² {:.4}: what a byte takes depends on how many runs \
         are merged, and so on the policy. CPU time is that of the thread that merged, user and \
         system. The paper has elapsed time, which depends on what else the machine does: here \
         {:.2} s per GB, with R² {:.4}.",
        merges.len(),
        largest as f64 * 1e-6,
        cpu.slope * 1e9,
        cpu.intercept * 1e3,
        cpu.r_squared,
        wall.slope * 1e9,
        wall.r_squared
    ));
    figure
        .note("One curve per policy: its merges of all runs, k from 4 to 8 or ratio from 4 to 32.");
}
