//! Figure 6b: normal.

use super::plan::{EQUAL, Plan, THREE_LEVELS, claim_mixed_wins, first_tie, spot};
use crate::form::*;
use crate::thonangi::steady::{Keys, Steady};
use crate::thonangi::sweep::{PAIRS, steady_states};

/// The sizes at which keys are compared, and the scale.
const COMPARED_MB: [u64; 2] = [200, 1500];
const COMPARED_SHRINK: u64 = 16;

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let keys = |_| Keys::NORMAL;
    let plan = task.pick(
        Plan { keys, sizes_mb: &[200], more_mb: &[400, 800, 1500, 1700] },
        Plan { keys, sizes_mb: &[200, 800, 1500, 1700], more_mb: &[400, 600, 1100, 2000] },
    );
    let (mut figure, sweep) = plan.measure(task)?;
    claim_mixed_wins(&mut figure);
    claims(&mut figure);
    claims_of_keys(&mut figure, task)?;
    plan.notes(&mut figure, &sweep, task);
    Ok(figure)
}

fn claims(figure: &mut Figure) {
    for [rr, best] in [["rr", "choose_best"], ["rr(reuse=false)", "choose_best(reuse=false)"]] {
        let above = least(figure.excesses("", rr, best, ALL));
        let claim = format!("{rr} is discernibly above {best} at every size: at least by, %");
        figure.at_least(claim, above, 1.0);
    }
    let pairs = [("full", "rr"), ("full(reuse=false)", "rr(reuse=false)")];
    let lowest = least(pairs.into_iter().flat_map(|(full, rr)| figure.excesses("", full, rr, ALL)));
    figure.at_most("full is sometimes better than rr: at best by, %", lowest, 0.0);
    let kept = most(PAIRS.into_iter().flat_map(|(keeps, no)| figure.excesses("", keeps, no, ALL)));
    let claim = "all policies cost less with reuse than without, at every size: at most by, %";
    figure.at_most(claim, kept, 0.0);
    for x in [200.0, 1700.0] {
        let gain = figure.excess("", "mixed", "choose_best", x);
        let claim = format!("{x} MB: mixed still gains considerably on choose_best: by, %");
        figure.at_most(claim, gain, -5.0);
    }
    let claim = "mixed equals choose_best from a smaller size on than under uniform (800 MB): \
                 from, MB";
    figure.at_most(claim, first_tie(figure, &THREE_LEVELS), 799.0);
}

/// Adds claims that compare the leads here and with uniform keys, both at one smaller scale.
fn claims_of_keys(figure: &mut Figure, task: &Task<'_>) -> anyhow::Result<()> {
    const POLICIES: [&str; 3] = ["choose_best", "mixed", "full(reuse=false)"];
    let shrink = COMPARED_SHRINK.max(task.effort.shrink);
    let costs = |step: &str, keys| {
        let of = |policy| COMPARED_MB.map(|size| spot(policy, keys, size, shrink));
        let sweep = steady_states(task, step, POLICIES.into_iter().flat_map(of).collect())?;
        anyhow::Ok(sweep.points(Steady::cost))
    };
    let uniform = costs("the same under uniform", Keys::Uniform)?;
    let normal = costs("the same smaller", Keys::NORMAL)?;
    for policy in ["choose_best", "mixed"] {
        let wider = COMPARED_MB.into_iter().filter_map(|size| {
            let excess =
                |costs: &Figure| costs.excess("", policy, "full(reuse=false)", size as f64);
            less(excess(&uniform), excess(&normal))
        });
        let claim = format!(
            "{policy} leads full(reuse=false) by more than under uniform, at 200 and at 1500 MB: \
             at least by, percentage points"
        );
        figure.at_least(claim, least(wider), 0.0);
    }
    figure.note(format!(
        "Leads under normal and uniform are compared at 1/{shrink} of the paper's scale, ties \
         within {EQUAL} %."
    ));
    Ok(())
}
