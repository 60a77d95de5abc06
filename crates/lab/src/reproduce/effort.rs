//! How much is measured.

use serde::Serialize;

/// How much is measured. A figure says in its notes what it left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Effort {
    /// Fewer points, and shorter.
    pub is_quick: bool,
    /// Memory and data are this many times smaller than in the paper.
    pub shrink: u64,
}

impl Effort {
    /// As much as the paper has measured: minutes.
    pub const FULL: Effort = Effort { is_quick: false, shrink: 1 };

    /// Enough to see what a figure is about: seconds.
    pub const QUICK: Effort = Effort { is_quick: true, shrink: 16 };
}
