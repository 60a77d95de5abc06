//! The text of the notes about learning.

use super::Lesson;
use super::search::GRID;
use super::step::Step;
use std::fmt;

/// Returns a cost in blocks per 10^6 bytes, as people read it.
pub(super) fn per_megabyte(cost: u64) -> f64 {
    (cost as f64 / 100.0).round() / 10.0
}

impl fmt::Display for Lesson<'_> {
    /// Prints the thresholds in force, the step of learning, and why learning started again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = |tenths: u64| tenths as f64 / GRID as f64;
        for level in 2..self.bottom {
            write!(f, "tau_{level} {}, ", tenths(self.tau(level)))?;
        }
        write!(f, "beta {}", self.beta())?;
        if !self.has_unknowns() {
            return Ok(());
        }
        match &self.step {
            Step::Watch => f.write_str("; learns when the bottom level keeps its size")?,
            Step::Tau { level, trial } => {
                write!(f, "; learning tau_{level}: trying {}", tenths(trial.setting))?;
                for (setting, cost) in &trial.known {
                    write!(f, ", {} cost {}", tenths(*setting), per_megabyte(*cost))?;
                }
                f.write_str(if trial.known.is_empty() { "" } else { " blocks/MB" })?;
            }
            Step::Full => f.write_str("; learning beta: measuring full merges")?,
            Step::Settle { cost, .. } => {
                let cost = per_megabyte(*cost);
                write!(f, "; learning beta: full cost {cost} blocks/MB, partial to be measured")?;
            }
            Step::Part { cost, .. } => {
                let cost = per_megabyte(*cost);
                write!(f, "; learning beta: full cost {cost} blocks/MB, measuring partial")?;
            }
            Step::Done => self.write_learned(f)?,
        }
        match self.view.memo("relearn") {
            Some(why) => write!(f, "; learned again because {why}"),
            None => Ok(()),
        }
    }
}

impl Lesson<'_> {
    fn write_learned(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(learned) = self.learned() else { return Ok(()) };
        write!(f, "; learned with {} blocks in level {}", learned.blocks, learned.height)?;
        if let Some(cost) = learned.cost {
            write!(f, " at {} blocks/MB", per_megabyte(cost))?;
        }
        match self.note("last_cycle") {
            Some(cost) => write!(f, ", last cycle {}", per_megabyte(cost)),
            None => Ok(()),
        }
    }
}
