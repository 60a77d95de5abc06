//! Simulations with samples along the way.

use crate::form::*;
use anyhow::Context;
use lsmith_sim::{
    Event, FigureCounter, Figures, KeyedWorkload, UNIT_BYTES, simulate_keyed, simulate_unit,
};
use lsmith_workload::FlushSizes;

/// The policies that bound the number of runs: two that look at the number of flushes only, two
/// that look at sizes, and one whose write cost grows far above all others.
pub(super) const BOUNDED: [&str; 5] = ["minlatency", "binomial", "bigtable", "exploring", CONSTANT];
pub(super) const STATIC: [&str; 2] = ["minlatency", "binomial"];
pub(super) const DYNAMIC: [&str; 2] = ["bigtable", "exploring"];
/// All but [`CONSTANT`].
pub(super) const CHEAP: [&str; 4] = ["minlatency", "binomial", "bigtable", "exploring"];
pub(super) const CONSTANT: &str = "constant";

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

/// Returns the specs of all `names` with each value of a parameter, name by name.
pub(super) fn specs<'a, V: std::fmt::Display>(
    names: impl IntoIterator<Item = &'a str>,
    parameter: &str,
    values: &[V],
) -> Vec<String> {
    let of = |name| values.iter().map(move |value| format!("{name}({parameter}={value})"));
    names.into_iter().flat_map(of).collect()
}

impl Plan<'_> {
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

    fn simulate(&self, task: &Task<'_>, ticker: &Ticker<'_>) -> anyhow::Result<Course> {
        let policy = task.policy(&self.spec)?;
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
}

/// The samples of several policies.
#[derive(Clone, Debug)]
pub(super) struct Courses(pub(super) Vec<Course>);

impl Courses {
    /// Runs all plans in parallel.
    ///
    /// # Errors
    /// Fails if a policy cannot be built or breaks a rule.
    pub(super) fn simulate(task: &Task<'_>, plans: &[Plan<'_>]) -> anyhow::Result<Courses> {
        let simulate = |plan: &Plan<'_>, ticker: &Ticker<'_>| plan.simulate(task, ticker);
        Ok(Courses(task.each("simulation", plans, Plan::work, simulate)?))
    }

    /// Simulates `flushes` of size one under each of `specs`.
    ///
    /// # Errors
    /// As [`Courses::simulate`].
    pub(super) fn unit<S: Into<String>>(
        task: &Task<'_>,
        specs: impl IntoIterator<Item = S>,
        flushes: u64,
        every: u64,
    ) -> anyhow::Result<Courses> {
        let plan = |spec: S| Plan { spec: spec.into(), input: Input::Unit(flushes), every };
        Courses::simulate(task, &specs.into_iter().map(plan).collect::<Vec<_>>())
    }

    /// Returns the course of `spec`.
    ///
    /// # Panics
    /// Panics if there is none.
    pub(super) fn of(&self, spec: &str) -> &Course {
        self.0.iter().find(|course| course.spec == spec).expect("every plan has its course")
    }

    /// Returns the write cost of `spec` at the end.
    pub(super) fn cost(&self, spec: &str) -> f64 {
        self.of(spec).write_cost()
    }

    /// Draws the write costs of `specs` over the flushes for which `keep(flushes)` is true.
    pub(super) fn draw(
        &self,
        figure: &mut Figure,
        panel: &str,
        specs: impl IntoIterator<Item = impl AsRef<str>>,
        keep: impl Fn(u64) -> bool,
    ) {
        for spec in specs {
            let course = self.of(spec.as_ref());
            figure.draw(panel, &course.spec, course.write_costs_where(&keep));
        }
    }
}

/// Returns a panel of write cost over flushes.
pub(super) fn panel(name: &str, title: &str) -> Panel {
    Panel::new(name, title, Axis::linear("flushes", ""), Axis::linear("write cost", ""))
}
