//! Figure 8: seven policies over the skew of the keys.

use super::scale::{cost_axis, scale, scale_note};
use super::steady::{Bench, Keys};
use super::sweep::{PAIRS, SEVEN, and_own, figure_of_costs, others};
use crate::form::*;

const DATASET_MB: u64 = 300;

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    // Standard deviations, in percent of the key space.
    let sigmas = task.pick(&[0.005, 0.1, 2.0, 20.0][..], &[0.005, 0.02, 0.1, 0.5, 2.0, 5.0, 20.0]);
    let shrink = scale(task.effort, DATASET_MB);
    let bench = |policy: &str, sigma: f64| {
        let keys = Keys::Normal { sigma: sigma / 100.0, omega: 10_000 };
        Bench::standard(policy, keys, DATASET_MB, shrink)
    };
    let panel = Panel::only(Axis::log("standard deviation", "% of the key space"), cost_axis());
    let spots = spots("", and_own(&SEVEN, task), sigmas, bench);
    let (mut figure, _) = figure_of_costs(task, [panel], spots)?;
    let random = [("choose_best", "rr"), ("choose_best(reuse=false)", "rr(reuse=false)")];
    for (better, worse) in random.into_iter().chain(PAIRS) {
        let excess = |x| figure.excess("", worse, better, x);
        let claim = format!(
            "{better} outperforms {worse} more at 0.005 % than at 20 %: by, percentage points"
        );
        figure.at_least(claim, less(excess(0.005), excess(20.0)), 1.0);
    }
    let leads = least(others().flat_map(|other| figure.excesses("", other, "mixed", ALL)));
    let claim = "mixed has a comfortable lead over all others throughout: at least, %";
    figure.at_least(claim, leads, 3.0);
    figure.note(scale_note([(DATASET_MB, shrink)]));
    Ok(figure)
}
