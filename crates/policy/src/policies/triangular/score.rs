//! Which layer of a triangle takes the output.

use super::closure::{Layer, Triangle};
use lsmith_spec::{Params, SpecError};

/// How good a triangle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// The bytes that move down over all bytes of the merge, at least a half.
    Ratio,
    /// The weighted bytes of the levels that move down, less the bytes in the level that takes the
    /// output. The weight of a level is twice the weight of the level below it.
    Bytes,
}

impl Score {
    pub(super) fn read(params: &Params<'_>) -> Result<Score, SpecError> {
        Ok(match params.choice("score", "ratio", &["ratio", "bytes"])? {
            "bytes" => Score::Bytes,
            _ => Score::Ratio,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Score::Ratio => "ratio",
            Score::Bytes => "bytes",
        }
    }
}

/// Returns the index of the layer with the largest ratio: the deepest of equal ones, and none where
/// less moves down than is met there. Layers without slices are passed over.
pub(super) fn best_by_ratio(layers: &[Layer]) -> Option<usize> {
    let mut above = 0_u64;
    let mut best: Option<(usize, u64, u64)> = None;
    for pair in layers.windows(2).enumerate() {
        let (index, [upper, layer]) = pair else { continue };
        above = above.saturating_add(upper.bytes);
        if layer.files == 0 || above < layer.bytes {
            continue;
        }
        // above / (above + bytes) grows with above / bytes.
        let is_better = |(_, best_above, best_bytes): (usize, u64, u64)| {
            u128::from(above) * u128::from(best_bytes)
                >= u128::from(best_above) * u128::from(layer.bytes)
        };
        if best.is_none_or(is_better) {
            best = Some((index + 1, above, layer.bytes));
        }
    }
    best.map(|(index, ..)| index)
}

/// Returns the index of the layer that the fewest bytes are met in, per byte that moves down, if
/// nothing is moved down without a merge: for a merge that must be.
pub(super) fn least_bad_by_ratio(layers: &[Layer]) -> usize {
    let mut above = 0_u64;
    let mut best = (1, 0_u64, 1_u64);
    for (index, pair) in layers.windows(2).enumerate() {
        above = above.saturating_add(pair[0].bytes);
        let bytes = pair[1].bytes;
        let is_better =
            u128::from(above) * u128::from(best.2) >= u128::from(best.1) * u128::from(bytes);
        if pair[1].files > 0 && is_better {
            best = (index + 1, above, bytes);
        }
    }
    best.0
}

/// Returns the index of the layer with the largest score in bytes, with the score. The walk stops
/// behind the first layer without slices, and where `is_within` refuses the layers so far.
pub(super) fn best_by_bytes(
    triangle: &Triangle<'_>,
    is_within: impl Fn(u64, usize) -> bool,
) -> Option<(usize, i128)> {
    let layers = &triangle.layers;
    let (mut bytes, mut files) = (layers[0].bytes, layers[0].files);
    let mut moved: i128 = 0;
    let mut best: Option<(usize, i128)> = None;
    for (index, pair) in layers.windows(2).enumerate() {
        moved = moved.saturating_mul(2).saturating_add(i128::from(pair[0].bytes));
        bytes = bytes.saturating_add(pair[1].bytes);
        files += pair[1].files;
        if !is_within(bytes, files) {
            break;
        }
        let score = moved - i128::from(pair[1].bytes);
        if best.is_none_or(|(_, best)| score > best) {
            best = Some((index + 1, score));
        }
        if pair[1].files == 0 {
            break;
        }
    }
    best
}
