//! Figure 6c: TPC.

use super::plan::{
    FOUR_LEVELS, Plan, THREE_LEVELS, claim_fourth_level_helps, claim_mixed_wins, first_tie, spot,
};
use crate::thonangi::fit::fit;
use crate::thonangi::steady::{Keys, orders};
use crate::thonangi::sweep::{ALL, KEEPING, SEVEN, Sweep, farthest, least, most};
use crate::{Claim, Effort, Figure, FigureInfo};
use lsmith_lab::SharedProgress;
use std::ops::RangeInclusive;

/// Undelivered orders of a district. Ten are delivered at a time.
const ORDERS: u64 = 20;

/// The sizes at which a fixed number of warehouses is measured, and the scale.
const FEW_MB: [u64; 3] = [200, 800, 1400];
const FEW_SHRINK: u64 = 16;

/// The number of warehouses grows with the data, as in TPC-C.
fn keys(size_mb: u64) -> Keys {
    Keys::Tpc { districts: orders(size_mb) / ORDERS }
}

/// Measures the figure.
pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    // Beyond 1400 MB, room in blocks can make levels overflow although the data would fit.
    let plan = if effort.is_quick {
        Plan { keys, sizes_mb: &[200], more_mb: &[800, 1400, 1700, 2000] }
    } else {
        Plan {
            keys,
            sizes_mb: &[200, 800, 1400, 1700],
            more_mb: &[500, 1100, 2000, 3000, 4500, 6000, 7000, 7500, 8000],
        }
    };
    let (mut figure, sweep) = plan.measure(info, effort, progress)?;
    claim_mixed_wins(&mut figure, &sweep);
    claims(&mut figure, &sweep);
    plan.notes(&mut figure, &sweep, effort);
    note_few_warehouses(&mut figure, effort, progress)?;
    Ok(figure)
}

/// Adds a note on costs with few warehouses, where orders of one district fill many blocks.
fn note_few_warehouses(
    figure: &mut Figure,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<()> {
    let shrink = FEW_SHRINK.max(effort.shrink);
    let of_curve = |curve| FEW_MB.map(|size| spot(curve, Keys::TPC, size, shrink));
    let spots = SEVEN.into_iter().flat_map(of_curve).collect();
    let sweep = Sweep::measure("the same with few warehouses", spots, progress)?;
    let policies = SEVEN.map(|policy| {
        let numbers = FEW_MB.map(|size| sweep.cost("", policy, size as f64).unwrap_or(f64::NAN));
        let costs = numbers.map(|cost| format!("{cost:.0}"));
        format!("{policy} {}", costs.join(", "))
    });
    figure.note(format!(
        "The paper does not say how many warehouses it has, but that costs are those of uniform \
         keys. They are where a block holds orders of several districts: here warehouses grow in \
         number with the data, with {ORDERS} orders to a district. With 100 warehouses whatever \
         the data, orders of a district fill many blocks of their own, which new orders follow and \
         deliveries empty from the front: nearly all are kept as they are, and what is written is \
         what leaves memory. Blocks per MB at {} MB, 1/{shrink} of the scale: {}.",
        FEW_MB.map(|size| size.to_string()).join(", "),
        policies.join("; ")
    ));
    Ok(())
}

fn claims(figure: &mut Figure, sweep: &Sweep) {
    figure.claim(farthest(sweep.excesses("", "rr", "choose_best", ALL)).map(|percent| {
        Claim::at_most("rr works almost as well as choose_best: within, %", percent, 5.0)
    }));
    claim_fourth_level_helps(figure, sweep, 1400.0);
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
        let shown = sweep.xs("").into_iter().filter(|x| range.contains(x));
        let curve: Vec<_> = shown.filter_map(|x| Some((x, sweep.cost("", policy, x)?))).collect();
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
