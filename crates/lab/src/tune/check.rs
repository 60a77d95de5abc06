//! Holds advice against every candidate, simulated on all writes.

use super::choice::Choice;
use super::grid;
use super::limits::Limits;
use super::objective::Objective;
use super::sample::Sample;
use super::survey::Survey;
use super::trial::{Trial, TrialCosts};
use super::tuning::Tuning;
use crate::jobs::measure_all;
use anyhow::Result;
use lsmith_spec::Spec;
use lsmith_workload::Workload;
use serde::Serialize;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// The number of candidates that were simulated on all writes.
    pub candidates: usize,
    /// The best of them within the limits. `None` if there is none.
    pub best: Option<String>,
    /// Its costs.
    pub best_costs: Option<TrialCosts>,
    /// The costs of the advised policy on all writes.
    pub advised_costs: Option<TrialCosts>,
    /// True if these are within the limits.
    pub is_within: bool,
    /// The score of the advised policy over the best score, minus 1. With a limit the score is
    /// `write_cost_user`.
    pub above: f64,
}

/// Returns the costs of `more` and of all policies of a fine grid on all writes of the workload.
/// Leaves out policies that write or read far too much.
///
/// # Errors
/// Fails if the workload writes nothing, or has a damaged line.
pub fn costs_of_all(
    tuning: &Tuning<'_>,
    memtable_bytes: u64,
    more: &[Spec],
) -> Result<Vec<(Spec, TrialCosts)>> {
    let survey = Survey::of(tuning.workload, memtable_bytes)?;
    let sample = &Sample::of(tuning.workload, &survey, survey.writes)?;
    let specs = [grid::fine(tuning.registry), more.to_vec()].concat();
    let built = specs.iter().map(|spec| tuning.registry.build_spec(spec));
    let policies = built.collect::<Result<Vec<_>, _>>()?;
    let files = super::files(tuning, tuning.workload, memtable_bytes)?;
    let trial = |policy| Trial {
        policy,
        sample,
        memtable_bytes,
        flushes_max: f64::INFINITY,
        files,
        registry: tuning.registry,
        shrink: 1.0,
    };
    let trials: Vec<Trial<'_>> = policies.iter().map(trial).collect();
    let found = measure_all("every policy on all writes", &trials, tuning.progress)?;
    let known = specs.iter().cloned().zip(found);
    Ok(known.filter_map(|(spec, costs)| Some((spec, costs?))).collect())
}

/// Judges `advised` against the costs of all policies. These must include its own.
///
/// # Errors
/// Fails if the workload has a damaged line.
pub fn judge(
    advised: &Choice,
    limits: &Limits,
    workload: &Workload,
    all: &[(Spec, TrialCosts)],
) -> Result<Checked> {
    let objective: Objective = limits.objective(workload)?;
    let within = all.iter().filter(|(_, costs)| objective.allows(&costs.into(), 0.0));
    let of = |costs: &TrialCosts| objective.score(&costs.into());
    let best = within.min_by(|left, right| of(&left.1).total_cmp(&of(&right.1)));
    let row = all.iter().find(|(spec, _)| spec.to_string() == advised.policy);
    let own = row.map(|(_, costs)| *costs);
    let score = |costs: Option<TrialCosts>| costs.map_or(f64::NAN, |costs| of(&costs));
    let above = score(own) / score(best.map(|(_, costs)| *costs)) - 1.0;
    Ok(Checked {
        candidates: all.len(),
        best: best.map(|(spec, _)| spec.to_string()),
        best_costs: best.map(|(_, costs)| *costs),
        advised_costs: own,
        is_within: own.is_some_and(|costs| objective.allows(&(&costs).into(), 0.0)),
        above: if above.is_finite() { above } else { 0.0 },
    })
}
