//! A level more on purpose: an index of three levels, and one of four that holds the same.
//!
//! The paper sees costs fall when an index gains its fourth level, and asks in section V-A whether
//! levels can be added strategically. A bottom level that becomes the next one when it is half full
//! does so.

use super::scale::{cost_axis, dataset_axis, scale_note};
use super::steady::{Bench, Keys};
use super::sweep::{KEEPING, figure_of_costs};
use crate::form::*;

/// Sizes at which an index of three levels is more than half full.
const SIZES_MB: [f64; 3] = [900.0, 1200.0, 1500.0];
/// The factor by which memory and data are smaller than in the paper, as for its largest indexes.
const SHRINK: u64 = 16;

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let sizes = task.pick(&SIZES_MB[2..], &SIZES_MB);
    let shrink = SHRINK * task.pick(task.effort.shrink, 1);
    let policies =
        || KEEPING.iter().flat_map(|policy| [((*policy).to_owned(), 3.0), (deep(policy), 4.0)]);
    let curves: Vec<String> = policies().map(|(policy, _)| policy).collect();
    let own = task.own_beside(&curves);
    let curves = curves.into_iter().chain(own);
    let bench = |policy: &str, x| Bench::standard(policy, Keys::Uniform, x as u64, shrink);
    let panel = Panel::only(dataset_axis(), cost_axis());
    let (mut figure, sweep) = figure_of_costs(task, [panel], spots("", curves, sizes, bench))?;
    for (policy, levels) in policies() {
        let found = sizes.iter().filter_map(|x| sweep.at("", &policy, *x));
        let off = farthest(found.map(|steady| steady.levels as f64 - levels));
        figure.at_most(format!("{policy}: levels at each size, off from {levels}"), off, 0.0);
    }
    // The paper names both.
    for policy in ["full", "mixed"] {
        for x in sizes {
            let saved = figure.excess("", &deep(policy), policy, *x).map(|percent| -percent);
            let claim = format!("{x} MB: a fourth level lowers the cost of {policy}: by, %");
            figure.at_least(claim, saved, 0.0);
        }
    }
    explain(&mut figure, sizes);
    figure.note(scale_note(sizes.iter().map(|size| (*size as u64, shrink))));
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

/// Explains why a fourth level does not pay where the third is half full.
fn explain(figure: &mut Figure, sizes: &[f64]) {
    let words = sizes.iter().filter_map(|x| {
        let three = figure.y("", "mixed", *x)?;
        let four = figure.y("", &deep("mixed"), *x)?;
        Some(format!("{three:.0} and {four:.0} at {x} MB"))
    });
    let costs = joined(", ", words);
    let why = format!(
        "with three levels, merges into the bottom cost what it holds; with four, the level above \
         the bottom grows to the same size whatever the data are. So costs of four levels are flat \
         where those of three rise: mixed, {costs}, in blocks per MB"
    );
    figure.explain("a fourth level lowers the cost", why);
}
