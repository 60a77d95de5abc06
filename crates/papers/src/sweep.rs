//! Sweeps: every curve measured at every place of the x axis, once.

use crate::{Figure, Task};
use lsmith_lab::Ticker;

/// One measurement of a sweep, and the place of its point.
#[derive(Clone, Debug)]
pub(crate) struct Spot<J> {
    pub(crate) panel: &'static str,
    /// The name of the curve.
    pub(crate) curve: String,
    pub(crate) x: f64,
    /// What is measured.
    pub(crate) job: J,
}

/// Returns a spot for every curve at every x, curve by curve. `job` makes what is measured there.
pub(crate) fn spots<J>(
    panel: &'static str,
    curves: impl IntoIterator<Item = impl AsRef<str>>,
    xs: &[f64],
    job: impl Fn(&str, f64) -> J,
) -> Vec<Spot<J>> {
    let job = &job;
    let of_curve = |curve: &str| -> Vec<Spot<J>> {
        let spot = |x: &f64| Spot { panel, curve: curve.to_owned(), x: *x, job: job(curve, *x) };
        xs.iter().map(spot).collect()
    };
    curves.into_iter().flat_map(|curve| of_curve(curve.as_ref())).collect()
}

/// The results of a sweep, spot by spot.
#[derive(Clone, Debug)]
pub(crate) struct Sweep<J, T>(Vec<(Spot<J>, T)>);

impl<J: Sync, T: Send> Sweep<J, T> {
    /// Measures all spots on all cores, as [`Task::each`] does.
    pub(crate) fn measure(
        task: &Task<'_>,
        step: &str,
        spots: Vec<Spot<J>>,
        work: impl Fn(&J) -> u64 + Sync,
        measure: impl Fn(&J, &Ticker<'_>) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Sweep<J, T>> {
        let work = |spot: &Spot<J>| work(&spot.job);
        let found = task.each(step, &spots, work, |spot, ticker| measure(&spot.job, ticker))?;
        Ok(Sweep::of(spots, found))
    }
}

impl<J, T> Sweep<J, T> {
    /// Returns a sweep of results from elsewhere.
    pub(crate) fn of(spots: Vec<Spot<J>>, found: impl IntoIterator<Item = T>) -> Sweep<J, T> {
        Sweep(spots.into_iter().zip(found).collect())
    }

    /// Returns all spots with their results.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Spot<J>, &T)> {
        self.0.iter().map(|(spot, found)| (spot, found))
    }

    /// Adds a point for each spot to its panel of `figure`.
    pub(crate) fn draw(&self, figure: &mut Figure, y: impl Fn(&T) -> f64) {
        for (spot, found) in &self.0 {
            figure.point(spot.panel, &spot.curve, spot.x, y(found));
        }
    }

    /// Adds a point for each spot to `panel`, whatever its own is.
    pub(crate) fn draw_in(&self, figure: &mut Figure, panel: &str, y: impl Fn(&T) -> f64) {
        for (spot, found) in &self.0 {
            figure.point(panel, &spot.curve, spot.x, y(found));
        }
    }

    /// Returns the points alone, to compare curves that are not drawn.
    pub(crate) fn points(&self, y: impl Fn(&T) -> f64) -> Figure {
        let mut figure = Figure::empty("", "", Vec::new());
        self.draw(&mut figure, y);
        figure
    }

    /// Returns the result at one spot.
    pub(crate) fn at(&self, panel: &str, curve: &str, x: f64) -> Option<&T> {
        let mut all = self.iter();
        let is_it = |spot: &Spot<J>| spot.panel == panel && spot.curve == curve && spot.x == x;
        all.find(|(spot, _)| is_it(spot)).map(|(_, found)| found)
    }
}
