//! Runs choices on the real store and compares them with the predictions.

use super::choice::Choice;
use super::objective::Weighed;
use super::scale::shrunk;
use super::sizes::scaled;
use super::tuning::Tuning;
use crate::compare::{Comparison, Row};
use crate::profile::Profile;
use crate::run::Options;
use anyhow::Result;
use lsmith_policy::MergePolicy;
use lsmith_sim::KeyedWorkload;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// The most logical bytes of all writes, so that a run takes seconds.
const BYTES_MAX: f64 = 32e6;

/// The smallest memtable. In smaller ones whole blocks and files weigh more than at full scale.
const MEMTABLE_BYTES_MIN: u64 = 32 << 10;

/// A policy on the real store.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VerifiedRow {
    /// `best`, `yours` or `default`, as tuning had it.
    pub label: &'static str,
    /// True if the store's figures are within the limits.
    pub is_within: bool,
    /// Predictions at this scale, results of the store, and prediction errors.
    #[serde(flatten)]
    pub row: Row,
}

/// The results of choices on the real store in lockstep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verified {
    /// The factor by which keys, operations and memtables are reduced.
    pub shrink: f64,
    /// The full spec of the workload that was run.
    pub workload: String,
    /// Logical bytes at which a memtable was sealed.
    pub memtable_bytes: u64,
    /// The label of the row that is best by the store's figures: within the limits, with the least
    /// weighted costs. `best` if no row is within the limits.
    pub best: &'static str,
    /// The policies that were run.
    pub rows: Vec<VerifiedRow>,
}

/// Runs labelled choices, without duplicates, at a scale that takes seconds.
///
/// # Errors
/// Fails like [`Comparison::run`].
pub(super) fn verify(
    tuning: &Tuning<'_>,
    choices: &[(&'static str, &Choice)],
    dir: &Path,
) -> Result<Verified> {
    let workload = tuning.workload;
    let objective = tuning.limits.objective(workload)?;
    let profile = Profile::of(workload)?;
    let shrink = (profile.writes * profile.entry_bytes / BYTES_MAX).max(1.0);
    let chosen_bytes = choices.first().map_or(0, |(_, choice)| choice.memtable_bytes);
    let memtable_bytes =
        ((chosen_bytes as f64 / shrink) as u64).max(MEMTABLE_BYTES_MIN.min(chosen_bytes));
    let registry = tuning.registry.clone();
    let options = Options { registry, memtable_bytes, ..Options::default() };
    let mut labels: Vec<&'static str> = Vec::new();
    let mut built: Vec<Arc<dyn MergePolicy>> = Vec::new();
    for (label, choice) in choices {
        let policy = tuning.registry.build(&choice.policy)?;
        let policy = scaled(tuning.registry, &policy, 1.0 / shrink);
        if built.iter().all(|known| known.spec() != policy.spec()) {
            labels.push(label);
            built.push(policy);
        }
    }
    let shrunk = &KeyedWorkload::new(shrunk(workload, shrink)?);
    let comparison = Comparison {
        policies: &built,
        workload: shrunk,
        dir,
        options: &options,
        free: false,
        runs: 1,
    };
    let mut rows = Vec::new();
    comparison.run(tuning.progress, &mut |row| {
        let costs = Weighed::from(&row.engine);
        let is_within = objective.allows(&Weighed { merge: costs.merge * shrink, ..costs }, 0.0);
        rows.push(VerifiedRow { label: labels[rows.len()], is_within, row });
    })?;
    let score = |row: &VerifiedRow| objective.score(&(&row.row.engine).into());
    let within = rows.iter().filter(|row| row.is_within);
    let cheapest = within.min_by(|left, right| score(left).total_cmp(&score(right)));
    let best = cheapest.map_or("best", |row| row.label);
    let workload = shrunk.workload().spec().to_string();
    Ok(Verified { shrink, workload, memtable_bytes, best, rows })
}
