//! Figure 6c: TPC.

use super::plan::{
    FOUR_LEVELS, Plan, THREE_LEVELS, claim_fourth_level_helps, claim_mixed_wins, first_tie, spot,
};
use crate::form::*;
use crate::thonangi::fit::fit;
use crate::thonangi::steady::{Keys, Steady, orders};
use crate::thonangi::sweep::{KEEPING, SEVEN, steady_states};
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

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    // Beyond 1400 MB, room in blocks can make levels overflow although the data would fit.
    let plan = task.pick(
        Plan { keys, sizes_mb: &[200], more_mb: &[800, 1400, 1700, 2000] },
        Plan {
            keys,
            sizes_mb: &[200, 800, 1400, 1700],
            more_mb: &[500, 1100, 2000, 3000, 4500, 6000, 7000, 7500, 8000],
        },
    );
    let (mut figure, sweep) = plan.measure(task)?;
    claim_mixed_wins(&mut figure);
    claims(&mut figure);
    plan.notes(&mut figure, &sweep, task);
    note_few_warehouses(&mut figure, task)?;
    Ok(figure)
}

/// Adds a note on costs with few warehouses, where orders of one district fill many blocks.
fn note_few_warehouses(figure: &mut Figure, task: &Task<'_>) -> anyhow::Result<()> {
    let shrink = FEW_SHRINK.max(task.effort.shrink);
    let of_curve = |curve| FEW_MB.map(|size| spot(curve, Keys::TPC, size, shrink));
    let spots = SEVEN.into_iter().flat_map(of_curve).collect();
    let found = steady_states(task, "the same with few warehouses", spots)?.points(Steady::cost);
    let policies = SEVEN.map(|policy| {
        let costs = found.curve("", policy).map(|(_, cost)| format!("{cost:.0}"));
        format!("{policy} {}", joined(", ", costs))
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

fn claims(figure: &mut Figure) {
    let apart = farthest(figure.excesses("", "rr", "choose_best", ALL));
    figure.at_most("rr works almost as well as choose_best: within, %", apart, 5.0);
    claim_fourth_level_helps(figure, 1400.0);
    let lead = figure.excess("", "mixed", "choose_best", 1700.0);
    let claim = "mixed has a big lead over choose_best where the bottom is nearly empty (1700 MB): \
                 by, %";
    figure.at_most(claim, lead, -10.0);
    let has_end = figure.xs("").contains(&8000.0);
    let tie = first_tie(figure, &FOUR_LEVELS).filter(|_| has_end);
    figure.near("with four levels mixed goes back to choose_best at: MB", 7500.0, tie, 1000.0);
    let slope = |policy: &str, range: &RangeInclusive<f64>| {
        let curve: Vec<_> = figure.curve("", policy).filter(|(x, _)| range.contains(x)).collect();
        Some(fit(&curve, 1)?.coefficients[1])
    };
    let slopes =
        KEEPING.map(|policy| Some((slope(policy, &THREE_LEVELS)?, slope(policy, &FOUR_LEVELS)?)));
    let slopes = || slopes.iter().flatten();
    let rise = least(slopes().map(|(_, four)| *four));
    let slower = most(slopes().map(|(three, four)| four / three));
    let claim = "with four levels costs rise again: least slope, blocks per MB, per MB";
    figure.at_least(claim, rise, 0.0);
    let claim = "costs rise more slowly with four levels than with three: largest ratio";
    figure.at_most(claim, slower, 1.0);
}
