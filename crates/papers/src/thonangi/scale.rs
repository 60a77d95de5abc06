//! The scale of a figure, its tolerance and its axes.

use crate::form::*;

/// The tolerance of percentages, in percentage points: the paper rounds, and drawings cannot be
/// read more precisely.
pub(super) const POINTS: f64 = 5.0;

/// Returns the x axis of figures over the size of the data.
pub(super) fn dataset_axis() -> Axis {
    Axis::linear("dataset size", "MB")
}

/// Returns the y axis of all figures of write costs.
pub(super) fn cost_axis() -> Axis {
    Axis::linear("write cost", "blocks per MB of requests")
}

/// Returns the factor by which an index of section V is smaller than in the paper. An index of four
/// levels takes ten times as long to become steady, and `mixed` takes ten times that to learn, so
/// it is always smaller. Its memory is at least 250 blocks, as for the paper's small indexes. In
/// quick measurements the smallest index is twice as large.
pub(super) fn scale(effort: Effort, dataset_mb: u64) -> u64 {
    match (effort.is_quick, dataset_mb) {
        (true, ..=200) => (effort.shrink / 2).max(1),
        (true, 1601..) => effort.shrink * 2,
        (false, 1601..=2000) => effort.shrink * 8,
        (false, 2001..) => effort.shrink * 16,
        _ => effort.shrink,
    }
}

/// Returns the same factor for the small indexes of sections III and IV.
pub(super) fn small_scale(effort: Effort) -> u64 {
    (effort.shrink / 8).max(1)
}

/// Returns the note on the scales of a figure, given as (MB, factor).
pub(super) fn scale_note(scales: impl IntoIterator<Item = (u64, u64)>) -> String {
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
    format!(
        "Measured: {}. A smaller scale divides memory, data, omega and districts alike, which \
         leaves costs per megabyte as they are but for whole blocks; x is as at the paper's scale.",
        joined("; ", words)
    )
}
