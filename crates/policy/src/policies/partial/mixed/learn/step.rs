//! The step of learning, and the note that stores it.

use super::search::Trial;
use std::fmt;

/// A step of learning. Costs are blocks written per 10^9 bytes from memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Wait until the bottom level keeps its size.
    Watch,
    /// Try a threshold.
    Tau {
        level: usize,
        trial: Trial,
    },
    /// Measure full merges into the bottom level.
    Full,
    /// Let `volume` bytes from memory go down by partial merges before these are measured. Full
    /// merges cost `cost` over as many bytes.
    Settle {
        cost: u64,
        volume: u64,
    },
    /// Measure partial merges into the bottom level over `volume` bytes from memory, to compare
    /// them with `cost`.
    Part {
        cost: u64,
        volume: u64,
    },
    Done,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Watch => f.write_str("watch"),
            Step::Done => f.write_str("done"),
            Step::Full => f.write_str("full"),
            Step::Settle { cost, volume } => write!(f, "settle {cost} {volume}"),
            Step::Part { cost, volume } => write!(f, "part {cost} {volume}"),
            Step::Tau { level, trial } => {
                write!(f, "tau {level} {}", trial.setting)?;
                trial.known.iter().try_for_each(|(setting, cost)| write!(f, " {setting} {cost}"))
            }
        }
    }
}

impl Step {
    /// Parses a step.
    pub(super) fn read(text: &str) -> Option<Step> {
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        let words = rest.split_ascii_whitespace().map(|word| word.parse().ok());
        let numbers: Vec<u64> = words.collect::<Option<_>>()?;
        match (name, &numbers[..]) {
            ("watch", []) => Some(Step::Watch),
            ("done", []) => Some(Step::Done),
            ("full", []) => Some(Step::Full),
            ("settle", &[cost, volume]) => Some(Step::Settle { cost, volume }),
            ("part", &[cost, volume]) => Some(Step::Part { cost, volume }),
            ("tau", &[level, setting, ref known @ ..]) if known.len().is_multiple_of(2) => {
                let known = known.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                let level = usize::try_from(level).ok()?;
                Some(Step::Tau { level, trial: Trial { setting, known } })
            }
            _ => None,
        }
    }
}
