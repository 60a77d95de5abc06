//! Space used while merges run.

use super::course::flushes_of;
use super::fit::{least, mean, most};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all};
use lsmith_policy::Registry;
use lsmith_sim::{Event, FigureCounter, UNIT_BYTES, simulate_unit};

/// The approximate flushes of a run.
const FLUSHES: u64 = 24_000;

/// The number of points of a curve.
const WINDOWS: u64 = 120;

/// The policies of the paper. Only the last one builds levels.
const SPECS: [&str; 6] = [
    "minlatency(k=4)",
    "binomial(k=4)",
    "bigtable(k=4)",
    "exploring(k=4)",
    "tiered(ratio=4)",
    "leveled(ratio=32)",
];

/// Space over flushes.
struct Spaces {
    spec: &'static str,
    flushes: u64,
}

/// The greatest space per flushed byte within a range of flushes.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// The last flush of the range.
    last: u64,
    most: f64,
}

impl Job for Spaces {
    type Output = Vec<Window>;

    fn work(&self) -> u64 {
        self.flushes
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Vec<Window>> {
        let policy = Registry::builtin().build(self.spec)?;
        let mut counter = FigureCounter::new();
        let mut windows = Vec::new();
        let mut flushes = 0;
        let every = (self.flushes / WINDOWS).max(1);
        let sizes = (0..self.flushes).map(|_| UNIT_BYTES);
        simulate_unit(&policy, sizes, UNIT_BYTES, &mut |event| match event {
            Event::Sealed { .. } => {
                flushes += 1;
                counter.sealed(flushes * UNIT_BYTES);
            }
            Event::Merge { tree, edit, .. } => counter.merge(tree, edit),
            Event::Flushed { .. } => {}
            Event::Rest { tree } => {
                counter.rest(tree);
                if flushes % every == 0 {
                    let most = std::mem::take(&mut counter).figures().space_cost_peak;
                    windows.push(Window { last: flushes, most });
                    ticker.tick(every);
                }
            }
        })?;
        Ok(windows)
    }
}

pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let flushes = flushes_of(FLUSHES, effort);
    let jobs = SPECS.map(|spec| Spaces { spec, flushes });
    let curves = measure_all("simulation", &jobs, progress)?;
    let axes = (Axis::linear("flushes", ""), Axis::linear("space over data flushed", ""));
    let mut figure = Figure::empty(info.name, info.title, vec![Panel::only(axes.0, axes.1)]);
    for (spec, curve) in SPECS.iter().zip(&curves) {
        for window in curve {
            figure.point("", spec, window.last as f64, window.most);
        }
    }
    // The first flushes are left out: a merge of two flushes always doubles the space.
    let second_half = |curve: &Vec<Window>| -> Vec<Window> {
        curve.iter().filter(|window| window.last > flushes / 2).copied().collect()
    };
    let halves: Vec<Vec<Window>> = curves.iter().map(second_half).collect();
    claims(&mut figure, &halves);
    note(&mut figure, flushes);
    Ok(figure)
}

fn claims(figure: &mut Figure, halves: &[Vec<Window>]) {
    let highest: Vec<f64> =
        halves.iter().filter_map(|half| most(half.iter().map(|window| window.most))).collect();
    let means: Vec<f64> =
        halves.iter().filter_map(|half| mean(half.iter().map(|window| window.most))).collect();
    let ([.., leveled], [minlatency, binomial, bigtable, exploring, tiered, _]) =
        (&highest[..], &means[..])
    else {
        return;
    };
    for (spec, highest) in SPECS.iter().zip(&highest).take(5) {
        let claim = format!("{spec}: the most in the second half of the run (it can reach 2)");
        figure.claim(Claim::near(claim, 2.0, *highest, 0.01));
    }
    let claim = "leveled(ratio=32): the most in the second half of the run (it is close to 1)";
    figure.claim(Claim::near(claim, 1.0, *leveled, 0.1));
    let others = [minlatency, binomial, bigtable, exploring];
    if let Some(lowest) = least(others.into_iter().copied()) {
        let claim = "space of tiered over the least of the other stacks (tiered is lowest), \
                     averaged over the points of the second half";
        figure.claim(Claim::at_most(claim, tiered / lowest, 1.0));
    }
    let claim = "space of bigtable over the least of minlatency, binomial and exploring (bigtable \
                 is lower), averaged over the points of the second half";
    let lowest = minlatency.min(*binomial).min(*exploring);
    figure.claim(Claim::at_most(claim, bigtable / lowest, 1.0));
}

fn note(figure: &mut Figure, flushes: u64) {
    let window = (flushes / WINDOWS).max(1);
    figure.note(format!(
        "Each point is the most within {window} flushes: all runs, those being merged included, \
         with the output under way, over all that has been flushed. Flushes are of equal size."
    ));
}
