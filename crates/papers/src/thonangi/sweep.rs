//! Measures steady states in parallel, as curves over a varying quantity.

use super::chain::Chain;
use super::steady::{Bench, Steady};
use crate::Figure;
use lsmith_lab::{SharedProgress, measure_all};

/// The policies whose merges keep blocks.
pub(super) const KEEPING: [&str; 4] = ["full", "rr", "choose_best", "mixed"];

/// The paper's seven, "-P" last.
pub(super) const SEVEN: [&str; 7] = [
    "full",
    "rr",
    "choose_best",
    "mixed",
    "full(reuse=false)",
    "rr(reuse=false)",
    "choose_best(reuse=false)",
];

/// Pairs of a policy that keeps blocks and the same policy without.
pub(super) const PAIRS: [(&str, &str); 3] = [
    ("full", "full(reuse=false)"),
    ("rr", "rr(reuse=false)"),
    ("choose_best", "choose_best(reuse=false)"),
];

/// One point to measure.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) panel: &'static str,
    /// The name of the curve.
    pub(super) curve: String,
    pub(super) x: f64,
    pub(super) bench: Bench,
}

/// The result at each spot.
#[derive(Clone, Debug)]
pub(super) struct Sweep(Vec<(Spot, Steady)>);

impl Sweep {
    /// Measures all spots.
    pub(super) fn measure(
        step: &str,
        spots: Vec<Spot>,
        progress: &SharedProgress,
    ) -> anyhow::Result<Sweep> {
        let (chains, places) = Chain::of(spots.iter().map(|spot| &spot.bench));
        let measured = measure_all(step, &chains, progress)?;
        let found = places.into_iter().map(|(chain, place)| measured[chain][place].clone());
        Ok(Sweep(spots.iter().cloned().zip(found).collect()))
    }

    /// Returns a sweep with results from elsewhere.
    pub(super) fn of(found: Vec<(Spot, Steady)>) -> Sweep {
        Sweep(found)
    }

    /// Adds a point for each spot to `figure`.
    pub(super) fn draw(&self, figure: &mut Figure, y: impl Fn(&Steady) -> f64) {
        for (spot, steady) in &self.0 {
            figure.point(spot.panel, &spot.curve, spot.x, y(steady));
        }
    }

    /// Adds the same points to `panel`, even if they were measured for another panel.
    pub(super) fn draw_in(&self, figure: &mut Figure, panel: &str, y: impl Fn(&Steady) -> f64) {
        for (spot, steady) in &self.0 {
            figure.point(panel, &spot.curve, spot.x, y(steady));
        }
    }

    /// Returns one spot.
    pub(super) fn spot(&self, panel: &str, curve: &str, x: f64) -> Option<&Spot> {
        let is_it = |spot: &&Spot| spot.panel == panel && spot.curve == curve && spot.x == x;
        self.0.iter().map(|(spot, _)| spot).find(is_it)
    }

    /// Returns the result at one spot.
    pub(super) fn at(&self, panel: &str, curve: &str, x: f64) -> Option<&Steady> {
        let is_it = |spot: &Spot| spot.panel == panel && spot.curve == curve && spot.x == x;
        self.0.iter().find(|(spot, _)| is_it(spot)).map(|(_, steady)| steady)
    }

    /// Returns the write cost at one spot.
    pub(super) fn cost(&self, panel: &str, curve: &str, x: f64) -> Option<f64> {
        self.at(panel, curve, x).map(|steady| steady.write_cost_blocks)
    }

    /// Returns each measured x of `panel`, ascending.
    pub(super) fn xs(&self, panel: &str) -> Vec<f64> {
        let spots = self.0.iter().filter(|(spot, _)| spot.panel == panel);
        let mut xs: Vec<f64> = spots.map(|(spot, _)| spot.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// Returns by how many percent `curve` costs more than `base` at `x`; negative for less.
    pub(super) fn excess(&self, panel: &str, curve: &str, base: &str, x: f64) -> Option<f64> {
        Some((self.cost(panel, curve, x)? / self.cost(panel, base, x)? - 1.0) * 100.0)
    }

    /// Returns the excess at each x of `panel` within `range`.
    pub(super) fn excesses(
        &self,
        panel: &str,
        curve: &str,
        base: &str,
        range: std::ops::RangeInclusive<f64>,
    ) -> Vec<f64> {
        let xs = self.xs(panel).into_iter().filter(|x| range.contains(x));
        xs.filter_map(|x| self.excess(panel, curve, base, x)).collect()
    }

    /// Returns the greatest excess of `curve` over the cheapest of `others` at any x, in percent.
    pub(super) fn worst_lead(&self, panel: &str, curve: &str, others: &[&str]) -> Option<f64> {
        let at =
            |x: f64| most(others.iter().filter_map(|other| self.excess(panel, curve, other, x)));
        most(self.xs(panel).into_iter().filter_map(at))
    }
}

/// The range of all x.
pub(super) const ALL: std::ops::RangeInclusive<f64> = f64::NEG_INFINITY..=f64::INFINITY;

/// Returns the largest value, if there is any.
pub(super) fn most(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().reduce(f64::max)
}

/// Returns the smallest value, if there is any.
pub(super) fn least(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().reduce(f64::min)
}

/// Returns the greatest absolute value, if there is any.
pub(super) fn farthest(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    most(values.into_iter().map(f64::abs))
}
