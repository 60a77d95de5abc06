//! Write cost over flushes with updates.

use super::course::{Courses, panel};
use super::updates::{BOUNDED, LEVELED, Run, Scale, TIERED, flushes_left};
use crate::form::*;

/// The share of updates. Most updates go to the newest keys.
pub(super) const UPDATES: Run = Run::Update { share: 0.7, deletes: 0.0, dist: "latest" };

/// The panels, with the policies in them.
const PANELS: [(&str, &str, [&str; 4]); 3] =
    [("a", "k = 6", BOUNDED), ("b-tiered", "tiered", TIERED), ("b-leveled", "leveled", LEVELED)];

/// Groups of policies.
const GROUPS: [(&str, [&str; 4]); 3] =
    [("bounded, k = 6", BOUNDED), ("tiered", TIERED), ("leveled", LEVELED)];

/// The flushes of the paper's run with updates per flush of as many new keys: 26,400 over 1.5 times
/// 24,000.
const FLUSHES_LEFT: f64 = 26_400.0 / 36_000.0;

/// Returns the panels of costs over flushes.
pub(super) fn panels() -> Vec<Panel> {
    PANELS.map(|(name, title, _)| panel(name, title)).to_vec()
}

/// Draws costs in these panels. The policies `own` are in each.
pub(super) fn draw(figure: &mut Figure, courses: &Courses, own: &[String]) {
    for (name, _, specs) in PANELS {
        let all = specs.into_iter().chain(own.iter().map(String::as_str));
        courses.draw(figure, name, all, |_| true);
    }
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let scale = Scale::of(task.effort);
    let stacks: Vec<&str> = BOUNDED.into_iter().chain(TIERED).collect();
    let all = || stacks.iter().copied().chain(LEVELED);
    let own = task.own_beside(all());
    let of_updates = all().chain(own.iter().map(String::as_str));
    let updates = scale.simulate(task, UPDATES, "hashed", of_updates)?;
    let loads = scale.simulate(task, Run::Load, "hashed", all())?;
    let mut others = Vec::new();
    for dist in ["uniform", "zipf"] {
        let run = Run::Update { share: 0.7, deletes: 0.0, dist };
        others.push((dist, scale.simulate(task, run, "hashed", stacks.iter().copied())?));
    }
    let mut figure = task.figure(panels());
    draw(&mut figure, &updates, &own);
    let left = flushes_left(task.effort)?;
    let claim = "flushes over those of as many new keys, memtables of 3300 records";
    figure.near(claim, FLUSHES_LEFT, left, 0.1);
    for (group, specs) in GROUPS {
        let ratios = specs.iter().map(|spec| updates.cost_ratio(&loads, spec));
        let claim = format!(
            "{group}: write cost over that without updates at the same flushes, most of all \
             policies (somewhat reduced)"
        );
        figure.at_most(claim, ratios.collect::<Option<Vec<f64>>>().and_then(most), 1.0);
    }
    for (group, specs) in GROUPS {
        let claim = format!(
            "{group}: pairs of policies of which the other is dearer than without updates, \
             differences up to 3 % aside (relative performance is unchanged)"
        );
        figure.at_most(claim, updates.pairs_turned(&loads, &specs), 0.0);
    }
    for (dist, courses) in &others {
        let claim = format!(
            "bounded and tiered: such pairs where updated keys chosen as `dist={dist}` (results \
             are similar)"
        );
        figure.at_most(claim, courses.pairs_turned(&loads, &stacks), 0.0);
    }
    figure.note(scale.note());
    note(&mut figure, &updates, &loads);
    Ok(figure)
}

fn note(figure: &mut Figure, updates: &Courses, loads: &Courses) {
    let cost = |spec: &&str| {
        let ratio = updates.cost_ratio(loads, spec)?;
        let end = updates.cost(spec);
        Some(format!("{spec} {end:.2} at the end, {ratio:.2} times that without updates"))
    };
    let all = BOUNDED.iter().chain(&TIERED).chain(&LEVELED);
    figure.note(format!("Write costs: {}.", joined("; ", all.filter_map(cost))));
    figure.note(
        "How many flushes are left depends on the records of a memtable (the more it holds, the \
         more updates meet their key there) and on nothing that a policy does; so that number is \
         counted with memtables as large as the paper's, without a simulation.",
    );
}
