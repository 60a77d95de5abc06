//! Costs by formula of the store's policies while data grow from nothing.

use crate::profile::{Profile, Unknown};
use crate::scans::ScanCosts;
use crate::schedule::schedule;
use lsmith_model::formulas::{
    bound, carried_out, constant, evaluate, grown, jungle_tables, scheduled, tiered, unmerged,
};
use lsmith_model::{Bound, KeyOrder, Model, Setting, optimum};
use lsmith_policy::{MergePolicy, Shape};
use lsmith_sim::{FluidWorkload, SimError};
use lsmith_spec::{Params, Spec, SpecError};
use serde::Serialize;
use std::ops::Deref;
use std::sync::Arc;

/// The number of moments at which formulas of levels are evaluated while the data grow. Each moment
/// represents the same number of writes.
const MOMENTS: u32 = 24;

/// The least share of the keys that were written which must be live, mean over the writes. Formulas
/// take all of them to be live. Where fewer are, they have been ten times too high.
const LIVE_SHARE_MIN: f64 = 0.5;

/// The costs of a policy by formula, with what is to be known about them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The costs.
    #[serde(flatten)]
    pub costs: Formula,
    /// `upper` or `lower`, if `write_cost_system` is a bound.
    pub bound: Option<&'static str>,
    /// What the formula does not know of the requests: `popularity`, `key order`, `time` or
    /// `deletes`.
    pub ignores: &'static [&'static str],
}

impl Deref for Prediction {
    type Target = Formula;

    fn deref(&self) -> &Formula {
        &self.costs
    }
}

/// The costs of a policy by formula, averaged over all writes of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Formula {
    /// Bytes written, the log included, per byte of requests.
    pub write_cost_user: f64,
    /// Flushes and outputs of merges per byte flushed.
    pub write_cost_system: f64,
    /// The runs that a lookup must consider.
    pub read_cost_mean: f64,
    /// The runs and blocks that a range read must look at.
    pub scan_cost_mean: ScanCosts,
    /// Bytes of all runs per byte of live entries.
    pub space_cost_mean: f64,
}

impl Formula {
    /// Returns the costs of the policy `spec`, for the data of `profile` and memtables of
    /// `memtable_bytes`. Runs no policy.
    ///
    /// Stacks of runs and append tables are followed from flush to flush. Trees of levels are taken
    /// as steady at each of a few moments. For `minlatency` the costs are the optimum with as many
    /// runs; the policy is a few percent above it, because it does not know which flush is the
    /// last. `None` for policies with only a bound, without a formula, or in a setting that the
    /// formula does not know.
    pub(crate) fn of(spec: &Spec, profile: &Profile, memtable_bytes: u64) -> Option<Formula> {
        let all = profile.at(1.0);
        let setting = all.setting(memtable_bytes);
        let followed = followed(spec, &setting).transpose().ok()?;
        if let Some(model) = followed {
            return Some(Formula::at(&model, &setting, profile.scan_items));
        }
        let formula = match spec.name.as_str() {
            "leveled" => evaluate,
            "leveldb" | "rocksdb" => grown,
            _ => return None,
        };
        Formula::over_moments(profile, memtable_bytes, |setting| formula(spec, setting)).ok()
    }

    /// Returns the costs of `policy`, and may run it. A policy that merges whole runs decides which
    /// runs merge when, on the expected sizes of `workload`; the formula computes the sizes of the
    /// outputs. `None` for policies that keep blocks, for policies that merge parts of runs except
    /// `leveled` and `jungle`, for stacks whose keys come in order or fill a memtable each, because
    /// their merges [keep tables](lsmith_tree::KeptTables), and for workloads whose deletes leave
    /// less than half of the keys.
    ///
    /// # Errors
    /// Fails if the policy breaks a rule.
    pub(crate) fn of_policy(
        policy: &Arc<dyn MergePolicy>,
        workload: Option<&FluidWorkload>,
        profile: &Profile,
        memtable_bytes: u64,
    ) -> Result<Option<Prediction>, SimError> {
        if policy.needs().blocks || profile.live_share < LIVE_SHARE_MIN {
            return Ok(None);
        }
        let profile = profile.in_phases();
        let spec = policy.spec();
        let has_levels = matches!(policy.shape(), Shape::Leveled { .. });
        let takes_parts = has_levels && spec.param("pick") != Some("whole_level");
        let is_moved = has_levels && profile.order == KeyOrder::Ascending;
        // Such tables share no keys. Merges of a stack keep them, and its formulas rewrite them.
        let is_apart =
            profile.order == KeyOrder::Ascending || profile.setting(memtable_bytes).memtable <= 1.0;
        let merges = spec.name != "none";
        if is_apart && merges && !has_levels && policy.needs().lets_tables_stay() {
            return Ok(None);
        }
        let costs = match workload {
            Some(workload) if !takes_parts && !is_moved => {
                let all = profile.at(1.0);
                let setting = all.setting(memtable_bytes);
                match schedule(policy, workload, memtable_bytes) {
                    Ok(schedule) => schedule.map(|schedule| {
                        let model = carried_out(&setting, schedule.into_iter());
                        Formula::at(&model, &setting, profile.scan_items)
                    }),
                    // Tables are too small for expected sizes.
                    Err(SimError::FewEntries { .. }) => {
                        Formula::of(&spec, &profile, memtable_bytes)
                    }
                    Err(error) => return Err(error),
                }
            }
            _ => Formula::of(&spec, &profile, memtable_bytes),
        };
        let bound = match has_levels {
            true => bound(&spec, &profile.setting(memtable_bytes)).ok().flatten(),
            false => None,
        };
        let ignores = match (spec.name.as_str(), profile.ignored(has_levels)) {
            // The paper's model is of a tree in which all keys are present.
            ("leveldb" | "rocksdb", []) if !is_moved => &["time"],
            // It is followed through the load phase.
            ("jungle", _) if profile.unknown == Unknown::Nothing => &[][..],
            (_, ignored) => ignored,
        };
        // Of requests that the formula does not know there is no bound either.
        let bound = bound.map(Bound::name).filter(|_| ignores.is_empty());
        Ok(costs.map(|costs| Prediction { costs, bound, ignores }))
    }

    /// Returns the mean of the costs that `model` computes at each moment.
    pub(crate) fn over_moments(
        profile: &Profile,
        memtable_bytes: u64,
        model: impl Fn(&Setting<'_>) -> Result<Model, SpecError>,
    ) -> Result<Formula, SpecError> {
        let mut mean = Formula::default();
        let (mut runs, mut blocks) = (0.0, 0.0);
        for moment in 0..MOMENTS {
            let moment = profile.at((f64::from(moment) + 0.5) / f64::from(MOMENTS));
            let setting = moment.setting(memtable_bytes);
            let here = Formula::at(&model(&setting)?, &setting, profile.scan_items);
            mean.write_cost_user += here.write_cost_user / f64::from(MOMENTS);
            mean.write_cost_system += here.write_cost_system / f64::from(MOMENTS);
            mean.read_cost_mean += here.read_cost_mean / f64::from(MOMENTS);
            mean.space_cost_mean += here.space_cost_mean / f64::from(MOMENTS);
            runs += here.scan_cost_mean.runs / f64::from(MOMENTS);
            blocks += here.scan_cost_mean.blocks.unwrap_or_default() / f64::from(MOMENTS);
        }
        Ok(Formula { scan_cost_mean: ScanCosts { runs, blocks: Some(blocks) }, ..mean })
    }

    /// Converts a formula's result for all requests of `setting`, and for range reads of
    /// `scan_items` entries.
    pub(crate) fn at(model: &Model, setting: &Setting<'_>, scan_items: f64) -> Formula {
        Formula {
            write_cost_user: model.write_cost_user(),
            write_cost_system: model.write_cost_system(),
            read_cost_mean: model.reads(setting).runs,
            scan_cost_mean: ScanCosts::of_formula(model, setting, scan_items),
            space_cost_mean: model.space_cost,
        }
    }
}

/// Computes policies of whole runs and of append tables. Their formulas follow the growing data.
fn followed(spec: &Spec, setting: &Setting<'_>) -> Option<Result<Model, SpecError>> {
    let count = |name: &str, default| {
        let params = Params::new(spec, &[name], 1)?;
        params.count(name, default, 1..=u64::MAX)
    };
    let model = match spec.name.as_str() {
        "none" => Ok(unmerged(setting)),
        "constant" => count("k", 5).map(|runs| constant(setting, runs)),
        "tiered" => count("ratio", 4).map(|ratio| tiered(setting, ratio)),
        "minlatency" => count("k", 5).map(|runs| {
            scheduled(setting, optimum::schedule(setting.full_memtables() as u64, runs))
        }),
        "jungle" => jungle_tables(spec, setting).transpose()?,
        _ => return None,
    };
    Some(model)
}

#[cfg(test)]
mod tests;
