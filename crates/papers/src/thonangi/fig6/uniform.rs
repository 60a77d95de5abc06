//! Figure 6a: uniform.

use super::plan::{
    EQUAL, FOUR_LEVELS, Plan, THREE_LEVELS, claim_fourth_level_helps, claim_mixed_wins,
    reuse_matters,
};
use crate::form::*;
use crate::thonangi::scale::POINTS;
use crate::thonangi::steady::Keys;
use crate::thonangi::sweep::Sweep;

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let keys = |_| Keys::Uniform;
    let plan = task.pick(
        Plan { keys, sizes_mb: &[200, 800], more_mb: &[500, 1500, 1700] },
        Plan { keys, sizes_mb: &[200, 800, 1500, 1700], more_mb: &[400, 600, 1100, 2000] },
    );
    let (mut figure, sweep) = plan.measure(task)?;
    claims_of_mixed(&mut figure);
    claims_of_others(&mut figure);
    plan.notes(&mut figure, &sweep, task);
    explain_rr(&mut figure, &sweep);
    Ok(figure)
}

fn claims_of_mixed(figure: &mut Figure) {
    for (x, base, paper) in
        [(200.0, "choose_best", -30.0), (200.0, "full", -42.0), (1500.0, "full", -23.0)]
    {
        let excess = figure.excess("", "mixed", base, x);
        figure.near(format!("{x} MB: mixed over {base}, %"), paper, excess, POINTS);
    }
    let early = figure.excess("", "choose_best", "mixed", 200.0);
    let late = most(figure.excesses("", "choose_best", "mixed", 600.0..=1600.0));
    let claim = "the lead of mixed over choose_best narrows from 200 MB on, by percentage points";
    figure.at_least(claim, less(early, late), 0.0);
    let ties = farthest(figure.excesses("", "mixed", "choose_best", 800.0..=1500.0));
    figure.at_most("mixed equals choose_best from 800 to 1500 MB: within, %", ties, EQUAL);
    let worst = most(figure.excesses("", "mixed", "full", ALL));
    figure.at_most("mixed is always better than full: at most by, %", worst, 0.0);
    claim_mixed_wins(figure);
    let again = most(figure.excesses("", "mixed", "choose_best", FOUR_LEVELS));
    let claim = "with four levels mixed leads choose_best again: at most over it, %";
    figure.at_most(claim, again, -EQUAL);
}

fn claims_of_others(figure: &mut Figure) {
    claim_fourth_level_helps(figure, 1500.0);
    let start = figure.excess("", "rr", "choose_best", 200.0);
    figure.at_least("200 MB: rr starts out worse than choose_best, by %", start, 0.0);
    let close = farthest(figure.excesses("", "rr", "choose_best", 600.0..=f64::INFINITY));
    figure.at_most("rr is close to choose_best from 600 MB on: within, %", close, 5.0);
    let range = *THREE_LEVELS.start()..=*FOUR_LEVELS.end();
    let claim = "policies without reuse cost nearly the same as with it: within, %";
    figure.at_most(claim, reuse_matters(figure, range), EQUAL);
}

/// Explains why `rr` costs less than in the paper.
fn explain_rr(figure: &mut Figure, sweep: &Sweep) {
    let levels = |policy| Some(sweep.at("", policy, 800.0)?.level_costs.clone());
    let (Some(rr), Some(best)) = (levels("rr"), levels("choose_best")) else { return };
    let why = format!(
        "rr is as good as choose_best because it is the ideal that choose_best approaches. At 800 \
         MB they write {:.0} and {:.0} blocks per MB into level 1, {:.0} and {:.0} into level 2. \
         Under uniform keys a region is as dense as its last merge is long ago. All keys of an rr \
         window have waited equally long, so that it spans hardly more than half the rate of all \
         keys; the window of least overlap also takes in strips left over between earlier windows, \
         and their younger neighbours. Measured at 800 MB, rate 0.05, a quarter of the scale: \
         windows of level 1 span 2.63 % of all keys under rr and 2.83 % under choose_best (ideal: \
         2.5 %), waiting times within a window vary by 2 and by 12 %. Where windows have few \
         blocks (smaller scales, level 1) choosing gains by chance what it loses so.",
        rr[0], best[0], rr[1], best[1]
    );
    figure.explain("rr starts out worse", why);
}
