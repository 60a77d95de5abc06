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
    // So do policies of the caller, which may have as many files.
    let of = |setting: &Setting| match (setting.curve.as_str(), &setting.parameter) {
        ("leveled", _) | (_, None) => (leveled, &leveled_workload),
        _ => (scale, &workload),
    };
    let mut settings = settings(task);
    let own = task.own_beside(settings.iter().map(Setting::spec));
    settings.extend(own.iter().map(|spec| Setting { curve: spec.clone(), parameter: None }));
    let work = |setting: &Setting| of(setting).0.flushes;
    let observed = task.each("runs on the store", &settings, work, |setting, ticker| {
        let (scale, workload) = of(setting);
        let policy = task.policy(&setting.flushed_first())?;
        Ok(scale.run(policy, workload.workload(), &mut || ticker.tick(1))?.write_cost)
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
        let plan = |setting: &Setting| {
            let (scale, workload) = of(setting);
            let input = match panel {
                BY_KEY => Input::Keyed(workload, scale.memtable_bytes),
                _ => Input::Unit(scale.flushes),
            };
            Plan { spec: setting.spec(), input, every: scale.flushes }
        };
        let plans: Vec<Plan<'_>> = settings.iter().map(plan).collect();
        let Courses(simulated) = Courses::simulate(task, &plans)?;
        let families = FAMILIES.into_iter().map(|(family, _)| family);
        for family in families.chain(own.iter().map(String::as_str)) {
            let rows = settings.iter().zip(&simulated).zip(&observed);
            let rows = rows.filter(|((setting, _), _)| setting.curve == family);
            let mut points: Vec<(f64, f64)> =
                rows.map(|((_, course), observed)| (course.write_cost(), *observed)).collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            figure.draw(panel, family, points);
        }
    }
    claims(&mut figure);
    note(&mut figure, scale);
    if !own.is_empty() {
        figure.note(format!("{}: {} flushes too.", joined(", ", own), leveled.flushes));
    }
    Ok(figure)
}

/// A measured policy.
struct Setting {
    /// The family, or the spec of a policy of the caller.
    curve: String,
    /// The parameter of a policy of a family.
    parameter: Option<String>,
}

impl Setting {
    fn spec(&self) -> String {
        match &self.parameter {
            Some(parameter) => format!("{}({parameter})", self.curve),
            None => self.curve.clone(),
        }
    }

    /// Returns the spec for a store that writes each flush before it merges it, as in the paper. A
    /// policy of the caller does as it likes.
    fn flushed_first(&self) -> String {
        match &self.parameter {
            Some(parameter) => flushed_first(&self.curve, parameter),
            None => self.curve.clone(),
        }
    }
}

/// Returns all policies of the figure.
fn settings(task: &Task<'_>) -> Vec<Setting> {
    let setting = |(family, parameter): (&'static str, &'static str)| {
        let values = match parameter {
            "k" => task.pick(&BOUNDS_QUICK[..], &BOUNDS),
            _ => task.pick(&RATIOS_QUICK[..], &RATIOS),
        };
        let values = values.iter().filter(move |value| !TOO_COSTLY.contains(&(family, **value)));
        values.map(move |value| Setting {
            curve: family.to_owned(),
            parameter: Some(format!("{parameter}={value}")),
        })
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
