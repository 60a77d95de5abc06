//! A level more on purpose: an index of three levels, and one of four that holds the same.
//!
//! The paper sees costs fall when an index gains its fourth level, and asks in section V-A whether
//! levels can be added strategically. A bottom level that becomes the next one when it is half full
//! does so.

use super::scale::{cost_axis, dataset_axis, scale_note};
use super::steady::{Bench, Keys};
use super::sweep::{KEEPING, Spot, Sweep, most};
use crate::{Claim, Effort, Figure, FigureInfo, Panel};
use lsmith_lab::SharedProgress;

/// Sizes at which an index of three levels is more than half full.
const SIZES_MB: [u64; 3] = [900, 1200, 1500];
/// The factor by which memory and data are smaller than in the paper, as for its largest indexes.
const SHRINK: u64 = 16;

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let (sizes, shrink) = if effort.is_quick {
        (&SIZES_MB[2..], SHRINK * effort.shrink)
    } else {
        (&SIZES_MB[..], SHRINK)
    };
    let policies = KEEPING.iter().flat_map(|policy| [(*policy).to_owned(), deep(policy)]);
    let spots = policies.flat_map(|curve| {
        sizes.iter().map(move |&size| {
            let bench = Bench::standard(&curve, Keys::Uniform, size, shrink);
            Spot { panel: "", curve: curve.clone(), x: size as f64, bench }
        })
    });
    let sweep = Sweep::measure(info.name, spots.collect(), progress)?;
    let panel = Panel::only(dataset_axis(), cost_axis());
    let mut figure = Figure::empty(info.name, info.title, vec![panel]);
    sweep.draw(&mut figure, |steady| steady.write_cost_blocks);
    claims(&mut figure, &sweep);
    explain(&mut figure, &sweep);
    figure.note(scale_note(sizes.iter().map(|&size| (size, shrink))));
    figure.note(
        "The level above the bottom is as large as all data here. Until it goes down it holds \
         deletes and the newest records beside those of the bottom level, so that an index of four \
         levels takes up to twice the space.",
    );
    Ok(figure)
}

/// Returns `policy` with a bottom level that becomes the next one when it is half full.
fn deep(policy: &str) -> String {
    format!("{policy}(bottom=0.5)")
}

fn claims(figure: &mut Figure, sweep: &Sweep) {
    for (policy, levels) in
        KEEPING.iter().flat_map(|policy| [((*policy).to_owned(), 3.0), (deep(policy), 4.0)])
    {
        let found = sweep.xs("").into_iter().filter_map(|x| sweep.at("", &policy, x));
        let farthest = most(found.map(|steady| (steady.levels as f64 - levels).abs()));
        figure.claim(farthest.map(|off| {
            Claim::at_most(format!("{policy}: levels at each size, off from {levels}"), off, 0.0)
        }));
    }
    // The paper names both.
    for policy in ["full", "mixed"] {
        for x in sweep.xs("") {
            figure.claim(sweep.excess("", &deep(policy), policy, x).map(|percent| {
                let claim = format!("{x} MB: a fourth level lowers the cost of {policy}: by, %");
                Claim::at_least(claim, -percent, 0.0)
            }));
        }
    }
}

/// Explains why a fourth level does not pay where the third is half full.
fn explain(figure: &mut Figure, sweep: &Sweep) {
    let words = sweep.xs("").into_iter().filter_map(|x| {
        let three = sweep.cost("", "mixed", x)?;
        let four = sweep.cost("", &deep("mixed"), x)?;
        Some(format!("{three:.0} and {four:.0} at {x} MB"))
    });
    let costs = words.collect::<Vec<String>>().join(", ");
    let why = format!(
        "with three levels, merges into the bottom cost what it holds; with four, the level above \
         the bottom grows to the same size whatever the data are. So costs of four levels are flat \
         where those of three rise: mixed, {costs}, in blocks per MB"
    );
    figure.explain("a fourth level lowers the cost", why);
}
