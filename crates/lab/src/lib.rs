//! Experiments: runs the same workload on the real store and in simulations.
//!
//! Reports have the write, read and space amplification of merge policies (compaction strategies),
//! as the figures `write_cost_...`, `read_cost_...` and `space_cost_...`.
//!
//! * [`run`]: plays one workload on the store under one policy and counts everything.
//! * [`simulate`]: simulates one policy with unit, keyed or fluid content.
//! * [`simulate_time`]: simulates a free run in time, on a machine that [`calibrate`] measured.
//! * [`Comparison`]: does both for many policies and computes prediction errors.
//! * [`mod@explain`]: says why one policy writes less than another.
//! * [`model`]: computes the costs of a policy by formula.
//! * [`with_sizes`]: computes the level sizes of a policy that asks for optimal ones.
//! * [`mod@tune`]: finds the best policy and parameters for a workload, under limits.
//! * [`history`]: records the trees of a simulation as differences from step to step.
//! * [`page`]: shows results as one HTML file. [`plot`]: draws charts as SVG.
//! * [`FileInputs`]: reads the files that workloads name.
//! * [`remove_scratch`]: removes what running experiments have made, when a signal ends them.
//! * [`Progress`]: receives the progress of an experiment.
//!
//! Reports are values that serialize as JSON; the names of their fields are stable. This crate
//! prints nothing.
//!
//! ```
//! use lsmith_lab::{NoProgress, Options, run};
//! use lsmith_workload::{NoInputs, Workload};
//!
//! let workload = "load(keys=2k, value=100B)".parse()?;
//! let workload = Workload::from_spec(&workload, &NoInputs)?;
//! let options = Options { memtable_bytes: 16 << 10, ..Options::default() };
//! let dir = tempfile::tempdir()?;
//! let report = run("bigtable(k=3)", &workload, dir.path(), &options, &NoProgress)?;
//! assert_eq!((report.ops, report.costs.runs_max), (2000, 3));
//! # Ok::<(), anyhow::Error>(())
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "experiments run the store, and time it"
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod calibrate;
mod clock;
mod compare;
mod debt;
mod errors;
pub mod explain;
mod fits;
mod free;
mod growth;
pub mod history;
mod inputs;
mod jobs;
mod least;
mod machine;
mod meter;
mod model;
mod newest;
pub mod page;
mod physical;
mod play;
#[cfg(feature = "plot")]
pub mod plot;
mod profile;
mod progress;
mod report;
mod run;
mod scans;
mod schedule;
mod scratch;
mod sealing;
mod simulate;
mod sizes;
mod spread;
mod time;
pub mod tune;

pub use calibrate::calibrate;
pub use clock::{Clock, thread_cpu_seconds};
pub use compare::{Comparison, Row};
pub use debt::Debt;
pub use errors::{Errors, PredictionErrors};
pub use fits::{fluid_fits, keyed_fits, unit_fits};
pub use free::FreeRun;
pub use growth::{Formula, Prediction};
pub use inputs::FileInputs;
pub use jobs::{Job, SharedProgress, Ticker, measure_all, measure_in_turn};
pub use least::Least;
pub use machine::{machine_of, spec_of_machine};
pub use meter::Mode;
pub use model::{
    FormulaInfo, KeyCount, KeyCounts, MergedKeys, ModelSettings, ModelStage, Modelled, PointRead,
    formulas, key_counts, model,
};
pub use newest::Newest;
pub use physical::{FileSizes, PhysicalMeter};
pub use progress::{NoProgress, Progress};
pub use report::{
    AtMean, Costs, EngineReport, LogicalBytes, Lookups, Moment, Optimum, Percentiles, Phase,
    PhysicalBytes, PhysicalCosts, ReadCost, Settings, SimulationReport, StoreBytes, Versions,
};
pub use run::{Options, run};
pub use scans::{ScanCosts, Scans};
pub use scratch::{Scratch, remove_scratch};
pub use sealing::sealing;
pub use simulate::{Amount, Content, Simulated, simulate, simulate_observed};
pub use sizes::{asks_for_sizes, with_sizes};
pub use spread::{Extent, Spread};
pub use time::{PutNanos, SimulatedTime, simulate_time};
