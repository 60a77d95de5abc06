//! Panels of figures with one panel per popularity of keys, and numbers that figures share.

use super::design::SKEWS;
use crate::{Effort, Panel};
use lsmith_lab::plot::Axis;

/// Returns the y axis of figures of write costs.
pub(super) fn cost_axis() -> Axis {
    Axis::linear("write cost", "bytes written per byte of requests")
}

/// The panel names of figures with one panel per popularity of keys.
pub(super) const PANELS: [&str; 2] = ["a", "b"];

/// Returns these panels: cost over `x`. The title contains the name of the popularity.
pub(super) fn panels(x: &Axis, title: impl Fn(&str) -> String) -> Vec<Panel> {
    let panel = |(name, (popularity, _)): (&&str, (&str, f64))| Panel {
        name: (*name).to_owned(),
        title: title(popularity),
        x: x.clone(),
        y: cost_axis(),
    };
    PANELS.iter().zip(SKEWS).map(panel).collect()
}

/// Returns the relative error of a value, in percent.
pub(super) fn percent_off(found: f64, expected: f64) -> f64 {
    (found / expected - 1.0) * 100.0
}

/// Returns the keys of a quick simulation instead of `keys`; fewer for less effort.
pub(super) fn in_a_hurry(keys: u64, effort: Effort) -> u64 {
    keys * Effort::QUICK.shrink / effort.shrink.max(Effort::QUICK.shrink)
}
