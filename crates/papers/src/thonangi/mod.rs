//! Thonangi & Yang, "On log-structured merge for solid-state drives", ICDE 2017. All figures are
//! simulated, except `fig7`, which times the real store.
//!
//! Records have keys of 4 bytes. A megabyte of requests is 10^6 bytes of records; each request
//! counts as one record. Costs are data blocks of 4096 bytes written below memory.

mod caches;
mod chain;
mod density;
mod fig10;
mod fig2;
mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod fig9;
mod fit;
mod index;
mod levels;
mod over_time;
mod queries;
mod steady;
mod store;
mod sweep;

pub(super) use caches::measure as caches;
pub(super) use density::measure as fig1;
pub(super) use fig2::measure as fig2;
pub(super) use fig5::measure as fig5;
pub(super) use fig6::{measure_normal as fig6b, measure_tpc as fig6c, measure_uniform as fig6a};
pub(super) use fig7::measure as fig7;
pub(super) use fig8::measure as fig8;
pub(super) use fig9::{measure_normal as payloads_normal, measure_uniform as fig9};
pub(super) use fig10::{measure_normal as fig10, measure_uniform as growth_uniform};
pub(super) use levels::measure as levels;
pub(super) use over_time::{measure_three as fig4, measure_two as fig3};
pub(super) use queries::measure as queries;

use super::Effort;
use lsmith_lab::plot::Axis;

/// The tolerance of percentages, in percentage points: the paper rounds, and drawings cannot be
/// read more precisely.
const POINTS: f64 = 5.0;

/// Returns the x axis of figures over the size of the data.
fn dataset_axis() -> Axis {
    Axis::linear("dataset size", "MB")
}

/// Returns the y axis of all figures of write costs.
fn cost_axis() -> Axis {
    Axis::linear("write cost", "blocks per MB of requests")
}

/// Returns the factor by which an index of section V is smaller than in the paper. An index of four
/// levels takes ten times as long to become steady, and `mixed` takes ten times that to learn, so
/// it is always smaller. Its memory is at least 250 blocks, as for the paper's small indexes. In
/// quick measurements the smallest index is twice as large.
fn scale(effort: Effort, dataset_mb: u64) -> u64 {
    match (effort.is_quick, dataset_mb) {
        (true, ..=200) => (effort.shrink / 2).max(1),
        (true, 1601..) => effort.shrink * 2,
        (false, 1601..=2000) => effort.shrink * 8,
        (false, 2001..) => effort.shrink * 16,
        _ => effort.shrink,
    }
}

/// Returns the same factor for the small indexes of sections III and IV.
fn small_scale(effort: Effort) -> u64 {
    (effort.shrink / 8).max(1)
}

/// Returns the note on the scales of a figure, given as (MB, factor).
fn scale_note(scales: impl IntoIterator<Item = (u64, u64)>) -> String {
    let mut by_scale: Vec<(u64, Vec<String>)> = Vec::new();
    for (dataset_mb, scale) in scales {
        let of = format!("{dataset_mb}");
        match by_scale.iter_mut().find(|(known, _)| *known == scale) {
            Some((_, sizes)) if sizes.contains(&of) => {}
            Some((_, sizes)) => sizes.push(of),
            None => by_scale.push((scale, vec![of])),
        }
    }
    let words = by_scale.into_iter().map(|(scale, sizes)| match scale {
        1 => format!("{} MB at the paper's scale", sizes.join(", ")),
        _ => format!("{} MB at 1/{scale} of it", sizes.join(", ")),
    });
    let parts: Vec<String> = words.collect();
    format!(
        "Measured: {}. A smaller scale divides memory, data, omega and districts alike, which \
         leaves costs per megabyte as they are but for whole blocks; x is as at the paper's scale.",
        parts.join("; ")
    )
}
