//! Figure 6b: normal.

use super::plan::{EQUAL, Plan, THREE_LEVELS, claim_mixed_wins, first_tie, spot};
use crate::thonangi::steady::Keys;
use crate::thonangi::sweep::{ALL, PAIRS, Sweep, least, most};
use crate::{Claim, Effort, Figure, FigureInfo};
use lsmith_lab::SharedProgress;

/// The sizes at which keys are compared, and the scale.
const COMPARED_MB: [u64; 2] = [200, 1500];
const COMPARED_SHRINK: u64 = 16;

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let keys = |_| Keys::NORMAL;
    let plan = if effort.is_quick {
        Plan { keys, sizes_mb: &[200], more_mb: &[400, 800, 1500, 1700] }
    } else {
        Plan { keys, sizes_mb: &[200, 800, 1500, 1700], more_mb: &[400, 600, 1100, 2000] }
    };
    let (mut figure, sweep) = plan.measure(info, effort, progress)?;
    claim_mixed_wins(&mut figure, &sweep);
    claims(&mut figure, &sweep);
    claims_of_keys(&mut figure, effort, progress)?;
    plan.notes(&mut figure, &sweep, effort);
    Ok(figure)
}

fn claims(figure: &mut Figure, sweep: &Sweep) {
    for [rr, best] in [["rr", "choose_best"], ["rr(reuse=false)", "choose_best(reuse=false)"]] {
        figure.claim(least(sweep.excesses("", rr, best, ALL)).map(|percent| {
            let claim = format!("{rr} is discernibly above {best} at every size: at least by, %");
            Claim::at_least(claim, percent, 1.0)
        }));
    }
    let pairs = [("full", "rr"), ("full(reuse=false)", "rr(reuse=false)")];
    let lowest = pairs.into_iter().flat_map(|(full, rr)| sweep.excesses("", full, rr, ALL));
    figure.claim(least(lowest).map(|percent| {
        Claim::at_most("full is sometimes better than rr: at best by, %", percent, 0.0)
    }));
    let excesses = |(keeps, plain)| sweep.excesses("", keeps, plain, ALL);
    figure.claim(most(PAIRS.into_iter().flat_map(excesses)).map(|percent| {
        let claim = "all policies cost less with reuse than without, at every size: at most by, %";
        Claim::at_most(claim, percent, 0.0)
    }));
    for x in [200.0, 1700.0] {
        figure.claim(sweep.excess("", "mixed", "choose_best", x).map(|percent| {
            let claim = format!("{x} MB: mixed still gains considerably on choose_best: by, %");
            Claim::at_most(claim, percent, -5.0)
        }));
    }
    figure.claim(first_tie(sweep, &THREE_LEVELS).map(|x| {
        let claim = "mixed equals choose_best from a smaller size on than under uniform (800 MB): \
                     from, MB";
        Claim::at_most(claim, x, 799.0)
    }));
}

/// Adds claims that compare the leads here and with uniform keys, both at one smaller scale.
fn claims_of_keys(
    figure: &mut Figure,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<()> {
    const POLICIES: [&str; 3] = ["choose_best", "mixed", "full(reuse=false)"];
    let shrink = COMPARED_SHRINK.max(effort.shrink);
    let spots = |keys| {
        let of = move |policy| COMPARED_MB.map(|size| spot(policy, keys, size, shrink));
        POLICIES.into_iter().flat_map(of).collect::<Vec<_>>()
    };
    let uniform = Sweep::measure("the same under uniform", spots(Keys::Uniform), progress)?;
    let normal = Sweep::measure("the same smaller", spots(Keys::NORMAL), progress)?;
    for policy in ["choose_best", "mixed"] {
        let wider = COMPARED_MB.into_iter().filter_map(|size| {
            let lead = |sweep: &Sweep| {
                Some(-sweep.excess("", policy, "full(reuse=false)", size as f64)?)
            };
            Some(lead(&normal)? - lead(&uniform)?)
        });
        figure.claim(least(wider).map(|points| {
            let claim = format!(
                "{policy} leads full(reuse=false) by more than under uniform, at 200 and at 1500 \
                 MB: at least by, percentage points"
            );
            Claim::at_least(claim, points, 0.0)
        }));
    }
    figure.note(format!(
        "Leads under normal and uniform are compared at 1/{shrink} of the paper's scale, ties \
         within {EQUAL} %."
    ));
    Ok(())
}
