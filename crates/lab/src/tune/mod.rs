//! Finds the best policy and parameters for a workload, under limits.
//!
//! Every candidate is simulated key by key on a sample of the workload's writes, the better ones on
//! larger samples, the best ones on all writes. Formulas take no part: no formula
//! knows the order of keys, phases, deletes or kept blocks.
//!
//! * [`Tuning`]: finds the best choice and the frontier, and checks them.
//! * [`Limits`]: the limits on a choice; [`Choice`]: its costs and its memory.
//! * [`Drifted`]: the best choice in the worst case over workloads nearby.
//! * [`TimedChoice`]: a choice in simulated time.
//! * [`Verified`]: the choice and the default on the real store.

mod candidate;
pub(crate) mod check;
mod choice;
mod drawn;
mod drift;
mod fared;
mod grid;
mod least;
mod limits;
mod memory;
mod mix;
mod objective;
mod ranges;
mod sample;
mod scale;
mod search;
mod sizes;
mod survey;
mod timed;
mod trial;
mod tuning;
mod verify;
mod wins;

pub use check::{Checked, costs_of_all, judge};
pub use choice::Choice;
pub use drift::{DriftChoice, Drifted, Mix};
pub use fared::{Fared, check_tried};
pub use least::Least;
pub use limits::{Device, Limits, OnMachine, Wear};
pub use memory::MemoryNeed;
pub use objective::{Aim, RUN_WORK, Weights};
pub use timed::TimedChoice;
pub use trial::TrialCosts;
pub use tuning::Tuning;
pub use verify::{Verified, VerifiedRow};

use crate::clock::Clock;
use crate::physical::FileSizes;
use crate::run::Options;
use anyhow::{Context, Result, bail, ensure};
use candidate::Candidate;
use lsmith::DEFAULT_POLICY;
use lsmith_policy::Registry;
use lsmith_spec::Spec;
use lsmith_workload::Workload;
use memory::Memory;
use scale::shrunk;
use search::Search;
use serde::Serialize;
use std::path::Path;
use survey::Survey;

/// Returns every policy of `registry` with a fine grid of its parameters: what advice is held
/// against. Leaves out policies that drop data, and two whose levels have sizes in bytes.
#[must_use]
pub fn fine_grid(registry: &Registry) -> Vec<Spec> {
    grid::fine(registry)
}

/// The most operations that are read. A workload with more is made smaller, except a trace.
const OPS_MAX: f64 = 20e6;

/// The result of tuning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tuned {
    /// The full spec of the workload.
    pub workload: String,
    /// The workload that was simulated: the same, or one with fewer keys and operations.
    pub simulated: String,
    /// The factor between the two. Memtables were divided by it too.
    pub shrink: f64,
    /// What a saving was worth.
    pub weights: Weights,
    /// The policy with the least weighted costs within the limits; with drift, with the least cost
    /// per operation in the worst case.
    pub best: Choice,
    /// The default policy of the store.
    pub default: Choice,
    /// The policy to compare to, if one was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub yours: Option<Choice>,
    /// How the policies fared that were asked for or that a program has registered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fared: Vec<Fared>,
    /// All choices that no other choice beats in bytes written, runs and bytes of files at once,
    /// the fewest bytes written first. The limits do not apply.
    pub frontier: Vec<Choice>,
    /// The least that writes and reads can cost together. `None` for weights that count neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<Least>,
    /// The number of choices considered.
    pub considered: usize,
    /// The best dozen of the choices, the default and the policy to compare to in simulated time,
    /// the most operations per second first. Empty if no machine is given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timed: Vec<TimedChoice>,
    /// With drift: the best choice as expected, the best in the worst case, and their costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drifted>,
    /// The result of a check against every candidate, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// The results on the store, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verified>,
    /// The seconds that tuning took, without the store.
    pub seconds: f64,
}

impl Tuning<'_> {
    /// Returns the best policy and parameters.
    ///
    /// # Errors
    /// Fails if no choice is within the limits, the workload writes nothing or flushes nothing, or
    /// it has a damaged line.
    pub fn run(&self) -> Result<Tuned> {
        tune(self)
    }

    /// Simulates every policy of a fine grid on all writes, and judges the best choice by that.
    /// Takes minutes for a million writes.
    ///
    /// # Errors
    /// Fails if the workload has a damaged line.
    pub fn check(&self, tuned: &mut Tuned) -> Result<()> {
        let advised = [tuned.best.policy.parse()?];
        let all = check::costs_of_all(self, tuned.best.memtable_bytes, &advised)?;
        tuned.checked = Some(check::judge(&tuned.best, self.limits, self.workload, &all)?);
        Ok(())
    }

    /// Runs the best choice, the policy to compare to and the default policy on the real store in
    /// lockstep, at a scale that takes seconds. Each store gets a new directory within `dir`. If
    /// another one than `best` wins there, it becomes the best.
    ///
    /// # Errors
    /// Fails if the store or a simulation fails.
    pub fn verify(&self, tuned: &mut Tuned, dir: &Path) -> Result<()> {
        let mut labelled = vec![("best", &tuned.best)];
        labelled.extend(tuned.yours.as_ref().map(|yours| ("yours", yours)));
        labelled.push(("default", &tuned.default));
        let policies: Vec<(&'static str, &str)> =
            labelled.iter().map(|(label, choice)| (*label, choice.policy.as_str())).collect();
        let verified = verify::verify(self, &policies, tuned.best.memtable_bytes, dir)?;
        let found = labelled.iter().find(|(label, _)| *label == verified.best);
        let winner = found.map(|(_, choice)| Choice::clone(choice));
        tuned.verified = Some(verified);
        if let Some(winner) = winner {
            tuned.best = winner;
        }
        Ok(())
    }
}

fn tune(tuning: &Tuning<'_>) -> Result<Tuned> {
    let Tuning { registry, workload, limits, progress } = *tuning;
    check_aim(limits)?;
    let clock = Clock::start();
    let shrink = shrink_of(workload);
    let simulated = shrunk(workload, shrink)?;
    let most = limits.memory_bytes.unwrap_or(limits.memtable_bytes) as f64 / shrink;
    progress.begin("reading the workload", 0);
    let survey = Survey::of(&simulated, most as u64)?;
    let memory = Memory::of(limits, &survey, shrink)?;
    let memtable_bytes = ((memory.memtable_bytes as f64 / shrink) as u64).max(1);
    let objective = limits.objective(workload)?;
    let files = files(tuning, &simulated, memtable_bytes)?;
    let mut search = Search {
        registry,
        workload: &simulated,
        survey: &survey,
        memory: &memory,
        memtable_bytes,
        shrink,
        objective,
        asked: fared::asked(limits, registry),
        files,
        progress,
        candidates: Vec::new(),
    };
    let default: Spec = DEFAULT_POLICY.parse()?;
    let specs: Vec<Spec> = [default.clone()].into_iter().chain(limits.compare_to.clone()).collect();
    let found = search.run(&specs)?;
    let choice = |candidate: &Candidate| {
        let choice = Choice::of(candidate, &memory)?;
        let wear = limits.device.map(|device| device.wear(choice.costs.write_cost_user));
        Some(Choice { wear, ..choice })
    };
    let timed = timed::all(&search, limits, &specs)?;
    let (best, drift) = match limits.drift {
        None => (timed::best(&search, limits, &timed, &found), None),
        Some(distance) => {
            let (best, drifted) = drift::robust(&search, distance)?;
            (Some(best), Some(drifted))
        }
    };
    let Some((winner, best)) = best.and_then(|best| Some((best, choice(best)?))) else {
        bail!("{}", nothing_within(&search, memory.memtable_bytes));
    };
    let least = Least::of(&best.costs, &objective.weights);
    let frontier = search.frontier(1).into_iter();
    let mut frontier: Vec<Choice> =
        frontier.filter_map(|index| choice(&search.candidates[index])).collect();
    wins::explain(&mut frontier);
    let yours = limits.compare_to.as_ref().map(|spec| named(&search, spec, choice)).transpose()?;
    Ok(Tuned {
        workload: workload.spec().to_string(),
        simulated: simulated.spec().to_string(),
        shrink,
        weights: objective.weights,
        best,
        default: named(&search, &default, choice)?,
        yours,
        fared: fared::all(&search, winner, choice),
        frontier,
        least,
        considered: search.candidates.len(),
        timed: timed.into_iter().map(|(_, timed)| timed).collect(),
        drift,
        checked: None,
        verified: None,
        seconds: clock.seconds(),
    })
}

/// Fails if what the choice is to be good at needs a machine that is not given.
fn check_aim(limits: &Limits) -> Result<()> {
    let is_fastest = limits.aim == Some(Aim::Fastest);
    ensure!(
        !is_fastest || limits.on_machine.is_some(),
        "`fastest` is decided in simulated time: expected a machine (`lsmith calibrate`)"
    );
    ensure!(
        !is_fastest || limits.drift.is_none(),
        "`fastest` is decided under the workload as named: expected no drift"
    );
    Ok(())
}

/// Returns what files of `workload` take. `None` if it does not fill a memtable.
fn files(
    tuning: &Tuning<'_>,
    workload: &Workload,
    memtable_bytes: u64,
) -> Result<Option<FileSizes>> {
    let registry = tuning.registry.clone();
    FileSizes::measured(workload, &Options { registry, memtable_bytes, ..Options::default() })
}

/// Returns the factor by which `workload` is made smaller. A trace is read whole, because its
/// beginning does not stand for the rest.
fn shrink_of(workload: &Workload) -> f64 {
    if workload.spec().name == "trace" {
        return 1.0;
    }
    (workload.ops_max() as f64 / OPS_MAX).max(1.0)
}

/// Returns the choice that `spec` names.
fn named(
    search: &Search<'_>,
    spec: &Spec,
    choice: impl Fn(&Candidate) -> Option<Choice>,
) -> Result<Choice> {
    let full = search.registry.build_spec(spec)?.spec();
    let candidate = search.candidates.iter().find(|candidate| candidate.policy.spec() == full);
    candidate
        .and_then(choice)
        .with_context(|| format!("`{spec}` writes or reads too much to be simulated"))
}

fn nothing_within(search: &Search<'_>, memtable_bytes: u64) -> String {
    let known = search.candidates.iter().filter_map(|candidate| candidate.costs);
    if known.clone().next().is_none() {
        return format!(
            "the workload flushes nothing: it writes {} in all, a memtable holds {}; give a \
             smaller --memtable, or a longer workload",
            lsmith_spec::format_bytes(search.survey.bytes),
            lsmith_spec::format_bytes(memtable_bytes),
        );
    }
    let least = |figure: fn(&TrialCosts) -> f64| {
        known.clone().map(|costs| figure(&costs)).fold(f64::INFINITY, f64::min)
    };
    format!(
        "no choice is within the limits: reads cost at least {:.2}, range reads at least {:.2} \
         blocks, space at least {:.2}, the longest merge has at least {}, not all at once",
        least(|costs| costs.read_cost_mean),
        least(TrialCosts::scan_blocks),
        least(|costs| costs.space_cost_physical_mean),
        lsmith_spec::format_bytes(least(|costs| costs.merge_bytes_max as f64) as u64)
    )
}
