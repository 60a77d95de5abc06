//! The sheet of what policies cost.

use super::axis::Axis;
use super::chart::{Chart, Curve, CurveKind, Sheet};
use crate::page::{CostPoint, Group};

const LEAST: &str = "least write cost (exact optimum)";

/// The axis of runs per lookup.
fn reads() -> Axis {
    Axis::log("runs that a lookup considers, mean", "read_cost_mean")
}

/// The axis of the write cost that the group shows.
fn writes_of(group: &Group) -> Axis {
    let counted = match group.write_figure.as_str() {
        "write_cost_user" => "bytes written per byte of keys and values",
        _ => "bytes written per byte flushed",
    };
    Axis::log(counted, &group.write_figure)
}

/// Returns a row of two charts per group: write cost against read cost, with the least possible,
/// and space cost against write cost. The charts show the first source of each group.
#[must_use]
pub fn frontier(groups: &[Group]) -> Sheet {
    let mut names: Vec<String> = Vec::new();
    for policy in groups.iter().flat_map(|group| &group.costs) {
        if !names.contains(&policy.name) {
            names.push(policy.name.clone());
        }
    }
    let charts = groups.iter().flat_map(|group| [writes(group), space(group)]);
    Sheet { charts: charts.collect(), names, columns: 2 }
}

fn writes(group: &Group) -> Chart {
    let mut curves = curves(group, |point| Some((point.read, point.write)));
    // The curve of the least goes on far beyond the policies.
    let of_points = curves.iter().flat_map(|curve| &curve.points);
    let range = of_points
        .fold((f64::INFINITY, 0f64), |(low, high), (read, _)| (low.min(*read), high.max(*read)));
    let shown = |point: &(f64, f64)| (range.0 / 1.1..=range.1 * 1.1).contains(&point.0);
    let points = group.least.iter().map(|point| (point.read, point.write)).filter(shown);
    let least = Curve { name: LEAST.to_owned(), kind: CurveKind::Bare, points: points.collect() };
    if !least.points.is_empty() {
        curves.push(least);
    }
    Chart {
        title: format!("write against read: {}", group.name),
        x: reads(),
        y: writes_of(group),
        curves,
    }
}

fn space(group: &Group) -> Chart {
    Chart {
        title: format!("space against write: {}", group.name),
        x: writes_of(group),
        y: Axis::linear("bytes held per live byte, mean", "space_cost_mean").close(),
        curves: curves(group, |point| Some((point.write, point.space?))),
    }
}

fn curves(group: &Group, place: impl Fn(&CostPoint) -> Option<(f64, f64)>) -> Vec<Curve> {
    let curve = |costs: &crate::page::PolicyCosts| Curve {
        name: costs.name.clone(),
        kind: if costs.is_best { CurveKind::Winner } else { CurveKind::Markers },
        points: costs
            .by_source
            .first()
            .and_then(|point| place(point.as_ref()?))
            .into_iter()
            .collect(),
    };
    group.costs.iter().map(curve).collect()
}
