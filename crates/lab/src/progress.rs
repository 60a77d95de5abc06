//! How far an experiment has got, for whoever waits.

/// Is told how far an experiment has got. An experiment is a row of steps.
pub trait Progress {
    /// A step of `total` units of work begins; whatever step was before it is over.
    fn begin(&self, step: &str, total: u64);

    /// `done` units of the step are done.
    fn advance(&self, done: u64);
}

/// For those who do not want to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
}
