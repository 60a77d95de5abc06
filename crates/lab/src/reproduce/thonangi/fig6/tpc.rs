//! Figure 6c: TPC.

use super::{
    Claim, Effort, FOUR_LEVELS, Figure, FigureInfo, Keys, Plan, SharedProgress, Sweep,
    THREE_LEVELS, claim_fourth_level_helps, claim_mixed_wins, first_tie,
};
use crate::reproduce::thonangi::fit::fit;
use crate::reproduce::thonangi::sweep::{ALL, KEEPING, farthest, least, most};
use std::ops::RangeInclusive;

/// Measures the figure.
pub(in crate::reproduce) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let keys = Keys::Tpc;
    let plan = match effort.is_quick {
        true => Plan { keys, sizes_mb: &[200], more_mb: &[800, 1500, 1700, 2000] },
        false => Plan {
            keys,
            sizes_mb: &[200, 800, 1500, 1700],
            more_mb: &[500, 2000, 3000, 4500, 6000, 7000, 7500, 8000],
        },
    };
    let (mut figure, sweep) = plan.measure(info, effort, progress)?;
    claim_mixed_wins(&mut figure, &sweep);
    claims(&mut figure, &sweep);
    plan.notes(&mut figure, &sweep, effort);
    Ok(figure)
}

fn claims(figure: &mut Figure, sweep: &Sweep) {
    figure.claim(farthest(sweep.excesses("", "rr", "choose_best", ALL)).map(|percent| {
        Claim::at_most("rr works almost as well as choose_best: within, %", percent, 5.0)
    }));
    claim_fourth_level_helps(figure, sweep);
    figure.claim(sweep.excess("", "mixed", "choose_best", 1700.0).map(|percent| {
        let claim = "mixed has a big lead over choose_best where the bottom is nearly empty (1700 \
                     MB): by, %";
        Claim::at_most(claim, percent, -10.0)
    }));
    let has_end = sweep.xs("").contains(&8000.0);
    figure.claim(first_tie(sweep, &FOUR_LEVELS).filter(|_| has_end).map(|x| {
        let claim = "with four levels mixed goes back to choose_best at: MB";
        Claim::near(claim, 7500.0, x, 1000.0)
    }));
    let slope = |policy: &str, range: &RangeInclusive<f64>| {
        let curve = sweep.xs("").into_iter().filter(|x| range.contains(x));
        let curve: Vec<_> = curve.filter_map(|x| Some((x, sweep.cost("", policy, x)?))).collect();
        Some(fit(&curve, 1)?.coefficients[1])
    };
    let slopes =
        KEEPING.map(|policy| Some((slope(policy, &THREE_LEVELS)?, slope(policy, &FOUR_LEVELS)?)));
    let slopes: Vec<(f64, f64)> = slopes.into_iter().flatten().collect();
    figure.claim(least(slopes.iter().map(|(_, four)| *four)).map(|slope| {
        let claim = "with four levels costs rise again: least slope, blocks per MB, per MB";
        Claim::at_least(claim, slope, 0.0)
    }));
    figure.claim(most(slopes.iter().map(|(three, four)| four / three)).map(|ratio| {
        let claim = "costs rise more slowly with four levels than with three: largest ratio";
        Claim::at_most(claim, ratio, 1.0)
    }));
}
