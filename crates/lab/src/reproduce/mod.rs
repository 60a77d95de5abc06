//! Measures figures of the papers on merge policies again, and judges the claims of the papers.
//!
//! A figure is a file with one function that measures, and one line in `registry.rs`.
//!
//! * [`FIGURES`] lists all figures, [`figure_named`] finds one.
//! * [`Figure`] is the result: points, claims with verdicts, and notes. It serializes as JSON; the
//!   names of its fields are stable.
//! * [`Effort`] sets how much to measure, [`measure_all`] measures on all cores,
//!   [`measure_in_turn`] on one.
//! * [`draw_svg`] draws a figure.

mod advice;
mod drawing;
mod effort;
mod figure;
mod jungle;
mod jungle_fig6;
mod jungle_nodes;
mod jungle_tuned;
mod lsmtk;
mod mao;
mod msls;
mod optimum;
mod registry;
mod thonangi;
mod unsynced;

pub use crate::jobs::{Job, SharedProgress, Ticker, measure_all, measure_in_turn};
pub use crate::plot::Axis;
pub use drawing::draw_svg;
pub use effort::Effort;
pub use figure::{Claim, Figure, Panel, Point, Test, Verdict};
pub use registry::{FIGURES, FigureInfo, figure_named};
