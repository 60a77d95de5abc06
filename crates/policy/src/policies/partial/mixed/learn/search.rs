//! The search for one threshold.

/// The number of steps of the grid of thresholds: tenths.
pub(super) const GRID: u64 = 10;

/// How a threshold is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ThresholdSearch {
    /// From 0 upwards, until a setting is worse than the one before.
    Linear,
    /// By golden section on the grid.
    Golden,
}

/// The setting that is being tried, and the costs known so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trial {
    /// The setting, in tenths.
    pub(super) setting: u64,
    /// Settings with their measured costs, in the order of measurement.
    pub(super) known: Vec<(u64, u64)>,
}

impl ThresholdSearch {
    /// Returns the first trial.
    pub(super) fn first_trial(self) -> Trial {
        let setting = match self {
            ThresholdSearch::Linear => 0,
            ThresholdSearch::Golden => golden(0, GRID).0,
        };
        Trial { setting, known: Vec::new() }
    }

    /// Returns the next setting to try, or `None` if the best setting is known.
    pub(super) fn next(self, known: &[(u64, u64)]) -> Option<u64> {
        match self {
            ThresholdSearch::Linear => {
                let (last, cost) = *known.last()?;
                let worse = known.len() > 1 && cost > known[known.len() - 2].1;
                (!worse && last < GRID).then(|| last + 1)
            }
            ThresholdSearch::Golden => {
                let cost = |setting| known.iter().find(|(s, _)| *s == setting).map(|(_, c)| *c);
                let mut low = 0;
                let mut high = GRID;
                // The interval starts at full width and is narrowed by the costs known so far.
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

/// Returns the two inner points of a golden section of the grid from `low` to `high`. They differ.
fn golden(low: u64, high: u64) -> (u64, u64) {
    let step = ((high - low) as f64 * 0.381_966).round() as u64;
    let left = low + step.max(1);
    (left, (high - step.max(1)).max(left + 1))
}

impl Trial {
    /// Returns the setting of the least cost, and of equal costs the smallest.
    pub(super) fn best(&self) -> u64 {
        let better = |known: &(u64, u64)| (known.1, known.0);
        self.known.iter().copied().min_by_key(better).map_or(0, |(setting, _)| setting)
    }
}
