//! Compares policies on the real store with the predictions of simulations and formulas.

use crate::errors::{Errors, PredictionErrors, relative};
use crate::free::FreeRun;
use crate::growth::{Formula, Prediction};
use crate::history::{History, Recorder};
use crate::jobs::{SharedProgress, cores, in_order};
use crate::least::Least;
use crate::meter::Mode;
use crate::physical::FileSizes;
use crate::profile::Profile;
use crate::progress::Progress;
use crate::report::{EngineReport, Optimum, SimulationReport};
use crate::run::{Options, run};
use crate::scratch::Scratch;
use crate::sealing::sealing;
use crate::simulate::{Content, Simulated, simulate_observed};
use crate::spread::{Spread, repeated};
use crate::time::{SimulatedTime, simulate_time};
use anyhow::{Context, anyhow, ensure};
use lsmith_model::optimum::HullPoint;
use lsmith_policy::{MergePolicy, Shape};
use lsmith_sim::{Event, FluidWorkload, KeyedWorkload, SimError};
use lsmith_workload::Workload;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The figures of one policy under one workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The full spec of the policy.
    pub policy: String,
    /// The full spec of the workload.
    pub workload: String,
    /// The run on the real store, in lockstep. Of several runs, the one with the median seconds.
    pub engine: EngineReport,
    /// How far repeated runs differ; `None` for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// A free run of the same operations, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free: Option<FreeRun>,
    /// The keyed simulation of the same operations.
    pub keyed: SimulationReport,
    /// The unit simulation of as many flushes as the store made. `None` for policies that take
    /// windows of keys.
    pub unit: Option<SimulationReport>,
    /// The fluid simulation. `None` for groups, for workloads without expected sizes or whose
    /// entries expire or go by ranges, and if it is unknown which blocks a policy could keep.
    pub fluid: Option<SimulationReport>,
    /// The formula. `None` for policies with only a bound or without a formula, for groups, and if
    /// memtables differ in size.
    pub model: Option<Prediction>,
    /// The optimum with as many runs as this policy, for the same flushes. `None` for policies
    /// that leave a part of memory in place.
    pub optimum: Option<Optimum>,
    /// The least write cost against mean runs, for the same flushes.
    #[serde(skip)]
    pub least: Vec<HullPoint>,
    /// The errors of the predictions.
    pub errors: Errors,
    /// Why figures are unknown that could not be computed, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// True if the policy builds levels.
    #[serde(skip)]
    pub has_levels: bool,
    /// The trees of the keyed simulation, if requested.
    #[serde(skip)]
    pub history: Option<History>,
}

/// A workload and the policies to compare under it.
#[derive(Clone, Copy, Debug)]
pub struct Comparison<'a> {
    /// The policies.
    pub policies: &'a [Arc<dyn MergePolicy>],
    /// The workload. Its keys are ranked once for all policies.
    pub workload: &'a KeyedWorkload,
    /// The parent directory of the stores. Each store gets a new directory, which is removed
    /// afterwards.
    pub dir: &'a Path,
    /// The options of stores and simulations. The mode is not used.
    pub options: &'a Options,
    /// True if there is a free run beside the run in lockstep.
    pub free: bool,
    /// How often each run on the store is repeated, at least 1.
    pub runs: usize,
}

/// The operations that simulations and the run in lockstep play.
#[derive(Clone, Copy)]
struct Played<'a> {
    keyed: &'a KeyedWorkload,
    /// `None` for workloads without expected sizes.
    fluid: Option<&'a FluidWorkload>,
    /// `None` if the workload fills no memtable.
    files: Option<&'a FileSizes>,
    least: &'a Least,
    /// Why expected sizes or bytes of files are unknown, if their measurement failed.
    notes: &'a [String],
}

impl Comparison<'_> {
    /// Runs the policies, each as a part of the progress, and passes each finished row to `on_row`,
    /// in the order of the policies. A policy that fails has no row; the others have theirs.
    ///
    /// The policies run on all cores at once. They run one after the other if there are free runs,
    /// which have threads of their own, or if runs are repeated, which is done to judge times.
    ///
    /// If the time of free runs is limited, the run in lockstep and the simulations play as many
    /// flushes as the free run did.
    ///
    /// # Errors
    /// Fails if a run or a simulation of a policy fails, or if a free run fills no memtable in its
    /// time, but only when all other policies have been run. The error names all that failed. A row
    /// always has all its parts.
    pub fn run(
        &self,
        progress: &SharedProgress,
        on_row: &mut dyn FnMut(Row),
    ) -> anyhow::Result<()> {
        let mut notes = Vec::new();
        let workload = self.workload.workload();
        let fluid = known(EXPECTED_SIZES, fluid_of(workload), &mut notes);
        let files =
            known("bytes of files", FileSizes::measured(workload, self.options), &mut notes);
        let (fluid, files) = (fluid.as_ref(), files.as_ref());
        let least = &self.least(self.workload)?;
        let all = Played { keyed: self.workload, fluid, files, least, notes: &notes };
        let mut failed: Vec<anyhow::Error> = Vec::new();
        let count = self.policies.len();
        let threads = if self.free || self.runs > 1 { 1 } else { cores().min(count) };
        let together = Together(progress);
        let steps: &(dyn Progress + Sync) = if threads > 1 { &together } else { progress };
        let finished = AtomicUsize::new(0);
        let measure = |index: usize| {
            let policy = &self.policies[index];
            let sealed = sealing(Arc::clone(policy), &self.options.flush_sizes);
            let row = self.policy(&sealed, all, steps);
            // One part ends with each policy, whichever it is.
            if finished.fetch_add(1, Ordering::Relaxed) + 1 < count {
                progress.begin_part();
            }
            row.with_context(|| format!("policy {}", policy.spec()))
        };
        progress.begin_part();
        in_order(count, threads, &measure, &mut |row| match row {
            Ok(row) => on_row(row),
            Err(error) => failed.push(error),
        });
        let join = |before: anyhow::Error, error| anyhow!("{before:#}; {error:#}");
        failed.into_iter().reduce(join).map_or(Ok(()), Err)
    }

    fn policy(
        &self,
        policy: &Arc<dyn MergePolicy>,
        all: Played<'_>,
        progress: &dyn Progress,
    ) -> anyhow::Result<Row> {
        let free =
            self.free.then(|| self.on_store(policy, all, Mode::Free, progress)).transpose()?;
        let Some(((engine, _), duration)) = free.as_ref().zip(self.options.duration) else {
            return self.row(policy, all, free, progress);
        };
        ensure!(engine.costs.flushes > 0, "no memtable was filled in {duration:?}");
        let limited = all.keyed.workload().limited_to(engine.costs.flushes);
        let keyed = KeyedWorkload::new(limited).with_cache(all.keyed.cache_bytes());
        let mut notes = all.notes.to_vec();
        let fluid = known(EXPECTED_SIZES, fluid_of(keyed.workload()), &mut notes);
        let least = &self.least(&keyed)?;
        let limited = Played { keyed: &keyed, fluid: fluid.as_ref(), least, notes: &notes, ..all };
        self.row(policy, limited, free, progress)
    }

    fn least(&self, workload: &KeyedWorkload) -> Result<Least, SimError> {
        let Options { flush_sizes, memtable_bytes, .. } = self.options;
        Least::of(&Content::Keyed(workload), flush_sizes, *memtable_bytes)
    }

    /// Runs a store as often as requested, each time in a new directory.
    fn on_store(
        &self,
        policy: &Arc<dyn MergePolicy>,
        played: Played<'_>,
        mode: Mode,
        progress: &dyn Progress,
    ) -> anyhow::Result<(EngineReport, Option<Spread>)> {
        let histograms = self.options.histograms || mode == Mode::Free;
        let options = Options { mode, histograms, ..self.options.clone() };
        repeated(self.runs, || {
            let dir = Scratch::new_in(self.dir, "lsmith-compare-")?;
            run(Arc::clone(policy), played.keyed.workload(), dir.path(), &options, progress)
        })
    }

    fn formula(
        &self,
        policy: &Arc<dyn MergePolicy>,
        played: Played<'_>,
    ) -> anyhow::Result<Option<Prediction>> {
        let workload = played.keyed.workload();
        if !self.options.flush_sizes.is_constant() || !suits_formulas(workload) {
            return Ok(None);
        }
        let memtable_bytes = self.options.memtable_bytes;
        let whole = Profile::of(workload)?;
        let profile = whole.up_to_flushes(workload.limit_flushes(), memtable_bytes);
        Ok(Formula::of_policy(policy, played.fluid, &profile, memtable_bytes)?)
    }

    /// Simulates a free run in time, if there is a machine and a free run to hold it against.
    fn time(
        &self,
        policy: &Arc<dyn MergePolicy>,
        free: bool,
    ) -> anyhow::Result<Option<SimulatedTime>> {
        let machine = self.options.machine.filter(|_| free);
        let simulated =
            machine.map(|machine| simulate_time(policy, self.workload, &machine, self.options));
        Ok(simulated.transpose()?)
    }

    fn row(
        &self,
        policy: &Arc<dyn MergePolicy>,
        played: Played<'_>,
        free: Option<(EngineReport, Option<Spread>)>,
        progress: &dyn Progress,
    ) -> anyhow::Result<Row> {
        let spec = policy.spec().to_string();
        let (engine, spread) = self.on_store(policy, played, Mode::Lockstep, progress)?;
        let flushes = engine.costs.flushes;
        let predict = |content: &Content<'_>, mut recorder: Option<&mut Recorder>| {
            progress.begin(&format!("{spec}: {} simulation", content.name()), flushes);
            let mut done = 0;
            let mut observe = |event: Event<'_>| {
                if matches!(event, Event::Flushed { .. }) {
                    done += 1;
                    progress.advance(done);
                }
                if let Some(recorder) = &mut recorder {
                    recorder.observe(event);
                }
            };
            let memtable_bytes = self.options.memtable_bytes;
            simulate_observed(policy, content, memtable_bytes, played.files, &mut observe)
        };
        let content = Content::Keyed(played.keyed);
        let mut recorder = self.options.record_trees.then(|| Recorder::new(content.key_scale()));
        let simulated = predict(&content, recorder.as_mut())?;
        let history = recorder.map(|recorder| recorder.finish(&spec, "keyed simulation"));
        // What fails from here on costs its own figures.
        let mut notes = played.notes.to_vec();
        let report = |found: Simulated| found.report;
        let unit = if policy.needs().windows {
            Ok(None)
        } else {
            let sizes = &*self.options.flush_sizes;
            predict(&Content::Unit { flushes, sizes }, None).map(report).map(Some)
        };
        let unit = known("unit simulation", unit.map_err(Into::into), &mut notes);
        let expected = match played.fluid.map(|fluid| predict(&Content::Fluid(fluid), None)) {
            None | Some(Err(SimError::NotFluid { .. } | SimError::FewEntries { .. })) => Ok(None),
            Some(simulated) => simulated.map(report).map(Some),
        };
        let expected = known("fluid simulation", expected.map_err(Into::into), &mut notes);
        let write_cost = engine.costs.write_cost_system;
        let model = known("formula", self.formula(policy, played), &mut notes);
        let timed = known("simulated time", self.time(policy, free.is_some()), &mut notes);
        Ok(Row {
            workload: played.keyed.workload().spec().to_string(),
            errors: Errors {
                keyed: PredictionErrors::of(&simulated.report, &engine),
                unit: unit.map(|unit| PredictionErrors::of(&unit, &engine)),
                fluid: expected.map(|fluid| PredictionErrors::of(&fluid, &engine)),
                model: model.and_then(|model| relative(model.write_cost_system, write_cost)),
            },
            has_levels: matches!(policy.shape(), Shape::Leveled { .. }),
            history,
            policy: spec,
            free: free.map(|free| FreeRun::new(free, &engine, &simulated.report, timed)),
            engine,
            spread,
            optimum: played.least.optimum(&simulated).map(|optimum| optimum.against(write_cost)),
            least: played.least.points(&simulated),
            keyed: simulated.report,
            unit,
            fluid: expected,
            model,
            notes,
        })
    }
}

/// The progress of policies that run at once. It names the step that began last, and does not say
/// how far that is.
struct Together<'a>(&'a SharedProgress);

impl Progress for Together<'_> {
    fn begin(&self, step: &str, _: u64) {
        self.0.begin(step, 0);
    }

    fn advance(&self, _: u64) {}
}

const EXPECTED_SIZES: &str = "expected sizes";

/// Returns what was found. If it failed, it is unknown, and a note says why.
fn known<T>(what: &str, found: anyhow::Result<Option<T>>, notes: &mut Vec<String>) -> Option<T> {
    found.unwrap_or_else(|error| {
        notes.push(format!("{what}: unknown, because this failed: {error:#}"));
        None
    })
}

/// Returns true if formulas know the keys of `workload`: it writes one keyspace, and entries go one
/// by one.
fn suits_formulas(workload: &Workload) -> bool {
    workload.group_shares().is_empty() && !workload.lives().expire() && !workload.deletes_ranges()
}

/// Returns the expected sizes of `workload`; `None` if they are unknown, as for a group.
fn fluid_of(workload: &Workload) -> anyhow::Result<Option<FluidWorkload>> {
    if !workload.group_shares().is_empty() {
        return Ok(None);
    }
    match FluidWorkload::new(workload) {
        Ok(fluid) => Ok(Some(fluid)),
        Err(SimError::NotFluid { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::NoProgress;
    use lsmith_policy::Registry;
    use lsmith_workload::NoInputs;

    /// A failed measurement of file sizes once cost the rows of all policies.
    #[test]
    fn failed_measurement_costs_its_own_figure() {
        let spec = "load(keys=2k, value=100B)".parse().unwrap();
        let workload = Workload::from_spec(&spec, &NoInputs).unwrap();
        let keyed = KeyedWorkload::new(workload);
        let options = Options { memtable_bytes: 16 << 10, ..Options::default() };
        let dir = Scratch::new("lsmith-compare-").unwrap();
        let policy = Registry::builtin().build("tiered").unwrap();
        let comparison = Comparison {
            policies: std::slice::from_ref(&policy),
            workload: &keyed,
            dir: dir.path(),
            options: &options,
            free: false,
            runs: 1,
        };
        let mut notes = Vec::new();
        let failed = Err(anyhow!("no space left"));
        let files: Option<FileSizes> = known("bytes of files", failed, &mut notes);
        let (files, least) = (files.as_ref(), &comparison.least(&keyed).unwrap());
        let played = Played { keyed: &keyed, fluid: None, files, least, notes: &notes };
        let row = comparison.row(&policy, played, None, &NoProgress).unwrap();
        assert_eq!(row.notes, ["bytes of files: unknown, because this failed: no space left"]);
        assert!(row.engine.costs.flushes > 5 && row.keyed.costs == row.engine.costs);
        assert_eq!((row.keyed.physical, row.errors.keyed.write_cost_user), (None, None));
    }
}
