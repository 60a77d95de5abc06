//! The policies of the paper, and sweeps of steady states.

use super::chain;
use super::steady::{Bench, Steady};
use crate::form::*;

/// The policies whose merges keep blocks.
pub(super) const KEEPING: [&str; 4] = ["full", "rr", "choose_best", "mixed"];

/// The paper's seven, "-P" last.
pub(super) const SEVEN: [&str; 7] = [
    "full",
    "rr",
    "choose_best",
    "mixed",
    "full(reuse=false)",
    "rr(reuse=false)",
    "choose_best(reuse=false)",
];

/// Pairs of a policy that keeps blocks and the same policy without.
pub(super) const PAIRS: [(&str, &str); 3] = [
    ("full", "full(reuse=false)"),
    ("rr", "rr(reuse=false)"),
    ("choose_best", "choose_best(reuse=false)"),
];

/// Steady states.
pub(super) type Sweep = crate::sweep::Sweep<Bench, Steady>;

/// Returns `policies`, and the caller's policies.
pub(super) fn and_own(policies: &[&str], task: &Task<'_>) -> Vec<String> {
    let own = task.own_beside(policies);
    policies.iter().map(|policy| (*policy).to_owned()).chain(own).collect()
}

/// Returns the six that `mixed` is compared with.
pub(super) fn others() -> impl Iterator<Item = &'static str> + Clone {
    SEVEN.into_iter().filter(|policy| *policy != "mixed")
}

/// Measures the steady state at each spot.
pub(super) fn steady_states(
    task: &Task<'_>,
    step: &str,
    spots: Vec<Spot<Bench>>,
) -> anyhow::Result<Sweep> {
    let with_own = |spot: Spot<Bench>| Spot { job: spot.job.with_own(task), ..spot };
    let spots: Vec<Spot<Bench>> = spots.into_iter().map(with_own).collect();
    let found = chain::measure(task, step, spots.iter().map(|spot| &spot.job))?;
    Ok(Sweep::of(spots, found))
}

/// Returns the figure of the write costs of steady states.
pub(super) fn figure_of_costs(
    task: &Task<'_>,
    panels: impl IntoIterator<Item = Panel>,
    spots: Vec<Spot<Bench>>,
) -> anyhow::Result<(Figure, Sweep)> {
    let sweep = steady_states(task, task.name(), spots)?;
    let mut figure = task.figure(panels);
    sweep.draw(&mut figure, Steady::cost);
    Ok((figure, sweep))
}
