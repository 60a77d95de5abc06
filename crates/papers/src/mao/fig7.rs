//! Write cost over flushes with updates.

use super::course::{Course, course, panel};
use super::fit::most;
use super::updates::{
    BOUNDED, LEVELED, Run, Scale, TIERED, cost_ratio, flushes_left, pairs_turned,
};
use crate::{Claim, Effort, Figure, FigureInfo};
use lsmith_lab::SharedProgress;

/// The share of updates. Most updates go to the newest keys.
pub(super) const UPDATES: Run = Run::Update { share: 0.7, deletes: 0.0, dist: "latest" };

/// Costs that differ by at most this share count as equal when policies are ranked.
const TIE: f64 = 0.03;

/// The flushes of the paper's run with updates per flush of as many new keys: 26,400 over 1.5 times
/// 24,000.
const FLUSHES_LEFT: f64 = 26_400.0 / 36_000.0;

pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let scale = Scale::of(effort);
    let all = || BOUNDED.into_iter().chain(TIERED).chain(LEVELED);
    let updates = scale.simulate(&scale.workload(UPDATES, "hashed")?, all(), progress)?;
    let loads = scale.simulate(&scale.workload(Run::Load, "hashed")?, all(), progress)?;
    let mut others = Vec::new();
    for dist in ["uniform", "zipf"] {
        let run = Run::Update { share: 0.7, deletes: 0.0, dist };
        let workload = scale.workload(run, "hashed")?;
        others
            .push((dist, scale.simulate(&workload, BOUNDED.into_iter().chain(TIERED), progress)?));
    }

    let panels =
        vec![panel("a", "k = 6"), panel("b-tiered", "tiered"), panel("b-leveled", "leveled")];
    let mut figure = Figure::empty(info.name, info.title, panels);
    for (letter, specs) in [("a", BOUNDED), ("b-tiered", TIERED), ("b-leveled", LEVELED)] {
        for spec in specs {
            let course = course(&updates, spec);
            course.draw(&mut figure, letter, &course.write_costs());
        }
    }
    let left = flushes_left(effort)?;
    let claim = "flushes over those of as many new keys, memtables of 3300 records";
    figure.claim(Claim::near(claim, FLUSHES_LEFT, left, 0.1));
    claim_costs(&mut figure, &updates, &loads);
    claim_ranks(&mut figure, &updates, &loads, &others);
    figure.note(scale.note());
    note(&mut figure, &updates, &loads);
    Ok(figure)
}

fn claim_costs(figure: &mut Figure, updates: &[Course], loads: &[Course]) {
    for (group, specs) in [("bounded, k = 6", BOUNDED), ("tiered", TIERED), ("leveled", LEVELED)] {
        let ratios: Option<Vec<f64>> =
            specs.iter().map(|spec| cost_ratio(updates, loads, spec)).collect();
        figure.claim(ratios.and_then(most).map(|ratio| {
            let claim = format!(
                "{group}: write cost over that without updates at the same flushes, most of all \
                 policies (somewhat reduced)"
            );
            Claim::at_most(claim, ratio, 1.0)
        }));
    }
}

fn claim_ranks(
    figure: &mut Figure,
    updates: &[Course],
    loads: &[Course],
    others: &[(&str, Vec<Course>)],
) {
    for (group, specs) in [("bounded, k = 6", BOUNDED), ("tiered", TIERED), ("leveled", LEVELED)] {
        let claim = format!(
            "{group}: pairs of policies of which the other is dearer than without updates, \
             differences up to 3 % aside (relative performance is unchanged)"
        );
        let turned = pairs_turned(updates, loads, &specs, TIE);
        figure.claim(Claim::at_most(claim, turned as f64, 0.0));
    }
    let stacks: Vec<&str> = BOUNDED.into_iter().chain(TIERED).collect();
    for (dist, courses) in others {
        let claim = format!(
            "bounded and tiered: such pairs where updated keys chosen as `dist={dist}` (results \
             are similar)"
        );
        let turned = pairs_turned(courses, loads, &stacks, TIE);
        figure.claim(Claim::at_most(claim, turned as f64, 0.0));
    }
}

fn note(figure: &mut Figure, updates: &[Course], loads: &[Course]) {
    let cost = |spec: &&str| {
        let ratio = cost_ratio(updates, loads, spec)?;
        let end = course(updates, spec).write_cost();
        Some(format!("{spec} {end:.2} at the end, {ratio:.2} times that without updates"))
    };
    let all = BOUNDED.iter().chain(&TIERED).chain(&LEVELED);
    figure.note(format!("Write costs: {}.", all.filter_map(cost).collect::<Vec<_>>().join("; ")));
    figure.note(
        "How many flushes are left depends on the records of a memtable (the more it holds, the \
         more updates meet their key there) and on nothing that a policy does; so that number is \
         counted with memtables as large as the paper's, without a simulation.",
    );
}
