//! What formulas say of policies of the store while data grow from nothing.

use crate::profile::Profile;
use lsmith_model::formulas::{constant, evaluate, scheduled, tiered, unmerged};
use lsmith_model::{Model, Setting, optimum};
use lsmith_spec::{Params, Spec, SpecError};
use serde::Serialize;

/// Moments at which a tree of levels is looked at while the data grow, each standing for as many
/// writes.
const MOMENTS: u32 = 6;

/// What a formula says of a policy, mean over all writes of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Formula {
    /// Bytes written, the log included, per byte of requests.
    pub write_cost_user: f64,
    /// Flushes and outputs of merges per byte flushed.
    pub write_cost_system: f64,
    /// Runs that a lookup must consider.
    pub read_cost_mean: f64,
    /// Bytes of all runs over those of live entries.
    pub space_cost_mean: f64,
}

impl Formula {
    /// Of the policy that `spec` names, for the data of `profile` in memtables of
    /// `memtable_bytes`.
    ///
    /// Stacks of runs are followed from flush to flush, trees of levels taken as steady at each of
    /// a few moments. That of `minlatency` is the least with as many runs, which the policy comes
    /// within a few percent of, since it does not know which flush is the last. `None` for policies
    /// of which formulas give no more than a bound, or nothing.
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

    /// The mean of what `model` says at each moment.
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

    /// For all requests of `setting`.
    pub(crate) fn at(model: &Model, setting: &Setting<'_>) -> Formula {
        Formula {
            write_cost_user: model.write_cost_user(),
            write_cost_system: model.write_cost_system(),
            read_cost_mean: model.reads(setting).runs,
            space_cost_mean: model.space_cost,
        }
    }
}

/// Policies of whole runs: their formulas follow the data as they grow.
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
