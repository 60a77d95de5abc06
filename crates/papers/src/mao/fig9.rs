//! The time of a merge.

use super::course::flushes_of;
use super::fig4::RATIOS;
use super::fit::{Line, fit_line};
use super::store::{Scale, flushed_first};
use crate::form::*;
use crate::store::Merge;

/// The policies with their parameter.
pub(super) const FAMILIES: [(&str, &str); 6] = [
    ("minlatency", "k"),
    ("binomial", "k"),
    ("bigtable", "k"),
    ("exploring", "k"),
    ("tiered", "ratio"),
    ("leveled", "ratio"),
];
const BOUNDS: [u64; 5] = [4, 5, 6, 7, 8];

/// The least R² of a good linear prediction.
const R_SQUARED: f64 = 0.95;

/// The least R² of elapsed time, which has what else the machine does in it.
const R_SQUARED_ELAPSED: f64 = 0.9;

/// The scales of the full and the quick measurement. The full one has the paper's values, and half
/// of the paper's memtable.
const SCALE: Scale = Scale { flushes: 250, memtable_bytes: 2 << 20, value_bytes: 1000 };
const SCALE_QUICK: Scale = Scale { flushes: 500, memtable_bytes: 64 << 10, value_bytes: 100 };

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let scale = scale(task.effort, SCALE, SCALE_QUICK);
    let workload = scale.workload()?;
    let mut settings = Vec::new();
    for (family, parameter) in FAMILIES {
        let values = if parameter == "k" { &BOUNDS[..] } else { &RATIOS };
        let values = &values[..task.pick(1, values.len())];
        settings.extend(
            values
                .iter()
                .map(|value| (family, flushed_first(family, &format!("{parameter}={value}")))),
        );
    }
    let own = task.own_beside(settings.iter().map(|(_, spec)| spec));
    settings.extend(own.iter().map(|spec| (spec.as_str(), spec.clone())));
    let work = |_: &(&str, String)| scale.flushes;
    let found = task.each_in_turn("runs on the store", &settings, work, |(_, spec), ticker| {
        scale.run(task.policy(spec)?, &workload, &mut || ticker.tick(1))
    })?;
    // The merges of each run.
    let runs: Vec<(&str, Vec<Merge>)> =
        settings.iter().zip(found).map(|((family, _), run)| (*family, run.merges)).collect();
    let of = |family: &str| -> Vec<&[Merge]> {
        runs.iter().filter(|(name, _)| *name == family).map(|(_, merges)| &merges[..]).collect()
    };
    let panel = |name: &str, title: &str, y: &str| {
        Panel::new(name, title, Axis::log("written by the merge", "bytes"), Axis::log(y, "s"))
    };
    let mut figure = task.figure([
        panel("elapsed", "elapsed time of each merge", "elapsed"),
        panel("cpu", "CPU time of each merge", "CPU of the merging thread"),
    ]);
    for (panel, time) in [("elapsed", by_wall as fn(&Merge) -> (f64, f64)), ("cpu", by_cpu)] {
        let families = FAMILIES.into_iter().map(|(family, _)| family);
        for family in families.chain(own.iter().map(String::as_str)) {
            let mut points: Vec<(f64, f64)> = of(family).concat().iter().map(time).collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            figure.draw(panel, family, points);
        }
    }
    for (family, _) in FAMILIES {
        claim(&mut figure, family, &of(family));
    }
    let merges = FAMILIES.into_iter().flat_map(|(family, _)| of(family).concat());
    let merges: Vec<Merge> = merges.collect();
    let claim = "every merge of every run: R² of a line of elapsed time over bytes written \
                 (elapsed time is well predicted)";
    let r_squared = line(&merges, by_wall).map(|line| line.r_squared);
    figure.at_least(claim, r_squared, R_SQUARED_ELAPSED);
    note(&mut figure, &merges);
    figure.note(scale.note());
    Ok(figure)
}

/// The scale of a figure on the store.
pub(super) fn scale(effort: Effort, full: Scale, quick: Scale) -> Scale {
    let scale = if effort.is_quick { quick } else { full };
    Scale { flushes: flushes_of(scale.flushes, effort), ..scale }
}

fn by_wall(merge: &Merge) -> (f64, f64) {
    (merge.bytes_written as f64, merge.seconds)
}

fn by_cpu(merge: &Merge) -> (f64, f64) {
    (merge.bytes_written as f64, merge.cpu_seconds)
}

/// Returns the line of the times of `merges` over bytes.
fn line(merges: &[Merge], time: fn(&Merge) -> (f64, f64)) -> Option<Line> {
    fit_line(&merges.iter().map(time).collect::<Vec<_>>())
}

/// Adds the claim that the time of a merge is linear in the bytes that it writes, in each run.
fn claim(figure: &mut Figure, family: &str, runs: &[&[Merge]]) {
    let squares = runs.iter().filter_map(|merges| Some((line(merges, by_cpu)?.r_squared, merges)));
    let worst = squares.reduce(|one, other| if other.0 < one.0 { other } else { one });
    let Some((least, merges)) = worst else { return };
    let claim = format!(
        "{family}: R² of a line of CPU time over bytes written by each merge, least of all runs \
         (in each run time is well predicted by bytes)"
    );
    figure.at_least(claim, least, R_SQUARED);
    figure.explain(&format!("{family}: R²"), strays(merges));
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
    let lines = [line(merges, by_cpu), line(merges, by_wall)];
    let [Some(cpu), Some(wall)] = lines else { return };
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
