//! Figure 8: seven policies over the skew of the keys.

use super::scale::{cost_axis, scale, scale_note};
use super::steady::{Bench, Keys};
use super::sweep::{ALL, PAIRS, SEVEN, Spot, Sweep, least};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::SharedProgress;
use lsmith_lab::plot::Axis;

const DATASET_MB: u64 = 300;

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    // Standard deviations, in percent of the key space.
    let sigmas: &[f64] = if effort.is_quick {
        &[0.005, 0.1, 2.0, 20.0]
    } else {
        &[0.005, 0.02, 0.1, 0.5, 2.0, 5.0, 20.0]
    };
    let shrink = scale(effort, DATASET_MB);
    let mut spots = Vec::new();
    for curve in SEVEN {
        for &x in sigmas {
            let keys = Keys::Normal { sigma: x / 100.0, omega: 10_000 };
            let bench = Bench::standard(curve, keys, DATASET_MB, shrink);
            spots.push(Spot { panel: "", curve: curve.to_owned(), x, bench });
        }
    }
    let sweep = Sweep::measure(info.name, spots, progress)?;
    let x = Axis::log("standard deviation", "% of the key space");
    let mut figure = Figure::empty(info.name, info.title, vec![Panel::only(x, cost_axis())]);
    sweep.draw(&mut figure, |steady| steady.write_cost_blocks);
    claims(&mut figure, &sweep);
    figure.note(scale_note([(DATASET_MB, shrink)]));
    Ok(figure)
}

fn claims(figure: &mut Figure, sweep: &Sweep) {
    let narrow = 0.005;
    let wide = 20.0;
    // How much more `worse` costs with keys close together than with keys far apart.
    let grows = |worse, better| {
        let excess = |x| sweep.excess("", worse, better, x);
        Some(excess(narrow)? - excess(wide)?)
    };
    for [rr, best] in [["rr", "choose_best"], ["rr(reuse=false)", "choose_best(reuse=false)"]] {
        figure.claim(grows(rr, best).map(|points| {
            let claim = format!(
                "{best} outperforms {rr} more at 0.005 % than at 20 %: by, percentage points"
            );
            Claim::at_least(claim, points, 1.0)
        }));
    }
    for (keeps, plain) in PAIRS {
        figure.claim(grows(plain, keeps).map(|points| {
            let claim = format!(
                "{keeps} outperforms {plain} more at 0.005 % than at 20 %: by, percentage points"
            );
            Claim::at_least(claim, points, 1.0)
        }));
    }
    let others = SEVEN.into_iter().filter(|policy| *policy != "mixed");
    let leads = others.flat_map(|other| sweep.excesses("", other, "mixed", ALL));
    figure.claim(least(leads).map(|percent| {
        let claim = "mixed has a comfortable lead over all others throughout: at least, %";
        Claim::at_least(claim, percent, 3.0)
    }));
}
