//! Figures that can be measured, and the task of measuring one.

use crate::{Effort, Figure, Panel};
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all, measure_in_turn};

/// A figure that can be measured.
#[derive(Clone, Copy, Debug)]
pub struct FigureInfo {
    /// The name, such as `thonangi-fig2`.
    pub name: &'static str,
    /// The title, one line.
    pub title: &'static str,
    /// The function that measures the figure.
    measure: fn(&Task<'_>) -> anyhow::Result<Figure>,
}

impl FigureInfo {
    /// Returns the figure that `measure` measures.
    pub(crate) const fn new(
        name: &'static str,
        measure: fn(&Task<'_>) -> anyhow::Result<Figure>,
        title: &'static str,
    ) -> FigureInfo {
        FigureInfo { name, title, measure }
    }

    /// Measures the figure.
    ///
    /// # Errors
    /// Fails if a simulation or a store fails.
    pub fn measure(&self, effort: Effort, progress: &SharedProgress) -> anyhow::Result<Figure> {
        (self.measure)(&Task { info: self, effort, progress })
    }
}

/// The task of measuring a figure.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    info: &'a FigureInfo,
    pub(crate) effort: Effort,
    pub(crate) progress: &'a SharedProgress,
}

impl Task<'_> {
    pub(crate) fn name(&self) -> &'static str {
        self.info.name
    }

    /// Returns the figure with `panels`, and nothing in them.
    pub(crate) fn figure(&self, panels: impl IntoIterator<Item = Panel>) -> Figure {
        Figure::empty(self.info.name, self.info.title, panels.into_iter().collect())
    }

    /// Returns `quick` for a quick measurement, else `full`.
    pub(crate) fn pick<T>(&self, quick: T, full: T) -> T {
        if self.effort.is_quick { quick } else { full }
    }

    /// Measures each of `items` on all cores, the longest first; `work` returns about how long one
    /// takes. The results are in the order of the items.
    pub(crate) fn each<I: Sync, T: Send>(
        &self,
        step: &str,
        items: &[I],
        work: impl Fn(&I) -> u64 + Sync,
        measure: impl Fn(&I, &Ticker<'_>) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Vec<T>> {
        measure_all(step, &jobs(items, &work, &measure), self.progress)
    }

    /// Does as [`each`](Task::each), one item after the other: for measurements of time.
    pub(crate) fn each_in_turn<I: Sync, T: Send>(
        &self,
        step: &str,
        items: &[I],
        work: impl Fn(&I) -> u64 + Sync,
        measure: impl Fn(&I, &Ticker<'_>) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Vec<T>> {
        measure_in_turn(step, &jobs(items, &work, &measure), self.progress)
    }
}

/// An item with the functions that measure it.
struct Each<'a, I, W, M> {
    item: &'a I,
    work: &'a W,
    measure: &'a M,
}

fn jobs<'a, I, W, M>(items: &'a [I], work: &'a W, measure: &'a M) -> Vec<Each<'a, I, W, M>> {
    items.iter().map(|item| Each { item, work, measure }).collect()
}

impl<I, T, W, M> Job for Each<'_, I, W, M>
where
    I: Sync,
    T: Send,
    W: Fn(&I) -> u64 + Sync,
    M: Fn(&I, &Ticker<'_>) -> anyhow::Result<T> + Sync,
{
    type Output = T;

    fn work(&self) -> u64 {
        (self.work)(self.item)
    }

    fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<T> {
        (self.measure)(self.item, ticker)
    }
}

/// Calls `test` with a task of no figure.
#[cfg(test)]
pub(crate) fn with_task<T>(test: impl Fn(&Task<'_>) -> T) -> T {
    let info = FigureInfo::new("test", |task| Ok(task.figure([])), "a test");
    test(&Task { info: &info, effort: Effort::QUICK, progress: &lsmith_lab::NoProgress })
}
