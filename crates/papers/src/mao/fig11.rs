//! Compares predictions of simulations with the store.

use super::course::{Courses, Input, Plan};
use super::fig4::RATIOS;
use super::fig9::{FAMILIES, scale};
use super::fit::{Line, fit_line};
use super::store::{Scale, flushed_first};
use crate::form::*;
use lsmith_sim::KeyedWorkload;

/// The paper's bounds. As there, bigtable and exploring do not run with 3, where they write a
/// thousand times what is flushed.
const BOUNDS: [u64; 7] = [3, 4, 5, 6, 7, 8, 10];
const BOUNDS_QUICK: [u64; 4] = [3, 4, 6, 8];
const TOO_COSTLY: [(&str, u64); 2] = [("bigtable", 3), ("exploring", 3)];
const RATIOS_QUICK: [u64; 3] = [4, 8, 16];

/// The scales of the full and the quick measurement.
const SCALE: Scale = Scale { flushes: 24_000, memtable_bytes: 4 << 10, value_bytes: 100 };
const SCALE_QUICK: Scale = Scale { flushes: 500, memtable_bytes: 16 << 10, value_bytes: 100 };

/// The most flushes of leveled, which has a file per flush: more files than a process may open. The
/// paper has no leveled in this figure.
const FLUSHES_LEVELED: u64 = 2_000;

/// The least R² of a good prediction.
const R_SQUARED: f64 = 0.99;

/// The panels.
const BY_SIZE: &str = "by-size";
const BY_KEY: &str = "by-key";

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let scale = scale(task.effort, SCALE, SCALE_QUICK);
    let leveled = Scale { flushes: scale.flushes.min(FLUSHES_LEVELED), ..scale };
    let workload = KeyedWorkload::new(scale.workload()?);
    let leveled_workload = KeyedWorkload::new(leveled.workload()?);
    let of = |family: &str| match family {
        "leveled" => (leveled, &leveled_workload),
        _ => (scale, &workload),
    };
    let settings = settings(task);
    let work = |(family, _): &(&str, String)| of(family).0.flushes;
    let observed = task.each("runs on the store", &settings, work, |(family, own), ticker| {
        let (scale, workload) = of(family);
        let spec = flushed_first(family, own);
        Ok(scale.run(&spec, workload.workload(), &mut || ticker.tick(1))?.write_cost)
    })?;
    let panel = |name: &str, title: &str| {
        let y = Axis::log("write cost on the store", "");
        Panel::new(name, title, Axis::log("write cost, simulated", ""), y)
    };
    let mut figure = task.figure([
        panel(BY_SIZE, "simulated with flushes of size one"),
        panel(BY_KEY, "simulated key by key"),
    ]);
    for panel in [BY_SIZE, BY_KEY] {
        let plan = |(family, own): &(&str, String)| {
            let (scale, workload) = of(family);
            let input = match panel {
                BY_KEY => Input::Keyed(workload, scale.memtable_bytes),
                _ => Input::Unit(scale.flushes),
            };
            Plan { spec: format!("{family}({own})"), input, every: scale.flushes }
        };
        let plans: Vec<Plan<'_>> = settings.iter().map(plan).collect();
        let Courses(simulated) = Courses::simulate(task, &plans)?;
        for (family, _) in FAMILIES {
            let rows = settings.iter().zip(&simulated).zip(&observed);
            let own = rows.filter(|(((name, _), _), _)| *name == family);
            let mut points: Vec<(f64, f64)> =
                own.map(|((_, course), observed)| (course.write_cost(), *observed)).collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            figure.draw(panel, family, points);
        }
    }
    claims(&mut figure);
    note(&mut figure, scale);
    Ok(figure)
}

/// Returns all measured policies with their parameters.
fn settings(task: &Task<'_>) -> Vec<(&'static str, String)> {
    let setting = |(family, parameter): (&'static str, &'static str)| {
        let values = match parameter {
            "k" => task.pick(&BOUNDS_QUICK[..], &BOUNDS),
            _ => task.pick(&RATIOS_QUICK[..], &RATIOS),
        };
        let values = values.iter().filter(move |value| !TOO_COSTLY.contains(&(family, **value)));
        values.map(move |value| (family, format!("{parameter}={value}")))
    };
    FAMILIES.into_iter().flat_map(setting).collect()
}

/// Returns the line of observed over simulated costs.
fn line(figure: &Figure, panel: &str, family: &str) -> Option<Line> {
    fit_line(&figure.curve(panel, family).collect::<Vec<_>>())
}

fn claims(figure: &mut Figure) {
    for (family, _) in FAMILIES {
        let claim = format!(
            "{family}: R² of a line of observed over simulated write cost, flushes of size one \
             (very close to 1)"
        );
        let r_squared = line(figure, BY_SIZE, family).map(|line| line.r_squared);
        figure.at_least(claim, r_squared, R_SQUARED);
    }
    let by_key = FAMILIES.iter().filter_map(|(family, _)| line(figure, BY_KEY, family));
    let claim = "least R² of all policies, simulated key by key (very close to 1)";
    figure.at_least(claim, least(by_key.map(|line| line.r_squared)), R_SQUARED);
}

fn note(figure: &mut Figure, scale: Scale) {
    figure.note(scale.note());
    figure.note(
        "Observed: bytes of the files of all tables written, over those written by flushes. Every \
         flush is written before it is merged (`eager=never`), as in the paper's system. A point \
         per k or ratio; the largest k and, of leveled, the smallest ratio are leftmost.",
    );
    figure.note(format!(
        "leveled has {} flushes, because it has a file for each. The paper has neither leveled nor \
         tiered here; both are added.",
        scale.flushes.min(FLUSHES_LEVELED)
    ));
    let lines = FAMILIES.iter().filter_map(|(family, _)| {
        let line = line(figure, BY_SIZE, family)?;
        Some(format!("{family} {:.3}x + {:.2}", line.slope, line.intercept))
    });
    figure.note(format!("Lines over simulations by size: {}.", joined("; ", lines)));
    let slopes: Vec<f64> =
        FAMILIES.iter().filter_map(|(name, _)| Some(line(figure, BY_KEY, name)?.slope)).collect();
    if let (Some(least), Some(most)) = (least(slopes.iter().copied()), most(slopes)) {
        figure.note(format!(
            "Lines over simulations key by key have slopes from {least:.3} to {most:.3}: what is \
             left are filters, fences and footers, of which small tables have more."
        ));
    }
    figure.note(
        "leveled costs less on the store than by size: there a piece is chosen that meets least in \
         the next level, here every piece is taken to meet `ratio` times its size.",
    );
}
