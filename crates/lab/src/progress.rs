//! Progress of experiments.

/// Receives the progress of an experiment. An experiment is a sequence of steps. Some experiments
/// have parts of several steps, such as the policies of a comparison.
pub trait Progress {
    /// Begins the next part. Ends the part before. Its steps follow.
    fn begin_part(&self) {}

    /// Begins a step of `total` units of work, 0 if unknown. Ends the step before.
    fn begin(&self, step: &str, total: u64);

    /// Sets the number of finished units of the step.
    fn advance(&self, done: u64);
}

/// Ignores all progress.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
}
