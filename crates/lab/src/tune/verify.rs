//! Runs choices on the real store and compares them with the predictions.

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

/// Runs labelled policies, without duplicates, at a scale that takes seconds. A memtable of the
/// whole workload has `chosen_bytes`.
///
/// # Errors
/// Fails like [`Comparison::run`].
pub(super) fn verify(
    tuning: &Tuning<'_>,
    policies: &[(&'static str, &str)],
    chosen_bytes: u64,
    dir: &Path,
) -> Result<Verified> {
    let workload = tuning.workload;
    let objective = tuning.limits.objective(workload)?;
    let profile = Profile::of(workload)?;
    let shrink = (profile.writes * profile.entry_bytes / BYTES_MAX).max(1.0);
    let memtable_bytes =
        ((chosen_bytes as f64 / shrink) as u64).max(MEMTABLE_BYTES_MIN.min(chosen_bytes));
    let registry = tuning.registry.clone();
    let options = Options { registry, memtable_bytes, ..Options::default() };
    let mut labels: Vec<&'static str> = Vec::new();
    let mut built: Vec<Arc<dyn MergePolicy>> = Vec::new();
    for (label, policy) in policies {
        let policy = tuning.registry.build(policy)?;
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

#[cfg(test)]
mod tests {
    use super::super::Limits;
    use super::*;
    use crate::progress::NoProgress;
    use crate::scratch::Scratch;
    use lsmith_policy::Registry;
    use lsmith_spec::{Spec, parse_bytes};
    use lsmith_workload::{NoInputs, Workload};

    /// A largest merge has as many memtables in the store that is run as in the one asked about.
    #[test]
    fn sizes_of_a_policy_shrink_with_the_workload() {
        let spec = "churn(keys=5k, ops=20k, value=4kB)".parse().unwrap();
        let workload = Workload::from_spec(&spec, &NoInputs).unwrap();
        let limits = Limits::default();
        let registry = &Registry::builtin();
        let tuning =
            Tuning { registry, workload: &workload, limits: &limits, progress: &NoProgress };
        let dir = Scratch::new("lsmith-verify-test-").unwrap();
        let policies = [("yours", "minlatency(k=4, largest=6MiB)")];
        let found = verify(&tuning, &policies, 1 << 20, dir.path()).unwrap();
        let Verified { shrink, memtable_bytes, rows, .. } = found;
        assert!(shrink > 2.0, "{shrink}");
        let policy: Spec = rows[0].row.policy.parse().unwrap();
        let largest = parse_bytes(policy.param("largest").unwrap()).unwrap();
        let memtables = largest as f64 / memtable_bytes as f64;
        assert!((memtables / 6.0 - 1.0).abs() < 0.001, "{memtables} memtables, for 6 of the whole");
    }
}
