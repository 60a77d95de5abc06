//! Panels of figures with one panel per popularity of keys, and numbers that figures share.

use crate::form::*;

/// The popularities of keys in the paper: the panel of each, its name, and its skew.
pub(super) const POPULARITIES: [(&str, &str, f64); 2] =
    [("a", "uniform", 0.0), ("b", "zipf 0.99", 0.99)];

/// Returns the y axis of figures of write costs.
pub(super) fn cost_axis() -> Axis {
    Axis::linear("write cost", "bytes written per byte of requests")
}

/// Returns a panel per popularity: cost over `x`. The title contains the name of the popularity.
pub(super) fn panels(x: &Axis, title: impl Fn(&str) -> String) -> [Panel; 2] {
    POPULARITIES.map(|(panel, name, _)| Panel::new(panel, title(name), x.clone(), cost_axis()))
}

/// Returns the keys of a quick simulation instead of `keys`; fewer for less effort.
pub(super) fn in_a_hurry(keys: u64, effort: Effort) -> u64 {
    keys * Effort::QUICK.shrink / effort.shrink.max(Effort::QUICK.shrink)
}
