//! Seven policies over the size of the data, and claims that figures share.

use crate::form::*;
use crate::thonangi::scale::{cost_axis, dataset_axis, scale, scale_note};
use crate::thonangi::steady::{Bench, Keys};
use crate::thonangi::sweep::{KEEPING, PAIRS, SEVEN, Sweep, and_own, figure_of_costs, others};
use std::ops::RangeInclusive;

/// The rate of merges in this figure. It is less than elsewhere, because indexes are larger.
pub(super) const RATE: f64 = 0.05;

/// Sizes at which an index has three levels: 400,000 blocks hold 1622 MB.
pub(super) const THREE_LEVELS: RangeInclusive<f64> = 0.0..=1600.0;
pub(super) const FOUR_LEVELS: RangeInclusive<f64> = 1601.0..=f64::INFINITY;

/// Costs that differ by at most this count as equal, in percent.
pub(super) const EQUAL: f64 = 2.5;

/// One of the figures: a workload and its sizes.
pub(super) struct Plan<'a> {
    /// Returns the keys at a size.
    pub(super) keys: fn(u64) -> Keys,
    /// The sizes for all policies.
    pub(super) sizes_mb: &'a [u64],
    /// The sizes for policies that keep blocks.
    pub(super) more_mb: &'a [u64],
}

impl Plan<'_> {
    pub(super) fn measure(&self, task: &Task<'_>) -> anyhow::Result<(Figure, Sweep)> {
        let mut sizes: Vec<u64> = [self.sizes_mb, self.more_mb].concat();
        sizes.sort_unstable();
        let curves = and_own(&SEVEN, task);
        let spots = curves.iter().flat_map(|curve| {
            let is_everywhere =
                KEEPING.contains(&curve.as_str()) || !SEVEN.contains(&curve.as_str());
            let is_measured = move |size: &&u64| is_everywhere || self.sizes_mb.contains(size);
            let spot =
                move |&size: &u64| spot(curve, (self.keys)(size), size, scale(task.effort, size));
            sizes.iter().filter(is_measured).map(spot)
        });
        figure_of_costs(task, [Panel::only(dataset_axis(), cost_axis())], spots.collect())
    }

    /// Adds notes: the sizes left out, and the thresholds that `mixed` learned.
    pub(super) fn notes(&self, figure: &mut Figure, sweep: &Sweep, task: &Task<'_>) {
        let sizes = figure.xs("").into_iter().map(|x| x as u64);
        figure.note(scale_note(sizes.map(|size| (size, scale(task.effort, size)))));
        let words = figure.xs("").into_iter().filter_map(|x| {
            let steady = sweep.at("", "mixed", x)?;
            let beta = steady.beta.map_or("none".to_owned(), |beta| beta.to_string());
            Some(match steady.tau.as_str() {
                "" => format!("{x} MB beta {beta}"),
                tau => format!("{x} MB tau {tau} beta {beta}"),
            })
        });
        let learned = joined("; ", words);
        figure.note(format!("What mixed has learned: {learned}."));
    }
}

pub(super) fn spot(curve: &str, keys: Keys, size_mb: u64, shrink: u64) -> Spot<Bench> {
    let job = Bench { rate: RATE, ..Bench::standard(curve, keys, size_mb, shrink) };
    Spot { panel: "", curve: curve.to_owned(), x: size_mb as f64, job }
}

/// Adds the claim that no policy beats `mixed`.
pub(super) fn claim_mixed_wins(figure: &mut Figure) {
    let over = most(others().flat_map(|other| figure.excesses("", "mixed", other, ALL)));
    let claim = "mixed writes least or ties with a partial policy at every size: at most over the \
                 cheapest, %";
    figure.at_most(claim, over, EQUAL);
}

/// Adds the claim that costs drop when the fourth level appears. At `before_mb` there are three.
pub(super) fn claim_fourth_level_helps(figure: &mut Figure, before_mb: f64) {
    for policy in ["full", "mixed"] {
        let costs = figure.y("", policy, 1700.0).zip(figure.y("", policy, before_mb));
        let rise = costs.map(|(four, three)| (four / three - 1.0) * 100.0);
        let claim = format!(
            "{policy} costs less with a fourth level (1700 MB) than before ({before_mb} MB): by, %"
        );
        figure.at_most(claim, rise, 0.0);
    }
}

/// Returns the largest absolute difference that keeping blocks makes within `range`, in percent.
pub(super) fn reuse_matters(figure: &Figure, range: RangeInclusive<f64>) -> Option<f64> {
    let excesses = |(keeps, plain)| figure.excesses("", keeps, plain, range.clone());
    farthest(PAIRS.into_iter().flat_map(excesses))
}

/// Returns the size in `range` from which on `mixed` costs as much as `choose_best`.
pub(super) fn first_tie(figure: &Figure, range: &RangeInclusive<f64>) -> Option<f64> {
    let xs: Vec<f64> = figure.xs("").into_iter().filter(|x| range.contains(x)).collect();
    let ties = |x: &&f64| {
        figure.excess("", "mixed", "choose_best", **x).is_some_and(|percent| percent.abs() <= EQUAL)
    };
    xs.iter().rev().take_while(ties).last().copied()
}
