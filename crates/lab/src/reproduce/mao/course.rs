//! Simulations that are looked at on the way.

use crate::reproduce::{Effort, Figure, Job, SharedProgress, Ticker, measure_all};
use anyhow::Context;
use lsmith_policy::Registry;
use lsmith_sim::{
    Event, FigureCounter, Figures, KeyedWorkload, UNIT_BYTES, simulate_keyed, simulate_unit,
};

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input<'a> {
    /// So many flushes of size one.
    Unit(u64),
    /// A workload key by key, with memtables of so many logical bytes.
    Keyed(&'a KeyedWorkload, u64),
}

/// A simulation to be done.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    /// The policy as a user would type it, and the name of its curve.
    pub(super) spec: String,
    pub(super) input: Input<'a>,
    /// It is looked at after every so many flushes, and at the end.
    pub(super) every: u64,
}

/// A simulation that was looked at on the way.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// The policy, as the plan has it.
    pub(super) spec: String,
    /// What it had cost after so many flushes, ascending.
    pub(super) looks: Vec<(u64, Figures)>,
}

/// Flushes to be simulated where the paper has `flushes`. Simulations by size take a second, so a
/// quick measurement leaves nothing out; only where still less is asked for are they shorter.
pub(super) fn flushes_of(flushes: u64, effort: Effort) -> u64 {
    let least = Effort::QUICK.shrink;
    (flushes * least / effort.shrink.max(least)).max(1)
}

/// Simulates all, side by side.
///
/// # Errors
/// A policy cannot be built or breaks a rule.
pub(super) fn simulate_all(
    plans: &[Plan<'_>],
    progress: &SharedProgress,
) -> anyhow::Result<Vec<Course>> {
    measure_all("simulation", plans, progress)
}

/// Plans for `flushes` of size one under each of `specs`.
pub(super) fn unit_plans<S: Into<String>>(
    specs: impl IntoIterator<Item = S>,
    flushes: u64,
    every: u64,
) -> Vec<Plan<'static>> {
    let plan = |spec: S| Plan { spec: spec.into(), input: Input::Unit(flushes), every };
    specs.into_iter().map(plan).collect()
}

impl Job for Plan<'_> {
    type Found = Course;

    fn work(&self) -> u64 {
        match self.input {
            Input::Unit(flushes) => flushes,
            Input::Keyed(workload, memtable_bytes) => {
                let workload = workload.workload();
                let first = workload.ops().next().and_then(Result::ok);
                let entry = first.map_or(1, |op| op.user_bytes(workload.key_bytes(op.item)));
                workload.ops_max() * entry / memtable_bytes
            }
        }
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Course> {
        let policy = Registry::builtin().build(&self.spec)?;
        let (mut counter, mut looks, mut flushes) = (FigureCounter::new(), Vec::new(), 0);
        let mut observe = |event: Event<'_>| match event {
            Event::Sealed { .. } => {}
            Event::Merge { tree, edit, .. } => counter.merge(tree, edit),
            Event::Rest { tree } => {
                counter.rest(tree);
                flushes += 1;
                if flushes % self.every == 0 {
                    looks.push((flushes, counter.figures()));
                    ticker.tick(self.every);
                }
            }
        };
        let simulated = match self.input {
            Input::Unit(flushes) => {
                let sizes = (0..flushes).map(|_| UNIT_BYTES);
                simulate_unit(&policy, sizes, UNIT_BYTES, &mut observe)
            }
            Input::Keyed(workload, bytes) => simulate_keyed(&policy, workload, bytes, &mut observe),
        };
        let simulated = simulated.with_context(|| format!("policy {}", self.spec))?;
        if !flushes.is_multiple_of(self.every) {
            looks.push((flushes, simulated.figures));
        }
        Ok(Course { spec: self.spec.clone(), looks })
    }
}

impl Course {
    /// What it had cost at the end; nothing if nothing was flushed.
    pub(super) fn last(&self) -> Figures {
        self.looks.last().map_or_else(Figures::default, |(_, figures)| *figures)
    }

    /// The write cost at the end.
    pub(super) fn write_cost(&self) -> f64 {
        self.last().write_cost_system
    }

    /// The write cost over flushes.
    pub(super) fn write_costs(&self) -> Vec<(f64, f64)> {
        let looks = self.looks.iter();
        looks.map(|(flushes, figures)| (*flushes as f64, figures.write_cost_system)).collect()
    }

    /// The write cost over flushes where `keep` says so when told the flushes.
    pub(super) fn write_costs_where(&self, keep: impl Fn(u64) -> bool) -> Vec<(f64, f64)> {
        let mut costs = self.write_costs();
        costs.retain(|(flushes, _)| keep(*flushes as u64));
        costs
    }

    /// Adds `points` of this course to `panel` of `figure`.
    pub(super) fn draw(&self, figure: &mut Figure, panel: &str, points: &[(f64, f64)]) {
        for (x, y) in points {
            figure.point(panel, &self.spec, *x, *y);
        }
    }
}

/// The course of `spec` among `courses`.
///
/// # Panics
/// There is none.
pub(super) fn course<'a>(courses: &'a [Course], spec: &str) -> &'a Course {
    courses.iter().find(|course| course.spec == spec).expect("every plan has its course")
}
