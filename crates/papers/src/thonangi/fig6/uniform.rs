//! Figure 6a: uniform.

use super::plan::{
    EQUAL, FOUR_LEVELS, Plan, THREE_LEVELS, claim_fourth_level_helps, claim_mixed_wins,
    reuse_matters,
};
use crate::thonangi::scale::POINTS;
use crate::thonangi::steady::Keys;
use crate::thonangi::sweep::{Sweep, farthest, most};
use crate::{Claim, Effort, Figure, FigureInfo};
use lsmith_lab::SharedProgress;

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let keys = |_| Keys::Uniform;
    let plan = if effort.is_quick {
        Plan { keys, sizes_mb: &[200, 800], more_mb: &[500, 1500, 1700] }
    } else {
        Plan { keys, sizes_mb: &[200, 800, 1500, 1700], more_mb: &[400, 600, 1100, 2000] }
    };
    let (mut figure, sweep) = plan.measure(info, effort, progress)?;
    claims_of_mixed(&mut figure, &sweep);
    claims_of_others(&mut figure, &sweep);
    plan.notes(&mut figure, &sweep, effort);
    explain_rr(&mut figure, &sweep);
    Ok(figure)
}

fn claims_of_mixed(figure: &mut Figure, sweep: &Sweep) {
    for (x, base, paper) in
        [(200.0, "choose_best", -30.0), (200.0, "full", -42.0), (1500.0, "full", -23.0)]
    {
        figure.claim(sweep.excess("", "mixed", base, x).map(|percent| {
            Claim::near(format!("{x} MB: mixed over {base}, %"), paper, percent, POINTS)
        }));
    }
    let lead = |x| sweep.excess("", "choose_best", "mixed", x);
    let later = most(sweep.excesses("", "choose_best", "mixed", 600.0..=1600.0));
    figure.claim(lead(200.0).zip(later).map(|(early, late)| {
        let claim = "the lead of mixed over choose_best narrows from 200 MB on, by percentage \
                     points";
        Claim::at_least(claim, early - late, 0.0)
    }));
    let ties = farthest(sweep.excesses("", "mixed", "choose_best", 800.0..=1500.0));
    figure.claim(ties.map(|percent| {
        Claim::at_most("mixed equals choose_best from 800 to 1500 MB: within, %", percent, EQUAL)
    }));
    let worst = most(sweep.excesses("", "mixed", "full", 0.0..=f64::INFINITY));
    figure.claim(worst.map(|percent| {
        Claim::at_most("mixed is always better than full: at most by, %", percent, 0.0)
    }));
    claim_mixed_wins(figure, sweep);
    let again = most(sweep.excesses("", "mixed", "choose_best", FOUR_LEVELS));
    figure.claim(again.map(|percent| {
        let claim = "with four levels mixed leads choose_best again: at most over it, %";
        Claim::at_most(claim, percent, -EQUAL)
    }));
}

fn claims_of_others(figure: &mut Figure, sweep: &Sweep) {
    claim_fourth_level_helps(figure, sweep, 1500.0);
    figure.claim(sweep.excess("", "rr", "choose_best", 200.0).map(|percent| {
        Claim::at_least("200 MB: rr starts out worse than choose_best, by %", percent, 0.0)
    }));
    let close = farthest(sweep.excesses("", "rr", "choose_best", 600.0..=f64::INFINITY));
    figure.claim(close.map(|percent| {
        Claim::at_most("rr is close to choose_best from 600 MB on: within, %", percent, 5.0)
    }));
    let range = *THREE_LEVELS.start()..=*FOUR_LEVELS.end();
    figure.claim(reuse_matters(sweep, range).map(|percent| {
        let claim = "policies without reuse cost nearly the same as with it: within, %";
        Claim::at_most(claim, percent, EQUAL)
    }));
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
