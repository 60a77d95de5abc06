//! Lim, Andersen, Kaminsky, "Towards accurate and fast evaluation of multi-stage log-structured
//! designs", FAST 2016.
//!
//! LevelDB's design ([`policy`]) as a formula, key by key, and on the real store. Write costs are
//! the paper's: bytes written, the log included, per byte of requests, in the steady state that
//! follows a load of all keys in order.

mod buffer;
mod density;
mod design;
mod policy;
mod requests;
mod rocksdb;
mod skew;
mod steady;
mod wa;

pub(super) use buffer::measure as buffer;
pub(super) use density::measure as density;
pub(super) use rocksdb::measure as rocksdb;
pub(super) use skew::measure as skew;
pub(super) use wa::measure as wa;

use super::{Axis, Effort, Panel};
use design::SKEWS;

/// The y axis of figures of write costs.
fn cost_axis() -> Axis {
    Axis::linear("write cost", "bytes written per byte of requests")
}

/// Names of the panels of a figure that has one for each popularity of keys.
const PANELS: [&str; 2] = ["a", "b"];

/// These panels: cost over `x`, with a title made of what the popularity is called.
fn panels(x: &Axis, title: impl Fn(&str) -> String) -> Vec<Panel> {
    let panel = |(name, (popularity, _)): (&&str, (&str, f64))| Panel {
        name: (*name).to_owned(),
        title: title(popularity),
        x: x.clone(),
        y: cost_axis(),
    };
    PANELS.iter().zip(SKEWS).map(panel).collect()
}

/// How far something is from what it should be, in percent of that.
fn percent_off(found: f64, expected: f64) -> f64 {
    (found / expected - 1.0) * 100.0
}

/// Keys to be simulated in a hurry, where usually `keys` are: fewer where less is asked for.
fn in_a_hurry(keys: u64, effort: Effort) -> u64 {
    keys * Effort::QUICK.shrink / effort.shrink.max(Effort::QUICK.shrink)
}
