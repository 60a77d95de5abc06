//! Plots: charts as SVG files.
//!
//! * [`Chart`]: axes and curves. [`Sheet`]: charts side by side with one legend beside them.
//! * [`frontier`]: returns the sheet of what policies cost.
//! * [`TablesPicture`]: the tables of a tree, by keys and age.
//!
//! Drawn by `plotters`, which writes text as text. So drawing needs no fonts.

mod axis;
mod frontier;
mod sheet;
mod style;
mod tables;

pub use axis::Axis;
pub use frontier::frontier;
pub use tables::{TableBox, TablesPicture};

use anyhow::Context;
use std::path::Path;

/// Charts on one sheet. A name has the same colour, dash and marker in all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Sheet {
    /// The names of curves, in the order in which they take styles. Curves of other names come
    /// after these.
    pub names: Vec<String>,
    /// The charts, row by row.
    pub charts: Vec<Chart>,
    /// The number of charts in a row.
    pub columns: usize,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The curves.
    pub curves: Vec<Curve>,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// How the points are drawn.
    pub kind: CurveKind,
    /// The points: x and y.
    pub points: Vec<(f64, f64)>,
}

/// How the points of a curve are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CurveKind {
    /// Joined by a line, with markers.
    Line,
    /// Joined by a line, without markers.
    Bare,
    /// A marker each.
    Markers,
    /// A dot each.
    Cloud,
}

impl Sheet {
    /// Returns the text of an SVG file.
    ///
    /// # Errors
    /// Fails if the sheet cannot be drawn.
    pub fn svg(&self) -> anyhow::Result<String> {
        sheet::draw(self)
    }

    /// Draws the sheet into the file at `path`.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let message = || format!("cannot write {}", path.display());
        std::fs::write(path, self.svg()?).with_context(message)
    }
}
