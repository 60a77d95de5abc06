//! Figures that can be measured, and the task of measuring one.

use crate::{Effort, Figure, Panel};
use anyhow::bail;
use lsmith_lab::{Job, SharedProgress, Ticker, measure_all, measure_in_turn};
use lsmith_policy::{MergePolicy, Registry};
use std::sync::Arc;

/// A figure that can be measured.
#[derive(Clone, Copy, Debug)]
pub struct FigureInfo {
    /// The name, such as `thonangi-fig2`.
    pub name: &'static str,
    /// The title, one line.
    pub title: &'static str,
    /// The policies of a caller that can take part.
    pub takes: Takes,
    /// The function that measures the figure.
    measure: fn(&Task<'_>) -> anyhow::Result<Figure>,
}

/// The policies of a caller that a figure can have beside its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Any policy.
    Any,
    /// Policies that count in blocks.
    InBlocks,
    /// No policy, for this reason.
    Nothing(&'static str),
}

impl FigureInfo {
    /// Returns the figure that `measure` measures.
    pub(crate) const fn new(
        name: &'static str,
        measure: fn(&Task<'_>) -> anyhow::Result<Figure>,
        takes: Takes,
        title: &'static str,
    ) -> FigureInfo {
        FigureInfo { name, title, takes, measure }
    }

    /// Checks that `policy` can take part in the figure.
    ///
    /// # Errors
    /// Fails with the reason if it cannot.
    pub fn check_takes(&self, policy: &dyn MergePolicy) -> Result<(), String> {
        match self.takes {
            Takes::Nothing(why) => Err(format!("{} takes no policy of yours: {why}", self.name)),
            Takes::InBlocks if !policy.needs().blocks => Err(format!(
                "{} takes policies that count in blocks, such as `rr` and `choose_best`; {} counts \
                 in bytes",
                self.name,
                policy.spec()
            )),
            Takes::Any | Takes::InBlocks => Ok(()),
        }
    }

    /// Measures the figure.
    ///
    /// # Errors
    /// Fails if a simulation or a store fails.
    pub fn measure(&self, effort: Effort, progress: &SharedProgress) -> anyhow::Result<Figure> {
        self.measure_beside(&[], effort, progress)
    }

    /// Measures the figure, with a curve for each of `own` beside the paper's curves. No claim is
    /// about them. A policy that the figure has already gets no second curve.
    ///
    /// # Errors
    /// Fails if one of them cannot take part, or if a simulation or a store fails.
    pub fn measure_beside(
        &self,
        own: &[Arc<dyn MergePolicy>],
        effort: Effort,
        progress: &SharedProgress,
    ) -> anyhow::Result<Figure> {
        if let Some(Err(why)) = own.iter().map(|own| self.check_takes(&**own)).find(Result::is_err)
        {
            bail!(why);
        }
        let mut figure = (self.measure)(&Task { info: self, effort, progress, own })?;
        if !own.is_empty() {
            figure.note(format!(
                "Not in the paper, and part of no claim: {}. Each has the parameters of its spec, \
                 with its own defaults.",
                own.iter().map(|own| own.spec().to_string()).collect::<Vec<_>>().join("; ")
            ));
        }
        Ok(figure)
    }
}

/// The task of measuring a figure.
#[derive(Clone, Copy)]
pub(crate) struct Task<'a> {
    info: &'a FigureInfo,
    pub(crate) effort: Effort,
    pub(crate) progress: &'a SharedProgress,
    /// The policies of the caller.
    own: &'a [Arc<dyn MergePolicy>],
}

impl Task<'_> {
    /// Returns the specs of the caller's policies that are not among `known`.
    pub(crate) fn own_beside(
        &self,
        known: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Vec<String> {
        let known: Vec<_> = known.into_iter().collect();
        let mut specs: Vec<String> = Vec::new();
        for spec in self.own.iter().map(|own| own.spec().to_string()) {
            if !specs.contains(&spec) && known.iter().all(|known| known.as_ref() != spec) {
                specs.push(spec);
            }
        }
        specs
    }

    /// Returns the caller's policy with this spec.
    pub(crate) fn own(&self, spec: &str) -> Option<Arc<dyn MergePolicy>> {
        self.own.iter().find(|own| own.spec().to_string() == spec).cloned()
    }

    /// Returns the caller's policy with this spec, or builds the one that it names.
    ///
    /// # Errors
    /// Fails if there is no such policy.
    pub(crate) fn policy(&self, spec: &str) -> anyhow::Result<Arc<dyn MergePolicy>> {
        match self.own(spec) {
            Some(own) => Ok(own),
            None => Ok(Registry::builtin().build(spec)?),
        }
    }

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
    let info = FigureInfo::new("test", |task| Ok(task.figure([])), Takes::Any, "a test");
    let progress = &lsmith_lab::NoProgress;
    test(&Task { info: &info, effort: Effort::QUICK, progress, own: &[] })
}
