//! Leveled under updates when new keys come in order.

use super::course::{Course, course, panel};
use super::fig7::UPDATES;
use super::fit::{least, most};
use super::updates::{BOUNDED, LEVELED, Run, Scale, cost_ratio};
use crate::{Claim, Effort, Figure, FigureInfo};
use lsmith_lab::SharedProgress;

/// A low share of updates.
const FEW_UPDATES: Run = Run::Update { share: 0.05, deletes: 0.0, dist: "latest" };

pub(crate) fn measure(
    info: &FigureInfo,
    effort: Effort,
    progress: &SharedProgress,
) -> anyhow::Result<Figure> {
    let scale = Scale::of(effort);
    let all = || LEVELED.into_iter().chain(BOUNDED);
    let in_order = scale.workload(UPDATES, "sequential")?;
    let ordered = scale.simulate(&in_order, all(), progress)?;
    let hashed = scale.simulate(&scale.workload(UPDATES, "hashed")?, all(), progress)?;
    let load = scale.workload(Run::Load, "sequential")?;
    let loads = scale.simulate(&load, LEVELED, progress)?;
    let few_updates = scale.workload(FEW_UPDATES, "sequential")?;
    let few = scale.simulate(&few_updates, LEVELED, progress)?;

    let mut figure = Figure::empty(info.name, info.title, vec![panel("", "")]);
    for spec in LEVELED {
        let course = course(&ordered, spec);
        course.draw(&mut figure, "", &course.write_costs());
    }
    claim_order(&mut figure, &ordered, &hashed);
    claim_appends(&mut figure, &loads, &few);
    figure.note(scale.note());
    note(&mut figure, [&ordered, &hashed, &loads, &few]);
    Ok(figure)
}

fn claim_order(figure: &mut Figure, ordered: &[Course], hashed: &[Course]) {
    for spec in LEVELED {
        figure.claim(cost_ratio(ordered, hashed, spec).map(|ratio| {
            let claim = format!("{spec}: write cost over that of figure 7b (almost identical)");
            Claim::near(claim, 1.0, ratio, 0.15)
        }));
    }
    let ratios: Vec<f64> =
        LEVELED.iter().filter_map(|spec| cost_ratio(ordered, hashed, spec)).collect();
    figure.claim(most(ratios).map(|ratio| {
        let claim = "most write cost over that of figure 7b, all ratios (slightly lower)";
        Claim::at_most(claim, ratio, 1.0)
    }));
    let flushes = |courses: &[Course]| course(courses, LEVELED[0]).last().parts.flushes as f64;
    let claim = "flushes over those of figure 7b (slightly reduced)";
    figure.claim(Claim::at_most(claim, flushes(ordered) / flushes(hashed), 0.999));
    let apart = BOUNDED.iter().filter_map(|spec| cost_ratio(ordered, hashed, spec));
    figure.claim(most(apart.map(|ratio| (ratio - 1.0).abs())).map(|apart| {
        let claim = "bounded stacks, k = 6: the order of new keys changes the write cost at most \
                     by this share (not by much)";
        Claim::at_most(claim, apart, 0.05)
    }));
}

fn claim_appends(figure: &mut Figure, loads: &[Course], few: &[Course]) {
    let costs = |courses: &[Course]| LEVELED.map(|spec| course(courses, spec).write_cost());
    figure.claim(most(costs(loads)).map(|cost| {
        let claim = "only new keys, in order: most write cost of all ratios (merges are moves)";
        Claim::near(claim, 1.0, cost, 0.05)
    }));
    let pairs = costs(few).into_iter().zip(costs(loads));
    figure.claim(least(pairs.map(|(few, load)| few / load)).map(|ratio| {
        let claim = "5 % updates, new keys in order: least write cost over that without updates, \
                     all ratios (increases significantly)";
        Claim::at_least(claim, ratio, 2.0)
    }));
}

/// Adds the note. `runs` are: updates with keys in order; updates with hashed keys; no updates; few
/// updates.
fn note(figure: &mut Figure, runs: [&[Course]; 4]) {
    let costs = runs.map(|courses| {
        let cost = |spec| format!("{:.2}", course(courses, spec).write_cost());
        LEVELED.map(cost).join(", ")
    });
    let [ordered, hashed, loads, few] = costs;
    figure.note(format!(
        "Write costs at the end for the ratios 4, 8, 16 and 32: {ordered}; with hashed new keys \
         {hashed}; only new keys, in order, {loads}; those with 5 % updates {few}."
    ));
    let moves = runs.map(|courses| course(courses, LEVELED[0]).last().parts.moves);
    let why = format!(
        "new keys in order lie behind all others, so pieces with the newest of them meet little \
         below or nothing: leveled(ratio=4) moves {} instead of {} with hashed keys. That, not the \
         size of memtables, is why costs are lower than in figure 7b by more than in the paper.",
        moves[0], moves[1]
    );
    figure.explain("almost identical", why);
    figure.explain(
        "flushes over those of figure 7b",
        "the paper has slightly fewer flushes than with hashed keys because its memtable is a \
         B+-tree that random inserts leave half empty. A memtable that is sealed by the bytes of \
         its entries, as here, is flushed as often in either order; keys in order are a little \
         longer, so a little more often.",
    );
}
