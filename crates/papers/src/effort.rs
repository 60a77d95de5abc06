//! The effort of measurements.

use serde::Serialize;

/// The effort of a measurement. The notes of a figure say what it left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// True for fewer points and shorter runs.
    pub is_quick: bool,
    /// The factor by which memory and data are smaller than in the paper.
    pub shrink: u64,
}

impl Effort {
    /// As many points as in the paper; takes minutes.
    pub const FULL: Effort = Effort { is_quick: false, shrink: 1 };

    /// Enough points to recognise a figure; takes seconds.
    pub const QUICK: Effort = Effort { is_quick: true, shrink: 16 };
}
