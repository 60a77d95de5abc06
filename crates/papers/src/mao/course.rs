//! Simulations with samples along the way.

use crate::{Effort, Figure, Panel};
use anyhow::Context;
use lsmith_lab::plot::Axis;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all};
use lsmith_policy::Registry;
use lsmith_sim::{
    Event, FigureCounter, Figures, KeyedWorkload, UNIT_BYTES, simulate_keyed, simulate_unit,
};
use lsmith_workload::FlushSizes;

/// The content of a simulation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Input<'a> {
    /// This number of flushes of size one.
    Unit(u64),
    /// This number of flushes of given sizes; a full memtable has [`UNIT_BYTES`].
    Sized(&'a FlushSizes, u64),
    /// A keyed workload and the logical bytes of a memtable.
    Keyed(&'a KeyedWorkload, u64),
}

/// A planned simulation.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    /// The spec of the policy, which is also the name of its curve.
    pub(super) spec: String,
    pub(super) input: Input<'a>,
    /// The flushes between two samples. The end is also a sample.
    pub(super) every: u64,
}

/// The samples of a simulation.
#[derive(Clone, Debug)]
pub(super) struct Course {
    /// The spec of the policy, as in the plan.
    pub(super) spec: String,
    /// Number of flushes and figures of each sample, ascending.
    pub(super) looks: Vec<(u64, Figures)>,
}

/// Returns the flushes to simulate for the paper's `flushes`. Unit simulations take a second, so a
/// quick measurement runs all flushes; only smaller efforts run fewer.
pub(super) fn flushes_of(flushes: u64, effort: Effort) -> u64 {
    let least = Effort::QUICK.shrink;
    (flushes * least / effort.shrink.max(least)).max(1)
}

/// Runs all plans in parallel.
///
/// # Errors
/// Fails if a policy cannot be built or breaks a rule.
pub(super) fn simulate_all(
    plans: &[Plan<'_>],
    progress: &SharedProgress,
) -> anyhow::Result<Vec<Course>> {
    measure_all("simulation", plans, progress)
}

/// Returns a plan for `flushes` of size one under each of `specs`.
pub(super) fn unit_plans<S: Into<String>>(
    specs: impl IntoIterator<Item = S>,
    flushes: u64,
    every: u64,
) -> Vec<Plan<'static>> {
    let plan = |spec: S| Plan { spec: spec.into(), input: Input::Unit(flushes), every };
    specs.into_iter().map(plan).collect()
}

impl Job for Plan<'_> {
    type Output = Course;

    fn work(&self) -> u64 {
        match self.input {
            Input::Unit(flushes) | Input::Sized(_, flushes) => flushes,
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
        let mut counter = FigureCounter::new();
        let mut looks = Vec::new();
        let mut flushes = 0;
        let mut observe = |event: Event<'_>| match event {
            Event::Sealed { .. } | Event::Flushed { .. } => {}
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
        let outcome = match self.input {
            Input::Unit(flushes) => {
                let sizes = (0..flushes).map(|_| UNIT_BYTES);
                simulate_unit(&policy, sizes, UNIT_BYTES, &mut observe)
            }
            Input::Sized(sizes, flushes) => {
                let sizes = (0..flushes).map(|flush| sizes.bytes(flush, UNIT_BYTES));
                simulate_unit(&policy, sizes, UNIT_BYTES, &mut observe)
            }
            Input::Keyed(workload, bytes) => simulate_keyed(&policy, workload, bytes, &mut observe),
        };
        let simulated = outcome.with_context(|| format!("policy {}", self.spec))?;
        if !flushes.is_multiple_of(self.every) {
            looks.push((flushes, simulated.figures));
        }
        Ok(Course { spec: self.spec.clone(), looks })
    }
}

impl Course {
    /// Returns the figures at the end; `None` without a flush.
    pub(super) fn last(&self) -> Figures {
        self.looks.last().map_or_else(Figures::default, |(_, figures)| *figures)
    }

    /// Returns the write cost at the end.
    pub(super) fn write_cost(&self) -> f64 {
        self.last().write_cost_system
    }

    /// Returns the write cost over flushes.
    pub(super) fn write_costs(&self) -> Vec<(f64, f64)> {
        let looks = self.looks.iter();
        looks.map(|(flushes, figures)| (*flushes as f64, figures.write_cost_system)).collect()
    }

    /// Returns the write cost over the flushes for which `keep(flushes)` is true.
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

/// Returns the course of `spec`.
///
/// # Panics
/// Panics if there is none.
pub(super) fn course<'a>(courses: &'a [Course], spec: &str) -> &'a Course {
    courses.iter().find(|course| course.spec == spec).expect("every plan has its course")
}

/// Returns a panel of write cost over flushes.
pub(super) fn panel(name: &str, title: &str) -> Panel {
    Panel {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::linear("flushes", ""),
        y: Axis::linear("write cost", ""),
    }
}
