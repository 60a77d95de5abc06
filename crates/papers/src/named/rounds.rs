//! Rounds of young runs over two levels, beside levels and tiers of one ratio.

use super::FLUSHES;
use crate::form::*;
use lsmith_sim::Figures;

/// Settings of `vertiorizon`: what it is called here, its levels, and whether they bound the runs.
const SETTINGS: [(&str, u64, bool); 4] = [
    ("levels=2", 2, false),
    ("levels=3", 3, false),
    ("levels=5", 5, false),
    ("merge=leveling, levels=3", 3, true),
];
const RATIO: u64 = 4;

/// The ratios of levels and of tiers that stand for the vertical scheme.
const RATIOS: std::ops::RangeInclusive<u64> = 2..=32;

/// Judges `vertiorizon`. `cost` simulates a policy.
pub(super) fn judge(
    figure: &mut Figure,
    cost: &impl Fn(&str) -> anyhow::Result<Figures>,
) -> anyhow::Result<()> {
    let all = |name: &str| {
        let specs = RATIOS.map(|ratio| cost(&name.replace('#', &ratio.to_string())));
        specs.collect::<anyhow::Result<Vec<Figures>>>()
    };
    let (leveling, tiering) = (all("leveled(ratio=#, l0=1)")?, all("tiered(ratio=#)")?);
    let round = FLUSHES.div_ceil(RATIO * RATIO);
    for (setting, levels, bounds_runs) in SETTINGS {
        let found = cost(&format!("vertiorizon({setting}, ratio={RATIO})"))?;
        let of = |runs: &u64| binomial(runs + levels, levels) >= round as f64;
        let young = if bounds_runs { levels } else { (1..).find(of).unwrap_or(round) };
        figure.at_most(
            format!("vertiorizon, {setting}: most runs, of a round and two levels"),
            found.runs_max as f64,
            young as f64 + 2.0,
        );
        for (name, others) in [("leveling in pieces", &leveling), ("tiering", &tiering)] {
            let few = others.iter().filter(|it| it.read_cost_mean <= found.read_cost_mean);
            let least = few.map(|it| it.write_cost_system).reduce(f64::min);
            if let Some(least) = least {
                let claim =
                    format!("vertiorizon, {setting}: write cost over {name} with no more runs");
                figure.at_most(claim, found.write_cost_system / least, 1.0);
            }
        }
    }
    figure.explain(
        "vertiorizon, levels=2: write cost over tiering",
        "Tiering here merges whole runs, and its last level never into itself. So it writes least \
         of all schemes of one ratio, and holds what is overwritten. How the paper lays out its \
         vertical tiering was not at hand.",
    );
    Ok(())
}

/// Returns the number of ways to choose `part` of `all`.
fn binomial(all: u64, part: u64) -> f64 {
    (1..=part).map(|step| (all - part + step) as f64 / step as f64).product()
}
