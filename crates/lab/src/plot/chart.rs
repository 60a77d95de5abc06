//! What is drawn: curves in charts on a sheet.

use super::axis::Axis;

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
    /// Joined by a line, without markers, with the name of the curve beside it.
    Bare,
    /// A marker each, with the name of the curve beside it if there are few curves.
    Markers,
    /// As markers, for the curve that is best: always with its name.
    Winner,
    /// A dot each.
    Cloud,
}
