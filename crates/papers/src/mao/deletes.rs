//! Write cost over flushes where keys are deleted.

use super::course::{Course, Courses, panel};
use super::fig7::{draw, panels};
use super::updates::{BOUNDED, LEVELED, Run, Scale, TIERED};
use crate::form::*;
use anyhow::Context;

/// The shares of updates that delete. 70 % of the writes are updates, mostly of new keys.
const SHARES: [f64; 4] = [0.0, 0.25, 0.5, 1.0];

/// The share of the curves over flushes.
const SHOWN: f64 = 0.5;

/// The static policies, and with flushes counted by size.
const BY_SIZE: [(&str, &str); 2] = [
    ("minlatency(k=6)", "minlatency(k=6, count=size)"),
    ("binomial(k=6)", "binomial(k=6, count=size)"),
];

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let scale = Scale::of(task.effort);
    let stacks = || BOUNDED.into_iter().chain(TIERED);
    let by_size = || BY_SIZE.into_iter().map(|(_, by_size)| by_size);
    let own = task.own_beside(stacks().chain(by_size()).chain(LEVELED));
    let own_specs = || own.iter().map(String::as_str);
    let mut runs = Vec::new();
    for deletes in SHARES {
        let run = Run::Update { share: 0.7, deletes, dist: "latest" };
        let leveled = LEVELED.into_iter().filter(|_| deletes == SHOWN);
        let specs = stacks().chain(by_size()).chain(leveled).chain(own_specs());
        runs.push((deletes, scale.simulate(task, run, "hashed", specs)?));
    }
    let loads = scale.simulate(task, Run::Load, "hashed", stacks().chain(LEVELED))?;
    let by_share = Panel {
        x: Axis::linear("share of updates that delete", ""),
        ..panel("by-share", "k = 6 and tiered, at the end")
    };
    let mut figure = task.figure(panels().into_iter().chain([by_share]));
    let shown = runs.iter().find(|(deletes, _)| *deletes == SHOWN);
    let (_, shown) = shown.context("no run has the share of deletes that is shown")?;
    draw(&mut figure, shown, &own);
    for spec in stacks().chain(by_size()).chain(own_specs()) {
        let costs = runs.iter().map(|(deletes, courses)| (*deletes, courses.cost(spec)));
        figure.draw("by-share", spec, costs);
    }
    claim_costs(&mut figure, &runs, &loads);
    claim_ranks(&mut figure, shown, &loads);
    figure.note(scale.note());
    note(&mut figure, &runs, &loads);
    Ok(figure)
}

fn claim_costs(figure: &mut Figure, runs: &[(f64, Courses)], loads: &Courses) {
    let flushes = |courses: &Courses| courses.of(BOUNDED[0]).last().parts.flushes as f64;
    for pair in runs.windows(2) {
        let [(fewer, before), (more, after)] = pair else { continue };
        let claim = format!(
            "flushes with {} % of updates deletes over those with {} % (the flush rate falls)",
            more * 100.0,
            fewer * 100.0
        );
        figure.at_most(claim, flushes(after) / flushes(before), 0.999);
    }
    for (group, specs, wording) in [
        ("minlatency and binomial", &BOUNDED[..2], "guaranteed not to increase"),
        ("bigtable and exploring", &BOUNDED[2..], "slightly reduced"),
        ("tiered", &TIERED[..], "slightly reduced"),
    ] {
        let ratios = runs.iter().filter(|(deletes, _)| *deletes > 0.0).flat_map(|(_, courses)| {
            specs.iter().filter_map(|spec| courses.cost_ratio(loads, spec))
        });
        let claim = format!(
            "{group}, any share of deletes: write cost over that without updates at the same \
             flushes, the most ({wording})"
        );
        figure.at_most(claim, most(ratios), 1.0);
    }
    let Some((_, all)) = runs.last() else { return };
    let [minlatency, binomial, bigtable, exploring] = BOUNDED.map(|spec| all.cost(spec));
    let claim = "all updates delete: the cheaper of bigtable and exploring over the cheaper of \
                 minlatency and binomial (dynamic policies may be below)";
    figure.at_most(claim, bigtable.min(exploring) / minlatency.min(binomial), 1.0);
    let ratios = runs.iter().flat_map(|(_, courses)| {
        BY_SIZE.map(|(plain, by_size)| courses.cost(by_size) / courses.cost(plain))
    });
    let claim = "count=size over plain counting, minlatency and binomial, any share, the most (a \
                 way to keep them good candidates)";
    figure.at_most(claim, most(ratios), 1.05);
}

fn claim_ranks(figure: &mut Figure, shown: &Courses, loads: &Courses) {
    let stacks: Vec<&str> = BOUNDED.into_iter().chain(TIERED).collect();
    let write: fn(&Course) -> f64 = Course::write_cost;
    let read: fn(&Course) -> f64 = |course| course.last().read_cost_mean;
    for (what, cost, group, specs) in [
        ("write", write, "bounded and tiered", &stacks[..]),
        ("read", read, "bounded and tiered", &stacks[..]),
        ("write", write, "leveled", &LEVELED[..]),
    ] {
        let claim = format!(
            "{group}, half of updates delete: pairs of policies of which the other has the higher \
             {what} cost than without updates, differences up to 3 % aside (ranks almost remain)"
        );
        figure.at_most(claim, shown.turned_by(loads, specs, cost), 1.0);
    }
}

fn note(figure: &mut Figure, runs: &[(f64, Courses)], loads: &Courses) {
    figure.note(
        "The paper has runs with updates, and says what deletes should do; it shows no run with \
         deletes. Here 70 % of the writes go to existing keys, as in its figure 7, and a share of \
         these deletes the key. A delete takes the bytes of its key and 8, so that memtables hold \
         more of them. Tombstones go when a merge takes the oldest run.",
    );
    let row = |(deletes, courses): &(f64, Courses)| {
        let last = courses.of(BOUNDED[0]).last();
        format!(
            "{} %: {} flushes, minlatency(k=6) {:.2}, space {:.2}",
            deletes * 100.0,
            last.parts.flushes,
            last.write_cost_system,
            last.space_cost_mean
        )
    };
    let rows = joined("; ", runs.iter().map(row));
    let load = loads.cost(BOUNDED[0]);
    figure.note(format!("By share of deletes: {rows}. Without updates {load:.2}."));
}
