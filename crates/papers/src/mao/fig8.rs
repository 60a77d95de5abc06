//! Leveled under updates when new keys come in order.

use super::course::{Courses, panel};
use super::fig7::UPDATES;
use super::updates::{BOUNDED, LEVELED, Run, Scale};
use crate::form::*;

/// A low share of updates.
const FEW_UPDATES: Run = Run::Update { share: 0.05, deletes: 0.0, dist: "latest" };

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let scale = Scale::of(task.effort);
    let all = || LEVELED.into_iter().chain(BOUNDED);
    let own = task.own_beside(all());
    let in_order = all().chain(own.iter().map(String::as_str));
    let ordered = scale.simulate(task, UPDATES, "sequential", in_order)?;
    let hashed = scale.simulate(task, UPDATES, "hashed", all())?;
    let loads = scale.simulate(task, Run::Load, "sequential", LEVELED)?;
    let few = scale.simulate(task, FEW_UPDATES, "sequential", LEVELED)?;
    let mut figure = task.figure([panel("", "")]);
    let shown = LEVELED.into_iter().chain(own.iter().map(String::as_str));
    ordered.draw(&mut figure, "", shown, |_| true);
    claim_order(&mut figure, &ordered, &hashed);
    claim_appends(&mut figure, &loads, &few);
    figure.note(scale.note());
    note(&mut figure, [&ordered, &hashed, &loads, &few]);
    Ok(figure)
}

fn claim_order(figure: &mut Figure, ordered: &Courses, hashed: &Courses) {
    let ratio = |spec: &str| ordered.cost_ratio(hashed, spec);
    for spec in LEVELED {
        let claim = format!("{spec}: write cost over that of figure 7b (almost identical)");
        figure.near(claim, 1.0, ratio(spec), 0.15);
    }
    let claim = "most write cost over that of figure 7b, all ratios (slightly lower)";
    figure.at_most(claim, most(LEVELED.into_iter().filter_map(ratio)), 1.0);
    let flushes = |courses: &Courses| courses.of(LEVELED[0]).last().parts.flushes as f64;
    let claim = "flushes over those of figure 7b (slightly reduced)";
    figure.at_most(claim, flushes(ordered) / flushes(hashed), 0.999);
    let apart = BOUNDED.into_iter().filter_map(ratio).map(|ratio| ratio - 1.0);
    let claim = "bounded stacks, k = 6: the order of new keys changes the write cost at most by \
                 this share (not by much)";
    figure.at_most(claim, farthest(apart), 0.05);
}

fn claim_appends(figure: &mut Figure, loads: &Courses, few: &Courses) {
    let cost = most(LEVELED.map(|spec| loads.cost(spec)));
    let claim = "only new keys, in order: most write cost of all ratios (merges are moves)";
    figure.near(claim, 1.0, cost, 0.05);
    let ratio = least(LEVELED.map(|spec| few.cost(spec) / loads.cost(spec)));
    let claim = "5 % updates, new keys in order: least write cost over that without updates, all \
                 ratios (increases significantly)";
    figure.at_least(claim, ratio, 2.0);
}

/// Adds the note. `runs` are: updates with keys in order; updates with hashed keys; no updates; few
/// updates.
fn note(figure: &mut Figure, runs: [&Courses; 4]) {
    let costs =
        runs.map(|courses| LEVELED.map(|spec| format!("{:.2}", courses.cost(spec))).join(", "));
    let [ordered, hashed, loads, few] = costs;
    figure.note(format!(
        "Write costs at the end for the ratios 4, 8, 16 and 32: {ordered}; with hashed new keys \
         {hashed}; only new keys, in order, {loads}; those with 5 % updates {few}."
    ));
    let moves = runs.map(|courses| courses.of(LEVELED[0]).last().parts.moves);
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
