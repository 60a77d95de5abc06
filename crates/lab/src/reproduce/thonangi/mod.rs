//! Thonangi & Yang, "On log-structured merge for solid-state drives", ICDE 2017, in simulation but
//! for `fig7`, which takes the time of the real store.
//!
//! Records have keys of 4 bytes; a megabyte is 10^6 bytes, of which each request counts as one
//! record; costs are data blocks of 4096 bytes written below memory.

mod chain;
mod fig10;
mod fig2;
mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod fig9;
mod fit;
mod index;
mod steady;
mod store;
mod sweep;

pub(super) use fig2::measure as fig2;
pub(super) use fig5::measure as fig5;
pub(super) use fig6::{measure_normal as fig6b, measure_tpc as fig6c, measure_uniform as fig6a};
pub(super) use fig7::measure as fig7;
pub(super) use fig8::measure as fig8;
pub(super) use fig9::measure as fig9;
pub(super) use fig10::measure as fig10;

use super::{Axis, Effort};

/// How far a percentage may be from the paper's, in percentage points: the paper rounds, and its
/// numbers can be read off its drawings no better.
const POINTS: f64 = 5.0;

/// The x axis of figures over the size of the data.
fn dataset_axis() -> Axis {
    Axis::linear("dataset size", "MB")
}

/// The y axis of all figures of write costs.
fn cost_axis() -> Axis {
    Axis::linear("write cost", "blocks per MB of requests")
}

/// How many times smaller an index of section V is measured. One of four levels takes ten times as
/// long to come to rest, and `mixed` ten such times to learn, so it is smaller in any case, if
/// never below the 250 blocks of memory that the paper has for its small indexes. In a hurry the
/// smallest is measured twice as large.
fn scale(effort: Effort, dataset_mb: u64) -> u64 {
    match (effort.is_quick, dataset_mb) {
        (true, ..=200) => (effort.shrink / 2).max(1),
        (true, 1601..) => effort.shrink * 2,
        (false, 1601..=2000) => effort.shrink * 8,
        (false, 2001..) => effort.shrink * 16,
        _ => effort.shrink,
    }
}

/// The same for the small indexes of sections III and IV.
fn small_scale(effort: Effort) -> u64 {
    (effort.shrink / 8).max(1)
}

/// What scales of a figure say to its readers.
fn told_scale(scales: impl IntoIterator<Item = (u64, u64)>) -> String {
    let mut told: Vec<(u64, Vec<String>)> = Vec::new();
    for (dataset_mb, scale) in scales {
        let of = format!("{dataset_mb}");
        match told.iter_mut().find(|(known, _)| *known == scale) {
            Some((_, sizes)) if sizes.contains(&of) => {}
            Some((_, sizes)) => sizes.push(of),
            None => told.push((scale, vec![of])),
        }
    }
    let parts = told.into_iter().map(|(scale, sizes)| match scale {
        1 => format!("{} MB at the paper's scale", sizes.join(", ")),
        _ => format!("{} MB at 1/{scale} of it", sizes.join(", ")),
    });
    let parts: Vec<String> = parts.collect();
    format!(
        "Measured: {}. A smaller scale divides memory, data, omega and districts alike, which \
         leaves costs per megabyte as they are but for whole blocks; x is as at the paper's scale.",
        parts.join("; ")
    )
}
