//! Costs by formula of the store's policies while data grow from nothing.

use crate::profile::Profile;
use crate::schedule::schedule;
use lsmith_model::formulas::{carried_out, constant, evaluate, scheduled, tiered, unmerged};
use lsmith_model::{Model, Setting, optimum};
use lsmith_policy::{MergePolicy, Shape};
use lsmith_sim::{FluidWorkload, SimError};
use lsmith_spec::{Params, Spec, SpecError};
use serde::Serialize;
use std::sync::Arc;

/// The number of moments at which formulas of levels are evaluated while the data grow. Each moment
/// represents the same number of writes.
const MOMENTS: u32 = 24;

/// The costs of a policy by formula, averaged over all writes of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Formula {
    /// Bytes written, the log included, per byte of requests.
    pub write_cost_user: f64,
    /// Flushes and outputs of merges per byte flushed.
    pub write_cost_system: f64,
    /// The runs that a lookup must consider.
    pub read_cost_mean: f64,
    /// Bytes of all runs per byte of live entries.
    pub space_cost_mean: f64,
}

impl Formula {
    /// Returns the costs of the policy `spec`, for the data of `profile` and memtables of
    /// `memtable_bytes`. Runs no policy.
    ///
    /// Stacks of runs are followed from flush to flush. Trees of levels are taken as steady at each
    /// of a few moments. For `minlatency` the costs are the optimum with as many runs; the policy
    /// is a few percent above it, because it does not know which flush is the last. `None` for
    /// policies with only a bound, or without a formula.
    pub(crate) fn of(spec: &Spec, profile: &Profile, memtable_bytes: u64) -> Option<Formula> {
        let all = profile.at(1.0);
        let setting = all.setting(memtable_bytes);
        let in_stack = stack(spec, &setting).transpose().ok()?;
        if let Some(model) = in_stack {
            return Some(Formula::at(&model, &setting));
        }
        if spec.name != "leveled" {
            return None;
        }
        Formula::over_moments(profile, memtable_bytes, |setting| evaluate(spec, setting)).ok()
    }

    /// Returns the costs of `policy`, and may run it. A policy that merges whole runs decides which
    /// runs merge when, on the expected sizes of `workload`; the formula computes the sizes of the
    /// outputs. `None` for policies that merge parts of runs, except `leveled`, and for policies
    /// that keep blocks: formulas give only bounds for these.
    ///
    /// # Errors
    /// Fails if the policy breaks a rule.
    pub(crate) fn of_policy(
        policy: &Arc<dyn MergePolicy>,
        workload: Option<&FluidWorkload>,
        profile: &Profile,
        memtable_bytes: u64,
    ) -> Result<Option<Formula>, SimError> {
        if policy.needs().blocks {
            return Ok(None);
        }
        let workload = match (policy.shape(), workload) {
            (Shape::Leveled { .. }, _) | (_, None) => {
                return Ok(Formula::of(&policy.spec(), profile, memtable_bytes));
            }
            (_, Some(workload)) => workload,
        };
        let all = profile.at(1.0);
        let setting = all.setting(memtable_bytes);
        let schedule = schedule(policy, workload, memtable_bytes)?;
        let model = schedule.map(|schedule| carried_out(&setting, schedule.into_iter()));
        Ok(model.map(|model| Formula::at(&model, &setting)))
    }

    /// Returns the mean of the costs that `model` computes at each moment.
    pub(crate) fn over_moments(
        profile: &Profile,
        memtable_bytes: u64,
        model: impl Fn(&Setting<'_>) -> Result<Model, SpecError>,
    ) -> Result<Formula, SpecError> {
        let mut mean = Formula::default();
        for moment in 0..MOMENTS {
            let moment = profile.at((f64::from(moment) + 0.5) / f64::from(MOMENTS));
            let setting = moment.setting(memtable_bytes);
            let here = Formula::at(&model(&setting)?, &setting);
            mean.write_cost_user += here.write_cost_user / f64::from(MOMENTS);
            mean.write_cost_system += here.write_cost_system / f64::from(MOMENTS);
            mean.read_cost_mean += here.read_cost_mean / f64::from(MOMENTS);
            mean.space_cost_mean += here.space_cost_mean / f64::from(MOMENTS);
        }
        Ok(mean)
    }

    /// Converts a formula's result for all requests of `setting`.
    pub(crate) fn at(model: &Model, setting: &Setting<'_>) -> Formula {
        Formula {
            write_cost_user: model.write_cost_user(),
            write_cost_system: model.write_cost_system(),
            read_cost_mean: model.reads(setting).runs,
            space_cost_mean: model.space_cost,
        }
    }
}

/// Computes policies of whole runs. Their formulas follow the data as they grow.
fn stack(spec: &Spec, setting: &Setting<'_>) -> Option<Result<Model, SpecError>> {
    let count = |name: &str, default| {
        let params = Params::new(spec, &[name], 1)?;
        params.count(name, default, 1..=u64::MAX)
    };
    let model = match spec.name.as_str() {
        "none" => Ok(unmerged(setting)),
        "constant" => count("k", 5).map(|runs| constant(setting, runs)),
        "tiered" => count("ratio", 4).map(|ratio| tiered(setting, ratio)),
        "minlatency" => count("k", 5).map(|runs| {
            let flushes = (setting.requests / setting.memtable_requests()).floor().max(1.0);
            scheduled(setting, optimum::schedule(flushes as u64, runs))
        }),
        _ => return None,
    };
    Some(model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_policy::Registry;
    use lsmith_sim::{Figures, KeyedWorkload, simulate_keyed};
    use lsmith_workload::{NoInputs, Workload};

    const MEMTABLE_BYTES: u64 = 200_000;

    const WORKLOADS: [&str; 3] = [
        "churn(keys=150k, ops=300k, value=100B)",
        "load(keys=300k, value=100B, order=zipf)",
        "load(keys=150k, value=100B)",
    ];

    /// Returns the errors of the formula's write cost against a keyed simulation.
    fn errors(policy: &str) -> [f64; 3] {
        errors_of(policy, |formula| formula.write_cost_system, |keyed| keyed.write_cost_system)
    }

    fn errors_of(
        policy: &str,
        predicted: fn(&Formula) -> f64,
        counted: fn(&Figures) -> f64,
    ) -> [f64; 3] {
        let policy = Registry::builtin().build(policy).unwrap();
        WORKLOADS.map(|spec| {
            let workload = Workload::from_spec(&spec.parse().unwrap(), &NoInputs).unwrap();
            let fluid = FluidWorkload::new(&workload).unwrap();
            let profile = Profile::of(&workload).unwrap();
            let formula = Formula::of_policy(&policy, Some(&fluid), &profile, MEMTABLE_BYTES);
            let formula = formula.unwrap().expect("a policy with a formula");
            let keyed = KeyedWorkload::new(workload);
            let keyed = simulate_keyed(&policy, &keyed, MEMTABLE_BYTES, &mut |_| {}).unwrap();
            predicted(&formula) / counted(&keyed.figures) - 1.0
        })
    }

    #[test]
    fn stacks_are_within_one_percent_of_every_key() {
        for policy in ["none", "constant", "tiered", "minlatency", "binomial", "minlatency(k=3)"] {
            let errors = errors(policy);
            assert!(errors.iter().all(|error| error.abs() <= 0.01), "{policy}: {errors:?}");
        }
    }

    /// Formulas and simulations count the same bytes at the same moments.
    #[test]
    fn space_is_that_of_the_tree_at_rest() {
        for (policy, allowed) in [
            ("none", 0.02),
            ("constant(k=2)", 0.02),
            ("tiered", 0.02),
            ("minlatency", 0.02),
            ("binomial", 0.02),
            ("leveled", 0.06),
        ] {
            let errors = errors_of(policy, |found| found.space_cost_mean, |k| k.space_cost_mean);
            assert!(errors.iter().all(|error| error.abs() <= allowed), "{policy}: {errors:?}");
        }
    }

    #[test]
    fn leveled_is_within_five_percent_of_every_key() {
        for policy in ["leveled", "leveled(ratio=4)", "leveled(pick=round_robin)"] {
            let errors = errors(policy);
            assert!(errors.iter().all(|error| error.abs() <= 0.055), "{policy}: {errors:?}");
        }
    }

    #[test]
    fn there_is_none_of_policies_that_keep_blocks() {
        let policy = Registry::builtin().build("choose_best").unwrap();
        let workload = Workload::from_spec(&WORKLOADS[2].parse().unwrap(), &NoInputs).unwrap();
        let profile = Profile::of(&workload).unwrap();
        assert_eq!(Formula::of_policy(&policy, None, &profile, MEMTABLE_BYTES), Ok(None));
    }
}
