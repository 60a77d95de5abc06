//! Compares predictions of simulations with the store.

use super::course::{Course, Input, Plan, simulate_all};
use super::fig4::RATIOS;
use super::fig9::scale;
use super::fit::{fit_line, least, most};
use super::store::{Scale, flushed_first};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all};
use lsmith_sim::KeyedWorkload;
use lsmith_workload::Workload;

/// The policies with their parameter.
const FAMILIES: [(&str, &str); 6] = [
    ("minlatency", "k"),
    ("binomial", "k"),
    ("bigtable", "k"),
    ("exploring", "k"),
    ("tiered", "ratio"),
    ("leveled", "ratio"),
];

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

/// A run on the store.
struct Observed<'a> {
    policy: String,
    scale: Scale,
    workload: &'a Workload,
}

impl Job for Observed<'_> {
    type Output = f64;

    fn work(&self) -> u64 {
        self.scale.flushes
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<f64> {
        let run = self.scale.run(&self.policy, self.workload, &mut || ticker.tick(1))?;
        Ok(run.write_cost)
    }
}

/// The points of one policy: simulated and observed write costs.
struct Curve {
    family: &'static str,
    by_size: Vec<(f64, f64)>,
    by_key: Vec<(f64, f64)>,
}

pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let scale = scale(effort, SCALE, SCALE_QUICK);
    let leveled = Scale { flushes: scale.flushes.min(FLUSHES_LEVELED), ..scale };
    let workload = KeyedWorkload::new(scale.workload()?);
    let leveled_workload = KeyedWorkload::new(leveled.workload()?);
    let of = |family: &str| match family {
        "leveled" => (leveled, &leveled_workload),
        _ => (scale, &workload),
    };
    let settings = settings(effort);
    let settings_observed: Vec<Observed<'_>> = settings
        .iter()
        .map(|(family, parameters)| Observed {
            policy: flushed_first(family, parameters),
            scale: of(family).0,
            workload: of(family).1.workload(),
        })
        .collect();
    let observed = measure_all("runs on the store", &settings_observed, progress)?;
    let simulate = |is_keyed: bool| -> anyhow::Result<Vec<Course>> {
        let plan = |(family, parameters): &(&str, String)| {
            let (own_scale, own_workload) = of(family);
            let input = match is_keyed {
                true => Input::Keyed(own_workload, own_scale.memtable_bytes),
                false => Input::Unit(own_scale.flushes),
            };
            Plan { spec: format!("{family}({parameters})"), input, every: own_scale.flushes }
        };
        simulate_all(&settings.iter().map(plan).collect::<Vec<_>>(), progress)
    };
    let by_size = simulate(false)?;
    let by_key = simulate(true)?;

    let curves = FAMILIES.map(|(family, _)| {
        let points = |courses: &[Course]| -> Vec<(f64, f64)> {
            let rows = settings.iter().zip(courses).zip(&observed);
            let own = rows.filter(|(((name, _), _), _)| *name == family);
            let mut points: Vec<(f64, f64)> =
                own.map(|((_, course), observed)| (course.write_cost(), *observed)).collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            points
        };
        Curve { family, by_size: points(&by_size), by_key: points(&by_key) }
    });
    let mut figure = Figure::empty(info.name, info.title, panels());
    draw(&mut figure, &curves);
    claims(&mut figure, &curves);
    note(&mut figure, scale, &curves);
    Ok(figure)
}

/// Returns all measured policies with their parameters.
fn settings(effort: Effort) -> Vec<(&'static str, String)> {
    let values = |parameter: &str| match (parameter, effort.is_quick) {
        ("k", false) => BOUNDS.to_vec(),
        ("k", true) => BOUNDS_QUICK.to_vec(),
        (_, false) => RATIOS.to_vec(),
        (_, true) => RATIOS_QUICK.to_vec(),
    };
    let setting = |(family, parameter): (&'static str, &'static str)| {
        let values = values(parameter).into_iter();
        let values = values.filter(move |value| !TOO_COSTLY.contains(&(family, *value)));
        values.map(move |value| (family, format!("{parameter}={value}")))
    };
    FAMILIES.into_iter().flat_map(setting).collect()
}

fn panels() -> Vec<Panel> {
    let panel = |name: &str, title: &str| Panel {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::log("write cost, simulated", ""),
        y: Axis::log("write cost on the store", ""),
    };
    vec![
        panel("by-size", "simulated with flushes of size one"),
        panel("by-key", "simulated key by key"),
    ]
}

fn draw(figure: &mut Figure, curves: &[Curve]) {
    for curve in curves {
        curve.by_size.iter().for_each(|(x, y)| figure.point("by-size", curve.family, *x, *y));
    }
    for curve in curves {
        curve.by_key.iter().for_each(|(x, y)| figure.point("by-key", curve.family, *x, *y));
    }
}

fn claims(figure: &mut Figure, curves: &[Curve]) {
    for curve in curves {
        figure.claim(fit_line(&curve.by_size).map(|line| {
            let claim = format!(
                "{}: R² of a line of observed over simulated write cost, flushes of size one (very \
                 close to 1)",
                curve.family
            );
            Claim::at_least(claim, line.r_squared, R_SQUARED)
        }));
    }
    let by_key = curves.iter().filter_map(|curve| fit_line(&curve.by_key));
    figure.claim(least(by_key.map(|line| line.r_squared)).map(|r_squared| {
        let claim = "least R² of all policies, simulated key by key (very close to 1)";
        Claim::at_least(claim, r_squared, R_SQUARED)
    }));
}

fn note(figure: &mut Figure, scale: Scale, curves: &[Curve]) {
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
    let line = |curve: &Curve| {
        let line = fit_line(&curve.by_size)?;
        Some(format!("{} {:.3}x + {:.2}", curve.family, line.slope, line.intercept))
    };
    let lines: Vec<String> = curves.iter().filter_map(line).collect();
    figure.note(format!("Lines over simulations by size: {}.", lines.join("; ")));
    let slopes = || curves.iter().filter_map(|curve| Some(fit_line(&curve.by_key)?.slope));
    if let (Some(least), Some(most)) = (least(slopes()), most(slopes())) {
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
