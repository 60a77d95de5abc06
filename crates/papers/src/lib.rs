//! Measures figures of the papers on merge policies again, and judges the claims of the papers.
//!
//! A figure is a file with its `measure`, and one line in `registry.rs`.
//!
//! * [`FIGURES`] lists all figures, [`figure_named`] finds one.
//! * [`Figure`] is the result: points, claims with verdicts, and notes. It serializes as JSON; the
//!   names of its fields are stable.
//! * [`Effort`] sets how much to measure.
//! * [`draw_svg`] draws a figure.
//!
//! ```
//! use lsmith_lab::NoProgress;
//! use lsmith_papers::{Effort, Verdict, figure_named};
//!
//! let info = figure_named("jungle-costs")?;
//! let figure = info.measure(Effort::QUICK, &NoProgress)?;
//! assert!(figure.claims.iter().any(|claim| claim.verdict == Verdict::Holds));
//! # Ok::<(), anyhow::Error>(())
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "figures run the store, and time it"
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod advice;
mod ahead;
mod drawing;
mod effort;
mod figure;
mod form;
mod frontier;
mod jungle;
mod jungle_fig6;
mod jungle_nodes;
mod jungle_reads;
mod jungle_tuned;
mod lsmtk;
mod mao;
mod msls;
mod named;
mod numbers;
mod optimum;
mod parts;
mod priced;
mod registry;
mod shuffle;
mod store;
mod sweep;
mod task;
mod thonangi;
mod time;
mod unsynced;
mod updates;

pub use drawing::draw_svg;
pub use effort::Effort;
pub use figure::{Claim, Figure, Panel, Point, Test, Verdict};
pub use registry::{FIGURES, figure_named};
pub use task::{FigureInfo, Takes};

use task::Task;
