//! Lim, Andersen, Kaminsky, "Towards accurate and fast evaluation of multi-stage log-structured
//! designs", FAST 2016.
//!
//! Measures the paper's designs by formula, in keyed simulation and on the real store: LevelDB's
//! and RocksDB's (the policies `leveldb` and `rocksdb`), COLA, SAMT and universal.
//! Write costs are defined as in the paper: bytes written, including the log, per byte of requests,
//! in the steady state after a load of all keys in order.

mod buffer;
mod density;
mod design;
mod designs;
mod levels;
mod requests;
mod rocksdb;
mod skew;
mod steady;
mod throughput;
mod unique;
mod wa;

pub(super) use buffer::measure as buffer;
pub(super) use density::measure as density;
pub(super) use designs::measure as designs;
pub(super) use levels::measure as levels;
pub(super) use rocksdb::measure as rocksdb;
pub(super) use skew::measure as skew;
pub(super) use throughput::measure as throughput;
pub(super) use unique::measure as unique;
pub(super) use wa::measure as wa;

use super::{Effort, Panel};
use design::SKEWS;
use lsmith_lab::plot::Axis;

/// Returns the y axis of figures of write costs.
fn cost_axis() -> Axis {
    Axis::linear("write cost", "bytes written per byte of requests")
}

/// The panel names of figures with one panel per popularity of keys.
const PANELS: [&str; 2] = ["a", "b"];

/// Returns these panels: cost over `x`. The title contains the name of the popularity.
fn panels(x: &Axis, title: impl Fn(&str) -> String) -> Vec<Panel> {
    let panel = |(name, (popularity, _)): (&&str, (&str, f64))| Panel {
        name: (*name).to_owned(),
        title: title(popularity),
        x: x.clone(),
        y: cost_axis(),
    };
    PANELS.iter().zip(SKEWS).map(panel).collect()
}

/// Returns the relative error of a value, in percent.
fn percent_off(found: f64, expected: f64) -> f64 {
    (found / expected - 1.0) * 100.0
}

/// Returns the keys of a quick simulation instead of `keys`; fewer for less effort.
fn in_a_hurry(keys: u64, effort: Effort) -> u64 {
    keys * Effort::QUICK.shrink / effort.shrink.max(Effort::QUICK.shrink)
}
