//! The search for one threshold.

/// Tenths: the grid on which thresholds lie.
pub(super) const GRID: u64 = 10;

/// How a threshold is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Search {
    /// From 0 upwards, stopping at the first that is worse.
    Linear,
    /// Golden section on the grid.
    Golden,
}

/// The setting tried now, and what is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trial {
    /// In tenths.
    pub(super) setting: u64,
    /// Settings and costs measured so far, in the order in which they were.
    pub(super) known: Vec<(u64, u64)>,
}

impl Search {
    /// Nothing is known yet.
    pub(super) fn begin(self) -> Trial {
        let setting = match self {
            Search::Linear => 0,
            Search::Golden => golden(0, GRID).0,
        };
        Trial { setting, known: Vec::new() }
    }

    /// The next setting to try, given what is known; `None` when the best is known.
    pub(super) fn next(self, known: &[(u64, u64)]) -> Option<u64> {
        match self {
            Search::Linear => {
                let (last, cost) = *known.last()?;
                let worse = known.len() > 1 && cost > known[known.len() - 2].1;
                (!worse && last < GRID).then(|| last + 1)
            }
            Search::Golden => {
                let cost = |setting| known.iter().find(|(s, _)| *s == setting).map(|(_, c)| *c);
                let (mut low, mut high) = (0, GRID);
                // The same interval as ever, narrowed by what is known by now.
                while high - low > 2 {
                    let (left, right) = golden(low, high);
                    match (cost(left), cost(right)) {
                        (None, _) => return Some(left),
                        (_, None) => return Some(right),
                        // Noisy ties go to the smaller setting.
                        (Some(l), Some(r)) if l <= r => high = right,
                        _ => low = left,
                    }
                }
                (low..=high).find(|setting| cost(*setting).is_none())
            }
        }
    }
}

/// The two inner points of a golden section of the grid from `low` to `high`, apart.
fn golden(low: u64, high: u64) -> (u64, u64) {
    let step = ((high - low) as f64 * 0.381_966).round() as u64;
    let left = low + step.max(1);
    (left, (high - step.max(1)).max(left + 1))
}

impl Trial {
    /// The setting of least cost; the smallest of those that tie.
    pub(super) fn best(&self) -> u64 {
        let better = |known: &(u64, u64)| (known.1, known.0);
        self.known.iter().copied().min_by_key(better).map_or(0, |(setting, _)| setting)
    }
}
