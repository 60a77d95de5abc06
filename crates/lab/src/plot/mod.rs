//! Plots: charts as SVG files.
//!
//! * [`Chart`]: axes and curves. [`Sheet`]: charts side by side with one legend beside them.
//! * [`frontier`]: returns the sheet of what policies cost.
//! * [`TablesPicture`]: the tables of a tree, by keys and age.
//!
//! Drawn by `plotters`, which writes text as text. So drawing needs no fonts.

mod axis;
mod chart;
mod frontier;
mod names;
mod sheet;
mod style;
mod tables;

pub use axis::Axis;
pub use chart::{Chart, Curve, CurveKind, Sheet};
pub use frontier::frontier;
pub use tables::{TableBox, TablesPicture};
